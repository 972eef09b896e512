//! Where a predicate about messages, or about chains of them, fails.

use std::collections::BTreeSet;

use demi_predicate::{Class, Predicate, Scope, stands_for};

use super::check::{CheckAnswer, Failure, StateHistory};
use super::{CutSpec, Delivery, Query};
use crate::error::LineageError;

impl Query {
    /// Goes through the messages that were delivered. Where rows stand for themselves each that fails is a failure of its own.
    pub(super) fn check_messages(
        &self,
        told: &StateHistory,
        predicate: &Predicate,
        class: &Class,
    ) -> Result<CheckAnswer, LineageError> {
        let length = match predicate.scope() {
            Scope::Chain => predicate.chain_length(),
            _ => 2,
        };
        let of_kind = |d: &&Delivery| match predicate.scope() {
            Scope::Messages(Some(kind)) => *kind == *d.delivered.kind,
            _ => true,
        };
        let is_among = |d: &&Delivery| {
            let links = d.delivered.links.get(..length);
            // The first place is that of the last link.
            links.is_some_and(|l| l.iter().rev().enumerate().all(|(place, link)| class.has(&link.0, place)))
        };
        let rows: Vec<&Delivery> = told.deliveries(self)?.iter().filter(of_kind).filter(is_among).collect();
        let mut answer = CheckAnswer::new(predicate, absent(predicate, &rows, length));
        if answer.absent.is_some() {
            return Ok(answer);
        }
        let mut checker = predicate.checker();
        for row in rows {
            answer.checked += 1;
            let found = checker.deliver(&row.delivered);
            let name = || self.index.name(row.receive).map(|name| name.to_string());
            let found = match found {
                Ok(found) => found,
                Err(reason) => return Err(LineageError::Question(format!("at {}: {reason}", name()?))),
            };
            let Some(of) = found else { continue };
            answer.failing += 1;
            if predicate.is_of_groups() && !answer.holds {
                // A group that failed once fails for good.
                continue;
            }
            let from = name()?;
            let until = (!predicate.is_of_groups()).then(|| from.clone());
            answer.failures.push(Failure { from, until, of: of.to_owned() });
            if answer.holds {
                answer.holds = false;
                answer.first = Some(self.state_of(&CutSpec::default(), row.told())?);
            }
        }
        Ok(answer)
    }

    /// A variable that no state has, or a message that nobody received, is a slip of the pen.
    pub(super) fn slip(
        &self,
        told: &StateHistory,
        predicate: &Predicate,
        absent: &str,
    ) -> Result<LineageError, LineageError> {
        let mut all: BTreeSet<String> = BTreeSet::new();
        let mut name = absent;
        let what = if let Some(variable) = absent.strip_prefix(TELLS) {
            name = variable;
            for delivery in told.deliveries(self)? {
                all.extend(delivery.delivered.message.variables().map(str::to_owned));
            }
            format!("no message tells '{variable}' of itself")
        } else if absent == predicate.scope().to_string().trim() {
            all.extend(told.deliveries(self)?.iter().map(|d| d.delivered.kind.to_string()));
            match predicate.scope() {
                Scope::Messages(Some(kind)) => {
                    name = kind;
                    format!("no message of type '{kind}' was delivered")
                }
                Scope::Chain => {
                    return Ok(LineageError::Question("no message led to another, over three actors".into()));
                }
                _ => return Ok(LineageError::Question("no message was delivered".into())),
            }
        } else {
            all.extend(told.variables().into_iter().map(str::to_owned));
            format!("no state has a variable '{absent}'")
        };
        let near = demi_common::nearest(name, all.iter().map(String::as_str));
        let near = near.map_or(String::new(), |n| format!("; '{n}' is near"));
        let all = all.into_iter().collect::<Vec<_>>().join(", ");
        Ok(LineageError::Question(format!("{what}{near} (there are: {all})")))
    }
}

/// What stands in front of a name of what messages tell.
const TELLS: &str = "message.";

/// What the predicate speaks of and no row has.
fn absent(predicate: &Predicate, rows: &[&Delivery], length: usize) -> Option<String> {
    if rows.is_empty() {
        return Some(predicate.scope().to_string().trim().to_owned());
    }
    let mut states = predicate.variables();
    let mut messages = predicate.message_variables();
    for row in rows {
        if states.is_empty() && messages.is_empty() {
            break;
        }
        let links = row.delivered.links.iter().take(length).map(|link| &link.1);
        for state in links.chain(&row.delivered.before) {
            state.variables().for_each(|name| {
                states.retain(|wanted| !stands_for(wanted, name));
            });
        }
        row.delivered.message.variables().for_each(|name| {
            messages.retain(|wanted| !stands_for(wanted, name));
        });
    }
    let state = states.into_iter().next().map(str::to_owned);
    state.or_else(|| messages.into_iter().next().map(|name| format!("{TELLS}{name}")))
}

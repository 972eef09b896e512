//! Where a predicate over states fails.

use std::process::ExitCode;

use demi_lineage::query::{CheckAnswer, Predicate, Query, Scope, StateSelection};

use super::ask::cut_text;
use crate::commands::Outcome;
use demi_commands::ui::Ui;

/// The global states in which a predicate is evaluated.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedStates {
    /// As order; if the predicate holds there and is about several actors, also as pairs.
    All,
    /// The states along one linear extension, one after each state record. Another order of the same events may pass through others.
    Order,
    /// All pairs of states that can exist at the same time, with each handler as one step: finds every failure of "at most one" and of PAIRS.
    Pairs,
}

impl From<CheckedStates> for StateSelection {
    fn from(moments: CheckedStates) -> StateSelection {
        match moments {
            CheckedStates::All => StateSelection::All,
            CheckedStates::Order => StateSelection::Order,
            CheckedStates::Pairs => StateSelection::Pairs,
        }
    }
}

/// Failures shown to people.
const SHOWN: usize = 20;

/// Checks a predicate; exit status 1 where it fails.
pub fn run(query: &Query, predicate: &str, states: CheckedStates, json: bool, ui: &Ui) -> Outcome {
    let predicate = Predicate::parse(predicate)?;
    let answer = query.check(&predicate, states.into())?;
    let rows = match predicate.scope() {
        Scope::Messages(_) => "messages",
        Scope::Chain => "chains",
        _ if answer.of_pairs => "pairs of states that can exist at the same time",
        _ if states == CheckedStates::Order && predicate.is_of_cuts() => "global states of one order",
        _ => "global states",
    };
    let text = if json { serde_json::to_string(&answer)? } else { shown(&answer, rows) };
    ui.result(&text);
    Ok(if answer.holds { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn shown(answer: &CheckAnswer, rows: &str) -> String {
    if answer.holds {
        return match answer.unfinished {
            false => format!("holds of all {} {rows}", answer.checked),
            true => format!(
                "holds of the first {} {rows}; there are more, which were not checked",
                answer.checked
            ),
        };
    }
    let mut text = format!("fails of {} of {} {rows}:", answer.failing, answer.checked);
    for failure in answer.failures.iter().take(SHOWN) {
        let of = if failure.of.is_empty() { String::new() } else { format!(" ({})", failure.of) };
        let from = &failure.from;
        let when = match &failure.until {
            Some(until) if until == from => format!("at {from}"),
            Some(until) => format!("from {from} until {until}"),
            None => format!("from {from} to the end"),
        };
        text.push_str(&format!("\n  {when}{of}"));
    }
    if answer.failures.len() > SHOWN {
        text.push_str(&format!("\n  and {} more (--json has all)", answer.failures.len() - SHOWN));
    }
    if let Some(first) = &answer.first {
        text.push_str(&format!("\nthe smallest cut with the first failure: {}", cut_text(&first.cut)));
        for (actor, known) in &first.states {
            text.push_str(&format!("\n  {actor} at {}: {}", known.event, known.state));
        }
    }
    text
}

//! What a checker makes of messages.

use std::sync::Arc;

use super::Checker;
use crate::row::{Delivered, Row};
use crate::scope::Scope;

impl Checker<'_> {
    /// Whether two different actors are a row.
    pub(super) fn are_rows(&self, a: &Arc<str>, b: &Arc<str>) -> bool {
        match self.predicate.scope() {
            Scope::Neighbours(..) => self.met.contains(&(a.clone(), b.clone())),
            _ => true,
        }
    }

    /// Takes the next message that was delivered, when its receiver has told its state after it; returns what fails then, in words.
    /// Where rows are messages and stand for themselves, that is this message.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn deliver(&mut self, delivered: &Delivered) -> Result<Option<&str>, String> {
        let predicate = self.predicate;
        let row = match predicate.scope() {
            Scope::Neighbours(..) => {
                self.meet(delivered)?;
                return Ok(self.failure.as_deref());
            }
            Scope::Messages(kind) if kind.as_deref().is_none_or(|kind| kind == &*delivered.kind) => {
                Row::message(delivered)
            }
            Scope::Chain => Row::chain(delivered, predicate.chain_length()),
            Scope::Messages(_) => None,
            _ => return Ok(self.failure.as_deref()),
        };
        let before = self.failure.is_some() && predicate.is_of_groups();
        if predicate.parsed.groups.is_none() {
            self.failure = row.map_or(Ok(None), |row| self.judge.ask(&[row]))?;
        } else if let (None, Some(row)) = (&self.failure, row) {
            self.failure = self.collect(row, delivered)?;
        }
        if self.failure.is_some() && !before {
            let sides = if *predicate.scope() == Scope::Chain { predicate.chain_length() } else { 2 };
            self.culprits = delivered.links.iter().take(sides).map(|link| link.0.clone()).collect();
        }
        Ok(self.failure.as_deref())
    }

    /// Two actors exchange a message: they are neighbours from there on.
    fn meet(&mut self, delivered: &Delivered) -> Result<(), String> {
        let [(receiver, _), (sender, _), ..] = delivered.links.as_slice() else { return Ok(()) };
        if sender == receiver || !self.met.insert((sender.clone(), receiver.clone())) {
            return Ok(());
        }
        self.met.insert((receiver.clone(), sender.clone()));
        if self.actors.contains_key(sender) && self.actors.contains_key(receiver) {
            self.pairs(receiver)?;
        }
        Ok(())
    }

    /// Adds a message, or a chain that it ends, to its group; what fails with it.
    fn collect(&mut self, row: Row<'_>, delivered: &Delivered) -> Result<Option<String>, String> {
        let Some(key) = self.predicate.key(row)? else { return self.left_out(row) };
        if !self.keep(&key, row, delivered) {
            return Ok(None);
        }
        let group = self.messages.get(&key).map_or(&[][..], Vec::as_slice);
        let length = self.predicate.chain_length();
        let row =
            |d| if *self.predicate.scope() == Scope::Chain { Row::chain(d, length) } else { Row::message(d) };
        let rows: Vec<Row<'_>> = group.iter().filter_map(row).collect();
        self.judge.ask(&rows)
    }

    /// Adds a message to its group, unless one counts for both; whether it did.
    fn keep(&mut self, key: &str, row: Row<'_>, delivered: &Delivered) -> bool {
        let projected: Vec<String> = self.judge.columns.iter().map(|c| row.get(c).to_string()).collect();
        if !self.predicate.parsed.counts_rows() && self.taken.insert(projected.join("\u{1f}"), 0).is_some() {
            return false;
        }
        self.messages.entry(key.to_owned()).or_default().push(delivered.clone());
        true
    }
}

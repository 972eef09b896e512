//! What is said of messages.

use std::sync::Arc;

use super::{Key, Verdicts};
use crate::eval::{self, Verdict};
use crate::row::{Delivered, Row};
use crate::scope::Scope;

impl Verdicts<'_> {
    /// Takes the next message that was delivered, when its receiver has told its state after it, and looks at what it changes. Of messages
    /// that stand for themselves only the last is kept in mind.
    pub fn deliver(&mut self, delivered: &Delivered) {
        let row = match self.predicate.scope() {
            Scope::Neighbours(..) => return self.meet(delivered),
            Scope::Messages(kind) if kind.as_deref().is_none_or(|kind| kind == &*delivered.kind) => {
                Row::message(delivered)
            }
            Scope::Chain => Row::chain(delivered, self.predicate.chain_length()),
            _ => None,
        };
        let Some(row) = row else { return };
        let affected: Vec<Arc<str>> =
            delivered.links.iter().take(self.sides()).map(|link| link.0.clone()).collect();
        if self.predicate.is_of_groups() {
            return self.collect(row, delivered, affected);
        }
        let Some(says) = eval::verdict_of_row(&self.predicate.parsed, row) else { return };
        let key: Key = (Arc::from(row.named(self.predicate.scope())), None);
        let before = self.found.pop_first().map(|(_, finding)| finding);
        self.found.clear();
        let (of, fails) = (key.0.to_string(), says == Verdict::Fails);
        self.put(key.clone(), of, affected, says);
        // Each is a failure of its own; those in a row are counted together. Of what is not judged it is said once.
        if let (Some(before), Some(now)) = (before, self.found.get_mut(&key)) {
            match (fails, before.unjudged.is_some()) {
                (true, false) => now.looks = before.looks,
                (false, true) => now.told = before.told,
                _ => {}
            }
        }
    }

    /// Two actors exchange a message: they are neighbours from there on.
    fn meet(&mut self, delivered: &Delivered) {
        let [(receiver, _), (sender, _), ..] = delivered.links.as_slice() else { return };
        if sender == receiver || !self.met.insert((sender.clone(), receiver.clone())) {
            return;
        }
        self.met.insert((receiver.clone(), sender.clone()));
        if self.actors.contains_key(sender) && self.actors.contains_key(receiver) {
            self.unseen.insert(receiver.clone());
            self.look();
        }
    }

    /// Adds a message, or a chain that it ends, to its group.
    fn collect(&mut self, row: Row<'_>, delivered: &Delivered, affected: Vec<Arc<str>>) {
        let alone = self.alone(row);
        let group = match self.group_of(row) {
            Ok(group) => group,
            Err(reason) => return self.put_alone(alone, affected, Some(reason)),
        };
        let Some((key, of)) = group else {
            self.put_alone(alone, Vec::new(), None);
            if self.messages.is_empty() {
                self.judge_nothing(&affected);
            }
            return;
        };
        let known: Key = (Arc::from(of.as_str()), None);
        if self.has_failed(&known) || !self.keep(&key, row, delivered) {
            return self.put_alone(alone, Vec::new(), None);
        }
        let group = self.messages.get(&key).map_or(&[][..], |group| &group.rows);
        let rows: Vec<Row<'_>> = group.iter().filter_map(|message| self.row_of(message)).collect();
        let says = eval::verdict_of_group(&self.predicate.parsed, &rows);
        if let Verdict::Unjudged(reason) = says {
            self.take_back(&key, row);
            return self.put_alone(alone, affected, Some(reason));
        }
        self.put_alone(alone, Vec::new(), None);
        self.put(known, of, affected, says);
    }

    /// Adds a message to its group, unless one counts for both; whether it did.
    pub(super) fn keep(&mut self, key: &str, row: Row<'_>, delivered: &Delivered) -> bool {
        let counts = self.predicate.parsed.counts_rows();
        if !counts && self.taken.insert(self.read_of(row), 0).is_some() {
            return false;
        }
        self.added += 1;
        let group = self.messages.entry(key.to_owned()).or_default();
        group.touched = self.added;
        group.rows.push(delivered.clone());
        self.kept += 1;
        true
    }

    fn take_back(&mut self, key: &str, row: Row<'_>) {
        self.taken.remove(&self.read_of(row));
        if let Some(group) = self.messages.get_mut(key) {
            group.rows.pop();
            self.kept -= 1;
            if group.rows.is_empty() {
                self.messages.remove(key);
            }
        }
    }

    fn read_of(&self, row: Row<'_>) -> String {
        let read: Vec<String> = self.columns.iter().map(|c| row.get(c).to_string()).collect();
        read.join("\u{1f}")
    }

    /// A message as a row of the predicate's scope.
    pub(super) fn row_of<'d>(&self, delivered: &'d Delivered) -> Option<Row<'d>> {
        match self.predicate.scope() {
            Scope::Chain => Row::chain(delivered, self.predicate.chain_length()),
            _ => Row::message(delivered),
        }
    }

    /// How many states a row has.
    fn sides(&self) -> usize {
        if *self.predicate.scope() == Scope::Chain { self.predicate.chain_length() } else { 2 }
    }
}

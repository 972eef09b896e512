//! What is said of a history: all states ever told.
//!
//! What failed once has failed for good. A state that leaves its group without a verdict is no part of the history: its actor is without
//! one until it tells a state that can be judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Key, Verdicts};
use crate::eval::{self, Verdict};
use crate::row::{ReportedState, Row};
use crate::state::State;
use crate::term::Column;

impl Verdicts<'_> {
    /// A state that stands for itself: its actor fails, or not.
    pub(super) fn judge_state(&mut self, actor: &Arc<str>, state: &Arc<State>) {
        let key: Key = (actor.clone(), None);
        if self.has_failed(&key) {
            return;
        }
        let row = Row::one(ReportedState { actor, state });
        let says = eval::verdict_of_row(&self.predicate.parsed, row).unwrap_or(Verdict::Holds);
        self.put(key, row.named(self.predicate.scope()), vec![actor.clone()], says);
    }

    /// Adds a state to its group.
    pub(super) fn remember(&mut self, actor: &Arc<str>, state: &Arc<State>) {
        let row = Row::one(ReportedState { actor, state });
        let alone = self.alone(row);
        let group = match self.group_of(row) {
            Ok(group) => group,
            Err(reason) => return self.put_alone(alone, vec![actor.clone()], Some(reason)),
        };
        let Some((key, of)) = group else {
            self.put_alone(alone, Vec::new(), None);
            if self.past.is_empty() {
                self.judge_nothing(std::slice::from_ref(actor));
            }
            return;
        };
        let known: Key = (Arc::from(of.as_str()), None);
        let projected = self.projected(row);
        // It was judged when it was first told.
        let before = !self.predicate.parsed.counts_rows() && self.taken.contains_key(&projected);
        if before || self.has_failed(&known) {
            return self.put_alone(alone, Vec::new(), None);
        }
        let kept = Arc::new(state.only(&|name| self.columns.iter().any(|c| c.may_be(name))));
        self.added += 1;
        let group = self.past.entry(key.clone()).or_default();
        group.touched = self.added;
        group.rows.push((actor.clone(), kept));
        let rows: Vec<Row<'_>> =
            group.rows.iter().map(|(actor, state)| Row::one(ReportedState { actor, state })).collect();
        let says = eval::verdict_of_group(&self.predicate.parsed, &rows);
        if let Verdict::Unjudged(reason) = says {
            group.rows.pop();
            if group.rows.is_empty() {
                self.past.remove(&key);
            }
            return self.put_alone(alone, vec![actor.clone()], Some(reason));
        }
        let affected = group.rows.iter().map(|past| past.0.clone()).collect();
        self.taken.insert(projected, 0);
        self.kept += 1;
        self.put_alone(alone, Vec::new(), None);
        self.put(known, of, affected, says);
    }

    /// By what a row is known that leaves its group without a verdict, or has none.
    pub(super) fn alone(&self, row: Row<'_>) -> Key {
        (Arc::from(row.named(self.predicate.scope())), Some(Arc::from("")))
    }

    /// Takes in that such a row cannot be judged, and why, or that it can.
    pub(super) fn put_alone(&mut self, key: Key, affected: Vec<Arc<str>>, reason: Option<String>) {
        let of = key.0.to_string();
        self.put(key, of, affected, reason.map_or(Verdict::Holds, Verdict::Unjudged));
    }

    /// Adds a state to those that stand before others, and judges it with each that stood before it.
    pub(super) fn remember_pairs(&mut self, actor: &Arc<str>, state: &Arc<State>) {
        let told = ReportedState { actor, state };
        let meets = |side: usize| self.sided[side].iter().all(|c| eval::passes(c, Row::pair(told, told)));
        let projected = format!("{actor}\u{1f}{}", self.projected(Row::pair(told, told)));
        let rows = self.past.get(ALL).map_or(&[][..], |group| &group.rows);
        // The pairs with what stood before it the last time were judged then.
        let known = self.taken.get(&projected).copied();
        let new = if meets(1) { rows.get(known.unwrap_or(0)..).unwrap_or_default() } else { &[] };
        let (mut failed, mut unjudged) = (BTreeMap::new(), BTreeMap::new());
        let pair = |past: &Arc<str>| -> Key { (past.clone(), Some(actor.clone())) };
        for past in new {
            if failed.contains_key(&past.0) || self.has_failed(&pair(&past.0)) {
                continue;
            }
            let row = Row::pair(ReportedState { actor: &past.0, state: &past.1 }, told);
            match eval::verdict_of_row(&self.predicate.parsed, row) {
                Some(Verdict::Fails) => {
                    failed.insert(past.0.clone(), row.named(self.predicate.scope()));
                }
                Some(Verdict::Unjudged(reason)) => {
                    unjudged.entry(past.0.clone()).or_insert((row.named(self.predicate.scope()), reason));
                }
                Some(Verdict::Holds) | None => {}
            }
        }
        // One that was judged with any state of an actor is not without a verdict.
        let mut judged = BTreeSet::new();
        if !unjudged.is_empty() || self.found.values().any(|finding| finding.unjudged.is_some()) {
            for past in new.iter().filter(|past| !failed.contains_key(&past.0)) {
                let row = Row::pair(ReportedState { actor: &past.0, state: &past.1 }, told);
                if !matches!(eval::verdict_of_row(&self.predicate.parsed, row), Some(Verdict::Unjudged(_))) {
                    judged.insert(past.0.clone());
                }
            }
        }
        let length = rows.len();
        for past in judged {
            unjudged.remove(&past);
            if !self.has_failed(&pair(&past)) {
                self.found.remove(&pair(&past));
            }
        }
        let both = |past: &Arc<str>| vec![past.clone(), actor.clone()];
        for (past, (of, reason)) in unjudged.into_iter().filter(|(past, _)| !failed.contains_key(past)) {
            self.put(pair(&past), of, both(&past), Verdict::Unjudged(reason));
        }
        for (past, of) in failed {
            self.put(pair(&past), of, both(&past), Verdict::Fails);
        }
        self.taken.insert(projected, length);
        if known.is_none() && self.sided[0].iter().all(|c| eval::passes(c, Row::pair(told, told))) {
            let kept = Arc::new(state.only(&|name| self.columns.iter().any(|c| c.may_be(name))));
            self.added += 1;
            let group = self.past.entry(ALL.to_owned()).or_default();
            group.touched = self.added;
            group.rows.push((actor.clone(), kept));
            self.kept += 1;
        }
    }

    /// The group that a row belongs to, as a text that no other has, and in words; nothing where WHERE leaves it out.
    pub(super) fn group_of(&self, row: Row<'_>) -> Result<Option<(String, String)>, String> {
        let parsed = &self.predicate.parsed;
        eval::key(parsed, row)?.map(|_| eval::group_of(parsed, row)).transpose()
    }

    /// A table that WHERE leaves nothing of: as a whole it may fail all the same.
    pub(super) fn judge_nothing(&mut self, affected: &[Arc<str>]) {
        let key: Key = (Arc::from(""), None);
        if self.predicate.parsed.is_of_the_whole() && !self.has_failed(&key) {
            let says = eval::verdict_of_group(&self.predicate.parsed, &[]);
            self.put(key, String::new(), affected.to_vec(), says);
        }
    }

    /// What the predicate reads of a row, as a text that other values do not have.
    pub(super) fn projected(&self, row: Row<'_>) -> String {
        let of_pairs = self.predicate.scope().pair().is_some();
        let mut text = String::new();
        for column in &self.columns {
            // Of a pair both sides are this state.
            let side = if of_pairs { 0 } else { column.side };
            text.push_str(&row.get(&Column::new(side, column.path.clone())).to_string());
            text.push('\u{1f}');
        }
        text
    }
}

/// The key of states that are all in one group.
pub(super) const ALL: &str = "";

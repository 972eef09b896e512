//! What a checker makes of a history: all states ever told.

use std::sync::Arc;

use super::{Checker, told_of};
use crate::eval;
use crate::row::{ReportedState, Row};
use crate::scope::Scope;
use crate::state::State;
use crate::term::Column;

impl Checker<'_> {
    /// What fails with a row that WHERE leaves out: the table as a whole may, when it has no other.
    pub(super) fn left_out(&self, row: Row<'_>) -> Result<Option<String>, String> {
        let whole = self.predicate.parsed.groups.as_ref().is_some_and(Vec::is_empty);
        match whole && self.groups.is_empty() && self.messages.is_empty() {
            true => self.predicate.failure(&[row]),
            false => Ok(None),
        }
    }

    /// What the predicate reads of a state, as a text that other values do not have.
    pub(super) fn projected(&mut self, row: Row<'_>, state: &State) -> String {
        // A state that was read alone shares its values with nobody.
        let shared = state.values().len() > state.numbers().len()
            && Arc::ptr_eq(self.shared.get_or_insert_with(|| state.values().clone()), state.values());
        let mut text = String::new();
        for column in &self.judge.columns {
            let number = column.among(state.shape()).map(|slot| state.numbers()[slot]);
            match number.filter(|_| shared && column.path.len() == 1 && !column.is_actor()) {
                // No value is written like that.
                Some(number) => text.push_str(&format!("#{number}")),
                None => text.push_str(&row.get(&Column::new(0, column.path.clone())).to_string()),
            }
            text.push('\u{1f}');
        }
        text
    }

    /// Adds a state to the history; what fails with it.
    pub(super) fn remember(
        &mut self,
        actor: &Arc<str>,
        state: &Arc<State>,
    ) -> Result<Option<String>, String> {
        let told = ReportedState { actor, state };
        let row = Row::one(told);
        let projected = self.projected(row, state);
        let Some(key) = self.predicate.key(row)? else { return self.left_out(row) };
        let group = self.groups.entry(key).or_default();
        let known = self.taken.insert(projected, group.len());
        if matches!(self.predicate.scope(), Scope::EverPairs(..)) {
            let meets = |side: usize| self.sided[side].iter().all(|c| eval::passes(c, Row::pair(told, told)));
            // The pairs with what stood before it the last time were looked at then.
            let past = if meets(1) { known.unwrap_or(0) } else { group.len() };
            for past in group.iter().skip(past) {
                let found = self.judge.ask(&[Row::pair(told_of(past), told)])?;
                if found.is_some() {
                    self.culprits = vec![past.0.clone(), actor.clone()];
                    return Ok(found);
                }
            }
        }
        let pairs = matches!(self.predicate.scope(), Scope::EverPairs(..));
        if known.is_some() && (pairs || !self.predicate.parsed.counts_rows()) {
            return Ok(None);
        }
        // A state that was read alone is cut down to what is read of it: histories are long.
        let kept = match state.values().len() > state.numbers().len() {
            true => state.clone(),
            false => Arc::new(state.only(&|name| self.judge.columns.iter().any(|c| c.may_be(name)))),
        };
        let keep = !pairs || self.sided[0].iter().all(|c| eval::passes(c, Row::pair(told, told)));
        if keep {
            group.push((actor.clone(), kept));
        }
        if pairs {
            return Ok(None);
        }
        if self.predicate.parsed.groups.is_none() {
            return self.judge.ask(&[row]);
        }
        let rows: Vec<Row<'_>> = group.iter().map(|past| Row::one(told_of(past))).collect();
        let found = self.judge.ask(&rows)?;
        if found.is_some() {
            self.culprits = group.iter().map(|past| past.0.clone()).collect();
        }
        Ok(found)
    }
}

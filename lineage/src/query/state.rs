//! The global state of all actors at a cut (K. M. Chandy and L. Lamport, "Distributed snapshots", ACM TOCS 3(1), 1985).

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use super::{CutAnswer, Query};
use crate::error::LineageError;
use crate::execution::Tables;
use crate::read::columns;

/// The last recorded state of an actor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActorState {
    /// The record that says it.
    pub event: String,
    /// The variables; text where the log has no JSON there.
    pub state: serde_json::Value,
}

/// The states of actors at a cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GlobalState {
    /// The cut.
    #[serde(flatten)]
    pub cut: CutAnswer,
    /// By actor: its last state in the cut; actors that said none are left out.
    pub states: BTreeMap<String, ActorState>,
}

impl Query {
    /// The states of all actors at a cut, with what is known of the cut.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn state_at(&self, cut: CutAnswer, ends: &[u32]) -> Result<GlobalState, LineageError> {
        let mut last: Vec<u32> = Vec::new();
        let header = self.index.header();
        for (actor, &end) in ends.iter().enumerate() {
            let next = header.actors.get(actor + 1).map_or(header.states, |a| a.first_state);
            let (mut low, mut high) = (header.actors[actor].first_state, next);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.index.states().get(middle)? < end { low = middle + 1 } else { high = middle }
            }
            if low > header.actors[actor].first_state {
                last.push(self.index.states().get(low - 1)?);
            }
        }
        let mut states = BTreeMap::new();
        for (event, text) in last.iter().zip(self.state_texts(&last)?) {
            let name = self.index.name(*event)?;
            let state = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
            states.insert(name.actor.clone(), ActorState { event: name.to_string(), state });
        }
        Ok(GlobalState { cut, states })
    }

    /// The states in these records, which are in order.
    fn state_texts(&self, events: &[u32]) -> Result<Vec<String>, LineageError> {
        let mut texts = vec![String::new(); events.len()];
        self.each_state(events, &mut |event, text| {
            if let Ok(i) = events.binary_search(&event) {
                text.clone_into(&mut texts[i]);
            }
        })?;
        Ok(texts)
    }

    /// Calls `f` with each of these events, which are in order, and its state, in the order in which they are stored.
    pub(super) fn each_state(
        &self,
        events: &[u32],
        f: &mut dyn FnMut(u32, &str),
    ) -> Result<(), LineageError> {
        let known = events.last().is_none_or(|&last| last < self.index.header().events);
        if !known || !events.windows(2).all(|w| w[0] < w[1]) {
            return Err(self.index.broken("the events with a state are not in order".into()));
        }
        let ranges: Vec<Range<u32>> = events.iter().map(|&e| e..e + 1).collect();
        self.each_text("state", &ranges, f)
    }

    /// Calls `f` with each event of these ranges, which are in order, and its text in a column, in the order in which they are stored.
    pub(super) fn each_text(
        &self,
        name: &str,
        ranges: &[Range<u32>],
        f: &mut dyn FnMut(u32, &str),
    ) -> Result<(), LineageError> {
        let (rows, tables) = (self.rows(), Tables::open(&self.folder)?);
        for &part in tables.parts() {
            let numbering = rows.numbering(part);
            for batch in tables.stored(part, &[name], Some(&rows.rows_of(part, ranges)))? {
                let (places, batch) = batch?;
                let column = columns::text(&batch, name)?;
                for (row, place) in places.into_iter().enumerate() {
                    if let Some(event) = numbering.of(place) {
                        f(event, column.value(row));
                    }
                }
            }
        }
        Ok(())
    }
}

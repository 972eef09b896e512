//! Stopping in the middle of a source and going on later, in another process.

use demi_schemas::event::VectorClock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::emit::Emitter;
use super::engine::Mapper;
use super::error::MappingError;
use super::links::LinksState;
use super::patterns::{self, Pattern};
use super::real_time::RealTime;
use super::source_state::SourceState;

/// Execution, ends of operations, clocks of processes.
type HistoryState = (String, VectorClock, Vec<(String, VectorClock)>);

/// What a mapper remembers, in a form that can be written down.
#[derive(Debug, Serialize, Deserialize)]
struct Checkpoint {
    name: String,
    patterns: Vec<String>,
    delimiter: Option<String>,
    columns: Option<Vec<String>>,
    execution: Option<String>,
    number: u64,
    begun: bool,
    names: Vec<String>,
    /// Execution, actor, incarnation, last position.
    positions: Vec<(String, String, u32, u64)>,
    links: LinksState,
    histories: Vec<HistoryState>,
}

impl Mapper {
    /// Where to go on reading after a [`Mapper::checkpoint`]: offset and number of the first line that is not dealt with, if lines wait
    /// for others of their record or of their execution; else behind the last line.
    #[must_use]
    pub fn unfinished(&self) -> Option<(u64, u64)> {
        if !self.source.document.is_empty() {
            return Some((0, 1));
        }
        let held = self.source.held.first().map(|h| &h.line);
        let pending = self.source.pending.front().map(|(line, _)| line);
        held.or(pending).map(|line| (line.offset, line.number))
    }

    /// Whether lines of a header are still to come: a source is not left there.
    #[must_use]
    pub fn in_header(&self) -> bool {
        !self.source.header.is_empty()
    }

    /// What is remembered besides unfinished lines. Take it between two lines.
    #[must_use]
    pub fn checkpoint(&self) -> Value {
        let emitter = &self.emitter;
        let mut positions: Vec<_> = emitter
            .positions
            .iter()
            .flat_map(|(e, lives)| lives.iter().map(move |((a, i), n)| (e.clone(), a.clone(), *i, *n)))
            .collect();
        positions.sort();
        let mut histories: Vec<_> = emitter.histories.iter().map(|(e, h)| h.parts(e)).collect();
        histories.sort();
        let checkpoint = Checkpoint {
            name: self.source.name.clone(),
            patterns: self.source.patterns.iter().map(|p| p.text().to_owned()).collect(),
            delimiter: self.source.delimiter.as_ref().map(|d| d.as_str().to_owned()),
            columns: self.source.columns.clone(),
            execution: self.source.execution.clone(),
            number: self.source.number,
            begun: self.source.begun,
            names: self.used_names.iter().cloned().collect(),
            positions,
            links: emitter.links.state(),
            histories,
        };
        serde_json::to_value(checkpoint).unwrap_or(Value::Null)
    }

    /// Goes on where a checkpoint was taken, in place of [`Mapper::begin`]. The next line is the one that
    /// [`Mapper::unfinished`] named then.
    ///
    /// # Errors
    /// When the value is no checkpoint.
    pub fn resume(&mut self, checkpoint: &Value) -> Result<(), MappingError> {
        let bad = |reason: String| MappingError::value("checkpoint", reason).of(self.name());
        let saved = Checkpoint::deserialize(checkpoint).map_err(|e| bad(e.to_string()))?;
        let most = self.mapping.input.max_lines;
        let patterns = saved.patterns.iter().map(|p| Pattern::new(p, most)).collect::<Result<_, _>>();
        let delimiter = saved.delimiter.as_deref().map(patterns::compile).transpose();
        self.source = SourceState {
            patterns: patterns.map_err(bad)?,
            delimiter: delimiter.map_err(bad)?,
            name: saved.name,
            columns: saved.columns,
            execution: saved.execution,
            number: saved.number,
            begun: saved.begun,
            ..SourceState::default()
        };
        self.used_names = saved.names.into_iter().collect();
        let mut emitter = Emitter { links: saved.links.restore(), ..Emitter::default() };
        for (execution, actor, life, position) in saved.positions {
            emitter.positions.entry(execution).or_default().insert((actor, life), position);
        }
        for (execution, ended, clocks) in saved.histories {
            emitter.histories.insert(execution, RealTime::from_parts(ended, clocks));
        }
        self.emitter = emitter;
        Ok(())
    }
}

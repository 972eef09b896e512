//! Stopping in the middle of a source and going on later, in another process.

use std::collections::BTreeMap;
use std::sync::Arc;

use demi_schemas::event::VectorClock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Mapper;
use super::SourceState;
use crate::formats::csv::Separator;
use crate::mapping::emit::{Emitter, stem};
use crate::mapping::error::MappingError;
use crate::mapping::file::Choose;
use crate::mapping::links::LinksState;
use crate::mapping::patterns::{self, Pattern};
use crate::mapping::real_time::RealTime;
use crate::mapping::stamp::Latest;

/// Execution, ends of operations, clocks of processes.
type HistoryState = (String, VectorClock, Vec<(String, VectorClock)>);

/// What parts of a log left to the next.
type LeftState = (String, (Latest, BTreeMap<String, String>));

/// What a mapper remembers of one source, in a form that can be written down.
#[derive(Debug, Serialize, Deserialize)]
struct OfSource {
    name: String,
    #[serde(default)]
    log: Option<String>,
    patterns: Vec<String>,
    delimiter: Option<String>,
    columns: Option<Vec<String>>,
    #[serde(default)]
    separator: Option<char>,
    execution: Option<String>,
    number: u64,
    begun: bool,
    /// What closes the collection around the records at hand, and the line in which it begins.
    #[serde(default)]
    entered: Option<(char, u64)>,
    #[serde(default)]
    carried: BTreeMap<String, String>,
    /// Latest times that were read by the mapping's formats.
    #[serde(default)]
    latest: Latest,
}

/// What it remembers from source to source.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Shared {
    names: Vec<String>,
    /// Execution, actor, incarnation, last sequence number.
    positions: Vec<(String, String, u32, u64)>,
    links: LinksState,
    histories: Vec<HistoryState>,
    /// What parts of logs left to the next, by log.
    #[serde(default)]
    left: Vec<LeftState>,
}

impl Mapper {
    /// Where to go on reading after a [`Mapper::checkpoint`]: offset and number of the first line that is not dealt with, if lines wait
    /// for others of their record or of their execution; else behind the last line. Where hosts are deduced, lines behind it
    /// that hold no record may have been dealt with, and come again.
    #[must_use]
    pub fn unfinished(&self) -> Option<(u64, u64)> {
        if let Some(documents) = &self.source.documents {
            return documents.unfinished();
        }
        let held = self.source.held.first().map(|h| &h.line);
        let pending = self.source.pending.front().map(|(line, _)| line);
        held.or(pending).or(self.source.unwrapping.first()).map(|line| (line.offset, line.number))
    }

    /// Whether lines of a header are still to come: a source is not left there.
    #[must_use]
    pub fn in_header(&self) -> bool {
        !self.source.header.is_empty()
    }

    /// What is remembered of the source besides unfinished lines. Take it between two lines, together with
    /// [`Mapper::shared`].
    #[must_use]
    pub fn checkpoint(&self) -> Value {
        let of_source = OfSource {
            name: self.source.name.clone(),
            log: self.source.log.clone(),
            patterns: self.source.patterns.iter().map(|p| p.text().to_owned()).collect(),
            delimiter: self.source.delimiter.as_ref().map(|d| d.as_str().to_owned()),
            columns: self.source.columns.as_ref().map(|columns| columns.to_vec()),
            separator: Some(self.source.separator.as_char()),
            execution: self.source.execution.clone(),
            number: self.source.number,
            begun: self.source.begun,
            entered: self.source.documents.as_ref().and_then(|documents| documents.entered()),
            carried: (*self.source.carried).clone(),
            latest: self.emitter.latest.clone(),
        };
        serde_json::to_value(of_source).unwrap_or(Value::Null)
    }

    /// What is remembered from source to source: counted sequence numbers, messages that are open, operations that ended.
    #[must_use]
    pub fn shared(&self) -> Value {
        let emitter = &self.emitter;
        let positions = emitter.counted.positions();
        let mut histories: Vec<_> = emitter.histories.iter().map(|(e, h)| h.parts(e)).collect();
        histories.sort();
        let names = self.used_names.iter().cloned().collect();
        let told = |latest: &Latest, carried: &BTreeMap<String, String>| (latest.clone(), carried.clone());
        let mut left: Vec<_> =
            self.left.iter().map(|(log, (latest, carried))| (log.clone(), told(latest, carried))).collect();
        if let Some(log) = self.source.log.as_ref().filter(|_| self.leaves_something()) {
            left.retain(|(other, _)| other != log);
            left.push((log.clone(), told(&emitter.latest, &self.source.carried)));
        }
        let shared = Shared { names, positions, links: emitter.links.state(), histories, left };
        serde_json::to_value(shared).unwrap_or(Value::Null)
    }

    /// Goes on where a checkpoint of the source was taken, in place of [`Mapper::begin`]. The next line is the one that
    /// [`Mapper::unfinished`] named then. Patterns are those of the mapping, which may have been mended since, except where
    /// the source's beginning chose them.
    ///
    /// # Errors
    /// When the value is no checkpoint.
    pub fn resume(&mut self, checkpoint: &Value) -> Result<(), MappingError> {
        let bad = |reason: String| MappingError::value("checkpoint", reason).of(&self.mapping.name);
        let saved = OfSource::deserialize(checkpoint).map_err(|e| bad(e.to_string()))?;
        let input = &self.mapping.input;
        let chosen = input.choose == Choose::Best || input.header.is_some() || !self.as_mapped();
        let (patterns, delimiter) = if chosen {
            let patterns = saved.patterns.iter().map(|p| Pattern::new(p, input.max_lines));
            let delimiter = saved.delimiter.as_deref().map(patterns::compile).transpose();
            (patterns.collect::<Result<_, _>>().map_err(bad)?, delimiter.map_err(bad)?)
        } else {
            (self.mapping.patterns.clone(), self.mapping.delimiter.clone())
        };
        self.leave();
        self.source = SourceState {
            log: saved.log,
            patterns,
            delimiter,
            stem: stem(&saved.name),
            name: saved.name,
            columns: saved.columns.map(Into::into),
            separator: saved.separator.and_then(Separator::from_char).unwrap_or_default(),
            execution: saved.execution,
            number: saved.number,
            begun: saved.begun,
            carried: saved.carried.into(),
            ..SourceState::default()
        };
        self.emitter.latest = saved.latest;
        self.begin_documents();
        if let Some(documents) = &mut self.source.documents {
            documents.enter(saved.entered);
        }
        Ok(())
    }

    /// Goes on with what [`Mapper::shared`] told.
    ///
    /// # Errors
    /// When the value was not told by it.
    pub fn resume_shared(&mut self, shared: &Value) -> Result<(), MappingError> {
        let bad = |reason: String| MappingError::value("checkpoint", reason).of(&self.mapping.name);
        let saved = Shared::deserialize(shared).map_err(|e| bad(e.to_string()))?;
        let strict = self.emitter.strict;
        let mut emitter = Emitter { links: saved.links.restore(), strict, ..Emitter::default() };
        for (execution, actor, incarnation, seq) in saved.positions {
            *emitter.counted.of(&execution, &actor, incarnation) = seq;
        }
        for (execution, ended, clocks) in saved.histories {
            emitter.histories.insert(execution, RealTime::from_parts(ended, clocks));
        }
        self.left = saved
            .left
            .into_iter()
            .map(|(log, (latest, carried))| (log, (latest, Arc::new(carried))))
            .collect();
        self.used_names = saved.names.into_iter().collect();
        emitter.latest = std::mem::take(&mut self.emitter.latest);
        self.emitter = emitter;
        Ok(())
    }
}

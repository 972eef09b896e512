//! Figures of an execution as a whole.

use std::collections::BTreeMap;

use arrow_array::Array;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Query;
use super::time::instant;
use crate::error::LineageError;
use crate::execution::Tables;
use crate::index::Role;
use crate::matching::Reason;
use crate::read::columns;

/// Figures of an execution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Events.
    pub events: u64,
    /// Actors.
    pub actors: u64,
    /// Events on a longest causal chain.
    pub longest_chain: u64,
    /// The last event of one.
    pub chain_ends_at: String,
    /// Most events at one depth. They are concurrent, so no fewer are in the largest set of concurrent events.
    pub widest: u64,
    /// Events by events on the longest chain: how much ran side by side on average.
    pub parallelism: f64,
    /// Messages and timers by what became of them.
    pub messages: BTreeMap<String, u64>,
    /// Matched messages that could have been matched otherwise.
    pub uncertain: u64,
    /// Events that their clock does not tell apart from others of their log: they stand in the order in which they were read.
    pub tied: u64,
    /// By pair of actors, from most messages to fewest.
    pub channels: Vec<ChannelStats>,
    /// What is odd about the order, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// Messages from one actor to another that were matched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelStats {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Messages.
    pub messages: u64,
    /// Microseconds from send to receive by the logs' own clocks, which need not agree; absent without times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

/// Microseconds. A receive before its send, which clocks that differ make, is below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The shortest.
    pub least: i64,
    /// The middle one.
    pub median: i64,
    /// The longest.
    pub most: i64,
}

/// No time was logged.
const UNKNOWN: i64 = i64::MIN;

impl Query {
    /// Figures of the whole.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn stats(&self) -> Result<Stats, LineageError> {
        let (times, depths) = self.times_and_depths()?;
        let mut levels: FxHashMap<i64, u64> = FxHashMap::default();
        let (mut deepest, mut last) = (0, 0);
        for (event, &depth) in depths.iter().enumerate() {
            *levels.entry(depth).or_default() += 1;
            if depth > deepest {
                (deepest, last) = (depth, event as u32);
            }
        }
        let header = self.index.header();
        let longest = deepest.max(0) as u64;
        Ok(Stats {
            events: u64::from(header.events),
            actors: header.actors.len() as u64,
            longest_chain: longest,
            chain_ends_at: self.index.name(last)?.to_string(),
            widest: levels.values().copied().max().unwrap_or(0),
            parallelism: f64::from(header.events) / (longest.max(1) as f64),
            messages: self.by_status()?,
            uncertain: header.uncertain,
            tied: self.tied()?,
            channels: self.channels(&times)?,
            doubts: crate::execution::load_summary(&self.folder)?.warnings,
        })
    }

    fn times_and_depths(&self) -> Result<(Vec<i64>, Vec<i64>), LineageError> {
        let events = self.index.header().events as usize;
        let (mut times, mut depths) = (vec![UNKNOWN; events], vec![0; events]);
        let (mut rows, rows_of, tables) = (0, self.rows(), Tables::open(&self.folder)?);
        for &part in tables.parts() {
            let numbering = rows_of.numbering(part);
            for batch in tables.stored(part, &["time", "depth"], None)? {
                let (places, batch) = batch?;
                let (time, depth) = (columns::text(&batch, "time")?, columns::long(&batch, "depth")?);
                rows += batch.num_rows();
                for (row, place) in places.into_iter().enumerate() {
                    let Some(event) = numbering.of(place) else { continue };
                    let at = if time.is_valid(row) { instant(time.value(row)) } else { None };
                    times[event as usize] = at.unwrap_or(UNKNOWN);
                    depths[event as usize] = depth.value(row);
                }
            }
        }
        match rows == events {
            true => Ok((times, depths)),
            false => Err(self.index.broken(format!("{events} events, but {rows} in the table"))),
        }
    }

    fn by_status(&self) -> Result<BTreeMap<String, u64>, LineageError> {
        let mut counts = BTreeMap::new();
        for batch in Tables::open(&self.folder)?.messages(&["status"])? {
            let batch = batch?;
            let status = columns::text(&batch, "status")?;
            for row in 0..batch.num_rows() {
                *counts.entry(status.value(row).to_owned()).or_default() += 1;
            }
        }
        Ok(counts)
    }

    fn channels(&self, times: &[i64]) -> Result<Vec<ChannelStats>, LineageError> {
        let mut found: FxHashMap<(u32, u32), (u64, Vec<i64>)> = FxHashMap::default();
        for event in 0..self.index.header().events {
            let info = self.index.info(event)?;
            if !(info.role() == Role::Delivery || info.is_linked()) {
                continue;
            }
            let actor = self.index.actor_of(event) as u32;
            self.index.each_cause(event, info, |cause| {
                if cause.reason() == Reason::Timer || (self.certain && !cause.certain()) {
                    return Ok(());
                }
                let from = self.index.actor_of(cause.event()) as u32;
                let (count, all) = found.entry((from, actor)).or_default();
                *count += 1;
                let (sent, received) = (times[cause.event() as usize], times[event as usize]);
                if sent != UNKNOWN && received != UNKNOWN {
                    all.push(received.saturating_sub(sent) / 1000);
                }
                Ok(())
            })?;
        }
        let name = |actor: u32| self.index.header().actors[actor as usize].name.clone();
        let mut channels: Vec<ChannelStats> = found
            .into_iter()
            .map(|((from, to), (messages, mut all))| {
                all.sort_unstable();
                let latency = all.first().zip(all.last()).map(|(&least, &most)| Latency {
                    least,
                    median: all[all.len() / 2],
                    most,
                });
                ChannelStats { from: name(from), to: name(to), messages, latency }
            })
            .collect();
        channels.sort_by(|a, b| {
            b.messages.cmp(&a.messages).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
        });
        Ok(channels)
    }
}

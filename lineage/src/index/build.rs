//! Writing the index of events that were put in order.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use demi_schemas::Kind;

use super::counts::Tally;
use super::header::{
    ActorEntry, BLOCK, CLOCKS, COUNTS, HEADER, INDEX_SCHEMA, INFOS, IndexHeader, LINKS, MATES, ORDERS, RUNS,
    STATES,
};
use super::info::{Info, Role};
use super::links::{Link, code};
use super::seal::IndexDigests;
use super::{Index, clocks};
use crate::error::LineageError;
use crate::matching::{Evidence, Matching, Reason};
use crate::order::Order;
use crate::read::{Events, NONE, Units, is_send};

/// The parts of the index.
pub(crate) struct Parts<'a> {
    events: &'a Events,
    matching: &'a Matching,
    units: &'a Units,
    order: &'a Order,
    linked: Vec<u32>,
}

/// A file under way.
pub(crate) struct IndexFile<'a> {
    file: BufWriter<File>,
    path: &'a Path,
    sealing: IndexDigests,
}

/// Writes a file of the index, and the file of its digests.
pub(crate) fn with_file(
    folder: &Path,
    name: &str,
    f: impl FnOnce(&mut IndexFile<'_>) -> Result<(), LineageError>,
) -> Result<(), LineageError> {
    let path = folder.join(name);
    let file = BufWriter::with_capacity(1 << 17, File::create(&path).map_err(LineageError::io(&path))?);
    let mut out = IndexFile { file, path: &path, sealing: IndexDigests::default() };
    f(&mut out)?;
    out.file.flush().map_err(LineageError::io(&path))?;
    out.sealing.finish(&path)
}

impl IndexFile<'_> {
    /// Adds bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), LineageError> {
        self.sealing.put(bytes);
        self.file.write_all(bytes).map_err(LineageError::io(self.path))
    }

    /// Adds numbers.
    pub(crate) fn put_numbers(&mut self, numbers: &[u32]) -> Result<(), LineageError> {
        for some in numbers.chunks(BLOCK as usize) {
            let bytes: Vec<u8> = some.iter().flat_map(|n| n.to_le_bytes()).collect();
            self.put(&bytes)?;
        }
        Ok(())
    }
}

impl<'a> Parts<'a> {
    /// All that was found out.
    pub(crate) fn new(
        events: &'a Events,
        matching: &'a Matching,
        units: &'a Units,
        order: &'a Order,
    ) -> Self {
        let sorted = |mut all: Vec<u32>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        let linked = sorted(matching.extra().iter().flat_map(|&(a, b)| [a, b]).collect());
        Parts { events, matching, units, order, linked }
    }

    fn is_linked(&self, e: u32) -> bool {
        !self.linked.is_empty() && self.linked.binary_search(&e).is_ok()
    }

    /// Whether the event stands outside its log's order.
    pub(crate) fn alone(&self, e: u32) -> bool {
        self.units.is_alone(self.units.unit_of(e))
    }

    /// What the event is.
    pub(crate) fn info(&self, e: u32) -> Info {
        let i = e as usize;
        let kind = self.events.kind[i];
        let role = match kind {
            _ if is_send(kind) => Role::Send,
            _ if kind.is_delivery() => Role::Delivery,
            _ => Role::Local,
        };
        let (mate, alone) = (self.matching.mates()[i], self.alone(e));
        let timer = matches!(kind, Kind::TimerSet | Kind::TimerFire);
        let info = match mate {
            NONE => Info::open(role, alone, self.matching.status[i], timer),
            _ => {
                let sent_alone = role == Role::Delivery && self.alone(mate) && !self.is_linked(mate);
                let reason = if timer { Reason::Timer } else { self.matching.reason[i] };
                Info::matched(role, alone, reason, self.matching.certain[i], sent_alone)
            }
        };
        if self.is_linked(e) { info.linked() } else { info }
    }

    /// Whether the event has an effect (`out`) or a cause in another log.
    pub(crate) fn reaches(&self, e: u32, out: bool) -> bool {
        let i = e as usize;
        let mate = self.matching.mates()[i];
        if self.alone(e) {
            return false;
        }
        let other = mate != NONE
            && is_send(self.events.kind[i]) == out
            && self.events.actor[mate as usize] != self.events.actor[i];
        other || self.is_linked(e)
    }

    /// Whether the event is a delivery that could have been joined otherwise.
    pub(crate) fn is_uncertain(&self, e: u32) -> bool {
        let i = e as usize;
        self.events.kind[i].is_delivery() && self.matching.mates()[i] != NONE && !self.matching.certain[i]
    }

    fn header(&self, runs: &[(usize, u32, u64, u32)]) -> IndexHeader {
        let events = self.events;
        let actors = (0..events.actors.len() as u32).map(|a| {
            let range = events.of_actor(a);
            let rank = |e: u32| self.order.rank[e as usize];
            ActorEntry {
                name: events.actor_name(a).to_owned(),
                first: range.start,
                first_run: runs.partition_point(|r| r.0 < a as usize) as u32,
                first_state: 0,
                appended: 0,
                first_out: range.clone().find(|&e| self.reaches(e, true)).map(rank),
                last_in: range.clone().rev().find(|&e| self.reaches(e, false)).map(rank),
            }
        });
        let all = 0..events.len() as u32;
        IndexHeader {
            schema: INDEX_SCHEMA.into(),
            events: events.len() as u32,
            actors: actors.collect(),
            runs: runs.len() as u32,
            states: 0,
            links: self.matching.extra().len() as u32,
            uncertain: all.clone().filter(|&e| self.is_uncertain(e)).count() as u64
                + further_uncertain(self.matching),
            alone: all.filter(|&e| self.alone(e)).count() as u64,
            environment: (events.environment() != NONE).then_some(events.environment()),
            stride: clocks::stride(events.len() as u32, events.actors.len()),
            sealed: true,
            digest: None,
        }
    }

    /// Runs of events whose names follow each other: actor, incarnation, sequence number, first event.
    fn runs(&self) -> Vec<(usize, u32, u64, u32)> {
        let runs = self.events.places.runs();
        runs.map(|(incarnation, seq, first)| {
            (self.events.actor[first as usize] as usize, incarnation, seq, first)
        })
        .collect()
    }
}

/// How many further edges could be otherwise.
fn further_uncertain(matching: &Matching) -> u64 {
    matching.extra_evidence().iter().filter(|Evidence { certain, .. }| !certain).count() as u64
}

/// A run as it is stored.
pub(crate) fn run_bytes(incarnation: u32, seq: u64, first: u32) -> [u8; 16] {
    let (seq, rest) = (seq.to_le_bytes(), (u64::from(incarnation) << 32 | u64::from(first)).to_le_bytes());
    std::array::from_fn(|i| if i < 8 { seq[i] } else { rest[i - 8] })
}

/// Writes the index to `folder`, which is there and empty. The states come later, with [`add_states`].
pub(crate) fn write(folder: &Path, parts: &Parts<'_>) -> Result<IndexHeader, LineageError> {
    // What is at hand is written beside what must be worked out.
    std::thread::scope(|scope| {
        let numbers = scope.spawn(|| {
            with_file(folder, MATES, |out| out.put_numbers(parts.matching.mates()))?;
            with_file(folder, ORDERS, |out| out.put_numbers(&parts.order.rank))
        });
        let infos = write_infos(folder, parts);
        numbers.join().unwrap_or(Err(LineageError::WriterGone))?;
        infos
    })?;
    with_file(folder, STATES, |_| Ok(()))?;
    let runs = parts.runs();
    with_file(folder, RUNS, |out| {
        runs.iter().try_for_each(|&(_, incarnation, seq, first)| out.put(&run_bytes(incarnation, seq, first)))
    })?;
    with_file(folder, LINKS, |out| {
        let matching = parts.matching;
        let edges = || {
            matching.extra().iter().zip(matching.extra_evidence()).map(|(&(c, e), &how)| (c, e, code(how)))
        };
        let mut causes: Vec<Link> = edges().map(|(c, e, r)| (e, c, r)).collect();
        let mut effects: Vec<Link> = edges().collect();
        causes.sort_unstable();
        effects.sort_unstable();
        causes
            .into_iter()
            .chain(effects)
            .try_for_each(|(a, b, r)| [a, b, r].iter().try_for_each(|n| out.put(&n.to_le_bytes())))
    })?;
    let mut header = parts.header(&runs);
    drop(runs);
    store(folder, &header)?;
    if header.stride == 0 {
        return Ok(header);
    }
    match clocks::make(&Index::open(folder)?, None)? {
        Some(values) => with_file(folder, CLOCKS, |out| out.put_numbers(&values))?,
        None => {
            header.stride = 0;
            store(folder, &header)?;
        }
    }
    Ok(header)
}

/// Writes what each event is, and the counts of that.
fn write_infos(folder: &Path, parts: &Parts<'_>) -> Result<(), LineageError> {
    let n = parts.events.len() as u32;
    // Both in one pass: what an event is lies far apart in memory.
    with_file(folder, INFOS, |infos| {
        with_file(folder, COUNTS, |counts| {
            let mut tally = Tally::default();
            (0..n).try_for_each(|e| {
                if e % BLOCK == 0 {
                    counts.put(&tally.bytes())?;
                }
                let (info, mate) = (parts.info(e), parts.matching.mate(e));
                infos.put(&[info.0])?;
                let outside = info.role() == Role::Send && mate != NONE && parts.events.in_environment(mate);
                tally.add(info, mate != NONE, outside);
                Ok(())
            })
        })
    })
}

/// Adds to an index that was written without states the numbers of the events that carry one, in order.
pub(crate) fn add_states(folder: &Path, mut header: IndexHeader, states: &[u32]) -> Result<(), LineageError> {
    with_file(folder, STATES, |out| out.put_numbers(states))?;
    header.states = states.len() as u32;
    for actor in &mut header.actors {
        actor.first_state = states.partition_point(|&e| e < actor.first) as u32;
    }
    store(folder, &header)
}

/// Writes the header.
pub(crate) fn store(folder: &Path, header: &IndexHeader) -> Result<(), LineageError> {
    let path = folder.join(HEADER);
    let digest = Some(header.own_digest().map_err(LineageError::table(&path))?);
    let text =
        serde_json::to_vec(&IndexHeader { digest, ..header.clone() }).map_err(LineageError::table(&path))?;
    std::fs::write(&path, text).map_err(LineageError::io(&path))
}

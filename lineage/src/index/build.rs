//! Writing the index of events that were put in order.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use demi_schemas::Kind;
use rayon::prelude::*;

use super::clocks;
use super::counts::Tally;
use super::header::{
    ActorEntry, BLOCK, CLOCKS, COUNTS, HEADER, INDEX_SCHEMA, INFOS, IndexHeader, LINKS, MATES, ORDERS, RUNS,
    STATES,
};
use super::info::{Info, Role};
use super::links::{Link, code};
use super::logs::MemoryLogs;
use super::seal::IndexDigests;
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
    /// Whether any event stands outside its log's order.
    some_alone: bool,
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
        Parts { events, matching, units, order, linked, some_alone: units.some_alone() }
    }

    fn is_linked(&self, e: u32) -> bool {
        !self.linked.is_empty() && self.linked.binary_search(&e).is_ok()
    }

    /// Whether the event stands outside its log's order.
    pub(crate) fn alone(&self, e: u32) -> bool {
        self.some_alone && self.units.is_alone(self.units.unit_of(e))
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

    fn header(&self, runs: &[(usize, u32, u64, u32)], uncertain: u64, alone: u64) -> IndexHeader {
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
        IndexHeader {
            schema: INDEX_SCHEMA.into(),
            events: events.len() as u32,
            actors: actors.collect(),
            runs: runs.len() as u32,
            states: 0,
            links: self.matching.extra().len() as u32,
            uncertain: uncertain + further_uncertain(self.matching),
            alone,
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
    let matching = parts.matching;
    let edges =
        || matching.extra().iter().zip(matching.extra_evidence()).map(|(&(c, e), &how)| (c, e, code(how)));
    let mut causes: Vec<Link> = edges().map(|(c, e, r)| (e, c, r)).collect();
    causes.sort_unstable();
    let runs = parts.runs();
    // What is at hand is written beside what must be worked out.
    std::thread::scope(|scope| {
        let numbers = scope.spawn(|| {
            with_file(folder, MATES, |out| out.put_numbers(matching.mates()))?;
            with_file(folder, ORDERS, |out| out.put_numbers(&parts.order.rank))?;
            with_file(folder, STATES, |_| Ok(()))?;
            with_file(folder, RUNS, |out| {
                runs.iter().try_for_each(|&(_, incarnation, seq, first)| {
                    out.put(&run_bytes(incarnation, seq, first))
                })
            })?;
            with_file(folder, LINKS, |out| {
                let mut effects: Vec<Link> = edges().collect();
                effects.sort_unstable();
                causes
                    .iter()
                    .chain(&effects)
                    .try_for_each(|&(a, b, r)| [a, b, r].iter().try_for_each(|n| out.put(&n.to_le_bytes())))
            })
        });
        let rest = write_rest(folder, parts, &runs, &causes);
        numbers.join().unwrap_or(Err(LineageError::WriterGone))?;
        rest
    })
}

/// Writes what each event is, the counts of that, the header and clocks.
fn write_rest(
    folder: &Path,
    parts: &Parts<'_>,
    runs: &[(usize, u32, u64, u32)],
    causes: &[Link],
) -> Result<IndexHeader, LineageError> {
    let mut infos = vec![0; parts.events.len()];
    let blocks: Vec<BlockCounts> = infos
        .par_chunks_mut(BLOCK as usize)
        .enumerate()
        .map(|(block, infos)| parts.count(block as u32 * BLOCK, infos))
        .collect();
    with_file(folder, INFOS, |out| infos.chunks(BLOCK as usize).try_for_each(|infos| out.put(infos)))?;
    let mut all = BlockCounts::default();
    with_file(folder, COUNTS, |out| {
        blocks.iter().try_for_each(|block| {
            out.put(&all.tally.bytes())?;
            all = all.plus(block);
            Ok(())
        })
    })?;
    let mut header = parts.header(runs, all.uncertain, all.alone);
    if header.stride > 0 {
        let logs = MemoryLogs {
            header: &header,
            infos: &infos,
            orders: &parts.order.rank,
            mates: parts.matching.mates(),
            actors: &parts.events.actor,
            causes,
        };
        match clocks::make_of(&logs)? {
            Some((stride, values)) => {
                header.stride = stride;
                with_file(folder, CLOCKS, |out| out.put_numbers(&values))?;
            }
            None => header.stride = 0,
        }
    }
    store(folder, &header)?;
    Ok(header)
}

/// Numbers of events of a block.
#[derive(Clone, Copy, Default)]
struct BlockCounts {
    tally: Tally,
    /// Deliveries that could have been joined otherwise.
    uncertain: u64,
    /// Those outside their log's order.
    alone: u64,
}

impl BlockCounts {
    fn plus(&self, other: &BlockCounts) -> BlockCounts {
        BlockCounts {
            tally: self.tally.plus(&other.tally),
            uncertain: self.uncertain + other.uncertain,
            alone: self.alone + other.alone,
        }
    }
}

impl Parts<'_> {
    /// Says what each event of a block is, and counts them.
    fn count(&self, first: u32, infos: &mut [u8]) -> BlockCounts {
        let mut counts = BlockCounts::default();
        let somewhere = self.events.environment() != NONE;
        for (e, place) in (first..).zip(infos) {
            let (info, mate) = (self.info(e), self.matching.mate(e));
            *place = info.0;
            let outside =
                somewhere && info.role() == Role::Send && mate != NONE && self.events.in_environment(mate);
            counts.tally.add(info, mate != NONE, outside);
            counts.uncertain += u64::from(self.is_uncertain(e));
            counts.alone += u64::from(info.is_alone());
        }
        counts
    }
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

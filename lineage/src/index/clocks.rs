//! Stored clocks: the causal past of some events, each as one number an actor.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rayon::prelude::*;

use super::header::{CLOCKS, IndexHeader};
use super::logs::{Held, MemoryLogs};
use super::pages::Pages;
use super::sweep::{Limits, Sweep};
use super::{Index, Logs};
use crate::error::LineageError;

/// Numbers of stored clocks for each event, at most: one number is four bytes.
const SHARE: f64 = 0.125;
/// An actor's events between two clocks, at least.
const STRIDE: u32 = 1024;
/// Deliveries that may be visited for each event while clocks are made; beyond it no more are made.
const WORK: u64 = 4;
/// How many times further apart clocks stand where sweeps end long before they come to one.
const FAR: u32 = 16;
/// Sweeps that are tried to know that.
const PROBES: usize = 32;
/// Clocks below which all are made rather than tried, by probe.
const FEW: usize = 8;

/// The clocks of an index.
pub(crate) struct Clocks {
    rows: Option<Pages<u32>>,
    made: RefCell<Vec<Option<Rc<[u32]>>>>,
    places: ClockPlaces,
    actors: u32,
}

/// Where clocks are in the logs.
struct ClockPlaces {
    /// By actor: the number of its first clock.
    first: Vec<u32>,
    stride: u32,
}

impl ClockPlaces {
    fn new(header: &IndexHeader, stride: u32) -> ClockPlaces {
        let mut first = vec![0];
        let mut sum = 0;
        for i in 0..header.actors.len() {
            sum += (header.events_of(i).len() as u32).checked_div(stride).unwrap_or(0);
            first.push(sum);
        }
        ClockPlaces { first, stride }
    }

    /// How many there are.
    fn count(&self) -> u32 {
        self.first.last().copied().unwrap_or(0)
    }

    /// The place of the last clock of the actor's log before `end`, whether it is there or not.
    fn before(&self, header: &IndexHeader, actor: usize, end: u32) -> Option<Stored> {
        let first = header.actors[actor].first;
        let number = end.saturating_sub(first).checked_div(self.stride).filter(|number| *number > 0)?;
        Some(Stored { end: first + number * self.stride, row: self.first[actor] + number - 1 })
    }
}

/// A stored clock: that of an actor's log before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The end of the part of the log that it is the clock of.
    end: u32,
    row: u32,
}

impl Stored {
    /// The end of the part of the log that it is the clock of.
    pub(super) fn end(self) -> u32 {
        self.end
    }
}

/// Events of an actor between two clocks, for logs of that many events and actors; 0 for no clocks.
pub(crate) fn stride(events: u32, actors: usize) -> u32 {
    let least = (actors as f64 / SHARE).ceil() as u32;
    let stride = STRIDE.max(least);
    if u64::from(stride) * actors as u64 > u64::from(events) { 0 } else { stride }
}

/// Numbers of clocks that are held in memory for many questions, at most: 64 MiB.
const MOST_NUMBERS: u64 = 16 << 20;
/// An actor's events between two of them, at least.
const DENSE: u32 = 8;
/// Events times actors up to which they are made: that many deliveries are visited for it.
const MOST_WORK: u64 = 200 << 20;

impl Clocks {
    fn new(header: &IndexHeader) -> Clocks {
        Clocks::with_stride(header, header.stride)
    }

    fn with_stride(header: &IndexHeader, stride: u32) -> Clocks {
        let made = RefCell::new(Vec::new());
        Clocks {
            rows: None,
            made,
            places: ClockPlaces::new(header, stride),
            actors: header.actors.len() as u32,
        }
    }

    /// Opens the clocks of an index.
    pub(crate) fn open(folder: &Path, header: &IndexHeader) -> Result<Clocks, LineageError> {
        let mut clocks = Clocks::new(header);
        let numbers = clocks.places.count().checked_mul(clocks.actors);
        let path: PathBuf = folder.join(CLOCKS);
        let Some(numbers) = numbers else {
            return Err(LineageError::Index { path, reason: "too many clocks".into() });
        };
        if header.stride > 0 && path.exists() {
            clocks.rows = Some(Pages::open(&path, numbers, header.sealed)?);
        }
        Ok(clocks)
    }

    /// The last clock of the actor's log before `end`.
    pub(crate) fn before(&self, header: &IndexHeader, actor: usize, end: u32) -> Option<Stored> {
        let stored = self.places.before(header, actor, end)?;
        let row = stored.row;
        let known = self.rows.is_some() || self.made.borrow().get(row as usize).is_some_and(Option::is_some);
        known.then_some(stored)
    }

    /// By actor, how many of its events are in the past.
    pub(crate) fn row(&self, stored: Stored) -> Result<Rc<[u32]>, LineageError> {
        if let Some(Some(row)) = self.made.borrow().get(stored.row as usize) {
            return Ok(row.clone());
        }
        let Some(rows) = &self.rows else { return Ok(Rc::from([])) };
        (0..self.actors).map(|i| rows.get(stored.row * self.actors + i)).collect()
    }
}

/// How far clocks stand apart in some logs, whose header says how far at most, where no clock is there yet. Where actors talk to each
/// other a sweep ends after some events of each, and needs none; what is made all the same is for those that do not.
pub(crate) fn fitting<L: Logs>(logs: &L) -> Result<u32, LineageError> {
    let header = logs.header();
    let mut places = clock_places(header, header.stride, |event| logs.order(event))?;
    if places.len() < PROBES * FEW {
        return Ok(header.stride);
    }
    places.sort_unstable();
    // A sweep that comes to a clock of each actor passes over about so many events.
    let short = u64::from(header.stride) * header.actors.len() as u64 / 2;
    // The last has most before it.
    for probe in (1..=PROBES).rev() {
        let (_, _, actor, end) = places[places.len() * probe / PROBES - 1];
        let mut sweep = Sweep::new(logs, Limits::most(short));
        sweep.add_prefix(actor, logs.chain_end(actor, end)?)?;
        sweep.run()?;
        if sweep.passed() > short {
            return Ok(header.stride);
        }
    }
    Ok(header.stride.saturating_mul(FAR))
}

/// The clocks of logs, so many events of an actor apart: place in the linear extension, number, actor, and end of the part of its log.
fn clock_places(
    header: &IndexHeader,
    stride: u32,
    order: impl Fn(u32) -> Result<u32, LineageError>,
) -> Result<Vec<(u32, u32, usize, u32)>, LineageError> {
    let clocks = ClockPlaces::new(header, stride);
    let mut places = Vec::with_capacity(clocks.count() as usize);
    for (actor, log) in header.actors.iter().enumerate() {
        for row in clocks.first[actor]..clocks.first[actor + 1] {
            let end = log.first + (row - clocks.first[actor] + 1) * stride;
            places.push((order(end - 1)?, row, actor, end));
        }
    }
    Ok(places)
}

/// An index of the same stride that the logs of another continue. Later events change no clock.
#[derive(Clone, Copy)]
pub(crate) struct GrownFrom<'a> {
    /// The index.
    index: &'a Index,
    /// By actor of it: the same actor of the other.
    actors: &'a [usize],
}

impl<'a> GrownFrom<'a> {
    /// An index, and by actor of it the same actor of the index that continues it.
    pub(crate) fn new(index: &'a Index, actors: &'a [usize]) -> GrownFrom<'a> {
        GrownFrom { index, actors }
    }
}

/// Makes the clocks of an index that has none yet, and gives their numbers; nothing where making them costs too much.
///
/// They are made in the order of the linear extension, each from those before it. Those of `grown_from` are taken over.
pub(crate) fn make(
    index: &Index,
    grown_from: Option<GrownFrom<'_>>,
) -> Result<Option<Vec<u32>>, LineageError> {
    let (header, clocks) = (&index.header, &index.clocks);
    let count = clocks.places.count();
    if count == 0 {
        return Ok(None);
    }
    *clocks.made.borrow_mut() = vec![None; count as usize];
    let mut places = Vec::new();
    let mut known = vec![0; header.actors.len()];
    for (old, actors) in grown_from.iter().map(|g| (&g.index.clocks, g.actors)) {
        for (of, &actor) in actors.iter().enumerate() {
            for row in old.places.first[of]..old.places.first[of + 1] {
                // Of an actor that is new nothing was in the past.
                let mut values = vec![0; header.actors.len()];
                let counts = old.row(Stored { end: 0, row })?;
                counts.iter().zip(actors).for_each(|(count, &place)| values[place] = *count);
                clocks.made.borrow_mut()[(clocks.places.first[actor] + known[actor]) as usize] =
                    Some(values.into());
                known[actor] += 1;
            }
        }
    }
    for (actor, known) in known.into_iter().enumerate() {
        for i in clocks.places.first[actor] + known..clocks.places.first[actor + 1] {
            let end =
                header.actors[actor].first + (i - clocks.places.first[actor] + 1) * clocks.places.stride;
            places.push((index.order(end - 1)?, i, actor, end));
        }
    }
    let effort = Effort::of(places.len(), WORK * u64::from(header.events));
    if !fill(index, places, effort)? {
        return Ok(None);
    }
    let made = clocks.made.take();
    Ok(Some(made.into_iter().flatten().flat_map(|row| row.to_vec()).collect()))
}

/// Clocks of logs in memory, as far as they were made.
pub(super) struct Made<'a> {
    places: &'a ClockPlaces,
    rows: &'a [Option<Box<[u32]>>],
    /// The clocks that were looked for and were not there.
    missed: RefCell<Vec<u32>>,
}

impl Made<'_> {
    /// The last clock of the actor's log before `end`.
    pub(super) fn before(&self, header: &IndexHeader, actor: usize, end: u32) -> Option<Stored> {
        let stored = self.places.before(header, actor, end)?;
        if self.rows[stored.row as usize].is_none() {
            self.missed.borrow_mut().push(stored.row);
            return None;
        }
        Some(stored)
    }

    /// By actor, how many of its events are in the past.
    pub(super) fn row(&self, stored: Stored) -> &[u32] {
        self.rows[stored.row as usize].as_deref().unwrap_or_default()
    }
}

/// Clocks that are made beside each other.
const BESIDE: usize = 8;

/// [`make`] of logs in memory, on all cores, and how far they stand apart. What is made, and whether, is the same as one after the other: a clock that lacked one
/// beside it is made again.
pub(super) fn make_of(logs: &MemoryLogs<'_>) -> Result<Option<(u32, Vec<u32>)>, LineageError> {
    let header = logs.header;
    let stride = fitting(&Held::without_clocks(logs))?;
    let clocks = ClockPlaces::new(header, stride);
    let count = clocks.count();
    if count == 0 {
        return Ok(None);
    }
    let mut places = clock_places(header, stride, |event| Ok(logs.orders[event as usize]))?;
    places.sort_unstable();
    let mut rows: Vec<Option<Box<[u32]>>> = vec![None; count as usize];
    // The clock, how many deliveries were visited for it, and which clocks were not there.
    let one = |rows: &[Option<Box<[u32]>>], (actor, end): (usize, u32)| {
        let held = Held { logs, made: Some(Made { places: &clocks, rows, missed: RefCell::default() }) };
        let mut sweep = Sweep::new(&held, Limits::default());
        sweep.add_prefix(actor, held.chain_end(actor, end)?)?;
        sweep.run()?;
        let ends = sweep.ends().iter().zip(&header.actors);
        let clock: Box<[u32]> = ends.map(|(end, a)| end - a.first).collect();
        let visited = sweep.visited();
        let missed = held.made.map_or_else(Vec::new, |made| made.missed.into_inner());
        Ok::<_, LineageError>((clock, visited, missed))
    };
    let mut effort = Effort::of(places.len(), WORK * u64::from(header.events));
    for beside in places.chunks(BESIDE) {
        let made: Vec<_> = beside.par_iter().map(|&(_, _, actor, end)| one(&rows, (actor, end))).collect();
        for (at, (made, &(_, row, actor, end))) in made.into_iter().zip(beside).enumerate() {
            let mut made = made?;
            if beside[..at].iter().any(|(_, before, ..)| made.2.contains(before)) {
                made = one(&rows, (actor, end))?;
            }
            if !effort.goes_on(made.1) {
                return Ok(None);
            }
            rows[row as usize] = Some(made.0);
        }
    }
    Ok(Some((stride, rows.into_iter().flatten().flat_map(Vec::from).collect())))
}

/// What clocks cost that are made, and how many there are to be.
struct Effort {
    visited: u64,
    made: u64,
    count: u64,
    most: u64,
}

/// Clocks after which it can be told what all will cost: those of the beginning cost less than the others.
const TELLING: u64 = 64;

impl Effort {
    /// So many clocks, for which so many deliveries may be visited; 0 where those are of use that were made when it ends.
    fn of(count: usize, most: u64) -> Effort {
        Effort { visited: 0, made: 0, count: count as u64, most }
    }

    /// Adds a clock for which so many deliveries were visited; says whether it is worth while to go on.
    fn goes_on(&mut self, visited: u64) -> bool {
        (self.visited, self.made) = (self.visited + visited, self.made + 1);
        let of_all = u128::from(self.visited) * u128::from(self.count) / u128::from(self.made);
        self.visited <= self.most && (self.made < TELLING || of_all <= u128::from(self.most))
    }
}

/// Makes clocks: by place in the linear extension, number, actor, and end of the part of its log. Says whether all were made with this effort.
fn fill(
    index: &Index,
    mut places: Vec<(u32, u32, usize, u32)>,
    mut effort: Effort,
) -> Result<bool, LineageError> {
    places.sort_unstable();
    for (_, row, actor, end) in places {
        let mut sweep = Sweep::new(index, Limits::default());
        sweep.add_prefix(actor, index.chain_end(actor, end)?)?;
        sweep.run()?;
        if !effort.goes_on(sweep.visited()) {
            return Ok(false);
        }
        let ends = sweep.ends().iter().zip(&index.header.actors);
        index.clocks.made.borrow_mut()[row as usize] = Some(ends.map(|(end, a)| end - a.first).collect());
    }
    Ok(true)
}

impl Index {
    /// Makes clocks in memory that are nearer to each other than the stored ones, for so many questions about pasts: then a sweep ends after a few
    /// events of each actor. Nothing where that would cost more than the questions do without them.
    pub(crate) fn prepare_for_many(&mut self, questions: u64) -> Result<(), LineageError> {
        let header = &self.header;
        let numbers = u64::from(header.events) * header.actors.len() as u64;
        let stride = DENSE.max(u32::try_from(numbers.div_ceil(MOST_NUMBERS)).unwrap_or(u32::MAX));
        if numbers > MOST_WORK || header.stride > 0 && header.stride <= 2 * stride {
            return Ok(());
        }
        // The last event has about the longest past.
        let mut sweep = Sweep::new(&*self, Limits::default());
        sweep.add(header.events.saturating_sub(1))?;
        sweep.run()?;
        if questions.saturating_mul(sweep.visited()) < 2 * numbers {
            return Ok(());
        }
        let clocks = Clocks::with_stride(header, stride);
        let places = clock_places(header, stride, |event| self.order(event))?;
        *clocks.made.borrow_mut() = vec![None; places.len()];
        self.clocks = clocks;
        // Those that were made are of use, whether all were or not.
        fill(self, places, Effort::of(0, 2 * numbers))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use demi_common::sealed::SealedFile;

    use super::*;
    use crate::generate::{Generator, Mix, write_store_file};
    use crate::index::INDEX_FOLDER;
    use crate::{BuildOptions, ViolationSpec, build};

    fn built(mix: &Mix) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("events.parquet");
        write_store_file(&file, Generator::new(mix).map(|generated| generated.record)).unwrap();
        let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
        let out = dir.path().join("exec");
        build(&[SealedFile::beside(&file).unwrap()], &options, &out, &mut |_| {}).unwrap();
        (dir, out.join(INDEX_FOLDER))
    }

    /// Logs of actors that talk to each other need few clocks, or none; those of actors that hardly do are given all. Both have the same pasts
    /// as with all clocks.
    #[test]
    fn clocks_are_made_where_sweeps_are_long() {
        let base = Mix { seed: 5, actors: 3, events: 300_000, ..Mix::default() };
        for (mix, times) in [(base.clone(), FAR), (Mix { loss: 0.9995, ..base }, 1)] {
            let (_dir, folder) = built(&mix);
            let mut index = Index::open(&folder).unwrap();
            let near = stride(index.header.events, index.header.actors.len());
            assert_eq!(index.header.stride, near * times);
            let past = |index: &Index, event: u32| {
                let mut sweep = Sweep::new(index, Limits::default());
                sweep.add(event).unwrap();
                sweep.run().unwrap();
                sweep.finish()
            };
            let events: Vec<u32> = (0..40).map(|n| n * (index.header.events / 40)).collect();
            let with: Vec<_> = events.iter().map(|&event| past(&index, event)).collect();
            index.header.stride = near;
            index.clocks = Clocks::new(&index.header);
            let values = make(&index, None).unwrap().unwrap();
            let rows = values.chunks(index.header.actors.len()).map(|row| Some(Rc::from(row)));
            *index.clocks.made.borrow_mut() = rows.collect();
            for (event, with) in events.iter().zip(with) {
                assert_eq!(past(&index, *event), with, "{event}");
            }
        }
    }

    #[test]
    fn clocks_made_beside_each_other_are_those_made_one_after_the_other() {
        let mut some = false;
        for (seed, actors, events) in [(1, 2, 9_000), (2, 5, 30_000), (3, 17, 30_000), (4, 25, 40_000)] {
            let (_dir, folder) = built(&Mix { seed, actors, events, ..Mix::default() });
            let mut index = Index::open(&folder).unwrap();
            index.header.stride = stride(index.header.events, index.header.actors.len());
            assert!(index.header.stride > 0, "too few events of {actors} actors");
            index.clocks = Clocks::new(&index.header);
            let made = make(&index, None).unwrap();
            let stored = std::fs::read(folder.join(CLOCKS)).ok();
            let bytes =
                made.map(|all| all.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
            assert!(bytes == stored, "{actors} actors");
            some |= stored.is_some();
        }
        assert!(some, "clocks are made of none");
    }
}

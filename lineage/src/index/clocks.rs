//! Stored clocks: the causal past of some events, each as one number an actor.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::header::{CLOCKS, IndexHeader};
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

/// The clocks of an index.
pub(crate) struct Clocks {
    rows: Option<Pages<u32>>,
    made: std::cell::RefCell<Vec<Option<Rc<[u32]>>>>,
    /// By actor: the number of its first clock.
    first: Vec<u32>,
    stride: u32,
    actors: u32,
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
    /// The clocks of an index, none of which is there yet.
    pub(super) fn new(header: &IndexHeader) -> Clocks {
        Clocks::with_stride(header, header.stride)
    }

    fn with_stride(header: &IndexHeader, stride: u32) -> Clocks {
        let mut first = vec![0];
        let mut sum = 0;
        for i in 0..header.actors.len() {
            let end = header.actors.get(i + 1).map_or(header.events, |a| a.first);
            sum += (end - header.actors[i].first).checked_div(stride).unwrap_or(0);
            first.push(sum);
        }
        let made = std::cell::RefCell::new(Vec::new());
        Clocks { rows: None, made, first, stride, actors: header.actors.len() as u32 }
    }

    /// Opens the clocks of an index.
    pub(crate) fn open(folder: &Path, header: &IndexHeader) -> Result<Clocks, LineageError> {
        let mut clocks = Clocks::new(header);
        let numbers = clocks.first.last().copied().unwrap_or(0).checked_mul(clocks.actors);
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
        let first = header.actors[actor].first;
        let number = end.saturating_sub(first).checked_div(self.stride)?;
        let row = (self.first[actor] + number).checked_sub(1)?;
        let known = self.rows.is_some() || self.made.borrow().get(row as usize).is_some_and(Option::is_some);
        (number > 0 && known).then_some(Stored { end: first + number * self.stride, row })
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
    index: &impl Logs,
    grown_from: Option<GrownFrom<'_>>,
) -> Result<Option<Vec<u32>>, LineageError> {
    let (header, clocks) = (index.header(), index.clocks());
    let count = clocks.first.last().copied().unwrap_or(0);
    if count == 0 {
        return Ok(None);
    }
    *clocks.made.borrow_mut() = vec![None; count as usize];
    let mut places = Vec::new();
    let mut known = vec![0; header.actors.len()];
    for (old, actors) in grown_from.iter().map(|g| (&g.index.clocks, g.actors)) {
        for (of, &actor) in actors.iter().enumerate() {
            for row in old.first[of]..old.first[of + 1] {
                // Of an actor that is new nothing was in the past.
                let mut values = vec![0; header.actors.len()];
                let counts = old.row(Stored { end: 0, row })?;
                counts.iter().zip(actors).for_each(|(count, &place)| values[place] = *count);
                clocks.made.borrow_mut()[(clocks.first[actor] + known[actor]) as usize] = Some(values.into());
                known[actor] += 1;
            }
        }
    }
    for (actor, known) in known.into_iter().enumerate() {
        for i in clocks.first[actor] + known..clocks.first[actor + 1] {
            let end = header.actors[actor].first + (i - clocks.first[actor] + 1) * clocks.stride;
            places.push((index.order(end - 1)?, i, actor, end));
        }
    }
    if !fill(index, places, WORK * u64::from(header.events))? {
        return Ok(None);
    }
    let made = clocks.made.take();
    Ok(Some(made.into_iter().flatten().flat_map(|row| row.to_vec()).collect()))
}

/// Makes clocks: by place in the linear extension, number, actor, and end of the part of its log. Says whether all were made with so many visits.
fn fill(index: &impl Logs, mut places: Vec<(u32, u32, usize, u32)>, most: u64) -> Result<bool, LineageError> {
    places.sort_unstable();
    let mut visited = 0;
    for (_, row, actor, end) in places {
        let mut sweep = Sweep::new(index, Limits::default());
        sweep.add_prefix(actor, index.chain_end(actor, end)?)?;
        sweep.run()?;
        visited += sweep.visited();
        if visited > most {
            return Ok(false);
        }
        let ends = sweep.ends().iter().zip(&index.header().actors);
        index.clocks().made.borrow_mut()[row as usize] = Some(ends.map(|(end, a)| end - a.first).collect());
    }
    Ok(true)
}

impl Index {
    /// Makes clocks in memory that are nearer to each other than the stored ones, for many questions about pasts: then a sweep ends after a few
    /// events of each actor. Nothing where that would cost more than it gains.
    pub(crate) fn prepare_for_many(&mut self) -> Result<(), LineageError> {
        let header = &self.header;
        let numbers = u64::from(header.events) * header.actors.len() as u64;
        let stride = DENSE.max(u32::try_from(numbers.div_ceil(MOST_NUMBERS)).unwrap_or(u32::MAX));
        if numbers > MOST_WORK || header.stride > 0 && header.stride <= 2 * stride {
            return Ok(());
        }
        let clocks = Clocks::with_stride(header, stride);
        let mut places = Vec::new();
        for (actor, log) in header.actors.iter().enumerate() {
            for row in clocks.first[actor]..clocks.first[actor + 1] {
                let end = log.first + (row - clocks.first[actor] + 1) * stride;
                places.push((self.order(end - 1)?, row, actor, end));
            }
        }
        *clocks.made.borrow_mut() = vec![None; places.len()];
        self.clocks = clocks;
        // Those that were made are of use, whether all were or not.
        fill(self, places, 2 * numbers)?;
        Ok(())
    }
}

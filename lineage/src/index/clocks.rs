//! Stored clocks: the causal past of some events, each as one number an actor.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Index;
use super::header::{CLOCKS, IndexHeader};
use super::pages::Pages;
use super::sweep::{Limits, Sweep};
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
    pub(crate) end: u32,
    row: u32,
}

/// Events of an actor between two clocks, for logs of that many events and actors; 0 for no clocks.
pub(crate) fn stride(events: u32, actors: usize) -> u32 {
    let least = (actors as f64 / SHARE).ceil() as u32;
    let stride = STRIDE.max(least);
    if u64::from(stride) * actors as u64 > u64::from(events) { 0 } else { stride }
}

impl Clocks {
    fn new(header: &IndexHeader) -> Clocks {
        let mut first = vec![0];
        let mut sum = 0;
        for i in 0..header.actors.len() {
            let end = header.actors.get(i + 1).map_or(header.events, |a| a.first);
            sum += (end - header.actors[i].first).checked_div(header.stride).unwrap_or(0);
            first.push(sum);
        }
        let made = std::cell::RefCell::new(Vec::new());
        Clocks { rows: None, made, first, stride: header.stride, actors: header.actors.len() as u32 }
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

/// Makes the clocks of an index that has none yet, and gives their numbers; nothing where making them costs too much.
///
/// They are made in the order of the linear extension, each from those before it. Those of `grown_from`, an index of the same actors
/// and stride that the logs of this one continue, are taken over: later events change no clock.
pub(crate) fn make(index: &Index, grown_from: Option<&Index>) -> Result<Option<Vec<u32>>, LineageError> {
    let header = &index.header;
    let clocks = &index.clocks;
    let count = clocks.first.last().copied().unwrap_or(0);
    if count == 0 {
        return Ok(None);
    }
    *clocks.made.borrow_mut() = vec![None; count as usize];
    let mut places = Vec::with_capacity(count as usize);
    for actor in 0..header.actors.len() {
        let mut known = 0;
        if let Some(old) = grown_from {
            for row in old.clocks.first[actor]..old.clocks.first[actor + 1] {
                let values = old.clocks.row(Stored { end: 0, row })?;
                clocks.made.borrow_mut()[(clocks.first[actor] + known) as usize] = Some(values);
                known += 1;
            }
        }
        for i in clocks.first[actor] + known..clocks.first[actor + 1] {
            let end = header.actors[actor].first + (i - clocks.first[actor] + 1) * header.stride;
            places.push((index.order(end - 1)?, i, actor, end));
        }
    }
    places.sort_unstable();
    let mut visited = 0;
    for (_, row, actor, end) in places {
        let mut sweep = Sweep::new(index, Limits::default());
        sweep.add_prefix(actor, index.chain_end(actor, end)?)?;
        sweep.run()?;
        visited += sweep.visited;
        if visited > WORK * u64::from(header.events) {
            return Ok(None);
        }
        let ends = sweep.ends().iter().zip(&header.actors);
        clocks.made.borrow_mut()[row as usize] = Some(ends.map(|(end, a)| end - a.first).collect());
    }
    let made = clocks.made.take();
    Ok(Some(made.into_iter().flatten().flat_map(|row| row.to_vec()).collect()))
}

impl Index {
    /// The end of the part of an actor's log before `end` with no event behind it that stands alone.
    pub(crate) fn chain_end(&self, actor: usize, end: u32) -> Result<u32, LineageError> {
        let mut end = end;
        let first = self.header.actors[actor].first;
        while end > first && self.info(end - 1)?.is_alone() {
            end -= 1;
        }
        Ok(end)
    }
}

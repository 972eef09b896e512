//! The causal past of events: a sweep backward through the linear extension.
//!
//! The past of an event is a cut, one place in each log, and what stands alone. The sweep keeps the cut found so far
//! and visits the deliveries in it from the last to the first in the linear extension. Then an actor's position is
//! final as soon as the sweep has passed it, because a send that is found later stands earlier; and the sweep ends when
//! all positions are final. Where actors talk to each other this is after about n log n deliveries for n actors,
//! however long the logs are. Where they do not, a stored clock (F. Mattern, "Virtual time and global states of
//! distributed systems", 1989) takes the place of the rest of an actor's log.

use std::collections::BinaryHeap;

use super::header::BLOCK;
use super::info::{Info, Role};
use super::{Index, Logs};
use crate::error::LineageError;
use crate::read::NONE;

/// The past of one or more events, these included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// By actor: the end of the part of its log that is in the past; events that stand alone do not count.
    pub end: Vec<u32>,
    /// Events in the past that stand alone and have explicit causes, or were asked about; sorted. Other sends that stand
    /// alone are in the past when their delivery is.
    pub alone: Vec<u32>,
}

/// Limits that may end a sweep early.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Events before this place do not matter.
    from: u32,
    /// Stop when this event is found to be in the past; it must not stand alone.
    aim: Option<u32>,
    /// Only certain edges count.
    certain: bool,
    /// Stop when more events than these were passed over.
    most: Option<u64>,
}

impl Limits {
    /// Stops when more events than these were passed over.
    pub(crate) fn most(events: u64) -> Limits {
        Limits { most: Some(events), ..Limits::default() }
    }

    /// No limit; whether only certain edges count.
    pub(crate) fn none(certain: bool) -> Limits {
        Limits { certain, ..Limits::default() }
    }

    /// Stops when `aim` is found to be in the past, or at places before its own, `from`.
    pub(crate) fn until(aim: u32, from: u32, certain: bool) -> Limits {
        Limits { from, aim: Some(aim), certain, most: None }
    }
}

/// A sweep under way.
pub(crate) struct Sweep<'a, L = Index> {
    index: &'a L,
    limits: Limits,
    /// Whether stored clocks may be used.
    clocks: bool,
    end: Vec<u32>,
    alone: Vec<u32>,
    /// By actor: the delivery that waits in the heap.
    waiting: Vec<u32>,
    heap: BinaryHeap<(u32, u32, u32)>,
    raised: Vec<(usize, u32)>,
    /// By actor, where the cut should end; what was found beyond it, and what it is before, where that is known.
    within: Vec<u32>,
    outside: Option<(u32, Option<u32>)>,
    /// Deliveries visited.
    visited: u64,
    /// Events passed over in the search for them.
    passed: u64,
}

impl<L> Sweep<'_, L> {
    /// Events passed over and deliveries visited.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Deliveries visited.
    pub(crate) fn visited(&self) -> u64 {
        self.visited
    }
}

impl<'a, L: Logs> Sweep<'a, L> {
    /// A sweep with nothing in it.
    pub(crate) fn new(index: &'a L, limits: Limits) -> Sweep<'a, L> {
        let actors = &index.header().actors;
        Sweep {
            index,
            limits,
            clocks: !limits.certain || index.header().uncertain == 0,
            end: actors.iter().map(|a| a.first).collect(),
            alone: Vec::new(),
            waiting: vec![NONE; actors.len()],
            heap: BinaryHeap::new(),
            raised: Vec::new(),
            within: Vec::new(),
            outside: None,
            visited: 0,
            passed: 0,
        }
    }

    /// Ends the sweep when the cut grows beyond these ends.
    pub(crate) fn within(&mut self, ends: &[u32]) {
        self.within = ends.to_vec();
    }

    /// The event found beyond the ends, and what it happens before, where that is known.
    pub(crate) fn outside(&self) -> Option<(u32, Option<u32>)> {
        self.outside
    }

    /// Notes that the cut is to end at `end`.
    fn raise(&mut self, actor: usize, end: u32, effect: Option<u32>) {
        if self.outside.is_none() && self.within.get(actor).is_some_and(|&w| end > w) {
            self.outside = Some((end - 1, effect));
        }
        self.raised.push((actor, end));
    }

    /// Adds an event and its past.
    pub(crate) fn add(&mut self, event: u32) -> Result<(), LineageError> {
        let info = self.index.info(event)?;
        if info.is_alone() {
            self.alone.push(event);
            self.add_causes(event, info)?;
        } else {
            self.raise(self.index.actor_of(event), event + 1, None);
        }
        self.settle()
    }

    /// Adds the part of an actor's log before `end`; the event before it must not stand alone.
    pub(crate) fn add_prefix(&mut self, actor: usize, end: u32) -> Result<(), LineageError> {
        self.raise(actor, end, None);
        self.settle()
    }

    fn add_causes(&mut self, event: u32, info: Info) -> Result<(), LineageError> {
        let (index, only_certain) = (self.index, self.limits.certain);
        let mut found = Vec::new();
        index.each_cause(event, info, |cause| {
            if cause.certain() || !only_certain {
                found.push(cause.event());
            }
            Ok(())
        })?;
        for cause in found {
            let about = index.info(cause)?;
            if !about.is_alone() {
                self.raise(index.actor_of(cause), cause + 1, Some(event));
            } else if (about.is_linked() || info.is_alone()) && !self.alone.contains(&cause) {
                self.alone.push(cause);
                self.add_causes(cause, about)?;
            }
        }
        Ok(())
    }

    /// Takes what was raised into the cut.
    fn settle(&mut self) -> Result<(), LineageError> {
        while let Some((actor, end)) = self.raised.pop() {
            if end <= self.end[actor] {
                continue;
            }
            let floor = self.end[actor];
            self.end[actor] = end;
            self.wait(actor, end, floor)?;
        }
        Ok(())
    }

    /// Finds the actor's last delivery before `below` and lets it wait for its turn, or takes a stored clock.
    fn wait(&mut self, actor: usize, below: u32, floor: u32) -> Result<(), LineageError> {
        self.waiting[actor] = NONE;
        let header = self.index.header();
        let stored = if self.clocks { self.index.clock_before(actor, below) } else { None };
        let stop = stored.map_or(header.actors[actor].first, |s| s.end());
        let found = self.delivery_before(actor, below, stop)?;
        self.passed += u64::from(below - found.map_or(stop.min(below), |(event, _)| event));
        if let Some((event, order)) = found {
            self.waiting[actor] = event;
            self.heap.push((order, actor as u32, event));
        } else if let Some(stored) = stored.filter(|s| s.end() > floor || below <= floor) {
            let row = self.index.clock(stored)?;
            for (other, &count) in row.iter().enumerate() {
                let end = header.actors[other].first.saturating_add(count);
                if end > header.events_of(other).end {
                    return Err(self.index.broken("a stored clock points beyond a log".into()));
                }
                if end > self.end[other] {
                    self.raise(other, end, None);
                }
            }
        }
        Ok(())
    }

    /// The last event in `stop..below` with causes in other logs, and its place; none that stands too early.
    fn delivery_before(
        &self,
        actor: usize,
        below: u32,
        stop: u32,
    ) -> Result<Option<(u32, u32)>, LineageError> {
        let log = self.index.header().actors[actor].first;
        let mut end = below;
        while end > stop {
            let number = (end - 1) / BLOCK;
            let block = self.index.infos_of(number)?;
            let first = number * BLOCK;
            let from = stop.max(first) - first;
            for i in (from..end - first).rev() {
                let info = Info(block[i as usize]);
                let linked = info.is_linked() && !info.is_alone();
                let message = info.role() == Role::Delivery && !info.is_alone() && !info.is_sent_alone();
                if message || linked {
                    let event = first + i;
                    let order = self.index.order(event)?;
                    if order < self.limits.from {
                        return Ok(None);
                    }
                    let mate = self.index.mate(event)?;
                    let elsewhere = mate.is_some_and(|mate| !(log..event).contains(&mate));
                    if linked || elsewhere {
                        return Ok(Some((event, order)));
                    }
                }
            }
            end = first + from;
            if end > stop && self.index.order(end)? < self.limits.from {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Runs to the end. Whether it was the aim that ended it.
    pub(crate) fn run(&mut self) -> Result<bool, LineageError> {
        let aim = self.limits.aim.map(|e| (self.index.actor_of(e), e));
        let reached = |end: &[u32]| aim.is_some_and(|(actor, event)| end[actor] > event);
        let mut check = 4 * self.end.len() as u64;
        loop {
            if reached(&self.end) {
                return Ok(true);
            }
            if self.outside.is_some() || self.limits.most.is_some_and(|most| self.passed > most) {
                return Ok(false);
            }
            let Some((order, actor, event)) = self.heap.pop() else { return Ok(false) };
            let actor = actor as usize;
            if self.waiting[actor] != event {
                continue;
            }
            if order < self.limits.from {
                return Ok(false);
            }
            self.visited += 1;
            if self.visited >= check {
                if self.is_final(order)? {
                    return Ok(false);
                }
                check += check.max(self.visited / 2);
            }
            let info = self.index.info(event)?;
            self.wait(actor, event, event)?;
            self.add_causes(event, info)?;
            self.settle()?;
        }
    }

    /// Whether nothing before this place can move the cut.
    fn is_final(&self, order: u32) -> Result<bool, LineageError> {
        for (actor, entry) in self.index.header().actors.iter().enumerate() {
            let end = self.end[actor];
            let done = match (end > entry.first, entry.first_out) {
                (true, _) => self.index.order(end - 1)? > order,
                (false, Some(first)) => first > order,
                (false, None) => true,
            };
            if !done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The cut.
    pub(crate) fn finish(mut self) -> Past {
        self.alone.sort_unstable();
        self.alone.dedup();
        Past { end: self.end, alone: self.alone }
    }

    /// The cut so far: by actor, the end of its part.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.end
    }
}

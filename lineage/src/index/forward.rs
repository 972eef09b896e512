//! The causal future of an event: a sweep forward through the linear extension, the mirror of [`super::sweep`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Index;
use super::header::BLOCK;
use super::info::{Info, Role};
use crate::error::LineageError;
use crate::read::NONE;
use rustc_hash::FxHashSet;

/// The future of one or more events, these included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Future {
    /// By actor: the first event of its log in the future, or the end of its log; events that stand alone do not count.
    start: Vec<u32>,
    /// Events met that stand alone; deliveries of that kind are in the future when their send is.
    alone: Vec<u32>,
}

impl Future {
    /// By actor: the first event of its log in the future, or the end of its log; events that stand alone do not count.
    pub(crate) fn start(&self) -> &[u32] {
        &self.start
    }

    /// Events met that stand alone; deliveries of that kind are in the future when their send is.
    pub(crate) fn alone(&self) -> &[u32] {
        &self.alone
    }
}

/// A sweep toward the future.
struct ForwardSweep<'a> {
    index: &'a Index,
    certain: bool,
    start: Vec<u32>,
    alone: FxHashSet<u32>,
    waiting: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
    lowered: Vec<(usize, u32)>,
}

impl Index {
    /// The future of one or more events, over certain edges or all.
    pub(crate) fn future_of(&self, events: &[u32], certain: bool) -> Result<Future, LineageError> {
        let actors = self.header.actors.len();
        let mut sweep = ForwardSweep {
            index: self,
            certain,
            start: (0..actors).map(|a| self.events_of(a).end).collect(),
            alone: FxHashSet::default(),
            waiting: vec![NONE; actors],
            heap: BinaryHeap::new(),
            lowered: Vec::new(),
        };
        for &event in events {
            sweep.add(event)?;
        }
        sweep.settle()?;
        sweep.run()?;
        let mut alone: Vec<u32> = sweep.alone.into_iter().collect();
        alone.sort_unstable();
        Ok(Future { start: sweep.start, alone })
    }
}

impl ForwardSweep<'_> {
    fn add(&mut self, event: u32) -> Result<(), LineageError> {
        let info = self.index.info(event)?;
        if !info.is_alone() {
            self.lowered.push((self.index.actor_of(event), event));
        } else if self.alone.insert(event) {
            self.add_effects(event, info)?;
        }
        Ok(())
    }

    fn add_effects(&mut self, event: u32, info: Info) -> Result<(), LineageError> {
        let (index, only_certain) = (self.index, self.certain);
        let mut found = Vec::new();
        index.each_effect(event, info, |effect| {
            if effect.certain() || !only_certain {
                found.push(effect.event());
            }
            Ok(())
        })?;
        found.into_iter().try_for_each(|effect| self.add(effect))
    }

    fn settle(&mut self) -> Result<(), LineageError> {
        while let Some((actor, start)) = self.lowered.pop() {
            if start < self.start[actor] {
                self.start[actor] = start;
                self.wait(actor, start)?;
            }
        }
        Ok(())
    }

    /// Finds the actor's first event from `from` on with effects elsewhere, and lets it wait for its turn.
    fn wait(&mut self, actor: usize, from: u32) -> Result<(), LineageError> {
        self.waiting[actor] = NONE;
        let log = self.index.events_of(actor);
        let mut start = from;
        while start < log.end {
            let number = start / BLOCK;
            let block = self.index.infos().block(number)?;
            let first = number * BLOCK;
            let end = log.end.min(first.saturating_add(BLOCK));
            for event in start..end {
                let info = Info(block[(event - first) as usize]);
                if info.is_alone() || !(info.is_linked() || info.role() == Role::Send) {
                    continue;
                }
                let mate = self.index.mates().get(event)?;
                let elsewhere = mate != NONE && !(event..log.end).contains(&mate);
                if info.is_linked() || elsewhere {
                    self.waiting[actor] = event;
                    self.heap.push(Reverse((self.index.order(event)?, actor as u32, event)));
                    return Ok(());
                }
            }
            start = end;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), LineageError> {
        let mut visited = 0_u64;
        let mut check = 4 * self.start.len() as u64;
        while let Some(Reverse((order, actor, event))) = self.heap.pop() {
            let actor = actor as usize;
            if self.waiting[actor] != event {
                continue;
            }
            visited += 1;
            if visited >= check {
                if self.is_final(order)? {
                    return Ok(());
                }
                check *= 2;
            }
            let info = self.index.info(event)?;
            self.wait(actor, event + 1)?;
            self.add_effects(event, info)?;
            self.settle()?;
        }
        Ok(())
    }

    /// Whether nothing from this place on can move the cut.
    fn is_final(&self, order: u32) -> Result<bool, LineageError> {
        for (actor, entry) in self.index.header.actors.iter().enumerate() {
            let (start, end) = (self.start[actor], self.index.events_of(actor).end);
            let done = match (start < end, entry.last_in) {
                (true, _) => self.index.order(start)? < order,
                (false, Some(last)) => last < order,
                (false, None) => true,
            };
            if !done {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

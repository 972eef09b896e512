//! The logs that a sweep goes through: those of an index in its files, or those of one that is being written, in memory.

use std::ops::Deref;
use std::rc::Rc;

use super::Index;
use super::clocks::{Made, Stored};
use super::header::{BLOCK, IndexHeader};
use super::info::{Info, Role};
use super::links::{self, Link};
use crate::error::LineageError;
use crate::matching::Reason;
use crate::read::NONE;

/// A direct cause of an event in another place than just before it in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExplicitCause {
    /// The event that causes.
    event: u32,
    /// How it is known.
    reason: Reason,
    /// Whether no other match is possible.
    certain: bool,
}

impl ExplicitCause {
    /// An event that causes, how that is known, and whether no other match is possible.
    pub(super) fn of(event: u32, reason: Reason, certain: bool) -> ExplicitCause {
        ExplicitCause { event, reason, certain }
    }

    /// The event that causes.
    pub(crate) fn event(&self) -> u32 {
        self.event
    }

    /// How it is known.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    /// Whether no other match is possible.
    pub(crate) fn certain(&self) -> bool {
        self.certain
    }
}

/// Logs in order.
pub(crate) trait Logs {
    /// What some events are.
    type Infos<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// A clock.
    type Clock<'a>: Deref<Target = [u32]>
    where
        Self: 'a;

    /// What there is.
    fn header(&self) -> &IndexHeader;

    /// The last clock of the actor's log before `end`.
    fn clock_before(&self, actor: usize, end: u32) -> Option<Stored>;

    /// By actor, how many of its events are in the past.
    fn clock(&self, stored: Stored) -> Result<Self::Clock<'_>, LineageError>;

    /// What the events of a block are.
    fn infos_of(&self, block: u32) -> Result<Self::Infos<'_>, LineageError>;

    /// What the event is.
    fn info(&self, event: u32) -> Result<Info, LineageError>;

    /// The place of the event in the linear extension, from 1.
    fn order(&self, event: u32) -> Result<u32, LineageError>;

    /// The other end of the event's message.
    fn mate(&self, event: u32) -> Result<Option<u32>, LineageError>;

    /// The actor of an event.
    fn actor_of(&self, event: u32) -> usize;

    /// Calls `f` with each cause of the event outside its own log's order.
    fn each_cause(
        &self,
        event: u32,
        info: Info,
        f: impl FnMut(ExplicitCause) -> Result<(), LineageError>,
    ) -> Result<(), LineageError>;

    /// An error about the logs as a whole.
    fn broken(&self, reason: String) -> LineageError;

    /// The end of the part of an actor's log before `end` with no event behind it that stands alone.
    fn chain_end(&self, actor: usize, end: u32) -> Result<u32, LineageError> {
        let mut end = end;
        let first = self.header().actors[actor].first;
        while end > first && self.info(end - 1)?.is_alone() {
            end -= 1;
        }
        Ok(end)
    }
}

impl Logs for Index {
    type Infos<'a> = Rc<[u8]>;
    type Clock<'a> = Rc<[u32]>;

    fn header(&self) -> &IndexHeader {
        &self.header
    }

    fn clock_before(&self, actor: usize, end: u32) -> Option<Stored> {
        self.clocks.before(&self.header, actor, end)
    }

    fn clock(&self, stored: Stored) -> Result<Rc<[u32]>, LineageError> {
        self.clocks.row(stored)
    }

    fn infos_of(&self, block: u32) -> Result<Rc<[u8]>, LineageError> {
        self.infos().block(block)
    }

    fn info(&self, event: u32) -> Result<Info, LineageError> {
        Index::info(self, event)
    }

    fn order(&self, event: u32) -> Result<u32, LineageError> {
        Index::order(self, event)
    }

    fn mate(&self, event: u32) -> Result<Option<u32>, LineageError> {
        Index::mate(self, event)
    }

    fn actor_of(&self, event: u32) -> usize {
        Index::actor_of(self, event)
    }

    fn each_cause(
        &self,
        event: u32,
        info: Info,
        f: impl FnMut(ExplicitCause) -> Result<(), LineageError>,
    ) -> Result<(), LineageError> {
        Index::each_cause(self, event, info, f)
    }

    fn broken(&self, reason: String) -> LineageError {
        Index::broken(self, reason)
    }
}

/// Logs in memory. All numbers of events are those of events that are there.
pub(super) struct MemoryLogs<'a> {
    pub(super) header: &'a IndexHeader,
    /// By event.
    pub(super) infos: &'a [u8],
    /// By event.
    pub(super) orders: &'a [u32],
    /// By event.
    pub(super) mates: &'a [u32],
    /// By event.
    pub(super) actors: &'a [u32],
    /// Further edges, by effect.
    pub(super) causes: &'a [Link],
}

/// Logs in memory, with the clocks that were made of them so far.
pub(super) struct Held<'a> {
    pub(super) logs: &'a MemoryLogs<'a>,
    pub(super) made: Option<Made<'a>>,
}

impl<'a> Held<'a> {
    /// Before any clock was made.
    pub(super) fn without_clocks(logs: &'a MemoryLogs<'a>) -> Held<'a> {
        Held { logs, made: None }
    }
}

impl Logs for Held<'_> {
    type Infos<'a>
        = &'a [u8]
    where
        Self: 'a;
    type Clock<'a>
        = &'a [u32]
    where
        Self: 'a;

    fn header(&self) -> &IndexHeader {
        self.logs.header
    }

    fn clock_before(&self, actor: usize, end: u32) -> Option<Stored> {
        self.made.as_ref()?.before(self.logs.header, actor, end)
    }

    fn clock(&self, stored: Stored) -> Result<&[u32], LineageError> {
        Ok(self.made.as_ref().map_or(&[], |made| made.row(stored)))
    }

    fn infos_of(&self, block: u32) -> Result<&[u8], LineageError> {
        let first = (block * BLOCK) as usize;
        Ok(&self.logs.infos[first..self.logs.infos.len().min(first + BLOCK as usize)])
    }

    fn info(&self, event: u32) -> Result<Info, LineageError> {
        Ok(Info(self.logs.infos[event as usize]))
    }

    fn order(&self, event: u32) -> Result<u32, LineageError> {
        Ok(self.logs.orders[event as usize])
    }

    fn mate(&self, event: u32) -> Result<Option<u32>, LineageError> {
        Ok(Some(self.logs.mates[event as usize]).filter(|mate| *mate != NONE))
    }

    fn actor_of(&self, event: u32) -> usize {
        self.logs.actors[event as usize] as usize
    }

    fn each_cause(
        &self,
        event: u32,
        info: Info,
        mut f: impl FnMut(ExplicitCause) -> Result<(), LineageError>,
    ) -> Result<(), LineageError> {
        if info.role() == Role::Delivery
            && let Some(cause) = self.mate(event)?
        {
            f(ExplicitCause::of(cause, info.reason(), info.is_certain()))?;
        }
        if info.is_linked() {
            for (cause, how) in links::of(self.logs.causes, event) {
                f(ExplicitCause::of(cause, how.reason, how.certain))?;
            }
        }
        Ok(())
    }

    fn broken(&self, reason: String) -> LineageError {
        LineageError::Index { path: super::header::HEADER.into(), reason }
    }
}

//! The direct edges of happens-before between logs, and the names of logs as runs: what tables of messages are made of.

use super::Query;
use crate::error::LineageError;

/// A direct edge into an event from an event elsewhere, or from one outside its log's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    cause: u32,
    effect: u32,
    certain: bool,
    message: bool,
}

impl Edge {
    /// The number of the earlier event.
    #[must_use]
    pub fn cause(&self) -> u32 {
        self.cause
    }

    /// The number of the later event.
    #[must_use]
    pub fn effect(&self) -> u32 {
        self.effect
    }

    /// Whether no other match is possible.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.certain
    }

    /// Whether a message or timer is the edge; others are told by vector clocks, parents or links.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.message
    }
}

/// A run of a log whose sequence numbers follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRun {
    incarnation: u32,
    first: u64,
    last: u64,
}

impl LogRun {
    /// The incarnation of its events.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The sequence number of its first event.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The sequence number of its last event.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }
}

impl Query {
    /// Calls `f` with each edge into the events of an actor, in the order of its log.
    ///
    /// # Errors
    /// When a file of the index cannot be read, or `f` fails.
    pub fn each_edge_into<E: From<LineageError>>(
        &self,
        actor: usize,
        mut f: impl FnMut(Edge) -> Result<(), E>,
    ) -> Result<(), E> {
        for effect in self.index.events_of(actor) {
            let info = self.index.info(effect)?;
            let mut into = Vec::new();
            self.index.each_cause(effect, info, |cause| {
                into.push(Edge {
                    cause: cause.event(),
                    effect,
                    certain: cause.certain(),
                    message: !cause.reason().is_no_message(),
                });
                Ok(())
            })?;
            into.into_iter().try_for_each(&mut f)?;
        }
        Ok(())
    }

    /// Whether an event stands outside its log's order: of the environment, or sent by a thread outside the handlers.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn stands_alone(&self, event: u32) -> Result<bool, LineageError> {
        Ok(self.index.info(event)?.is_alone())
    }

    /// The runs of an actor's log, in its order.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn runs_of_log(&self, actor: usize) -> Result<Vec<LogRun>, LineageError> {
        let runs = self.index.runs_of_log(actor)?;
        Ok(runs.into_iter().map(|(incarnation, first, last)| LogRun { incarnation, first, last }).collect())
    }
}

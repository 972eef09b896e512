//! An order of a recorded execution that the model can follow.
//!
//! Logs order what one actor does, and each send before its receive. Threads outside the actors, and memory that
//! actors share, make more order than that, which no log tells. Where logs number messages in the order of sending,
//! those numbers and the model together find an order again: no message may be sent later than it was recorded, and
//! none that was not.
//!
//! The search never goes back: at each point the heads of all logs are tried on the model, and the best of those that
//! it can follow is taken. Work is at most one tried delivery for each step and log.

mod known;
mod record;
mod search;

use demi_schemas::NetworkRule;
use demi_schemas::schedule::Schedule;

use crate::model::Model;
use crate::script::{Act, Script};
use crate::sim::Simulator;
use search::Search;

/// Steps of a schedule in an order that the model follows.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Positions in the schedule, and what was performed for each.
    pub acts: Vec<(usize, Act)>,
    /// Whether all steps could be followed; those that could not stand last, in their own order.
    pub complete: bool,
    /// How many messages the model's handlers sent that no log has.
    pub unrecorded: u64,
    /// How many copies a scheduler made that no log has: a log may have been closed, or the receiver stopped, before
    /// they were sent.
    pub withheld: u64,
    /// How many recorded messages the model did not send.
    pub lacking: u64,
    /// How many steps could not be followed.
    left: usize,
}

impl Followed {
    /// Smaller is better: the model follows more of the steps, or as many and sends less that no log has.
    fn rank(&self) -> (usize, u64, u64) {
        (self.left, self.unrecorded, self.withheld)
    }
}

/// Finds an order of the steps of a schedule lifted from logs; `None` where messages have no numbers.
/// Only schedules in which code outside the actors sends messages are looked at: for others their own order is right.
#[must_use]
pub fn follow<M: Model>(
    sim: &mut Simulator<M>,
    schedule: &Schedule,
    script: &Script,
    rule: NetworkRule,
) -> Option<Followed> {
    if !schedule.header.conformance || script.acts.len() != schedule.steps.len() {
        return None;
    }
    if !script.acts.contains(&Act::Sent) {
        return None;
    }
    let mut best: Option<Followed> = None;
    for trust in [Trust::Own, Trust::Handlers, Trust::Sparing, Trust::Least] {
        // Handlers may send more than their logs say only where no order can do without it.
        if trust.allows_more() && best.as_ref().is_some_and(|b| b.complete) {
            break;
        }
        let found = Search::new(sim, schedule, script, rule, trust)?.run();
        if found.complete && found.unrecorded + found.withheld == 0 {
            return Some(found);
        }
        if best.as_ref().is_none_or(|best| found.rank() < best.rank()) {
            best = Some(found);
        }
    }
    best
}

/// What the model's sends must agree with. The logs of a scheduler's copies may be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Handlers send what their logs say, and schedule for their own actors what their logs say, where messages differ
    /// in what logs do not show.
    Own,
    /// Handlers send what their logs say.
    Handlers,
    /// Handlers send what their logs say, and maybe more, as a mended model does; a step that sends more comes when
    /// no other is left.
    Sparing,
    /// The same, but a step that sends more comes at its time.
    Least,
}

impl Trust {
    /// Whether handlers may send more than their logs say.
    fn allows_more(self) -> bool {
        matches!(self, Trust::Sparing | Trust::Least)
    }
}

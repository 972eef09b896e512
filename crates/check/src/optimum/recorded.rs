//! The recorded external events, and which steps they and what is pending allow.

use std::collections::BTreeMap;

use demi_replay::script::{Act, Script, ScriptError};
use demi_replay::sim::MsgId;
use demi_replay::{ActorId, Model, Simulator};
use demi_schemas::Schedule;

use super::configuration::{Configuration, Id, Life};
use super::handlers::Handlers;

/// Messages from outside that were recorded as often as this are as good as without number in a short execution.
const MANY: u32 = 24;

/// A step of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Start(ActorId),
    /// A recorded fault, by its place.
    Fault(u32),
    /// A message from outside, by its place among those recorded.
    External(u32),
    /// What is pending.
    Deliver(Id),
}

/// A schedule has a step that the search does not know.
#[derive(Debug, thiserror::Error)]
pub enum Unsupported {
    /// The model cannot re-create a message from outside.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A fault other than a crash or a restart.
    #[error("the schedule has actions or faults that the search does not know")]
    Act,
}

/// What came from outside.
pub(super) struct Recorded {
    pub(super) starts: Vec<ActorId>,
    pub(super) faults: Vec<Act>,
    pub(super) messages: Vec<(ActorId, MsgId)>,
    /// For each message its place in [`Configuration::used`], and how often it was recorded, where that is not often.
    pub(super) limits: Vec<Option<(usize, u32)>>,
    /// Messages that were not recorded often.
    pub(super) few: Vec<usize>,
}

impl Recorded {
    pub(super) fn of<M: Model>(sim: &mut Simulator<M>, schedule: &Schedule) -> Result<Self, Unsupported> {
        let (script, _) = Script::compile(sim, schedule)?;
        let (mut starts, mut faults, mut counts) = (Vec::new(), Vec::new(), BTreeMap::new());
        for act in script.acts {
            match act {
                Act::Start(actor) => starts.push(actor),
                Act::Crash(_) | Act::Restart(_) => faults.push(act),
                Act::Deliver(want) => {
                    if let Some(msg) = want.external {
                        *counts.entry((want.to, msg)).or_insert(0) += 1;
                    }
                }
                Act::Inject(..) | Act::Noted(_) | Act::Sent => {}
                Act::Isolate(_) | Act::Heal(_) | Act::Stop(_) | Act::Duplicate(_) | Act::Action(_) => {
                    return Err(Unsupported::Act);
                }
            }
        }
        let messages: Vec<_> = counts.keys().copied().collect();
        let few: Vec<usize> =
            counts.values().enumerate().filter(|(_, n)| **n < MANY).map(|(at, _)| at).collect();
        let place = |at: usize| few.iter().position(|&f| f == at);
        let limits = counts.values().enumerate().map(|(at, &n)| place(at).map(|p| (p, n))).collect();
        Ok(Recorded { starts, faults, messages, limits, few })
    }

    /// The steps that are possible.
    pub(super) fn moves<M: Model>(&self, now: &Configuration, handlers: &mut Handlers<M>) -> Vec<Move> {
        let mut moves = Vec::new();
        // A late start differs from an early one only if something was lost before it.
        moves.extend(self.starts.iter().filter_map(|&actor| {
            let may = now.life(actor) == Life::Missed || now.life(actor) == Life::Absent && !now.begun;
            may.then_some(Move::Start(actor))
        }));
        for (at, act) in self.faults.iter().enumerate().skip(now.fault as usize) {
            // The first of equal ones leaves the most for later.
            if !self.faults[now.fault as usize..at].contains(act) {
                moves.push(Move::Fault(at as u32));
            }
        }
        for (at, (to, _)) in self.messages.iter().enumerate() {
            let left = self.limits[at].is_none_or(|(place, count)| u32::from(now.used[place]) < count);
            if left && now.life(*to) == Life::Running {
                moves.push(Move::External(at as u32));
            }
        }
        moves.extend(handlers.deliverable(now).into_iter().map(Move::Deliver));
        moves
    }
}

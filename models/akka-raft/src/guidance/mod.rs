//! What leads searches for shorter executions of Raft: lower bounds and heuristics per kind of violation, smaller
//! bootstrap lists, terms as clocks, and symmetry.
//!
//! | file | what it gives | admissible |
//! | --- | --- | --- |
//! | `two_leaders.rs` | lower bound to two leaders of one term | yes |
//! | `entries.rs` | lower bounds to violations that need entries | yes |
//! | `heuristic_*.rs` | heuristics for three of these, where the bounds say little | no |
//! | `symmetry.rs` | members in each other's places | – |
//!
//! Bounds and heuristics speak of executions without faults. Each file says how it is tested.

mod entries;
mod heuristic_failing;
mod heuristic_lacking;
mod heuristic_unmatched;
mod scene;
mod symmetry;
mod two_leaders;

use std::sync::Arc;

use serde_json::json;

use self::entries::Count;
use self::scene::{FAR, Scene};
use super::AkkaRaft;
use super::message::Msg;
use super::state::{self, Member, Role};
use demi_replay::model::{Distance, Estimate, Guidance, Smaller, View, Waiting};
use demi_replay::names::{ActorId, Names};

/// Sets of members are numbers with a bit for each.
const MOST_MEMBERS: usize = 64;

/// A violation to come to.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Two leaders of one term.
    TwoLeaders(ActorId, ActorId),
    /// Two logs that do not match, made of so many different entries at least.
    Logs(ActorId, ActorId, usize),
    /// A leader that lacks a committed entry.
    Lacking(ActorId),
    /// A leader that fails.
    Failing(ActorId),
}

impl Goal {
    /// The goal behind a fingerprint; `None` where nothing is known of that violation.
    fn of(fingerprint: &str, names: &Names) -> Option<Goal> {
        let mut parts = fingerprint.split(':');
        let (kind, first) = (parts.next()?, names.find(parts.next()?)?);
        let mut second = || names.find(parts.next()?);
        Some(match kind {
            "ElectionSafety" => Goal::TwoLeaders(first, second()?),
            // A shared entry behind the end of the shorter log: the same entry may stand there twice.
            "LogMatchNotLongEnough" => Goal::Logs(first, second()?, 1),
            "LogMatch" => Goal::Logs(first, second()?, 2),
            "LeaderCompleteness" => Goal::Lacking(first),
            "Crash" => Goal::Failing(first),
            _ => return None,
        })
    }

    fn is_election(&self) -> bool {
        matches!(self, Goal::TwoLeaders(..))
    }
}

impl Scene<'_> {
    /// The lower bound for a goal.
    fn lower_bound(&self, goal: Goal) -> usize {
        match goal {
            Goal::TwoLeaders(a, b) => self.pair(a, b),
            Goal::Logs(a, b, different) => self.logs(a, b, different),
            Goal::Lacking(leader) => self.lacking(leader),
            // Only leaders fail, in what they do as leaders.
            Goal::Failing(member) => match self.view.state(member) {
                _ if self.view.crashed(member) => 0,
                Some(_) => self.election(member, Count::ButFor(member)) + 1,
                None => FAR,
            },
        }
    }

    /// The heuristic for a goal; its lower bound where there is none.
    fn heuristic(&self, goal: Goal) -> usize {
        match goal {
            Goal::TwoLeaders(..) => self.lower_bound(goal),
            Goal::Failing(leader) => self.heuristic_failing(leader),
            Goal::Lacking(leader) => self.heuristic_lacking(leader),
            Goal::Logs(a, b, _) => self.heuristic_unmatched(a, b),
        }
    }
}

impl AkkaRaft {
    /// The least of what `each` says of the goals.
    fn least(&self, goals: &[Goal], each: fn(&Scene<'_>, Goal) -> usize) -> Estimate<Member, Msg> {
        let (members, on, goals) = (self.members.clone(), self.config.switches, goals.to_vec());
        Box::new(move |view: &View<'_, Member>, waiting: &[Waiting<'_, Msg>]| {
            let scene = Scene { view, waiting, members: &members, on: &on };
            goals.iter().map(|goal| each(&scene, *goal)).min().unwrap_or(0)
        })
    }

    /// Whether there is a heuristic for a goal: the bound says little on the way to a leader that lacks something, and on
    /// the ways that tables take which are set up late.
    fn has_heuristic(&self, goal: &Goal) -> bool {
        let on = &self.config.switches;
        match goal {
            Goal::TwoLeaders(..) => false,
            Goal::Failing(_) => on.raft58a_late_leader_init && !on.raft58b_zero_indexed_log,
            Goal::Lacking(_) => true,
            Goal::Logs(_, _, different) => {
                *different > 1 && on.raft58a_late_leader_init && on.raft58b_zero_indexed_log
            }
        }
    }
}

impl Guidance<Member, Msg> for AkkaRaft {
    /// `None` if the target names a violation that nothing is known of, or two leaders beside something else.
    fn distance(&self, target: &[String], names: &Names) -> Option<Distance<Member, Msg>> {
        let goals = target.iter().map(|name| Goal::of(name, names)).collect::<Option<Vec<Goal>>>()?;
        let elections = goals.iter().all(Goal::is_election);
        if self.members.len() > MOST_MEMBERS || !elections && goals.iter().any(Goal::is_election) {
            return None;
        }
        let lacking = goals.iter().any(|goal| matches!(goal, Goal::Lacking(_)));
        let begins = self.config.switches.raft58a_late_leader_init || lacking;
        let sees = move |msg: &Msg| match msg {
            Msg::ChangeConfiguration { .. } | Msg::RequestConfiguration | Msg::VoteCandidate { .. } => true,
            Msg::AppendSuccessful { .. } => !elections,
            Msg::AppendEntries { entries, .. } => !elections && !entries.is_empty(),
            Msg::ElectedAsLeader => !elections && begins,
            _ => false,
        };
        let led = !elections && goals.iter().all(|goal| self.has_heuristic(goal));
        Some(Distance {
            sees: Box::new(sees),
            lower_bound: self.least(&goals, |scene, goal| scene.lower_bound(goal)),
            heuristic: led.then(|| self.least(&goals, |scene, goal| scene.heuristic(goal))),
        })
    }

    fn smaller(&self, msg: &Msg, names: &Names) -> Vec<Smaller<Msg>> {
        let Msg::ChangeConfiguration { members } = msg else { return Vec::new() };
        if members.len() < 2 {
            return Vec::new();
        }
        let without = |gone: &ActorId| {
            let left: Arc<[ActorId]> = members.iter().filter(|m| *m != gone).copied().collect();
            let listed: Vec<&str> = left.iter().map(|id| names.get(*id)).collect();
            Smaller {
                without: names.get(*gone).to_owned(),
                fields: json!({"class": "ChangeConfiguration", "members": listed}),
                msg: Msg::ChangeConfiguration { members: left },
            }
        };
        members.iter().map(without).collect()
    }

    fn clock(&self, msg: &Msg) -> Option<i64> {
        msg.term().map(i64::from)
    }

    fn actor_clock(&self, state: &Member) -> Option<i64> {
        Some(i64::from(state.term))
    }

    fn watch(&self, state: &Member) -> Option<u64> {
        let on = &self.config.invariants;
        let leader = if state.role == Role::Leader { u64::from(state.term.cast_unsigned()) + 1 } else { 0 };
        let mut watched = state::mix(0, leader);
        if on.log_match || on.leader_completeness {
            watched = state::mix(watched, state.log_digest);
        }
        if on.leader_completeness {
            watched = state::mix(watched, u64::from(state.committed.cast_unsigned()));
        }
        if on.state_machine {
            watched = state::mix(watched, state.words_digest);
        }
        Some(watched)
    }
}

//! A Raft member as early akka-raft programs implemented it, with their bugs as switches.
//!
//! With every switch off the program is repaired. Members are `raft-member-1`, `raft-member-2`, …; they know each
//! other once they get a `ChangeConfiguration` from outside.

mod bound;
mod candidate;
pub mod config;
mod follower;
mod goals;
pub mod invariants;
mod lacking;
mod leader;
pub mod message;
pub mod quorum;
mod renaming;
pub mod state;
mod step;
pub mod tables;
#[cfg(test)]
mod tests;
mod toward;
mod unmatched;

use std::sync::Arc;

use demi_schemas::event::TimerInfo;
use demi_schemas::scenario::{Mask, Scenario, ScenarioError};
use serde_json::{Value, json};

pub use self::config::Config;
pub use self::invariants::History;
pub use self::message::Msg;
pub use self::state::{Entry, Member, Role};
use self::step::Step;
use crate::model::{Bound, Ctx, ExternalMessage, Model, Proposal, Smaller, View, Violation};
use crate::names::{ActorId, Names};

/// The model. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct AkkaRaft {
    config: Arc<Config>,
    /// By name.
    members: Arc<[ActorId]>,
}

impl AkkaRaft {
    /// The model as a scenario wants it.
    ///
    /// # Errors
    /// When the scenario uses a name that the model does not know, or no sensible number of members.
    pub fn new(scenario: &Scenario, names: &mut Names) -> Result<AkkaRaft, ScenarioError> {
        let config = Config::parse(scenario)?;
        let mut members: Vec<String> = (1..=config.members).map(|n| format!("raft-member-{n}")).collect();
        // The program compares names, not numbers.
        members.sort();
        let members = members.iter().map(|name| names.id(name)).collect();
        Ok(AkkaRaft { config: Arc::new(config), members })
    }
}

impl Model for AkkaRaft {
    type State = Member;
    type Msg = Msg;
    type History = History;

    fn actors(&self) -> &[ActorId] {
        &self.members
    }

    fn initial(&self, _actor: ActorId) -> Member {
        let switches = &self.config.switches;
        Member { committed: if switches.raft58b_zero_indexed_log { -1 } else { 0 }, ..Member::default() }
    }

    fn deliver(&self, state: &mut Member, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        Step { on: &self.config.switches, m: state, ctx }.run(msg);
    }

    fn restarts_by_itself(&self) -> bool {
        self.config.switches.raft62_restart
    }

    fn type_name(&self, msg: &Msg) -> &'static str {
        msg.type_name()
    }

    fn payload(&self, msg: &Msg, names: &Names) -> String {
        msg.payload(&self.config, names)
    }

    fn timer_info(&self, msg: &Msg) -> TimerInfo {
        msg.timer_info()
    }

    fn masks(&self) -> Vec<Mask> {
        let without_generation = |type_: &str| Mask {
            type_: Some(type_.to_owned()),
            pattern: r",\d+\)$".to_owned(),
            replace: ")".to_owned(),
        };
        vec![without_generation("ElectionTimeout"), without_generation("SendHeartbeat")]
    }

    fn clock(&self, msg: &Msg) -> Option<i64> {
        msg.term().map(i64::from)
    }

    fn actor_clock(&self, state: &Member) -> Option<i64> {
        Some(i64::from(state.term))
    }

    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Msg, String> {
        Msg::external(message, &self.members, names)
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

    fn check(&self, view: &View<'_, Self>, history: &mut History, found: &mut Vec<Violation>) {
        let mut seen = Vec::with_capacity(self.members.len());
        for &id in self.members.iter() {
            if let Some(member) = view.state(id) {
                seen.push((id, member));
            } else if view.crashed(id) {
                invariants::report(format!("Crash:{}", view.names.get(id)), &[id], found);
            }
        }
        invariants::check(&self.config, view.names, &seen, history, found);
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

    fn bound(&self, target: &[String], names: &Names) -> Option<Bound<Self>> {
        goals::bound(self, target, names)
    }

    fn renamed(&self, state: &Member, to: &dyn Fn(ActorId) -> ActorId) -> Option<Member> {
        renaming::member(self, state, to)
    }

    fn renamed_message(&self, msg: &Msg, to: &dyn Fn(ActorId) -> ActorId) -> Option<Msg> {
        Some(renaming::message(self, msg, to))
    }

    fn describe(&self, state: &Member, names: &Names) -> Value {
        let table = |table: &tables::Table| -> Value {
            table.iter().map(|(id, index)| (names.get(id).to_owned(), json!(index))).collect()
        };
        let votes: Value =
            state.votes.iter().map(|(term, id)| (term.to_string(), json!(names.get(*id)))).collect();
        let log = state.log.iter().map(|e| format!("{}:AppendWord({})@Term({})", e.index, e.word, e.term));
        json!({
            "role": state.role.name(),
            "term": state.term,
            "votes": votes,
            "tally": {
                "count": state.tally.count,
                "voters": state.tally.voters.iter().map(|id| names.get(*id)).collect::<Vec<_>>(),
            },
            "log": log.collect::<Vec<_>>(),
            "committed": state.committed,
            "next": table(&state.next),
            "match": table(&state.matched),
            "words": state.words,
            "config": state.config.len(),
        })
    }

    fn bootstrap(&self, names: &Names) -> Vec<Proposal<Msg>> {
        let listed: Vec<&str> = self.members.iter().map(|id| names.get(*id)).collect();
        let propose = |to: &ActorId| Proposal {
            to: *to,
            msg: Msg::ChangeConfiguration { members: self.members.clone() },
            fields: json!({"class": "ChangeConfiguration", "members": listed}),
        };
        self.members.iter().map(propose).collect()
    }

    fn client_message(&self, n: u64, choice: u64, _names: &Names) -> Option<Proposal<Msg>> {
        let word = n + 1;
        let to = self.members[(choice % self.members.len() as u64) as usize];
        let fields = json!({"class": "ClientMessage", "command": "AppendWord", "word": word.to_string()});
        Some(Proposal { to, msg: Msg::ClientMessage { word }, fields })
    }

    fn condition(&self, name: &str, view: &View<'_, Self>) -> Result<bool, String> {
        match name {
            "leader" => Ok(self
                .members
                .iter()
                .any(|id| view.state(*id).is_some_and(|member| member.role == Role::Leader))),
            _ => Err(format!("the model knows no condition '{name}', only 'leader'")),
        }
    }
}

//! A Raft member as early akka-raft programs implemented it, with their bugs as switches.
//!
//! With every switch off the program is repaired. Members are `raft-member-1`, `raft-member-2`, …; they know each
//! other once they get a `ChangeConfiguration` from outside.

mod candidate;
pub mod config;
mod follower;
mod guidance;
pub mod invariants;
mod leader;
pub mod message;
pub mod quorum;
pub mod state;
mod step;
pub mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use demi_schemas::event::TimerInfo;
use demi_schemas::scenario::{Mask, Scenario, ScenarioError};
use serde_json::{Value, json};

pub use self::config::Config;
pub use self::invariants::History;
pub use self::message::Msg;
pub use self::state::{Entry, Member, Role};
use self::step::Step;
use demi_replay::model::{
    Ctx, ExternalMessage, Guidance, Logs, Model, Proposal, Runtime, Symmetry, View, Violation, Workload,
};
use demi_replay::names::{ActorId, Names};

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

    fn check(&self, view: &View<'_, Member>, history: &mut History, found: &mut Vec<Violation>) {
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

    fn logs(&self) -> &dyn Logs<Member, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<Member, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<Member, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<Member, Msg> {
        self
    }

    fn symmetry(&self) -> Option<&dyn Symmetry<Member, Msg>> {
        Some(self)
    }
}

impl Logs<Member, Msg> for AkkaRaft {
    fn type_name(&self, msg: &Msg) -> String {
        msg.type_name().to_owned()
    }

    fn payload(&self, msg: &Msg, names: &Names) -> String {
        msg.payload(&self.config, names)
    }

    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Msg, String> {
        Msg::external(message, &self.members, names)
    }

    fn masks(&self) -> Vec<Mask> {
        let without_generation = |type_: &str| Mask {
            type_: Some(type_.to_owned()),
            pattern: r",\d+\)$".to_owned(),
            replace: ")".to_owned(),
        };
        vec![without_generation("ElectionTimeout"), without_generation("SendHeartbeat")]
    }

    fn read_of_timer(&self, msg: &Msg) -> Option<String> {
        msg.read_of_timer()
    }

    fn timer_info(&self, msg: &Msg) -> TimerInfo {
        msg.timer_info()
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
}

impl Runtime<Member, Msg> for AkkaRaft {
    fn restarts_by_itself(&self) -> bool {
        self.config.switches.raft62_restart
    }
}

impl Workload<Member, Msg> for AkkaRaft {
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

    fn condition(&self, name: &str, view: &View<'_, Member>) -> Result<bool, String> {
        match name {
            "leader" => Ok(self
                .members
                .iter()
                .any(|id| view.state(*id).is_some_and(|member| member.role == Role::Leader))),
            _ => Err(format!("the model knows no condition '{name}', only 'leader'")),
        }
    }
}

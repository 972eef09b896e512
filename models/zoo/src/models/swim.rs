//! Gossip membership after SWIM: three members ping each other, suspect who does not answer, and tell of what they think;
//! who is suspected answers with a higher incarnation.
//!
//! Bug `dead_keeps_incarnation`: who already counts as dead does not take up stronger evidence of its death, so an "alive"
//! that is older than that evidence brings it back. Source: al8n/memberlist, pull request 197 (the same in
//! hashicorp/memberlist).

use std::collections::BTreeMap;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Health {
    Alive,
    Suspect,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: a member gets no answer from another; its suspicion of another lasted too long.
    Silent(usize),
    GiveUp(usize),
    /// What the sender thinks of a member, and of which of its incarnations.
    Gossip(usize, Health, u32),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The own incarnation, and what is thought of the others.
    incarnation: u32,
    members: BTreeMap<usize, (Health, u32)>,
    /// The highest incarnation of each member whose death was told of, and whether an older one came back.
    buried: BTreeMap<usize, u32>,
    risen: bool,
}

#[derive(Clone)]
pub struct Swim {
    members: Vec<ActorId>,
    keeps: bool,
}

impl Swim {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Swim { members: group(names, "member", 3), keeps: on(scenario, "dead_keeps_incarnation") }
    }

    fn tell(&self, member: usize, health: Health, incarnation: u32, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        for &to in self.members.iter().filter(|&&m| m != me) {
            ctx.send(to, Msg::Gossip(member, health, incarnation));
        }
    }

    /// Takes up what is told of another member; tells it on if it is new.
    fn hear(&self, state: &mut State, member: usize, (health, told): (Health, u32), ctx: &mut Ctx<'_, Msg>) {
        let (now, known) = state.members.get(&member).copied().unwrap_or((Health::Alive, 0));
        if health == Health::Dead {
            let buried = state.buried.entry(member).or_insert(told);
            *buried = (*buried).max(told);
        }
        let newer = match (health, now) {
            (Health::Alive, _) => told > known,
            (Health::Suspect, Health::Alive) => told >= known,
            (Health::Suspect, Health::Suspect) => told > known,
            (Health::Dead, Health::Alive | Health::Suspect) => told >= known,
            (_, Health::Dead) => {
                // Nothing changes, but the evidence counts.
                if told > known && !self.keeps {
                    state.members.insert(member, (Health::Dead, told));
                }
                false
            }
        };
        if newer {
            state.risen |= health == Health::Alive && state.buried.get(&member).is_some_and(|&b| b >= told);
            state.members.insert(member, (health, told));
            self.tell(member, health, told, ctx);
        }
    }
}

impl Model for Swim {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.members
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = self.members.iter().position(|&m| m == ctx.me()).unwrap_or(0);
        match *msg {
            Msg::Silent(member) | Msg::GiveUp(member) if member == me => {}
            Msg::Silent(member) => {
                let (health, incarnation) = state.members.get(&member).copied().unwrap_or((Health::Alive, 0));
                if health == Health::Alive {
                    self.hear(state, member, (Health::Suspect, incarnation), ctx);
                }
            }
            Msg::GiveUp(member) => {
                if let Some(&(Health::Suspect, incarnation)) = state.members.get(&member) {
                    self.hear(state, member, (Health::Dead, incarnation), ctx);
                }
            }
            Msg::Gossip(member, health, incarnation) if member == me => {
                if health != Health::Alive && incarnation >= state.incarnation {
                    state.incarnation = incarnation + 1;
                    self.tell(me, Health::Alive, state.incarnation, ctx);
                }
            }
            Msg::Gossip(member, health, incarnation) => self.hear(state, member, (health, incarnation), ctx),
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let risen = |m: &ActorId| view.state(*m).is_some_and(|s| s.risen);
        let affected: Vec<ActorId> = self.members.iter().copied().filter(risen).collect();
        if !affected.is_empty() {
            found.push(Violation { fingerprint: "Resurrection".into(), affected });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Swim {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Silent(_) => "Silent",
            Msg::GiveUp(_) => "GiveUp",
            Msg::Gossip(..) => "Gossip",
        };
        name.to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }
}

impl Workload<State, Msg> for Swim {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let (at, of) = ((choice % 3) as usize, (choice / 3 % 3) as usize);
        let msg = if (choice / 9).is_multiple_of(3) { Msg::GiveUp(of) } else { Msg::Silent(of) };
        Some(Proposal { to: self.members[at], msg, fields: Value::Null })
    }
}

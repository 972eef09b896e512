//! Multi-Paxos on three servers, each proposer, acceptor and learner; many instances, one after the other.
//!
//! Bug `stale_promises`: a proposer counts a promise that answers an older ballot of its own, so that what was accepted
//! since is not seen. Source: luohaha/MyPaxos, issue 18 (stale `PrepareResponse` counted toward a quorum).

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

/// A round and the place of its proposer.
type Ballot = (u32, usize);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// A client wants something chosen.
    Propose,
    Prepare { slot: u32, ballot: Ballot },
    Promise { slot: u32, ballot: Ballot, accepted: Option<(Ballot, usize)> },
    Accept { slot: u32, ballot: Ballot, value: usize },
    Accepted { slot: u32, ballot: Ballot },
    Learn { slot: u32, value: usize },
    Retry,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    promised: BTreeMap<u32, Ballot>,
    accepted: BTreeMap<u32, (Ballot, usize)>,
    learned: BTreeMap<u32, usize>,
    /// Client requests that wait.
    waiting: u32,
    /// What is being proposed.
    open: Option<Round>,
    /// The highest round seen.
    round: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    slot: u32,
    ballot: Ballot,
    promises: BTreeSet<usize>,
    best: Option<(Ballot, usize)>,
    value: Option<usize>,
    accepts: BTreeSet<usize>,
}

#[derive(Clone)]
pub struct Paxos {
    servers: Vec<ActorId>,
    stale_promises: bool,
}

impl Paxos {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Paxos { servers: group(names, "server", 3), stale_promises: on(scenario, "stale_promises") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.servers.iter().position(|&s| s == actor).unwrap_or(0)
    }

    fn others(&self, me: ActorId) -> impl Iterator<Item = ActorId> + '_ {
        self.servers.iter().copied().filter(move |&s| s != me)
    }

    /// Begins a round with a new ballot for the first instance that is not known to be decided.
    fn begin(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.waiting == 0 {
            state.open = None;
            return ctx.cancel_timer("retry");
        }
        let me = self.place(ctx.me());
        let slot = (1..).find(|s| !state.learned.contains_key(s)).unwrap_or(0);
        state.round += 1;
        let ballot = (state.round, me);
        state.promised.insert(slot, ballot);
        let best = state.accepted.get(&slot).copied();
        let (promises, accepts) = ([me].into(), BTreeSet::new());
        state.open = Some(Round { slot, ballot, promises, best, value: None, accepts });
        for to in self.others(ctx.me()) {
            ctx.send(to, Msg::Prepare { slot, ballot });
        }
        ctx.set_timer("retry", Msg::Retry);
    }

    fn learn(&self, state: &mut State, slot: u32, value: usize, ctx: &mut Ctx<'_, Msg>) {
        state.learned.entry(slot).or_insert(value);
        if state.open.as_ref().is_some_and(|r| r.slot == slot) {
            if value == self.place(ctx.me()) {
                state.waiting -= 1;
            }
            self.begin(state, ctx);
        }
    }
}

impl Model for Paxos {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.servers
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let (me, from) = (self.place(ctx.me()), self.place(ctx.sender()));
        match *msg {
            Msg::Propose => {
                state.waiting += 1;
                if state.open.is_none() {
                    self.begin(state, ctx);
                }
            }
            Msg::Retry => self.begin(state, ctx),
            Msg::Prepare { slot, ballot } => {
                state.round = state.round.max(ballot.0);
                if state.promised.get(&slot).is_none_or(|&p| ballot > p) {
                    state.promised.insert(slot, ballot);
                    let accepted = state.accepted.get(&slot).copied();
                    ctx.send(ctx.sender(), Msg::Promise { slot, ballot, accepted });
                }
            }
            Msg::Promise { slot, ballot, accepted } => {
                let Some(round) = state.open.as_mut().filter(|r| r.slot == slot && r.value.is_none()) else {
                    return;
                };
                if ballot != round.ballot && !self.stale_promises {
                    return;
                }
                round.promises.insert(from);
                round.best = round.best.max(accepted);
                if round.promises.len() < 2 || state.promised.get(&slot) != Some(&round.ballot) {
                    return;
                }
                let (ballot, value) = (round.ballot, round.best.map_or(me, |b| b.1));
                round.value = Some(value);
                round.accepts.insert(me);
                state.accepted.insert(slot, (ballot, value));
                for to in self.others(ctx.me()) {
                    ctx.send(to, Msg::Accept { slot, ballot, value });
                }
            }
            Msg::Accept { slot, ballot, value } => {
                state.round = state.round.max(ballot.0);
                if state.promised.get(&slot).is_none_or(|&p| ballot >= p) {
                    state.promised.insert(slot, ballot);
                    state.accepted.insert(slot, (ballot, value));
                    ctx.send(ctx.sender(), Msg::Accepted { slot, ballot });
                }
            }
            Msg::Accepted { slot, ballot } => {
                let Some(round) = state.open.as_mut().filter(|r| r.slot == slot && r.ballot == ballot) else {
                    return;
                };
                round.accepts.insert(from);
                if let Some(value) = round.value.filter(|_| round.accepts.len() == 2) {
                    for to in self.others(ctx.me()) {
                        ctx.send(to, Msg::Learn { slot, value });
                    }
                    self.learn(state, slot, value, ctx);
                }
            }
            Msg::Learn { slot, value } => self.learn(state, slot, value, ctx),
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let known: Vec<_> =
            self.servers.iter().filter_map(|&s| Some((s, &view.state(s)?.learned))).collect();
        for (at, (a, one)) in known.iter().enumerate() {
            for (b, other) in &known[at + 1..] {
                if one.iter().any(|(slot, v)| other.get(slot).is_some_and(|w| w != v)) {
                    found.push(Violation { fingerprint: "Agreement".into(), affected: vec![*a, *b] });
                    return;
                }
            }
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Paxos {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Propose => "Propose",
            Msg::Prepare { .. } => "Prepare",
            Msg::Promise { .. } => "Promise",
            Msg::Accept { .. } => "Accept",
            Msg::Accepted { .. } => "Accepted",
            Msg::Learn { .. } => "Learn",
            Msg::Retry => "Retry",
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

impl Workload<State, Msg> for Paxos {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let to = self.servers[choice as usize % self.servers.len()];
        Some(Proposal { to, msg: Msg::Propose, fields: Value::Null })
    }
}

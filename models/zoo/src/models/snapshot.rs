//! Snapshots of a bank: three nodes send each other money over channels without order, and any may begin a snapshot.
//!
//! Bug `plain_markers`: the algorithm of Chandy and Lamport, whose markers must not be overtaken, is used on channels that
//! keep no order. Source: Lai and Yang, "On distributed snapshots", Information Processing Letters 25, 1987. The repaired
//! protocol is theirs: messages carry the snapshot they were sent after, and nodes record what went over each channel.

use std::collections::BTreeMap;

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

/// What each node begins with.
const MONEY: i64 = 10;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: pay the node of this place; begin a snapshot.
    Pay(usize),
    Snapshot,
    /// Money, and the number of the last snapshot that the sender had recorded.
    Money(i64, u32),
    Marker(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    balance: i64,
    /// What went to and came from each other node, so far.
    sent: [i64; 3],
    received: [i64; 3],
    /// The last snapshot that was recorded here.
    snapshot: u32,
    recorded: Recorded,
}

/// What a node recorded for its last snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Recorded {
    balance: i64,
    sent: [i64; 3],
    received: [i64; 3],
    /// What was on its way, by sender, and whose markers have come.
    channels: BTreeMap<usize, i64>,
    markers: [bool; 3],
}

#[derive(Clone)]
pub struct Snapshot {
    nodes: Vec<ActorId>,
    plain_markers: bool,
}

impl Snapshot {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Snapshot { nodes: group(names, "node", 3), plain_markers: on(scenario, "plain_markers") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.nodes.iter().position(|&n| n == actor).unwrap_or(0)
    }

    fn record(&self, state: &mut State, snapshot: u32, ctx: &mut Ctx<'_, Msg>) {
        if snapshot <= state.snapshot {
            return;
        }
        state.snapshot = snapshot;
        let (balance, sent, received) = (state.balance, state.sent, state.received);
        state.recorded = Recorded { balance, sent, received, ..Recorded::default() };
        let me = ctx.me();
        for &to in self.nodes.iter().filter(|&&n| n != me) {
            ctx.send(to, Msg::Marker(snapshot));
        }
    }

    /// The money in the snapshot of these states, if it is complete.
    fn total(&self, states: &[&State]) -> Option<i64> {
        let same = states.iter().all(|s| s.snapshot == states[0].snapshot && s.snapshot > 0);
        if states.len() < 3 || !same {
            return None;
        }
        let recorded: Vec<&Recorded> = states.iter().map(|s| &s.recorded).collect();
        let balances: i64 = recorded.iter().map(|r| r.balance).sum();
        if self.plain_markers {
            let complete = |(at, r): (usize, &&Recorded)| (0..3).all(|from| from == at || r.markers[from]);
            let channels: i64 = recorded.iter().flat_map(|r| r.channels.values()).sum();
            return recorded.iter().enumerate().all(complete).then_some(balances + channels);
        }
        let sent: i64 = recorded.iter().flat_map(|r| r.sent).sum();
        let received: i64 = recorded.iter().flat_map(|r| r.received).sum();
        Some(balances + sent - received)
    }
}

impl Model for Snapshot {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.nodes
    }

    fn initial(&self, _: ActorId) -> State {
        State { balance: MONEY, sent: [0; 3], received: [0; 3], snapshot: 0, recorded: Recorded::default() }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let from = self.place(ctx.sender());
        match *msg {
            Msg::Pay(to) => {
                if state.balance > 0 && self.nodes[to] != ctx.me() {
                    state.balance -= 1;
                    state.sent[to] += 1;
                    ctx.send(self.nodes[to], Msg::Money(1, state.snapshot));
                }
            }
            Msg::Snapshot => self.record(state, state.snapshot + 1, ctx),
            Msg::Marker(snapshot) => {
                self.record(state, snapshot, ctx);
                if snapshot == state.snapshot {
                    state.recorded.markers[from] = true;
                }
            }
            Msg::Money(amount, snapshot) => {
                if !self.plain_markers {
                    self.record(state, snapshot, ctx);
                } else if state.snapshot > 0 && !state.recorded.markers[from] {
                    *state.recorded.channels.entry(from).or_insert(0) += amount;
                }
                state.balance += amount;
                state.received[from] += amount;
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let states: Vec<&State> = self.nodes.iter().filter_map(|&n| view.state(n)).collect();
        if self.total(&states).is_some_and(|total| total != 3 * MONEY) {
            found.push(Violation { fingerprint: "MoneyInSnapshot".into(), affected: self.nodes.clone() });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Snapshot {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Pay(_) => "Pay",
            Msg::Snapshot => "Snapshot",
            Msg::Money(..) => "Money",
            Msg::Marker(_) => "Marker",
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

impl Workload<State, Msg> for Snapshot {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let at = (choice % 3) as usize;
        let msg = match choice / 3 % 40 {
            0 => Msg::Snapshot,
            n => Msg::Pay((at + 1 + (n % 2) as usize) % 3),
        };
        Some(Proposal { to: self.nodes[at], msg, fields: Value::Null })
    }
}

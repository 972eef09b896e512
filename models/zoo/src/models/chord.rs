//! Ring maintenance of Chord with successor lists of two: six identifiers in a circle, three permanent members, and three
//! nodes that join, fail and join again.
//!
//! Bug `original`: the operations as first published. A node is a member as soon as it knows a successor; a member adopts its
//! successor's predecessor without asking it, and leaves the rest of its list as it was until it asks the next time. Where
//! those that joined then fail, the old second successors take over, and the ring has lost its order or falls apart, though no
//! member ever lost all its successors. Source: Zave, "Using Lightweight Modeling to Understand Chord", ACM CCR 42(2), 2012.
//! The repaired operations follow Zave, "Reasoning about Identifier Spaces: How to Make Chord Correct", IEEE TSE 43(12), 2017:
//! who is adopted is asked first, and its list comes with it.
//!
//! Both papers assume that failures are noticed reliably. Here a failed node starts again without anything, and whoever asks
//! it is told that it is no member.

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

const NODES: usize = 6;
/// Every other node is a permanent member: one more than a list has entries.
const BASE: [usize; 3] = [0, 2, 4];
/// Entries of a successor list.
const ENTRIES: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: become a member.
    Join,
    /// Which member has this place between itself and its successor; the successor.
    Lookup(usize),
    Found(usize),
    /// Are you a member? A member answers with its successors and its predecessor.
    Ask,
    Member(Vec<usize>, Option<usize>),
    NoMember,
    /// The sender may be the receiver's predecessor.
    Notify,
    Stabilize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    joining: bool,
    member: bool,
    successors: Vec<usize>,
    predecessor: Option<usize>,
    /// Whose answer the node waits for before it goes on.
    asked: Option<usize>,
}

#[derive(Clone)]
pub struct Chord {
    nodes: Vec<ActorId>,
    original: bool,
}

/// Whether one goes by `place` on the way round from `from` to `to`.
fn between(from: usize, place: usize, to: usize) -> bool {
    let way = |p: usize| (p + NODES - from) % NODES;
    way(place) > 0 && (way(place) < way(to) || from == to)
}

/// A successor and its own list make a list.
fn list(first: usize, rest: &[usize]) -> Vec<usize> {
    std::iter::once(first).chain(rest.iter().copied()).take(ENTRIES).collect()
}

impl Chord {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        Chord { nodes: group(names, "node", NODES), original: on(scenario, "original") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.nodes.iter().position(|&n| n == actor).unwrap_or(0)
    }

    fn ask(&self, state: &mut State, node: usize, ctx: &mut Ctx<'_, Msg>) {
        state.asked = Some(node);
        ctx.send(self.nodes[node], Msg::Ask);
    }

    /// A round of stabilization ends: the successor hears of this node.
    fn settle(&self, state: &State, ctx: &mut Ctx<'_, Msg>) {
        if let Some(&successor) = state.successors.first() {
            ctx.send(self.nodes[successor], Msg::Notify);
            ctx.set_timer("stabilize", Msg::Stabilize);
        }
    }

    /// The node that was asked is a member.
    fn answered(
        &self,
        state: &mut State,
        from: usize,
        theirs: (&[usize], Option<usize>),
        ctx: &mut Ctx<'_, Msg>,
    ) {
        let me = self.place(ctx.me());
        state.asked = None;
        let first = state.successors.first().copied();
        if first.is_none_or(|f| f == from || between(me, from, f)) {
            // In the original only what is a successor already is asked.
            let closer = theirs.1.filter(|&p| between(me, p, from));
            (state.joining, state.member) = (false, true);
            match (closer, state.successors.first_mut()) {
                (Some(closer), Some(first)) if self.original => *first = closer,
                _ => state.successors = list(from, theirs.0),
            }
            if let Some(closer) = closer.filter(|_| !self.original && first == Some(from)) {
                return self.ask(state, closer, ctx);
            }
        }
        self.settle(state, ctx);
    }

    /// A node is no member, or no longer.
    fn gone(&self, state: &mut State, node: usize, ctx: &mut Ctx<'_, Msg>) {
        state.successors.retain(|&s| s != node);
        state.predecessor = state.predecessor.filter(|&p| p != node);
        if state.asked == Some(node) {
            (state.asked, state.joining) = (None, false);
            self.settle(state, ctx);
        }
    }

    /// Who is next on the ring, for each member; nothing where the papers assume that this does not happen: a permanent
    /// member is missing, or a member has no successor left.
    fn ring(&self, view: &View<'_, State>) -> Option<[Option<usize>; NODES]> {
        let state = |node: usize| view.state(self.nodes[node]).filter(|s| s.member);
        let mut next = [None; NODES];
        for (node, next) in next.iter_mut().enumerate() {
            match state(node) {
                Some(s) => *next = Some(s.successors.iter().copied().find(|&s| state(s).is_some())?),
                None if BASE.contains(&node) => return None,
                None => {}
            }
        }
        Some(next)
    }
}

impl Model for Chord {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.nodes
    }

    fn initial(&self, actor: ActorId) -> State {
        let Some(at) = BASE.iter().position(|&b| b == self.place(actor)) else { return State::default() };
        let base = |steps: usize| BASE[(at + steps) % BASE.len()];
        let successors = (1..=ENTRIES).map(base).collect();
        State { member: true, successors, predecessor: Some(base(BASE.len() - 1)), ..State::default() }
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.member {
            ctx.set_timer("stabilize", Msg::Stabilize);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let (me, from) = (self.place(ctx.me()), self.place(ctx.sender()));
        let first = state.successors.first().copied();
        match *msg {
            Msg::Join => {
                if !state.member {
                    (state.joining, state.asked) = (true, None);
                    ctx.send(self.nodes[BASE[0]], Msg::Lookup(me));
                }
            }
            Msg::Lookup(place) => {
                if let Some(first) = first {
                    if between(me, place, first) {
                        ctx.send(self.nodes[place], Msg::Found(first));
                    } else {
                        ctx.send(self.nodes[first], Msg::Lookup(place));
                    }
                }
            }
            Msg::Found(successor) => {
                if state.joining && self.original {
                    (state.joining, state.member, state.successors) = (false, true, vec![successor]);
                    ctx.set_timer("stabilize", Msg::Stabilize);
                } else if state.joining {
                    self.ask(state, successor, ctx);
                }
            }
            Msg::Ask => {
                let answer = Msg::Member(state.successors.clone(), state.predecessor);
                ctx.send(ctx.sender(), if state.member { answer } else { Msg::NoMember });
            }
            Msg::Member(ref successors, predecessor) => {
                if state.asked == Some(from) {
                    self.answered(state, from, (successors, predecessor), ctx);
                }
            }
            Msg::NoMember => self.gone(state, from, ctx),
            Msg::Notify => match state.predecessor {
                _ if !state.member => {}
                Some(p) if !between(p, from, me) => {
                    // It may be farther away, but the known one may have failed.
                    if p != from {
                        ctx.send(self.nodes[p], Msg::Ask);
                    }
                }
                _ => state.predecessor = Some(from),
            },
            Msg::Stabilize => {
                if let Some(first) = first {
                    self.ask(state, first, ctx);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let Some(next) = self.ring(view) else { return };
        // Whoever has gone on often enough goes round a ring.
        let on_ring = |from: usize| (0..NODES).fold(from, |at, _| next[at].unwrap_or(at));
        let members = (0..NODES).filter(|&n| next[n].is_some());
        let mut rings: Vec<Vec<usize>> = Vec::new();
        for at in members.map(on_ring) {
            if rings.iter().any(|ring| ring.contains(&at)) {
                continue;
            }
            let mut ring = vec![at];
            while let Some(n) = next[ring[ring.len() - 1]].filter(|n| *n != at) {
                ring.push(n);
            }
            rings.push(ring);
        }
        // In order, a ring goes down once: from its last member to its first.
        let down = |ring: &Vec<usize>| ring.iter().filter(|&&n| next[n].is_some_and(|m| m <= n)).count();
        let broken = match rings.as_slice() {
            [ring] if down(ring) == 1 => return,
            [_] => "OrderedRing",
            _ => "OneRing",
        };
        let affected = rings.iter().flatten().map(|&n| self.nodes[n]).collect();
        found.push(Violation { fingerprint: broken.into(), affected });
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Chord {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Join => "Join",
            Msg::Lookup(_) => "Lookup",
            Msg::Found(_) => "Found",
            Msg::Ask => "Ask",
            Msg::Member(..) => "Member",
            Msg::NoMember => "NoMember",
            Msg::Notify => "Notify",
            Msg::Stabilize => "Stabilize",
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

impl Workload<State, Msg> for Chord {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let to = self.nodes[2 * (choice % 3) as usize + 1];
        Some(Proposal { to, msg: Msg::Join, fields: Value::Null })
    }
}

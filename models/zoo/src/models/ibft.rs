//! Byzantine agreement after PBFT, as Istanbul BFT has it: four validators, of whom none is faulty here, agree on one block
//! a height; a round that takes too long is changed, and the next validator proposes.
//!
//! Bug `forgets_prepared`: the proposer of a new round proposes its own block, whatever a quorum has prepared before. Source:
//! the first proposal of IBFT (EIP-650), in which correct validators could decide differently: Moniz, "The Istanbul BFT
//! Consensus Algorithm", arXiv 2002.03613, section 1; Saltini and Hyland-Wood, "Correctness Analysis of Istanbul Byzantine
//! Fault Tolerance", arXiv 1901.07160, on its persistence. In the repaired protocol round changes carry what was prepared.

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, View, Violation, Workload};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

const VALIDATORS: usize = 4;
const QUORUM: usize = 3;

/// A height, a round, and a block, which is the place of who made it.
type Vote = (u32, u32, usize);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: there are transactions for a block.
    Transactions,
    PrePrepare(Vote),
    Prepare(Vote),
    Commit(Vote),
    /// The height and the new round, and the round and block that were prepared.
    RoundChange(u32, u32, Option<(u32, usize)>),
    Timeout,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    height: u32,
    round: u32,
    /// Whether the block of this round is known, and what was prepared last.
    accepted: bool,
    prepared: Option<(u32, usize)>,
    prepares: BTreeMap<Vote, BTreeSet<usize>>,
    commits: BTreeMap<Vote, BTreeSet<usize>>,
    changes: BTreeMap<u32, BTreeMap<usize, Option<(u32, usize)>>>,
    /// The block of each height.
    chain: Vec<usize>,
}

#[derive(Clone)]
pub struct Ibft {
    validators: Vec<ActorId>,
    forgets_prepared: bool,
}

impl Ibft {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let validators = group(names, "validator", VALIDATORS);
        Ibft { validators, forgets_prepared: on(scenario, "forgets_prepared") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.validators.iter().position(|&v| v == actor).unwrap_or(0)
    }

    fn others(&self, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        self.validators.iter().filter(|&&v| v != me).for_each(|&to| ctx.send(to, msg.clone()));
    }

    fn propose(&self, state: &mut State, block: usize, ctx: &mut Ctx<'_, Msg>) {
        let vote = (state.height, state.round, block);
        self.others(&Msg::PrePrepare(vote), ctx);
        self.accept(state, vote, ctx);
    }

    /// A block is known for this round: this validator prepares it.
    fn accept(&self, state: &mut State, vote: Vote, ctx: &mut Ctx<'_, Msg>) {
        state.accepted = true;
        ctx.set_timer("round", Msg::Timeout);
        self.others(&Msg::Prepare(vote), ctx);
        self.prepare(state, vote, self.place(ctx.me()), ctx);
    }

    fn prepare(&self, state: &mut State, vote: Vote, from: usize, ctx: &mut Ctx<'_, Msg>) {
        if vote.0 != state.height {
            return;
        }
        state.prepares.entry(vote).or_default().insert(from);
        let quorum = state.prepares[&vote].len() >= QUORUM;
        if quorum && state.accepted && vote.1 == state.round && state.prepared != Some((vote.1, vote.2)) {
            state.prepared = Some((vote.1, vote.2));
            self.others(&Msg::Commit(vote), ctx);
            self.commit(state, vote, self.place(ctx.me()), ctx);
        }
    }

    fn commit(&self, state: &mut State, vote: Vote, from: usize, ctx: &mut Ctx<'_, Msg>) {
        if vote.0 < state.height {
            return;
        }
        state.commits.entry(vote).or_default().insert(from);
        let decided = |s: &State| {
            let quorum = |(v, who): (&Vote, &BTreeSet<usize>)| v.0 == s.height && who.len() >= QUORUM;
            s.commits.iter().find(|&(v, who)| quorum((v, who))).map(|(v, _)| v.2)
        };
        while let Some(block) = decided(state) {
            let height = state.height + 1;
            state.chain.push(block);
            ctx.cancel_timer("round");
            let commits = std::mem::take(&mut state.commits).into_iter().filter(|(v, _)| v.0 >= height);
            let (commits, chain) = (commits.collect(), std::mem::take(&mut state.chain));
            *state = State { height, commits, chain, ..State::default() };
        }
    }

    fn change(&self, state: &mut State, round: u32, ctx: &mut Ctx<'_, Msg>) {
        (state.round, state.accepted) = (round, false);
        ctx.set_timer("round", Msg::Timeout);
    }

    fn proposer(&self, state: &State) -> usize {
        (state.height + state.round) as usize % VALIDATORS
    }

    /// The proposer of a new round proposes once a quorum has changed to it.
    fn changed(&self, state: &mut State, round: u32, ctx: &mut Ctx<'_, Msg>) {
        let me = self.place(ctx.me());
        if round != state.round || state.accepted || self.proposer(state) != me {
            return;
        }
        let Some(changes) = state.changes.get(&round).filter(|c| c.len() >= QUORUM) else { return };
        let before = changes.values().flatten().max().filter(|_| !self.forgets_prepared);
        let block = before.map_or(me, |p| p.1);
        self.propose(state, block, ctx);
    }
}

impl Model for Ibft {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.validators
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let (me, from) = (self.place(ctx.me()), self.place(ctx.sender()));
        match *msg {
            Msg::Transactions => {
                if state.round == 0 && !state.accepted && self.proposer(state) == me {
                    self.propose(state, me, ctx);
                } else if !state.accepted {
                    ctx.set_timer("round", Msg::Timeout);
                }
            }
            Msg::PrePrepare(vote) => {
                let newer = vote.1 > state.round || vote.1 == state.round && !state.accepted;
                if vote.0 == state.height && newer {
                    state.round = vote.1;
                    self.accept(state, vote, ctx);
                }
            }
            Msg::Prepare(vote) => self.prepare(state, vote, from, ctx),
            Msg::Commit(vote) => self.commit(state, vote, from, ctx),
            Msg::Timeout => {
                let round = state.round + 1;
                self.change(state, round, ctx);
                self.others(&Msg::RoundChange(state.height, round, state.prepared), ctx);
                state.changes.entry(round).or_default().insert(me, state.prepared);
                self.changed(state, round, ctx);
            }
            Msg::RoundChange(height, round, prepared) => {
                if height == state.height {
                    state.changes.entry(round).or_default().insert(from, prepared);
                    self.changed(state, round, ctx);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let chains: Vec<_> =
            self.validators.iter().filter_map(|&v| Some((v, &view.state(v)?.chain))).collect();
        for (at, (a, one)) in chains.iter().enumerate() {
            for (b, other) in &chains[at + 1..] {
                if one.iter().zip(*other).any(|(x, y)| x != y) {
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

impl Logs<State, Msg> for Ibft {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Transactions => "Transactions",
            Msg::PrePrepare(_) => "PrePrepare",
            Msg::Prepare(_) => "Prepare",
            Msg::Commit(_) => "Commit",
            Msg::RoundChange(..) => "RoundChange",
            Msg::Timeout => "Timeout",
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

impl Workload<State, Msg> for Ibft {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let to = self.validators[(choice % 4) as usize];
        Some(Proposal { to, msg: Msg::Transactions, fields: Value::Null })
    }
}

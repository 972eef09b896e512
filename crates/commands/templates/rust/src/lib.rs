//! A model to start from: clients ask a server for a lock, and the server lends it for a time.
//!
//! The switch `forgetful_lease` is a bug. When a lease ends, the server gives the lock to the next client, and the
//! client that had it is not told. With the switch off the server asks for the lock back, and waits.
//!
//! Replace all of it by your own system, layer by layer.

use std::collections::VecDeque;

use demi_commands::schemas::Known;
use demi_commands::{ActorId, Ctx, Model, Models, Names, Registry, Scenario, ScenarioError, View, Violation};

/// The models of this program, by the names that scenarios give them.
pub fn models() -> Models<impl Registry> {
    Models::new().with("{{name}}", Lock::new)
}

/// What is fixed in a run: who takes part, and which bugs are there.
#[derive(Clone, Debug)]
pub struct Lock {
    /// The server, then the clients.
    actors: Vec<ActorId>,
    forgetful_lease: bool,
}

/// What is sent, and what timers carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A client's timer: it wants the lock.
    Want,
    /// A client asks for the lock.
    Acquire,
    /// The server lends it.
    Granted,
    /// The server's timer: the lease is over.
    LeaseEnds,
    /// The server wants the lock back.
    Revoke,
    /// A client's timer: its work is done.
    Done,
    /// A client gives the lock back.
    Release,
}

/// The state of the server or of a client. Equal states must behave alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Of the server: who has the lock, as it believes.
    holder: Option<ActorId>,
    /// Of the server: who waits for it.
    waiting: VecDeque<ActorId>,
    /// Of a client: whether it works under the lock.
    works: bool,
}

impl Lock {
    /// The model as a scenario asks for it. A name that it does not know is an error.
    pub fn new(scenario: &Scenario, names: &mut Names) -> Result<Self, ScenarioError> {
        Known { switches: &["forgetful_lease"], invariants: &["MutualExclusion"], ..Known::default() }
            .check(scenario)?;
        let mut actors = vec![names.id("server")];
        actors.extend((1..=scenario.members.unwrap_or(2)).map(|n| names.id(&format!("client-{n}"))));
        let forgetful_lease = scenario.switches.get("forgetful_lease").copied().unwrap_or(false);
        Ok(Lock { actors, forgetful_lease })
    }

    fn server(&self) -> ActorId {
        self.actors[0]
    }

    /// The server lends the lock to who has waited longest.
    fn lend(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.holder = state.waiting.pop_front();
        if let Some(client) = state.holder {
            ctx.send(client, Msg::Granted);
            ctx.set_timer("lease", Msg::LeaseEnds);
        }
    }
}

impl Model for Lock {
    type State = State;
    type Msg = Msg;
    type History = (); // what the invariant remembers: nothing

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn start(&self, _: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if ctx.me() != self.server() {
            ctx.set_timer("want", Msg::Want);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match msg {
            Msg::Want => ctx.send(self.server(), Msg::Acquire),
            Msg::Acquire => {
                state.waiting.push_back(ctx.sender());
                if state.holder.is_none() {
                    self.lend(state, ctx);
                }
            }
            Msg::LeaseEnds if self.forgetful_lease => self.lend(state, ctx),
            Msg::LeaseEnds => {
                if let Some(client) = state.holder {
                    ctx.send(client, Msg::Revoke);
                }
            }
            Msg::Release => {
                if state.holder == Some(ctx.sender()) {
                    self.lend(state, ctx);
                }
            }
            Msg::Granted => {
                state.works = true;
                ctx.set_timer("work", Msg::Done);
            }
            Msg::Revoke | Msg::Done => {
                if state.works {
                    state.works = false;
                    ctx.cancel_timer("work");
                    ctx.send(self.server(), Msg::Release);
                    ctx.set_timer("want", Msg::Want);
                }
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let working: Vec<ActorId> =
            view.actors().filter(|&actor| view.state(actor).is_some_and(|state| state.works)).collect();
        if working.len() > 1 {
            found.push(Violation { fingerprint: "MutualExclusion".into(), affected: working });
        }
    }
}

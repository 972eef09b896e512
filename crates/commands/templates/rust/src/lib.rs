//! A model to start from: clients ask a server for a lock, and the server lends it for a time.
//!
//! The switch `forgetful_lease` is a bug. When a lease ends, the server gives the lock to the next client, and the
//! client that had it is not told. With the switch off the server asks for the lock back, and waits.
//!
//! Replace all of it by your own system, role by role.

use std::collections::VecDeque;

use demi_commands::roles::{Me, Role, Roles};
use demi_commands::{ActorId, Ctx, Group, Models, Names, Registry, Scenario, ScenarioError};
use serde::{Deserialize, Serialize};

/// The models of this program, by the names that scenarios give them.
pub fn models() -> Models<impl Registry> {
    Models::new().with("{{name}}", lock)
}

/// The system as a scenario asks for it: who takes part, what must hold. A name that it does not know is an error.
pub fn lock(scenario: &Scenario, names: &mut Names) -> Result<Roles<Msg>, ScenarioError> {
    let server = Group::single(names, "server");
    let clients = Group::numbered(names, "client", scenario.members.unwrap_or(2) as usize);
    let forgetful_lease = scenario.switches.get("forgetful_lease").copied().unwrap_or(false);
    Roles::new()
        .with(&server, Server { forgetful_lease })
        .with(&clients, Client { server: server.members()[0] })
        .at_most_one("MutualExclusion", |client: &Holding| client.works)
        .known_to(scenario, &["forgetful_lease"], &[])
}

/// What is sent, and what timers carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// Who lends the lock.
pub struct Server {
    forgetful_lease: bool,
}

/// The state of the server. Equal states must behave alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Lending {
    /// Who has the lock, as the server believes.
    holder: Option<ActorId>,
    /// Who waits for it.
    waiting: VecDeque<ActorId>,
}

impl Lending {
    /// Lends the lock to who has waited longest.
    fn next(&mut self, ctx: &mut Ctx<'_, Msg>) {
        self.holder = self.waiting.pop_front();
        if let Some(client) = self.holder {
            ctx.send(client, Msg::Granted);
            ctx.set_timer("lease", Msg::LeaseEnds);
        }
    }
}

impl Role for Server {
    type Msg = Msg;
    type State = Lending;

    fn initial(&self, _: Me<'_>) -> Lending {
        Lending::default()
    }

    fn deliver(&self, _: Me<'_>, state: &mut Lending, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match msg {
            Msg::Acquire => {
                state.waiting.push_back(ctx.sender());
                if state.holder.is_none() {
                    state.next(ctx);
                }
            }
            Msg::LeaseEnds if self.forgetful_lease => state.next(ctx),
            Msg::LeaseEnds => {
                if let Some(client) = state.holder {
                    ctx.send(client, Msg::Revoke);
                }
            }
            Msg::Release if state.holder == Some(ctx.sender()) => state.next(ctx),
            _ => {}
        }
    }
}

/// Who wants the lock, again and again.
pub struct Client {
    server: ActorId,
}

/// The state of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Holding {
    /// Whether it works under the lock.
    works: bool,
}

impl Role for Client {
    type Msg = Msg;
    type State = Holding;

    fn initial(&self, _: Me<'_>) -> Holding {
        Holding::default()
    }

    fn start(&self, _: Me<'_>, _: &mut Holding, ctx: &mut Ctx<'_, Msg>) {
        ctx.set_timer("want", Msg::Want);
    }

    fn deliver(&self, _: Me<'_>, state: &mut Holding, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match msg {
            Msg::Want => ctx.send(self.server, Msg::Acquire),
            Msg::Granted => {
                state.works = true;
                ctx.set_timer("work", Msg::Done);
            }
            Msg::Revoke | Msg::Done if state.works => {
                state.works = false;
                ctx.cancel_timer("work");
                ctx.send(self.server, Msg::Release);
                ctx.set_timer("want", Msg::Want);
            }
            _ => {}
        }
    }
}

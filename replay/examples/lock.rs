//! A model of two roles: clients ask a server for a lock. The bug: the server lends it to whoever asks.
//! Run it with `cargo run -p demi-replay --example lock`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::roles::{Me, Role, Roles};
use demi_replay::{ActorId, Ctx, Group, Names, Simulator};
use demi_schemas::{Scenario, ScenarioError};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Msg {
    Want, // what a client's timer carries
    Acquire,
    Granted { term: u64 },
    Release { term: u64 },
}

pub(crate) struct Server {
    careless: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Lending {
    term: u64,
    holder: Option<ActorId>,
}

impl Role for Server {
    type Msg = Msg;
    type State = Lending;

    fn initial(&self, _: Me<'_>) -> Lending {
        Lending { term: 0, holder: None }
    }

    /// Handles one message or timer to the end: change the state, ask for sends and timers.
    fn deliver(&self, _: Me<'_>, state: &mut Lending, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match *msg {
            Msg::Acquire if state.holder.is_none() || self.careless => {
                *state = Lending { term: state.term + 1, holder: Some(ctx.sender()) };
                ctx.send(ctx.sender(), Msg::Granted { term: state.term });
            }
            Msg::Release { term } if term == state.term => state.holder = None,
            _ => {}
        }
    }
}

pub(crate) struct Client {
    server: ActorId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Working {
    term: Option<u64>, // under which it works
}

impl Role for Client {
    type Msg = Msg;
    type State = Working;

    fn initial(&self, _: Me<'_>) -> Working {
        Working { term: None }
    }

    fn start(&self, me: Me<'_>, _: &mut Working, ctx: &mut Ctx<'_, Msg>) {
        ctx.set_timer(format!("want-{}", me.index()), Msg::Want);
    }

    fn deliver(&self, me: Me<'_>, state: &mut Working, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match *msg {
            Msg::Granted { term } => state.term = Some(term),
            _ => match state.term.take() {
                Some(term) => ctx.send(self.server, Msg::Release { term }),
                None => ctx.send(self.server, Msg::Acquire),
            },
        }
        ctx.set_timer(format!("want-{}", me.index()), Msg::Want); // replaces the one that is live
    }
}

pub(crate) fn lock(scenario: &Scenario, names: &mut Names) -> Result<Roles<Msg>, ScenarioError> {
    let server = Group::single(names, "server");
    let clients = Group::numbered(names, "client", scenario.members.unwrap_or(2) as usize);
    let careless = scenario.switches.get("careless").copied().unwrap_or(false);
    Roles::new()
        .with(&server, Server { careless })
        .with(&clients, Client { server: server.members()[0] })
        .at_most_one("MutualExclusion", |client: &Working| client.term.is_some())
        .known_to(scenario, &["careless"], &[])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::parse("model = 'lock'\nnetwork = 'fifo'\nswitches = { careless = true }")?;
    let mut names = Names::default();
    let model = lock(&scenario, &mut names)?;
    let mut sim = Simulator::new(model, names, &scenario)?;
    let found = fuzz(&mut sim, &scenario, &FuzzOptions::new(1, 100, 50), &mut |_| true)?;
    let found = found.ok_or("no run breaks it")?;
    println!("{} breaks after {} deliveries", found.violation[0], found.deliveries);
    Ok(())
}

//! A complete model: actors in a ring pass a token, and only its holder may work. The bug: an actor that waited
//! too long makes a new token, though the old one may only be slow.
//! Run it with `cargo run -p demi-replay --example token_ring`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{ActorId, Ctx, Model, Names, Proposal, Simulator, View, Violation, Workload};
use demi_schemas::Scenario;

/// What is fixed in a run: here only who takes part.
#[derive(Clone)]
pub(crate) struct Ring(pub(crate) Vec<ActorId>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Msg {
    Token,
    Impatient, // what the timer carries
}

impl Model for Ring {
    type State = bool; // whether the actor holds a token
    type Msg = Msg;
    type History = (); // the invariant needs no memory

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> bool {
        false
    }

    fn start(&self, _: &mut bool, ctx: &mut Ctx<'_, Msg>) {
        ctx.set_timer("patience", Msg::Impatient);
    }

    /// Handles one message or timer to the end: change the state, ask for sends and timers.
    fn deliver(&self, holds: &mut bool, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        if *msg == Msg::Impatient && *holds {
            *holds = false;
            let at = self.0.iter().position(|&a| a == ctx.me()).unwrap_or(0);
            ctx.send(self.0[(at + 1) % self.0.len()], Msg::Token);
        } else {
            *holds = true; // for Impatient, this is the bug: the token was not lost
        }
        ctx.set_timer("patience", Msg::Impatient); // replaces the one that is live
    }

    fn check(&self, view: &View<'_, bool>, (): &mut (), found: &mut Vec<Violation>) {
        let holders: Vec<ActorId> = view.actors().filter(|&a| view.state(a) == Some(&true)).collect();
        if holders.len() > 1 {
            found.push(Violation { fingerprint: "OneToken".into(), affected: holders });
        }
    }

    fn workload(&self) -> &dyn Workload<bool, Msg> {
        self
    }
}

impl Workload<bool, Msg> for Ring {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        vec![Proposal::new(self.0[0], Msg::Token)]
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::parse("model = 'token-ring'\nnetwork = 'fifo'")?;
    let mut names = Names::default();
    let ring = Ring((1..=4).map(|n| names.id(&format!("node-{n}"))).collect());
    let mut sim = Simulator::new(ring, names, &scenario)?;
    let options = FuzzOptions::new(2, 100, 50);
    let found = fuzz(&mut sim, &scenario, &options, &mut |_| true)?.ok_or("no run breaks it")?;
    let holders = found.affected.join(" and ");
    println!("{} breaks after {} deliveries: {holders} hold a token", found.violation[0], found.deliveries);
    Ok(())
}

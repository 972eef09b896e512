//! A complete model: actors in a ring pass a token, and only its holder may work. The bug: an actor that waited
//! too long makes a new token, though the old one may only be slow.
//! Run it with `cargo run -p demi-replay --example token_ring`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use demi_replay::{ActorId, Ctx, ExternalMessage, Model, Names, Proposal, Simulator, View, Violation};
use demi_schemas::Scenario;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

#[derive(Clone)]
struct Ring(Vec<ActorId>); // what is fixed in a run: here only who takes part

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
enum Msg { Token, Impatient } // Impatient is what the timer carries

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
        ctx.set_timer("patience", Msg::Impatient, false);
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
        ctx.set_timer("patience", Msg::Impatient, false); // replaces the one that is live
    }
    fn type_name(&self, msg: &Msg) -> &'static str {
        if *msg == Msg::Token { "Token" } else { "Impatient" }
    }
    fn payload(&self, msg: &Msg, _: &Names) -> String {
        self.type_name(msg).to_owned()
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        (message.payload == "Token").then_some(Msg::Token).ok_or_else(|| format!("no '{}'", message.payload))
    }

    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        vec![Proposal { to: self.0[0], msg: Msg::Token, fields: Value::Null }]
    }

    fn check(&self, view: &View<'_, Self>, (): &mut (), found: &mut Vec<Violation>) {
        let holders: Vec<ActorId> = view.actors().filter(|&a| view.state(a) == Some(&true)).collect();
        if holders.len() > 1 {
            found.push(Violation { fingerprint: "OneToken".into(), affected: holders });
        }
    }

    fn describe(&self, holds: &bool, _: &Names) -> Value {
        json!({ "holds": holds })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::parse("model = 'token-ring'\nnetwork = 'fifo'")?;
    let mut names = Names::default();
    let ring = Ring((1..=4).map(|n| names.id(&format!("node-{n}"))).collect());
    let mut sim = Simulator::new(ring.clone(), names, &scenario)?;
    let (mut world, mut random) = (sim.empty_world(), ChaCha8Rng::seed_from_u64(2));
    ring.0.iter().for_each(|&actor| sim.start(&mut world, actor));
    for Proposal { to, msg, .. } in ring.bootstrap(sim.names()) {
        let msg = sim.intern(msg);
        sim.inject(&mut world, to, msg);
    }
    let mut found = Vec::new();
    while found.is_empty() {
        let can = |&i: &usize| sim.deliverable(&world, i, scenario.network);
        let choices: Vec<usize> = (0..world.pending().len()).filter(can).collect();
        let entry = sim.deliver(&mut world, choices[random.random_range(0..choices.len())], scenario.network);
        let (from, to) = (sim.names().get(entry.from), sim.names().get(entry.to));
        println!("{:>3}  {from} -> {to}  {}", world.deliveries(), sim.text(sim.info(entry.msg).payload));
        sim.check(&world, &mut (), &mut found);
    }
    let holders: Vec<&str> = found[0].affected.iter().map(|&a| sim.names().get(a)).collect();
    println!("{} is broken: {} hold a token", found[0].fingerprint, holders.join(" and "));
    Ok(())
}

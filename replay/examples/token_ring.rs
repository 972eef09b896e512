//! A complete model: actors in a ring pass a token, and only its holder may work. The bug: an actor that waited
//! too long makes a new token, though the old one may only be slow.
//!
//! Run it with `cargo run -p demi-replay --example token_ring`.

use demi_replay::{ActorId, Ctx, ExternalMessage, Model, Names, Proposal, Simulator, View, Violation};
use demi_schemas::Scenario;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// What is fixed in a run: here only who takes part.
#[derive(Clone)]
struct Ring(Vec<ActorId>);

/// Messages, and what timers carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Token,
    Impatient,
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

    /// Runs once when an actor starts.
    fn start(&self, _: &mut bool, ctx: &mut Ctx<'_, Msg>) {
        ctx.set_timer("patience", Msg::Impatient, false);
    }

    /// Handles one message or timer to the end: change the state, ask for sends and timers.
    fn deliver(&self, holds: &mut bool, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let next = self.0.iter().position(|&a| a == ctx.me()).map_or(0, |i| (i + 1) % self.0.len());
        if *msg == Msg::Impatient && *holds {
            *holds = false;
            ctx.send(self.0[next], Msg::Token);
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
        if message.payload == "Token" { Ok(Msg::Token) } else { Err(format!("no '{}'", message.payload)) }
    }

    /// Every run begins with a token for the first actor.
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
    let scenario = Scenario::parse("model = \"token-ring\"\nnetwork = \"fifo\"\n")?;
    let mut names = Names::default();
    let ring = Ring((1..=4).map(|n| names.id(&format!("node-{n}"))).collect());
    let mut sim = Simulator::new(ring.clone(), names, &scenario)?;
    let (mut world, mut random) = (sim.empty_world(), ChaCha8Rng::seed_from_u64(1));
    ring.actors().iter().for_each(|&actor| sim.start(&mut world, actor));
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
    println!("broken: {found:?}");
    Ok(())
}

//! A fuzzed violation of akka-raft as a witness to search below.

#[path = "../../tests/it/recorded/mod.rs"]
mod recorded;

use std::sync::Arc;

use demi_akka_raft::AkkaRaft;
use demi_minimize::oracle::engine::Engine;
use demi_minimize::oracle::matcher::EXACT;
use demi_minimize::oracle::witness::Shared;
use demi_minimize::{Budget, Objective, Problem};
use demi_replay::Simulator;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::model::DistanceOf;
use demi_replay::names::Names;
use demi_replay::script::Script;
use demi_schemas::{NetworkRule, Scenario};

pub struct Case {
    pub engine: Engine<AkkaRaft>,
    pub witness: Shared<AkkaRaft>,
    pub bound: Option<Arc<DistanceOf<AkkaRaft>>>,
}

impl Case {
    /// The first find of seed 1.
    pub fn new(scenario: &str, rule: NetworkRule) -> Case {
        let scenario = Scenario::parse(scenario).unwrap();
        let mut names = Names::default();
        let model = AkkaRaft::new(&scenario, &mut names).unwrap();
        let mut sim = Simulator::new(model, names, &scenario).unwrap();
        let limits = FuzzOptions::new(1, 10_000, 1_000);
        let found = fuzz(&mut sim.clone(), &scenario, &limits, &mut |_| true).unwrap().unwrap();
        let schedule = recorded::schedule(&found);
        let (script, _) = Script::compile(&mut sim, &schedule).unwrap();
        let bound = sim.distance(&found.violation).map(Arc::new);
        let target = found.violation.clone();
        let problem = Problem::plain(sim, script.clone(), rule, target, Objective::Steps);
        let mut engine = Engine::new(&problem, Budget::Seconds(1e6));
        let witness = engine.first_witness(&script.acts, EXACT).unwrap();
        Case { engine, witness, bound }
    }
}

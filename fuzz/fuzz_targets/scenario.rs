//! Any text is a scenario or an error; a scenario says the same after it was written and read again, and its model
//! can be made and started, or names what it does not know.
#![no_main]

use demi_included::{Visitor, with_model};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;
use libfuzzer_sys::fuzz_target;

struct Start;

impl Visitor for Start {
    type Output = ();

    fn visit<M: Model>(self, mut simulator: Simulator<M>) {
        let mut world = simulator.empty_world();
        for actor in simulator.model().actors().to_vec() {
            simulator.start(&mut world, actor);
        }
        simulator.check(&world, &mut M::History::default(), &mut Vec::new());
    }
}

fuzz_target!(|text: &str| {
    let Ok(scenario) = Scenario::parse(text) else { return };
    // Not-a-number is not even equal to itself, so texts are compared.
    let written = scenario.to_text();
    assert_eq!(Scenario::parse(&written).expect("what was written can be read").to_text(), written);
    let _ = with_model(&scenario, Start);
});

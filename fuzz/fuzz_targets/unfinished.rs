//! Any text is what an exploration left or an error; what is taken is written as it was, and an exploration goes on from it or
//! refuses it.
#![no_main]

use demi_explore::{Bounds, Cost, ExploreOptions, Saved, Scene, Spent, explore};
use demi_included::{Visitor, with_model};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;
use libfuzzer_sys::fuzz_target;

struct GoOn<'a>(&'a Scenario, &'a Saved);

impl Visitor for GoOn<'_> {
    type Output = ();

    fn visit<M: Model>(self, mut sim: Simulator<M>) {
        let (scene, first) = Scene::of(&mut sim, self.0, Some(1), 1).expect("a scene");
        let bounds = Bounds { cost: Cost::Deviation, most: Spent { cost: 1, faults: 1, steps: 5 } };
        let options = ExploreOptions { all: true, from: Some(self.1), ..ExploreOptions::default() };
        let mut left = 200;
        let _ = explore(&mut sim, (&scene, first), bounds, options, &mut |_| {
            left -= 1;
            left > 0
        });
    }
}

fuzz_target!(|input: &str| {
    let Ok(saved) = Saved::read(&mut input.as_bytes(), &mut 1) else { return };
    let mut text = Vec::new();
    saved.write(&mut text).expect("writable");
    assert_eq!(Saved::read(&mut text.as_slice(), &mut 1).expect("what was written"), saved);
    let scenario = Scenario::parse("model = \"two-phase\"\nnetwork = \"fifo\"").expect("a scenario");
    with_model(&scenario, GoOn(&scenario, &saved)).expect("a model");
});

//! Any text is a schedule or an error; a schedule says the same after it was written and read again, and every model
//! runs it or names the step that makes no sense.
#![no_main]

use demi_included::{Visitor, with_model};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Simulator};
use demi_schemas::{NetworkRule, Scenario, Schedule};
use libfuzzer_sys::fuzz_target;

struct Replay<'a>(&'a Schedule, ReplayOptions);

impl Visitor for Replay<'_> {
    type Output = ();

    fn visit<M: Model>(self, mut simulator: Simulator<M>) {
        let _ = replay(&mut simulator, self.0, &self.1);
    }
}

fuzz_target!(|input: (u8, &str)| {
    let Ok(mut schedule) = Schedule::parse(input.1) else { return };
    assert_eq!(Schedule::parse(&schedule.to_text()).as_ref(), Ok(&schedule));
    schedule.steps.truncate(256);
    let rules = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];
    let options =
        ReplayOptions { rule: rules[usize::from(input.0) % 3], strict: input.0 & 64 != 0, interval: 1 };
    let model = if input.0 & 128 == 0 { "two-phase" } else { "akka-raft" };
    let scenario = Scenario::parse(&format!("model = \"{model}\"\nnetwork = \"fifo\"")).expect("a scenario");
    with_model(&scenario, Replay(&schedule, options)).expect("a model");
});

//! Models and schedules as tests: what `export --format rust-test` and the tests of a new project call.

use std::error::Error;

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{Scenario, Schedule};

/// Follows a schedule and looks at what is broken at its end.
struct Follow<'a>(&'a Scenario, &'a Schedule);

impl Visitor for Follow<'_> {
    type Output = Result<Vec<String>, Box<dyn Error>>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = ReplayOptions {
            rule: self.0.network,
            strict: false,
            interval: self.0.invariant_check_interval.unwrap_or(1),
        };
        Ok(replay(&mut sim, self.1, &options)?.violation)
    }
}

/// Makes random runs.
struct Search<'a>(&'a Scenario, FuzzOptions);

impl Visitor for Search<'_> {
    type Output = Result<Option<Schedule>, Box<dyn Error>>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let found = fuzz(&mut sim, self.0, &self.1, &mut |_| true)?;
        Ok(found.map(|found| found.schedule))
    }
}

/// Makes at most `runs` random runs of at most `deliveries` deliveries each, as `fuzz` does: the schedule of the first that
/// breaks an invariant, and nothing where none does. What it does depends on the seed alone.
///
/// # Errors
/// When the text is no scenario, or the scenario names a model or a condition that is not known.
pub fn search(
    models: &impl Registry,
    scenario: &str,
    seed: u64,
    runs: u64,
    deliveries: u64,
) -> Result<Option<Schedule>, Box<dyn Error>> {
    let scenario = Scenario::parse(scenario)?;
    let options = FuzzOptions::new(seed, runs, deliveries);
    models.visit(&scenario, Search(&scenario, options))?
}

/// What a schedule breaks: the fingerprints, none where it breaks nothing. Steps that the model does not offer any more are
/// passed over, so a test that asserts that nothing breaks passes once the bug is mended.
///
/// # Errors
/// When the texts are no scenario and no schedule, the scenario names a model that `models` does not know, or a message from
/// outside is not known to the model any more.
pub fn violations(
    models: &impl Registry,
    scenario: &str,
    schedule: &str,
) -> Result<Vec<String>, Box<dyn Error>> {
    let scenario = Scenario::parse(scenario)?;
    let schedule = Schedule::parse(schedule)?;
    models.visit(&scenario, Follow(&scenario, &schedule))?
}

//! Models and schedules as tests: what `export --format rust-test` and the tests of a new project call.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, watched};
use demi_replay::{Model, Registry, Simulator, Visitor, World};
use demi_schemas::{Scenario, Schedule};

use crate::files::read_schedule;

/// The variable that asks a test for another schedule, or to stop in front of a step: `FILE`, `@STEP` or `FILE@STEP`.
const REPLAY: &str = "DEMI_REPLAY";

/// Does nothing. A test calls it in front of the step that `DEMI_REPLAY=@STEP` names, so that a debugger can stop here.
#[inline(never)]
pub fn stop(step: usize) {
    black_box(step);
}

/// What `DEMI_REPLAY` asks for: a schedule file and a step, from 1.
fn asked(text: &str) -> Result<(Option<&str>, Option<usize>), String> {
    let wrong = || format!("{REPLAY} is FILE, @STEP or FILE@STEP, not '{text}'");
    let (file, step) = match text.rsplit_once('@') {
        Some((file, step)) => (file, Some(step.parse().map_err(|_| wrong())?)),
        None => (text, None),
    };
    Ok((Some(file).filter(|file| !file.is_empty()), step))
}

/// Follows a schedule and looks at what is broken at its end. Stops in front of a step.
struct Follow<'a>(&'a Scenario, &'a Schedule, Option<usize>);

impl Visitor for Follow<'_> {
    type Output = Result<Vec<String>, Box<dyn Error>>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = ReplayOptions {
            rule: self.0.network,
            strict: false,
            interval: self.0.invariant_check_interval.unwrap_or(1),
        };
        if self.2 == Some(1) {
            stop(1);
        }
        let mut watch = |done: Option<usize>, _: &_, _: &Simulator<M>, _: &World<M>| {
            // Steps are counted from 0, and this one is done.
            if let (Some(done), Some(step)) = (done, self.2)
                && done + 2 == step
            {
                stop(step);
            }
        };
        Ok(watched(&mut sim, self.1, &options, &mut watch)?.violation)
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
/// passed over, so a test that asserts that nothing breaks passes once the bug is mended. Where the environment has
/// `DEMI_REPLAY=FILE`, the schedule of that file is taken instead; with `@STEP`, [`stop`] is called in front of that step.
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
    let wish = std::env::var(REPLAY).unwrap_or_default();
    let (file, step) = asked(&wish)?;
    let schedule = match file {
        Some(file) => read_schedule(Path::new(file), false)?,
        None => Schedule::parse(schedule)?,
    };
    if step.is_some_and(|step| step == 0 || step > schedule.steps.len()) {
        return Err(
            format!("{REPLAY}={wish}: the schedule has the steps 1 to {}", schedule.steps.len()).into()
        );
    }
    models.visit(&scenario, Follow(&scenario, &schedule, step))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_a_step_or_both() {
        assert_eq!(asked(""), Ok((None, None)));
        assert_eq!(asked("@7"), Ok((None, Some(7))));
        assert_eq!(asked("a@b/s.jsonl@7"), Ok((Some("a@b/s.jsonl"), Some(7))));
        assert_eq!(asked("s.jsonl"), Ok((Some("s.jsonl"), None)));
        assert!(asked("s.jsonl@x").is_err());
    }
}

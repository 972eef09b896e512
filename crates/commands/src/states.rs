//! `demi-lineage replay --state`: the logs of a replayed execution, with the states of its actors.

use std::path::Path;

use demi_common::Kind;
use demi_explore::{Scene, SceneError};
use demi_replay::fuzz::{Found, written_with_states};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{Scenario, Schedule};

use crate::files::write_folder;
use crate::logs::logs;
use crate::on_model::with_scenario;

/// Follows a schedule to its end and tells what the actors would have logged.
struct Follow<'a>(&'a Scenario, &'a Schedule);

impl Visitor for Follow<'_> {
    type Output = Result<Found, SceneError>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let (scene, last) = Scene::around(&mut sim, self.0, self.1, u64::MAX)?;
        let mut violations = Vec::new();
        sim.check(&last.world, &mut M::History::default(), &mut violations);
        Ok(written_with_states(&mut sim, (self.0, &scene.program), &scene.before, &violations))
    }
}

/// Writes the logs to a folder, as `fuzz --state` does.
pub fn write(
    (path, scenario): (&Path, &Scenario),
    (input, schedule): (&Path, &Schedule),
    out: &Path,
    models: &impl Registry,
) -> Result<String, Box<dyn std::error::Error>> {
    let found = with_scenario(models, path, scenario, Follow(scenario, schedule))?
        .map_err(|e| format!("{}: {e}", input.display()))?;
    let mut files = logs(&found)?;
    files.push(("schedule.jsonl".into(), found.schedule.to_text()));
    files.push(("scenario.toml".into(), scenario.to_text()));
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    write_folder(out, Kind::Fuzzed, &[path, input], &files)?;
    Ok(format!("wrote the logs of {} deliveries, with states, to {}", found.deliveries, out.display()))
}

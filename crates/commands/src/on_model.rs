//! Work on a scenario's model, within the time that a call of it may take.

use std::path::Path;
use std::time::Duration;

use demi_replay::watchdog::Watch;
use demi_replay::{Registry, Visitor};
use demi_schemas::Scenario;

use crate::status::Status;

/// Runs a task on the scenario's model; errors name the file.
pub fn with_scenario<V: Visitor>(
    models: &impl Registry,
    path: &Path,
    scenario: &Scenario,
    visitor: V,
) -> Result<V::Output, Box<dyn std::error::Error>> {
    let _watch = watched(scenario, String::new);
    models.visit(scenario, visitor).map_err(|e| format!("{}: {e}", path.display()).into())
}

/// As [`with_scenario`]; when a call of the model does not return, `best` is asked what there is all the same.
pub fn with_best<V: Visitor>(
    models: &impl Registry,
    (path, scenario): (&Path, &Scenario),
    best: impl FnOnce() -> String + Send + 'static,
    visitor: V,
) -> Result<V::Output, Box<dyn std::error::Error>> {
    let _watch = watched(scenario, best);
    models.visit(scenario, visitor).map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Seconds that a call of the model may take, where the scenario does not say.
const HANDLER_LIMIT: u32 = 10;

/// Ends the program when a call of the model does not return: its thread cannot be stopped.
fn watched(scenario: &Scenario, best: impl FnOnce() -> String + Send + 'static) -> Watch {
    let own = scenario.handler_limit_seconds.unwrap_or(HANDLER_LIMIT).max(1);
    // A child has a limit of its own, and its error says more.
    let limit =
        scenario.model.patience().map_or(own, |child| own.max(child.saturating_mul(2).saturating_add(5)));
    Watch::new(Duration::from_secs(limit.into()), move |hung| {
        crate::ui::last_words(&format!("error: {hung} (handler_limit_seconds in the scenario){}", best()));
        std::process::exit(i32::from(Status::Failed as u8));
    })
}

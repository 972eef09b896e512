//! Violating executions of a size that is worth minimizing.

use std::ops::RangeInclusive;

use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, fuzz};
use demi_replay::{Model, Simulator};
use demi_schemas::Scenario;

/// Deliveries that an execution of the zoo may have.
pub const DELIVERIES: RangeInclusive<u64> = 400..=2_000;
/// Random runs for each seed.
const RUNS: u64 = 4_000;

/// The violating executions of the first seeds from 1 on that have one of the right size, with their seeds.
///
/// # Errors
/// When the scenario's `[fuzz]` settings make no sense for the model.
pub fn record<M: Model>(
    sim: &Simulator<M>,
    scenario: &Scenario,
    count: usize,
    seeds: u64,
) -> Result<Vec<(u64, Found)>, FuzzError> {
    let mut recorded = Vec::new();
    // Where the bug shows too soon with every seed, the first run of a seed that is long enough is taken.
    for at_least in [0, *DELIVERIES.start()] {
        if !recorded.is_empty() {
            break;
        }
        for seed in 1..=seeds {
            if recorded.len() == count {
                break;
            }
            let deliveries = *DELIVERIES.end();
            let options = FuzzOptions { at_least, ..FuzzOptions::new(seed, RUNS, deliveries) };
            let found = fuzz(&mut sim.clone(), scenario, &options, &mut |_| true)?;
            recorded.extend(found.filter(|f| DELIVERIES.contains(&f.deliveries)).map(|f| (seed, f)));
        }
    }
    Ok(recorded)
}

//! Executions to minimize: made by fuzzing, or read from folders.

use std::error::Error;
use std::path::Path;

use demi_included::{Visitor, with_model};
use demi_replay::fuzz::{Found, FuzzError, FuzzOptions, fuzz};
use demi_replay::{Model, Simulator};
use demi_schemas::{Scenario, Schedule};

/// Runs that one seed may take to find a violation.
const RUNS: u64 = 20_000;
/// Seeds tried for each one that is wanted, at most.
const TRIES: u64 = 400;

/// An execution to minimize.
pub struct Case {
    /// The scenario's name, or the folder's.
    pub name: String,
    /// The seed; 0 for what was read.
    pub seed: u64,
    /// Where its system runs.
    pub scenario: Scenario,
    /// What happened.
    pub schedule: Schedule,
}

/// What is done with an execution.
pub type Work<'a> = dyn FnMut(&Case) -> Result<(), Box<dyn Error>> + 'a;

struct Fuzz<'a>(&'a Scenario, FuzzOptions);

impl Visitor for Fuzz<'_> {
    type Output = Result<Option<Found>, FuzzError>;
    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        fuzz(&mut sim, self.0, &self.1, &mut |_| true)
    }
}

/// Makes executions of a scenario with a number of deliveries in a range, the violation at the end of each, and hands
/// them to `work`. Seeds whose run is shorter are passed over.
///
/// # Errors
/// When the scenario cannot be read or run, or `work` fails.
pub fn made(
    name: &str,
    (seed, seeds): (u64, usize),
    (least, most): (u64, u64),
    work: &mut Work<'_>,
) -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../replay/scenarios/{name}.toml"));
    let scenario = Scenario::parse(&std::fs::read_to_string(file)?)?;
    let (mut done, mut next) = (0, seed);
    while done < seeds && next < seed + seeds as u64 * TRIES {
        let options = FuzzOptions::new(next, RUNS, most);
        let found = with_model(&scenario, Fuzz(&scenario, options))??;
        next += 1;
        let Some(found) = found.filter(|f| f.deliveries >= least) else { continue };
        done += 1;
        work(&Case {
            name: name.to_owned(),
            seed: next - 1,
            scenario: scenario.clone(),
            schedule: found.schedule,
        })?;
    }
    Ok(())
}

/// Reads an execution from a folder.
///
/// # Errors
/// When one of its two files cannot be read.
pub fn read(folder: &Path) -> Result<Case, Box<dyn Error>> {
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let scenario = Scenario::parse(&std::fs::read_to_string(folder.join("scenario.toml"))?)?;
    let schedule = Schedule::parse(&std::fs::read_to_string(folder.join("schedule.jsonl"))?)?;
    Ok(Case { name, seed: 0, scenario, schedule })
}

//! What is asked for on the command line.

use std::error::Error;
use std::path::PathBuf;
use std::str::FromStr;

use demi_minimize::{Budget, Objective, Phases};

/// The scenarios of all Raft bugs.
const ALL: [&str; 8] =
    ["raft-45", "raft-46", "raft-56", "raft-58a", "raft-58b", "raft-42", "raft-62", "raft-66"];

/// Under which network rules executions are minimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// That of the scenario.
    Own,
    /// Every weaker one.
    Weaker,
    /// Both.
    All,
}

/// What is asked for.
pub struct Args {
    /// Scenarios to fuzz.
    pub names: Vec<String>,
    /// Folders of executions made before, each with `schedule.jsonl` and `scenario.toml`.
    pub recorded: Vec<PathBuf>,
    /// The first seed tried.
    pub seed: u64,
    /// Executions of each scenario, and of each length.
    pub seeds: usize,
    /// Ranges of the deliveries of an execution.
    pub lengths: Vec<(u64, u64)>,
    /// Network rules.
    pub rules: Rules,
    /// The budget of each minimization.
    pub budget: Budget,
    /// Threads.
    pub jobs: usize,
    /// What counts as smaller.
    pub objective: Objective,
    /// Which pipeline.
    pub phases: Phases,
    /// Whether searches are led by what the model knows of itself.
    pub guided: bool,
    /// Where to write results.
    pub save: Option<PathBuf>,
}

impl Args {
    /// Reads the command line.
    ///
    /// # Errors
    /// When it says something that is not known.
    pub fn read() -> Result<Args, Box<dyn Error>> {
        let mut args = Args {
            names: Vec::new(),
            recorded: Vec::new(),
            seed: 1,
            seeds: 20,
            lengths: Vec::new(),
            rules: Rules::Own,
            budget: Budget::Seconds(60.0),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            objective: Objective::default(),
            phases: Phases::All,
            guided: true,
            save: None,
        };
        let (mut least, mut most) = (400, 3000);
        let mut given = std::env::args().skip(1);
        while let Some(arg) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--seed" => args.seed = value()?.parse()?,
                "--seeds" => args.seeds = value()?.parse()?,
                "--least" => least = value()?.parse()?,
                "--most" => most = value()?.parse()?,
                "--lengths" => {
                    for length in value()?.split(',') {
                        let length: u64 = length.parse()?;
                        args.lengths.push((length - length / 8, length + length / 8));
                    }
                }
                "--no-guidance" => args.guided = false,
                "--jobs" => args.jobs = value()?.parse()?,
                "--budget" => args.budget = Budget::from_str(&value()?)?,
                "--save" => args.save = Some(value()?.into()),
                "--recorded" => args.recorded.push(value()?.into()),
                "--objective" => {
                    args.objective = match value()?.as_str() {
                        "externals" => Objective::Externals,
                        "steps" => Objective::Steps,
                        other => return Err(format!("'{other}' is no objective").into()),
                    }
                }
                "--phases" => {
                    args.phases = match value()?.as_str() {
                        "all" => Phases::All,
                        "ddmin" => Phases::Ddmin,
                        "probdd" => Phases::ProbDd,
                        other => return Err(format!("'{other}' is none of the pipelines").into()),
                    }
                }
                "--rules" => {
                    args.rules = match value()?.as_str() {
                        "own" => Rules::Own,
                        "weaker" => Rules::Weaker,
                        "all" => Rules::All,
                        other => return Err(format!("'{other}' is no choice of rules").into()),
                    }
                }
                name if ALL.contains(&name) => args.names.push(arg),
                other => return Err(format!("'{other}' is neither a scenario nor an option").into()),
            }
        }
        if args.names.is_empty() && args.recorded.is_empty() {
            args.names = ALL.map(str::to_owned).to_vec();
        }
        if args.lengths.is_empty() {
            args.lengths.push((least, most));
        }
        Ok(args)
    }
}

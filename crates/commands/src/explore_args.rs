//! What `explore` is asked for, and what it explored.

use std::path::PathBuf;
use std::thread::available_parallelism;

use demi_explore::{Bounds, Cost, ExploreOptions, Explored, Saved, Spent};
use demi_minimize::Budget;
use demi_replay::fuzz::Found;
use demi_schemas::NetworkRule;

use crate::status::Expect;
use crate::tolerance::Tolerance;

/// Arguments of `explore`.
#[derive(clap::Args, Debug)]
pub struct ExploreArgs {
    /// The scenario file.
    #[arg(long, value_name = "FILE")]
    pub scenario: PathBuf,
    /// A recorded execution or a schedule to explore around, instead of from the scenario's start. Its own order costs nothing.
    #[arg(long, value_name = "EXEC|FILE")]
    pub from: Option<PathBuf>,
    /// With --from: start after N of its deliveries.
    #[arg(long, value_name = "N", requires = "from", conflicts_with_all = ["every", "last"])]
    pub at: Option<u64>,
    /// With --from: start at its beginning and again after every N deliveries.
    #[arg(long, value_name = "N", requires = "from", conflicts_with = "last", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// With --from: start N deliveries before its violation, or before its end if there is none [default: 8].
    #[arg(long, value_name = "N", requires = "from")]
    pub last: Option<u64>,
    /// Number of threads [default: one per processor]. The result does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Continue the exploration in --out that was interrupted or whose budget ended. All other options must be as they were.
    #[arg(long)]
    pub resume: bool,
    /// The most that an execution may cost. Cheaper executions are explored first.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub bound: u32,
    /// The cost: deviation (1 for anything but the oldest), delay (1 for each choice passed over), or preempt (1 for leaving an actor that could
    /// continue).
    #[arg(long, value_name = "COST", default_value_t)]
    pub cost: Cost,
    /// The most faults in an execution: failures, restarts, actors cut off or reconnected, messages lost under fifo-loss, messages repeated if the
    /// network repeats them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub faults: u32,
    /// The number of client messages; replaces the scenario's.
    #[arg(long, value_name = "N")]
    pub externals: Option<u32>,
    /// The seed of the client messages.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The most steps in an execution.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,
    /// Continue after the first violation, to the cheapest execution of each. With --from it always does.
    #[arg(long)]
    pub all: bool,
    /// The most work to do: time (60s, 2m) or configurations (5000000states) [default: no limit].
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    pub network: Option<NetworkRule>,
    /// The folder for the summary, and for the logs and schedules of violations; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The outcome that counts as success in the exit status.
    #[arg(long, value_enum, default_value = "none", value_name = "OUTCOME")]
    pub expect: Expect,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub(crate) tolerance: Tolerance,
}

impl ExploreArgs {
    /// Whether to go on after the first violation. Around a recording always: its own violation would otherwise be all that is found.
    pub fn goes_on(&self) -> bool {
        self.all || self.from.is_some()
    }
}

/// The bounds that the arguments ask for.
pub fn bounds(args: &ExploreArgs) -> Bounds {
    Bounds { cost: args.cost, most: Spent { cost: args.bound, faults: args.faults, steps: args.depth } }
}

/// How to explore, from where an earlier exploration stopped.
pub fn options<'a>(args: &ExploreArgs, from: Option<&'a Saved>) -> ExploreOptions<'a> {
    let threads = || available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(threads, usize::from);
    ExploreOptions { all: args.goes_on(), jobs, from, ..ExploreOptions::default() }
}

/// What was explored from one beginning: after so many deliveries of the recording, or at the scenario's beginning.
pub struct Part {
    /// After how many deliveries.
    pub from: Option<u64>,
    /// What came of it.
    pub explored: Explored,
    /// What is written of each finding.
    pub found: Vec<Found>,
    /// How many client messages there were.
    pub clients: usize,
}

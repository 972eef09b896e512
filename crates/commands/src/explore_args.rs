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
    /// A recorded execution or a schedule: explore around it instead of from the scenario's beginning. Its own order costs nothing.
    #[arg(long, value_name = "EXEC|FILE")]
    pub from: Option<PathBuf>,
    /// With --from: begin after so many of its deliveries.
    #[arg(long, value_name = "N", requires = "from", conflicts_with_all = ["every", "last"])]
    pub at: Option<u64>,
    /// With --from: begin at the start and after every N deliveries.
    #[arg(long, value_name = "N", requires = "from", conflicts_with = "last", value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// With --from: begin so many deliveries before its violation, or its end where there is none [default: 8].
    #[arg(long, value_name = "N", requires = "from")]
    pub last: Option<u64>,
    /// Threads [default: one a processor]. They change nothing in the result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Go on with the exploration that --out holds and whose budget ended or that was interrupted. Everything else must be asked as it was then.
    #[arg(long)]
    pub resume: bool,
    /// Most that an execution may spend of the cost. All executions that spend less are looked at first.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub bound: u32,
    /// What is counted: deviation (1 for anything but the oldest), delay (1 for each choice passed over), or preempt (1 for leaving an
    /// actor that could go on).
    #[arg(long, value_name = "COST", default_value_t)]
    pub cost: Cost,
    /// Most faults in an execution: failures, restarts, actors cut off or back, messages lost under fifo-loss, messages repeated where the network does.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub faults: u32,
    /// Client messages, one after the other; replaces the scenario's number.
    #[arg(long, value_name = "N")]
    pub externals: Option<u32>,
    /// Decides what the client messages are.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Most steps in an execution.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,
    /// Go on after the first violation, to the cheapest execution of each. With --from it always does.
    #[arg(long)]
    pub all: bool,
    /// How much work to do at most: time (60s, 2m) or configurations (5000000states) [default: no limit].
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    pub network: Option<NetworkRule>,
    /// The folder for the summary, and for logs and schedules of what is found; what an earlier run wrote there is replaced.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Which outcome is success, as the exit status says it.
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

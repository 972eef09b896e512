//! `demi-lineage query`: questions about the partial order.

mod ask;
mod check;
#[cfg(feature = "plans")]
mod elsewhere;
mod sql;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use demi_lineage::query::Query;

pub use check::CheckedStates;

use super::engine::EngineArgs;
use super::incomplete::Incomplete;
use super::{Outcome, built};
use demi_commands::input::{Wanted, expect};
use demi_commands::ui::Ui;

/// Arguments of `query`.
#[derive(clap::Args, Debug)]
pub struct QueryArgs {
    /// The folder of an execution (from build), or an event store.
    #[arg(value_name = "EXEC|STORE", value_parser = built::place())]
    target: PathBuf,
    /// The recorded system, for a store that holds several.
    #[arg(long, value_name = "NAME", global = true)]
    system: Option<String>,
    /// Use only certain edges, without messages that were matched by content or after a loss.
    #[arg(long, global = true)]
    certain: bool,
    /// Refuse to answer if the logs have gaps, conflicts or quarantined lines, or stamps that run backwards; by default these are warnings.
    #[arg(long, global = true)]
    refuse_incomplete: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// Fetch the causal past of this event by the engine, and answer from that alone.
    #[arg(long, value_name = "EVENT", requires = "engine", global = true)]
    fetch: Option<String>,
    #[command(flatten)]
    sql: sql::SqlArgs,
    /// What to ask.
    #[command(subcommand)]
    ask: Option<ask::Ask>,
}

/// Runs `query`.
pub fn run(args: QueryArgs, ui: &Ui) -> Outcome {
    if !built::is_store(&args.target) {
        expect(&args.target, Wanted::Order)?;
    }
    if args.engine.elsewhere().is_some() {
        if !built::is_store(&args.target) {
            return Err("an engine finds causal pasts in a store, and this is none".into());
        }
        #[cfg(feature = "plans")]
        return elsewhere::run(&args, ui);
        #[cfg(not(feature = "plans"))]
        return Err(super::left_out("engine of plans", "plans"));
    }
    if args.fetch.is_some() {
        return Err("--fetch is for an engine: the local one has all events".into());
    }
    let mut order = built::order(&args.target, args.system.as_deref(), ui)?;
    match answer(&args, &order, ui) {
        Err(error) if order.mend(error.as_ref(), ui)? => {
            match args.ask.as_ref().is_some_and(ask::Ask::is_many) {
                // Some of it may have been answered.
                true => Err(format!("{error}; it was rebuilt: ask again").into()),
                false => answer(&args, &order, ui),
            }
        }
        done => done,
    }
}

fn answer(args: &QueryArgs, order: &built::Order, ui: &Ui) -> Outcome {
    let mut query = Query::open(&order.folder, args.certain)?;
    if let Some(events) = args.ask.as_ref().and_then(ask::Ask::many_pasts) {
        query.prepare_for_many(lines_of(events))?;
    }
    let incomplete = match order.incomplete()? {
        Some(incomplete) => incomplete,
        None => {
            Incomplete::of_order(&query, demi_lineage::execution::load_summary(&order.folder)?.backwards)?
        }
    };
    match args.refuse_incomplete {
        true => incomplete.refuse()?,
        false => incomplete.warn(ui),
    }
    let quarantine = order.quarantine_files()?;
    match (&args.ask, &args.sql.sql) {
        (Some(ask), None) => ask::run(ask, &query, ui),
        (None, Some(text)) => sql::run(text, &args.sql, quarantine, &query, ui),
        (Some(_), Some(_)) => Err("--sql and a question cannot be combined".into()),
        (None, None) => Err("nothing is asked: name a question (see --help) or give --sql".into()),
    }
}

/// Questions that who asks through a pipe is taken to have.
const PIPED: u64 = 1000;

/// How many lines a file has, about. What can be read only once, as standard input, is not looked at. Who reads the file says what is wrong with it.
fn lines_of(path: &Path) -> u64 {
    if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return PIPED;
    }
    let file = std::fs::File::open(path);
    file.map_or(0, |file| std::io::BufReader::new(file).split(b'\n').count() as u64)
}

/// Calls `f` with each line of a file (or of standard input, for `-`) that is not empty; errors name the line.
fn each_line(
    path: &Path,
    mut f: impl FnMut(&str) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let input: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => {
            Box::new(std::io::BufReader::new(std::fs::File::open(path).map_err(|e| format!("{name}: {e}"))?))
        }
    };
    for (i, line) in input.lines().enumerate() {
        let line = line.map_err(|e| format!("{name}:{}: {e}", i + 1))?;
        if !line.trim().is_empty() {
            f(&line).map_err(|e| format!("{name}:{}: {e}", i + 1))?;
        }
    }
    Ok(())
}

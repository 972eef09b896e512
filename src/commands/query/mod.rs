//! `demi-lineage query`: questions about the partial order.

mod ask;
mod check;
mod sql;

use std::io::BufRead;
use std::path::{Path, PathBuf};

use demi_lineage::query::{Query, Refreshed};

use super::Outcome;
use crate::ui::Ui;

/// Arguments of `query`.
#[derive(clap::Args, Debug)]
pub struct QueryArgs {
    /// The folder of an execution (from build), or an event store.
    #[arg(value_name = "EXEC_OR_STORE")]
    target: PathBuf,
    /// The recorded system; for a store that holds several.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// Only edges that could not be otherwise: matches by content or after loss are left out.
    #[arg(long, global = true)]
    certain: bool,
    #[command(flatten)]
    sql: sql::SqlArgs,
    /// What to ask.
    #[command(subcommand)]
    ask: Option<ask::Ask>,
}

/// Runs `query`.
pub fn run(args: QueryArgs, ui: &Ui) -> Outcome {
    let folder = folder(&args, ui)?;
    let query = Query::open(&folder, args.certain)?;
    match (&args.ask, &args.sql.sql) {
        (Some(ask), None) => ask::run(ask, &query, ui),
        (None, Some(text)) => sql::run(text, &args.sql, &query),
        (Some(_), Some(_)) => Err("--sql and a question cannot be asked at once".into()),
        (None, None) => Err("nothing is asked: name a question (see --help) or give --sql".into()),
    }
}

/// The execution's folder; that of a store is built when it is not there or events were added.
fn folder(args: &QueryArgs, ui: &Ui) -> Result<PathBuf, Box<dyn std::error::Error>> {
    if !args.target.join("events").join("_delta_log").is_dir() {
        return Ok(args.target.clone());
    }
    let store = demi_ingest::Store::open(&args.target)?;
    let systems = store.systems()?;
    let system = match (&args.system, systems.as_slice()) {
        (Some(system), _) => system.clone(),
        (None, [only]) => only.clone(),
        (None, []) => return Err("the store holds no events".into()),
        (None, many) => return Err(format!("name one with --system: {}", many.join(", ")).into()),
    };
    let folder = store.dir().join("lineage").join(&system);
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let built = demi_lineage::query::refresh(&store.event_files(&system)?, &system, &folder, &mut say);
    bar.finish_and_clear();
    match built? {
        Refreshed::Current => {}
        Refreshed::Grown => ui.note(&format!("added new events to {}", folder.display())),
        Refreshed::Built(why) => ui.note(&format!("built {} of all events: {why}", folder.display())),
    }
    Ok(folder)
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

//! `demi-lineage build`: partial order, violation, causal past, execution.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_order::{BuildOptions, ViolationSpec};
use demi_schemas::summary::{BuildSummary, ProvenanceRule};

use super::Outcome;
use super::incomplete::Incomplete;
use demi_lineage::ui::Ui;

/// Arguments of `build`.
#[derive(clap::Args, Debug)]
pub struct BuildArgs {
    /// The event store.
    #[arg(long, value_name = "DIR", env = "DEMI_STORE")]
    store: PathBuf,
    /// The recorded system; may be left out where the store holds only one.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// The violation: event:ACTOR/SEQ (of several actors with commas between them) or actors:A,B, or none to build the order alone. By default the
    /// violation records in the logs; if there are several, all their actors together.
    #[arg(long, value_name = "SPEC")]
    violation: Option<ViolationSpec>,
    /// Which events of the actors in the violation are kept.
    #[arg(long, value_enum, default_value_t = Rule::Inclusive)]
    rule: Rule,
    /// The folder to write the execution to; an older execution there is replaced.
    #[arg(long, value_name = "EXEC")]
    out: PathBuf,
    /// Write a copy of all records to events.parquet and messages.parquet, in order, for other tools. Without this the execution refers to
    /// the store's files, which it holds by second names: a merge or deletion in the store takes nothing from it.
    #[arg(long)]
    copy: bool,
    /// Refuse to build where the logs have gaps, conflicts or quarantined lines, or stamps that run backwards; without this they are warned of.
    #[arg(long)]
    refuse_incomplete: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// The rule of the causal past.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Their last events, and everything that happens before these.
    Inclusive,
    /// Only what happens before the last delivery of at least one of them (DEMi's rule).
    Strict,
}

/// Runs `build`.
pub fn run(args: BuildArgs, ui: &Ui) -> Outcome {
    let mut store = demi_ingest::Store::open(&args.store)?;
    let system = super::built::system(&store, args.system.as_deref())?;
    let quarantined = demi_ingest::quarantined(&store, Some(&system))?;
    if args.refuse_incomplete {
        Incomplete::of_store(&store, &system)?.refuse()?;
    }
    let options = BuildOptions {
        system: system.clone(),
        violation: args.violation.unwrap_or_default(),
        readable: BuildOptions::default().readable,
        copy: args.copy,
        backwards: demi_ingest::backward_stamps(&store, &system)?,
        rule: match args.rule {
            Rule::Inclusive => ProvenanceRule::Inclusive,
            Rule::Strict => ProvenanceRule::Strict,
        },
    };
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let result = super::built::with_files(&mut store, &system, |files| {
        demi_order::build(files, &options, &args.out, &mut say).map_err(Into::into)
    });
    bar.finish_and_clear();
    let summary = result?;
    // Who deletes events is told of it. A store that cannot be written is built of all the same.
    let _ = store.note_execution(&args.out);
    if args.json {
        ui.json(&summary)?;
    } else {
        ui.result(&describe(&summary, &args.out.display().to_string()));
    }
    let query = demi_order::query::Query::open(&args.out, false)?;
    Incomplete::of_order(&query, quarantined, summary.backwards.clone())?.warn(ui);
    for warning in &summary.warnings {
        ui.note(&format!("warning: {warning}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(s: &BuildSummary, out: &str) -> String {
    let u = &s.unmatched;
    let violation = match (s.violation.is_empty(), s.affected.is_empty()) {
        (true, true) => "violation: none is singled out, so everything is kept".to_owned(),
        (true, false) => format!("violation: without a name, at {}", s.affected.join(", ")),
        (false, _) => format!("violation: {} at {}", s.violation.join(", "), s.affected.join(", ")),
    };
    let order = if s.channels_in_order { "in order" } else { "not all in order" };
    format!(
        "{}: {} events, {} deliveries, longest chain {}\n\
         messages: {} matched; unmatched: {} in flight, {} lost, {} sender missing, {} duplicate, {} from outside; channels {order}\n\
         {violation}\n\
         kept {} of {} deliveries ({} of {} events)\n\
         wrote {out}",
        s.system,
        s.events,
        s.deliveries,
        s.depth,
        s.matched,
        u.in_flight,
        u.lost,
        u.sender_missing,
        u.duplicate,
        u.external,
        s.kept_deliveries,
        s.deliveries,
        s.kept,
        s.events,
    )
}

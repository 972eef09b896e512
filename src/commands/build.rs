//! `demi-lineage build`: partial order, violation, causal past, execution.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_order::{BuildOptions, ViolationSpec};
use demi_schemas::summary::{AgainstStamps, BuildSummary, ProvenanceRule, StampCheck};

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
    /// Warn where the order runs against the stamps of the logs and no constant difference between clocks explains it: messages there and back
    /// between two actors. Without this only the figures are printed.
    #[arg(long)]
    check_stamps: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Most pairs of actors whose stamps contradict that are named.
const NAMED: usize = 5;

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
    let checked = if args.check_stamps { against_stamps(summary.stamps.as_ref()) } else { Vec::new() };
    for warning in summary.warnings.iter().chain(&checked) {
        ui.note(&format!("warning: {warning}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A time in the unit that suits it.
fn time(nanos: u64) -> String {
    let (unit, size) = match nanos {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("µs", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let text = format!("{:.1}", nanos as f64 / f64::from(size));
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// What no constant difference between clocks explains.
fn against_stamps(check: Option<&StampCheck>) -> Vec<String> {
    let Some(check) = check.filter(|check| check.stamped > 0) else {
        return vec!["no event has a stamp that can be read; the order is compared with none".to_owned()];
    };
    if check.edges.compared + check.logs.compared == 0 {
        return vec![format!(
            "the order is compared with no stamps: of {} events they can be read, but no certain edge between logs and no step in a log has them \
             at both ends",
            check.stamped
        )];
    }
    let contradictions = check.contradictions.iter().take(NAMED).map(|found| {
        let ([sent, received], [sent_back, received_back]) = (&found.there, &found.back);
        format!(
            "no constant difference between two clocks explains the stamps of {sent} -> {received} and {sent_back} -> {received_back}, by {}: a \
             clock was set, or events were joined or ordered wrongly",
            time(found.nanos)
        )
    });
    let mut found: Vec<String> = contradictions.collect();
    if let Some(more) = check.contradictions.len().checked_sub(NAMED).filter(|more| *more > 0) {
        found.push(format!("so it is with {more} other pairs of actors"));
    }
    found
}

/// What is said of stamps that the order runs against, if it does: a line each.
fn stamps(check: &StampCheck) -> String {
    let mut lines = String::new();
    let AgainstStamps { compared, against, first: [cause, effect], most: [from, to], most_nanos } =
        &check.edges;
    if *against > 0 {
        let why = match check.contradictions.len() {
            0 => "constant differences between clocks explain it".to_owned(),
            1 => "of 1 pair of actors no constant difference between clocks explains it (--check-stamps)"
                .to_owned(),
            n => format!(
                "of {n} pairs of actors no constant difference between clocks explains it (--check-stamps)"
            ),
        };
        lines.push_str(&format!(
            "stamps: {against} of {compared} certain edges run against those of both ends (first {cause} -> {effect}; most {from} -> {to}, by {}); \
             {why}\n",
            time(*most_nanos)
        ));
    }
    lines
}

fn describe(s: &BuildSummary, out: &str) -> String {
    let u = &s.unmatched;
    let violation = match (s.violation.is_empty(), s.affected.is_empty()) {
        (true, true) => "violation: none is singled out, so everything is kept".to_owned(),
        (true, false) => format!("violation: without a name, at {}", s.affected.join(", ")),
        (false, _) => format!("violation: {} at {}", s.violation.join(", "), s.affected.join(", ")),
    };
    let order = if s.channels_in_order { "in order" } else { "not all in order" };
    let edges = match (s.clock_edges, s.span_edges) {
        (0, 0) => String::new(),
        (clocks, spans) => {
            format!("edges that are no messages: {clocks} by vector clocks, {spans} by spans\n")
        }
    };
    format!(
        "{}: {} events, {} deliveries, longest chain {}\n\
         messages: {} matched; unmatched: {} in flight, {} lost, {} sender missing, {} duplicate, {} from outside; channels {order}\n\
         {edges}{}{violation}\n\
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
        s.stamps.as_ref().map(stamps).unwrap_or_default(),
        s.kept_deliveries,
        s.deliveries,
        s.kept,
        s.events,
    )
}

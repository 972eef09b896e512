//! `demi-lineage build`: partial order, violation, causal past, execution.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_lineage::window::Window;
use demi_lineage::{BuildOptions, ViolationSpec};
use demi_schemas::EventId;
use demi_schemas::summary::{
    AgainstStamps, Beginning, BuildSummary, ProvenanceRule, StampCheck, WindowSummary,
};

use super::Outcome;
use super::built::Built;
use super::engine::{self, EngineArgs, ExplainArgs};
use super::incomplete::Incomplete;
use super::logs::LogArgs;
use demi_commands::ui::Ui;

/// Arguments of `build`.
#[derive(clap::Args)]
pub struct BuildArgs {
    #[command(flatten)]
    logs: LogArgs,
    /// The event store, in place of logs [default: the environment variable DEMI_STORE].
    #[arg(long, value_name = "DIR|URL", conflicts_with = "logs", value_parser = super::built::place())]
    store: Option<PathBuf>,
    /// The recorded system; optional if the store holds only one. For logs, the name to give it.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// The violation: event:ACTOR/SEQ (for several actors, separated by commas), record:ACTOR/SEQ for one violation record, line:FILE:LINE for the
    /// event that a line of a log became, text:REGEX for the first event that holds a text, actors:A,B, or none to build only the order. The default is the violation records in the logs; if there are several, all their actors together.
    #[arg(long, value_name = "SPEC")]
    violation: Option<ViolationSpec>,
    #[command(flatten)]
    window: WindowArgs,
    /// The events that are kept of the actors in the violation.
    #[arg(long, value_enum, default_value_t = Rule::Inclusive)]
    rule: Rule,
    /// The folder to write the execution to; an older execution there is replaced.
    #[arg(long, value_name = "EXEC", required_unless_present = "explain_sql")]
    out: Option<PathBuf>,
    /// Write a copy of all records to events.parquet and messages.parquet, in order, for other tools. By default the execution refers to the files of
    /// the store through hard links, so that a merge or deletion in the store does not affect it.
    #[arg(long)]
    copy: bool,
    /// Refuse to build if the logs have gaps, conflicts or quarantined lines, or stamps that run backwards; by default these are warnings.
    #[arg(long)]
    refuse_incomplete: bool,
    /// Warn if the order contradicts the stamps of the logs in a way that no constant difference between clocks explains: messages to and fro between
    /// two actors. By default only the figures are printed.
    #[arg(long)]
    check_stamps: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    explain: ExplainArgs,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// Most pairs of actors whose stamps contradict that are named.
const NAMED: usize = 5;

/// Which part of the events to build. It begins and ends at consistent cuts: at the largest one at or before what is asked for.
#[derive(clap::Args, Clone, Debug, Default)]
struct WindowArgs {
    /// Build only the last N events, by their times; with --around the N nearest to that event [default there: 1000000]. The messages that were on their way
    /// at the beginning are brought along. An execution that begins after the start of the system cannot be replayed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,
    /// Build only what happened at this time or later, by the clock of each log.
    #[arg(long, value_name = "TIME", conflicts_with = "last")]
    since: Option<String>,
    /// Build only what happened at this time or earlier, by the clock of each log.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Build only the events around this one, as many before as after it.
    #[arg(long, value_name = "EVENT", conflicts_with_all = ["since", "until"])]
    around: Option<String>,
}

impl WindowArgs {
    fn window(&self) -> Result<Window, Box<dyn Error>> {
        let WindowArgs { last, since, until, around } = self.clone();
        let around = around.map(|event| EventId::readings(&event)).transpose()?.unwrap_or_default();
        Ok(Window { last, since, until, around })
    }
}

/// The rule of the causal past.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Their last events, and everything that happens before these.
    Inclusive,
    /// Only what happens before the last delivery of at least one of them (DEMi's rule).
    Strict,
}

impl BuildArgs {
    /// The folder to write the execution to.
    fn out(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new(""))
    }
}

/// Runs `build`.
pub fn run(args: BuildArgs, ui: &Ui) -> Outcome {
    if args.explain.slice(ui)? {
        return Ok(ExitCode::SUCCESS);
    }
    let options = BuildOptions {
        violation: args.violation.clone().unwrap_or_default(),
        copy: args.copy,
        rule: match args.rule {
            Rule::Inclusive => ProvenanceRule::Inclusive,
            Rule::Strict => ProvenanceRule::Strict,
        },
        ..BuildOptions::default()
    };
    if !args.logs.logs.is_empty() {
        if args.engine.elsewhere().is_some() {
            return Err("an engine finds causal pasts in a store: name one with --store".into());
        }
        return of_logs(&args, options, ui);
    }
    let named =
        std::env::var_os("DEMI_STORE").map(|place| super::built::folder_of(place.as_ref())).transpose()?;
    let store = args.store.clone().or(named);
    let Some(store) = store else {
        return Err("nothing to build from: name logs, or an event store with --store".into());
    };
    if args.logs.says_how() {
        return Err("a mapping is for logs: the records of a store were mapped when they were loaded".into());
    }
    let window = args.window.window()?;
    let refuse = args.refuse_incomplete;
    let built = match args.engine.elsewhere() {
        Some(_) if !window.is_everything() => {
            return Err("an engine finds the whole causal past: a window is for the local engine".into());
        }
        Some(_) => on_engine(&args, &store, options, ui)?,
        None => {
            super::built::build(&store, args.system.as_deref(), options, &window, refuse, args.out(), ui)?
        }
    };
    built.note(args.out());
    tell(&args, &built.summary, None, &built.incomplete, ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds an execution of the causal past that an engine finds. It refers to a file of these events that is its own.
fn on_engine(
    args: &BuildArgs,
    store: &Path,
    mut options: BuildOptions,
    ui: &Ui,
) -> Result<Built, Box<dyn Error>> {
    let beside = args.out().parent().filter(|parent| parent.is_dir()).unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".demi-plans-").tempdir_in(beside)?;
    let (system, violation) = (args.system.as_deref(), options.violation.clone());
    let files = engine::fetch(&args.engine, store, system, &violation, scratch.path(), &mut options, ui)?;
    let files = files.into_iter().map(Into::into).collect();
    super::built::build_of(store, files, options, args.refuse_incomplete, args.out(), ui)
}

/// Builds an execution of logs. It refers to a file of their events that is its own.
fn of_logs(args: &BuildArgs, mut options: BuildOptions, ui: &Ui) -> Outcome {
    let logs = args.logs.read(args.system.as_deref(), args.out(), ui)?;
    let damaged = logs.damaged(ui);
    let quarantined = logs.quarantined()?;
    options.backwards = logs.backwards().to_vec();
    logs.system().clone_into(&mut options.system);
    let incomplete = Incomplete::of_logs(logs.actors(), quarantined, options.backwards.clone());
    if args.refuse_incomplete {
        incomplete.refuse()?;
    }
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let built =
        super::find::build_window(logs.files(), options, &args.window.window()?, args.out(), &mut say);
    bar.finish_and_clear();
    tell(args, &built?, Some(&logs.in_words()), &incomplete, ui)?;
    Ok(if damaged { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// Says what was built, and what is odd about it.
fn tell(
    args: &BuildArgs,
    summary: &BuildSummary,
    read: Option<&str>,
    incomplete: &Incomplete,
    ui: &Ui,
) -> Result<(), Box<dyn Error>> {
    if args.json {
        ui.json(summary)?;
    } else {
        let described = describe(summary, &args.out().display().to_string());
        ui.result(&read.map_or_else(|| described.clone(), |read| format!("{read}\n{described}")));
    }
    incomplete.warn(ui);
    let checked = if args.check_stamps { against_stamps(summary.stamps.as_ref()) } else { Vec::new() };
    for warning in summary.warnings.iter().chain(&checked) {
        ui.note(&format!("warning: {warning}"));
    }
    Ok(())
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
        return vec!["no event has a readable time stamp, so the order is not compared with time".to_owned()];
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

/// What is said of a part of the events, a line each.
fn in_window(window: &WindowSummary) -> String {
    let WindowSummary { asked, begins, before, after, in_flight, states, untimed, .. } = window;
    let mut text = format!("window: {asked}; left out: {before} events before it, {after} after it\n");
    match begins {
        Beginning::Start => text.push_str("it begins at the start of the system\n"),
        Beginning::Ground => text.push_str("it begins at a consistent cut with no message on its way"),
        Beginning::Cut => text.push_str(&format!(
            "it begins at a consistent cut with {in_flight} messages and timers on their way, whose sends are brought along"
        )),
    }
    if *begins != Beginning::Start {
        text.push_str(&format!(
            " (and {states} records that tell the last states before it), so it cannot be replayed\n"
        ));
    }
    if *untimed > 0 {
        text.push_str(&format!(
            "{untimed} events have no time that can be read: they are before the beginning unless they come after something in the window\n"
        ));
    }
    text
}

fn describe(s: &BuildSummary, out: &str) -> String {
    let u = &s.unmatched;
    let violation = match (s.violation.is_empty(), s.affected.is_empty()) {
        (true, true) => "violation: none is given, so everything is kept".to_owned(),
        (true, false) => format!("violation: without a name, at {}", s.affected.join(", ")),
        (false, _) => format!("violation: {} at {}", s.violation.join(", "), s.affected.join(", ")),
    };
    let order = if s.channels_in_order { "in order" } else { "not all in order" };
    let by = [
        (s.clock_edges, "vector clocks"),
        (s.span_edges, "spans"),
        (s.operation_edges, "operations of threads"),
    ];
    let by: Vec<String> =
        by.iter().filter(|(edges, _)| *edges > 0).map(|(edges, what)| format!("{edges} by {what}")).collect();
    let edges =
        if by.is_empty() { String::new() } else { format!("edges besides messages: {}\n", by.join(", ")) };
    let plan = s.plan.as_ref().map_or_else(String::new, |plan| {
        let counted =
            |n: Option<u64>, what: &str| n.map_or_else(String::new, |n| format!(", {n} {what} read"));
        let by = if plan.closed_by == "driver" {
            format!(", then {} messages fetched", plan.fetched)
        } else {
            String::new()
        };
        format!(
            "past found by {} in {} rounds{by}{}{}\n",
            plan.engine,
            plan.rounds,
            counted(plan.rows_read, "rows"),
            counted(plan.bytes_read, "bytes")
        )
    });
    format!(
        "{plan}{}: {} events, {} deliveries, longest chain {}\n\
         messages: {} matched; unmatched: {} in flight, {} lost, {} sender missing, {} duplicate, {} from outside; channels {order}\n\
         {edges}{}{}{violation}\n\
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
        s.window.as_ref().map(in_window).unwrap_or_default(),
        s.kept_deliveries,
        s.deliveries,
        s.kept,
        s.events,
    )
}

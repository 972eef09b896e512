//! `demi-lineage incident`: violations that become pages, messages, and bugs that stay known.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use demi_common::Table;
use demi_common::text::{printable, printable_lines};
use demi_incidents::bundle;
use demi_incidents::decide::Worker;
use demi_incidents::event::{Event, Input, Opened, Source};
use demi_incidents::forget;
use demi_incidents::models::{Limits, Models};
use demi_incidents::replays::{self, On, ReplayedView, Verdict};
use demi_incidents::retention;
use demi_incidents::view::{self, Filter};
#[cfg(feature = "store")]
use demi_incidents::watch::Watch;
use demi_incidents::work::{Setup, Turn, Workshop};
use demi_incidents::{Anywhere, IncidentId, Journal, Place, State, Status, Work, uploads};

use super::Outcome;
#[cfg(not(feature = "store"))]
use super::incident_watch_without_store::Watch;
use demi_commands::ui::Ui;

/// What to do with incidents.
#[derive(Subcommand)]
pub enum IncidentCommand {
    /// Open an incident, of logs, of an execution, or of a system in the store; its id is printed.
    Open(OpenArgs),
    /// List bugs, or incidents; exit status 1 if a bug is open.
    List(ListArgs),
    /// Show an incident or a bug as text: what broke, the steps, what is proven.
    Show(ShowArgs),
    /// Work on incidents: build, replay, minimize and verify each, make its page, and find its bug.
    Work(WorkArgs),
    /// Serve pages of bugs and incidents, and requests of programs, until it is interrupted; the address is printed.
    Serve(ServeArgs),
    /// Say that you look after a bug.
    Ack(BugArgs),
    /// Say that a bug is repaired.
    Close(CloseArgs),
    /// Say that a bug is not repaired after all.
    Reopen(BugArgs),
    /// Hear nothing more of a bug.
    Mute(BugArgs),
    /// Hear of a bug again.
    Unmute(BugArgs),
    /// Write a note on a bug.
    Note(NoteArgs),
    /// Say how important a bug is: low, normal, high or urgent.
    Priority(NoteArgs),
    /// Say that two bugs are one: the first becomes part of the second.
    Merge(MergeArgs),
    /// Say that some incidents of a bug are another bug.
    Split(SplitArgs),
    /// Work on an incident again, with all its tries.
    Retry(RetryArgs),
    /// Replay the schedules of known bugs on a model, as a regression suite. Exit status 1 if one still violates, 4 if that is not known of one.
    Replay(ReplayArgs),
    /// Write an incident as one file, to give to somebody else: the execution, the shortest schedule, its proof, and the page.
    Bundle(BundleArgs),
    /// Take in a bundle that somebody gives, as an incident of this store; its id is printed. Nothing that it says of itself is believed, and nothing runs.
    Import(ImportArgs),
    /// Forget incidents for good: their files, and what the journal says of them. What stays are class and number.
    Purge(PurgeArgs),
    /// Make room: remove files of incidents, the oldest of the most frequent bugs first. What stands for a bug stays.
    Sweep(SweepArgs),
    /// Read the whole journal, and compare every published file with its digest; exit status 1 if something is missing or damaged.
    Verify(StoreArgs),
}

/// Where incidents are.
#[derive(Args)]
pub struct StoreArgs {
    /// The folder whose incidents they are: an event store, on object storage too, or any folder.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
}

impl StoreArgs {
    fn place(&self) -> Place {
        Place::of(&self.store)
    }

    fn journal(&self) -> Result<Journal<Anywhere>, Box<dyn Error>> {
        Ok(Anywhere::journal(&self.place(), whoever())?)
    }
}

/// Arguments of `incident open`.
#[derive(Args)]
pub struct OpenArgs {
    /// Logs of event records; they are copied. Without logs and --execution, the system's events in the store.
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// An execution that build wrote, in place of logs; it is copied.
    #[arg(long, value_name = "EXEC", conflicts_with = "logs")]
    execution: Option<PathBuf>,
    /// The mapping that reads the logs, of those that come with the program, where they are no event records.
    #[arg(long, value_name = "NAME", conflicts_with = "execution", value_parser = PossibleValuesParser::new(mappings()), hide_possible_values = true)]
    mapping: Option<String>,
    /// Refuse a log that unpacks to more than this.
    #[arg(long, value_name = "AMOUNT", default_value = "16GiB", value_parser = amount)]
    most_unpacked: u64,
    /// The recorded system.
    #[arg(long, value_name = "NAME")]
    system: String,
    /// The events at which the execution ends, as ACTOR/SEQ; may be given several times. The default is what the violation records say.
    #[arg(long, value_name = "EVENT")]
    at: Vec<String>,
    /// An actor whose state breaks the invariant; may be given several times.
    #[arg(long, value_name = "ACTOR")]
    affected: Vec<String>,
    /// The name of the invariant.
    #[arg(long, value_name = "NAME", default_value = "")]
    invariant: String,
    /// A sentence for people.
    #[arg(long, value_name = "TEXT", default_value = "")]
    title: String,
    /// The version of the system.
    #[arg(long, value_name = "VERSION")]
    system_version: Option<String>,
    /// How bad it is; critical and urgent come before others.
    #[arg(long, value_name = "WORD")]
    severity: Option<String>,
    /// The scenario file of the model; by default the worker's models say which one takes it.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// With --scenario: the budget of the search for the shortest way, as for minimize.
    #[arg(long, value_name = "BUDGET", requires = "scenario")]
    budget: Option<String>,
}

/// Arguments of `incident list`.
#[derive(Args)]
pub struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// List incidents in place of bugs.
    #[arg(long)]
    incidents: bool,
    /// Only of systems that fit this pattern, in which * stands for any text.
    #[arg(long, value_name = "GLOB")]
    system: Option<String>,
    /// Only of invariants that fit this pattern.
    #[arg(long, value_name = "GLOB")]
    invariant: Option<String>,
    /// Only bugs of this status: new, acknowledged, resolved, regressed or merged.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `incident show`.
#[derive(Args)]
pub struct ShowArgs {
    /// An incident or a bug, such as I-3K7QZZ or B-17.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `incident work`.
#[derive(Args)]
pub struct WorkArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// A file with a table [models.NAME] for each model.
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// Only systems that fit this pattern; may be given several times.
    #[arg(long, value_name = "GLOB")]
    systems: Vec<String>,
    /// Threads of a search [default: all cores].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// End when nothing is left to do.
    #[arg(long)]
    once: bool,
    /// After how many seconds without a sign of life the worker of an incident is taken for lost.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    lease: u64,
    /// How many seconds a violation record has to be in the store before its past is taken for complete.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    settle: u64,
}

/// Arguments of `incident serve`.
#[derive(Args)]
pub struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Address and port; port 0 picks a free one. Other addresses than those of this machine need --token-file.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9467")]
    listen: std::net::SocketAddr,
    /// A file of tokens, one a line: requests show one, and browsers log in with one.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A certificate (PEM), for TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key (PEM) of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A file with a table [models.NAME] for each model on which bugs may be replayed by POST /v1/replays.
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
}

/// Arguments of commands on one bug.
#[derive(Args)]
pub struct BugArgs {
    /// The bug, such as B-17.
    #[arg(value_name = "BUG", value_parser = bug_number)]
    bug: u32,
    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `incident close`.
#[derive(Args)]
pub struct CloseArgs {
    #[command(flatten)]
    bug: BugArgs,
    /// The version from which on it does not happen. An occurrence in an older version is counted, one in this or a later version opens it again.
    #[arg(long, value_name = "VERSION")]
    fixed_in: Option<String>,
    /// The scenario file of the repaired model: the bug's schedules are replayed on it, and the bug stays open if one still violates.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

/// Arguments of commands with a text.
#[derive(Args)]
pub struct NoteArgs {
    #[command(flatten)]
    bug: BugArgs,
    /// The text.
    #[arg(value_name = "TEXT")]
    text: String,
}

/// Arguments of `incident merge`.
#[derive(Args)]
pub struct MergeArgs {
    #[command(flatten)]
    bug: BugArgs,
    /// The bug that stays.
    #[arg(value_name = "INTO", value_parser = bug_number)]
    into: u32,
}

/// Arguments of `incident split`.
#[derive(Args)]
pub struct SplitArgs {
    #[command(flatten)]
    bug: BugArgs,
    /// The incidents that leave.
    #[arg(value_name = "INCIDENT", required = true)]
    incidents: Vec<String>,
}

/// Arguments of `incident retry`.
#[derive(Args)]
pub struct RetryArgs {
    /// The incident.
    #[arg(value_name = "INCIDENT")]
    name: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `incident replay`.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["all", "bugs"]))]
pub struct ReplayArgs {
    /// Bugs, such as B-17.
    #[arg(value_name = "BUG", value_parser = bug_number)]
    bugs: Vec<u32>,
    #[command(flatten)]
    store: StoreArgs,
    /// All bugs that are of the scenario's model.
    #[arg(long)]
    all: bool,
    /// The scenario file of the model to replay on, such as the repaired one.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    /// Write the verdicts as JUnit has them, for CI.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `incident sweep`.
#[derive(Args)]
pub struct SweepArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// How much room incidents and what was brought for them may take.
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    space: u64,
}

/// Arguments of `incident bundle`.
#[derive(Args)]
pub struct BundleArgs {
    /// The incident, or a bug, whose shortest schedule is given.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    store: StoreArgs,
    /// The file to write, a tar archive packed by zstd.
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

/// Arguments of `incident import`.
#[derive(Args)]
pub struct ImportArgs {
    /// The bundle.
    #[arg(value_name = "FILE")]
    bundle: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    /// Refuse a bundle that unpacks to more than this.
    #[arg(long, value_name = "AMOUNT", default_value = "16GiB", value_parser = amount)]
    most_unpacked: u64,
}

/// Arguments of `incident purge`.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["system", "actor", "before", "incidents"]))]
pub struct PurgeArgs {
    /// Incidents.
    #[arg(value_name = "INCIDENT")]
    incidents: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// All incidents of this system.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// All incidents in which this actor, or any other name, stands: in what is known of them, their executions and pages, or logs that were brought.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new(), value_name = "NAME")]
    actor: Option<String>,
    /// All incidents that were opened before this day (UTC), as 2026-01-31.
    #[arg(long, value_name = "DATE")]
    before: Option<chrono::NaiveDate>,
}

fn mappings() -> impl Iterator<Item = &'static str> {
    demi_formats::mapping::shipped().iter().map(|shipped| shipped.name)
}

fn amount(text: &str) -> Result<u64, String> {
    demi_incidents::work::bytes(text).ok_or_else(|| format!("'{text}' is no amount, such as 512MiB or 4GiB"))
}

fn bug_number(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("B-").unwrap_or(text);
    number.parse().map_err(|_| format!("'{text}' is no bug, such as B-17"))
}

/// Who writes: the user, machine and process.
fn whoever() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned());
    format!("{user}:{}", std::process::id())
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned())
}

/// Runs the command.
pub fn run(command: IncidentCommand, ui: &Ui) -> Outcome {
    match command {
        IncidentCommand::Open(args) => open(&args, ui),
        IncidentCommand::List(args) => list(&args, ui),
        IncidentCommand::Show(args) => show(&args, ui),
        IncidentCommand::Work(args) => work(&args, ui),
        IncidentCommand::Serve(args) => serve(args, ui),
        IncidentCommand::Ack(args) => say(&args, ui, |bug, by| Event::Acked { bug, by }),
        IncidentCommand::Close(args) => close(args, ui),
        IncidentCommand::Reopen(args) => say(&args, ui, |bug, by| Event::Reopened { bug, by }),
        IncidentCommand::Mute(args) => say(&args, ui, |bug, by| Event::Muted { bug, by, on: true }),
        IncidentCommand::Unmute(args) => say(&args, ui, |bug, by| Event::Muted { bug, by, on: false }),
        IncidentCommand::Note(args) => {
            say(&args.bug, ui, |bug, by| Event::Noted { bug, by, text: args.text })
        }
        IncidentCommand::Priority(args) => {
            say(&args.bug, ui, |bug, by| Event::Priority { bug, by, to: args.text })
        }
        IncidentCommand::Merge(args) => {
            say(&args.bug, ui, |bug, by| Event::Merged { bug, into: args.into, by })
        }
        IncidentCommand::Split(args) => {
            let journal = args.bug.store.journal()?;
            let ids = args.incidents.iter().map(|name| find(&journal.state(), name));
            let ids = ids.collect::<Result<Vec<_>, _>>()?;
            say(&args.bug, ui, |bug, by| Event::Split { bug, ids, by })
        }
        IncidentCommand::Retry(args) => {
            let mut journal = args.store.journal()?;
            let id = find(&journal.state(), &args.name)?;
            write(&mut journal, &Event::Retry { id, by: user() }, ui)
        }
        IncidentCommand::Replay(args) => replay(&args, ui),
        IncidentCommand::Bundle(args) => {
            let journal = args.store.journal()?;
            let state = journal.state();
            let incident =
                state.incidents().get(&named(&state, &args.name)?).ok_or("there is no such incident")?;
            super::replace_file(&args.out, |file| Ok(bundle::write(incident, &args.store.place(), file)?))?;
            ui.note(&format!("wrote {}", args.out.display()));
            Ok(ExitCode::SUCCESS)
        }
        IncidentCommand::Import(args) => {
            let mut journal = args.store.journal()?;
            let taken = bundle::import(&mut journal, &args.store.place(), &args.bundle, args.most_unpacked);
            let (id, new) = taken.map_err(|error| format!("{}: {error}", args.bundle.display()))?;
            if !new {
                ui.note("it was here before");
            }
            ui.result(&id.to_string());
            Ok(ExitCode::SUCCESS)
        }
        IncidentCommand::Purge(args) => purge(&args, ui),
        IncidentCommand::Sweep(args) => {
            let mut journal = args.store.journal()?;
            let gone = retention::sweep(&mut journal, &args.store.place(), args.space)?;
            while journal.pack(PACKS)? > 0 {}
            ui.result(&format!("files of {gone} incidents are removed"));
            Ok(ExitCode::SUCCESS)
        }
        IncidentCommand::Verify(args) => verify(&args, ui),
    }
}

fn find(state: &State, name: &str) -> Result<IncidentId, String> {
    state.find(name).ok_or_else(|| format!("there is no incident '{}', or several begin so", printable(name)))
}

/// The incident of this name, or the one that stands for the bug of this name.
fn named(state: &State, name: &str) -> Result<IncidentId, String> {
    let number: Option<u32> = name.strip_prefix("B-").and_then(|number| number.parse().ok());
    match number {
        Some(number) => {
            let (_, bug) = state.bug(number).ok_or_else(|| format!("there is no bug B-{number}"))?;
            Ok(bug.representative())
        }
        None => find(state, name),
    }
}

fn open(args: &OpenArgs, ui: &Ui) -> Outcome {
    let place = args.store.place();
    let input = match (&args.execution, args.logs.as_slice()) {
        (Some(execution), _) => {
            Input::Execution { upload: uploads::keep(&place, std::slice::from_ref(execution))? }
        }
        (None, []) => Input::Store,
        (None, logs) => {
            for log in logs {
                uploads::check_unpacked(log, args.most_unpacked)
                    .map_err(|e| format!("{}: {e}", log.display()))?;
            }
            Input::Logs { upload: uploads::keep(&place, logs)?, mapping: args.mapping.clone() }
        }
    };
    let brought = match &input {
        Input::Store => "store".to_owned(),
        Input::Logs { upload, mapping: Some(mapping) } => format!("{upload} {mapping}"),
        Input::Logs { upload, mapping: None } | Input::Execution { upload } => upload.clone(),
    };
    let at = args.at.join(",");
    let affected = args.affected.join(",");
    let parts = ["command", &args.system, &args.invariant, &at, &affected, &brought];
    let mut opened = Opened::new(IncidentId::of(&parts), Source::Command, &args.system);
    opened.input = input;
    opened.invariant.clone_from(&args.invariant);
    opened.title.clone_from(&args.title);
    opened.at.clone_from(&args.at);
    opened.affected.clone_from(&args.affected);
    opened.version.clone_from(&args.system_version);
    opened.severity.clone_from(&args.severity);
    if let Some(scenario) = &args.scenario {
        let mut limits = Limits::default();
        if let Some(budget) = &args.budget {
            limits.budget.clone_from(budget);
            limits.further.clone_from(budget);
        }
        opened.model = Some(uploads::keep_model(&place, scenario, limits)?);
    }
    let id = opened.id;
    let mut journal = args.store.journal()?;
    let written = journal.commit(|state| {
        let new = !state.incidents().contains_key(&id);
        if new { vec![Event::Opened(Box::new(opened.clone()))] } else { Vec::new() }
    })?;
    if written.is_none() {
        ui.note("it was opened before");
    }
    ui.result(&id.to_string());
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs, ui: &Ui) -> Outcome {
    let journal = args.store.journal()?;
    let state = &*journal.state();
    let filter = Filter {
        system: args.system.clone(),
        invariant: args.invariant.clone(),
        status: args.status.clone(),
        ..Filter::default()
    };
    let bugs: Vec<view::BugView> = filter
        .bugs(state)
        .into_iter()
        .filter_map(|number| Some(view::bug(state, number, state.bugs().get(&number)?)))
        .collect();
    if args.incidents {
        let (found, _) = filter.incidents(state, None, usize::MAX);
        if args.json {
            ui.json(&found)?;
        } else {
            let head = ["INCIDENT", "BUG", "WORK", "RESULT", ">STEPS", "SYSTEM", "INVARIANT", "OPENED"];
            let mut table = Table::new(head);
            for one in &found {
                let (steps, bug) = (one.steps.to_string(), one.bug.clone().unwrap_or_default());
                let cells = [
                    &one.short,
                    &bug,
                    one.work,
                    one.result,
                    &steps,
                    &one.system,
                    &one.invariant,
                    &one.opened,
                ];
                table.row(cells);
            }
            ui.result(&table.to_string());
        }
    } else if args.json {
        ui.json(&bugs)?;
    } else {
        let head = ["BUG", "STATUS", ">TIMES", ">STEPS", "SYSTEM", "INVARIANT", "FIRST", "LAST"];
        let mut table = Table::new(head);
        for bug in &bugs {
            let (times, steps) = (bug.occurrences.to_string(), bug.size[0].to_string());
            let status = bug.status.word();
            table.row([&bug.bug, status, &times, &steps, &bug.system, &bug.invariant, &bug.first, &bug.last]);
        }
        ui.result(&table.to_string());
    }
    let open = bugs.iter().any(|bug| bug.status.is_open());
    Ok(if open { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(args: &ShowArgs, ui: &Ui) -> Outcome {
    let journal = args.store.journal()?;
    let number: Option<u32> = args.name.strip_prefix("B-").and_then(|number| number.parse().ok());
    let id = named(&journal.state(), &args.name)?;
    let story = journal.story(id)?;
    let state = &*journal.state();
    let bug = number.and_then(|number| state.bug(number));
    let incident = state.incidents().get(&id).ok_or("there is no such incident")?;
    if args.json {
        match bug {
            Some((number, bug)) => ui.json(&view::bug(state, number, bug))?,
            None => ui.json(&view::full(state, incident, story))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(&printable_lines(line));
        text.push('\n');
    };
    if let Some((number, bug)) = bug {
        let view = view::bug(state, number, bug);
        line(&format!("B-{number} ({}), {} times, last {}", view.status.word(), view.occurrences, view.last));
    }
    line(&format!("{}: {}", id.short(), view::sentence(incident)));
    line(&view::standing(incident));
    let findings = incident.findings();
    if !findings.cause.is_empty() {
        let names: Vec<&str> = findings.cause.iter().map(String::as_str).collect();
        line(&format!("it needs {}", names.join(", ")));
    }
    if !findings.proven.is_empty() {
        let checked = if findings.verified { "checked from scratch" } else { "not checked" };
        line(&format!("{} ({checked})", findings.proven));
    }
    for doubt in &findings.doubts {
        line(&format!("not known: {doubt}"));
    }
    if !incident.why().is_empty() {
        let of = incident.bug().map(|number| format!("B-{number}: ")).unwrap_or_default();
        line(&format!("{of}{}", incident.why()));
    }
    if matches!(incident.work(), Work::Failed { .. }) {
        line(incident.said());
    }
    for step in &story {
        let mut lines = step.lines();
        line(&lines.next().unwrap_or_default().replace("**", ""));
        lines.for_each(|detail| line(&format!("    {detail}")));
    }
    let data = args.store.place().data(id);
    if let Some(page) = view::file(incident, "page") {
        args.store.place().bring(&data.join(&page))?;
        line(&format!("page: {}", data.join(page).display()));
    }
    if let Some(schedule) = view::file(incident, "schedule") {
        let schedule = data.join(schedule);
        if let Some(folder) = schedule.parent() {
            args.store.place().bring(folder)?;
            let words = |words: &[&str]| demi_common::text::shell_words(words);
            let (schedule, folder) = (schedule.display().to_string(), folder.display().to_string());
            let scenario = format!("{folder}/scenario.toml");
            line("to reproduce it:");
            let replay = ["demi-lineage", "replay", &schedule, "--scenario", &scenario, "--strict"];
            line(&format!("    {}", words(&replay)));
            line(&format!("    {}", words(&["demi-lineage", "verify", &folder])));
        }
    }
    ui.result(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Packs of the journal that are written at a time.
const PACKS: usize = 100;
/// How long it is waited where there is nothing to do.
const PAUSE: Duration = Duration::from_millis(500);

fn work(args: &WorkArgs, ui: &Ui) -> Outcome {
    let models = args.models.as_deref().map(Models::read).transpose()?.unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = Worker { name: whoever(), lease: args.lease.max(1) * 1000, settle: args.settle * 1000 };
    let setup = Setup {
        worker,
        models,
        program: std::env::current_exe()?,
        jobs: args.jobs.unwrap_or(cores).max(1),
        systems: args.systems.clone(),
        receivers: Vec::new(),
    };
    let place = args.store.place();
    let mut shop = Workshop::new(args.store.journal()?, place, setup);
    let mut watch = Watch::of(&args.store.store);
    static STOP: AtomicBool = AtomicBool::new(false);
    demi_commands::on_interrupt(|| STOP.store(true, Ordering::Relaxed));
    let go_on = || !STOP.load(Ordering::Relaxed);
    while go_on() {
        watch.look(shop.journal())?;
        match shop.turn(&go_on)? {
            Turn::Worked(id) => {
                if let Some(incident) = shop.state().incidents().get(&id) {
                    let bug = incident.bug().map(|number| format!(", B-{number}")).unwrap_or_default();
                    let line = format!("{}: {}{bug}", id.short(), view::standing(incident));
                    ui.result(&printable(&line));
                }
            }
            Turn::Decided => {}
            Turn::Idle if args.once && !shop.has_more() => break,
            Turn::Idle => std::thread::sleep(PAUSE),
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "daemon")]
fn serve(args: ServeArgs, ui: &Ui) -> Outcome {
    let listen = demi_daemon::net::security::ListenConfig {
        listen: args.listen,
        tls_cert: args.tls_cert,
        tls_key: args.tls_key,
        tls_client_ca: None,
        token_file: args.token_file,
        max_connections: 256,
    };
    let scheme = if listen.tls_cert.is_some() { "https" } else { "http" };
    let settings = demi_daemon::incidents::Settings::default();
    let models = args.models.as_deref().map(Models::read).transpose()?.unwrap_or_default();
    demi_daemon::incidents::serve(&listen, settings, models, &args.store.store, |address| {
        ui.note("end with Ctrl-C");
        ui.result(&format!("{scheme}://{address}/"));
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "daemon"))]
fn serve(args: ServeArgs, _: &Ui) -> Outcome {
    let ServeArgs { store: _, listen: _, token_file: _, tls_cert: _, tls_key: _, models: _ } = args;
    Err(super::left_out("pages of incidents", "daemon"))
}

fn say(args: &BugArgs, ui: &Ui, event: impl FnOnce(u32, String) -> Event) -> Outcome {
    let mut journal = args.store.journal()?;
    if journal.state().bug(args.bug).is_none() {
        return Err(format!("there is no bug B-{}", args.bug).into());
    }
    write(&mut journal, &event(args.bug, user()), ui)
}

/// Writes what somebody says, if it is valid now.
fn write(journal: &mut Journal<Anywhere>, event: &Event, ui: &Ui) -> Outcome {
    if journal.say(event.clone())?.is_none() {
        let state = journal.state();
        let now = match event {
            Event::Acked { bug, .. } | Event::Reopened { bug, .. } | Event::Closed { bug, .. } => {
                state.bug(*bug).map(|(_, bug)| bug.status().word())
            }
            Event::Retry { id, .. } => state.incidents().get(id).map(|incident| incident.work().words().0),
            _ => None,
        };
        let now = now.map(|word| format!(": it is {word}")).unwrap_or_default();
        return Err(format!("that cannot be done now{now}").into());
    }
    ui.note("written");
    Ok(ExitCode::SUCCESS)
}

fn close(args: CloseArgs, ui: &Ui) -> Outcome {
    let fixed_in = args.fixed_in;
    let mut checked = false;
    if let Some(scenario) = &args.scenario {
        let journal = args.bug.store.journal()?;
        let program = std::env::current_exe()?;
        let place = args.bug.store.place();
        let on = On { program: &program, scenario, memory: None, go_on: &|| true };
        let found = replays::schedules(&journal.state(), &place, args.bug.bug, scenario);
        let found = found.ok_or("the bug has no schedule of this scenario's model")?.replay(on);
        if matches!(found.verdict, Verdict::Violates | Verdict::Other) {
            let (bug, word, said) = (found.bug, found.verdict.word(), printable(&found.said).into_owned());
            return Err(format!("B-{bug} stays open: on this model it is {word}: {said}").into());
        }
        checked = found.verdict.is_gone();
    }
    say(&args.bug, ui, |bug, by| Event::Closed { bug, by, fixed_in, checked })
}

fn replay(args: &ReplayArgs, ui: &Ui) -> Outcome {
    let mut journal = args.store.journal()?;
    let state = journal.state().clone();
    let (place, program) = (args.store.place(), std::env::current_exe()?);
    let model = replays::digest(&args.scenario).map_err(|e| format!("{}: {e}", args.scenario.display()))?;
    let bugs = if args.all { replays::candidates(&state) } else { args.bugs.clone() };
    let mut found = Vec::new();
    let bar = ui.progress();
    for (at, bug) in bugs.iter().enumerate() {
        bar.set_message(format!("replaying bug {} of {}", at + 1, bugs.len()));
        let on = On { program: &program, scenario: &args.scenario, memory: None, go_on: &|| true };
        match replays::schedules(&state, &place, *bug, &args.scenario) {
            Some(schedules) => found.push(schedules.replay(on)),
            None if args.all => {}
            None => return Err(format!("B-{bug} has no schedule of this scenario's model").into()),
        }
    }
    bar.finish_and_clear();
    for one in &found {
        let verdict = one.verdict.word().to_owned();
        journal.say(Event::Replayed { bug: one.bug, model: model.clone(), verdict })?;
    }
    if let Some(path) = &args.junit {
        let text = replays::junit(&found);
        super::replace_file(path, |file| Ok(std::io::Write::write_all(file, text.as_bytes())?))?;
    }
    if args.json {
        ui.json(&found.iter().map(ReplayedView::from).collect::<Vec<_>>())?;
    } else {
        let mut table = Table::new(["BUG", "VERDICT", ">SCHEDULES", "INVARIANT", "SAID"]);
        for one in &found {
            let (bug, schedules) = (format!("B-{}", one.bug), one.schedules.to_string());
            table.row([&bug, one.verdict.word(), &schedules, &one.invariant, &one.said]);
        }
        ui.result(&table.to_string());
    }
    let any = |verdicts: &[Verdict]| found.iter().any(|one| verdicts.contains(&one.verdict));
    Ok(match () {
        () if any(&[Verdict::Violates, Verdict::Other]) => ExitCode::FAILURE,
        () if any(&[Verdict::Unknown]) => demi_commands::status::Status::BudgetEnded.into(),
        () => ExitCode::SUCCESS,
    })
}

fn purge(args: &PurgeArgs, ui: &Ui) -> Outcome {
    let mut journal = args.store.journal()?;
    let ids = match (&args.system, &args.actor, args.before) {
        (Some(system), ..) => forget::of_system(&journal.state(), system),
        (None, Some(actor), _) => forget::naming(&journal, &args.store.place(), actor)?,
        (None, None, Some(day)) => forget::before(&journal.state(), &day.to_string()),
        (None, None, None) => {
            args.incidents.iter().map(|name| find(&journal.state(), name)).collect::<Result<Vec<_>, _>>()?
        }
    };
    forget::purge(&mut journal, &args.store.place(), &ids, &user())?;
    ui.result(&format!("{} incidents are forgotten", ids.len()));
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &StoreArgs, ui: &Ui) -> Outcome {
    let journal = args.journal()?;
    let state = journal.state();
    // From the first entry on, whatever a snapshot says.
    let mut anew = State::default();
    while anew.last() < state.last() {
        let next = anew.last() + 1;
        let entries = journal.entries(next)?;
        if entries.is_empty() {
            return Err(format!("entry {next} of the journal is missing").into());
        }
        entries.iter().for_each(|entry| anew.apply(entry));
    }
    let mut damage: Vec<String> = Vec::new();
    if anew != *state {
        damage.push("the snapshot says something else than the journal".to_owned());
    }
    let place = args.place();
    let mut files = 0;
    for (id, incident) in state.incidents() {
        place.bring(&place.data(*id))?;
        // Where the store is on object storage, an execution of its events is on the machine that built it.
        let elsewhere = place.is_far() && incident.opened().input == Input::Store;
        for output in &incident.findings().outputs {
            let path = place.data(*id).join(&output.name);
            files += 1;
            let whole = match output.digest.as_str() {
                "" => path.is_dir() || (elsewhere && output.name.starts_with("execution-")),
                digest => std::fs::read(&path).is_ok_and(|bytes| demi_incidents::hex_of(&[&bytes]) == digest),
            };
            if !whole {
                damage.push(format!("{} is missing or damaged", path.display()));
            }
        }
    }
    for line in &damage {
        ui.result(&printable(line));
    }
    let open = state.bugs().values().filter(|bug| bug.status().is_open()).count();
    let merged = state.bugs().values().filter(|bug| matches!(bug.status(), Status::Merged { .. })).count();
    ui.result(&format!(
        "{} entries, {} incidents, {} bugs ({open} open, {merged} merged), {files} published files: {}",
        state.last(),
        state.incidents().len(),
        state.bugs().len(),
        if damage.is_empty() { "nothing is missing" } else { "something is missing" }
    ));
    Ok(if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

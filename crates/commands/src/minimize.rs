//! `demi-lineage minimize`: the shortest schedule found that still breaks the invariant.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use demi_common::{Kind, owned};
use demi_lineage::execution::is_execution;
use demi_minimize::ledger::{Ledger, build};
use demi_minimize::unschedulable;
use demi_minimize::{
    Budget, Criteria, MinimizeError, Options, Outcome as Minimized, Progress, Size, StopFlag, minimize_with,
    report,
};
use demi_minimize::{Contents, Match, Repeat};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::MinimizeSummary;
use demi_schemas::{NetworkRule, Scenario, Schedule};

use crate::Outcome;
use crate::files::{read_scenario, read_schedule, write_folder};
use crate::incumbent::Incumbent;
use crate::memory::Limit;
pub use crate::minimize_args::MinimizeArgs;
use crate::needed::{self, Held};
use crate::on_model::{with_best, with_scenario};
use crate::permission;
use crate::status::{Ended, Status};
use crate::ui::{Ui, program};

/// What the first Ctrl-C sets, so that a command ends with the best so far. The second ends the program.
pub(crate) fn interruptible() -> StopFlag {
    let stop = StopFlag::default();
    let flag = stop.clone();
    on_interrupt(move || flag.stop());
    stop
}

/// Calls `stop` at the first Ctrl-C; the second ends the program.
pub fn on_interrupt(stop: impl Fn() + Send + 'static) {
    let asked = std::sync::atomic::AtomicBool::new(false);
    // Where there is a handler already, the command is part of a program that has its own.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, std::sync::atomic::Ordering::Relaxed) {
            std::process::exit(130);
        }
        stop();
    });
}

/// Runs `minimize`.
pub fn run(args: MinimizeArgs, models: &(impl Registry + Sync), ui: &Ui) -> Outcome {
    args.tolerance.apply(models);
    let stop = interruptible();
    models.stop_with(stop.shared());
    run_until(args, models, ui, stop)
}

/// Runs `minimize` until somebody asks for the end.
pub(crate) fn run_until(
    args: MinimizeArgs,
    models: &(impl Registry + Sync),
    ui: &Ui,
    stop: StopFlag,
) -> Outcome {
    // Before any work is done.
    let inputs = inputs(&args);
    owned::check(&args.out, Kind::Minimized, &inputs)?;
    let mut scenario = read_scenario(&args.scenario)?;
    args.tolerance.ask(&mut scenario);
    let full = read_schedule(&args.input, false)?;
    let kept = if is_execution(&args.input) { Some(read_schedule(&args.input, true)?) } else { None };
    let mut options = Options {
        rule: args.network.unwrap_or(scenario.network),
        budget: args.budget,
        jobs: args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        phases: args.phases,
        objective: args.objective.into(),
        stop,
    };
    let bar = ui.progress();
    let full_memory = options.stop.clone();
    let memory = args.memory.map(|most| Limit::new(most, move || full_memory.stop()));
    let incumbent = Incumbent::beside(&args.out);
    let happened = scenario.clone();
    let mut held = None;
    if args.cause {
        let tell = |p: &Progress<'_>| {
            if models.fault().is_some() {
                options.stop.stop();
            }
            incumbent.take(p.size.steps, p.schedule);
        };
        let recording = (&full, kept.as_ref());
        let asked = (&options, args.repeat);
        let to = Held::to_recording(models, (&args.scenario, &scenario), recording, asked, &tell);
        let to = to.map_err(told)?;
        scenario = to.scenario.clone();
        options.budget = to.budget;
        incumbent.take_reduced(to.reduced().clone());
        held = Some(to);
    }
    let best: Mutex<Option<Size>> = Mutex::new(None);
    let began = std::time::Instant::now();
    let tell = |p: &Progress<'_>| {
        if models.fault().is_some() {
            options.stop.stop();
        }
        if p.reduced && !args.cause {
            incumbent.take_reduced((p.schedule)());
        }
        if let Ok(mut best) = best.lock() {
            let smallest = best.filter(|b| !options.objective.smaller(p.size, *b)).unwrap_or(p.size);
            if best.replace(smallest) != Some(smallest) {
                incumbent.take(smallest.steps, p.schedule);
            }
            let seconds = began.elapsed().as_secs_f64();
            let left = match options.budget {
                Budget::Seconds(s) => format!("{:.0} s left", (s - seconds).max(0.0)),
                Budget::Replays(n) => format!("{} replays left", n.saturating_sub(p.replays)),
                Budget::States(n) => format!("{} states left", n.saturating_sub(p.executed)),
            };
            bar.set_message(format!(
                "{} steps, {} deliveries, {} externals; {}; {:.0} replays/s; {left}",
                smallest.steps,
                smallest.deliveries,
                smallest.externals,
                p.phase,
                p.replays as f64 / seconds.max(1e-3)
            ));
        }
    };
    let also = args
        .also
        .iter()
        .map(|path| Ok((path.clone(), read_scenario(path)?)))
        .collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    let own = args.out.with_added_extension("ledger");
    let ledger = Arc::new(open_ledger(args.ledger.as_deref().unwrap_or(&own), &scenario, &also, &args)?);
    if ledger.known() != (0, 0) {
        let (attempts, starts) = ledger.known();
        let path = args.ledger.as_deref().unwrap_or(&own).display();
        ui.note(&format!(
            "continuing: {path} has {starts} finished pieces of work and {attempts} long tests"
        ));
    }
    let task = Task {
        full: held.as_ref().map_or(&full, |held| &held.input),
        kept: kept.as_ref().filter(|_| held.as_ref().is_none_or(|held| held.whole)),
        own: scenario.network,
        options: &options,
        asked: Asked {
            models,
            matching: args.matching.into(),
            also: &also,
            still: held.as_ref().map(|_| (args.scenario.as_path(), &happened)),
            repeat: args.repeat,
            without: &args.without,
            contents: args.contents.into(),
            ledger: ledger.clone(),
            when_stable: args.stop_when_stable,
            guided: !args.no_guidance,
        },
        tell: &tell,
    };
    let (write, at) = (incumbent.last(), incumbent.path().to_owned());
    let kept_best = move || {
        write();
        match at.is_file() {
            true => format!("; the best schedule so far is {}", at.display()),
            false => "; nothing shorter than the input was found before".to_owned(),
        }
    };
    let result = with_best(models, (&args.scenario, &scenario), kept_best, task)?;
    bar.finish_and_clear();
    drop(ledger);
    if args.ledger.is_none() {
        // It is for runs that were killed.
        let _ = std::fs::remove_file(&own);
    }
    let (mut done, trace, shiviz) = result.map_err(told)?;
    let steps = done.schedule.steps.len() + done.reduced.as_ref().map_or(0, |reduced| reduced.steps.len());
    if done.deadline.fits(done.deadline.run_of(steps.saturating_mul(needed::runs(&happened)))) {
        let needs =
            |schedule: &Schedule| needed::needed(models, (&args.scenario, &happened), schedule, options.rule);
        done.summary.needs = needs(&done.schedule)?;
        done.summary.reduced_needs = match &done.reduced {
            Some(reduced) if held.is_none() => needs(reduced)?,
            _ => None,
        };
    } else {
        done.summary.left_out.push("which switches of the scenario the result needs".to_owned());
    }
    if let Some(held) = held {
        held.note(&mut done);
    }
    done.summary.programs = models.programs();
    let original = kept.as_ref().map_or_else(|| full.clone(), |kept| demi_report::mark_kept(&full, kept));
    let mut files = Vec::new();
    files.extend(done.reduced.as_ref().map(|reduced| ("reduced.jsonl", reduced.to_text())));
    files.extend([
        ("schedule.jsonl", done.schedule.to_text()),
        ("summary.json", format!("{}\n", serde_json::to_string_pretty(&done.summary)?)),
        ("certificate.json", format!("{}\n", serde_json::to_string_pretty(&done.certificate)?)),
        ("shiviz.log", shiviz),
        ("trace.md", trace),
        ("scenario.toml", scenario.to_text()),
        ("original.jsonl", original.to_text()),
    ]);
    files.extend(done.others.iter().map(|(other, schedule)| (other.file.as_str(), schedule.to_text())));
    let history = crate::program::history(&scenario, &done.schedule);
    files.extend(history.as_ref().map(|(name, text)| (name.as_str(), text.clone())));
    write_folder(&args.out, Kind::Minimized, &inputs, &files)?;
    permission::wrote(&args.out, &scenario, ui);
    incumbent.done();
    if memory.is_some_and(|limit| limit.reached()) {
        ui.note("the limit of --memory was reached: this is the best until then");
    }
    if !done.summary.left_out.is_empty() {
        ui.note(&format!("the budget ended; left out: {}", done.summary.left_out.join("; ")));
    }
    for (pass, why) in unsearchable(&done.summary) {
        ui.note(&format!("{pass}: not searched everywhere, since {why}"));
    }
    if done.summary.refused > 0 {
        ui.note(&format!(
            "warning: {} shorter schedules failed their strict replay and were thrown away; this is a defect, please report it, or the \
             model does not do the same twice: {}",
            done.summary.refused,
            done.summary.refused_because.as_deref().unwrap_or_default()
        ));
    }
    if let Some(why) = &done.summary.not_schedulable {
        ui.note(&format!(
            "warning: the result is not schedulable under the scenario's network rule {}, so no run of the system can \
             follow it: {why}",
            scenario.network
        ));
    }
    if args.json {
        ui.json(&done.summary)?;
    } else {
        ui.result(&text(&done, &args.out));
    }
    Ok(ExitCode::SUCCESS)
}

/// A model that is not deterministic has a status of its own, and so has a budget that ends before the input was run.
fn told(error: Box<dyn std::error::Error>) -> Box<dyn std::error::Error> {
    match error.downcast_ref() {
        Some(MinimizeError::NotDeterministic(_)) => {
            Ended { status: Status::Diverged, text: error.to_string() }.into()
        }
        Some(MinimizeError::TooShort { .. }) => {
            Ended { status: Status::BudgetEnded, text: error.to_string() }.into()
        }
        _ => error,
    }
}

/// What is read and must not be replaced.
fn inputs(args: &MinimizeArgs) -> Vec<&Path> {
    let named = [&args.input, &args.scenario].into_iter().chain(&args.also).chain(&args.ledger);
    named.map(PathBuf::as_path).collect()
}

struct Task<'a, R> {
    full: &'a Schedule,
    kept: Option<&'a Schedule>,
    /// The scenario's own network rule.
    own: NetworkRule,
    options: &'a Options,
    asked: Asked<'a, R>,
    tell: &'a (dyn Fn(&Progress<'_>) + Sync),
}

/// What else is asked.
struct Asked<'a, R> {
    models: &'a R,
    matching: Match,
    also: &'a [(PathBuf, Scenario)],
    /// The scenario of the recording, where the search is held to a part of its switches.
    still: Option<(&'a Path, &'a Scenario)>,
    repeat: Repeat,
    contents: Contents,
    ledger: Arc<Ledger>,
    without: &'a [String],
    when_stable: bool,
    guided: bool,
}

/// Opens the ledger of this model with these settings.
fn open_ledger(
    path: &Path,
    scenario: &Scenario,
    also: &[(PathBuf, Scenario)],
    args: &MinimizeArgs,
) -> Result<Ledger, Box<dyn std::error::Error>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // Another build may search in another way, so what it found is not what this one would find.
    // Where the program cannot read itself, nothing that was found before is its own.
    let program = build().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |since| since.as_nanos())
    });
    let mut identity = format!("{program:032x} {}", scenario.to_text());
    also.iter().for_each(|(_, other)| identity.push_str(&other.to_text()));
    identity.push_str(&format!("{:?} {}", args.without, args.no_guidance));
    Ok(Ledger::open(path, identity.as_bytes())?)
}

impl<R: Registry> Asked<'_, R> {
    fn oracle<M: Model>(&self) -> Result<Criteria<M>, Box<dyn std::error::Error>> {
        let other = |path: &Path, scenario: &Scenario| -> Result<_, Box<dyn std::error::Error>> {
            let other = with_scenario(self.models, path, scenario, Boxed)?;
            let sim = other.downcast::<Simulator<M>>().map_err(|_| {
                format!("{}: model '{}' is not the model of --scenario", path.display(), scenario.model)
            })?;
            Ok(*sim)
        };
        let also =
            self.also.iter().map(|(path, scenario)| other(path, scenario)).collect::<Result<_, _>>()?;
        let still =
            self.still.into_iter().map(|(path, scenario)| other(path, scenario)).collect::<Result<_, _>>()?;
        let ledger = Some(self.ledger.clone());
        Ok(Criteria {
            matching: self.matching,
            also,
            still,
            repeat: self.repeat,
            contents: self.contents,
            ledger,
            without: self.without.to_vec(),
            when_stable: self.when_stable,
        })
    }
}

/// Makes a simulator without naming its model.
struct Boxed;

impl Visitor for Boxed {
    type Output = Box<dyn std::any::Any>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        Box::new(sim)
    }
}

impl<R: Registry> Visitor for Task<'_, R> {
    type Output = Result<(Minimized, String, String), Box<dyn std::error::Error>>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let sim = if self.asked.guided { sim } else { sim.without_guidance() };
        let oracle = self.asked.oracle()?;
        let mut done = minimize_with(&sim, self.full, self.kept, self.options, &oracle, self.tell)?;
        let again = done.deadline.run_of(done.schedule.steps.len());
        if self.own != self.options.rule && !done.deadline.fits(again * 2) {
            done.summary
                .left_out
                .push("whether the result is schedulable under the scenario's network rule".to_owned());
        } else if self.own != self.options.rule {
            done.summary.not_schedulable = unschedulable(&sim, &done.schedule, self.own)?;
        }
        let told = match done.deadline.fits(again) {
            true => report::tell(&sim, &done.schedule, self.options.rule)?,
            false => {
                done.summary.left_out.push("what each step changed, in trace.md and shiviz.log".to_owned());
                Vec::new()
            }
        };
        let trace = report::trace_md(&told, &done.summary, &done.certificate);
        Ok((done, trace, report::shiviz(&told)))
    }
}

/// Searches that could not be made, with the reasons of each.
fn unsearchable(summary: &MinimizeSummary) -> impl Iterator<Item = (&str, String)> {
    let reasons = summary.passes.iter().filter(|pass| !pass.unsearchable.is_empty());
    reasons.map(|pass| {
        let why: Vec<&str> = pass.unsearchable.iter().map(String::as_str).collect();
        (pass.pass.as_str(), why.join("; "))
    })
}

fn text(done: &Minimized, out: &Path) -> String {
    let summary = &done.summary;
    let mut text = String::new();
    if let Some(reduced) = &summary.reduced {
        text.push_str(&format!(
            "what happened, reduced: {} steps, {} deliveries, {} external events, in reduced.jsonl{}\n",
            reduced.steps,
            reduced.deliveries,
            reduced.externals,
            match reduced.one_minimal {
                true => "; no single step can be left out",
                false => "; not shown to be locally minimal",
            }
        ));
        text.push_str("the shortest found: ");
    }
    text.push_str(&format!(
        "{} steps, {} deliveries, {} external events (from {}, {} and {}), network {}, {}{}\n\n",
        summary.steps,
        summary.deliveries,
        summary.externals,
        summary.initial_steps,
        summary.initial_deliveries,
        summary.initial_externals,
        summary.network,
        match &done.certificate.shortest {
            _ if done.certificate.settled.is_some() => {
                "no shorter execution exists with any subset of the recorded external events".to_owned()
            }
            Some(s) if s.optimal && summary.one_minimal => {
                let started = if s.starts_at_any_time { "" } else { " where all actors start first" };
                format!("1-minimal, no shorter execution exists with these external events{started}")
            }
            Some(s) if summary.one_minimal && s.at_least >= summary.deliveries => {
                format!(
                    "locally minimal: no single step can be left out; at least {} deliveries proven where all actors \
                     start first",
                    s.at_least
                )
            }
            Some(s) if summary.one_minimal && s.at_least > 0 => format!(
                "locally minimal: no single step can be left out; at least {} deliveries proven",
                s.at_least
            ),
            _ if summary.one_minimal => {
                "locally minimal: no single step can be left out; no lower bound proven".to_owned()
            }
            _ => "not shown to be locally minimal".to_owned(),
        },
        match summary.ended.as_str() {
            "fixpoint" => String::new(),
            other => format!(", ended by {other}"),
        }
    ));
    if let Some(told) = needed::told(summary) {
        text.push_str(&format!("{told}\n\n"));
    }
    if let Some(why) = &summary.not_schedulable {
        text.push_str(&format!("NOT SCHEDULABLE under the scenario's network rule: {why}\n\n"));
    }
    text.push_str(&format!(
        "{:<28} {:>8} {:>10} {:>8} {:>10} {:>9}\n",
        "phase", "replays", "executed", "thread s", "deliveries", "externals"
    ));
    // Passes that changed nothing are one line at the end; summary.json has them all.
    let mut size = None;
    let (mut idle, mut idle_seconds, mut idle_executed) = (0, 0.0, 0);
    for p in &summary.phases {
        if size == Some((p.deliveries, p.externals)) && p.phase != "other jobs" {
            idle += p.replays;
            idle_executed += p.executed;
            idle_seconds += p.seconds;
            continue;
        }
        size = Some((p.deliveries, p.externals));
        text.push_str(&format!(
            "{:<28} {:>8} {:>10} {:>8.3} {:>10} {:>9}\n",
            p.phase, p.replays, p.executed, p.seconds, p.deliveries, p.externals
        ));
    }
    text.push_str(&format!(
        "{:<28} {idle:>8} {idle_executed:>10} {idle_seconds:>8.3}\n",
        "passes without gain"
    ));
    let others: String = summary
        .others
        .iter()
        .map(|o| {
            let (s, d, e) = (o.steps, o.deliveries, o.externals);
            let without = match o.without.is_empty() {
                true => String::new(),
                false => format!(" without {} in messages from outside", o.without.join(", ")),
            };
            let file = out.join(&o.file);
            format!(
                "or else:   {s} steps, {d} deliveries, {e} external events{without}: {}\n",
                file.display()
            )
        })
        .collect();
    // The scenario's own rule would refuse such a result.
    let network = summary.not_schedulable.as_ref().map(|_| format!(" --network {}", summary.network));
    let network = network.unwrap_or_default();
    let program = program();
    text.push_str(&format!(
        "{:<28} {:>8} {:>10} {:>8.3}\n\nviolation: {}\nread it:   {}\n{others}replay it: {program} replay {} --scenario {} --strict{network}\ncheck it:  {program} verify {}",
        "total",
        summary.replays,
        summary.executed,
        summary.seconds,
        summary.violation.join(", "),
        out.join("trace.md").display(),
        out.join("schedule.jsonl").display(),
        out.join("scenario.toml").display(),
        out.display()
    ));
    text
}

//! From a recorded violating schedule to the result: verify, prepare, run the portfolio, check.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use demi_check::certify;
use demi_replay::follow::follow;
use demi_replay::kept::complete;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::{Act, Script, ScriptError};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{
    CurvePoint, MinimalityCheck, MinimizeSummary, OtherResult, PhaseSummary, ReducedSummary, ReplaySummary,
    Verdict,
};
use demi_schemas::{Certificate, NetworkRule, Schedule, ScheduleHeader};

use crate::determinism::{self, Parted};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::{Blocker, EXACT, Matcher, Policy};
use crate::oracle::witness::Shared;
use crate::portfolio::{Ending, Portfolio, Reduced};
use crate::problem::Problem;
use crate::problem::budget::{Deadline, Ended, Meter};
use crate::problem::criteria::{Criteria, Match, Repeat};
use crate::problem::options::{Options, Phases, Progress};
use crate::problem::size::{Size, size, timers};
use crate::problem::text::fields_of;
use crate::reduce::reducer::{Reducer, phase_line};
use crate::solution::Solution;

/// What came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The smallest schedule found; strict replay of it violates.
    pub schedule: Schedule,
    /// The recording, reduced by local passes alone: the recorded order and causes are kept. Strict replay of it violates.
    pub reduced: Option<Schedule>,
    /// The rest of the Pareto front over steps and external events: schedules with fewer external events than the smallest, or
    /// fewer steps; and one with smaller contents. Strict replay of each violates.
    pub others: Vec<(OtherResult, Schedule)>,
    /// What was proven of it.
    pub certificate: Certificate,
    /// Figures.
    pub summary: MinimizeSummary,
    /// When the work must end: until then the result may be run again, to be told.
    pub deadline: Deadline,
}

/// Why there is nothing to minimize.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MinimizeError {
    /// The model cannot re-create a message from outside.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The input does not break the invariant.
    #[error(
        "replayed under the network rule {rule}, the input does not end in the violation {expected}: {why}"
    )]
    NoViolation {
        /// The rule.
        rule: NetworkRule,
        /// What was expected.
        expected: String,
        /// What was seen.
        why: String,
    },
    /// The violation is there before anything is delivered.
    #[error(
        "the violation {0} is there before the first step, in every execution: there is nothing to leave out, and the cause is in how the actors start"
    )]
    AtOnce(String),
    /// Two runs of the input were not the same.
    #[error(transparent)]
    NotDeterministic(#[from] Box<Parted>),
    /// The time is not enough to run the input.
    #[error(
        "the budget ended before there was an answer: a step takes about {} ms, and the input has {steps} of them, which are run twice \
         before anything is left out", step.as_millis()
    )]
    TooShort {
        /// How long a step takes.
        step: Duration,
        /// Steps of the input.
        steps: usize,
    },
    /// A result failed its strict replay: a defect of this program.
    #[error("the result did not pass its strict replay ({0}); this is a defect, please report it")]
    Unverified(String),
}

/// Minimizes a violating schedule. `kept` is the part of it in the causal past of the violation, if that is known.
///
/// # Errors
/// When the model cannot run the input, or the input does not violate.
pub fn minimize<M: Model>(
    sim: &Simulator<M>,
    input: &Schedule,
    kept: Option<&Schedule>,
    options: &Options,
    tell: &(dyn Fn(&Progress<'_>) + Sync),
) -> Result<Outcome, MinimizeError> {
    minimize_with(sim, input, kept, options, &Criteria::default(), tell)
}

/// As [`minimize`], with more asked: see [`Criteria`].
///
/// # Errors
/// When the model cannot run the input, or the input does not violate as it is asked.
pub fn minimize_with<M: Model>(
    sim: &Simulator<M>,
    input: &Schedule,
    kept: Option<&Schedule>,
    options: &Options,
    criteria: &Criteria<M>,
    tell: &(dyn Fn(&Progress<'_>) + Sync),
) -> Result<Outcome, MinimizeError> {
    let began = Instant::now();
    let deadline = Deadline::of(options.budget);
    let mut sim = sim.clone();
    let fresh = sim.clone();
    let (full, _) = Script::compile(&mut sim, input)?;
    // Whoever asks for several runs knows that they differ.
    if criteria.repeat.runs == 1 {
        let meter = Meter::new(options.budget, options.stop.clone()).within(&deadline);
        let step = determinism::check(&sim, &full, options.rule, &meter)?;
        deadline.measured(step, 1);
        if !deadline.fits(deadline.run_of(full.acts.len())) {
            return Err(MinimizeError::TooShort { step, steps: full.acts.len() });
        }
    }
    let target = target(&mut sim, input, options)?;
    let initial = size(&full.acts);
    let mut phases = Vec::new();
    let mut problem = Problem::new(sim, full, options.clone(), criteria.clone(), target.clone());
    problem.fields = fields_of(&problem.sim, input);
    problem.deadline = deadline.clone();
    let problem = Arc::new(problem);
    let mut engine = Engine::new(&problem, options.budget);
    engine.first = true;
    let witness = recorded(&mut engine, input, kept, &mut phases)?;
    engine.first = false;
    let first = witness.clone();
    let mut reducer = Reducer::new(engine, witness, tell).main();
    let policies = Policy::portfolio(options.rule);
    let every = matches!(options.phases, Phases::All | Phases::Local);
    let used = if every { &policies[..] } else { &policies[..1] };
    let nothing = |tried| Ending { reduced: None, others: Vec::new(), tried, shortest: None, settled: None };
    let Ending { reduced, others, tried, shortest, settled } = match options.phases {
        // There is no time for anything but the end.
        Phases::All if reducer.ended() => {
            let schedule = reducer.engine.to_schedule(&reducer.best.acts);
            let (size, seconds) = (reducer.best.size, began.elapsed().as_secs_f64());
            Ending { reduced: Some(Reduced { schedule, size, tried: None, seconds }), ..nothing(None) }
        }
        _ if reducer.ended() => nothing(None),
        Phases::Local => nothing(reducer.local(&policies).1),
        Phases::Sts => {
            reducer.baseline(Policy::new(Matcher::Payload, Blocker::Skip));
            nothing(None)
        }
        Phases::NoDiverge => {
            reducer.baseline(Policy::new(Matcher::Payload, Blocker::Fail));
            nothing(None)
        }
        Phases::Ddmin => nothing(reducer.debugged(policies[0], false)),
        Phases::ProbDd => nothing(reducer.debugged(policies[0], true)),
        Phases::All => Portfolio::new(&mut reducer, &mut phases, began).run(),
    };
    phases.append(&mut reducer.phases);
    let meter = reducer.engine.meter.clone();
    let ended = meter.ended().filter(|_| tried.is_none()).unwrap_or(Ended::Fixpoint);
    let refusals = reducer.engine.problem.refusals.clone();
    let passes = |schedule: &Schedule| {
        let checked = strictly(&fresh, schedule, options.rule, criteria.repeat, options.jobs);
        if let Err(MinimizeError::Unverified(why)) = &checked {
            refusals.note(why.clone());
        }
        checked
    };
    // What fails its strict replay here is a defect; the next best is a result all the same.
    let mut best = reducer.best.clone();
    let mut schedule = reducer.engine.to_schedule(&best.acts);
    let mut checked = passes(&schedule);
    let (mut tried, mut shortest, mut settled) = (tried, shortest, settled);
    if matches!(checked, Err(MinimizeError::Unverified(_))) {
        (tried, shortest, settled) = (None, None, None);
        let mut next: Vec<&Solution> = others.iter().filter(|other| other.without.is_empty()).collect();
        next.sort_by_key(|other| options.objective.key(other.size));
        let next: Vec<Schedule> = next.into_iter().map(|other| other.schedule.clone()).collect();
        for other in next.into_iter().chain([reducer.engine.to_schedule(&first.acts)]) {
            let again = passes(&other);
            if let (true, Some(witness)) = (again.is_ok(), reducer.engine.recover(&other)) {
                (best, schedule, checked) = (witness, other, again);
                break;
            }
        }
    }
    let checked = checked?;
    schedule.header.system.clone_from(&input.header.system);
    schedule.header.affected.clone_from(&input.header.affected);
    // What is proven is proven of the violation that the result ends in; the search says which that is.
    let counts = |v: &&String| reducer.engine.problem.question.counts(v);
    let target: Vec<String> = match criteria.matching {
        Match::Fingerprint => target,
        _ => checked.violation.iter().filter(counts).cloned().collect(),
    };
    schedule.header.violation.clone_from(&checked.violation);
    // What was shown of the same steps a while ago need not be shown again.
    let shown = reduced.as_ref().filter(|reduced| reduced.schedule.steps == schedule.steps);
    tried = tried.or_else(|| shown.and_then(|reduced| reduced.tried));
    // The result is run once more to be told, and maybe once under another rule.
    let again = deadline.run_of(best.size.steps) * 2;
    deadline.keep(again);
    let mut left_out = Vec::new();
    let mut certificate = certify(
        &fresh,
        &schedule,
        options.rule,
        &target,
        (&checked.digest, tried.is_some()),
        shortest,
        &meter,
    )?;
    certificate.settled = settled;
    // Who says that no step can be left out must show it.
    if certificate.removals.is_empty() && best.size.steps > 0 && tried.take().is_some() {
        left_out.push("the certificate of 1-minimality".to_owned());
    }
    let alone = criteria.also.is_empty() && criteria.still.is_empty();
    for removal in certificate.removals.iter_mut().filter(|r| r.violates && !alone) {
        let mut rest = schedule.clone();
        rest.steps.remove(removal.step as usize - 1);
        removal.breaks_others = criteria.breaks(&rest, options.rule) || !criteria.holds(&rest, options.rule);
    }
    let mut late = 0;
    let mut affordable = |schedule: &Schedule| {
        let fits = deadline.fits(again + deadline.run_of(schedule.steps.len()) * 2);
        late += u32::from(!fits);
        fits
    };
    let alike = |o: Size| (o.steps, o.externals) == (best.size.steps, best.size.externals);
    let others: Vec<(OtherResult, Schedule)> = others
        .into_iter()
        .filter(|o| !o.without.is_empty() || !best.size.dominates(o.size) && !alike(o.size))
        .map(|o| (other_result(o.size, o.without), o.schedule))
        .filter(|(_, schedule)| affordable(schedule) && passes(schedule).is_ok())
        .collect();
    let reduced = reduced.and_then(|mut reduced| {
        let same = reduced.schedule.steps == schedule.steps;
        let ends_in = match same {
            true => checked.violation.clone(),
            false if affordable(&reduced.schedule) => passes(&reduced.schedule).ok()?.violation,
            false => return None,
        };
        reduced.schedule.header = ScheduleHeader { violation: ends_in, ..schedule.header.clone() };
        Some(reduced)
    });
    if late > 0 {
        left_out.push(format!("{late} other results"));
    }
    if tried.is_none() && options.phases == Phases::All && ended != Ended::Fixpoint {
        left_out.push("whether a single step can be left out".to_owned());
    }
    let summary = MinimizeSummary {
        verdict: checked.verdict,
        violation: checked.violation,
        steps: best.size.steps as u64,
        deliveries: best.size.deliveries as u64,
        externals: best.size.externals as u64,
        timers: timers(&best.acts) as u64,
        initial_steps: initial.steps as u64,
        initial_deliveries: initial.deliveries as u64,
        initial_externals: initial.externals as u64,
        replays: phases.iter().map(|p| p.replays).sum(),
        executed: phases.iter().map(|p| p.executed).sum(),
        seconds: began.elapsed().as_secs_f64(),
        one_minimal: tried.is_some(),
        minimality: MinimalityCheck {
            tried: tried.unwrap_or(0),
            matchers: tried.map(|_| used.iter().map(|p| p.name()).collect()).unwrap_or_default(),
        },
        network: options.rule,
        not_schedulable: None,
        objective: options.objective.as_str().to_owned(),
        at_least: certificate.shortest.as_ref().map(|s| s.at_least),
        others: others.iter().map(|(o, _)| o.clone()).collect(),
        reduced_needs: None,
        needs: None,
        programs: None,
        switched_off: Vec::new(),
        reduced: reduced.as_ref().map(|reduced| ReducedSummary {
            steps: reduced.size.steps as u64,
            deliveries: reduced.size.deliveries as u64,
            externals: reduced.size.externals as u64,
            one_minimal: reduced.tried.is_some(),
            seconds: reduced.seconds,
        }),
        left_out,
        refused: refusals.count(),
        refused_because: refusals.why(),
        digest: checked.digest,
        ended: ended.as_str().to_owned(),
        phases,
        passes: reducer.account.clone().lines(),
        curve: thin(&reducer.curve),
    };
    let reduced = reduced.map(|reduced| reduced.schedule);
    Ok(Outcome { schedule, reduced, others, certificate, summary, deadline })
}

/// The violation to keep: what the header names, or else what the schedule ends in. A log was written by who knew nothing of invariants
/// that the scenario gives as predicates: then what it names is none of theirs.
fn target<M: Model>(
    sim: &mut Simulator<M>,
    input: &Schedule,
    options: &Options,
) -> Result<Vec<String>, MinimizeError> {
    if input.header.violation.iter().any(|v| sim.asserted().can_be(v)) {
        return Ok(input.header.violation.clone());
    }
    let run = ReplayOptions { rule: options.rule, strict: false, interval: 1 };
    let summary = replay(sim, input, &run)?;
    if summary.violation.is_empty() {
        return Err(MinimizeError::NoViolation {
            rule: options.rule,
            expected: "of any invariant".into(),
            why: format!("{} after {} deliveries", summary.verdict.as_str(), summary.deliveries),
        });
    }
    Ok(summary.violation)
}

/// A script in an order that the model can follow, where its own order is not one.
fn followed<M: Model>(engine: &mut Engine<M>, schedule: &Schedule, script: Script) -> Script {
    match follow(&mut engine.sim, schedule, &script, engine.rule) {
        Some(found) => Script { acts: found.acts.into_iter().map(|(_, act)| act).collect(), ..script },
        None => script,
    }
}

/// The first witness: the causal past if it violates, or else everything, cut at the first violation.
fn recorded<M: Model>(
    engine: &mut Engine<M>,
    input: &Schedule,
    kept: Option<&Schedule>,
    phases: &mut Vec<PhaseSummary>,
) -> Result<Shared<M>, MinimizeError> {
    let began = Instant::now();
    let problem = engine.problem.clone();
    let full = &problem.script;
    let line = |phase: &str, acts: &[Act], engine: &Engine<M>, before: (u64, u64)| PhaseSummary {
        replays: engine.meter.replays - before.0,
        executed: engine.meter.executed - before.1,
        seconds: began.elapsed().as_secs_f64(),
        ..phase_line(phase, acts)
    };
    let told = |engine: &mut Engine<M>, acts: &[Act], policy| match input.header.exact {
        true => engine.first_witness(acts, policy),
        false => engine.first_told(acts, policy),
    };
    phases.push(phase_line("original", &full.acts));
    let exact = Policy::new(Matcher::Payload, Blocker::Skip);
    let mut script = followed(engine, input, full.clone());
    // What stands before the steps of an execution are starts that no log tells.
    let started = full.acts.len() - input.steps.len();
    let part = kept.and_then(|kept| complete(&mut engine.sim, input, (full, started), kept, engine.rule));
    if let Some(part) = part {
        let acts: Vec<Act> = part.acts.into_iter().map(|(_, act)| act).collect();
        let before = (engine.meter.replays, engine.meter.executed);
        if told(engine, &acts, exact).is_some() {
            phases.push(line("provenance", &acts, engine, before));
            script.acts = acts;
        }
    }
    let before = (engine.meter.replays, engine.meter.executed);
    let found = told(engine, &script.acts, exact).or_else(|| told(engine, &script.acts, EXACT));
    match found {
        Some(witness) => {
            phases.push(line("truncation", &witness.acts, engine, before));
            Ok(witness)
        }
        None if engine.meter.over() => {
            let step = began.elapsed() / u32::try_from(engine.meter.executed.max(1)).unwrap_or(u32::MAX);
            Err(MinimizeError::TooShort { step, steps: full.acts.len() })
        }
        None if broken_at_once(engine, input) => Err(MinimizeError::AtOnce(problem.target.join(", "))),
        None => Err(MinimizeError::NoViolation {
            rule: problem.rule(),
            expected: problem.target.join(", "),
            why: match engine.problem.criteria.also.len() {
                0 => "no configuration on the way breaks it, each looked at by itself".into(),
                _ => "no configuration on the way breaks it, each looked at by itself, or the input also breaks what \
                      must not break"
                    .into(),
            },
        }),
    }
}

/// Whether the target is violated before the first step.
fn broken_at_once<M: Model>(engine: &Engine<M>, input: &Schedule) -> bool {
    let nothing = Schedule { steps: Vec::new(), ..input.clone() };
    let run = ReplayOptions { rule: engine.rule, strict: false, interval: 1 };
    let summary = replay(&mut engine.sim.clone(), &nothing, &run);
    summary.is_ok_and(|summary| summary.violation.iter().any(|found| engine.problem.target.contains(found)))
}

fn other_result(size: Size, without: Vec<String>) -> OtherResult {
    let contents = if without.is_empty() { "" } else { "-smaller-contents" };
    OtherResult {
        steps: size.steps as u64,
        deliveries: size.deliveries as u64,
        externals: size.externals as u64,
        file: format!("schedule-{}-steps-{}-externals{contents}.jsonl", size.steps, size.externals),
        without,
    }
}

/// The first step of a schedule that a network cannot make when it stands, for people; nothing if it makes them all.
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn unschedulable<M: Model>(
    sim: &Simulator<M>,
    schedule: &Schedule,
    rule: NetworkRule,
) -> Result<Option<String>, ScriptError> {
    let options = ReplayOptions { rule, strict: true, interval: 1 };
    let first = replay(&mut sim.clone(), schedule, &options)?.first_divergence;
    Ok(first.map(|d| format!("step {}, {}: {}", d.step, d.expected, d.got)))
}

/// Replays the result strictly, twice, on simulators that took no part in the search; for models that are not
/// deterministic as often as is asked, and the digests may differ. The replays run side by side where there are threads.
fn strictly<M: Model>(
    fresh: &Simulator<M>,
    schedule: &Schedule,
    rule: NetworkRule,
    repeat: Repeat,
    jobs: usize,
) -> Result<ReplaySummary, MinimizeError> {
    let options = ReplayOptions { rule, strict: true, interval: 1 };
    let (count, next) = (repeat.runs.max(2) as usize, AtomicUsize::new(0));
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        let work = || {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                let run = replay(&mut fresh.clone(), schedule, &options);
                done.lock().unwrap_or_else(PoisonError::into_inner).push(run);
            }
        };
        (1..jobs.min(count)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let runs = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let violates = |run: &&ReplaySummary| run.verdict == Verdict::Violates;
    let same = runs.iter().all(|run| run.digest == runs[0].digest);
    let violating = runs.iter().filter(violates).count();
    let enough =
        if repeat.runs == 1 { violating == runs.len() && same } else { violating >= repeat.least as usize };
    match runs.iter().find(violates) {
        Some(run) if enough => Ok(run.clone()),
        _ => {
            let mut why = format!("{violating} of {} runs violate", runs.len());
            if let Some(d) = runs.iter().find_map(|run| run.first_divergence.as_ref()) {
                why.push_str(&format!("; step {}: expected {}, {}", d.step, d.expected, d.got));
            }
            if !same {
                why.push_str("; digests differ, so the model is not deterministic (--repeat)");
            }
            Err(MinimizeError::Unverified(why))
        }
    }
}

/// Keeps a curve readable: at most some hundred points, the last one always.
fn thin(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let every = points.len().div_ceil(400).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, p)| p.clone()).collect()
}

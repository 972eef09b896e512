//! The pipeline: verify, prepare, several coarse starts side by side, the best of them to the end, the check.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::script::{Act, Script, ScriptError};
use demi_replay::{Model, Simulator};
use demi_schemas::summary::{CurvePoint, MinimalityCheck, MinimizeSummary, PhaseSummary, Verdict};
use demi_schemas::{NetworkRule, Schedule};

use crate::budget::{Budget, Ended, Meter, StopFlag};
use crate::engine::{EXACT, Engine, Shared};
use crate::matcher::{Blocker, Matcher, Policy};
use crate::stage::Stage;
use crate::witness::{Fields, Size, fields_of, size, timers, to_schedule};

/// Which pipeline to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    /// All passes.
    All,
    /// DEMi's STSSched baseline: external ddmin and one internal pass, exact matching.
    Sts,
    /// DEMi's baseline without divergence: a test in which an expected message is missing fails.
    NoDiverge,
}

/// What a minimization is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The network rule to enforce.
    pub rule: NetworkRule,
    /// How much work may be done.
    pub budget: Budget,
    /// Threads. The result does not depend on it for a budget of replays.
    pub jobs: usize,
    /// Which pipeline.
    pub phases: Phases,
    /// Set to end with the best so far.
    pub stop: StopFlag,
}

/// Where the work stands; told at each improvement.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The phase that found it.
    pub phase: String,
    /// Size of the smallest witness of that line of work.
    pub size: Size,
    /// Schedules tested by that line of work.
    pub replays: u64,
    /// Deliveries executed by it.
    pub executed: u64,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The smallest schedule found; strict replay of it violates.
    pub schedule: Schedule,
    /// Figures.
    pub summary: MinimizeSummary,
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
    tell: &(dyn Fn(&Progress) + Sync),
) -> Result<Outcome, MinimizeError> {
    let began = Instant::now();
    let mut sim = sim.clone();
    let fresh = sim.clone();
    let (full, _) = Script::compile(&mut sim, input)?;
    let target = target(&mut sim, input, options)?;
    let initial = size(&full.acts);
    let meter = Meter::new(options.budget, options.stop.clone());
    let mut phases = Vec::new();
    let mut engine = Engine::new(sim, &full, options.rule, target.clone(), meter);
    let witness = first(&mut engine, &full, kept, options, &mut phases)?;
    let mut stage = Stage::new(engine, witness, tell);
    let policies = Policy::portfolio(options.rule);
    let mut tried = None;
    let fields = fields_of(input);
    match options.phases {
        Phases::Sts => stage.baseline(Policy::new(Matcher::Payload, Blocker::Skip)),
        Phases::NoDiverge => stage.baseline(Policy::new(Matcher::Payload, Blocker::Fail)),
        Phases::All => {
            let raw = stage.best.acts.clone();
            stage.prepare();
            phases.append(&mut stage.phases);
            phases.extend(portfolio(&mut stage, &full, &raw, (options, &fields), &policies, began, tell));
            stage.reduce(&policies);
            tried = stage.close(&policies);
        }
    }
    phases.append(&mut stage.phases);
    let ended = stage.engine.meter.ended().filter(|_| tried.is_none()).unwrap_or(Ended::Fixpoint);
    let best = stage.best.clone();
    let mut schedule =
        to_schedule(&stage.engine.sim, &best.acts, &full.actions, &fields, options.rule, &target);
    schedule.header.system.clone_from(&input.header.system);
    schedule.header.affected.clone_from(&input.header.affected);
    let checked = strictly(&fresh, &schedule, options.rule)?;
    schedule.header.violation.clone_from(&checked.violation);
    let curve: Vec<CurvePoint> = thin(stage.curve());
    let summary = MinimizeSummary {
        verdict: checked.verdict,
        violation: checked.violation,
        deliveries: best.size.deliveries as u64,
        externals: best.size.externals as u64,
        timers: timers(&best.acts) as u64,
        initial_deliveries: initial.deliveries as u64,
        initial_externals: initial.externals as u64,
        replays: phases.iter().map(|p| p.replays).sum(),
        executed: phases.iter().map(|p| p.executed).sum(),
        seconds: began.elapsed().as_secs_f64(),
        one_minimal: tried.is_some(),
        minimality: MinimalityCheck {
            tried: tried.unwrap_or(0),
            matchers: tried.map(|_| policies.iter().map(|p| p.name()).collect()).unwrap_or_default(),
        },
        network: options.rule,
        digest: checked.digest,
        ended: ended.as_str().to_owned(),
        phases,
        curve,
    };
    Ok(Outcome { schedule, summary })
}

/// The violation to keep: what the header names, or else what the schedule ends in.
fn target<M: Model>(
    sim: &mut Simulator<M>,
    input: &Schedule,
    options: &Options,
) -> Result<Vec<String>, MinimizeError> {
    if !input.header.violation.is_empty() {
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

/// The first witness: the causal past if it violates, or else everything, cut at the first violation.
fn first<M: Model>(
    engine: &mut Engine<M>,
    full: &Script,
    kept: Option<&Schedule>,
    options: &Options,
    phases: &mut Vec<PhaseSummary>,
) -> Result<Shared<M>, MinimizeError> {
    let began = Instant::now();
    let line =
        |phase: &str, acts: &[Act], engine: &Engine<M>, began: Instant, before: (u64, u64)| PhaseSummary {
            phase: phase.to_owned(),
            replays: engine.meter.replays - before.0,
            executed: engine.meter.executed - before.1,
            seconds: began.elapsed().as_secs_f64(),
            deliveries: size(acts).deliveries as u64,
            externals: size(acts).externals as u64,
            timers: timers(acts) as u64,
        };
    phases.push(line("original", &full.acts, engine, began, (engine.meter.replays, engine.meter.executed)));
    let exact = Policy::new(Matcher::Payload, Blocker::Skip);
    let mut script = full.clone();
    if let Some(kept) = kept {
        let (kept, _) = Script::compile(&mut engine.sim, kept)?;
        let before = (engine.meter.replays, engine.meter.executed);
        if engine.first_witness(&kept.acts, exact).is_some() {
            phases.push(line("provenance", &kept.acts, engine, began, before));
            script = kept;
        }
    }
    let before = (engine.meter.replays, engine.meter.executed);
    let found =
        engine.first_witness(&script.acts, exact).or_else(|| engine.first_witness(&script.acts, EXACT));
    match found {
        Some(witness) => {
            phases.push(line("truncation", &witness.acts, engine, began, before));
            Ok(witness)
        }
        None => Err(MinimizeError::NoViolation {
            rule: options.rule,
            expected: engine.target.join(", "),
            why: "no configuration on the way breaks it, each looked at by itself".into(),
        }),
    }
}

/// What one coarse start came to.
struct Start {
    acts: Schedule,
    size: Size,
    phases: Vec<PhaseSummary>,
    curve: Vec<CurvePoint>,
}

/// Reduces the stage's witness several times, each time with another policy first, and gives the stage the best.
/// The starts are independent and each has its share of the budget, so threads change nothing but the time.
fn portfolio<M: Model>(
    stage: &mut Stage<'_, M>,
    script: &Script,
    raw: &[Act],
    (options, fields): (&Options, &Fields),
    policies: &[Policy],
    began: Instant,
    tell: &(dyn Fn(&Progress) + Sync),
) -> Vec<PhaseSummary> {
    // Half of the starts begin with what preparation left, half with the raw schedule.
    let half = policies.len().min(6);
    let starts = 2 * half;
    let jobs = options.jobs.clamp(1, starts);
    let share = match options.budget {
        Budget::Seconds(s) => {
            let left = (s - began.elapsed().as_secs_f64()).max(0.0);
            Budget::Seconds(left * 0.7 * jobs as f64 / starts as f64)
        }
        Budget::Replays(n) => {
            Budget::Replays(n.saturating_sub(stage.engine.meter.replays) * 7 / 10 / starts as u64)
        }
    };
    let (sim, acts) = (stage.engine.sim.clone(), stage.best.acts.clone());
    let (rule, target) = (stage.engine.rule, stage.engine.target.clone());
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Start>>> = Mutex::new((0..starts).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= starts || options.stop.is_set() {
                        return;
                    }
                    let mut order = policies.to_vec();
                    order.rotate_left(index % half);
                    let meter = Meter::new(share, options.stop.clone());
                    let mut engine = Engine::new(sim.clone(), script, rule, target.clone(), meter);
                    let from = if index < half { &acts[..] } else { raw };
                    let Some(witness) = engine.first_witness(from, EXACT) else { continue };
                    let mut line = Stage::new(engine, witness, tell);
                    if index >= half {
                        line.subsets(&order[..1]);
                    }
                    line.reduce(&order);
                    let text = to_schedule(
                        &line.engine.sim,
                        &line.best.acts,
                        &script.actions,
                        fields,
                        rule,
                        &target,
                    );
                    let start = Start {
                        acts: text,
                        size: line.best.size,
                        curve: line.curve().to_vec(),
                        phases: line.phases,
                    };
                    if let Ok(mut results) = results.lock() {
                        results[index] = Some(start);
                    }
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_default();
    take_best(stage, results)
}

/// Gives the stage the smallest result, the first of equals, and accounts for all starts.
fn take_best<M: Model>(stage: &mut Stage<'_, M>, results: Vec<Option<Start>>) -> Vec<PhaseSummary> {
    let best =
        results.iter().enumerate().filter_map(|(i, s)| s.as_ref().map(|s| (s.size, i))).min().map(|(_, i)| i);
    let mut phases = Vec::new();
    let mut others = PhaseSummary {
        phase: "other starts".into(),
        replays: 0,
        executed: 0,
        seconds: 0.0,
        deliveries: 0,
        externals: 0,
        timers: 0,
    };
    for (index, start) in results.into_iter().enumerate() {
        let Some(start) = start else { continue };
        if Some(index) == best {
            phases = start.phases;
            stage.join(&start.curve);
            let restored = restore(stage, &start.acts);
            if let Some(witness) = restored.filter(|w| w.size < stage.best.size) {
                stage.best = witness;
            }
        } else {
            others.replays += start.phases.iter().map(|p| p.replays).sum::<u64>();
            others.executed += start.phases.iter().map(|p| p.executed).sum::<u64>();
            others.seconds += start.phases.iter().map(|p| p.seconds).sum::<f64>();
        }
    }
    others.deliveries = stage.best.size.deliveries as u64;
    others.externals = stage.best.size.externals as u64;
    others.timers = timers(&stage.best.acts) as u64;
    phases.push(others);
    phases
}

/// Brings a start's result into the stage's simulator: ids differ between simulators, texts do not.
fn restore<M: Model>(stage: &mut Stage<'_, M>, result: &Schedule) -> Option<Shared<M>> {
    let (translated, _) = Script::compile(&mut stage.engine.sim, result).ok()?;
    stage.engine.actions.clone_from(&translated.actions);
    stage.engine.first_witness(&translated.acts, Policy::new(Matcher::Payload, Blocker::Skip))
}

/// Replays the result strictly, twice, on simulators that took no part in the search.
fn strictly<M: Model>(
    fresh: &Simulator<M>,
    schedule: &Schedule,
    rule: NetworkRule,
) -> Result<demi_schemas::summary::ReplaySummary, MinimizeError> {
    let options = ReplayOptions { rule, strict: true, interval: 1 };
    let first = replay(&mut fresh.clone(), schedule, &options)?;
    let second = replay(&mut fresh.clone(), schedule, &options)?;
    if first.verdict != Verdict::Violates || first.digest != second.digest {
        let why = match &first.first_divergence {
            Some(d) => format!("step {}: expected {}, {}", d.step, d.expected, d.got),
            None => format!("{}, digests {} and {}", first.verdict.as_str(), first.digest, second.digest),
        };
        return Err(MinimizeError::Unverified(why));
    }
    Ok(first)
}

/// Keeps a curve readable: at most some hundred points, the last one always.
fn thin(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let every = points.len().div_ceil(400).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, p)| p.clone()).collect()
}

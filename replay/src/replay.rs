//! Replaying a schedule on the model: conformance with the log, the verdict, the digest of the run.

use demi_schemas::schedule::Schedule;
use demi_schemas::summary::{ReplaySummary, Verdict};

use crate::follow::follow;
use crate::kept::complete;
use crate::model::Model;
pub use crate::options::ReplayOptions;
use crate::run::Run;
pub use crate::run::Watch;
use crate::script::{Act, Script, ScriptError};
use crate::sim::Simulator;

/// Replays a schedule once. `seconds` and `deterministic` of the summary are left for the caller.
///
/// A step whose message is not pending, or not deliverable under the rule, is a divergence; so is, for schedules
/// lifted from logs, a step whose sends differ from what was logged. The verdict is `diverged` if there is one
/// and the schedule came from a log or the replay is strict; other schedules that skip steps and still end in a
/// violation are `violates`.
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn replay<M: Model>(
    sim: &mut Simulator<M>,
    schedule: &Schedule,
    options: &ReplayOptions,
) -> Result<ReplaySummary, ScriptError> {
    watched(sim, schedule, options, &mut |_, _, _, _| {})
}

/// As [`replay`]; `watch` is told of each step.
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn watched<M: Model>(
    sim: &mut Simulator<M>,
    schedule: &Schedule,
    options: &ReplayOptions,
    watch: &mut Watch<'_, M>,
) -> Result<ReplaySummary, ScriptError> {
    let (script, started) = Script::compile(sim, schedule)?;
    let followed = follow(sim, schedule, &script, options.rule);
    let mut run = Run::new(sim, schedule, (&script, started), options, followed.is_some());
    match &followed {
        Some(followed) => run.all(sim, followed.acts.iter().map(|(i, act)| (*i, act)), options.strict, watch),
        None => run.all(sim, script.acts.iter().enumerate(), options.strict, watch),
    };
    if let Some(lacking) = followed.as_ref().map(|f| f.lacking).filter(|n| *n > 0) {
        let expected = format!("{lacking} more recorded sends by threads and schedulers");
        run.diverge(sim, script.acts.len(), &Act::Sent, expected, "none".into());
    }
    let mut summary = finish(run, sim, options);
    (summary.unrecorded_sends, summary.withheld_copies) =
        followed.map_or((0, 0), |f| (f.unrecorded, f.withheld));
    Ok(summary)
}

/// Replays what was kept of an execution: the causal past that logs tell of, with what the model needs besides
/// ([`complete`]). `full` is everything that was recorded. What was left out is expected of nobody.
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn replay_kept<M: Model>(
    sim: &mut Simulator<M>,
    full: &Schedule,
    kept: &Schedule,
    options: &ReplayOptions,
) -> Result<ReplaySummary, ScriptError> {
    let (script, started) = Script::compile(sim, full)?;
    let Some(part) = complete(sim, full, (&script, started), kept, options.rule) else {
        return replay(sim, kept, options);
    };
    let mut run = Run::new(sim, full, (&script, started), options, part.followed);
    run.all(sim, part.acts.iter().map(|(i, act)| (*i, act)), options.strict, &mut |_, _, _, _| {});
    let mut summary = finish(run, sim, options);
    summary.added_steps = part.added;
    Ok(summary)
}

fn finish<M: Model>(mut run: Run<'_, M>, sim: &Simulator<M>, options: &ReplayOptions) -> ReplaySummary {
    let schedule = run.schedule;
    let mut last = Vec::new();
    sim.check(&run.world, &mut M::History::default(), &mut last);
    if last.is_empty() && run.remembers() {
        sim.check(&run.world, &mut run.history, &mut last);
    }
    let deliveries = run.world.deliveries();
    if run.first_found.is_none() && !last.is_empty() {
        run.first_found = Some((deliveries, last.clone()));
    }
    let at = run.first_found.as_ref().map(|(at, _)| *at);
    let found = if last.is_empty() { run.first_found.map(|f| f.1).unwrap_or_default() } else { last };
    let mut violation: Vec<String> = found.into_iter().map(|v| v.fingerprint).collect();
    violation.sort_unstable();
    violation.dedup();
    let round = if sim.livelock_counts() && !violation.is_empty() { sim.livelock(&run.world) } else { None };
    let must_follow = options.strict || schedule.header.conformance;
    let verdict = match (violation.is_empty(), run.divergences) {
        (false, 0) => Verdict::Violates,
        (false, _) if !must_follow => Verdict::Violates,
        (true, 0) => Verdict::DoesNotViolate,
        _ => Verdict::Diverged,
    };
    let recorded = &schedule.header.violation;
    ReplaySummary {
        verdict,
        matches_recorded: (!recorded.is_empty())
            .then(|| violation.iter().any(|fingerprint| recorded.contains(fingerprint))),
        violation,
        deliveries,
        externals: run.externals,
        divergences: run.divergences,
        first_divergence: run.first,
        violation_at: at,
        round: round.map(|livelock| livelock.round).unwrap_or_default(),
        network: options.rule,
        digest: format!("{:032x}", run.digest.digest128()),
        deterministic: None,
        unrecorded_sends: 0,
        withheld_copies: 0,
        added_steps: 0,
        seconds: 0.0,
    }
}

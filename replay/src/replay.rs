//! Replaying a schedule on the model: conformance with the log, the verdict, the digest of the run.

use demi_schemas::schedule::{Schedule, Sent, Step};
use demi_schemas::summary::{Divergence, ReplaySummary, Verdict};
use demi_schemas::{NetworkRule, Via};
use xxhash_rust::xxh3::Xxh3;

use crate::follow::follow;
use crate::model::{Model, Violation};
use crate::network;
use crate::script::{Act, OwnFailures, Refusal, Script, ScriptError, Want};
use crate::sim::{Did, Simulator};
use crate::world::{Pending, Status, World};

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// The network rule to enforce.
    pub rule: NetworkRule,
    /// Stop at the first step that cannot be followed, instead of skipping it.
    pub strict: bool,
    /// For schedules lifted from logs: check the invariants after each so many deliveries, remembering what
    /// earlier checks saw, as the recorder did. Other schedules are checked after every delivery, each
    /// configuration by itself.
    pub interval: u32,
}

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

/// As [`replay`]; after each step `watch` is told its number from 0 (none for an unsaid start), the act, and the world.
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn watched<M: Model>(
    sim: &mut Simulator<M>,
    schedule: &Schedule,
    options: &ReplayOptions,
    watch: &mut dyn FnMut(Option<usize>, &Act, &Simulator<M>, &World<M>),
) -> Result<ReplaySummary, ScriptError> {
    let (script, started) = Script::compile(sim, schedule)?;
    let conformance = schedule.header.conformance;
    let followed = follow(sim, schedule, &script, options.rule);
    let mut run = Run {
        world: sim.empty_world(),
        digest: Xxh3::new(),
        divergences: 0,
        first: None,
        history: M::History::default(),
        found: Vec::new(),
        first_found: None,
        interval: if conformance { u64::from(options.interval.max(1)) } else { 1 },
        remember: conformance,
        externals: 0,
        own_failures: OwnFailures::default(),
        followed: followed.is_some(),
    };
    let acts: Vec<(usize, &Act)> = match &followed {
        Some(followed) => followed.acts.iter().map(|(i, act)| (*i, act)).collect(),
        None => script.acts.iter().enumerate().collect(),
    };
    for (index, act) in acts {
        let step = index.checked_sub(started).and_then(|i| schedule.steps.get(i));
        let number = (index + 1).saturating_sub(started) as u64;
        let before = run.divergences;
        run.step(sim, &script, act, step.filter(|_| conformance), schedule, options.rule, number, step);
        watch(index.checked_sub(started), act, sim, &run.world);
        if options.strict && run.divergences > before {
            break;
        }
    }
    if let Some(lacking) = followed.as_ref().map(|f| f.lacking).filter(|n| *n > 0) {
        let expected = format!("{lacking} more recorded sends by threads and schedulers");
        run.diverge(sim, schedule.steps.len() as u64, None, &Act::Sent, expected, "none".into());
    }
    let mut summary = run.finish(sim, schedule, options);
    summary.unrecorded_sends = followed.map_or(0, |f| f.unrecorded);
    Ok(summary)
}

struct Run<M: Model> {
    world: World<M>,
    digest: Xxh3,
    divergences: u64,
    first: Option<Divergence>,
    history: M::History,
    found: Vec<Violation>,
    first_found: Option<(u64, Vec<Violation>)>,
    interval: u64,
    remember: bool,
    externals: u64,
    own_failures: OwnFailures,
    /// Whether the order of the steps was found by following the model.
    followed: bool,
}

impl<M: Model> Run<M> {
    #[expect(clippy::too_many_arguments, reason = "one call, and each is a different thing")]
    fn step(
        &mut self,
        sim: &mut Simulator<M>,
        script: &Script,
        act: &Act,
        logged: Option<&Step>,
        schedule: &Schedule,
        rule: NetworkRule,
        number: u64,
        step: Option<&Step>,
    ) {
        if self.own_failures.told_by(act) {
            return;
        }
        self.externals += u64::from(act.is_external());
        match act {
            Act::Sent => return,
            Act::Inject(..) => {
                let _ = act.perform(sim, &mut self.world, &script.actions, rule);
                return;
            }
            Act::Noted(_) => {
                let got = "the model does not".to_owned();
                self.diverge(sim, number, step, act, "it fails or begins anew by itself".into(), got);
                return;
            }
            Act::Deliver(want) => {
                if !self.deliver(sim, want, rule, number, step, act) {
                    return;
                }
            }
            Act::Action(index) => {
                if let Err(Refusal::Action(reason)) = act.perform(sim, &mut self.world, &script.actions, rule)
                {
                    let name = script.actions.get(*index as usize).map_or("", |(name, _)| name.as_str());
                    self.diverge(sim, number, step, act, format!("action {name}"), reason);
                    return;
                }
            }
            _ => {
                let _ = act.perform(sim, &mut self.world, &script.actions, rule);
            }
        }
        self.own_failures.note(act, sim.did());
        self.absorb(sim);
        if let Some(logged) = logged {
            self.compare(sim, logged, schedule, number, act);
        }
        if act.is_delivery() && self.world.deliveries().is_multiple_of(self.interval) {
            self.check(sim);
        }
    }

    /// Delivers what is wanted; says so, or notes why it could not.
    fn deliver(
        &mut self,
        sim: &mut Simulator<M>,
        want: &Want,
        rule: NetworkRule,
        number: u64,
        step: Option<&Step>,
        act: &Act,
    ) -> bool {
        let index = match want.locate(sim, &mut self.world, rule) {
            Ok(index) => index,
            Err(refusal) => {
                let got = match refusal {
                    Refusal::NotTaken(_) => format!(
                        "{} does not take it ({:?})",
                        sim.names().get(want.to),
                        self.world.status(want.to)
                    ),
                    Refusal::Held(index) => {
                        let pending = self.world.pending();
                        let before = network::blocker(pending, index).unwrap_or(index);
                        let before = Want::of(sim, &self.world, &pending[before]).text(sim);
                        format!("under {rule} it stands behind {before}")
                    }
                    _ => pending_text(sim, &self.world, want),
                };
                self.diverge(sim, number, step, act, want.text(sim), got);
                return false;
            }
        };
        let entry = self.world.pending()[index];
        let timer = sim.model().timer_info(&sim.info(entry.msg).msg).generation;
        if let Some(expected) = step.and_then(|s| s.timer.as_ref()).and_then(|t| t.generation)
            && want.timer
            && timer.is_some_and(|got| got != expected)
        {
            let got = format!("generation {}", timer.unwrap_or_default());
            self.diverge(sim, number, step, act, format!("{} of generation {expected}", want.text(sim)), got);
        }
        self.digest.update(want.text(sim).as_bytes());
        sim.deliver(&mut self.world, index, rule);
        true
    }

    /// Adds what the step did to the digest.
    fn absorb(&mut self, sim: &Simulator<M>) {
        for did in sim.did() {
            let (mark, entry) = match did {
                Did::Sent(entry) => (b'>', entry),
                Did::TimerSet(entry) => (b'+', entry),
                Did::TimerCancelled(entry) => (b'-', entry),
                Did::Crashed(actor) | Did::Restarted(actor) | Did::Started(actor) => {
                    self.digest.update(b"!");
                    self.digest.update(sim.names().get(*actor).as_bytes());
                    continue;
                }
            };
            self.digest.update(&[mark]);
            for text in [
                sim.names().get(entry.from),
                sim.names().get(entry.to),
                sim.text(sim.info(entry.msg).payload),
            ] {
                self.digest.update(text.as_bytes());
                self.digest.update(b"\0");
            }
        }
        self.digest.update(b"\n");
    }

    /// Compares what the step sent and armed with what the log says.
    fn compare(&mut self, sim: &Simulator<M>, step: &Step, schedule: &Schedule, number: u64, act: &Act) {
        // Threads and schedulers send when they come to it, not within the step.
        let at_once = |via: Option<Via>| !matches!(via, Some(Via::Thread | Via::Scheduler));
        // Whether a log shows messages sent to an actor that has failed is a race, and an actor that starts nowhere
        // in the schedule (pruned, for it has no part in the violation) is sent nothing: neither side counts them.
        let lost = |to: crate::ActorId| matches!(self.world.status(to), Status::Crashed | Status::Absent);
        let sends: Vec<Pending> = sim
            .did()
            .iter()
            .filter_map(|d| match d {
                Did::Sent(p) if !lost(p.to) && at_once(p.via) => Some(*p),
                _ => None,
            })
            .collect();
        let unreachable: Vec<&str> = (0..self.world.actors())
            .map(|i| crate::ActorId(i as u16))
            .filter(|&a| lost(a))
            .map(|a| sim.names().get(a))
            .collect();
        let expected: Vec<&Sent> =
            step.sends.iter().filter(|s| at_once(s.via) && !unreachable.contains(&s.to.as_str())).collect();
        let alike = |got: &Pending, want: &Sent| {
            let from = want.from.as_deref().unwrap_or(&step.to);
            sim.names().get(got.from) == from
                && sim.names().get(got.to) == want.to
                && sim.text(sim.info(got.msg).payload) == want.payload
        };
        // What a followed model sends beyond its logs was counted.
        let mut rest = sends.iter();
        let same = (sends.len() == expected.len() || self.followed)
            && expected.iter().all(|want| {
                if self.followed {
                    rest.any(|got| alike(got, want))
                } else {
                    rest.next().is_some_and(|got| alike(got, want))
                }
            });
        if !same {
            let want = expected.iter().map(|s| format!("-> {}: {}", s.to, s.payload));
            let got = sends
                .iter()
                .map(|p| format!("-> {}: {}", sim.names().get(p.to), sim.text(sim.info(p.msg).payload)));
            let (want, got) = (list("sends", want), list("sends", got));
            self.diverge(sim, number, Some(step), act, want, got);
            return;
        }
        let recorded = &schedule.header.timers_recorded;
        let sets: Vec<(Pending, demi_schemas::TimerInfo)> = sim
            .did()
            .iter()
            .filter_map(|d| match d {
                Did::TimerSet(p) => Some((*p, sim.model().timer_info(&sim.info(p.msg).msg))),
                _ => None,
            })
            .filter(|(_, info)| info.name.as_ref().is_some_and(|name| recorded.contains(name)))
            .collect();
        let same = sets.len() == step.timer_sets.len()
            && sets.iter().zip(&step.timer_sets).all(|((got, info), want)| {
                let generation = want.timer.as_ref().and_then(|t| t.generation);
                sim.text(sim.info(got.msg).payload) == want.payload
                    && (generation.is_none() || info.generation.is_none() || generation == info.generation)
            });
        if !same {
            let want = list("sets timers", step.timer_sets.iter().map(|s| s.payload.clone()));
            let got =
                list("sets timers", sets.iter().map(|(p, _)| sim.text(sim.info(p.msg).payload).to_owned()));
            self.diverge(sim, number, Some(step), act, want, got);
        }
    }

    fn check(&mut self, sim: &Simulator<M>) {
        self.found.clear();
        if self.remember {
            sim.check(&self.world, &mut self.history, &mut self.found);
        } else {
            sim.check(&self.world, &mut M::History::default(), &mut self.found);
        }
        if !self.found.is_empty() && self.first_found.is_none() {
            self.first_found = Some((self.world.deliveries(), self.found.clone()));
        }
    }

    fn diverge(
        &mut self,
        sim: &Simulator<M>,
        number: u64,
        step: Option<&Step>,
        act: &Act,
        expected: String,
        got: String,
    ) {
        self.divergences += 1;
        if self.first.is_some() {
            return;
        }
        let state = act
            .actor()
            .and_then(|actor| sim.view(&self.world).state(actor))
            .map_or_else(|| "does not run".to_owned(), |s| sim.model().describe(s, sim.names()).to_string());
        self.first = Some(Divergence {
            step: number,
            delivery: self.world.deliveries(),
            event: step.and_then(|s| s.event.clone()),
            expected,
            got,
            state,
            source: step.and_then(|s| s.source.clone()),
            offset: step.and_then(|s| s.offset),
        });
    }

    fn finish(mut self, sim: &Simulator<M>, schedule: &Schedule, options: &ReplayOptions) -> ReplaySummary {
        let mut last = Vec::new();
        sim.check(&self.world, &mut M::History::default(), &mut last);
        if last.is_empty() && self.remember {
            sim.check(&self.world, &mut self.history, &mut last);
        }
        let deliveries = self.world.deliveries();
        if self.first_found.is_none() && !last.is_empty() {
            self.first_found = Some((deliveries, last.clone()));
        }
        let at = self.first_found.as_ref().map(|(at, _)| *at);
        let found = if last.is_empty() { self.first_found.map(|f| f.1).unwrap_or_default() } else { last };
        let mut violation: Vec<String> = found.into_iter().map(|v| v.fingerprint).collect();
        violation.sort_unstable();
        violation.dedup();
        let must_follow = options.strict || schedule.header.conformance;
        let verdict = match (violation.is_empty(), self.divergences) {
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
            externals: self.externals,
            divergences: self.divergences,
            first_divergence: self.first,
            violation_at: at,
            network: options.rule,
            digest: format!("{:032x}", self.digest.digest128()),
            deterministic: None,
            unrecorded_sends: 0,
            seconds: 0.0,
        }
    }
}

fn list(what: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { format!("{what} nothing") } else { format!("{what} [{}]", items.join("; ")) }
}

/// What is pending at the wanted receiver, for the explanation of a divergence.
fn pending_text<M: Model>(sim: &Simulator<M>, world: &World<M>, want: &Want) -> String {
    let here = world.pending().iter().filter(|p| p.to == want.to && p.kind.is_timer() == want.timer);
    let texts = here.take(8).map(|p| Want::of(sim, world, p).text(sim));
    format!("it is not pending; {}", list("pending there:", texts))
}

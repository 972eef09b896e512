//! One run of a schedule's steps on the model, each compared with what logs say of it.

use demi_schemas::schedule::{Schedule, Sent, Step};
use demi_schemas::summary::Divergence;
use demi_schemas::{NetworkRule, Via};
use xxhash_rust::xxh3::Xxh3;

use crate::guard;
use crate::model::{Model, Status, Violation};
use crate::network;
use crate::options::ReplayOptions;
use crate::pending::Pending;
use crate::script::{Act, OwnFailures, Refusal, Script, Want};
use crate::sim::{Did, Simulator};
use crate::world::World;

/// Who is told of each step: its number from 0 (none for a start that the schedule does not say), the act, and the world
/// after it.
pub type Watch<'a, M> = dyn FnMut(Option<usize>, &Act, &Simulator<M>, &World<M>) + 'a;

/// A run, and what was seen in it so far.
pub(crate) struct Run<'a, M: Model> {
    pub(crate) schedule: &'a Schedule,
    script: &'a Script,
    /// How many acts stand before those of the schedule's steps.
    started: usize,
    rule: NetworkRule,
    pub(crate) world: World<M>,
    pub(crate) digest: Xxh3,
    pub(crate) divergences: u64,
    pub(crate) first: Option<Divergence>,
    pub(crate) history: M::History,
    found: Vec<Violation>,
    pub(crate) first_found: Option<(u64, Vec<Violation>)>,
    interval: u64,
    pub(crate) externals: u64,
    own_failures: OwnFailures,
    /// Whether the order of the steps was found by following the model.
    followed: bool,
}

impl<'a, M: Model> Run<'a, M> {
    /// A run that has not begun.
    pub(crate) fn new(
        sim: &mut Simulator<M>,
        schedule: &'a Schedule,
        (script, started): (&'a Script, usize),
        options: &ReplayOptions,
        followed: bool,
    ) -> Self {
        let interval = if schedule.header.conformance { u64::from(options.interval.max(1)) } else { 1 };
        Run {
            schedule,
            script,
            started,
            rule: options.rule,
            world: sim.empty_world(),
            digest: Xxh3::new(),
            divergences: 0,
            first: None,
            history: M::History::default(),
            found: Vec::new(),
            first_found: None,
            interval,
            externals: 0,
            own_failures: OwnFailures::default(),
            followed,
        }
    }

    /// Whether a check remembers what earlier ones saw, as the recorder did.
    pub(crate) fn remembers(&self) -> bool {
        self.schedule.header.conformance
    }

    /// Performs acts, each with its position among those of the script. Gives the first that diverges, as its place
    /// among these; with `strict` that is the last one tried. After each, `watch` is told.
    pub(crate) fn all<'b>(
        &mut self,
        sim: &mut Simulator<M>,
        acts: impl Iterator<Item = (usize, &'b Act)>,
        strict: bool,
        watch: &mut Watch<'_, M>,
    ) -> Option<usize> {
        let mut first = None;
        for (place, (index, act)) in acts.enumerate() {
            let before = self.divergences;
            self.step(sim, index, act);
            watch(index.checked_sub(self.started), act, sim, &self.world);
            if self.divergences > before {
                first = first.or(Some(place));
                if strict {
                    break;
                }
            }
        }
        first
    }

    fn step(&mut self, sim: &mut Simulator<M>, index: usize, act: &Act) {
        let tells = matches!(act, Act::Noted(_)) || !self.schedule.header.exact;
        if tells && self.own_failures.told_by(act) {
            return;
        }
        self.externals += u64::from(act.is_external());
        let (script, rule) = (self.script, self.rule);
        match act {
            Act::Sent => return,
            Act::Inject(..) => {
                let _ = act.perform(sim, &mut self.world, &script.actions, rule);
                return;
            }
            Act::Noted(_) => {
                let expected = "it fails or restarts by itself".to_owned();
                self.diverge(sim, index, act, expected, "the model does not".to_owned());
                return;
            }
            Act::Deliver(want) => {
                if !self.deliver(sim, want, index, act) {
                    return;
                }
            }
            Act::Action(name) => {
                if let Err(Refusal::Action(reason)) = act.perform(sim, &mut self.world, &script.actions, rule)
                {
                    let name = script.actions.get(*name as usize).map_or("", |(name, _)| name.as_str());
                    self.diverge(sim, index, act, format!("action {name}"), reason);
                    return;
                }
            }
            Act::Duplicate(want) => {
                let act = Act::Duplicate(self.shown(sim, want));
                if act.perform(sim, &mut self.world, &script.actions, rule).is_err() {
                    let expected = format!("a second copy of {}", want.text(sim));
                    self.diverge(sim, index, &act, expected, pending_text(sim, &self.world, want));
                    return;
                }
            }
            _ => {
                let _ = act.perform(sim, &mut self.world, &script.actions, rule);
            }
        }
        if let Some(panic) = self.world.panic()
            && sim.crashed(panic).is_none()
        {
            let got = format!("{}; the state is as it left it", sim.explain(panic));
            self.diverge(sim, index, act, "a step that the model can take".to_owned(), got);
            return;
        }
        self.own_failures.note(act, sim.did());
        self.absorb(sim);
        // No log tells that the network repeats a message, only that it came twice.
        if self.schedule.header.conformance && !matches!(act, Act::Duplicate(_)) {
            self.compare(sim, index, act);
        }
        // A fault may break an invariant by itself.
        let due = match act {
            Act::Inject(..) | Act::Noted(_) | Act::Sent => false,
            _ if act.is_delivery() => self.world.deliveries().is_multiple_of(self.interval),
            _ => true,
        };
        if due {
            self.check(sim, index, act);
        }
    }

    /// The step of the schedule behind an act, if there is one.
    fn logged(&self, index: usize) -> Option<&'a Step> {
        self.schedule.steps.get(index.checked_sub(self.started)?)
    }

    /// What a step wants, as it is pending: where nothing has exactly its content, the oldest that has it under the masks.
    /// What a mask hides is not compared, neither of what is sent nor of what is delivered.
    fn shown(&self, sim: &Simulator<M>, want: &Want) -> Want {
        if want.external.is_some() || want.find(sim, &self.world).is_some() {
            return *want;
        }
        let pending = self.world.pending();
        let fits = |at: &usize| want.same_place(&pending[*at]) && want.fits(sim.info(pending[*at].msg));
        let masked = self.world.pending_at(want.place()).find(fits);
        masked.map_or(*want, |at| Want::of(sim, &self.world, &pending[at]))
    }

    /// Delivers what is wanted; says so, or notes why it could not.
    fn deliver(&mut self, sim: &mut Simulator<M>, want: &Want, position: usize, act: &Act) -> bool {
        let rule = self.rule;
        let want = &self.shown(sim, want);
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
                self.diverge(sim, position, act, want.text(sim), got);
                return false;
            }
        };
        let entry = self.world.pending()[index];
        let timer = sim.model().logs().timer_info(&sim.info(entry.msg).msg).generation;
        if let Some(expected) =
            self.logged(position).and_then(|s| s.timer.as_ref()).and_then(|t| t.generation)
            && want.timer
            && timer.is_some_and(|got| got != expected)
        {
            let got = format!("generation {}", timer.unwrap_or_default());
            self.diverge(sim, position, act, format!("{} of generation {expected}", want.text(sim)), got);
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
    fn compare(&mut self, sim: &Simulator<M>, position: usize, act: &Act) {
        let Some(step) = self.logged(position) else { return };
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
                && sim.logs_as(got.msg, want)
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
            self.diverge(sim, position, act, want, got);
            return;
        }
        let recorded = &self.schedule.header.timers_recorded;
        let sets: Vec<(Pending, demi_schemas::TimerInfo)> = sim
            .did()
            .iter()
            .filter_map(|d| match d {
                Did::TimerSet(p) => Some((*p, sim.model().logs().timer_info(&sim.info(p.msg).msg))),
                _ => None,
            })
            .filter(|(_, info)| info.name.as_ref().is_some_and(|name| recorded.contains(name)))
            .collect();
        let same = sets.len() == step.timer_sets.len()
            && sets.iter().zip(&step.timer_sets).all(|((got, info), want)| {
                let generation = want.timer.as_ref().and_then(|t| t.generation);
                sim.logs_as(got.msg, want)
                    && (generation.is_none() || info.generation.is_none() || generation == info.generation)
            });
        if !same {
            let want = list("sets timers", step.timer_sets.iter().map(|s| s.payload.clone()));
            let got =
                list("sets timers", sets.iter().map(|(p, _)| sim.text(sim.info(p.msg).payload).to_owned()));
            self.diverge(sim, position, act, want, got);
        }
    }

    fn check(&mut self, sim: &Simulator<M>, position: usize, act: &Act) {
        self.found.clear();
        let judged = if self.remembers() {
            sim.judge(&self.world, &mut self.history, &mut self.found)
        } else {
            sim.judge(&self.world, &mut M::History::default(), &mut self.found)
        };
        if let Err(panic) = judged {
            let got = sim.explain(&panic);
            self.diverge(sim, position, act, "a configuration that the invariants can judge".to_owned(), got);
        }
        if !self.found.is_empty() && self.first_found.is_none() {
            self.first_found = Some((self.world.deliveries(), self.found.clone()));
        }
    }

    /// Notes that the model left the schedule at an act.
    pub(crate) fn diverge(
        &mut self,
        sim: &Simulator<M>,
        position: usize,
        act: &Act,
        expected: String,
        got: String,
    ) {
        self.divergences += 1;
        if self.first.is_some() {
            return;
        }
        let state = act.actor().and_then(|actor| sim.view(&self.world).state(actor)).map_or_else(
            || "does not run".to_owned(),
            |s| guard::or(format!("{s:?}"), || sim.model().logs().describe(s, sim.names()).to_string()),
        );
        let step = self.logged(position);
        self.first = Some(Divergence {
            step: (position + 1).saturating_sub(self.started) as u64,
            delivery: self.world.deliveries(),
            event: step.and_then(|s| s.event.clone()),
            expected,
            got,
            state,
            source: step.and_then(|s| s.source.clone()),
            offset: step.and_then(|s| s.offset),
        });
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

//! A stage of the pipeline: an engine, the best witness so far, and the account of what each phase did.

use std::time::Instant;

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::NetworkRule;
use demi_schemas::certificate::Shortest;
use demi_schemas::summary::{CurvePoint, PhaseSummary};

use crate::account::{Account, Cost};
use crate::engine::{EXACT, Engine, Shared};
use crate::matcher::Policy;
use crate::passes::{
    backtrack, chunks, endings, late, lattice, noop, orders, probdd, several, structure, subsets, window,
};
use crate::pipeline::Progress;
use crate::search;
use crate::witness::{size, starts_late, timers};

/// Worlds that one search of the trace lattice may visit.
const LATTICE_WORLDS: usize = 150_000;
/// Configurations that are visited where no bound leads the way.
const UNBOUNDED: u64 = 1_000_000;
/// Branches that the backtracks of one candidate may take.
const BRANCHES: usize = 24;
/// Configurations that the search for another ending may visit from each place.
const ENDING: u64 = 60_000;
/// The phase that looks for the shortest execution over given external events.
pub const PROOF: &str = "shortest search";
/// What limits the proof of a result in which an actor starts late.
const LATE: &str = "late start";
/// Orders that are tried without each step.
const ORDERS: u64 = 16;

/// One line of work on a witness.
pub struct Stage<'a, M: Model> {
    /// The oracle.
    pub engine: Engine<M>,
    /// The best so far.
    pub best: Shared<M>,
    /// What each phase did.
    pub phases: Vec<PhaseSummary>,
    /// The curve of size against work, a point an improvement.
    pub curve: Vec<CurvePoint>,
    /// What each pass won.
    pub account: Account,
    running: String,
    /// Whoever watches.
    pub tell: &'a (dyn Fn(&Progress) + Sync),
}

impl<'a, M: Model> Stage<'a, M> {
    /// Begins with a witness.
    pub fn new(engine: Engine<M>, best: Shared<M>, tell: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        let (phases, curve) = (Vec::new(), Vec::new());
        Stage { engine, best, phases, curve, account: Account::default(), running: String::new(), tell }
    }

    /// Whether the budget is used up or somebody asked to stop.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.engine.meter.ended().is_some()
    }

    /// Tests the best witness without some of its steps; keeps the result if it is smaller and says so.
    pub fn without(&mut self, removed: &[bool], policy: Policy) -> bool {
        let found = self.engine.test(&self.best, removed, policy);
        self.keep(found)
    }

    /// Keeps a witness if it is smaller than the best, and says so.
    pub fn keep(&mut self, found: Option<Shared<M>>) -> bool {
        let Some(found) = found.filter(|f| self.engine.smaller(f.size, self.best.size)) else {
            return false;
        };
        self.take(found);
        true
    }

    /// Goes on with another witness, and says so.
    pub fn take(&mut self, witness: Shared<M>) {
        self.best = witness;
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        self.curve.push(CurvePoint {
            replays,
            executed,
            deliveries: self.best.size.deliveries as u64,
            externals: self.best.size.externals as u64,
        });
        (self.tell)(&Progress { phase: self.running.clone(), size: self.best.size, replays, executed });
    }

    /// Appends the curve of a line of work that went on from this one.
    pub fn join(&mut self, points: &[CurvePoint]) {
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        self.curve.extend(points.iter().map(|p| CurvePoint {
            replays: p.replays + replays,
            executed: p.executed + executed,
            ..p.clone()
        }));
    }

    /// Runs one phase and accounts for it. Says whether it found something smaller.
    pub fn phase(&mut self, name: &str, pass: impl FnOnce(&mut Self)) -> bool {
        if self.ended() {
            return false;
        }
        let began = Instant::now();
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        let before = self.best.size;
        name.clone_into(&mut self.running);
        pass(self);
        let size = self.best.size;
        let cost = Cost {
            replays: self.engine.meter.replays - replays,
            executed: self.engine.meter.executed - executed,
            seconds: began.elapsed().as_secs_f64(),
        };
        self.account.note(name, cost, before, size);
        let line = PhaseSummary {
            replays: cost.replays,
            executed: cost.executed,
            seconds: cost.seconds,
            ..phase_line(name, &self.best.acts)
        };
        // Repeated phases that gained nothing are one line.
        match self.phases.last_mut() {
            Some(last) if last.phase == line.phase && size == before => {
                last.replays += line.replays;
                last.executed += line.executed;
                last.seconds += line.seconds;
            }
            _ => self.phases.push(line),
        }
        size != before
    }

    /// Drops what does nothing, then external events by ddmin with the exact (STS) schedule.
    pub fn prepare(&mut self) {
        self.phase("no-op removal", noop::remove);
        self.phase("external ddmin", |s| chunks::sweep(s, EXACT, chunks::external, 1));
    }

    /// Coarse cuts on a long schedule: without an actor, and with one external message of each kind.
    pub fn subsets(&mut self, policies: &[Policy]) {
        self.phase("actors", |s| subsets::without_actor(s, policies));
        self.phase("external subsets", |s| subsets::keep_one(s, &policies[..1]));
    }

    /// Coarse chunks first, with the policies in this order; then single steps until nothing gains. In each round
    /// the passes that won most per delivery executed come first.
    pub fn sweep(&mut self, order: &[Policy]) {
        for policy in order {
            let name = format!("chunks {}", policy.name());
            self.phase(&name, |s| chunks::sweep(s, *policy, chunks::any, 4));
        }
        let mut gains: Vec<(f64, Policy)> = order.iter().map(|p| (0.0, *p)).collect();
        loop {
            let before = self.best.size;
            for (gain, policy) in &mut gains {
                let (steps, executed) = (self.best.acts.len(), self.engine.meter.executed);
                let name = format!("steps {}", policy.name());
                self.phase(&name, |s| chunks::sweep(s, *policy, chunks::any, 1));
                let won = steps.saturating_sub(self.best.acts.len()) as f64;
                *gain = won / (self.engine.meter.executed - executed + 1) as f64;
            }
            // Ties keep their order, so the result depends on nothing but the work done.
            gains.sort_by(|a, b| b.0.total_cmp(&a.0));
            self.phase("no-op removal", noop::remove);
            if self.best.size == before || self.ended() {
                return;
            }
        }
    }

    /// Chunks and then single steps with each policy until nothing gains, without lines in the table of phases.
    pub fn descend(&mut self, order: &[Policy]) {
        let mut smallest = 4;
        loop {
            let before = self.best.size;
            for policy in order {
                chunks::sweep(self, *policy, chunks::any, smallest);
            }
            if self.ended() || smallest == 1 && self.best.size == before {
                return;
            }
            smallest = 1;
        }
    }

    /// Sweeps, then the passes that cost more, in turn until nothing gains.
    pub fn reduce(&mut self, order: &[Policy]) {
        self.sweep(order);
        while !self.ended() && self.search(order) {
            self.sweep(order);
        }
    }

    /// The passes that cost more, those first that won most for their work so far, until one gains. Says whether one
    /// did.
    fn search(&mut self, order: &[Policy]) -> bool {
        const PASSES: [&str; 13] = [
            "actors",
            "cones",
            "epochs",
            "channels",
            "cycles",
            "trace lattice",
            "pairs",
            "late starts",
            "backtracks",
            "windows",
            "triples",
            "orders",
            "endings",
        ];
        let few = &order[..order.len().min(4)];
        self.account.order(&PASSES).into_iter().any(|pass| {
            self.phase(PASSES[pass], |s| match pass {
                0 => subsets::without_actor(s, order),
                1 => structure::cones(s, order),
                2 => structure::epochs(s, order),
                3 => structure::channels(s, order),
                4 => structure::cycles(s, order),
                5 => lattice::search(s, LATTICE_WORLDS),
                6 => several::pairs(s, few),
                7 => late::starts(s, few),
                8 => backtrack::remove(s, BRANCHES),
                9 => window::search(s, 4, few),
                10 => several::triples(s, &order[..1]),
                11 => orders::remove(s, ORDERS),
                _ => endings::search(s, ENDING, 1),
            })
        })
    }

    /// Looks for the shortest execution over the witness's external events, on `jobs` threads, and proves what it
    /// can with not many more than `most` configurations.
    pub fn prove(&mut self, jobs: usize, most: u64) -> Option<Shortest> {
        // Bounds are about executions without faults; and who checks a proof knows the model's own only.
        let faulty = self.best.acts.iter().any(Act::is_fault);
        let bound = self.engine.own_bound().filter(|_| !faulty);
        let few = UNBOUNDED.min(most);
        let mut shortest = None;
        self.phase(PROOF, |s| {
            let witness = s.best.clone();
            let Some(searched) = search::prove(&mut s.engine, &witness, bound.as_ref(), (few, most), jobs)
            else {
                return;
            };
            let best = searched.found.clone().unwrap_or(witness);
            let (mut at_least, mut states) = (searched.at_least, searched.states);
            let mut starts_at_any_time = !faulty && s.engine.rule != NetworkRule::Fifo;
            if searched.complete && !faulty && s.engine.rule == NetworkRule::Fifo {
                let shorter = best.size.deliveries.saturating_sub(1);
                let (acts, most) = (&best.acts, if bound.is_none() { few } else { most });
                let none =
                    search::none_in_any_order(&mut s.engine, acts, bound.as_ref(), (shorter, most), jobs);
                if let Some(of_any_order) = none {
                    starts_at_any_time = true;
                    (at_least, states) = (shorter + 1, states + of_any_order);
                }
            }
            if let Some(found) = searched.found {
                s.take(found);
            }
            // What was found starts all actors first; what stays may not, and then is not what the proof is about.
            let meant = starts_at_any_time || !starts_late(&best.acts);
            let optimal = at_least == best.size.deliveries && meant;
            let limited_by = (!optimal).then(|| searched.stopped.unwrap_or(LATE));
            shortest = Some(Shortest {
                at_least: at_least as u64,
                optimal,
                externals: Vec::new(),
                states,
                bounded: bound.is_some(),
                starts_at_any_time,
                limited_by: limited_by.map(str::to_owned),
            });
        });
        shortest
    }

    /// DEMi's baseline: external ddmin and one sweep of single internal deliveries, each test one exact replay
    /// (timer generations included). The policy's blocker tells what a missing message does.
    pub fn baseline(&mut self, policy: Policy) {
        self.phase("external ddmin", |s| chunks::sweep(s, policy, chunks::external, 1));
        self.phase("internal", |s| chunks::singles(s, policy, chunks::internal));
    }

    /// Delta debugging of all steps and nothing else, with one policy, by halves or by probabilities; then single steps
    /// until none can be left out.
    pub fn debugged(&mut self, policy: Policy, by_probability: bool) -> Option<u64> {
        match by_probability {
            true => self.phase("probdd", |s| probdd::sweep(s, policy, chunks::any)),
            false => self.phase("ddmin", |s| chunks::sweep(s, policy, chunks::any, 1)),
        };
        self.close(&[policy])
    }

    /// Removes each step alone under every policy; whatever still violates is taken. Gives the number of
    /// removals tried in the last, fruitless round, or nothing if the work ended before.
    pub fn close(&mut self, policies: &[Policy]) -> Option<u64> {
        loop {
            self.engine.forget();
            let mut gained = false;
            for policy in policies {
                gained |= self.phase("1-minimality", |s| chunks::singles(s, *policy, chunks::any));
            }
            if self.ended() {
                return None;
            }
            if !gained {
                return Some(self.best.acts.len() as u64 * policies.len() as u64);
            }
        }
    }
}

/// A line of the table of phases with the size of a schedule and no work yet.
#[must_use]
pub fn phase_line(phase: &str, acts: &[Act]) -> PhaseSummary {
    let size = size(acts);
    PhaseSummary {
        phase: phase.to_owned(),
        replays: 0,
        executed: 0,
        seconds: 0.0,
        deliveries: size.deliveries as u64,
        externals: size.externals as u64,
        timers: timers(acts) as u64,
    }
}

//! A stage of the pipeline: an engine, the best witness so far, and the account of what each phase did.

use std::time::Instant;

use demi_replay::Model;
use demi_schemas::summary::{CurvePoint, PhaseSummary};

use crate::engine::{Engine, Shared};
use crate::matcher::Policy;
use crate::passes::{Watch, backtrack, chunks, lattice, noop, pairs, subsets, window};
use crate::pipeline::Progress;
use crate::witness::timers;

/// Worlds that one search of the trace lattice may visit.
const LATTICE_WORLDS: usize = 150_000;
/// Branches that the backtracks of one candidate may take.
const BRANCHES: usize = 24;

/// Notes each improvement and tells whoever watches.
struct Curve<'a> {
    points: Vec<CurvePoint>,
    phase: String,
    tell: &'a (dyn Fn(&Progress) + Sync),
}

impl<M: Model> Watch<M> for Curve<'_> {
    fn smaller(&mut self, engine: &Engine<M>, witness: &Shared<M>) {
        self.points.push(CurvePoint {
            replays: engine.meter.replays,
            executed: engine.meter.executed,
            deliveries: witness.size.deliveries as u64,
            externals: witness.size.externals as u64,
        });
        (self.tell)(&Progress {
            phase: self.phase.clone(),
            size: witness.size,
            replays: engine.meter.replays,
            executed: engine.meter.executed,
        });
    }
}

/// One line of work on a witness.
pub struct Stage<'a, M: Model> {
    /// The oracle.
    pub engine: Engine<M>,
    /// The best so far.
    pub best: Shared<M>,
    /// What each phase did.
    pub phases: Vec<PhaseSummary>,
    curve: Curve<'a>,
}

impl<'a, M: Model> Stage<'a, M> {
    /// Begins with a witness.
    pub fn new(engine: Engine<M>, best: Shared<M>, tell: &'a (dyn Fn(&Progress) + Sync)) -> Self {
        let curve = Curve { points: Vec::new(), phase: String::new(), tell };
        Stage { engine, best, phases: Vec::new(), curve }
    }

    /// The curve of size against work.
    #[must_use]
    pub fn curve(&self) -> &[CurvePoint] {
        &self.curve.points
    }

    /// Appends the curve of a line of work that went on from this one.
    pub fn join(&mut self, points: &[CurvePoint]) {
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        self.curve.points.extend(points.iter().map(|p| CurvePoint {
            replays: p.replays + replays,
            executed: p.executed + executed,
            ..p.clone()
        }));
        if let Some(last) = points.last() {
            self.engine.meter.replays += last.replays;
            self.engine.meter.executed += last.executed;
        }
    }

    /// Runs one phase, keeps what it found and accounts for it. Says whether it found something smaller.
    fn phase(
        &mut self,
        name: &str,
        pass: impl FnOnce(&mut Engine<M>, &Shared<M>, &mut dyn Watch<M>) -> Option<Shared<M>>,
    ) -> bool {
        if self.engine.meter.ended().is_some() {
            return false;
        }
        let began = Instant::now();
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        name.clone_into(&mut self.curve.phase);
        let found = pass(&mut self.engine, &self.best, &mut self.curve);
        let better = found.is_some();
        if let Some(found) = found {
            self.best = found;
        }
        let replays = self.engine.meter.replays - replays;
        let executed = self.engine.meter.executed - executed;
        let size = self.best.size;
        let line = PhaseSummary {
            phase: name.to_owned(),
            replays,
            executed,
            seconds: began.elapsed().as_secs_f64(),
            deliveries: size.deliveries as u64,
            externals: size.externals as u64,
            timers: timers(&self.best.acts) as u64,
        };
        // Repeated phases that gained nothing are one line.
        match self.phases.last_mut() {
            Some(last) if last.phase == line.phase && !better => {
                last.replays += replays;
                last.executed += executed;
                last.seconds += line.seconds;
            }
            _ => self.phases.push(line),
        }
        better
    }

    /// Drops what does nothing, then external events by ddmin with the exact (STS) schedule.
    pub fn prepare(&mut self) {
        self.phase("no-op removal", |e, w, c| noop::remove(e, w, c));
        self.phase("external ddmin", |e, w, c| {
            chunks::sweep(e, w, crate::engine::EXACT, chunks::external, 1, c)
        });
    }

    /// Keeps one external message of each kind, where that is enough.
    pub fn subsets(&mut self, policies: &[Policy]) {
        self.phase("actors", |e, w, c| subsets::without_actor(e, w, &Policy::portfolio(e.rule), c));
        self.phase("external subsets", |e, w, c| subsets::keep_one(e, w, policies, c));
    }

    /// Coarse chunks first, with the policies in this order; then everything in turn until nothing gains. In
    /// each round the passes that won most per delivery executed come first.
    pub fn reduce(&mut self, order: &[Policy]) {
        for policy in order {
            let name = format!("chunks {}", policy.name());
            self.phase(&name, |e, w, c| chunks::sweep(e, w, *policy, chunks::any, 4, c));
        }
        let mut gains: Vec<(f64, Policy)> = order.iter().map(|p| (0.0, *p)).collect();
        loop {
            let before = self.best.size;
            for (gain, policy) in &mut gains {
                let (size, executed) = (self.best.size.deliveries, self.engine.meter.executed);
                let name = format!("steps {}", policy.name());
                self.phase(&name, |e, w, c| chunks::sweep(e, w, *policy, chunks::any, 1, c));
                let won = (size.saturating_sub(self.best.size.deliveries)) as f64;
                *gain = won / (self.engine.meter.executed - executed + 1) as f64;
            }
            // Ties keep their order, so the result depends on nothing but the work done.
            gains.sort_by(|a, b| b.0.total_cmp(&a.0));
            self.phase("no-op removal", |e, w, c| noop::remove(e, w, c));
            if self.best.size == before && !self.search(order) {
                return;
            }
            if self.engine.meter.ended().is_some() {
                return;
            }
        }
    }

    /// The passes that cost more: lattice, pairs, windows, backtracks. Says whether one of them gained.
    fn search(&mut self, order: &[Policy]) -> bool {
        let few: Vec<Policy> = order.iter().take(4).copied().collect();
        self.phase("actors", |e, w, c| subsets::without_actor(e, w, order, c))
            || self.phase("trace lattice", |e, w, c| lattice::search(e, w, LATTICE_WORLDS, c))
            || self.phase("pairs", |e, w, c| pairs::remove(e, w, &few, c))
            || self.phase("backtracks", |e, w, c| backtrack::remove(e, w, BRANCHES, c))
            || self.phase("windows", |e, w, c| window::search(e, w, 4, &few, c))
    }

    /// DEMi's baseline: external ddmin and one sweep of single internal deliveries, each test one exact replay
    /// (timer generations included). `blocker` tells what a missing message does.
    pub fn baseline(&mut self, policy: Policy) {
        self.phase("external ddmin", |e, w, c| chunks::sweep(e, w, policy, chunks::external, 1, c));
        self.phase("internal", |e, w, c| chunks::singles(e, w, policy, chunks::internal, c));
    }

    /// Removes each step alone under every policy; whatever still violates is taken. Gives the number of
    /// removals tried in the last, fruitless round, or nothing if the work ended before.
    pub fn close(&mut self, policies: &[Policy]) -> Option<u64> {
        self.engine.forget();
        loop {
            let mut gained = false;
            for policy in policies {
                gained |=
                    self.phase("1-minimality", |e, w, c| chunks::singles(e, w, *policy, chunks::any, c));
            }
            if self.engine.meter.ended().is_some() {
                return None;
            }
            if !gained {
                return Some(self.best.acts.len() as u64 * policies.len() as u64);
            }
            self.engine.forget();
        }
    }
}

//! The orders in which passes run: what costs least first, until nothing gains.

use demi_replay::Model;

use super::passes::{chunks, noop, subsets};
use super::reducer::Reducer;
use super::registry::{self, Pass};
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::plan::SHORT;

/// The phase that drops deliveries without effect.
const NO_OP: &str = "no-op removal";
/// The phase that makes a long recording short with one policy.
const DDMIN: &str = "ddmin";
/// Steps up to which chunks are halved while other policies have not been tried.
const COARSE: usize = 4;

impl<M: Model> Reducer<'_, M> {
    /// Reduces a recording by local passes alone: what is left happened in the recorded order and of the recorded causes. Each improves on the
    /// one before, so that whenever the budget ends there is a result. Gives what coarse cuts left, and how many removals of single steps the
    /// last check tried, if it came to its end.
    pub fn local(&mut self, policies: &[Policy]) -> (Shared<M>, Option<u64>) {
        let recording = self.best.clone();
        self.phase(DDMIN, |s| chunks::race(s, policies, chunks::any, COARSE));
        let thinned = if recording.size.deliveries > SHORT { self.best.clone() } else { recording };
        self.subsets(policies);
        self.sweep(policies);
        (thinned, self.close(policies))
    }

    /// Coarse cuts on a long schedule: without an actor, with one external message of each kind, about few subjects.
    pub fn subsets(&mut self, policies: &[Policy]) {
        self.coarse(Pass::Actors, policies);
        self.phase("external subsets", |s| subsets::keep_one(s, &policies[..1]));
        self.coarse(Pass::Subjects, policies);
    }

    /// Runs one pass of the registry, unless it is left out.
    fn coarse(&mut self, pass: Pass, policies: &[Policy]) {
        if registry::used(&self.engine.problem.criteria.without).contains(&pass) {
            self.phase(pass.name(), |s| pass.step(s, policies));
        }
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
            self.phase(NO_OP, noop::remove);
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
        while !self.ended() && self.costly(order) {
            self.sweep(order);
        }
    }

    /// The passes that cost more, those first that won most for their work so far, until one gains. Says whether one
    /// did.
    fn costly(&mut self, policies: &[Policy]) -> bool {
        let passes: Vec<Pass> = registry::used(&self.engine.problem.criteria.without);
        let names: Vec<&str> = passes.iter().map(|pass| pass.name()).collect();
        self.account
            .order(&names)
            .into_iter()
            .any(|at| self.phase(names[at], |s| passes[at].step(s, policies)))
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

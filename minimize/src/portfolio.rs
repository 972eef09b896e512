//! The portfolio: what [`crate::plan`] says, one turn after the other, and then what makes a result of the incumbent: checks,
//! proofs, smaller contents.

use std::sync::Arc;
use std::time::Instant;

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::NetworkRule;
use demi_schemas::Schedule;
use demi_schemas::certificate::{Settled, Shortest};
use demi_schemas::summary::PhaseSummary;
use rustc_hash::FxHashSet;

use crate::aim;
use crate::archive::{Archive, pareto, result};
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::plan::{
    self, CHECKS, CONTENTS, ELSEWHERE, FOR_CONTENTS, IDLE_PART, KEPT, LATER, PLAN, POLISH, POLISH_PART,
    RUN_IDLE, SEARCHED, SHORT, Turn, When,
};
use crate::problem::Problem;
use crate::problem::budget::Budget;
use crate::problem::criteria::{Contents, Match};
use crate::problem::size::Size;
use crate::reduce::passes::{contents, endings};
use crate::reduce::reducer::{Reducer, phase_line};
use crate::scheduler::{self, Purse, Site};
use crate::search;
use crate::solution::Solution;
use crate::strategies::beam::{Beams, Tried};
use crate::strategies::kinds::OverKinds;
use crate::strategies::late::Late;
use crate::strategies::random_runs::RandomRuns;
use crate::strategies::recorded::Recorded;
use crate::strategies::restarts::Restarts;
use crate::strategies::rounds::Rounds;
use crate::strategies::settled::settled;
use crate::strategies::small_sets::SmallSets;
use crate::strategies::{Strategy, exhaustive};

/// What stands beside the result, and what was proven of it.
pub struct Ending {
    /// The recording, reduced by local passes alone.
    pub reduced: Option<Reduced>,
    /// Solutions that are smaller than the result in some way, and one with smaller contents.
    pub others: Vec<Solution>,
    /// How many removals the last check of 1-minimality tried, if it came to its end.
    pub tried: Option<u64>,
    /// What was proven.
    pub shortest: Option<Shortest>,
    /// What was proven over everything recorded.
    pub settled: Option<Settled>,
}

/// What happened, reduced: the recorded order and causes are kept.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The schedule.
    pub schedule: Schedule,
    /// Its size.
    pub size: Size,
    /// How many removals the check of 1-minimality tried, if it came to its end.
    pub tried: Option<u64>,
    /// After how many seconds it was there.
    pub seconds: f64,
}

/// What was searched, so that it is not searched again.
#[derive(Default)]
struct AllTried {
    beams: Vec<Tried>,
    kinds: FxHashSet<u128>,
}

/// The portfolio on one reducer.
pub struct Portfolio<'r, 'a, M: Model> {
    reducer: &'r mut Reducer<'a, M>,
    phases: &'r mut Vec<PhaseSummary>,
    began: Instant,
    policies: Vec<Policy>,
    /// A proof over all recorded external events.
    whole: Option<(Solution, Shortest)>,
    /// A proof that nothing smaller than the incumbent exists over any of them.
    settled: Option<Settled>,
    /// The recording, reduced, and its steps.
    reduced: Option<(Reduced, Vec<Act>)>,
    /// The size of the incumbent of which a proof was tried last.
    tried_to_prove: Option<Size>,
}

impl<'r, 'a, M: Model> Portfolio<'r, 'a, M> {
    /// A portfolio whose reducer begins with the recorded witness and ends with the smallest found.
    pub fn new(reducer: &'r mut Reducer<'a, M>, phases: &'r mut Vec<PhaseSummary>, began: Instant) -> Self {
        let policies = Policy::portfolio(reducer.engine.problem.rule());
        let (whole, settled, reduced, tried_to_prove) = (None, None, None, None);
        Portfolio { reducer, phases, began, policies, whole, settled, reduced, tried_to_prove }
    }

    /// Runs it.
    pub fn run(mut self) -> Ending {
        let recording = self.reducer.best.clone();
        let (thinned, reduced) = self.reduce();
        self.prepare(&recording, &thinned);
        let mut archive = Archive::new(self.site(), self.purse());
        archive.add(vec![reduced]);
        aim::at(&mut self.reducer.engine, &recording);
        archive.site = self.site();
        self.whole = exhaustive::whole(self.reducer, recording);
        let mut tried = AllTried::default();
        for (number, turn) in PLAN.iter().enumerate() {
            let fits = match turn.when {
                When::Always => true,
                When::Open => self.settled.is_none() && self.whole.is_none(),
                When::Proven => archive.proven.is_some(),
                When::Unproven => archive.proven.is_none(),
            };
            let without = &self.reducer.engine.problem.criteria.without;
            if !fits || without.iter().any(|name| name == turn.name) {
                continue;
            }
            if number > 0 {
                archive.purse = self.purse();
            }
            self.turn(&mut archive, turn, &mut tried);
        }
        self.finish(archive)
    }

    /// Reduces the recording by local passes. Whatever ends the work later, this is there.
    fn reduce(&mut self) -> (Shared<M>, Solution) {
        let (thinned, tried) = self.reducer.local(&self.policies);
        self.reducer.say_reduced();
        self.phases.append(&mut self.reducer.phases);
        let (acts, size) = (self.reducer.best.acts.clone(), self.reducer.best.size);
        let schedule = self.reducer.engine.to_schedule(&acts);
        self.reduced = Some((
            Reduced { schedule: schedule.clone(), size, tried, seconds: self.began.elapsed().as_secs_f64() },
            acts,
        ));
        (thinned, Solution { schedule, size, cut: tried.is_none(), ..Solution::default() })
    }

    /// Makes the problem that jobs share: of the recording, cut at the violation, and of what local passes leave of it.
    fn prepare(&mut self, recording: &Shared<M>, thinned: &Shared<M>) {
        let engine = &mut self.reducer.engine;
        let [raw, thinned] = [recording, thinned].map(|witness| witness.acts.clone());
        let reduced = self.reducer.best.acts.clone();
        let paid = engine.paid();
        let mut problem = Problem { raw, thinned, reduced, begun: true, paid, ..(*engine.problem).clone() };
        if engine.bound().is_none() {
            problem.pattern_database = search::pattern_database(engine, &problem.raw).map(Arc::new);
        }
        self.reducer.engine.pose(&Arc::new(self.read(problem)));
    }

    /// Tries each step alone under every policy, unless that was done with these steps.
    fn close(&mut self) -> Option<u64> {
        match &self.reduced {
            Some((reduced, acts)) if reduced.tried.is_some() && *acts == self.reducer.best.acts => {
                reduced.tried
            }
            _ => self.reducer.close(&self.policies),
        }
    }

    /// The problem with all names and contents that the reducer has met.
    fn read(&self, problem: Problem<M>) -> Problem<M> {
        let engine = &self.reducer.engine;
        Problem { sim: engine.sim.clone(), fields: engine.fields.clone(), ..problem }
    }

    fn site(&self) -> Site<'a, M> {
        Site { problem: self.reducer.engine.problem.clone(), tell: self.reducer.tell, threads: 1 }
    }

    fn purse(&self) -> Purse {
        let (meter, budget) = (&self.reducer.engine.meter, self.reducer.engine.problem.options.budget);
        let problem = &self.reducer.engine.problem;
        let billed = problem.sim.model().runtime().is_billed();
        let replay = billed.then(|| problem.replay_cost());
        Purse { budget, began: self.began, replays: meter.replays, executed: meter.executed, replay }
    }

    /// Runs one turn of the plan.
    fn turn(&mut self, archive: &mut Archive<'a, M>, turn: &Turn, tried: &mut AllTried) {
        let known = archive.incumbent().cloned();
        if turn.when != When::Proven && aim::at_solution(&mut self.reducer.engine, known.as_ref()) {
            archive.site = self.site();
            *tried = AllTried::default();
        }
        let base = match &archive.proven {
            Some((proven, _)) if turn.when == When::Proven => Some(proven.clone()),
            _ => known.clone(),
        };
        let until = (turn.until, IDLE_PART);
        match (turn.strategy, &base) {
            (plan::Strategy::Recorded { from, to, part }, _) => {
                pursue(archive, &mut Recorded { wave: (from, to), part }, until);
            }
            (plan::Strategy::Beam(reaches), Some(base)) => {
                let mut others = Vec::new();
                let tried = if turn.when == When::Proven { &mut others } else { &mut tried.beams };
                let problem = archive.site.problem.clone();
                pursue(archive, &mut Beams::new(&problem, reaches, base, tried), until);
            }
            (plan::Strategy::Small(widths), Some(base)) if self.reducer.engine.bound().is_none() => {
                let problem = archive.site.problem.clone();
                pursue(archive, &mut SmallSets::new(&problem, base, widths), until);
            }
            (plan::Strategy::Small(_), Some(_)) => {}
            (plan::Strategy::Kinds(rings), Some(_)) => {
                pursue(archive, &mut OverKinds::new(rings, &mut tried.kinds), until);
            }
            (plan::Strategy::Late, Some(base)) if self.late_starts_matter(base) => {
                let problem = archive.site.problem.clone();
                pursue(archive, &mut Late::new(&problem, base), until);
            }
            (plan::Strategy::Late, Some(_)) => {}
            (plan::Strategy::Rounds(effort), Some(base)) => {
                pursue(archive, &mut Rounds::new(effort, base), until);
            }
            (plan::Strategy::Runs, Some(_)) if self.reducer.engine.sim.model().workload().paced() => {
                pursue(archive, &mut RandomRuns::default(), (turn.until, RUN_IDLE));
            }
            (plan::Strategy::Runs, Some(_)) => {}
            (plan::Strategy::Restarts, Some(_)) if self.reducer.engine.problem.criteria.when_stable => {}
            (plan::Strategy::Restarts, Some(base)) => {
                let until = self.unspent(base);
                // Nothing comes after them.
                pursue(archive, &mut Restarts::new(until), (until, 1.0));
            }
            (_, None) => {}
        }
        if turn.prove {
            self.prove(archive);
        }
        if turn.when == When::Proven {
            let objective = archive.objective();
            let least = archive.incumbent().map(|best| best.size);
            let stays = |proven: &Solution| least.is_none_or(|least| !objective.smaller(least, proven.size));
            archive.proven = archive.proven.take().filter(|(proven, _)| stays(proven));
        }
    }

    /// Whether an execution with a late start may be shorter than all without: what is sent too early is in the way only where
    /// messages keep their order, and over all external events nothing is shorter where that is proven.
    fn late_starts_matter(&self, base: &Solution) -> bool {
        let ordered = self.reducer.engine.rule == NetworkRule::Fifo;
        ordered && self.whole.is_none() && self.settled.is_none() && base.size.deliveries <= SHORT
    }

    /// Up to which part of what strategies may use there is budget to spare: what the checks of a result cost is kept back, and
    /// something for smaller contents where there may be some.
    fn unspent(&mut self, best: &Solution) -> f64 {
        let checks = (CHECKS * best.size.steps * self.policies.len()) as f64;
        let kept = match self.reducer.engine.problem.options.budget {
            Budget::Seconds(_) => KEPT,
            Budget::Replays(n) => checks / n as f64,
            Budget::States(n) => checks * best.size.steps as f64 / n as f64,
        };
        let engine = &mut self.reducer.engine;
        let keep = engine.problem.criteria.contents == Contents::Keep;
        let witness = engine.restore(&best.schedule).filter(|_| !keep);
        let contents = witness.is_some_and(|witness| contents::any(engine, &witness));
        let kept = kept.max(if contents { FOR_CONTENTS } else { KEPT });
        (1.0 - kept).max(0.0) / SEARCHED
    }

    /// Tries to prove the incumbent, where none of its size was tried before.
    fn prove(&mut self, archive: &mut Archive<'a, M>) {
        let best = archive.incumbent().cloned();
        // What is proven of the incumbent stays proven.
        let Some(better) = best.filter(|best| self.tried_to_prove != Some(best.size)) else { return };
        self.tried_to_prove = Some(better.size);
        if aim::at_solution(&mut self.reducer.engine, Some(&better)) {
            archive.site = self.site();
        }
        archive.proven = match &self.whole {
            Some(whole) => Some(whole.clone()),
            None => exhaustive::soon(self.reducer, &better),
        };
        if let Some((proven, _)) = &archive.proven {
            if self.settled.is_none() && self.reducer.engine.problem.asked.matching == Match::Fingerprint {
                self.settled = settled(self.reducer, proven.size);
            }
            let phases = std::mem::take(&mut self.reducer.phases);
            archive.add(vec![Solution { phases, ..proven.clone() }]);
        }
    }

    /// Makes the result of what was found.
    fn finish(mut self, mut archive: Archive<'_, M>) -> Ending {
        let proven = archive.proven.take();
        let mut results = std::mem::take(&mut archive.results);
        let proof = proven.as_ref().map(|(proven, _)| proven);
        let given = result(archive.objective(), &results, proof).cloned();
        self.adopt(&mut results, given.as_ref());
        let adopted = self.reducer.best.clone();
        aim::at(&mut self.reducer.engine, &adopted);
        let jobs = self.reducer.engine.problem.options.jobs;
        // Checked first: what costs more may use up the budget.
        let policies = self.policies.clone();
        let mut tried = self.close();
        let before = self.reducer.best.size;
        if proven.is_none() {
            let limits = self.reducer.engine.meter.narrow(POLISH_PART);
            self.reducer.phase("endings", |s| endings::search(s, POLISH, jobs));
            self.reducer.engine.meter.widen(limits);
        }
        self.reducer.reduce(&policies);
        if self.reducer.best.size != before {
            tried = self.close();
        }
        let contents = self.reducer.engine.problem.criteria.contents;
        if contents == Contents::Shrink && self.shrink().is_some() {
            tried = self.close();
        }
        aim::settle(self.reducer);
        let known = proven.filter(|(solution, _)| {
            // Another violation may count than that of which it was proven.
            self.reducer.engine.problem.asked.matching == Match::Fingerprint
                && solution.size == self.reducer.best.size
                && solution.schedule == self.reducer.engine.to_schedule(&self.reducer.best.acts)
        });
        let before = self.reducer.best.acts.clone();
        let mut shortest = match known {
            Some((_, shortest)) => Some(shortest),
            None => exhaustive::prove(self.reducer, LATER),
        };
        while aim::cut(self.reducer) {
            shortest = exhaustive::prove(self.reducer, LATER);
        }
        if self.reducer.best.acts != before {
            let optimal = self.reducer.best.size;
            tried = self.close();
            if self.reducer.best.size != optimal {
                shortest = exhaustive::prove(self.reducer, LATER);
            }
        }
        // The result itself is on the front, and may have been found last.
        let mut others = pareto(results);
        if contents == Contents::Other {
            self.phases.append(&mut self.reducer.phases);
            others.extend(self.smaller());
        }
        let steps = self.reducer.best.size.steps as u64;
        let settled = self.settled.filter(|settled| settled.steps == steps);
        Ending { reduced: self.reduced.map(|(reduced, _)| reduced), others, tried, shortest, settled }
    }

    /// A solution with smaller contents, if there is one, beside that of the reducer.
    fn smaller(&mut self) -> Option<Solution> {
        let before = self.reducer.best.clone();
        let (problem, fields) = (self.reducer.engine.problem.clone(), self.reducer.engine.fields.clone());
        let curve = self.reducer.curve.clone();
        let found = self.shrink().map(|without| {
            self.reducer.close(&self.policies);
            let schedule = self.reducer.engine.to_schedule(&self.reducer.best.acts);
            Solution { schedule, size: self.reducer.best.size, without, ..Solution::default() }
        });
        (self.reducer.best, self.reducer.engine.fields, self.reducer.curve) = (before, fields, curve);
        self.reducer.engine.pose(&problem);
        found
    }

    /// Leaves out components of messages from outside and looks around from there. Gives the components.
    fn shrink(&mut self) -> Option<Vec<String>> {
        // What the bound was made of is about to change.
        let mut problem = Problem { pattern_database: None, ..(*self.reducer.engine.problem).clone() };
        self.reducer.engine.pose(&Arc::new(problem.clone()));
        let mut gone = Vec::new();
        let policies = self.policies.clone();
        self.reducer.phase("contents", |s| gone = contents::shrink(s, &policies));
        if gone.is_empty() {
            return None;
        }
        for component in &gone {
            if let Some(left) = contents::lacking(&mut self.reducer.engine, &problem.raw, component) {
                problem.raw = left;
            }
        }
        self.reducer.engine.pose(&Arc::new(self.read(problem)));
        self.phases.append(&mut self.reducer.phases);
        let schedule = self.reducer.engine.to_schedule(&self.reducer.best.acts);
        let given = Solution { schedule, size: self.reducer.best.size, ..Solution::default() };
        let mut archive = Archive::new(self.site(), self.purse());
        pursue(&mut archive, &mut Rounds::new(plan::LITTLE, &given), (1.0, 1.0));
        let best = archive.incumbent().unwrap_or(&given).clone();
        let problem = archive.site.problem.clone();
        let mut tried = Vec::new();
        pursue(&mut archive, &mut Beams::new(&problem, ELSEWHERE, &best, &mut tried), (CONTENTS, 1.0));
        let mut found = archive.results;
        // The result with its contents as recorded stands beside this one: nothing may have grown.
        found.retain(|s| s.size == given.size || s.size.dominates(given.size));
        self.adopt(&mut found, None);
        let adopted = self.reducer.best.clone();
        self.reducer.reduce(&policies);
        let size = self.reducer.best.size;
        if size != adopted.size && !size.dominates(adopted.size) {
            self.reducer.take(adopted);
        }
        Some(gone)
    }

    /// Gives the reducer the smallest of the solutions, the first of equals, or the one that is given, if it is smaller than
    /// what it has, and accounts for the rest.
    fn adopt(&mut self, solutions: &mut [Solution], given: Option<&Solution>) {
        let objective = self.reducer.engine.problem.options.objective;
        let best = match given {
            Some(given) => solutions.iter().position(|s| s.schedule == given.schedule),
            None => objective.least(solutions.iter().map(|s| s.size)),
        };
        let mut rest = phase_line("other jobs", &[]);
        for (index, solution) in solutions.iter().enumerate() {
            self.reducer.account.add(&solution.account);
            if Some(index) == best {
                self.reducer.join(&solution.curve);
                if let Some(witness) = self.reducer.engine.recover(&solution.schedule) {
                    let sizes = [self.reducer.best.size, witness.size];
                    if objective.least(sizes.into_iter()) == Some(1) {
                        self.reducer.take(witness);
                    }
                }
                self.phases.extend(solution.phases.iter().cloned());
            } else {
                rest.replays += solution.replays();
                rest.executed += solution.executed();
                rest.seconds += solution.phases.iter().map(|p| p.seconds).sum::<f64>();
            }
        }
        self.reducer.engine.meter.replays += solutions.iter().map(Solution::replays).sum::<u64>();
        self.reducer.engine.meter.executed += solutions.iter().map(Solution::executed).sum::<u64>();
        self.phases.push(PhaseSummary {
            replays: rest.replays,
            executed: rest.executed,
            seconds: rest.seconds,
            ..phase_line("other jobs", &self.reducer.best.acts)
        });
    }
}

/// Runs what a strategy proposes until it proposes nothing more, or has used much since it gained anything: others may do
/// better with the rest.
fn pursue<M: Model>(
    archive: &mut Archive<'_, M>,
    strategy: &mut impl Strategy<M>,
    (until, idle): (f64, f64),
) {
    let ended = |archive: &Archive<'_, M>| {
        let left = archive.site.problem.deadline.left();
        archive.site.problem.options.stop.is_set() || left.is_some_and(|left| left.is_zero())
    };
    let left = |archive: &Archive<'_, M>| archive.purse().part_left(&archive.site.problem.deadline);
    let size = |archive: &Archive<'_, M>| archive.incumbent().map(|best| best.size);
    let mut gained = (left(archive), size(archive));
    while !ended(archive) && left(archive) >= gained.0 * (1.0 - idle) {
        let jobs = strategy.propose(archive);
        if jobs.is_empty() {
            return;
        }
        let found = scheduler::run(&archive.site, archive.purse().within(until), &jobs);
        archive.add(found);
        if size(archive) != gained.1 {
            gained = (left(archive), size(archive));
        }
    }
}

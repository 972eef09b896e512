//! All executions within the bounds, the cheapest first.
//!
//! Moments are taken in the order of what was spent on them: cost, faults, steps (iterative context bounding; Musuvathi and Qadeer,
//! PLDI 2007). So what is found first is the least, and when a cost is done everything that costs no more is known. A moment that
//! was met before, for as little and after as few steps, is not gone on with: it leads to nothing that is not known.

use std::collections::BTreeMap;

use demi_replay::fuzz::{self, Choice, FuzzError};
use demi_replay::{Model, OUTSIDE, Simulator, Violation};
use rustc_hash::FxHashMap;

use crate::cost::{Bounds, Cost, Spent};
use crate::menu::menu;
use crate::moment::Moment;
use crate::scene::Scene;

/// A violation, with the cheapest execution that ends in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is broken.
    pub violations: Vec<Violation>,
    /// What the execution spent.
    pub spent: Spent,
    /// The execution, from nothing on.
    pub choices: Vec<Choice>,
    /// Where it is a livelock: the deliveries after which everything is as it was before.
    pub round: Vec<String>,
}

/// What was done with the executions of one cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Moments that were gone on from.
    pub moments: u64,
    /// Steps that were executed.
    pub steps: u64,
    /// Moments that were known.
    pub known: u64,
    /// Executions that came to an end by themselves.
    pub ends: u64,
    /// Executions that were cut off after as many steps as one may have.
    pub cut: u64,
}

/// How an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every execution within the bounds was looked at.
    Complete,
    /// What was found is enough.
    Found,
    /// The caller stopped it.
    Stopped,
}

/// What an exploration came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// What was found: for each set of fingerprints the least of what violates so, in the order of what they spent.
    pub findings: Vec<Finding>,
    /// What was done, by cost.
    pub levels: Vec<Level>,
    /// How many different moments there were.
    pub met: u64,
    /// The sum of their numbers: equal sets have equal sums.
    pub digest: u128,
    /// How it ended.
    pub ended: Ended,
}

/// What is told while it goes on.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// What the executions have spent that are looked at now.
    pub at: Spent,
    /// Steps so far.
    pub steps: u64,
    /// Moments that wait.
    pub waiting: u64,
    /// Different violations.
    pub found: usize,
}

/// A moment that waits, and how it was reached.
struct Node<M: Model> {
    moment: Moment<M>,
    place: usize,
    /// Set where it violates.
    violations: Vec<Violation>,
}

/// How a moment was reached: from which, by which choice and what the test driver then did.
struct Way {
    from: usize,
    choices: Vec<Choice>,
}

/// Explores from a beginning. `all` goes on after the first violation, to the least of each; `cache` is off only to test that it
/// changes nothing. `tell` is asked now and then whether to go on.
///
/// # Errors
/// When the model does not know a condition.
pub fn explore<M: Model>(
    sim: &mut Simulator<M>,
    (scene, first): (&Scene, Moment<M>),
    bounds: Bounds,
    (all, cache): (bool, bool),
    tell: &mut dyn FnMut(Told) -> bool,
) -> Result<Explored, FuzzError> {
    let mut search = Search {
        scene,
        bounds,
        ways: vec![Way { from: 0, choices: scene.before.clone() }],
        waiting: BTreeMap::new(),
        count: 0,
        seen: FxHashMap::default(),
        cache,
        levels: Vec::new(),
        findings: Vec::new(),
    };
    let violations = broken(sim, &first);
    search.wait(Spent::default(), Node { moment: first, place: 0, violations });
    let ended = search.run(sim, all, tell)?;
    let digest = search.seen.keys().fold(0_u128, |sum, key| sum.wrapping_add(*key));
    let met = search.seen.len() as u64;
    Ok(Explored { findings: search.findings, levels: search.levels, met, digest, ended })
}

struct Search<'a, M: Model> {
    scene: &'a Scene,
    bounds: Bounds,
    ways: Vec<Way>,
    waiting: BTreeMap<Spent, Vec<Node<M>>>,
    count: u64,
    /// By moment: the fewest steps after which it was met.
    seen: FxHashMap<u128, u32>,
    /// Whether moments that are known are not gone on with.
    cache: bool,
    levels: Vec<Level>,
    findings: Vec<Finding>,
}

impl<M: Model> Search<'_, M> {
    fn wait(&mut self, spent: Spent, node: Node<M>) {
        self.count += 1;
        self.waiting.entry(spent).or_default().push(node);
    }

    fn run(
        &mut self,
        sim: &mut Simulator<M>,
        all: bool,
        tell: &mut dyn FnMut(Told) -> bool,
    ) -> Result<Ended, FuzzError> {
        while let Some((spent, nodes)) = self.waiting.pop_first() {
            self.level(spent);
            self.count -= nodes.len() as u64;
            for node in nodes {
                let steps = self.levels.iter().map(|level| level.steps).sum();
                let told = Told { at: spent, steps, waiting: self.count, found: self.findings.len() };
                if !tell(told) {
                    return Ok(Ended::Stopped);
                }
                if !node.violations.is_empty() {
                    self.found(sim, node, spent);
                    if !all {
                        return Ok(Ended::Found);
                    }
                    continue;
                }
                if self.known(sim, &node.moment, spent) {
                    self.level(spent).known += 1;
                    continue;
                }
                self.go_on(sim, &node, spent)?;
            }
        }
        // Where nothing was left at a cost there is nothing at higher ones.
        let levels = self.bounds.most.cost as usize + 1;
        self.levels.resize_with(levels.max(self.levels.len()), Level::default);
        Ok(Ended::Complete)
    }

    fn level(&mut self, spent: Spent) -> &mut Level {
        let at = spent.cost as usize;
        if self.levels.len() <= at {
            self.levels.resize_with(at + 1, Level::default);
        }
        &mut self.levels[at]
    }

    /// Whether everything that the moment leads to is known; from now on it is.
    fn known(&mut self, sim: &Simulator<M>, moment: &Moment<M>, spent: Spent) -> bool {
        let waits = !self.scene.program.is_over(moment.done);
        let key = moment.key(sim, spent.faults, (waits, self.bounds.cost == Cost::Preempt));
        // Moments come in the order of their costs, so only steps can be fewer than before.
        let least = self.seen.entry(key).or_insert(u32::MAX);
        let known = *least <= spent.steps;
        *least = spent.steps.min(*least);
        known && self.cache
    }

    /// Makes each choice that the bounds allow.
    fn go_on(&mut self, sim: &mut Simulator<M>, node: &Node<M>, spent: Spent) -> Result<(), FuzzError> {
        let most = self.bounds.most;
        let items = menu(sim, self.scene, &node.moment, self.bounds.cost, most.faults - spent.faults);
        if items.is_empty() {
            self.level(spent).ends += 1;
            return Ok(());
        }
        if spent.steps >= most.steps {
            self.level(spent).cut += 1;
            return Ok(());
        }
        self.level(spent).moments += 1;
        for item in items {
            let after = Spent {
                cost: spent.cost + item.spends.cost,
                faults: spent.faults + item.spends.faults,
                steps: spent.steps + item.spends.steps,
            };
            if after.cost > most.cost {
                continue;
            }
            let mut moment = node.moment.clone();
            let mut choices = vec![item.choice];
            self.level(spent).steps += 1;
            make(sim, self.scene, &mut moment, item.choice);
            if let Some(then) = item.then {
                make(sim, self.scene, &mut moment, then);
                choices.push(then);
            }
            moment.at = item.at;
            let mut violations = broken(sim, &moment);
            if violations.is_empty() {
                self.scene.settle(sim, &mut moment, &mut choices)?;
                if choices.len() > 1 {
                    violations = broken(sim, &moment);
                }
            }
            self.ways.push(Way { from: node.place, choices });
            let place = self.ways.len() - 1;
            self.wait(after, Node { moment, place, violations });
        }
        Ok(())
    }

    fn found(&mut self, sim: &Simulator<M>, node: Node<M>, spent: Spent) {
        let same = |finding: &Finding| {
            finding
                .violations
                .iter()
                .map(|v| &v.fingerprint)
                .eq(node.violations.iter().map(|v| &v.fingerprint))
        };
        if self.findings.iter().any(same) {
            return;
        }
        let mut parts = Vec::new();
        let mut at = node.place;
        loop {
            parts.push(&self.ways[at].choices);
            if at == 0 {
                break;
            }
            at = self.ways[at].from;
        }
        let choices = parts.into_iter().rev().flatten().copied().collect();
        let livelock = if sim.livelock_counts() { sim.livelock(&node.moment.world) } else { None };
        let round = livelock.map(|livelock| livelock.round).unwrap_or_default();
        self.findings.push(Finding { violations: node.violations, spent, choices, round });
    }
}

/// Makes a choice at a moment.
fn make<M: Model>(sim: &mut Simulator<M>, scene: &Scene, moment: &mut Moment<M>, choice: Choice) {
    match choice {
        Choice::Client(..) => moment.sent += 1,
        Choice::Deliver(index) => {
            moment.last = moment.world.pending().get(index as usize).map(|entry| entry.to);
        }
        _ => {}
    }
    fuzz::apply(sim, &mut moment.world, &scene.program, choice, scene.rule);
}

/// What a moment breaks by itself, in the order of the fingerprints. A panic of the model is a violation.
fn broken<M: Model>(sim: &Simulator<M>, moment: &Moment<M>) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Err(panic) = sim.judge(&moment.world, &mut M::History::default(), &mut found) {
        let affected = if panic.actor == OUTSIDE { Vec::new() } else { vec![panic.actor] };
        return vec![Violation { fingerprint: sim.explain(&panic), affected }];
    }
    found.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
    found
}

//! The whole pipeline on one stage: many starts, the best of them to the end, smaller contents, the proofs.

use std::time::Instant;

use demi_replay::Model;
use demi_replay::script::{Act, Script};
use demi_schemas::certificate::Shortest;
use demi_schemas::summary::PhaseSummary;

use crate::matcher::Policy;
use crate::passes::contents;
use crate::pipeline::Options;
use crate::stage::{Stage, phase_line};
use crate::starts::{Common, Purse, Start, explored, recorded, restore};
use crate::witness::Size;

/// What the pipeline works with.
pub struct All<'a> {
    /// The recorded schedule.
    pub script: &'a Script,
    /// What is asked.
    pub options: &'a Options,
    /// When the work began.
    pub began: Instant,
}

/// Results that are smaller than the stage's in some way; how many removals the last check of 1-minimality tried,
/// if it came to its end; and what was proven.
pub type Ending = (Vec<Start>, Option<u64>, Option<Shortest>);

impl All<'_> {
    /// Runs the pipeline. The stage begins with the recorded witness and ends with the smallest found.
    pub fn run<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        policies: &[Policy],
        phases: &mut Vec<PhaseSummary>,
    ) -> Ending {
        let raw = stage.best.acts.clone();
        stage.prepare();
        phases.append(&mut stage.phases);
        let mut common = self.common(stage, policies, raw);
        let purse = self.purse(stage);
        let mut results = recorded(&common, purse);
        if let Some(best) = common.objective.choose(results.iter().map(|s| s.size)).map(|i| &results[i]) {
            let spent: u64 = results.iter().map(Start::replays).sum();
            let found = explored(&common, best, Purse { spent: purse.spent + spent, ..purse });
            results.extend(found);
        }
        adopt(stage, &common, &mut results, phases);
        stage.engine.generous = false;
        // Checked first: what costs more may use up the budget.
        let mut tried = stage.close(policies);
        let before = stage.best.size;
        stage.reduce(policies);
        if stage.best.size != before {
            tried = stage.close(policies);
        }
        let mut gone = Vec::new();
        stage.phase("contents", |s| gone = contents::shrink(s, policies));
        if !gone.is_empty() {
            for component in &gone {
                if let Some(left) = contents::lacking(&mut stage.engine, &common.raw, component) {
                    common.raw = left;
                }
            }
            common.sim.clone_from(&stage.engine.sim);
            common.fields.clone_from(&stage.engine.fields);
            phases.append(&mut stage.phases);
            let start = Start {
                schedule: stage.engine.to_schedule(&stage.best.acts),
                size: stage.best.size,
                ..Start::default()
            };
            let mut found = explored(&common, &start, self.purse(stage));
            adopt(stage, &common, &mut found, phases);
            results.extend(found);
            stage.reduce(policies);
            tried = stage.close(policies);
        }
        let before = stage.best.size;
        let mut shortest = stage.prove();
        if stage.best.size != before {
            let optimal = stage.best.size;
            tried = stage.close(policies);
            if stage.best.size != optimal {
                shortest = stage.prove();
            }
        }
        (pareto(results), tried, shortest)
    }

    fn common<'a, M: Model>(
        &'a self,
        stage: &Stage<'a, M>,
        policies: &'a [Policy],
        raw: Vec<Act>,
    ) -> Common<'a, M> {
        Common {
            sim: stage.engine.sim.clone(),
            script: self.script,
            prepared: stage.best.acts.clone(),
            raw,
            fields: stage.engine.fields.clone(),
            rule: self.options.rule,
            target: stage.engine.target.clone(),
            objective: self.options.objective,
            policies,
            jobs: self.options.jobs.max(1),
            stop: self.options.stop.clone(),
            tell: stage.tell,
        }
    }

    fn purse<M: Model>(&self, stage: &Stage<'_, M>) -> Purse {
        Purse { budget: self.options.budget, began: self.began, spent: stage.engine.meter.replays }
    }
}

/// Gives the stage the smallest of the results, the first of equals, if it is smaller than what it has, and accounts
/// for the rest.
fn adopt<M: Model>(
    stage: &mut Stage<'_, M>,
    common: &Common<'_, M>,
    results: &mut [Start],
    phases: &mut Vec<PhaseSummary>,
) {
    let best = common.objective.choose(results.iter().map(|s| s.size));
    let mut rest = phase_line("other starts", &[]);
    for (index, start) in results.iter_mut().enumerate() {
        stage.account.add(&start.account);
        if Some(index) == best {
            stage.join(&start.curve);
            stage.engine.meter.executed += start.executed();
            if let Some(witness) = restore(&mut stage.engine, &start.schedule) {
                let sizes = [stage.best.size, witness.size];
                if common.objective.choose(sizes.into_iter()) == Some(1) {
                    stage.take(witness);
                }
            }
            phases.extend(start.phases.iter().cloned());
        } else {
            rest.replays += start.replays();
            rest.executed += start.executed();
            rest.seconds += start.phases.iter().map(|p| p.seconds).sum::<f64>();
        }
    }
    stage.engine.meter.replays += results.iter().map(Start::replays).sum::<u64>();
    phases.push(PhaseSummary {
        replays: rest.replays,
        executed: rest.executed,
        seconds: rest.seconds,
        ..phase_line("other starts", &stage.best.acts)
    });
}

/// The results that no other beats in both figures, the first of equals.
fn pareto(mut results: Vec<Start>) -> Vec<Start> {
    let sizes: Vec<Size> = results.iter().map(|s| s.size).collect();
    let mut seen = Vec::new();
    results.retain(|s| {
        let kept = !sizes.iter().any(|o| o.dominates(s.size)) && !seen.contains(&s.size);
        seen.push(s.size);
        kept
    });
    results
}

//! The whole pipeline on one stage: many starts, the best of them to the end, smaller contents, the proofs.

use std::sync::Arc;
use std::time::Instant;

use demi_replay::Model;
use demi_replay::script::{Act, Script};
use demi_schemas::certificate::Shortest;
use demi_schemas::summary::PhaseSummary;

use crate::beams;
use crate::descents::FEW;
use crate::matcher::Policy;
use crate::oracle::{Contents, Match};
use crate::passes::{contents, endings};
use crate::pipeline::Options;
use crate::rounds::{LITTLE, QUICK, explored};
use crate::search;
use crate::stage::{Stage, phase_line};
use crate::start::Start;
use crate::starts::{Common, Purse, restore};
use crate::witness::Size;

/// Configurations that the proof of the result may visit.
const LATER: u64 = 8_000_000;

/// Part of the budget after which no more beams begin: what they find is often one step from something smaller.
const BEAMS: f64 = 0.85;

/// Part of the budget, as the other, that is open to beams over smaller contents: little is left by then.
const CONTENTS: f64 = 1.1;

/// Configurations that the search for another ending of the result may visit from each place.
const POLISH: u64 = 1_000_000;

/// What the pipeline works with.
pub struct All<'a> {
    /// The recorded schedule.
    pub script: &'a Script,
    /// What is asked.
    pub options: &'a Options,
    /// When the work began.
    pub began: Instant,
}

/// Results that are smaller than the stage's in some way, and one with smaller contents; how many removals the last check
/// of 1-minimality tried, if it came to its end; and what was proven.
pub type Ending = (Vec<Start>, Option<u64>, Option<Shortest>);

impl All<'_> {
    /// Runs the pipeline. The stage begins with the recorded witness and ends with the smallest found.
    pub fn run<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        policies: &[Policy],
        phases: &mut Vec<PhaseSummary>,
    ) -> Ending {
        let recording = stage.best.clone();
        let raw = recording.acts.clone();
        if stage.engine.bound().is_none() {
            stage.engine.partition = search::partition(&mut stage.engine, &raw).map(Arc::new);
        }
        stage.prepare();
        phases.append(&mut stage.phases);
        let mut common = self.common(stage, policies, raw);
        let purse = self.purse(stage);
        let best = |results: &[Start]| self.best(results);
        common.aim(stage, &recording);
        let whole = self.whole(stage, &common, recording);
        let (mut results, mut proven) = self.descents(stage, &mut common, (purse, whole.as_ref()));
        let replaces = |other: &Start, proven: &Start| {
            let few = whole.is_some() || proven.size.externals <= FEW;
            self.options.objective.replaces(other.size, proven.size, few)
        };
        if let Some((start, _)) = &proven {
            results.push(Start { phases: std::mem::take(&mut stage.phases), ..start.clone() });
            let (start, purse) = (start.clone(), self.purse(stage).after(&results));
            results.extend(beams::searched(&common, &start, purse, &beams::OTHERS, &mut Vec::new()));
            let replaced = results.iter().any(|s| replaces(s, &start));
            proven = proven.filter(|_| !replaced);
        }
        // Beams find most where the result they begin with is not far off; narrow ones cost little anywhere. Walks come before
        // those that choose, which leave what is near the recording.
        if let Some(recorded) = best(&results).filter(|_| proven.is_none()) {
            let mut tried = Vec::new();
            let purse = self.purse(stage).after(&results);
            common.aim_at(stage, Some(&recorded));
            results.extend(beams::searched(&common, &recorded, purse, beams::NARROW, &mut tried));
            if let Some(best) = best(&results) {
                results.extend(explored(&common, &best, self.purse(stage).after(&results), QUICK));
            }
            if let Some(best) = best(&results) {
                let purse = self.purse(stage).after(&results).within(BEAMS);
                if common.aim_at(stage, Some(&best)) {
                    tried.clear();
                }
                results.extend(beams::searched(&common, &best, purse, &beams::REACHES, &mut tried));
            }
        }
        if let Some(best) = best(&results) {
            common.aim_at(stage, Some(&best));
            results.extend(explored(&common, &best, self.purse(stage).after(&results), LITTLE));
        }
        let given = proven.as_ref().and_then(|(proven, _)| {
            let others: Vec<Start> = results.iter().filter(|s| replaces(s, proven)).cloned().collect();
            best(&others).or_else(|| Some(proven.clone()))
        });
        adopt(stage, &common, &mut results, given.as_ref(), phases);
        let adopted = stage.best.clone();
        common.aim(stage, &adopted);
        stage.engine.settling = true;
        if proven.is_none() {
            stage.phase("endings", |s| endings::search(s, POLISH, self.options.jobs));
        }
        // Checked first: what costs more may use up the budget.
        let mut tried = stage.close(policies);
        let before = stage.best.size;
        stage.reduce(policies);
        if stage.best.size != before {
            tried = stage.close(policies);
        }
        if stage.engine.oracle.contents == Contents::Shrink
            && self.shrink(stage, &mut common, phases).is_some()
        {
            tried = stage.close(policies);
        }
        common.settle(stage);
        let known = proven.filter(|(start, _)| {
            // Another violation may count than that of which it was proven.
            common.asked.0 == Match::Fingerprint
                && start.size == stage.best.size
                && start.schedule == stage.engine.to_schedule(&stage.best.acts)
        });
        let before = stage.best.acts.clone();
        let mut shortest = match known {
            Some((_, shortest)) => Some(shortest),
            None => common.prove(stage, LATER),
        };
        while common.cut(stage) {
            shortest = common.prove(stage, LATER);
        }
        if stage.best.acts != before {
            let optimal = stage.best.size;
            tried = stage.close(policies);
            if stage.best.size != optimal {
                shortest = common.prove(stage, LATER);
            }
        }
        results = pareto(results);
        if stage.engine.oracle.contents == Contents::Other {
            phases.append(&mut stage.phases);
            results.extend(self.smaller(stage, &mut common, phases));
        }
        (results, tried, shortest)
    }

    /// The smallest of some results.
    pub(crate) fn best(&self, results: &[Start]) -> Option<Start> {
        let best = self.options.objective.choose(results.iter().map(|s| s.size));
        best.map(|at| results[at].clone())
    }

    /// A result with smaller contents, if there is one, beside that of the stage.
    fn smaller<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        common: &mut Common<'_, M>,
        phases: &mut Vec<PhaseSummary>,
    ) -> Option<Start> {
        let (best, fields, curve) = (stage.best.clone(), stage.engine.fields.clone(), stage.curve.clone());
        let found = self.shrink(stage, common, phases).map(|without| {
            stage.close(common.policies);
            let schedule = stage.engine.to_schedule(&stage.best.acts);
            Start { schedule, size: stage.best.size, without, ..Start::default() }
        });
        (stage.best, stage.engine.fields, stage.curve) = (best, fields, curve);
        found
    }

    /// Leaves out components of messages from outside and looks around from there. Gives the components.
    fn shrink<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        common: &mut Common<'_, M>,
        phases: &mut Vec<PhaseSummary>,
    ) -> Option<Vec<String>> {
        // What the bound was made of is about to change.
        (stage.engine.partition, common.partition) = (None, None);
        let mut gone = Vec::new();
        stage.phase("contents", |s| gone = contents::shrink(s, common.policies));
        if gone.is_empty() {
            return None;
        }
        for component in &gone {
            if let Some(left) = contents::lacking(&mut stage.engine, &common.raw, component) {
                common.raw = left;
            }
        }
        common.renew(stage);
        common.sim.clone_from(&stage.engine.sim);
        common.fields.clone_from(&stage.engine.fields);
        phases.append(&mut stage.phases);
        let schedule = stage.engine.to_schedule(&stage.best.acts);
        let start = Start { schedule, size: stage.best.size, ..Start::default() };
        let mut found = explored(common, &start, self.purse(stage), LITTLE);
        let best = self.best(&found).unwrap_or_else(|| start.clone());
        let purse = self.purse(stage).after(&found).within(CONTENTS);
        found.extend(beams::searched(common, &best, purse, &beams::OTHERS, &mut Vec::new()));
        // The result with its contents as recorded stands beside this one: nothing may have grown.
        found.retain(|s| s.size == start.size || s.size.dominates(start.size));
        adopt(stage, common, &mut found, None, phases);
        let adopted = stage.best.clone();
        stage.reduce(common.policies);
        if stage.best.size != adopted.size && !stage.best.size.dominates(adopted.size) {
            stage.take(adopted);
        }
        Some(gone)
    }

    fn common<'a, 's: 'a, M: Model>(
        &'a self,
        stage: &mut Stage<'s, M>,
        policies: &'a [Policy],
        raw: Vec<Act>,
    ) -> Common<'a, M> {
        let mut common = Common {
            sim: stage.engine.sim.clone(),
            script: self.script,
            prepared: stage.best.acts.clone(),
            raw,
            fields: stage.engine.fields.clone(),
            partition: stage.engine.partition.clone(),
            rule: self.options.rule,
            target: stage.engine.target.clone(),
            accepted: stage.engine.accepted.clone(),
            oracle: stage.engine.oracle.clone(),
            asked: (stage.engine.oracle.matching, stage.engine.accepted.clone()),
            objective: self.options.objective,
            policies,
            jobs: self.options.jobs.max(1),
            stop: self.options.stop.clone(),
            tell: stage.tell,
            digest: 0,
        };
        common.renew(stage);
        common
    }

    pub(crate) fn purse<M: Model>(&self, stage: &Stage<'_, M>) -> Purse {
        let meter = &stage.engine.meter;
        Purse {
            budget: self.options.budget,
            began: self.began,
            spent: meter.replays,
            executed: meter.executed,
        }
    }
}

/// Gives the stage the smallest of the results, the first of equals, or the one that is given, if it is smaller than what
/// it has, and accounts for the rest.
fn adopt<M: Model>(
    stage: &mut Stage<'_, M>,
    common: &Common<'_, M>,
    results: &mut [Start],
    given: Option<&Start>,
    phases: &mut Vec<PhaseSummary>,
) {
    let best = match given {
        Some(given) => results.iter().position(|s| s.schedule == given.schedule),
        None => common.objective.choose(results.iter().map(|s| s.size)),
    };
    let mut rest = phase_line("other starts", &[]);
    for (index, start) in results.iter_mut().enumerate() {
        stage.account.add(&start.account);
        if Some(index) == best {
            stage.join(&start.curve);
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
    stage.engine.meter.executed += results.iter().map(Start::executed).sum::<u64>();
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

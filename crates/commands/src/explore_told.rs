//! What `explore` writes and prints of what it found.

use demi_explore::{Deviation, Ended, Finding, Origin, Promise};
use demi_replay::fuzz::Found;
use demi_schemas::Scenario;
use demi_schemas::summary::{ExploreDeviation, ExploreFinding, ExploreLevel, ExplorePromise, ExploreSummary};

use crate::explore_args::{ExploreArgs, Part, bounds};

/// A finding, where its exploration began, and what is written of it.
pub type Least<'a> = (Option<u64>, &'a Finding, &'a Found);

/// The least of each violation over all beginnings: by what it spent, and then by how near to the end of the recording it begins.
pub fn least(parts: &[Part]) -> Vec<Least<'_>> {
    let mut all: Vec<Least<'_>> = parts.iter().flat_map(pairs).collect();
    // Beginnings come in that order, and sorting keeps it.
    all.sort_by_key(|(_, finding, _)| (finding.spent.cost, finding.spent.faults));
    let mut seen: Vec<&[String]> = Vec::new();
    all.retain(|(_, _, found)| {
        let new = !seen.contains(&found.violation.as_slice());
        seen.push(&found.violation);
        new
    });
    all
}

/// Where a finding left the default order: the steps of its schedule, from 0.
pub fn deviations<'a>(
    finding: &'a Finding,
    found: &Found,
) -> impl Iterator<Item = (usize, &'a Deviation)> + use<'a> {
    let steps = finding.deviations.iter().map(|deviation| found.steps_before[deviation.choice]);
    let steps: Vec<usize> = steps.collect();
    steps.into_iter().zip(&finding.deviations)
}

fn pairs(part: &Part) -> impl Iterator<Item = Least<'_>> {
    part.explored.findings.iter().zip(&part.found).map(|(finding, found)| (part.from, finding, found))
}

/// The summary of all of it.
pub fn summarize(
    args: &ExploreArgs,
    scenario: &Scenario,
    parts: &[Part],
    least: &[Least<'_>],
    incomplete: Option<String>,
) -> ExploreSummary {
    let clients = parts.first().map_or(0, |part| part.clients);
    let origin = match parts.first().and_then(|part| part.from) {
        Some(_) => Origin::Recorded(parts.len()),
        None => Origin::Beginning(clients),
    };
    let promises =
        parts.iter().map(|part| Promise::of(&part.explored, bounds(args), scenario.network, origin));
    // What holds of all beginnings is the least of what is promised of each.
    let promise = promises.collect::<Option<Vec<_>>>().and_then(|all| {
        let steps = all.iter().find_map(|promise| promise.steps);
        all.into_iter().min_by_key(|promise| promise.bound).map(|promise| Promise { steps, ..promise })
    });
    let finding = |(at, (from, finding, found)): (usize, &Least<'_>)| ExploreFinding {
        violation: found.violation.clone(),
        affected: found.affected.clone(),
        deviations: deviations(finding, found)
            .map(|(step, deviation)| ExploreDeviation {
                step: step as u64 + 1,
                cost: deviation.spends.cost,
                faults: deviation.spends.faults,
                taken: deviation.taken.clone(),
                instead_of: deviation.instead_of.clone(),
            })
            .collect(),
        from: *from,
        cost: finding.spent.cost,
        faults: finding.spent.faults,
        deliveries: found.deliveries,
        externals: found.externals,
        round: finding.round.clone(),
        schedule: match at {
            0 => "schedule.jsonl".into(),
            at => format!("schedule-{}.jsonl", at + 1),
        },
    };
    let mut levels: Vec<ExploreLevel> = Vec::new();
    for part in parts {
        for (cost, level) in part.explored.levels.iter().enumerate() {
            if levels.len() == cost {
                levels.push(ExploreLevel { cost: cost as u32, ..ExploreLevel::default() });
            }
            let sum = &mut levels[cost];
            sum.configurations += level.moments;
            sum.steps += level.steps;
            sum.known += level.known;
            sum.ends += level.ends;
            sum.cut += level.cut;
        }
    }
    let ended = parts.last().map_or(Ended::Complete, |part| part.explored.ended);
    ExploreSummary {
        cost: args.cost.to_string(),
        bound: args.bound,
        faults: args.faults,
        clients: clients as u64,
        seed: args.seed,
        depth: args.depth,
        beginnings: parts.iter().filter_map(|part| part.from).collect(),
        network: scenario.network,
        ended: match ended {
            Ended::Complete => "complete",
            Ended::Found => "found",
            Ended::Stopped => "stopped",
        }
        .into(),
        promise: promise.map(|promise| ExplorePromise {
            bound: promise.bound,
            faults: promise.faults,
            steps: promise.steps,
            text: promise.to_string(),
        }),
        incomplete,
        findings: least.iter().enumerate().map(finding).collect(),
        levels,
    }
}

/// The summary for people.
pub fn describe(summary: &ExploreSummary, args: &ExploreArgs) -> String {
    let mut text = String::new();
    for finding in &summary.findings {
        let from = finding.from.map_or_else(String::new, |from| format!(", from delivery {from} on"));
        text.push_str(&format!(
            "{} at {}{from}: {} {}, {} faults, {} deliveries, {} external events: {}\n",
            finding.violation.join(", "),
            finding.affected.join(", "),
            summary.cost,
            finding.cost,
            finding.faults,
            finding.deliveries,
            finding.externals,
            args.out.join(&finding.schedule).display(),
        ));
        for deviation in &finding.deviations {
            let (step, taken) = (deviation.step, &deviation.taken);
            text.push_str(&format!("  step {step}: {taken}, instead of {}\n", deviation.instead_of));
        }
        if !finding.round.is_empty() {
            text.push_str("  and from there it goes round for ever:\n");
            finding.round.iter().for_each(|step| text.push_str(&format!("    {step}\n")));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut table = demi_common::Table::new([
        summary.cost.as_str(),
        "configurations",
        "steps",
        "known",
        "ends",
        "cut off",
    ]);
    for level in &summary.levels {
        let counts =
            [u64::from(level.cost), level.configurations, level.steps, level.known, level.ends, level.cut];
        table.row(counts.map(|count| count.to_string()));
    }
    text.push_str(&table.to_string());
    text.push_str("\n\n");
    let all = args.goes_on();
    match &summary.promise {
        Some(promise) => text.push_str(&promise.text),
        None if summary.ended == "complete" && all => {}
        None => text.push_str("Nothing is promised: not even the default order is done without a violation."),
    }
    if summary.ended == "complete" && !summary.findings.is_empty() && all {
        let gap = if summary.promise.is_some() { "\n" } else { "" };
        text.push_str(&format!(
            "{gap}Every execution within the bound was looked at, each up to its first violation: nothing is violated but what is listed."
        ));
    }
    if let Some(incomplete) = &summary.incomplete {
        text.push_str(&format!("\n{incomplete}"));
    }
    if summary.ended == "stopped" {
        text.push_str(
            "\nThe budget ended before the bound. The same command with --resume goes on from there.",
        );
    }
    text.push_str(&format!("\nwrote {}", args.out.display()));
    text
}

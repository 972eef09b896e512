//! The table of what came out, a line for each bug, network rule and invariant.

use demi_minimize::{Objective, Size};

/// One minimized execution.
pub struct Row {
    /// First result, then what else was found.
    pub sizes: Vec<Size>,
    /// Wall-clock time.
    pub seconds: f64,
    /// Deliveries before.
    pub initial: u64,
    /// Deliveries executed.
    pub executed: u64,
    /// Whether no shorter execution exists with the result's external events.
    pub optimal: bool,
}

/// Bug, rule, invariant, and the range of deliveries before.
pub type Group = (String, &'static str, String, (u64, u64));

/// Prints the head of the table.
pub fn head() {
    println!(
        "| bug | network | invariant | executions | deliveries before | best: deliveries (externals) | median | worst \
         | at the best | objective: ratio median, worst | deliveries: ratio median, worst \
         | externals: ratio median, worst | shortest of all | finding it: ratio worst | proven optimal | seconds: \
         median, worst |"
    );
    println!("{}|", "| --- ".repeat(16));
}

/// Prints one line. The best known of a group is the smallest of its own results, chosen as `minimize` chooses
/// between results. "objective" is the number that `minimize` compares first; "finding it"
/// compares the fewest deliveries among all results of an execution with the fewest of the group.
pub fn line((name, rule, invariant, _): &Group, rows: &[Row], objective: Objective) {
    let results: Vec<Size> = rows.iter().map(|r| r.sizes[0]).collect();
    let Some(best) = objective.least(results.iter().copied()).map(|i| results[i]) else { return };
    let deliveries = ratios(&results, best, |s| s.deliveries);
    let externals = ratios(&results, best, |s| s.externals);
    let compared = ratios(&results, best, |s| objective.key(s).0);
    let mut sorted = results.clone();
    sorted.sort_by_key(|s| objective.key(*s));
    let mut seconds: Vec<f64> = rows.iter().map(|r| r.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let initial = rows.iter().map(|r| r.initial);
    let by_deliveries = |s: &&Size| (s.deliveries, s.externals);
    let each: Vec<&Size> = rows.iter().filter_map(|r| r.sizes.iter().min_by_key(by_deliveries)).collect();
    let shortest = each.iter().copied().min_by_key(by_deliveries);
    let fewest = shortest.map_or(1, |s| s.deliveries);
    let farthest = each.iter().map(|s| s.deliveries).max().unwrap_or(fewest);
    let text = |s: Size| format!("{} ({})", s.deliveries, s.externals);
    println!(
        "| {name} | {rule} | {invariant} | {} | {}–{} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} | {:.1}, {:.1} |",
        rows.len(),
        initial.clone().min().unwrap_or(0),
        initial.max().unwrap_or(0),
        text(best),
        text(sorted[(sorted.len() - 1) / 2]),
        text(sorted[sorted.len() - 1]),
        results.iter().filter(|s| **s == best).count(),
        compared,
        deliveries,
        externals,
        shortest.map_or_else(String::new, |s| text(*s)),
        farthest as f64 / fewest as f64,
        rows.iter().filter(|r| r.optimal).count(),
        seconds[(seconds.len() - 1) / 2],
        seconds[seconds.len() - 1],
    );
    let executed: u64 = rows.iter().map(|r| r.executed).sum();
    eprintln!("{name} {rule} {invariant}: {executed} deliveries executed in all");
}

/// Median and worst ratio of a figure of the results to that of the best.
fn ratios(results: &[Size], best: Size, figure: impl Fn(Size) -> usize) -> String {
    let mut all: Vec<f64> = results.iter().map(|s| figure(*s) as f64 / figure(best) as f64).collect();
    all.sort_by(f64::total_cmp);
    format!("{:.2}, {:.2}", all[(all.len() - 1) / 2], all[all.len() - 1])
}

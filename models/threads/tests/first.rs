//! What is known of each program: the least bound at which it fails, and how soon.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use demi_threads::Check;
use demi_threads_programs::{KNOWN, Known, demi};

fn bounded(known: &Known) -> Check {
    Check::named(known.name).random(false).budget(200_000)
}

#[test]
fn each_program_fails_first_at_its_least_bound_and_soon_enough() {
    let mut wrong = Vec::new();
    for known in KNOWN {
        let by_preemptions = bounded(known).bound(3).explore(known.run);
        let by_delays = bounded(known).delays(5).explore(known.run);
        let first = |outcome: &demi_threads::Outcome| outcome.finding().map(|finding| finding.executions());
        let least = by_preemptions.finding().and_then(|finding| finding.least());
        let delays = by_delays.levels().iter().take_while(|level| level.complete()).count() as u32;
        let soon = |found: Option<u64>, bar: Option<u64>| {
            bar.is_none_or(|bar| found.is_some_and(|found| found <= bar))
        };
        let right = least == Some((known.preemptions, true))
            && soon(first(&by_preemptions), known.first.0)
            && soon(first(&by_delays), known.first.1)
            && known.delays.is_none_or(|known| known == delays);
        let line = format!(
            "{:22} c {:?} (known {}), first {:?} (bar {:?}); d {delays} (known {:?}), first {:?} (bar {:?})",
            known.name,
            least,
            known.preemptions,
            first(&by_preemptions),
            known.first.0,
            known.delays,
            first(&by_delays),
            known.first.1
        );
        println!("{line}");
        if !right {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The cache loses no graph that an execution within the bound can end with. Spaces that are too large for one side are left to a longer run.
#[test]
fn the_cache_keeps_all_terminal_graphs() {
    let most = if std::env::var_os("DEMI_LONG").is_some() { 3_000_000 } else { 40_000 };
    let mut compared = 0;
    for known in KNOWN {
        for delays in [false, true] {
            for bound in 0..=3 {
                let explore = |cached: bool| {
                    let check = Check::named(known.name).budget(most).cache(cached).exhaustive();
                    let check = if delays { check.delays(bound) } else { check.bound(bound) };
                    check.explore(known.run)
                };
                let plain = explore(false);
                if plain.complete() != Some(bound) {
                    println!(
                        "skipped: {} beyond {bound} (delays {delays}) has more than {most} executions",
                        known.name
                    );
                    break;
                }
                let cached = explore(true);
                let which = format!("{} {bound}, delays {delays}", known.name);
                assert_eq!(cached.complete(), Some(bound), "{which}");
                assert_eq!(cached.terminal_graphs(), plain.terminal_graphs(), "{which}");
                assert_eq!(cached.classes(), plain.classes(), "{which}");
                let steps = |outcome: &demi_threads::Outcome| {
                    outcome.levels().iter().map(|level| level.steps()).sum::<u64>()
                };
                println!(
                    "{which}: {} executions, {} steps; with the cache {} and {}; {} graphs",
                    plain.executions(),
                    steps(&plain),
                    cached.executions(),
                    steps(&cached),
                    plain.terminal_graphs().len()
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 120, "{compared}");
}

/// What chance finds is brought down to the least number of preemptions, which is proven.
#[test]
fn random_failures_come_down_to_the_least_preemptions() {
    for known in KNOWN {
        for seed in 1..=3 {
            let begin = std::time::Instant::now();
            let outcome =
                Check::named(known.name).bounded(false).seed(seed).budget(200_000).explore(known.run);
            let Some(finding) = outcome.finding() else {
                panic!("{} with seed {seed}: nothing in {} executions", known.name, outcome.random())
            };
            println!(
                "{:22} seed {seed}: found in {:5}, {} preemptions -> {:?} in {} executions, {:.1?}",
                known.name,
                finding.executions(),
                finding.preemptions_before(),
                finding.least(),
                finding.tests(),
                begin.elapsed()
            );
            assert_eq!(finding.least(), Some((known.preemptions, true)), "{} with seed {seed}", known.name);
        }
    }
}

/// How far the stack of indices is proven: up to 3 preemptions in a long run.
#[test]
fn the_stack_of_indices_does_not_fail_up_to_a_bound() {
    let bound = if std::env::var_os("DEMI_LONG").is_some() { 3 } else { 1 };
    let check = Check::named("safestack").bound(bound).random(false).budget(u64::MAX);
    let outcome = check.explore(|| demi::safe_stack(3, 2));
    for (bound, level) in outcome.levels().iter().enumerate() {
        println!(
            "safestack {bound}: {} executions, {} steps, complete {}",
            level.executions(),
            level.steps(),
            level.complete()
        );
    }
    println!(
        "safestack: {:?}",
        outcome.finding().map(|finding| (finding.failure().to_string(), finding.least()))
    );
    assert!(outcome.finding().is_some() || outcome.complete() == Some(bound), "{}", outcome.promise());
}

/// Nine tasks branch so widely without a preemption that delays find it first; that none fails without one is proven all the same.
#[test]
fn the_wrong_lock_among_nine_tasks_is_found_by_delays_and_proven() {
    let check = Check::named("wronglock_bad").delays(2).random(false).budget(400_000);
    let outcome = check.explore(|| demi::wrong_lock(7));
    let finding = outcome.finding().unwrap();
    println!("wronglock: in {}, {:?} after {} more", finding.executions(), finding.least(), finding.tests());
    assert!(finding.executions() <= 38, "{}", finding.executions());
    assert_eq!(finding.least(), Some((1, true)));
}

/// A program, its bound, executions without the cache and with it, and steps.
type Gain = (&'static str, fn(), u32, [u64; 2], [u64; 2]);

/// What was measured of another implementation of the same cache, on programs with the same bugs.
const GAINS: [Gain; 5] = [
    ("philosophers 3", || demi::philosophers(3), 3, [10_094, 641], [231_198, 8_012]),
    ("token ring", demi::token_ring, 2, [18_072, 1_150], [384_953, 15_188]),
    ("carter01", demi::carter, 1, [2_304, 611], [73_368, 10_986]),
    ("reorder 3", || demi::reorder(2), 3, [2_515, 437], [41_562, 4_839]),
    ("buffer 1+2", || demi::buffer(1, 2, 2), 1, [11_183, 3_034], [580_650, 136_120]),
];

#[test]
fn the_cache_gains_at_least_half_of_what_is_known() {
    let mut wrong = Vec::new();
    for (name, run, bound, executions, steps) in GAINS {
        let sums = [false, true].map(|cached| {
            let check = Check::named(name).bound(bound).budget(400_000).cache(cached).exhaustive();
            let outcome = check.explore(run);
            assert_eq!(outcome.complete(), Some(bound), "{name}");
            (outcome.executions(), outcome.levels().iter().map(|level| level.steps()).sum::<u64>())
        });
        let gain = |without: u64, with: u64| without as f64 / with as f64;
        let ours = (gain(sums[0].0, sums[1].0), gain(sums[0].1, sums[1].1));
        let known = (gain(executions[0], executions[1]), gain(steps[0], steps[1]));
        let line = format!(
            "{name} {bound}: {} -> {} executions, {} -> {} steps: {:.1} and {:.1} times, known {:.1} and {:.1}",
            sums[0].0, sums[1].0, sums[0].1, sums[1].1, ours.0, ours.1, known.0, known.1
        );
        println!("{line}");
        if 2.0 * ours.0 < known.0 || 2.0 * ours.1 < known.1 {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn schedule_of(known: &Known) -> demi_threads::schedule::Schedule {
    let outcome = bounded(known).bound(3).explore(known.run);
    outcome.finding().unwrap().schedule().unwrap().clone()
}

#[test]
fn each_failure_is_replayed_a_hundred_times() {
    for known in KNOWN {
        let text = schedule_of(known).write();
        for _ in 0..100 {
            let schedule = demi_threads::schedule::Schedule::read(&text).unwrap();
            let class = schedule.header.failure.class();
            let again = Check::named(known.name).replay(schedule).explore(known.run);
            let again = again.finding().unwrap_or_else(|| panic!("{} does not fail again", known.name));
            assert_eq!((again.executions(), again.failure().class()), (1, class), "{}", known.name);
        }
    }
}

/// Something else that the test does first, and a task that it begins, which has nothing to do with the failure.
#[test]
fn each_failure_is_replayed_after_an_edit_elsewhere() {
    use demi_threads::sync::Mutex;
    for known in KNOWN {
        let schedule = schedule_of(known);
        let kind = std::mem::discriminant(schedule.header.failure.kind());
        let run = known.run;
        let again = Check::named(known.name).replay(schedule).explore(move || {
            let counter = Mutex::new(0);
            *counter.lock().unwrap() += 1;
            run();
        });
        let again = again.finding().unwrap_or_else(|| panic!("{} does not fail any more", known.name));
        assert_eq!(std::mem::discriminant(again.failure().kind()), kind, "{}", known.name);
    }
}

/// Seven philosophers, ten tasks that set values, and twenty stages: too wide for all schedules without a preemption to be quick, and found.
#[test]
fn programs_with_many_tasks_are_found() {
    let found = |check: Check, run: fn()| {
        let outcome = check.explore(run);
        let finding = outcome.finding().unwrap_or_else(|| panic!("{}", outcome.promise())).clone();
        println!("{:?} in {}, {:?}", finding.by(), finding.executions(), finding.least());
        finding
    };
    let bounded = |name: &str| Check::named(name).bound(1).random(false).budget(100_000);
    let seven = found(bounded("philosophers_7"), || demi::philosophers(7));
    assert!(seven.executions() <= 13_718 && seven.least() == Some((1, true)));
    let random = |name: &str| Check::named(name).bounded(false).budget(20_000);
    let reorder = found(random("reorder_10_bad"), || demi::reorder(9));
    assert_eq!(reorder.least().map(|(preemptions, _)| preemptions), Some(1));
    let stages = found(random("twostage_20_bad"), || demi::two_stage(19));
    assert_eq!(stages.least().map(|(preemptions, _)| preemptions), Some(1));
}

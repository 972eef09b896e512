//! Executions to the first failure and executions in a second: this library beside shuttle and loom, on the same programs, in one run.
//!
//! `cargo run --release -p demi-threads-programs --features peers --example peers`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints, and stops where it fails")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use demi_threads::Check;
use demi_threads_programs::{demi, on_loom, on_shuttle};
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler, UrwRandomScheduler};

/// At most so many executions each.
const MOST: usize = 20_000;
/// Seeds of those that are random; the median counts.
const SEEDS: u64 = 5;

struct Row {
    name: &'static str,
    demi: fn(),
    shuttle: fn(),
    loom: Option<fn()>,
}

macro_rules! rows {
    ($($name:literal $call:ident($($argument:expr),*) $loom:literal;)*) => {
        vec![$(Row {
            name: $name,
            demi: || demi::$call($($argument),*),
            shuttle: || on_shuttle::$call($($argument),*),
            loom: if $loom { Some(|| on_loom::$call($($argument),*)) } else { None },
        }),*]
    };
}

/// Executions until a failure, and executions in a second.
fn ran(most: usize, run: impl FnOnce(Arc<AtomicUsize>)) -> (Option<usize>, f64) {
    let count = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let inside = Arc::clone(&count);
    let failed = catch_unwind(AssertUnwindSafe(|| run(inside))).is_err();
    let executions = count.load(Ordering::Relaxed);
    (failed.then_some(executions), executions.min(most) as f64 / begin.elapsed().as_secs_f64())
}

fn on(scheduler: impl Scheduler + Send + 'static, test: fn()) -> Option<usize> {
    // A failure leaves its thread in the middle of a panic.
    let thread = std::thread::spawn(move || {
        let mut config = shuttle::Config::new();
        config.failure_persistence = shuttle::FailurePersistence::None;
        config.max_steps = shuttle::MaxSteps::ContinueAfter(20_000);
        config.silence_warnings = true;
        ran(MOST, move |count| {
            shuttle::Runner::new(scheduler, config).run(move || {
                count.fetch_add(1, Ordering::Relaxed);
                test();
            });
        })
    });
    thread.join().ok().and_then(|(first, _)| first)
}

fn median(mut all: Vec<Option<usize>>) -> String {
    all.sort_by_key(|found| found.unwrap_or(usize::MAX));
    shown(all[all.len() / 2])
}

fn shown(found: Option<usize>) -> String {
    found.map_or_else(|| "-".to_owned(), |found| found.to_string())
}

fn bounded(check: Check, test: fn()) -> String {
    let outcome = check.random(false).budget(MOST as u64).explore(test);
    shown(outcome.finding().map(|finding| finding.executions() as usize))
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    speed();
    // Whether loom takes part: it ends the process at a deadlock, and has a limit of five threads.
    let rows = rows! {
        "bank" bank() true;
        "four_accounts" four_accounts() true;
        "buffer_2_2" buffer(2, 2, 1) false;
        "lost_wake_up" lost_wake_up() false;
        "philosophers_3" philosophers(3) false;
        "philosophers_5" philosophers(5) false;
        "philosophers_7" philosophers(7) false;
        "work_stealing" work_stealing(4) true;
        "aba" aba() true;
        "account_bad" account() true;
        "lazy01_bad" lazy() true;
        "token_ring_bad" token_ring() false;
        "deadlock01_bad" deadlock() false;
        "carter01_bad" carter() false;
        "bluetooth_driver_bad" bluetooth() true;
        "stringbuffer" string_buffer() true;
        "twostage_bad" two_stage(1) true;
        "twostage_20_bad" two_stage(19) false;
        "wronglock_3_bad" wrong_lock(3) false;
        "wronglock_bad" wrong_lock(7) false;
        "reorder_3_bad" reorder(2) true;
        "reorder_4_bad" reorder(3) false;
        "reorder_5_bad" reorder(4) false;
        "reorder_10_bad" reorder(9) false;
        "circular_buffer" circular_buffer(3) true;
        "stack_bad" stack() true;
        "safestack" safe_stack(3, 2) false;
        "executor" executor() false;
        "once_cell" once_cell() true;
        "channel" channel() true;
        "block_channel" block_channel() true;
        "oneshot" oneshot() true;
        "queue_bad" queue(3) true;
        "qsort_mt" sorting_pool() true;
        "aget" interrupted_download() true;
        "pbzip2" freed_queue() true;
        "ctrace" ended_trace() true;
        "interlocked_stealing" interlocked_stealing(3) true;
        "gone_sender" gone_sender() true;
        "refused_fill" refused_fill() true;
        "remote_wake" remote_wake() false;
        "reference_count" reference_count() true;
        "spin_lock" spin_lock() true;
        "wait_without_loop" wait_without_loop() false;
        "join_under_lock" join_under_lock() false;
    };
    println!(
        "executions to the first failure, - = none in {MOST}; medians of {SEEDS} seeds where chance decides"
    );
    println!(
        "| program | preemptions | delays | ours, URW | shuttle DFS | shuttle random | shuttle PCT 3 | shuttle URW | loom, bound 2 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for row in &rows {
        let ours = |seed: u64| {
            let check = Check::named(row.name).bounded(false).seed(seed).budget(MOST as u64);
            check.explore(row.demi).finding().map(|finding| finding.executions() as usize)
        };
        let seeds = || 1..=SEEDS;
        let loom = row.loom.map_or("", |test| {
            let thread = std::thread::spawn(move || {
                ran(MOST, move |count| {
                    let mut builder = loom::model::Builder::new();
                    builder.preemption_bound = Some(2);
                    builder.max_permutations = Some(MOST);
                    builder.check(move || {
                        count.fetch_add(1, Ordering::Relaxed);
                        test();
                    });
                })
            });
            Box::leak(
                thread.join().map_or_else(|_| "error".to_owned(), |(first, _)| shown(first)).into_boxed_str(),
            )
        });
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {loom} |",
            row.name,
            bounded(Check::named(row.name).bound(3), row.demi),
            bounded(Check::named(row.name).delays(9), row.demi),
            median(seeds().map(ours).collect()),
            shown(on(DfsScheduler::new(Some(MOST), false), row.shuttle)),
            median(seeds().map(|seed| on(RandomScheduler::new_from_seed(seed, MOST), row.shuttle)).collect()),
            median(seeds().map(|seed| on(PctScheduler::new_from_seed(seed, 3, MOST), row.shuttle)).collect()),
            median(
                seeds().map(|seed| on(UrwRandomScheduler::new_from_seed(seed, MOST), row.shuttle)).collect()
            ),
        );
    }
}

/// How many executions a library makes in a second: the most of three rounds, each a second or more long.
fn rate(mut some: impl FnMut() -> usize) -> String {
    let round = |_| {
        let (begin, mut all) = (Instant::now(), 0);
        while begin.elapsed().as_millis() < 1_000 {
            all += some();
        }
        all as f64 / begin.elapsed().as_secs_f64()
    };
    let most = (0..3).map(round).fold(0.0, f64::max);
    format!("{:.0}", most)
}

/// Executions in a second, without a failure: of two tasks that take a lock twice each, and of three with three deposits each.
fn speed() {
    macro_rules! deposits {
        ($rt:ident, $tasks:literal, $each:literal) => {
            || {
                let account = Arc::new($rt::sync::Mutex::new(0));
                let all: Vec<_> = (0..$tasks)
                    .map(|_| {
                        let account = Arc::clone(&account);
                        $rt::thread::spawn(move || (0..$each).for_each(|_| *account.lock().unwrap() += 1))
                    })
                    .collect();
                all.into_iter().for_each(|task| task.join().unwrap());
            }
        };
    }
    println!("executions in a second, the most of three rounds, on one core");
    println!(
        "| tasks, deposits | random | preemptions | with the cache | delays | shuttle DFS | shuttle random | shuttle PCT 3 | shuttle URW | loom, bound 2 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let tests: [(&str, fn(), fn(), fn()); 2] = [
        ("2, 2", deposits!(demi_threads, 2, 2), deposits!(shuttle, 2, 2), deposits!(loom, 2, 2)),
        ("3, 3", deposits!(demi_threads, 3, 3), deposits!(shuttle, 3, 3), deposits!(loom, 3, 3)),
    ];
    for (name, on_demi, on_shuttle, on_loom) in tests {
        let ours = |check: Check| {
            let outcome = check.budget(MOST as u64).explore(on_demi);
            (outcome.executions() + outcome.random()) as usize
        };
        let check = || Check::named("speed");
        let bounded = || check().random(false);
        let of_loom = || {
            let count = Arc::new(AtomicUsize::new(0));
            let inside = Arc::clone(&count);
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = Some(2);
            builder.max_permutations = Some(MOST);
            builder.check(move || {
                inside.fetch_add(1, Ordering::Relaxed);
                on_loom();
            });
            count.load(Ordering::Relaxed)
        };
        fn with(scheduler: impl Scheduler + Send + 'static, test: fn()) -> usize {
            shuttle::Runner::new(scheduler, quiet()).run(test)
        }
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            rate(|| ours(check().bounded(false))),
            rate(|| ours(bounded().bound(3).cache(false))),
            rate(|| ours(bounded().bound(3))),
            rate(|| ours(bounded().delays(3))),
            rate(|| with(DfsScheduler::new(Some(MOST), false), on_shuttle)),
            rate(|| with(RandomScheduler::new_from_seed(1, MOST), on_shuttle)),
            rate(|| with(PctScheduler::new_from_seed(1, 3, MOST), on_shuttle)),
            rate(|| with(UrwRandomScheduler::new_from_seed(1, MOST), on_shuttle)),
            rate(of_loom),
        );
    }
    println!();
}

fn quiet() -> shuttle::Config {
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    config
}

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

fn sound(lock: impl Fn() + Send + Sync + 'static) -> impl Fn() + Send + Sync + 'static {
    lock
}

/// Executions in a second on two tasks that take a lock twice each, without a failure.
fn speed() {
    let on_demi = || {
        let account = Arc::new(demi_threads::sync::Mutex::new(0));
        let deposit = || {
            let account = Arc::clone(&account);
            demi_threads::thread::spawn(move || {
                let balance = *account.lock().unwrap();
                *account.lock().unwrap() = balance + 1;
            })
        };
        let both = [deposit(), deposit()];
        both.into_iter().for_each(|task| task.join().unwrap());
    };
    let on_shuttle = || {
        let account = Arc::new(shuttle::sync::Mutex::new(0));
        let deposit = || {
            let account = Arc::clone(&account);
            shuttle::thread::spawn(move || {
                let balance = *account.lock().unwrap();
                *account.lock().unwrap() = balance + 1;
            })
        };
        let both = [deposit(), deposit()];
        both.into_iter().for_each(|task| task.join().unwrap());
    };
    println!(
        "\nexecutions in a second on a bank of two tasks, and of three with three deposits each within 2 preemptions"
    );
    for round in 1..=3 {
        let begin = Instant::now();
        let random = Check::named("speed").bounded(false).budget(200_000).explore(sound(on_demi));
        let of_random = random.random() as f64 / begin.elapsed().as_secs_f64();
        let runs = |cached: bool| {
            let begin = Instant::now();
            let mut all = 0;
            let check = Check::named("speed").bound(3).random(false).budget(200_000).cache(cached);
            for _ in 0..6 {
                all += check.explore(sound(three)).executions();
            }
            all as f64 / begin.elapsed().as_secs_f64()
        };
        let begin = Instant::now();
        let mut of_dfs = 0;
        while begin.elapsed().as_millis() < 1_000 {
            of_dfs += shuttle::Runner::new(DfsScheduler::new(Some(MOST), false), quiet()).run(on_shuttle);
        }
        let dfs = of_dfs as f64 / begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let of_three =
            shuttle::Runner::new(DfsScheduler::new(Some(MOST), false), quiet()).run(three_on_shuttle);
        let dfs_three = of_three as f64 / begin.elapsed().as_secs_f64();
        println!(
            "round {round}: bank: ours, random {of_random:.0}, shuttle DFS {dfs:.0}; three: bounded {:.0}, with the cache {:.0}, shuttle DFS {dfs_three:.0}",
            runs(false),
            runs(true)
        );
    }
}

fn quiet() -> shuttle::Config {
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config
}

fn three() {
    let account = Arc::new(demi_threads::sync::Mutex::new(0));
    let all: Vec<_> = (0..3)
        .map(|_| {
            let account = Arc::clone(&account);
            demi_threads::thread::spawn(move || (0..3).for_each(|_| *account.lock().unwrap() += 1))
        })
        .collect();
    all.into_iter().for_each(|task| task.join().unwrap());
}

fn three_on_shuttle() {
    let account = Arc::new(shuttle::sync::Mutex::new(0));
    let all: Vec<_> = (0..3)
        .map(|_| {
            let account = Arc::clone(&account);
            shuttle::thread::spawn(move || (0..3).for_each(|_| *account.lock().unwrap() += 1))
        })
        .collect();
    all.into_iter().for_each(|task| task.join().unwrap());
}

//! What a test came to is written in a folder, and is true: all executions are run once more without the search.

use std::path::Path;
use std::process::Command;

use demi_threads::schedule::Schedule;
use demi_threads::summary::{Ended, Summary};
use demi_threads::sync::atomic::{AtomicUsize, Ordering};
use demi_threads::sync::{Arc, Condvar, Mutex};
use demi_threads::{Check, Rechecked, hint, thread};

/// Two deposits; without `locked` they read and write in two sections.
fn bank(locked: bool, expected: u32) {
    let account = Arc::new(Mutex::named("account", 0u32));
    let deposit = || {
        let account = Arc::clone(&account);
        thread::spawn(move || {
            if locked {
                *account.lock().unwrap() += 1;
                return;
            }
            let balance = *account.lock().unwrap();
            *account.lock().unwrap() = balance + 1;
        })
    };
    let both = [deposit(), deposit()];
    both.into_iter().for_each(|task| task.join().unwrap());
    assert_eq!(*account.lock().unwrap(), expected, "a deposit is lost");
}

/// Runs a check that is told a folder, and reads what it wrote.
fn written(folder: &Path, check: Check, test: impl Fn() + Send + Sync + 'static) -> Summary {
    let check = check.out(folder);
    let name = Summary::path_of(folder, "bank");
    let run = std::panic::AssertUnwindSafe(move || check.run(test));
    let failed = std::panic::catch_unwind(run).is_err();
    let summary = Summary::read(&name).unwrap();
    assert_eq!(failed, !summary.findings.is_empty());
    summary
}

fn recheck(folder: &Path, summary: &Summary, test: impl Fn() + Send + Sync + 'static) -> Rechecked {
    Check::named("bank").budget(1_000_000).recheck(summary, folder, test).unwrap()
}

#[test]
fn a_promise_is_written_and_holds() {
    for check in [Check::named("bank").bound(2), Check::named("bank").delays(3)] {
        let folder = tempfile::tempdir().unwrap();
        let summary = written(folder.path(), check, || bank(true, 2));
        assert_eq!((summary.ended, summary.status()), (Ended::Complete, 0));
        assert_eq!(summary.promise.as_ref().unwrap().bound, summary.bound);
        assert!(summary.levels.iter().all(|level| level.complete));
        assert_eq!(Summary::read_all(folder.path()).unwrap(), std::slice::from_ref(&summary));
        let Rechecked::Holds(lines) = recheck(folder.path(), &summary, || bank(true, 2)) else { panic!() };
        assert!(lines.iter().any(|line| line.contains("run without the search")), "{lines:?}");
        // Of another program it is not true.
        let Rechecked::False(text) = recheck(folder.path(), &summary, || bank(false, 2)) else { panic!() };
        assert!(text.contains("1 preemption fails: main panicked") || text.contains("delay"), "{text}");
    }
}

#[test]
fn a_failure_is_written_with_its_schedule_and_is_the_least() {
    let folder = tempfile::tempdir().unwrap();
    let summary = written(folder.path(), Check::named("bank").random(false), || bank(false, 2));
    assert_eq!((summary.ended, summary.status()), (Ended::Found, 1));
    assert_eq!(
        summary.promise.as_ref().map(|promise| promise.bound),
        Some(0),
        "nothing fails without a preemption"
    );
    let found = &summary.findings[0];
    assert_eq!((found.preemptions, found.least, &*found.affected), (Some(1), true, &["main".to_owned()][..]));
    let schedule = summary.schedule(folder.path(), found).unwrap().unwrap();
    assert_eq!(schedule.count().preemptions, 1);
    assert!(matches!(recheck(folder.path(), &summary, || bank(false, 2)), Rechecked::Holds(_)));
    // The same failure without a preemption: it is not the least.
    let Rechecked::False(text) = recheck(folder.path(), &summary, || bank(false, 3)) else { panic!() };
    assert!(text.contains("an execution without a preemption fails"), "{text}");
    // Another program does not fail with this schedule.
    let Rechecked::False(text) = recheck(folder.path(), &summary, || bank(true, 2)) else { panic!() };
    assert!(text.contains("its schedule does not end with"), "{text}");
    let ended = Check::named("bank").budget(1).recheck(&summary, folder.path(), || bank(false, 2)).unwrap();
    assert!(matches!(ended, Rechecked::Ended(1)), "{ended:?}");
}

#[test]
fn a_schedule_counts_as_its_first_line_says() {
    let outcome = Check::named("long").explore(|| {
        let value = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&value);
        let task = thread::spawn(move || {
            (0..100).for_each(|_| {
                other.fetch_add(1, Ordering::SeqCst);
            })
        });
        (0..50).for_each(|_| {
            value.fetch_add(1, Ordering::SeqCst);
        });
        task.join().unwrap();
        assert_eq!(value.load(Ordering::SeqCst), 0);
    });
    let schedule = outcome.finding().unwrap().schedule().unwrap();
    let schedule = Schedule::read(&schedule.write()).unwrap();
    assert!(schedule.write().contains(" more ..."), "what is too long is cut");
    let count = schedule.count();
    assert_eq!(
        (count.steps, count.preemptions),
        (u64::from(schedule.header.steps), schedule.header.preemptions)
    );
    assert_eq!(count.contradicts, None);
}

#[test]
fn what_is_stopped_or_differs_is_written_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let check = Check::named("bank").bound(5).budget(3).random(false);
    let summary = written(folder.path(), check, || bank(true, 2));
    assert_eq!((summary.ended, summary.status()), (Ended::Stopped, 4));
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let summary = written(folder.path(), Check::named("bank"), || {
        let value = AtomicUsize::new(0);
        if RUNS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            value.store(1, Ordering::SeqCst);
        }
    });
    assert_eq!((summary.ended, summary.status()), (Ended::Found, 3));
}

/// The enumeration agrees with the search on programs with condition variables, yields and delays.
#[test]
fn what_the_search_promises_of_other_programs_holds() {
    fn hand_over() {
        let shared = Arc::new((Mutex::new(0u32), Condvar::new()));
        let other = Arc::clone(&shared);
        let task = thread::spawn(move || {
            *other.0.lock().unwrap() += 1;
            other.1.notify_one();
        });
        let full = shared.1.wait_while(shared.0.lock().unwrap(), |full| *full == 0).unwrap();
        assert_eq!(*full, 1);
        drop(full);
        task.join().unwrap();
    }
    fn spins() {
        let ready = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&ready);
        let task = thread::spawn(move || {
            while other.load(Ordering::SeqCst) == 0 {
                hint::spin_loop();
            }
        });
        ready.store(1, Ordering::SeqCst);
        task.join().unwrap();
    }
    for test in [hand_over as fn(), spins] {
        for check in [Check::named("bank").bound(2), Check::named("bank").delays(2)] {
            let folder = tempfile::tempdir().unwrap();
            let summary = written(folder.path(), check, test);
            assert_eq!(summary.status(), 0, "{summary}");
            let rechecked = recheck(folder.path(), &summary, test);
            assert!(matches!(rechecked, Rechecked::Holds(_)), "{rechecked:?}");
        }
    }
}

/// Runs in processes of its own, which see the variables.
#[test]
fn variables_of_the_environment_write_and_verify() {
    if let Some(test) = std::env::var_os("DEMI_TEST_CHILD") {
        let locked = test == "sound";
        return Check::named("child").run(move || bank(locked, 2));
    }
    let folder = tempfile::tempdir().unwrap();
    let child = |test: &str, variable: &str| {
        let name = "summary::variables_of_the_environment_write_and_verify";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let command = command.args([name, "--exact", "--nocapture"]).env("DEMI_TEST_CHILD", test);
        let output = command.env(variable, folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (good, text) = child("sound", "DEMI_VERIFY");
    assert!(good && text.contains("so nothing is claimed of it"), "{text}");
    assert!(child("sound", "DEMI_OUT").0);
    let (good, text) = child("sound", "DEMI_VERIFY");
    assert!(good && text.contains("child: all of it holds"), "{text}");
    let (good, text) = child("broken", "DEMI_VERIFY");
    assert!(!good && text.contains("a claim is false"), "{text}");
    assert!(!child("broken", "DEMI_OUT").0, "the test fails");
    let (good, text) = child("broken", "DEMI_VERIFY");
    assert!(good && text.contains("the schedule fails again"), "what it claims is true: {text}");
}

/// That a task goes on after it yielded twice in a row counts, and the promise says so; of one that yields once nothing is said.
#[test]
fn a_promise_says_that_to_go_on_after_a_second_yield_counts() {
    let body = |yields: usize| {
        move || {
            let flag = Arc::new(AtomicUsize::new(0));
            let other = {
                let flag = Arc::clone(&flag);
                thread::spawn(move || flag.store(1, Ordering::SeqCst))
            };
            for _ in 0..yields {
                thread::yield_now();
            }
            let _ = flag.load(Ordering::SeqCst);
            other.join().unwrap();
        }
    };
    let promise = |yields| {
        let check = Check::named("yields");
        let outcome = check.explore(body(yields));
        let summary = check.summary(&outcome);
        assert_eq!(outcome.promise().contains("a second yield"), summary.held_back);
        assert!(summary.verify(Path::new("nowhere")).is_ok());
        summary.held_back
    };
    assert_eq!([0, 1, 2, 3].map(promise), [false, false, true, true]);
}

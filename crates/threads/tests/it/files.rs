//! Schedule files: they are read back, they are followed, and they survive edits of the program elsewhere.

use demi_threads::failure::FailureKind;
use demi_threads::schedule::{Schedule, ScheduleError};
use demi_threads::sync::atomic::{AtomicUsize, Ordering};
use demi_threads::sync::{Arc, Mutex};
use demi_threads::{Check, Half, thread};

/// Two transfers that read and write in two sections; `more` is an edit elsewhere in the program.
fn bank(more: bool) {
    let account = Arc::new(Mutex::named("account", 0u32));
    let log = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (account, log) = (Arc::clone(&account), Arc::clone(&log));
            thread::spawn(move || {
                let balance = *account.lock().unwrap();
                *account.lock().unwrap() = balance + 1;
                if more {
                    log.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    if more {
        let log = Arc::clone(&log);
        thread::spawn(move || log.load(Ordering::SeqCst)).join().unwrap();
    }
    for task in tasks {
        task.join().unwrap();
    }
    assert_eq!(*account.lock().unwrap(), 2, "a deposit is lost");
}

fn found() -> Schedule {
    let outcome = Check::named("bank").explore(|| bank(false));
    let finding = outcome.finding().unwrap();
    assert_eq!(finding.least(), Some((1, true)));
    finding.schedule().unwrap().clone()
}

#[test]
fn a_schedule_is_read_back_and_followed_each_time() {
    let schedule = found();
    let text = schedule.write();
    assert!(text.lines().count() < 20, "{text}");
    assert_eq!(Schedule::read(&text).unwrap(), schedule);
    for _ in 0..100 {
        let outcome = Check::named("bank").replay(Schedule::read(&text).unwrap()).explore(|| bank(false));
        let finding = outcome.finding().unwrap();
        assert_eq!(finding.by(), Half::Replay);
        assert_eq!(finding.executions(), 1, "the first try fails");
        assert_eq!(finding.least(), Some((1, false)), "one execution shows nothing of the others");
        assert_eq!(finding.schedule().unwrap().switches, schedule.switches);
    }
}

/// Two locks in opposite orders, and a loop that never lets others go first.
#[test]
fn schedules_of_all_kinds_of_failures_are_read_back_and_followed() {
    fn deadlock() {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let task = thread::spawn(move || {
            let _first = other.1.lock().unwrap();
            let _second = other.0.lock().unwrap();
        });
        let first = locks.0.lock().unwrap();
        drop(locks.1.lock().unwrap());
        drop(first);
        task.join().unwrap();
    }
    fn hog() {
        let ready = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&ready);
        let task = thread::spawn(move || while other.load(Ordering::SeqCst) == 0 {});
        ready.store(1, Ordering::SeqCst);
        task.join().unwrap();
    }
    fn livelock() {
        let never = AtomicUsize::new(0);
        while never.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
    }
    let tests: [(fn(), &str); 3] =
        [(deadlock, "deadlock"), (hog, "never lets others go first"), (livelock, "livelock")];
    for (test, word) in tests {
        let outcome = Check::named("kinds").steps(2_000).explore(test);
        let finding = outcome.finding().unwrap();
        let text = finding.failure().to_string();
        assert!(text.to_lowercase().contains(word), "{text}");
        let schedule = finding.schedule().unwrap();
        assert_eq!(&Schedule::read(&schedule.write()).unwrap(), schedule);
        let again = Check::named("kinds").steps(2_000).replay(schedule.clone()).explore(test);
        let again = again.finding().unwrap();
        assert_eq!((again.executions(), again.failure().class()), (1, finding.failure().class()), "{text}");
    }
}

#[test]
fn a_schedule_is_followed_after_an_edit_elsewhere() {
    let outcome = Check::named("bank").replay(found()).explore(|| bank(true));
    let finding = outcome.finding().unwrap();
    assert!(matches!(finding.failure().kind(), FailureKind::Panic { .. }));
    assert!(finding.failure().to_string().contains("a deposit is lost"));
}

#[test]
fn a_schedule_of_a_program_that_is_mended_finds_nothing() {
    let outcome = Check::named("bank").replay(found()).explore(|| {
        let account = Arc::new(Mutex::new(0u32));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let account = Arc::clone(&account);
                thread::spawn(move || *account.lock().unwrap() += 1)
            })
            .collect();
        for task in tasks {
            task.join().unwrap();
        }
        assert_eq!(*account.lock().unwrap(), 2);
    });
    assert!(outcome.finding().is_none());
}

#[test]
fn the_text_shows_the_tasks_side_by_side_and_both_places_of_a_preemption() {
    let text = found().show();
    assert!(text.contains("1 preemption (the fewest: every schedule with fewer was tried)"), "{text}");
    assert!(text.contains(">>> preemption of task 1 before lock account at "), "{text}");
    assert!(text.contains(", by task 2, which does lock account at "), "{text}");
    assert!(
        text.lines()
            .any(|line| line.starts_with("main") && line.contains("task 1") && line.contains("task 2"))
    );
}

#[test]
fn what_is_no_schedule_is_refused() {
    assert_eq!(Schedule::read(""), Err(ScheduleError::Empty));
    assert_eq!(
        Schedule::read("{\"format\":\"demi-schedule/1\"}"),
        Err(ScheduleError::Format("demi-schedule/1".into()))
    );
    assert!(matches!(Schedule::read("nothing"), Err(ScheduleError::Line { line: 1, .. })));
    let text = found().write();
    let cut: Vec<&str> = text.lines().collect();
    assert_eq!(Schedule::read(&cut[..cut.len() - 1].join("\n")), Err(ScheduleError::Cut));
    let renamed = text.replacen("\"to\":\"task 1\"", "\"to\":\"nobody\"", 1);
    assert!(matches!(Schedule::read(&renamed), Err(ScheduleError::Task { line: 2, .. })), "{renamed}");
    for end in 0..text.len() {
        let _ = Schedule::read(&text[..end]);
    }
}

#[test]
fn a_test_that_fails_says_what_and_leaves_its_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_owned();
    let payload =
        std::panic::catch_unwind(move || Check::named("bank").out(out).run(|| bank(false))).unwrap_err();
    let text = payload.downcast_ref::<String>().unwrap();
    assert!(text.contains("a deposit is lost") && text.contains("DEMI_REPLAY="), "{text}");
    let file = std::fs::read_to_string(folder.path().join("bank.jsonl")).unwrap();
    assert_eq!(Schedule::read(&file).unwrap().header.preemptions, 1);
}

#[test]
fn the_page_has_a_lane_for_each_task_and_marks_the_preemption() {
    let mut schedule = found();
    schedule.header.test = "<bank> & \"more\"".to_owned();
    let page = schedule.page();
    assert_eq!(page.matches("<th scope=\"col\">").count(), 3);
    assert_eq!(page.matches("switch preempt").count(), 1);
    assert!(page.contains("&lt;bank&gt; &amp; &quot;more&quot;") && !page.contains("<bank>"));
}

/// What goes on where it yields although others could: the deterministic scheduler would have let these go on.
#[test]
fn who_goes_on_where_it_yields_is_followed_too() {
    use demi_threads::hint::spin_loop;
    use demi_threads::sync::atomic::AtomicBool;
    use demi_threads::sync::mpsc;
    fn spins_twice() {
        let ready = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&ready);
        let task = thread::spawn(move || set.store(true, Ordering::SeqCst));
        let mut tries = 0;
        while !ready.load(Ordering::SeqCst) {
            tries += 1;
            spin_loop();
        }
        assert!(tries < 2);
        task.join().unwrap();
    }
    fn gives_up() {
        let (to, from) = mpsc::channel();
        let task = thread::spawn(move || {
            let _ = to.send(1);
        });
        assert!(from.recv_timeout(std::time::Duration::from_millis(10)).is_ok());
        task.join().unwrap();
    }
    fn gives_up_later() {
        let (to, from) = mpsc::channel();
        let task = thread::spawn(move || {
            let _ = to.send(1);
        });
        assert!((0..3).any(|_| from.recv_timeout(std::time::Duration::from_millis(10)).is_ok()));
        task.join().unwrap();
    }
    let tests = [
        ("spins_twice", spins_twice as fn(), 0),
        ("gives_up", gives_up, 0),
        // The second and the third time it goes on though the other one waits.
        ("gives_up_later", gives_up_later, 2),
    ];
    for (name, test, least) in tests {
        let outcome = Check::named(name).explore(test);
        let finding = outcome.finding().unwrap();
        assert_eq!(finding.least(), Some((least, true)), "{name}");
        let schedule = finding.schedule().unwrap();
        assert_eq!(&Schedule::read(&schedule.write()).unwrap(), schedule);
        for _ in 0..3 {
            let again = Check::named(name).replay(schedule.clone()).explore(test);
            let again = again.finding().unwrap_or_else(|| panic!("{name}: {}", schedule.write()));
            let preemptions = again.least().map(|(preemptions, _)| preemptions);
            assert_eq!((again.executions(), preemptions), (1, Some(least)), "{name}");
        }
    }
}

/// What may come to several things says to which it came.
#[test]
fn a_schedule_tells_what_its_operations_came_to() {
    use demi_threads::sync::mpsc::channel;
    use demi_threads::sync::{Condvar, RwLock};
    use std::time::Duration;
    let outcome = Check::named("came-to").random(false).explore(|| {
        let shared = Arc::new((Mutex::named("lock", 0), Condvar::new(), RwLock::named("table", 0)));
        let held = shared.0.lock().unwrap();
        assert!(shared.0.try_lock().is_err());
        let (held, waited) = shared.1.wait_timeout(held, Duration::from_secs(1)).unwrap();
        assert!(waited.timed_out());
        drop(held);
        let (sender, receiver) = channel::<()>();
        assert!(receiver.try_recv().is_err() && receiver.recv_timeout(Duration::from_secs(1)).is_err());
        drop(sender);
        let reads = shared.2.read().unwrap();
        assert!(shared.2.try_write().is_err());
        let other = Arc::clone(&shared);
        let writer = thread::spawn(move || *other.2.write().unwrap() = 1);
        thread::yield_now();
        drop(reads);
        writer.join().unwrap();
        thread::park_timeout(Duration::from_secs(1));
        panic!("the end");
    });
    let text = outcome.finding().unwrap().schedule().unwrap().show();
    for told in [
        "try_lock lock: it is held",
        "wake-up or timeout Condvar of files.rs",
        "timed out",
        "nothing is there",
        "try_write table: it is held",
        "write table: others read",
        "park_timeout: timed out",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

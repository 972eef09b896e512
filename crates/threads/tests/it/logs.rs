//! Logs of programs: what a test does in the same order is followed, and where it parts from the log is named.

use demi_threads::sync::{Arc, Condvar, Mutex};
use demi_threads::{Check, Half, Log, LogError, Outcome, thread};

/// Two deposits that read and write in two sections.
fn bank() {
    let account = Arc::new(Mutex::named("account", 0u32));
    let audit = Arc::new(Mutex::named("audit", ()));
    let tasks: Vec<_> = ["ann", "bob"]
        .into_iter()
        .map(|name| {
            let (account, audit) = (Arc::clone(&account), Arc::clone(&audit));
            let deposit = move || {
                let balance = *account.lock().unwrap();
                drop(audit.lock().unwrap());
                *account.lock().unwrap() = balance + 1;
            };
            thread::Builder::new().name(name.to_owned()).spawn(deposit).unwrap()
        })
        .collect();
    for task in tasks {
        task.join().unwrap();
    }
    assert_eq!(*account.lock().unwrap(), 2, "a deposit is lost");
}

fn lines(operations: &[(&str, &str, &str)]) -> String {
    let one = |(actor, kind, on): &(&str, &str, &str)| {
        format!("{{\"actor\":\"{actor}\",\"kind\":\"{kind}\",\"on\":\"{on}\"}}\n")
    };
    operations.iter().map(one).collect()
}

fn follow(log: &str, test: fn()) -> Outcome {
    Check::named("follow").random(false).bound(0).follow(Log::read(log).unwrap()).explore(test)
}

#[test]
fn a_log_of_locks_alone_is_followed_to_the_failure() {
    let log = lines(&[
        ("ann", "lock", "account"),
        ("bob", "lock", "account"),
        ("bob", "lock", "account"),
        ("ann", "lock", "account"),
    ]);
    let outcome = follow(&log, bank);
    let followed = outcome.followed().unwrap();
    assert_eq!((followed.operations(), followed.parted()), (4, None));
    let finding = outcome.finding().unwrap();
    assert_eq!((finding.by(), finding.least()), (Half::Log, Some((1, true))));
}

#[test]
fn a_log_that_does_not_fail_is_followed_and_then_the_search_begins() {
    let log = lines(&[("bob", "lock", "account"), ("bob", "lock", "account"), ("ann", "lock", "account")]);
    let outcome = follow(&log, bank);
    assert_eq!(outcome.followed().unwrap().to_string(), "3 of the log's 3 operations were followed");
    assert!(outcome.finding().is_none());
    assert_eq!(outcome.complete(), Some(0));
}

#[test]
fn operations_are_in_the_order_of_their_numbers_and_other_records_are_passed_over() {
    let log = r#"{"actor":"ann","seq":1,"kind":"start"}
{"actor":"ann","seq":2,"kind":"local","type":"lock","payload":"account","operation":7}
{"actor":"ann","seq":3,"kind":"local","type":"lock","payload":"account","operation":12}
{"actor":"bob","seq":1,"kind":"local","type":"lock","payload":"account","operation":8}

{"actor":"bob","seq":2,"kind":"local","type":"lock","payload":"account","operation":11}
{"actor":"bob","seq":3,"kind":"local","type":"compacted"}
"#;
    assert_eq!(Log::read(log).unwrap().operations(), 4);
    assert_eq!(follow(log, bank).finding().unwrap().by(), Half::Log);
}

/// Without names of their own, tasks are known by who spawned them.
#[test]
fn actors_are_matched_by_who_spawned_them() {
    let log = lines(&[
        ("main", "spawn", "left"),
        ("main", "spawn", "right"),
        ("right", "lock", "a"),
        ("left", "lock", "b"),
        ("main", "join", "left"),
    ]);
    let outcome = follow(&log, || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let (one, two) = (Arc::clone(&locks), Arc::clone(&locks));
        let left = thread::spawn(move || {
            let _b = one.1.lock().unwrap();
            let _a = one.0.lock().unwrap();
        });
        let right = thread::spawn(move || {
            let _a = two.0.lock().unwrap();
            let _b = two.1.lock().unwrap();
        });
        left.join().unwrap();
        right.join().unwrap();
    });
    let finding = outcome.finding().unwrap();
    assert_eq!(finding.by(), Half::Log);
    assert!(finding.failure().to_string().contains("deadlock"), "{}", finding.failure());
    let followed = outcome.followed().unwrap();
    assert_eq!((followed.operations(), followed.parted()), (4, None), "nobody can be joined");
}

#[test]
fn the_place_where_the_test_parts_from_the_log_is_named_with_both_lines() {
    let log = lines(&[
        ("ann", "lock", "account"),
        ("ann", "unlock", "account"),
        ("ann", "unlock", "account"),
        ("bob", "lock", "account"),
    ]);
    let outcome = follow(&log, bank);
    let followed = outcome.followed().unwrap();
    assert_eq!(followed.operations(), 2);
    let parted = followed.parted().unwrap();
    assert!(
        parted.contains("line 3: ann does unlock account; the test: ann does lock account at "),
        "{parted}"
    );
    assert!(parted.contains("logs.rs:"), "{parted}");

    let nobody = follow(&lines(&[("ann", "lock", "account"), ("eve", "lock", "account")]), bank);
    let parted = nobody.followed().unwrap().parted().unwrap().to_owned();
    assert!(parted.contains("line 2: eve does lock account; the test: "), "{parted}");

    let more = follow(&lines(&[("ann", "lock", "account"); 3]), bank);
    let parted = more.followed().unwrap().parted().unwrap().to_owned();
    assert!(parted.contains("line 3: ann does lock account; the test: ann has ended"), "{parted}");
}

/// Who wakes up takes the lock again: logs tell that or do not.
#[test]
fn a_wait_is_followed_whether_or_not_the_log_tells_that_the_lock_is_taken_again() {
    fn hand_over() {
        let shared = Arc::new((Mutex::named("full", false), Condvar::named("filled")));
        let other = Arc::clone(&shared);
        let taker = thread::Builder::new().name("taker".to_owned()).spawn(move || {
            let mut full = other.0.lock().unwrap();
            while !*full {
                full = other.1.wait(full).unwrap();
            }
            *full = false;
        });
        *shared.0.lock().unwrap() = true;
        shared.1.notify_one();
        taker.unwrap().join().unwrap();
    }
    let told = [
        ("taker", "lock", "full"),
        ("taker", "wait", "filled"),
        ("main", "lock", "full"),
        ("main", "unlock", "full"),
        ("main", "notify", "filled"),
        ("taker", "lock", "full"),
        ("taker", "unlock", "full"),
        ("main", "join", "taker"),
    ];
    let untold: Vec<_> = told[..5].iter().chain(&told[6..]).copied().collect();
    for log in [lines(&told), lines(&untold)] {
        let outcome = follow(&log, hand_over);
        assert_eq!(outcome.followed().unwrap().parted(), None, "{log}");
        assert!(outcome.finding().is_none());
    }
}

#[test]
fn what_is_no_log_of_operations_is_refused() {
    assert!(matches!(Log::read(""), Err(LogError::Nothing(0))));
    assert!(matches!(Log::read("{\"actor\":\"a\",\"kind\":\"start\"}"), Err(LogError::Nothing(1))));
    assert!(matches!(Log::read("\nno record"), Err(LogError::Line { line: 2, .. })));
    assert!(matches!(Log::read("{\"kind\":\"lock\"}"), Err(LogError::Line { line: 1, .. })));
    assert!(matches!(Log::read("[1]"), Err(LogError::Line { line: 1, .. })));
    assert!(matches!(Log::from_file("/nowhere/log"), Err(LogError::File(_))));
}

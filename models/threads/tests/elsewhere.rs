//! Schedules that leave this library and come from elsewhere: shuttle replays those that were found here, and logs of programs are followed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::fmt::Write as _;

use demi_threads::failure::FailureKind;
use demi_threads::schedule::Schedule;
use demi_threads::{Check, Half, Log, on_shuttle};
use demi_threads_programs::{KNOWN, Known};

fn found(known: &Known) -> Schedule {
    let outcome = Check::named(known.name).random(false).bound(3).budget(200_000).explore(known.run);
    outcome.finding().unwrap().schedule().unwrap().clone()
}

/// What shuttle says when it replays this, if it fails.
fn replayed(run: fn(), schedule: String) -> Option<String> {
    let thread = std::thread::spawn(move || shuttle::replay(move || on_shuttle(run), &schedule));
    let payload = thread.join().err()?;
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
}

#[test]
fn shuttle_replays_each_failure_with_its_own_schedule() {
    for known in KNOWN {
        let schedule = Schedule::read(&found(known).write()).unwrap();
        let said = replayed(known.run, schedule.last.shuttle.clone().unwrap());
        let expected = match schedule.header.failure.kind() {
            FailureKind::Panic { message, .. } => message.clone(),
            _ => schedule.header.failure.to_string(),
        };
        assert!(
            said.as_ref().is_some_and(|said| said.contains(&expected)),
            "{}: {said:?}, not {expected}",
            known.name
        );
    }
}

#[test]
fn shuttle_runs_a_test_with_schedulers_of_its_own() {
    let random =
        std::thread::spawn(|| shuttle::check_random(|| on_shuttle(demi_threads_programs::demi::bank), 1_000));
    let payload = random.join().unwrap_err();
    assert!(payload.downcast_ref::<String>().unwrap().contains("a deposit is lost"));
    let random = std::thread::spawn(|| {
        shuttle::check_random(|| on_shuttle(demi_threads_programs::demi::deadlock), 1_000)
    });
    let payload = random.join().unwrap_err();
    assert!(payload.downcast_ref::<String>().unwrap().contains("deadlock"));
    let sound = || {
        let sum = demi_threads::sync::Arc::new(demi_threads::sync::Mutex::new(0));
        let other = demi_threads::sync::Arc::clone(&sum);
        let task = demi_threads::thread::spawn(move || *other.lock().unwrap() += 1);
        *sum.lock().unwrap() += 1;
        task.join().unwrap();
        assert_eq!(*sum.lock().unwrap(), 2);
    };
    std::thread::spawn(move || shuttle::check_random(move || on_shuttle(sound), 1_000)).join().unwrap();
}

/// A log of the schedule, as a program would have written it: each task its own operations, all with their numbers.
fn logged(schedule: &Schedule) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (task, did, _) in schedule.pieces() {
        for did in did {
            let (word, on) = did.op.split_once(' ').unwrap_or((&did.op, ""));
            let word = match word {
                "lock" | "unlock" | "wait" | "spawn" | "join" => word,
                "notify_one" | "notify_all" | "unpark" => "notify",
                "park" => "wait",
                "load" => "read",
                "store" | "update" | "call_once" => "write",
                _ => continue,
            };
            let mut line = format!("{{\"actor\":\"{task}\",\"kind\":\"local\",\"type\":\"{word}\"");
            if !on.is_empty() {
                let _ = write!(line, ",\"payload\":\"{on}\"");
            }
            let _ = write!(line, ",\"operation\":{}}}", lines.len());
            lines.push(line);
        }
    }
    // Threads write their lines when they come to it.
    lines.reverse();
    lines.join("\n")
}

#[test]
fn a_log_of_each_failure_is_followed_to_it() {
    for known in KNOWN {
        let schedule = found(known);
        if schedule.pieces().any(|(_, did, _)| did.iter().any(|did| did.op.starts_with("..."))) {
            println!("skipped: {} has pieces that are not told in full", known.name);
            continue;
        }
        let log = Log::read(&logged(&schedule)).unwrap();
        let outcome = Check::named(known.name).follow(log).budget(200_000).explore(known.run);
        let followed = outcome.followed().unwrap();
        assert_eq!(followed.parted(), None, "{}", known.name);
        let finding = outcome.finding().unwrap();
        assert_eq!((finding.by(), finding.executions()), (Half::Log, 1), "{}", known.name);
        assert_eq!(finding.least(), Some((known.preemptions, true)), "{}", known.name);
    }
}

//! Loops that wait: with a yield they are explored to the end, without one they are named.

use demi_threads::failure::FailureKind;
use demi_threads::sync::Arc;
use demi_threads::sync::Mutex;
use demi_threads::sync::atomic::{AtomicBool, Ordering};
use demi_threads::{Check, hint, thread};

fn spins(yields: bool) {
    let ready = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&ready);
    let waiter = thread::spawn(move || {
        while !other.load(Ordering::Acquire) {
            if yields {
                hint::spin_loop();
            }
        }
    });
    ready.store(true, Ordering::Release);
    waiter.join().unwrap();
}

#[test]
fn a_loop_that_yields_is_explored_to_the_end_of_every_bound() {
    for cached in [false, true] {
        for bound in 0..=4 {
            let preemptions = Check::named("spin").bound(bound).cache(cached).explore(|| spins(true));
            assert!(preemptions.finding().is_none(), "{:?}", preemptions.finding());
            assert_eq!(preemptions.complete(), Some(bound));
            let delays = Check::named("spin").delays(bound).cache(cached).explore(|| spins(true));
            assert!(delays.finding().is_none(), "{:?}", delays.finding());
            assert_eq!(delays.complete(), Some(bound));
        }
    }
}

/// Looks for a flag so many times, with a yield before each but the first, and then gives up, which is the failure.
fn gives_up(tries: usize) {
    let ready = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&ready);
    let setter = thread::spawn(move || other.store(true, Ordering::Release));
    let found = (0..tries).any(|at| {
        if at > 0 {
            thread::yield_now();
        }
        ready.load(Ordering::Acquire)
    });
    setter.join().unwrap();
    assert!(found || !ready.load(Ordering::Acquire), "gave up");
}

/// The first yield in a row is free, each further one after which a task goes on while others wait counts as a preemption.
#[test]
fn what_is_done_after_several_yields_is_run_at_its_cost() {
    for tries in 1..=6 {
        let outcome = Check::named("gives-up").bound(5).random(false).explore(move || gives_up(tries));
        let finding = outcome.finding().unwrap();
        let unfair = tries.saturating_sub(2);
        assert_eq!(finding.least(), Some((unfair as u32, true)), "{tries} tries");
        let schedule = finding.schedule().unwrap();
        assert_eq!(schedule.count().preemptions, schedule.header.preemptions);
        let told = schedule.show().matches("goes on, though it yielded again").count();
        assert_eq!(told, unfair, "{}", schedule.show());
        let again = Check::named("gives-up").replay(schedule.clone()).explore(move || gives_up(tries));
        assert!(again.finding().is_some(), "{tries} tries");
    }
    for bound in 0..4 {
        let outcome = Check::named("gives-up").bound(bound).random(false).explore(|| gives_up(6));
        assert_eq!((outcome.finding().is_some(), outcome.complete()), (false, Some(bound)));
    }
    let random = Check::named("gives-up").bounded(false).budget(4_000).explore(|| gives_up(5));
    assert!(random.finding().is_some(), "every fourth random execution is unfair");
}

#[test]
fn a_loop_that_does_not_yield_is_named() {
    let outcome = Check::named("hog").explore(|| spins(false));
    let finding = outcome.finding().unwrap();
    let FailureKind::Hog { task, at, starved, .. } = finding.failure().kind() else {
        panic!("{}", finding.failure())
    };
    assert_eq!(task, "task 1");
    assert!(at.0.contains("fairness.rs"), "{at}");
    assert_eq!(starved, &["main"]);
    assert_eq!(finding.least(), Some((1, true)), "main has to be left before it stores");
}

#[test]
fn the_cache_keeps_all_terminal_graphs_of_programs_with_yields() {
    let both = |bound: u32, delays: bool| {
        let graphs = [false, true].map(|cached| {
            let check = Check::named("graphs").cache(cached).budget(u64::MAX).exhaustive();
            let check = if delays { check.delays(bound) } else { check.bound(bound) };
            let outcome = check.explore(|| {
                let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
                let other = Arc::clone(&flags);
                let waiter = thread::spawn(move || {
                    while !other.0.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                    other.1.store(true, Ordering::SeqCst);
                });
                flags.0.store(true, Ordering::SeqCst);
                while !flags.1.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                waiter.join().unwrap();
            });
            assert_eq!(outcome.complete(), Some(bound));
            outcome.terminal_graphs().clone()
        });
        assert_eq!(graphs[0], graphs[1], "bound {bound}, delays {delays}");
        graphs[0].len()
    };
    for bound in 0..=3 {
        assert!(both(bound, false) > 0);
        assert!(both(bound, true) > 0);
    }
    assert!(both(2, false) > 3);
}

type Forks = (Mutex<()>, Mutex<()>);

/// Two tasks that take two locks in opposite orders and put the first back where they do not get the second.
fn polite() {
    polite_for(usize::MAX);
}

/// The same, and a task that did not get both after so many tries goes away.
fn polite_for(tries: usize) {
    let forks = Arc::new((Mutex::new(()), Mutex::new(())));
    let eat = |first: fn(&Forks) -> (&Mutex<()>, &Mutex<()>)| {
        let forks = Arc::clone(&forks);
        move || {
            for _ in 0..tries {
                let (one, two) = first(&forks);
                let held = one.lock().unwrap();
                if two.try_lock().is_ok() {
                    break;
                }
                drop(held);
                thread::yield_now();
            }
        }
    };
    let a = thread::spawn(eat(|forks| (&forks.0, &forks.1)));
    let b = thread::spawn(eat(|forks| (&forks.1, &forks.0)));
    a.join().unwrap();
    b.join().unwrap();
}

#[test]
fn two_philosophers_who_put_their_forks_back_are_a_livelock_that_is_told_step_by_step() {
    let outcome = Check::named("polite").bound(3).explore(polite);
    let finding = outcome.finding().unwrap();
    let FailureKind::Livelock { tasks, round, .. } = finding.failure().kind() else {
        panic!("{}", finding.failure())
    };
    assert_eq!(tasks, &["task 1", "task 2"]);
    assert!(round.iter().filter(|step| step.contains("yield_now")).count() >= 2, "{round:?}");
    assert!(round.iter().any(|step| step.contains("try_lock Mutex of fairness.rs:")), "{round:?}");
}

#[test]
fn philosophers_who_go_away_after_many_tries_are_no_livelock() {
    let outcome = Check::named("patient").bound(1).budget(2_000).explore(|| polite_for(150));
    assert!(outcome.finding().is_none(), "{}", outcome.finding().unwrap().failure());
}

#[test]
fn loops_that_make_progress_are_no_livelock() {
    let outcome = Check::named("progress").bound(1).budget(2_000).explore(|| {
        let shared = Arc::new(Mutex::new(0));
        let other = Arc::clone(&shared);
        let work = |shared: &Mutex<u32>| (0..150).for_each(|_| *shared.lock().unwrap() += 1);
        let task = thread::spawn(move || work(&other));
        work(&shared);
        task.join().unwrap();
    });
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
}

#[test]
fn two_philosophers_who_put_their_forks_back_are_no_failure_of_a_finite_bound() {
    let outcome = Check::named("polite").bound(3).random(false).explore(polite);
    assert!(outcome.finding().is_none(), "{:?}", outcome.finding());
    assert_eq!(outcome.complete(), Some(3));
}

#[test]
fn a_fair_execution_without_end_is_a_livelock() {
    let outcome = Check::named("livelock").steps(2_000).explore(|| {
        let done = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&done);
        let wait = move |flag: Arc<AtomicBool>| {
            while !flag.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        };
        let first = thread::spawn(move || wait(other));
        wait(done);
        first.join().unwrap();
    });
    let FailureKind::Livelock { tasks, .. } = outcome.finding().unwrap().failure().kind() else {
        panic!("{}", outcome.finding().unwrap().failure())
    };
    assert_eq!(tasks, &["main", "task 1"]);
}

//! What is claimed is so: code that a search cannot follow to its end is never promised anything, and of two failures each is told.

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering as Real};
use std::time::Duration;

use demi_threads::failure::FailureKind;
use demi_threads::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use demi_threads::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use demi_threads::{Check, Outcome, thread};

/// A task that goes on until it is told to stop, and whose owner waits for that.
struct Service {
    stop: Arc<AtomicBool>,
    task: Option<thread::JoinHandle<()>>,
}

impl Service {
    fn begin() -> Service {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let task = thread::spawn(move || {
            while !seen.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        Service { stop, task: Some(task) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.task.take().map(thread::JoinHandle::join);
    }
}

fn panics(outcome: &Outcome) -> (String, String) {
    let finding = outcome.finding().unwrap_or_else(|| panic!("{}", outcome.promise()));
    match finding.failure().kind() {
        FailureKind::Panic { message, at, .. } => (message.clone(), at.0.clone()),
        other => panic!("{other}"),
    }
}

#[test]
fn a_panic_that_is_passed_on_over_a_destructor_that_waits_fails() {
    let passed_on = Check::named("passed-on").explore(|| {
        let caught = catch_unwind(|| panic!("first seen here"));
        thread::yield_now();
        let _service = Service::begin();
        let Err(payload) = caught;
        resume_unwind(payload);
    });
    let in_a_scope = Check::named("in-a-scope").explore(|| {
        let _service = Service::begin();
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| count.fetch_add(1, Ordering::SeqCst));
            assert!(count.load(Ordering::SeqCst) > 5, "too few");
        });
    });
    for (outcome, text) in [(passed_on, "first seen here"), (in_a_scope, "too few")] {
        let (message, at) = panics(&outcome);
        assert!(message.starts_with(text) && at.contains("claims.rs"), "{message} at {at}");
    }
}

#[test]
fn a_panic_of_a_scope_is_told_with_its_place() {
    let outcome = Check::named("scope").explore(|| {
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| count.fetch_add(1, Ordering::SeqCst));
            assert!(count.load(Ordering::SeqCst) > 5, "too few");
        });
    });
    assert!(panics(&outcome).1.contains("claims.rs"), "{:?}", panics(&outcome));
}

/// Adds what a task has to what all have when the task ends.
struct Flush(RefCell<Option<Arc<Mutex<u32>>>>);

impl Drop for Flush {
    fn drop(&mut self) {
        if let Some(total) = self.0.borrow_mut().take() {
            *total.lock().unwrap() += 1;
        }
    }
}

demi_threads::thread_local! {
    static FLUSH: Flush = const { Flush(RefCell::new(None)) };
    static COUNT: Cell<u32> = Cell::new(1);
    pub(crate) static LIST: RefCell<Vec<u32>> = RefCell::default()
}

#[test]
fn what_the_values_of_a_task_do_at_its_end_are_its_last_steps() {
    let test = || {
        let total = Arc::new(Mutex::new(0));
        let gone = Arc::new(AtomicUsize::new(0));
        let (own, here, own_gone) = (Arc::clone(&total), total, Arc::clone(&gone));
        let flushes = thread::spawn(move || {
            FLUSH.with(|flush| *flush.0.borrow_mut() = Some(own));
            own_gone.store(1, Ordering::SeqCst);
        });
        let looks = thread::spawn(move || {
            let total = here.lock().unwrap();
            let (first, second) = (gone.load(Ordering::SeqCst), gone.load(Ordering::SeqCst));
            assert_eq!(first, second, "it changed under the lock");
            drop(total);
        });
        looks.join().unwrap();
        flushes.join().unwrap();
    };
    let outcome = Check::named("flush").random(false).explore(test);
    assert!(panics(&outcome).0.contains("under the lock"));
    assert_eq!(outcome.finding().unwrap().least(), Some((1, true)));
    // A join comes after them.
    let outcome = Check::named("joined").explore(|| {
        let total = Arc::new(Mutex::new(0));
        let own = Arc::clone(&total);
        let task = thread::spawn(move || FLUSH.with(|flush| *flush.0.borrow_mut() = Some(own)));
        task.join().unwrap();
        assert_eq!(*total.lock().unwrap(), 1);
    });
    assert!(outcome.finding().is_none() && outcome.complete() == Some(2), "{}", outcome.promise());
}

#[test]
fn the_values_of_a_task_have_the_methods_of_the_standard_library() {
    let outcome = Check::named("local").explore(|| {
        COUNT.set(5);
        assert_eq!((COUNT.get(), COUNT.replace(6), COUNT.take(), COUNT.get()), (5, 5, 6, 0));
        LIST.with_borrow_mut(|list| list.push(1));
        let other = thread::spawn(|| (COUNT.get(), LIST.take()));
        assert_eq!(LIST.with_borrow(Vec::len), 1);
        assert_eq!((LIST.replace(vec![7]), LIST.take()), (vec![1], vec![7]));
        assert_eq!(other.join().unwrap(), (1, vec![]));
        assert!(COUNT.try_with(|_| ()).is_ok());
    });
    assert!(outcome.finding().is_none(), "{}", outcome.finding().unwrap().failure());
    // Outside of tests each thread has its own.
    COUNT.set(9);
    assert_eq!((COUNT.get(), std::thread::spawn(|| COUNT.get()).join().unwrap()), (9, 1));
}

#[test]
fn what_fails_once_and_not_again_is_not_deterministic() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let by_value = Check::named("by-value").explore(|| {
        let call = CALLS.fetch_add(1, Real::Relaxed);
        let count = Arc::new(Mutex::new(0));
        let other = Arc::clone(&count);
        let task = thread::spawn(move || *other.lock().unwrap() += 1);
        *count.lock().unwrap() += 1;
        task.join().unwrap();
        assert!(call != 10, "the eleventh call");
    });
    static KEPT: AtomicUsize = AtomicUsize::new(0);
    let by_static = Check::named("by-static").explore(|| {
        let task = thread::spawn(|| KEPT.fetch_add(1, Ordering::SeqCst));
        KEPT.fetch_add(1, Ordering::SeqCst);
        task.join().unwrap();
        assert_eq!(KEPT.load(Ordering::SeqCst), 2);
    });
    for outcome in [by_value, by_static] {
        let finding = outcome.finding().unwrap();
        assert!(
            matches!(finding.failure().kind(), FailureKind::Nondeterministic { .. }),
            "{}",
            finding.failure()
        );
        assert!(finding.least().is_none(), "nothing is claimed of it");
    }
}

#[test]
fn another_failure_with_fewer_preemptions_is_told() {
    // The counter loses an update with one preemption; in the order of the deterministic scheduler alone, the locks do not meet.
    let test = || {
        let (count, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (other, other_ready) = (Arc::clone(&count), Arc::clone(&ready));
        let task = thread::spawn(move || {
            let seen = other.load(Ordering::SeqCst);
            other.store(seen + 1, Ordering::SeqCst);
            other_ready.store(1, Ordering::SeqCst);
        });
        let seen = count.load(Ordering::SeqCst);
        count.store(seen + 1, Ordering::SeqCst);
        assert!(ready.load(Ordering::SeqCst) == 1 || seen == 1, "without any preemption");
        task.join().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2, "an update was lost");
    };
    let mut both = 0;
    for seed in 1..40 {
        let outcome = Check::named("two").bounded(false).budget(64).seed(seed).explore(test);
        let Some(finding) = outcome.finding() else { continue };
        if !panics(&outcome).0.contains("lost") {
            continue;
        }
        both += 1;
        let schedule = finding.schedule().unwrap();
        let told = schedule.show();
        assert_eq!(finding.least(), Some((1, true)));
        assert!(told.contains("another failure needs only no preemption"), "{told}");
        assert!(told.contains("the fewest for this failure"), "{told}");
    }
    assert!(both > 0, "one of the seeds finds the lost update first");
}

#[test]
fn a_look_at_many_things_is_no_round() {
    let scan = |rounds: usize| {
        Check::named("scan").bound(1).budget(200).explore(move || {
            let all: Arc<Vec<AtomicUsize>> = Arc::new((0..1_300).map(|_| AtomicUsize::new(0)).collect());
            let seen = Arc::clone(&all);
            let task = thread::spawn(move || {
                (0..rounds).flat_map(|_| seen.iter()).map(|one| one.load(Ordering::SeqCst)).sum::<usize>()
            });
            all[0].fetch_add(1, Ordering::SeqCst);
            task.join().unwrap();
        })
    };
    let once = scan(1);
    assert!(once.finding().is_none(), "{}", once.finding().unwrap().failure());
    // A task alone starves nobody: it comes to the most steps of an execution.
    let alone = Check::named("alone").steps(3_000).explore(|| {
        let lock = Mutex::new(0);
        (0..2_000).for_each(|_| *lock.lock().unwrap() += 1);
    });
    let told = alone.finding().unwrap().failure().to_string();
    assert!(told.contains("DEMI_STEPS") && !told.contains("never lets others"), "{told}");
}

#[test]
fn whom_a_notification_woke_is_told() {
    let outcome = Check::named("latch").explore(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let pair = Arc::clone(&pair);
                thread::spawn(move || {
                    let mut open = pair.0.lock().unwrap();
                    while !*open {
                        open = pair.1.wait(open).unwrap();
                    }
                })
            })
            .collect();
        thread::yield_now();
        *pair.0.lock().unwrap() = true;
        pair.1.notify_one();
        waiters.into_iter().for_each(|task| task.join().unwrap());
    });
    let told = outcome.finding().unwrap().failure().to_string();
    assert!(told.contains("and woke task"), "{told}");
}

#[test]
fn who_initializes_is_told() {
    let again = Check::named("again").explore(|| {
        let cell: OnceLock<u32> = OnceLock::new();
        cell.get_or_init(|| *cell.get_or_init(|| 1) + 1);
    });
    let told = again.finding().unwrap().failure().to_string();
    assert!(told.contains("which it holds itself since"), "{told}");
    let crossed = Check::named("crossed").explore(|| {
        let pair = Arc::new((OnceLock::new(), OnceLock::new()));
        let other = Arc::clone(&pair);
        let task = thread::spawn(move || {
            other.1.get_or_init(|| *other.0.get_or_init(|| 1));
        });
        pair.0.get_or_init(|| *pair.1.get_or_init(|| 2));
        task.join().unwrap();
    });
    let told = crossed.finding().unwrap().failure().to_string();
    assert!(told.contains("in a circle"), "{told}");
}

#[test]
fn who_blocks_for_real_is_the_one_that_is_named() {
    let outcome = Check::named("reader").patience(Duration::from_secs(2)).explore(|| {
        let (to, from) = std::sync::mpsc::channel::<u8>();
        let reader =
            thread::Builder::new().name("reader".into()).spawn(move || from.recv().unwrap()).unwrap();
        let writer = thread::spawn(move || {
            thread::yield_now();
            to.send(1).unwrap();
        });
        reader.join().unwrap();
        writer.join().unwrap();
    });
    let FailureKind::Blocked { task, .. } = outcome.finding().unwrap().failure().kind() else {
        panic!("{}", outcome.finding().unwrap().failure())
    };
    assert_eq!(task, "reader");
}

#[test]
fn who_hands_a_value_over_gets_it_back_where_nobody_takes_it() {
    let outcome = Check::named("hand-over").explore(|| {
        let (to, from) = mpsc::sync_channel::<u8>(0);
        let task = thread::spawn(move || to.send(1));
        drop(from);
        assert!(task.join().unwrap().is_err());
    });
    assert!(outcome.finding().is_none(), "{}", outcome.finding().unwrap().failure());
    assert_eq!(outcome.complete(), Some(2), "{}", outcome.promise());
}

#[test]
fn a_time_is_kept_where_executions_take_long() {
    let outcome =
        Check::named("long").steps(2_000_000).hog(1_000_000).time(Duration::from_secs(1)).explore(|| {
            let lock = Arc::new(Mutex::new(0));
            let other = Arc::clone(&lock);
            let task = thread::spawn(move || (0..40_000).for_each(|_| *other.lock().unwrap() += 1));
            (0..40_000).for_each(|_| *lock.lock().unwrap() += 1);
            task.join().unwrap();
        });
    assert!(outcome.finding().is_none());
    // Executions between two looks at the clock would be hundreds.
    assert!(outcome.random() < 64, "{}", outcome.random());
}

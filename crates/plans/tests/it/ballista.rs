//! Faults of a cluster of Ballista: what is killed while a question is asked changes no answer.

use std::time::Duration;

use demi_lineage::query::Query;
use demi_plans::{EngineKind, Options, PlanError, Process, Session};

use crate::cluster::{self, Cluster};
use crate::common::{Made, python};
use crate::topologies::{Faults, Running, Topology};

/// A system whose pasts take many rounds, and events of it.
fn ring() -> (Made, Query, Vec<String>) {
    let records: Vec<_> = Running::new(Topology::Ring, 20, 3000, 1, Faults::default()).collect();
    let made = Made::of(&records);
    let query = made.query("s");
    let events = records[1000..].iter().step_by(100).map(|record| record.id().to_string()).collect();
    (made, query, events)
}

/// Asks for the pasts of events while `fault` is at work, and compares them event by event.
fn asked(made: &Made, query: &Query, events: &[String], engine: &mut Process, fault: impl FnOnce() + Send) {
    let scratch = made.scratch();
    let mut session =
        Session::open(engine, &made.store, &["s".to_owned()], Options::default(), scratch.path()).unwrap();
    let (pasts, effort) = std::thread::scope(|threads| {
        threads.spawn(fault);
        session.past_answers("s", events).unwrap()
    });
    assert!(effort.rounds > 10, "{effort:?}");
    for (event, past) in events.iter().zip(&pasts) {
        assert_eq!(*past, query.past(query.index().event(event).unwrap()).unwrap(), "past of {event}");
    }
}

#[test]
fn an_executor_that_is_killed_changes_no_answer() {
    if !cluster::is_there() {
        return;
    }
    let (made, query, events) = ring();
    let mut cluster = Cluster::start();
    let mut engine = cluster.process().unwrap();
    let (port, mut executor) = (cluster.port, cluster.executors.swap_remove(0));
    asked(&made, &query, &events, &mut engine, || {
        cluster::until_busy(port);
        executor.kill();
    });
    // The one that is left answers alone.
    asked(&made, &query, &events, &mut engine, || ());
}

#[test]
fn a_scheduler_that_begins_anew_changes_no_answer() {
    if !cluster::is_there() {
        return;
    }
    let (made, query, events) = ring();
    let mut cluster = Cluster::start();
    let mut engine = cluster.process().unwrap();
    asked(&made, &query, &events, &mut engine, || {
        cluster::until_busy(cluster.port);
        cluster.scheduler.kill();
        std::thread::sleep(Duration::from_secs(1));
        cluster.restart();
    });
}

#[test]
fn where_no_scheduler_is_an_error_says_so() {
    if !cluster::is_there() {
        return;
    }
    let failed = Process::start(EngineKind::Ballista, Some("127.0.0.1:1"), &python());
    let Err(PlanError::NoEngine { reason, .. }) = failed else { panic!("it started") };
    assert!(reason.contains("no scheduler answers at 127.0.0.1:1"), "{reason}");
}

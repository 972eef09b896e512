//! The same questions to the order index and to each engine.

use demi_lineage::generate::Mix;
use demi_lineage::query::Query;
use demi_plans::{Engine, Options, PlanError, Session};
use demi_schemas::EventRecord;
use demi_schemas::event::TIME_SEQS;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::common::{Made, corpus, engines, generated, recorded};
use crate::topologies::{Faults, Running, Topology};

/// Events to ask for, and the last one.
fn some(records: &[EventRecord], n: usize, seed: u64) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut names: Vec<String> =
        records.choose_multiple(&mut random, n).map(|record| record.id().to_string()).collect();
    names.extend(records.last().map(|record| record.id().to_string()));
    names
}

/// Asks an engine all there is to ask.
fn compare(made: &Made, query: &Query, engine: &mut dyn Engine, events: &[String], what: &str) {
    let scratch = made.scratch();
    let name = engine.name();
    let systems = ["s".to_owned()];
    let mut session =
        Session::open(engine, &made.store, &systems, Options::default(), scratch.path()).unwrap();
    let number = |event: &String| query.index().event(event).unwrap();
    let (pasts, effort) = session.past_answers("s", events).unwrap();
    let actors = query.index().header().actors.len() as u32 + query.index().header().alone as u32;
    assert!(effort.rounds <= actors, "{what}, {name}: {effort:?}");
    for (event, past) in events.iter().zip(&pasts) {
        assert_eq!(*past, query.past(number(event)).unwrap(), "{what}, {name}: past of {event}");
    }
    let (futures, _) = session.future_answers("s", events).unwrap();
    for (event, future) in events.iter().zip(&futures) {
        assert_eq!(*future, query.future(number(event)).unwrap(), "{what}, {name}: future of {event}");
    }
    let pairs: Vec<(String, String)> = events.windows(2).map(|w| (w[0].clone(), w[1].clone())).collect();
    let (orders, _) = session.orders("s", &pairs).unwrap();
    for ((a, b), order) in pairs.iter().zip(&orders) {
        assert_eq!(*order, query.order(number(a), number(b)).unwrap(), "{what}, {name}: {a} and {b}");
    }
    for event in &events[..events.len().min(3)] {
        let cut = session.cut("s", &[], std::slice::from_ref(event)).unwrap();
        let local = query.cut_of(&[number(event)]).unwrap();
        assert_eq!(
            (cut.cut, cut.consistent),
            (local.cut, local.consistent),
            "{what}, {name}: cut at {event}"
        );
    }
}

fn mixes() -> Vec<(&'static str, Mix)> {
    let base = Mix { actors: 12, events: 2000, ..Mix::default() };
    vec![
        ("chatty", base.clone()),
        (
            "disorder",
            Mix { seed: 1, loss: 0.05, duplicate: 0.05, restart: 0.01, in_order: false, ..base.clone() },
        ),
        (
            "threads and outside",
            Mix { seed: 2, thread: 0.1, environment: 0.1, timer: 0.1, forward: 0.1, ..base.clone() },
        ),
        ("without ids", Mix { seed: 3, ids: 0.0, contents: 5, ..base.clone() }),
        ("clocks", Mix { seed: 4, clocks: true, hidden: 0.2, thread: 0.05, ..base.clone() }),
        ("spans", Mix { seed: 5, spans: 0.2, thread: 0.05, environment: 0.05, ..base.clone() }),
        ("multicast", Mix { seed: 6, multicast: 0.2, duplicate: 0.1, ..base }),
    ]
}

#[test]
fn engines_answer_as_the_order_index_does() {
    let mut engines = engines();
    for (what, mix) in mixes() {
        let records = generated(&mix);
        let made = Made::of(&records);
        let query = made.query("s");
        let events = some(&records, 20, mix.seed);
        for engine in &mut engines {
            compare(&made, &query, &mut **engine, &events, what);
        }
    }
}

#[test]
fn engines_leave_out_what_is_not_certain() {
    let mut engines = engines();
    let certain = Options { certain: true, ..Options::default() };
    for (what, mix) in mixes() {
        let mut records = generated(&mix);
        let made = Made::of(&records);
        let query = made.ordered("s", true);
        let events = some(&records, 20, mix.seed);
        let pairs: Vec<(String, String)> = events.windows(2).map(|w| (w[0].clone(), w[1].clone())).collect();
        let number = |event: &String| query.index().event(event).unwrap();
        let scratch = made.scratch();
        for engine in &mut engines {
            let name = engine.name();
            let systems = ["s".to_owned()];
            let mut session =
                Session::open(&mut **engine, &made.store, &systems, certain, scratch.path()).unwrap();
            let (pasts, _) = session.past_answers("s", &events).unwrap();
            for (event, past) in events.iter().zip(&pasts) {
                assert_eq!(*past, query.past(number(event)).unwrap(), "{what}, {name}: past of {event}");
            }
            let (orders, _) = session.orders("s", &pairs).unwrap();
            for ((a, b), order) in pairs.iter().zip(&orders) {
                assert_eq!(*order, query.order(number(a), number(b)).unwrap(), "{what}, {name}: {a} and {b}");
            }
        }
        // The same log with times for numbers, of which some follow each other.
        records.iter_mut().for_each(|record| record.seq += TIME_SEQS.start);
        let (made, events) = (Made::of(&records), some(&records, 2, mix.seed));
        for engine in &mut engines {
            let systems = ["s".to_owned()];
            let mut session =
                Session::open(&mut **engine, &made.store, &systems, certain, scratch.path()).unwrap();
            let refused = session.past_answers("s", &events).unwrap_err();
            assert!(matches!(refused, PlanError::Refused { .. }), "{what}: {refused}");
        }
    }
}

/// Small here; `DEMI_PLAN_EVENTS` makes them longer.
#[test]
fn topologies_take_at_most_as_many_rounds_as_they_have_logs() {
    let events = std::env::var("DEMI_PLAN_EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let mut engines = engines();
    for topology in Topology::ALL {
        let faults = match topology {
            Topology::Gossip => Faults { disorder: true, loss: 0.05, twice: 0.05, restart: 0.005 },
            _ => Faults::default(),
        };
        let records: Vec<_> = Running::new(topology, 20, events, 1, faults).collect();
        let made = Made::of(&records);
        let query = made.query("s");
        let events = some(&records, 20, 1);
        for engine in &mut engines {
            compare(&made, &query, &mut **engine, &events, &format!("{topology:?}"));
        }
    }
}

#[test]
fn engines_answer_for_recorded_executions() {
    let cases = corpus();
    let mut engines = if cases.is_empty() { Vec::new() } else { engines() };
    for case in &cases {
        let records = recorded(case);
        let made = Made::of(&records);
        let query = made.query("s");
        let events = some(&records, 20, 7);
        for engine in &mut engines {
            compare(&made, &query, &mut **engine, &events, &case.display().to_string());
        }
    }
}

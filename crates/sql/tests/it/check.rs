//! Predicates over states, against the states at every beginning of the linear extension.

use std::collections::BTreeMap;
use std::path::PathBuf;

use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{CheckAnswer, CutSpec, Predicate, Query, StateSelection};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::EventRecord;
use demi_sql::{OutputFormat, write};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) fn executed(records: Vec<EventRecord>) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, exec) = (dir.path().join("store.parquet"), dir.path().join("exec"));
    write_store_file(&file, records).unwrap();
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    (dir, exec)
}

/// A random system; about each third event tells a state with `x` from 0 to 5 and a `role`.
pub(crate) fn records(seed: u64, actors: u32, events: u64) -> Vec<EventRecord> {
    let mix = Mix { seed, actors, events, loss: 0.05, restart: 0.02, timer: 0.1, ..Mix::default() };
    let mut random = seed;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let told = |mut record: EventRecord, n: u64, x: u64| {
        let ordinary = !record.actor.starts_with('_');
        record.state = (ordinary && n.is_multiple_of(3))
            .then(|| json!({"x": x % 6, "role": if x.is_multiple_of(4) { "Leader" } else { "Follower" }}));
        record
    };
    Generator::new(&mix).map(|g| told(g.record, next(), next())).collect()
}

pub(crate) fn rows(query: &Query, sql: &str) -> Vec<Value> {
    let mut out = Vec::new();
    write(&mut crate::select(query, sql).unwrap(), OutputFormat::JsonLines, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// By global state in the order of the linear extension: the event that made it, and whether the predicate fails.
fn by_hand(query: &Query, fails: impl Fn(&BTreeMap<String, Value>) -> bool) -> Vec<(String, bool)> {
    let sql = "SELECT event, actor, state FROM events WHERE state IS NOT NULL ORDER BY \"order\"";
    let mut now = BTreeMap::new();
    let mut seen = Vec::new();
    for row in rows(query, sql) {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        now.insert(text("actor"), serde_json::from_str(&text("state")).unwrap());
        seen.push((text("event"), fails(&now)));
    }
    seen
}

fn compare(query: &Query, answer: &CheckAnswer, by_hand: &[(String, bool)]) {
    assert_eq!(answer.checked as usize, by_hand.len());
    assert_eq!(answer.failing as usize, by_hand.iter().filter(|s| s.1).count());
    assert_eq!(answer.holds, by_hand.iter().all(|s| !s.1));
    let first = by_hand.iter().position(|s| s.1);
    assert_eq!(answer.failures.first().map(|f| &f.from), first.map(|i| &by_hand[i].0));
    assert_eq!(answer.first.is_some(), first.is_some());
    let Some((cut, place)) = answer.first.as_ref().zip(first) else { return };
    assert!(cut.cut.consistent);
    // The cut's own states are the ones that fail, also when the cut is asked for by name.
    let mut spec = CutSpec::default();
    cut.cut.cut.values().for_each(|name| spec.add(query, name).unwrap());
    assert_eq!(query.state_of(&spec, &[]).unwrap().states, cut.states);
    let named: Vec<&String> = by_hand[..=place].iter().map(|s| &s.0).collect();
    assert!(cut.states.values().all(|s| named.contains(&&s.event)));
    assert!(cut.states.values().any(|s| s.event == by_hand[place].0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn failures_are_where_the_states_say(seed in 0..1_u64 << 40, actors in 1..5_u32, most in 0..12_u64) {
        let (_dir, exec) = executed(records(seed, actors, 120));
        let query = Query::open(&exec, false).unwrap();
        prop_assume!(query.index().header().states > 0);
        let number = |s: &Value| s["x"].as_u64().unwrap();

        let answer = query.check(&Predicate::parse(&format!("sum(x) <= {most}")).unwrap(), StateSelection::Order).unwrap();
        compare(&query, &answer, &by_hand(&query, |now| now.values().map(number).sum::<u64>() > most));

        let text = "WHERE role = 'Leader' GROUP BY x HAVING count(*) <= 1";
        let answer = query.check(&Predicate::parse(text).unwrap(), StateSelection::Order).unwrap();
        let two_leaders = |now: &BTreeMap<String, Value>| {
            (0..6).any(|x| now.values().filter(|s| s["role"] == "Leader" && number(s) == x).count() > 1)
        };
        compare(&query, &answer, &by_hand(&query, two_leaders));
    }
}

#[test]
fn slips_are_told() {
    let (_dir, exec) = executed(records(1, 3, 100));
    let query = Query::open(&exec, false).unwrap();
    let error = |text: &str| {
        query.check(&Predicate::parse(text).unwrap(), StateSelection::Order).unwrap_err().to_string()
    };
    assert_eq!(error("count(rol) < 2"), "no state has a variable 'rol'; 'role' is near (there are: role, x)");
    assert!(error("role < 3").contains("cannot be put in order"), "{}", error("role < 3"));
    let plain = records(1, 3, 100).into_iter().map(|r| EventRecord { state: None, ..r }).collect();
    let (_dir, exec) = executed(plain);
    let query = Query::open(&exec, false).unwrap();
    let error =
        query.check(&Predicate::parse("x < 1").unwrap(), StateSelection::Order).unwrap_err().to_string();
    assert!(error.contains("no record tells a state"), "{error}");
}

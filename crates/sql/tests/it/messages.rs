//! Predicates over messages and chains of them, against rows put together by hand from the tables.

use std::collections::BTreeMap;

use demi_lineage::query::{Predicate, Query, StateSelection};
use proptest::prelude::*;
use serde_json::Value;

use crate::check::{executed, records, rows};

/// A system's events by actor in the order of its log, and for each its place there.
struct Log {
    of: BTreeMap<String, Vec<Value>>,
    place: BTreeMap<String, (String, usize)>,
    /// By receive: its send. Timers are none.
    sent: BTreeMap<String, String>,
}

/// Kinds of events that begin what happens as one step.
const HEADS: [&str; 9] =
    ["start", "receive", "timer_fire", "crash", "restart", "stop", "isolate", "heal", "action"];

impl Log {
    fn read(query: &Query) -> Log {
        let mut log = Log { of: BTreeMap::new(), place: BTreeMap::new(), sent: BTreeMap::new() };
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let sql =
            "SELECT event, actor, incarnation, seq, kind, state FROM events ORDER BY actor, incarnation, seq";
        for row in rows(query, sql) {
            let (actor, event) = (text(&row, "actor"), text(&row, "event"));
            let own = log.of.entry(actor.clone()).or_default();
            log.place.insert(event, (actor, own.len()));
            own.push(row);
        }
        let sql = "SELECT send, receive FROM messages WHERE status = 'matched' AND reason <> 'timer'";
        for row in rows(query, sql) {
            log.sent.insert(text(&row, "receive"), text(&row, "send"));
        }
        log
    }

    /// The first and the last event, as places, of the step that an event is in.
    fn step(&self, event: &str) -> (&str, usize, usize) {
        let (actor, at) = &self.place[event];
        let all = &self.of[actor];
        let head = |i: &usize| HEADS.contains(&all[*i]["kind"].as_str().unwrap());
        let first = (0..=*at).rev().find(head).unwrap_or(0);
        let end = (at + 1..all.len()).find(head).unwrap_or(all.len());
        (actor, first, end - 1)
    }

    /// The variable `x` of the state that the step of an event left.
    fn x(&self, event: &str) -> Option<i64> {
        let (actor, first, last) = self.step(event);
        let all = &self.of[actor];
        let same = |i: &usize| all[*i]["incarnation"] == all[first]["incarnation"];
        let state = (0..=last).rev().take_while(same).find_map(|i| all[i]["state"].as_str())?;
        serde_json::from_str::<Value>(state).unwrap()["x"].as_i64()
    }

    /// What led to a receive: itself, its send, the send of what began that step, as long as the actors differ.
    fn behind(&self, receive: &str) -> Vec<String> {
        let actor = |event: &str| self.place[event].0.clone();
        let mut found = vec![receive.to_owned(), self.sent[receive].clone()];
        if actor(&found[0]) == actor(&found[1]) {
            return found;
        }
        while let Some(last) = found.last() {
            let (own, first, _) = self.step(last);
            let head = self.of[own][first]["event"].as_str().unwrap();
            match self.sent.get(head) {
                Some(next) if found.iter().all(|f| actor(f) != actor(next)) => found.push(next.clone()),
                _ => break,
            }
        }
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn failures_are_where_the_messages_say(seed in 0..1_u64 << 40, actors in 2..6_u32) {
        let (_dir, exec) = executed(records(seed, actors, 200));
        let query = Query::open(&exec, false).unwrap();
        let log = Log::read(&query);
        prop_assume!(query.index().header().states > 30 && !log.sent.is_empty());
        let more = |a: Option<i64>, b: Option<i64>| a.zip(b).is_some_and(|(a, b)| a > b);
        let ask = |text: &str| query.check(&Predicate::parse(text).unwrap(), StateSelection::Order).unwrap();

        let answer = ask("MESSAGES HAVING sender.x <= receiver.x");
        let by_hand = log.sent.iter().filter(|(to, from)| more(log.x(from), log.x(to)));
        let mut by_hand: Vec<&str> = by_hand.map(|(to, _)| to.as_str()).collect();
        by_hand.sort_unstable();
        let mut found: Vec<&str> = answer.failures.iter().map(|f| f.from.as_str()).collect();
        found.sort_unstable();
        prop_assert_eq!(&found, &by_hand);
        prop_assert_eq!((answer.checked, answer.failing), (log.sent.len() as u64, by_hand.len() as u64));
        if let Some((first, failure)) = answer.first.as_ref().zip(answer.failures.first()) {
            prop_assert!(first.cut.consistent);
            // The cut has the message, and what its sender and its receiver told when they were done.
            for event in [&log.sent[&failure.from], &failure.from] {
                let end = first.cut.cut.get(&log.place[event].0);
                prop_assert!(end.is_some_and(|end| log.place[end].1 >= log.place[event].1), "{first:?}");
            }
        }

        let chains: Vec<Vec<String>> = log.sent.keys().map(|to| log.behind(to)).filter(|c| c.len() > 2).collect();
        if !chains.is_empty() {
            let answer = ask("CHAIN HAVING s1.x <= s3.x");
            let fails = chains.iter().filter(|c| more(log.x(&c[2]), log.x(&c[0]))).count() as u64;
            prop_assert_eq!((answer.checked, answer.failing), (chains.len() as u64, fails));
        }
    }
}

#[test]
fn slips_about_messages_are_told() {
    let (_dir, exec) = executed(records(1, 3, 100));
    let query = Query::open(&exec, false).unwrap();
    let error = |text: &str| {
        query.check(&Predicate::parse(text).unwrap(), StateSelection::Order).unwrap_err().to_string()
    };
    let why = error("MESSAGES 'no such' HAVING sender.x > 1");
    assert!(why.contains("no message of type 'no such' was delivered"), "{why}");
    let why = error("MESSAGES HAVING sender.y > 1");
    assert!(why.contains("no state has a variable 'y'"), "{why}");
    let why = error("MESSAGES HAVING message.y > 1");
    assert!(why.contains("no message tells 'y' of itself"), "{why}");
}

/// Neighbours are pairs that exchanged a message; before one was delivered there are none.
#[test]
fn neighbours_met() {
    let (_dir, exec) = executed(records(3, 4, 200));
    let query = Query::open(&exec, false).unwrap();
    let check = |scope: &str| {
        let text = format!("{scope} a, b HAVING a.x + b.x < 0");
        query.check(&Predicate::parse(&text).unwrap(), StateSelection::Order).unwrap()
    };
    let (pairs, neighbours) = (check("PAIRS"), check("NEIGHBOURS"));
    assert_eq!(pairs.checked, neighbours.checked);
    assert!(!neighbours.holds && neighbours.failing <= pairs.failing);
}

//! The loop against a closure over single events.

use std::collections::BTreeMap;

use demi_plans::{ClosedBy, Frontier, Options, close};
use proptest::prelude::*;

use crate::memory::{Memory, Message};

/// The past of positions, event by event.
fn closure(messages: &[Message], starts: &[(i64, i64)]) -> Frontier {
    let mut seen = std::collections::BTreeSet::new();
    let mut work = starts.to_vec();
    while let Some((actor, ord)) = work.pop() {
        if ord == 0 || !seen.insert((actor, ord)) {
            continue;
        }
        work.push((actor, ord - 1));
        work.extend(messages.iter().filter(|m| (m[0], m[1]) == (actor, ord)).map(|m| (m[2], m[3])));
    }
    let mut frontier = Frontier::new();
    for (actor, ord) in seen {
        frontier.insert(actor, ord);
    }
    frontier
}

fn run(memory: &mut Memory, block: i64, targets: &[Vec<(i64, i64)>], max_rounds: u32) -> demi_plans::Closed {
    let scratch = tempfile::tempdir().unwrap();
    let options = Options { max_rounds, ..Options::default() };
    close(memory, &|_| Some(block), targets, options, scratch.path()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("DEMI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200)))]

    /// Whatever the messages, also such as go round in circles, the loop ends where single events end, in at most as many rounds as logs, and
    /// so does the driver when it takes over after any round.
    #[test]
    fn the_loop_is_the_closure(
        logs in 1..8_i64,
        length in 1..30_i64,
        raw in proptest::collection::vec((0..8_i64, 0..30_i64, 0..8_i64, 0..30_i64), 0..60),
        aims in proptest::collection::vec(proptest::collection::vec((0..8_i64, 0..30_i64), 1..3), 1..5),
        block in 1..9_i64,
        most in 0..4_u32,
    ) {
        let log = |n: i64| n % logs + 1;
        let ord = |n: i64| n % length + 1;
        let messages: Vec<Message> = raw.iter().map(|m| [log(m.0), ord(m.1), log(m.2), ord(m.3)]).filter(|m| m[0] != m[2]).collect();
        let targets: Vec<Vec<(i64, i64)>> = aims.iter().map(|aim| aim.iter().map(|a| (log(a.0), ord(a.1))).collect()).collect();
        let last: BTreeMap<i64, i64> = (1..=logs).map(|log| (log, length)).collect();
        let expected: Vec<Frontier> = targets.iter().map(|starts| closure(&messages, starts)).collect();
        let mut memory = Memory::new(&messages, &last, block);
        let closed = run(&mut memory, block, &targets, u32::MAX);
        prop_assert_eq!(&closed.frontiers, &expected);
        prop_assert_eq!(closed.effort.rounds, memory.rounds);
        prop_assert_eq!(closed.effort.closed_by, ClosedBy::Rounds);
        // Where messages go round in circles, a log may be raised again by a way that is not the shortest.
        let bound = 2 + logs * length;
        prop_assert!(i64::from(closed.effort.rounds) <= bound);
        let mut memory = Memory::new(&messages, &last, block);
        let handed = run(&mut memory, block, &targets, most);
        prop_assert_eq!(&handed.frontiers, &expected);
        prop_assert!(handed.effort.rounds <= most);
    }
}

/// One token in a ring of `n` logs that goes round `laps` times.
fn ring(n: i64, laps: i64) -> (Vec<Message>, BTreeMap<i64, i64>) {
    let mut ords: BTreeMap<i64, i64> = (1..=n).map(|log| (log, 0)).collect();
    let mut messages = Vec::new();
    let mut holder = 1;
    for _ in 0..n * laps {
        let next = holder % n + 1;
        let sp = ords.get_mut(&holder).map(|ord| {
            *ord += 1;
            *ord
        });
        let rp = ords.get_mut(&next).map(|ord| {
            *ord += 1;
            *ord
        });
        messages.push([next, rp.unwrap(), holder, sp.unwrap()]);
        holder = next;
    }
    (messages, ords)
}

#[test]
fn a_ring_takes_as_many_rounds_as_it_has_logs_and_hand_over_ends_it() {
    let (messages, ords) = ring(100, 5);
    let target = vec![vec![(1, ords[&1])]];
    let mut memory = Memory::new(&messages, &ords, 4);
    let closed = run(&mut memory, 4, &target, u32::MAX);
    assert_eq!(closed.effort.rounds, 100);
    let mut memory = Memory::new(&messages, &ords, 4);
    let handed = run(&mut memory, 4, &target, 32);
    assert_eq!((handed.effort.rounds, handed.effort.closed_by), (32, ClosedBy::Driver));
    assert_eq!(handed.frontiers, closed.frontiers);
    // What is known already is not fetched.
    assert!(handed.effort.fetched < messages.len() as u64, "{:?}", handed.effort);
}

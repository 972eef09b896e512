//! Linearizability against brute force: every order of the operations is tried.

use demi_programs::{Action, Interval, is_linearizable};
use proptest::prelude::*;
use serde_json::Value;

/// Whether some order of some of the operations, with all that ended, agrees with each and with time.
pub(crate) fn brute_force(operations: &[Interval], value: &Value, done: &mut Vec<bool>) -> bool {
    if operations.iter().zip(done.iter()).all(|(one, done)| *done || one.end.is_none()) {
        return true;
    }
    (0..operations.len()).any(|i| {
        let one = &operations[i];
        let before = |j: usize| operations[j].end.is_some_and(|end| end < one.begin);
        if done[i] || (0..operations.len()).any(|j| !done[j] && before(j)) {
            return false;
        }
        let after = match &one.action {
            Action::Read(read) => (read == value).then(|| value.clone()),
            Action::Write(written) => Some(written.clone()),
            Action::Swap(from, to) => (from == value).then(|| to.clone()),
        };
        let Some(after) = after else { return false };
        done[i] = true;
        let found = brute_force(operations, &after, done);
        done[i] = false;
        found
    })
}

fn action() -> impl Strategy<Value = Action> {
    let value = || (0..3_u32).prop_map(|n| if n == 0 { Value::Null } else { Value::from(n) });
    prop_oneof![
        4 => value().prop_map(Action::Read),
        3 => value().prop_map(Action::Write),
        2 => (value(), value()).prop_map(|(from, to)| Action::Swap(from, to)),
    ]
}

/// Operations that begin and end at places that nobody shares.
fn history() -> impl Strategy<Value = Vec<Interval>> {
    prop::collection::vec((action(), any::<u16>(), any::<u16>(), prop::bool::weighted(0.8)), 0..8).prop_map(
        |all| {
            let mut places: Vec<(u16, usize)> =
                all.iter().enumerate().flat_map(|(i, one)| [(one.1, 2 * i), (one.2, 2 * i + 1)]).collect();
            places.sort_unstable();
            let place = |which: usize| places.iter().position(|(_, own)| *own == which).unwrap();
            let interval = |(i, (action, _, _, ended)): (usize, (Action, u16, u16, bool))| {
                let (a, b) = (place(2 * i), place(2 * i + 1));
                Interval { action, begin: a.min(b), end: ended.then_some(a.max(b)) }
            };
            all.into_iter().enumerate().map(interval).collect()
        },
    )
}

pub(crate) fn cases() -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(5_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn registers_are_judged_as_brute_force_judges_them(history in history()) {
        let expected = brute_force(&history, &Value::Null, &mut vec![false; history.len()]);
        prop_assert_eq!(is_linearizable(&history), expected);
    }
}

/// Many operations of few processes: what was tried is not tried again.
#[test]
fn long_histories_are_judged() {
    let mut history: Vec<Interval> = (0..10_000_usize)
        .map(|i| {
            let action = if i % 2 == 0 { Action::Write(i.into()) } else { Action::Read((i - 1).into()) };
            Interval { action, begin: 4 * i, end: Some(4 * i + if i % 2 == 0 { 5 } else { 1 }) }
        })
        .collect();
    assert!(is_linearizable(&history));
    history.push(Interval { action: Action::Read(Value::from(2)), begin: 50_000, end: Some(50_001) });
    assert!(!is_linearizable(&history));
}

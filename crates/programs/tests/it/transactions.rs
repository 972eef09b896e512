//! Anomalies of transactions: each by example, and all of them against a search for an order.

use std::collections::BTreeMap;

use demi_programs::{Anomaly, Consistency, Done, Fate, list_append, rw_register};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::registers::cases;

/// Transactions that ran one after the other, or all at once.
fn done(all: &[Value], at_once: bool) -> Vec<Done> {
    let one = |(n, value): (usize, &Value)| {
        let (begin, end) = if at_once { (n, 1_000 + n) } else { (2 * n, 2 * n + 1) };
        Done {
            process: n as i64,
            f: "txn".into(),
            value: value.clone(),
            begin,
            end: Some(end),
            fate: Fate::Done(value.clone()),
            is_final: false,
        }
    };
    all.iter().enumerate().map(one).collect()
}

fn names(all: &[Anomaly]) -> Vec<&str> {
    let mut names: Vec<&str> = all.iter().map(|anomaly| anomaly.name).collect();
    names.dedup();
    names
}

fn lists(all: Value, promised: Consistency) -> Vec<String> {
    let all: Vec<Value> = all.as_array().unwrap().clone();
    names(&list_append(&done(&all, true), promised)).into_iter().map(str::to_owned).collect()
}

fn registers(all: Value, promised: Consistency) -> Vec<String> {
    let all: Vec<Value> = all.as_array().unwrap().clone();
    names(&rw_register(&done(&all, true), promised)).into_iter().map(str::to_owned).collect()
}

use Consistency::{ReadCommitted, ReadUncommitted, Serializable, SnapshotIsolation, StrictSerializable};

/// The phenomena of Adya's thesis and of Elle's paper, and the weakest promise that each breaks.
#[test]
fn every_anomaly_has_its_name() {
    let write_cycle = json!([
        [["append", "x", 1], ["append", "y", 1]],
        [["append", "x", 2], ["append", "y", 2]],
        [["r", "x", [1, 2]], ["r", "y", [2, 1]]],
    ]);
    let circular = json!([[["append", "x", 1], ["r", "y", [1]]], [["append", "y", 1], ["r", "x", [1]]],]);
    // A lost update: both read nothing and wrote.
    let lost_update = json!([
        [["r", "x", []], ["append", "x", 1]],
        [["r", "x", []], ["append", "x", 2]],
        [["r", "x", [1, 2]]],
    ]);
    let read_skew = json!([
        [["append", "x", 1], ["append", "y", 1]],
        [["r", "x", []], ["r", "y", [1]]],
        [["r", "x", [1]], ["r", "y", [1]]],
    ]);
    let write_skew = json!([
        [["r", "x", []], ["append", "y", 1]],
        [["r", "y", []], ["append", "x", 1]],
        [["r", "x", [1]], ["r", "y", [1]]],
    ]);
    // Two readers see two writes in two orders: a long fork.
    let long_fork = json!([
        [["append", "x", 1]],
        [["append", "y", 1]],
        [["r", "x", [1]], ["r", "y", []]],
        [["r", "x", []], ["r", "y", [1]]],
        [["r", "x", [1]], ["r", "y", [1]]],
    ]);
    let intermediate =
        json!([[["append", "x", 1], ["append", "x", 2]], [["r", "x", [1]]], [["r", "x", [1, 2]]],]);
    for (what, history, from, name) in [
        ("G0", &write_cycle, ReadUncommitted, "G0"),
        ("G1b", &intermediate, ReadCommitted, "G1b"),
        ("G1c", &circular, ReadCommitted, "G1c"),
        ("lost update", &lost_update, SnapshotIsolation, "G-single"),
        ("read skew", &read_skew, SnapshotIsolation, "G-single"),
        ("long fork", &long_fork, SnapshotIsolation, "G-nonadjacent"),
        ("write skew", &write_skew, Serializable, "G2"),
        ("no list", &json!([[["r", "x", 7]]]), ReadUncommitted, "a read that is no list"),
        ("garbage", &json!([[["r", "x", [7]]]]), ReadUncommitted, "garbage read"),
        (
            "twice",
            &json!([[["append", "x", 1]], [["r", "x", [1, 1]]]]),
            ReadUncommitted,
            "duplicate elements",
        ),
        (
            "written twice",
            &json!([[["append", "x", 1]], [["append", "x", 1]]]),
            ReadUncommitted,
            "duplicate writes",
        ),
        (
            "two orders",
            &json!([[["append", "x", 1]], [["append", "x", 2]], [["r", "x", [1, 2]]], [["r", "x", [2]]]]),
            ReadUncommitted,
            "incompatible order",
        ),
        (
            "internal",
            &json!([[["append", "x", 1], ["r", "x", []]], [["r", "x", [1]]]]),
            SnapshotIsolation,
            "internal",
        ),
    ] {
        for promised in [ReadUncommitted, ReadCommitted, SnapshotIsolation, Serializable, StrictSerializable]
        {
            let found = lists(history.clone(), promised);
            assert_eq!(
                found.iter().any(|known| known == name),
                promised >= from,
                "{what} {promised:?}: {found:?}"
            );
            if promised < from {
                assert!(found.is_empty(), "{what} breaks nothing yet under {promised:?}: {found:?}");
            }
        }
    }
}

#[test]
fn what_failed_is_not_read_and_what_is_unknown_may_be() {
    let mut all = done(&[json!([["append", "x", 1]]), json!([["r", "x", [1]]])], true);
    all[0].fate = Fate::Refused("30 conflict".into());
    assert_eq!(names(&list_append(&all, ReadCommitted)), ["G1a"]);
    assert!(list_append(&all, ReadUncommitted).is_empty());
    (all[0].fate, all[0].end) = (Fate::Unknown("no answer".into()), None);
    assert!(list_append(&all, StrictSerializable).is_empty());
    let mut all = done(&[json!([["w", "x", 1]]), json!([["r", "x", 1]])], true);
    all[0].fate = Fate::Refused("30 conflict".into());
    assert_eq!(names(&rw_register(&all, ReadCommitted)), ["G1a"]);
}

#[test]
fn time_counts_where_it_is_promised() {
    let stale = [json!([["append", "x", 1]]), json!([["r", "x", []]]), json!([["r", "x", [1]]])];
    assert!(list_append(&done(&stale, false), Serializable).is_empty());
    assert_eq!(names(&list_append(&done(&stale, false), StrictSerializable)), ["G-single-realtime"]);
    assert!(list_append(&done(&stale, true), StrictSerializable).is_empty());
}

#[test]
fn registers_of_transactions() {
    for (history, from, name) in [
        (
            json!([[["r", "x", null], ["w", "x", 1]], [["r", "x", null], ["w", "x", 2]], [["r", "x", 1]]]),
            SnapshotIsolation,
            "lost update",
        ),
        (json!([[["w", "x", 1], ["r", "y", 1]], [["w", "y", 1], ["r", "x", 1]]]), ReadCommitted, "G1c"),
        (json!([[["w", "x", 1], ["w", "x", 2]], [["r", "x", 1]]]), ReadCommitted, "G1b"),
        (json!([[["r", "x", 9]]]), ReadUncommitted, "garbage read"),
        (json!([[["w", "x", 1], ["r", "x", 2]], [["w", "x", 2]]]), SnapshotIsolation, "internal"),
        (json!([[["r", "x", null], ["w", "y", 1]], [["r", "y", null], ["w", "x", 1]]]), Serializable, "G2"),
        (
            json!([[["r", "x", 1], ["w", "x", 2]], [["r", "x", 2], ["w", "x", 1]]]),
            ReadUncommitted,
            "cyclic versions",
        ),
    ] {
        for promised in [ReadUncommitted, ReadCommitted, SnapshotIsolation, Serializable] {
            let found = registers(history.clone(), promised);
            assert_eq!(
                found.iter().any(|known| known == name),
                promised >= from,
                "{name} {promised:?}: {found:?}"
            );
        }
    }
    let fine = json!([
        [["w", "x", 1]],
        [["r", "x", 1], ["w", "x", 2]],
        [["r", "x", null]],
        [["r", "x", 2], ["w", "y", 1]]
    ]);
    assert!(registers(fine, Serializable).is_empty());
}

/// What lists hold.
type Lists = BTreeMap<u8, Vec<u64>>;

/// An operation: a key, what is appended, or what was read.
#[derive(Clone, Debug)]
enum Op {
    Append(u8, u64),
    Read(u8, Vec<u64>),
}

/// Whether a transaction reads what it should, on these lists; and what it leaves.
fn ran(txn: &[Op], lists: &Lists) -> Option<Lists> {
    let mut now = lists.clone();
    for op in txn {
        match op {
            Op::Append(key, value) => now.entry(*key).or_default().push(*value),
            Op::Read(key, read) => {
                if now.get(key).map_or(&[][..], Vec::as_slice) != read.as_slice() {
                    return None;
                }
            }
        }
    }
    Some(now)
}

/// Whether some order of all transactions explains what each read.
fn has_order(txns: &[Vec<Op>], lists: &Lists, left: &mut Vec<usize>) -> bool {
    if left.is_empty() {
        return true;
    }
    for at in 0..left.len() {
        let one = left.remove(at);
        let found = ran(&txns[one], lists).is_some_and(|next| has_order(txns, &next, left));
        left.insert(at, one);
        if found {
            return true;
        }
    }
    false
}

/// Whether transactions can begin and commit so that each reads what was there when it began, and of two at once that write the same key
/// only one commits.
fn has_snapshots(
    txns: &[Vec<Op>],
    lists: &Lists,
    open: &mut Vec<(usize, Lists)>,
    left: &mut Vec<usize>,
) -> bool {
    if left.is_empty() && open.is_empty() {
        return true;
    }
    let keys = |txn: usize| -> Vec<u8> {
        let keys =
            txns[txn].iter().filter_map(|op| if let Op::Append(key, _) = op { Some(*key) } else { None });
        keys.collect()
    };
    for at in 0..open.len() {
        let (one, snapshot) = open.remove(at);
        let untouched = keys(one).iter().all(|key| snapshot.get(key) == lists.get(key));
        let next = untouched.then(|| {
            let mut next = lists.clone();
            for op in &txns[one] {
                if let Op::Append(key, value) = op {
                    next.entry(*key).or_default().push(*value);
                }
            }
            next
        });
        let found = next.is_some_and(|next| has_snapshots(txns, &next, open, left));
        open.insert(at, (one, snapshot));
        if found {
            return true;
        }
    }
    for at in 0..left.len() {
        let one = left.remove(at);
        let mut found = false;
        if ran(&txns[one], lists).is_some() {
            open.push((one, lists.clone()));
            found = has_snapshots(txns, lists, open, left);
            open.pop();
        }
        left.insert(at, one);
        if found {
            return true;
        }
    }
    false
}

fn to_value(txn: &[Op]) -> Value {
    let op = |op: &Op| match op {
        Op::Append(key, value) => json!(["append", key, value]),
        Op::Read(key, read) => json!(["r", key, read]),
    };
    txn.iter().map(op).collect()
}

/// Up to five transactions on two keys: a few appends and reads of what was there at some time, and a last one that reads all that was appended, in some
/// order. Most are nearly right.
fn history() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let op = (0..2_u8, any::<bool>(), 0..4_usize, prop::bool::weighted(0.15), any::<u8>());
    (prop::collection::vec(prop::collection::vec(op, 1..4), 1..5), any::<u64>()).prop_map(|(plan, order)| {
        // Appends come in the order of a mixed run.
        let mut slots: Vec<(usize, usize)> =
            plan.iter().enumerate().flat_map(|(txn, ops)| (0..ops.len()).map(move |op| (txn, op))).collect();
        let mut seed = order;
        for at in (1..slots.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Seldom, so that most transactions run in one piece.
            if (seed >> 33).is_multiple_of(3) {
                let other = (seed >> 40) as usize % (at + 1);
                slots.swap(at, other);
            }
        }
        let mut versions: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        let mut txns: Vec<Vec<(usize, Op)>> = vec![Vec::new(); plan.len()];
        let mut next = 0;
        for (txn, at) in slots {
            let (key, appends, back, cut, _) = plan[txn][at];
            let list = versions.entry(key).or_default();
            if appends {
                next += 1;
                list.push(next);
                txns[txn].push((at, Op::Append(key, next)));
            } else {
                let until = if cut { list.len().saturating_sub(back) } else { list.len() };
                txns[txn].push((at, Op::Read(key, list[..until].to_vec())));
            }
        }
        let mut all: Vec<Vec<Op>> =
            txns.into_iter().map(|ops| ops.into_iter().map(|(_, op)| op).collect()).collect();
        all.push(versions.into_iter().map(|(key, list)| Op::Read(key, list)).collect());
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lists_are_judged_as_a_search_for_an_order_judges_them(txns in history()) {
        let all: Vec<Value> = txns.iter().map(|txn| to_value(txn)).collect();
        let history = done(&all, true);
        let left = || (0..txns.len()).collect::<Vec<_>>();
        let found = list_append(&history, Serializable);
        prop_assert_eq!(found.is_empty(), has_order(&txns, &Lists::new(), &mut left()), "serializable: {:?}", found);
        let found = list_append(&history, SnapshotIsolation);
        let snapshots = has_snapshots(&txns, &Lists::new(), &mut Vec::new(), &mut left());
        prop_assert_eq!(found.is_empty(), snapshots, "snapshot isolation: {:?}", found);
    }

    /// Nothing is found in what an order explains, whatever is not seen.
    #[test]
    fn what_has_an_order_breaks_nothing(txns in history(), hidden in any::<bool>()) {
        let mut txns = txns;
        if hidden {
            txns.pop();
        }
        let left = || (0..txns.len()).collect::<Vec<_>>();
        if has_order(&txns, &Lists::new(), &mut left()) {
            let all: Vec<Value> = txns.iter().map(|txn| to_value(txn)).collect();
            let found = list_append(&done(&all, true), Serializable);
            prop_assert!(found.is_empty(), "{:?}", found);
        }
    }
}

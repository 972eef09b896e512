//! Pairs of states that can be there together, against all consistent cuts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use demi_lineage::query::{Class, Predicate, Query, Relation};
use demi_predicate::{ReportedState, Row, State};
use proptest::prelude::*;

use super::check::{executed, records, rows};

const PREDICATES: [&str; 5] = [
    "count(*) FILTER (WHERE role = 'Leader') <= 1",
    "WHERE role = 'Leader' GROUP BY x HAVING count(*) <= 1",
    "max(x) - min(x) <= 3",
    "PAIRS a, b HAVING a.x + b.x < 9",
    "PAIRS a, b WHERE a.role = 'Leader' AND b.x > a.x HAVING b.role <> 'Follower'",
];

/// An actor's states: the first event of the handler that left each, and with which event it was told.
type Log = Vec<(u32, u32, Arc<State>)>;

/// Kinds of events with which a handler begins.
const HEADS: &str = "'start','crash','restart','stop','isolate','heal','action','receive','timer_fire'";

/// Calls `f` with the states of each consistent cut, until it says that it has seen enough.
fn each_cut(query: &Query, logs: &BTreeMap<String, Log>, f: &mut dyn FnMut(&[ReportedState<'_>]) -> bool) {
    let names: Vec<&String> = logs.keys().collect();
    let before = |a: u32, b: u32| query.order(a, b).unwrap() == Relation::Before;
    let mut at = vec![0_usize; names.len()];
    loop {
        // The first `at` states of each are there: none of them needs one that is not, and none that is there has ended.
        let consistent = names.iter().zip(&at).all(|(one, n)| {
            let Some((_, begin, _)) = n.checked_sub(1).map(|last| &logs[*one][last]) else { return true };
            names.iter().zip(&at).all(|(other, m)| match logs[*other].get(*m) {
                Some((next, _, _)) if one != other => !(before(*next, *begin)),
                _ => true,
            })
        });
        if consistent {
            let told: Vec<ReportedState<'_>> = names
                .iter()
                .zip(&at)
                .filter_map(|(name, n)| {
                    let last = n.checked_sub(1)?;
                    Some(ReportedState { actor: name.as_str(), state: &logs[*name][last].2 })
                })
                .collect();
            if !f(&told) {
                return;
            }
        }
        let Some(next) = (0..at.len()).find(|i| at[*i] < logs[names[*i]].len()) else { return };
        at[next] += 1;
        at[..next].fill(0);
    }
}

/// Whether the predicate fails of some consistent cut, by looking at all of them.
fn fails_somewhere(query: &Query, logs: &BTreeMap<String, Log>, predicate: &Predicate) -> bool {
    let mut fails = false;
    each_cut(query, logs, &mut |told| {
        let rows: Vec<Row<'_>> = match predicate.text().starts_with("PAIRS") {
            false => told.iter().map(|t| Row::one(*t)).collect(),
            true => (0..told.len())
                .flat_map(|i| (0..told.len()).filter(move |j| i != *j).map(move |j| (i, j)))
                .map(|(i, j)| Row::pair(told[i], told[j]))
                .collect(),
        };
        fails = predicate.failure(&rows).unwrap().is_some();
        !fails
    });
    fails
}

/// Two actors with a state of each.
type Both = [(String, String); 2];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_pair_fails_where_a_cut_does(seed: u64, actors in 2..4_u32, events in 5..50_u64, which in 0..PREDICATES.len()) {
        let (_dir, exec) = executed(records(seed, actors, events));
        let query = Query::open(&exec, false).unwrap();
        let Ok(told) = query.state_history() else { return Ok(()) };
        let mut logs: BTreeMap<String, Log> = BTreeMap::new();
        let mut number = 0;
        // Events are numbered by actor, each log in its order.
        let sql = format!("SELECT event FROM events WHERE kind IN ({HEADS})");
        let mut heads: Vec<u32> =
            rows(&query, &sql).iter().map(|row| query.index().event(row["event"].as_str().unwrap()).unwrap()).collect();
        heads.extend(query.index().header().actors.iter().map(|actor| actor.first));
        heads.sort_unstable();
        query.each_recorded_state(&told, &mut |actor, _, state| {
            let event = told.event(number).unwrap();
            let head = heads[heads.partition_point(|head| *head <= event) - 1];
            let log = logs.entry(actor.to_owned()).or_default();
            log.pop_if(|last| last.0 == head);
            log.push((head, event, state.clone()));
            number += 1;
        });
        let mut together: BTreeSet<Both> = BTreeSet::new();
        each_cut(&query, &logs, &mut |told| {
            let all: Vec<(String, String)> =
                told.iter().map(|t| (t.actor.to_owned(), format!("{:?}", t.state))).collect();
            for (i, one) in all.iter().enumerate() {
                together.extend(all[i + 1..].iter().map(|other| [one.clone(), other.clone()]));
            }
            true
        });
        let mut states: Vec<(String, String)> = Vec::new();
        query.each_recorded_state(&told, &mut |actor, _, state| states.push((actor.to_owned(), format!("{state:?}"))));
        let found: Vec<Both> = query.state_pairs(&told, usize::MAX).unwrap().into_iter().map(|pair| {
            let mut both = pair.map(|at| states[at].clone());
            both.sort();
            both
        }).collect();
        prop_assert_eq!(found.len(), together.len(), "each pair of states once");
        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), together);
        let predicate = Predicate::parse(PREDICATES[which]).unwrap();
        let answer = query.check_pairs(&told, &predicate, &Class::default()).unwrap();
        prop_assume!(answer.absent.is_none());
        prop_assert_eq!(answer.holds, !fails_somewhere(&query, &logs, &predicate), "{} {:?}", PREDICATES[which], answer);
        if let (false, Some(first)) = (answer.holds, &answer.first) {
            // What is shown fails.
            let states: Vec<(String, State)> =
                first.states.iter().map(|(name, known)| (name.clone(), State::new(known.state.clone()))).collect();
            let rows: Vec<ReportedState<'_>> = states.iter().map(|(actor, state)| ReportedState { actor, state }).collect();
            let rows: Vec<Row<'_>> = match predicate.text().starts_with("PAIRS") {
                false => rows.iter().map(|t| Row::one(*t)).collect(),
                true => rows.iter().flat_map(|a| rows.iter().map(|b| (*a, *b)))
                    .filter(|(a, b)| a.actor != b.actor).map(|(a, b)| Row::pair(a, b)).collect(),
            };
            prop_assert!(predicate.failure(&rows).unwrap().is_some(), "{} {:?}", PREDICATES[which], first);
        }
    }
}

//! Whatever order records arrive in, what is found is what there is.

use demi_monitor::{Monitor, MonitorState};
use demi_predicate::Checker;
use demi_schemas::EventRecord;
use proptest::prelude::*;

use super::system::{execution, shuffled};
use super::{invariants, options, take};

/// Predicates whose failures do not depend on which of the possible orders is seen.
const ANY_ORDER: [&str; 5] = [
    "x >= prev.x",
    "x + y < 4",
    "EVER GROUP BY x HAVING count(DISTINCT y) <= 1",
    "EVER WHERE x = 2 GROUP BY y HAVING count(DISTINCT actor) <= 1",
    "EVER HAVING count(*) <= 5",
];
const CUTS: [&str; 4] = [
    "max(x) - min(x) <= 1",
    "WHERE x = 2 GROUP BY y HAVING count(*) <= 1",
    "PAIRS a, b WHERE a.x > b.x HAVING a.y >= b.y",
    "EVER PAIRS old, new WHERE new.x > old.x HAVING new.y >= old.y",
];
const MESSAGES: [&str; 5] = [
    "MESSAGES HAVING sender.x <= receiver.x",
    "MESSAGES 'm' HAVING receiver.y >= before.y OR message.n = 2",
    "MESSAGES GROUP BY message.n HAVING count(DISTINCT sender.actor) <= 1",
    "CHAIN HAVING s1.x <= s3.x",
    "NEIGHBOURS a, b HAVING a.x + b.x < 4",
];

/// The events with which each predicate began to fail, when the states are told in this order.
fn told(checker: &mut Checker<'_>, records: &[EventRecord]) -> Vec<String> {
    let (mut events, mut before) = (Vec::new(), None);
    for record in records {
        let Some(state) = &record.state else { continue };
        let state = std::sync::Arc::new(demi_predicate::State::new(state.clone()));
        let now = checker.tell(&record.actor, record.incarnation, &state).unwrap().map(str::to_owned);
        if now.is_some() && now != before {
            events.push(record.id().to_string());
        }
        before = now;
    }
    events
}

fn found(predicates: &[&str], records: &[EventRecord]) -> Vec<(String, String)> {
    let invariants = invariants(predicates);
    let mut monitor = Monitor::new(&invariants, options());
    let mut found = take(&mut monitor, records);
    monitor.tick(500, &mut found);
    assert_eq!(monitor.counts().held, 0);
    assert_eq!(monitor.counts().uncertain, 0);
    let mut all: Vec<_> = found.into_iter().map(|v| (v.invariant, v.event)).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What fails in any order is found, where records come in an order in which they can have happened.
    #[test]
    fn what_fails_is_found(records in execution()) {
        let mut expected = Vec::new();
        for (i, invariant) in invariants(&ANY_ORDER).iter().enumerate() {
            if !told(&mut invariant.predicate.checker(), &records).is_empty() {
                expected.push(format!("i{i}"));
            }
        }
        let mut all: Vec<String> = found(&ANY_ORDER, &records).into_iter().map(|f| f.0).collect();
        all.dedup();
        prop_assert_eq!(all, expected);
    }

    /// What fails in any order is found in any order, and messages are found whatever order their logs come in.
    #[test]
    fn the_order_of_arrival_does_not_count(records in execution(), order in proptest::collection::vec(any::<u8>(), 1..60)) {
        let arrived = shuffled(&records, &order);
        let which = |found: Vec<(String, String)>| {
            let mut all: Vec<String> = found.into_iter().map(|f| f.0).collect();
            all.dedup();
            all
        };
        prop_assert_eq!(which(found(&ANY_ORDER, &arrived)), which(found(&ANY_ORDER, &records)));
        // Each message for itself, at the same event.
        prop_assert_eq!(found(&MESSAGES[..2], &arrived), found(&MESSAGES[..2], &records));
        prop_assert_eq!(which(found(&MESSAGES[2..4], &arrived)), which(found(&MESSAGES[2..4], &records)));
    }

    /// A monitor that is saved, read back and told again what waited finds what one finds that was not.
    #[test]
    fn a_restart_changes_nothing(
        records in execution(), order in proptest::collection::vec(any::<u8>(), 1..60), stop in 0..40_usize,
    ) {
        let arrived = shuffled(&records, &order);
        let all: Vec<&str> = ANY_ORDER.into_iter().chain(CUTS).chain(MESSAGES).collect();
        let invariants = invariants(&all);
        let mut whole = Monitor::new(&invariants, options());
        let expected = take(&mut whole, &arrived);

        let stop = stop.min(arrived.len());
        let mut first = Monitor::new(&invariants, options());
        let mut seen = take(&mut first, &arrived[..stop]);
        let again = first.oldest_waiting().map_or(stop, |lsn| lsn as usize - 1);
        let text = serde_json::to_string(&first.save()).unwrap();
        let saved: MonitorState = serde_json::from_str(&text).unwrap();
        let mut second = Monitor::resume(&invariants, options(), &saved);
        for (i, record) in arrived.iter().enumerate().skip(again) {
            let record = second.interest().record(record);
            second.take(record, i as u64 + 1, i as u64, &mut seen);
        }
        let events = |v: &[demi_monitor::Violation]| -> Vec<_> { v.iter().map(|v| (v.id.clone(), v.of.clone(), v.affected.clone())).collect() };
        prop_assert_eq!(events(&seen), events(&expected));
        prop_assert_eq!(second.watching(), whole.watching());
    }
}

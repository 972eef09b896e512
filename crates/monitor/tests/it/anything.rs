//! Whatever records say, a monitor takes them and stays small.

use demi_monitor::{Monitor, MonitorState, Options};
use demi_schemas::EventRecord;
use proptest::prelude::*;
use serde_json::json;

use super::{invariants, options};

const PREDICATES: [&str; 6] = [
    "x >= prev.x",
    "max(x) - min(x) <= 1",
    "EVER GROUP BY x HAVING count(DISTINCT actor) <= 1",
    "MESSAGES HAVING sender.x <= receiver.x",
    "CHAIN HAVING s1.x <= s3.x",
    "NEIGHBOURS a, b HAVING a.x + b.x < 4",
];

fn record() -> impl Strategy<Value = EventRecord> {
    let number = prop_oneof![0..6_u64, Just(u64::MAX), Just(u64::MAX - 1), Just(1 << 60), any::<u64>()];
    let kind = proptest::sample::select(vec![
        "send",
        "receive",
        "state",
        "start",
        "crash",
        "restart",
        "local",
        "timer_fire",
    ]);
    let state = prop_oneof![
        Just(json!(null)),
        Just(json!(7)),
        Just(json!({"x": "text"})),
        Just(json!({"x": [1]})),
        (0..4_i64).prop_map(|x| json!({"x": x, "y": {"z": x}})),
    ];
    let name = || proptest::sample::select(vec!["a", "b", "*", "deadLetters", "", "_environment"]);
    (name(), 0..3_u32, number, kind, proptest::option::of(0..3_u8), name(), name(), state).prop_map(
        |(actor, incarnation, seq, kind, id, from, to, state)| {
            let mut record = json!({"actor": if actor.is_empty() { "c" } else { actor }, "incarnation": incarnation, "seq": 1,
                "kind": kind, "type": "m", "from": from, "to": to, "state": state});
            if let Some(id) = id {
                record["msg_id"] = json!(id.to_string());
            }
            let mut record = EventRecord::parse(record.to_string().as_bytes()).unwrap();
            record.seq = seq;
            record
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_records_are_taken(records in proptest::collection::vec(record(), 1..60), most in 1..8_usize, lose in 0..80_usize) {
        let invariants = invariants(&PREDICATES);
        let options = Options { wait_records: most, keys: most, ..options() };
        let mut monitor = Monitor::new(&invariants, options);
        let mut found = Vec::new();
        for (i, record) in records.iter().enumerate() {
            let now = i as u64 * 100;
            let cut = monitor.interest().record(record);
            monitor.take(cut, i as u64, now, &mut found);
            if i == lose {
                monitor.lose();
            }
            monitor.tick(now, &mut found);
            prop_assert!(monitor.counts().held <= most);
            prop_assert!(monitor.counts().kept <= most * PREDICATES.len());
        }
        let text = serde_json::to_string(&monitor.save()).unwrap();
        let saved: MonitorState = serde_json::from_str(&text).unwrap();
        let again = Monitor::resume(&invariants, options, &saved);
        prop_assert_eq!(again.watching(), monitor.watching());
        monitor.tick(u64::MAX, &mut found);
        prop_assert_eq!(monitor.counts().held, 0);
    }
}

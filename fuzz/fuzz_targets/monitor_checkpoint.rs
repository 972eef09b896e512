//! Anything as what an earlier process knew of a monitor: it is refused, or the monitor goes on from it and stays small.
#![no_main]

use std::sync::LazyLock;

use demi_daemon::monitors::is_checkpoint;
use demi_monitor::{Invariant, Monitor, MonitorState, Options};
use demi_schemas::EventRecord;
use libfuzzer_sys::fuzz_target;

const INVARIANTS: &str = r#"schema = "demi-invariants/1"
[[invariant]]
id = "rows"
holds = "x <= 5"
[[invariant]]
id = "steps"
holds = "x >= prev.x"
[[invariant]]
id = "groups"
holds = "GROUP BY y HAVING max(x) - min(x) <= 1"
[[invariant]]
id = "pairs"
holds = "PAIRS a, b HAVING a.x + b.x < 9"
[[invariant]]
id = "history"
holds = "EVER GROUP BY y HAVING count(DISTINCT x) <= 3"
[[invariant]]
id = "ordered"
holds = "EVER PAIRS old, new WHERE new.y = old.y HAVING new.x >= old.x"
[[invariant]]
id = "messages"
holds = "MESSAGES GROUP BY message.n HAVING count(DISTINCT sender.actor) <= 1"
[[invariant]]
id = "chains"
holds = "CHAIN HAVING s1.x <= s3.x"
"#;
const MOST: usize = 50;

static WATCHED: LazyLock<Vec<Invariant>> = LazyLock::new(|| Invariant::read(INVARIANTS).expect("invariants"));

/// What a monitor knows after a few records, as text.
static KNOWN: LazyLock<String> = LazyLock::new(|| {
    let mut monitor = Monitor::new(&WATCHED, options());
    feed(&mut monitor);
    serde_json::to_string(&monitor.save()).expect("JSON")
});

fn options() -> Options {
    Options { wait_records: MOST, keys: MOST, quiet_millis: 0, ..Options::default() }
}

fn feed(monitor: &mut Monitor<'_>) {
    let mut found = Vec::new();
    for seq in 0..24_u64 {
        let (actor, other) = (["a", "b", "c"][seq as usize % 3], ["b", "c", "a"][seq as usize % 3]);
        let x = if seq == 7 { r#""text""#.to_owned() } else { (seq % 8).to_string() };
        let rest = match seq % 4 {
            0 => format!(
                r#""kind":"send","to":"{other}","type":"m","msg_id":"{seq}","fields":{{"n":{}}}"#,
                seq % 2
            ),
            1 => format!(r#""kind":"receive","from":"{other}","type":"m","msg_id":"{}""#, seq - 1),
            _ => format!(r#""kind":"state","state":{{"x":{x},"y":{}}}"#, seq % 2),
        };
        let line = format!(r#"{{"actor":"{actor}","seq":{},{rest}}}"#, seq / 3 + 1);
        let record = EventRecord::parse(line.as_bytes()).expect("a record");
        let record = monitor.interest().record(&record);
        monitor.take(record, seq + 1, seq * 100, &mut found);
        monitor.tick(seq * 100, &mut found);
    }
}

fuzz_target!(|input: (Vec<(u16, u8)>, &[u8])| {
    let (changes, bytes) = input;
    let _ = is_checkpoint(bytes);
    // Bytes alone seldom are one: a whole one with some of its bytes changed.
    let mut text = KNOWN.clone().into_bytes();
    for (at, byte) in changes {
        let len = text.len();
        text[usize::from(at) % len] = byte;
    }
    for bytes in [bytes, &text] {
        let Ok(saved) = serde_json::from_slice::<MonitorState>(bytes) else { continue };
        let mut monitor = Monitor::resume(&WATCHED, options(), &saved);
        feed(&mut monitor);
        assert!(monitor.counts().held <= MOST);
        let saved = monitor.save();
        let again = serde_json::to_string(&saved).expect("JSON");
        assert!(serde_json::from_str::<MonitorState>(&again).is_ok_and(|read| read == saved));
    }
});

//! How many records a second a monitor takes, and whether its memory stays flat.
//!
//! `speed RECORDS [SAMPLE]`: ten actors send each other messages and tell states of 20 variables, of which each handler changes two; 60
//! invariants of all scopes but messages are watched. Prints one JSON object for each tenth.

#![expect(clippy::print_stdout, reason = "this is a program that prints a result")]

use std::time::{Duration, Instant};

use demi_monitor::{Invariant, Monitor, Options};
use demi_schemas::EventRecord;
use serde_json::{Value, json};

const ACTORS: u64 = 10;

fn invariants() -> Result<Vec<Invariant>, Box<dyn std::error::Error>> {
    let mut text = "schema = \"demi-invariants/1\"\n".to_owned();
    for n in 0..60 {
        let (v, w) = (n % 20, (n * 7 + 3) % 20);
        let holds = match n % 6 {
            0 => format!("v{v} >= prev.v{v} OR v{v} < 0"),
            1 => format!("v{v} + v{w} >= 0"),
            2 => format!("max(v{v}) - min(v{v}) <= 1000000"),
            3 => format!("WHERE role = 'Leader' GROUP BY v{v} HAVING count(*) <= 9"),
            4 => format!("PAIRS a, b WHERE a.v{v} > b.v{v} HAVING a.v{w} >= 0"),
            _ => format!("EVER WHERE role = 'Leader' GROUP BY v{v} HAVING count(DISTINCT actor) <= 10"),
        };
        text.push_str(&format!("[[invariant]]\nid = \"i{n}\"\nholds = \"{holds}\"\n"));
    }
    Ok(Invariant::read(&text)?)
}

/// Kilobytes of memory that the process holds.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let records: u64 = args.next().ok_or("speed RECORDS [SAMPLE]")?.parse()?;
    let invariants = invariants()?;
    let mut monitor = Monitor::new(&invariants, Options { keys: 10_000, ..Options::default() });
    monitor.set_sample(args.next().map_or(Ok(1.0), |sample| sample.parse())?);
    let mut seqs = vec![0_u64; ACTORS as usize];
    let mut values = vec![[0_u64; 20]; ACTORS as usize];
    let mut found = Vec::new();
    let (mut spent, mut since) = (Duration::ZERO, Duration::ZERO);
    for n in 0..records / 3 {
        let (from, to) = ((n * 7) % ACTORS, (n * 3 + 1) % ACTORS);
        let own = &mut values[to as usize];
        own[(n % 20) as usize] = n / 50;
        own[(n * 3 % 20) as usize] += 1;
        let mut state: Value = json!({ "role": if n % 5 == 0 { "Leader" } else { "Follower" } });
        for (i, value) in own.iter().enumerate() {
            state[format!("v{i}")] = json!(value);
        }
        let lines = [
            json!({"kind": "send", "to": format!("n-{to}"), "type": "m", "msg_id": n.to_string()}),
            json!({"kind": "receive", "from": format!("n-{from}"), "type": "m", "msg_id": n.to_string()}),
            json!({"kind": "state", "state": state}),
        ];
        for (mut line, actor) in lines.into_iter().zip([from, to, to]) {
            seqs[actor as usize] += 1;
            line["actor"] = json!(format!("n-{actor}"));
            line["seq"] = json!(seqs[actor as usize]);
            let record = EventRecord::parse(line.to_string().as_bytes())?;
            // Cutting down is done by the threads that parse.
            let record = monitor.interest().record(&record);
            let begin = Instant::now();
            monitor.take(record, n, n / 30, &mut found);
            spent += begin.elapsed();
        }
        if (n + 1) % (records / 30) == 0 {
            let begin = Instant::now();
            let saved = serde_json::to_vec(&monitor.save())?.len();
            let rate = (records / 10) as f64 / (spent - since).as_secs_f64();
            since = spent;
            let counts = monitor.counts();
            println!(
                "{}",
                json!({"records": (n + 1) * 3, "records_a_second": rate as u64, "memory_kib": memory(), "held": counts.held,
                    "history_rows": counts.kept, "checkpoint_bytes": saved, "checkpoint_ms": begin.elapsed().as_millis() as u64,
                    "found": found.len()})
            );
        }
    }
    Ok(())
}

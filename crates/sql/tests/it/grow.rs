//! An execution that was grown answers as one that was built of all events.

use std::path::{Path, PathBuf};

use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{CutSpec, Predicate, Query, RebuildReason, Refreshed, StateSelection, refresh};
use demi_schemas::{EventRecord, Kind};
use demi_sql::{OutputFormat, write};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

fn lines(query: &Query, sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    write(&mut crate::select(query, sql).unwrap(), OutputFormat::JsonLines, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn update(files: &[PathBuf], folder: &Path) -> Refreshed {
    let files: Vec<_> = files.iter().cloned().map(Into::into).collect();
    refresh(&files, "s", folder, &mut |_| {}).unwrap()
}

/// Everything that can be asked, of both.
fn compare(grown: &Path, built: &Path, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for certain in [false, true] {
        let (a, b) = (Query::open(grown, certain).unwrap(), Query::open(built, certain).unwrap());
        let events = b.index().header().events;
        assert_eq!(a.index().header().events, events);
        for first in 0..events {
            assert_eq!(a.index().name(first).unwrap(), b.index().name(first).unwrap());
            for second in 0..events {
                assert_eq!(
                    a.order(first, second).unwrap(),
                    b.order(first, second).unwrap(),
                    "{first} {second}"
                );
            }
        }
        for nth in 0..10 {
            let event = random.random_range(0..events);
            assert_eq!(a.past(event).unwrap(), b.past(event).unwrap());
            assert_eq!(a.future(event).unwrap(), b.future(event).unwrap());
            let name = a.index().name(event).unwrap();
            let mut cut = CutSpec::default();
            for actor in 0..a.index().header().actors.len() {
                let range = a.index().events_of(actor);
                if random.random_bool(0.8) {
                    let last = a.index().name(random.random_range(range)).unwrap();
                    cut.add(&a, &last.to_string()).unwrap();
                }
            }
            let (mut x, mut y) = (a.state_of(&cut, &[]).unwrap(), b.state_of(&cut, &[]).unwrap());
            // One of several events that are missing.
            let missing = (x.cut.missing.take().is_some(), y.cut.missing.take().is_some());
            assert_eq!((missing.0, &x), (missing.1, &y));
            assert_eq!(a.cut_of(&[event]).unwrap(), b.cut_of(&[event]).unwrap());
            // A statement takes longer than all the rest; that a table function gives these events is tested where they are.
            let tables: &[&str] = if nth == 0 { &["past", "concurrent", "future"] } else { &[] };
            for table in tables {
                let sql = format!(
                    "SELECT * EXCLUDE (\"order\", \"offset\", \"source\") FROM {table}('{name}') ORDER BY event"
                );
                assert_eq!(lines(&a, &sql), lines(&b, &sql));
            }
        }
        if certain {
            continue;
        }
        for sql in [
            "SELECT * EXCLUDE (\"order\", \"offset\", \"source\") FROM events ORDER BY event",
            "SELECT * FROM messages ORDER BY send, receive",
            "SELECT * FROM actors",
            "SELECT * FROM completeness",
            "SELECT event FROM cut('2026-03-01T00:00:00Z') ORDER BY event",
        ] {
            assert_eq!(lines(&a, sql), lines(&b, sql), "{sql}");
        }
        // The order is a linear extension that numbers all events.
        let orders = lines(&a, "SELECT \"order\" AS n FROM events ORDER BY \"order\"");
        let numbers: Vec<String> = (1..=events).map(|n| format!("{{\"n\":{n}}}")).collect();
        assert_eq!(orders, numbers);
        let backward = "SELECT m.send FROM messages m JOIN events s ON m.send = s.event JOIN events r ON m.receive = r.event \
                        WHERE s.\"order\" >= r.\"order\"";
        assert_eq!(lines(&a, backward), Vec::<String>::new());
        let (mut x, mut y) = (a.stats().unwrap(), b.stats().unwrap());
        // One of several longest chains.
        (x.chain_ends_at, y.chain_ends_at) = (String::new(), String::new());
        // What was added is spoken of by itself.
        assert_eq!(x.doubts.len(), y.doubts.len());
        x.doubts.clone_from(&y.doubts);
        assert_eq!(x, y);
        if a.index().header().states > 0 {
            let holds = Predicate::parse("count(*) >= 0").unwrap();
            assert_eq!(
                a.check(&holds, StateSelection::Order).unwrap(),
                b.check(&holds, StateSelection::Order).unwrap()
            );
        }
    }
}

/// Splits the records into parts by actor: each part has the next records of each log.
fn parts(
    records: &[EventRecord],
    cuts: &[usize],
    skew: usize,
    random: &mut ChaCha8Rng,
) -> Vec<Vec<EventRecord>> {
    let mut parts: Vec<Vec<EventRecord>> = vec![Vec::new(); cuts.len() + 1];
    let mut late: Vec<(String, usize)> = Vec::new();
    for (i, record) in records.iter().enumerate() {
        let mut part = cuts.iter().filter(|&&c| c <= i).count();
        // Logs are shipped at different speeds: near a cut, a record and all behind it in its log may be in the next part.
        if cuts.iter().any(|&c| c > i && c - i <= skew) && random.random_bool(0.3) {
            late.push((record.actor.clone(), part + 1));
        }
        if let Some((_, later)) = late.iter().rev().find(|(actor, _)| *actor == record.actor) {
            part = part.max(*later);
        }
        parts[part.min(cuts.len())].push(record.clone());
    }
    parts
}

fn arb_mix() -> impl Strategy<Value = Mix> {
    let shares = (0.0..0.2_f64, 0.0..0.2_f64, 0.0..0.05_f64, 0.0..0.2_f64, 0.0..0.2_f64, 0.0..0.1_f64);
    (0..1_u64 << 40, 2..6_u32, 120..220_u64, shares, any::<bool>(), 0..4_u32).prop_map(
        |(
            seed,
            actors,
            events,
            (loss, duplicate, restart, timer, environment, thread),
            in_order,
            contents,
        )| Mix {
            seed,
            actors,
            events,
            ids: 1.0,
            loss,
            duplicate,
            restart,
            forward: 0.0,
            timer,
            environment,
            thread,
            in_order,
            contents,
            ..Mix::default()
        },
    )
}

fn cases() -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24)
}

#[test]
fn grown_is_as_built() {
    let mut grown = 0;
    let mut reasons: Vec<String> = Vec::new();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: cases(),
        ..ProptestConfig::default()
    });
    let counted = std::cell::RefCell::new((&mut grown, &mut reasons));
    let grows = |(mix, seed, skew, compacted): (Mix, u64, usize, bool)| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut records: Vec<EventRecord> =
            Generator::new(&mix).map(|g| g.record).filter(|r| r.actor != "_monitor").collect();
        for record in &mut records {
            if record.actor != "_environment" && random.random_bool(0.2) {
                record.state = Some(json!({"x": random.random_range(0..4)}));
            }
        }
        let n = records.len();
        let cuts = [n * 86 / 100, n * 93 / 100];
        let dir = tempfile::tempdir().unwrap();
        let (folder, fresh) = (dir.path().join("grown"), dir.path().join("built"));
        let mut files = Vec::new();
        let mut all = Vec::new();
        for (i, part) in parts(&records, &cuts, skew, &mut random).into_iter().enumerate() {
            let file = dir.path().join(format!("{i}.parquet"));
            all.extend(part.clone());
            write_store_file(&file, part).unwrap();
            files.push(file);
            if compacted && i == 2 {
                // All files but the first are one now, with the same rows.
                let file = dir.path().join("compacted.parquet");
                write_store_file(&file, all.clone()).unwrap();
                files = vec![file];
            }
            let done = update(&files, &folder);
            match done {
                Refreshed::Grown => *counted.borrow_mut().0 += 1,
                Refreshed::Built(why) => counted.borrow_mut().1.push(why.to_string()),
                Refreshed::Current => panic!("events were added"),
            }
            prop_assert_eq!(update(&files, &folder), Refreshed::Current);
            std::fs::remove_dir_all(&fresh).ok();
            prop_assert!(matches!(update(&files, &fresh), Refreshed::Built(RebuildReason::NoBase)));
            if i > 0 {
                compare(&folder, &fresh, seed);
            }
        }
        Ok(())
    };
    // Messages to an actor of which nothing was added were overtaken.
    let mix = Mix {
        seed: 365_941_359_127,
        actors: 5,
        events: 159,
        ids: 1.0,
        loss: 0.042_278_270_945_774_42,
        duplicate: 0.135_143_096_811_246_65,
        restart: 0.010_700_914_416_614_972,
        forward: 0.0,
        timer: 0.065_592_582_574_378_62,
        environment: 0.0,
        thread: 0.092_072_786_818_090_15,
        in_order: true,
        contents: 1,
        ..Mix::default()
    };
    grows((mix, 586_856_091, 0, true)).unwrap();
    runner.run(&(arb_mix(), any::<u64>(), 0..12_usize, any::<bool>()), grows).unwrap();
    reasons.sort();
    println!(
        "{grown} times grown; built: {:?}",
        reasons.chunk_by(|a, b| a == b).map(|c| (c.len(), &c[0])).collect::<Vec<_>>()
    );
    assert!(grown > cases() / 2, "grown {grown} times in {} cases", cases());
}

#[test]
fn what_cannot_be_grown_is_built_anew() {
    let mix = Mix { seed: 5, actors: 3, events: 400, timer: 0.1, ..Mix::default() };
    let records: Vec<EventRecord> =
        Generator::new(&mix).map(|g| g.record).filter(|r| r.actor != "_monitor").collect();
    let (first, rest) = records.split_at(380);
    let sent = first.iter().find(|r| r.msg_id.is_some() && r.to.is_some()).unwrap();
    let next = |actor: &str| records.iter().filter(|r| r.actor == actor).map(|r| r.seq).max().unwrap() + 1;
    let again = |change: &dyn Fn(&mut EventRecord)| {
        let mut record = sent.clone();
        record.seq = next(&record.actor);
        change(&mut record);
        vec![record]
    };
    let many: Vec<EventRecord> = Generator::new(&Mix { seed: 9, events: 800, ..mix.clone() })
        .map(|g| EventRecord { actor: format!("x{}", g.record.actor), ..g.record })
        .filter(|r| r.actor != "x_monitor")
        .collect();
    for (why, added) in [
        (RebuildReason::IdAgain, again(&|_| {})),
        (RebuildReason::NotById, again(&|r| r.msg_id = None)),
        (RebuildReason::Clocks, again(&|r| r.vector_clock = Some([(r.actor.clone(), 1)].into()))),
        (RebuildReason::Large, many),
        (
            RebuildReason::Older,
            vec![EventRecord { seq: 0, ..again(&|r| r.msg_id = Some("new".into()))[0].clone() }],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("exec");
        let write = |name: &str, records: &[EventRecord]| {
            let file = dir.path().join(name);
            write_store_file(&file, records.iter().cloned()).unwrap();
            file
        };
        let (a, b) = (write("a.parquet", first), write("b.parquet", rest));
        assert_eq!(update(std::slice::from_ref(&a), &folder), Refreshed::Built(RebuildReason::NoBase));
        assert_eq!(update(&[a.clone(), b.clone()], &folder), Refreshed::Grown);
        let c = write("c.parquet", &added);
        assert_eq!(update(&[a.clone(), b.clone(), c], &folder), Refreshed::Built(why));
        let size = Query::open(&folder, false).unwrap().index().header().events;
        assert_eq!(size as usize, records.len() + added.len());
        // Rows that are gone are gone from the execution too.
        assert!(matches!(update(&[b], &folder), Refreshed::Built(_)));
    }
}

/// Logs long enough for stored clocks; the actors that are new come before, between and behind those that were there.
#[test]
fn clocks_are_taken_over_when_actors_come_in() {
    let mix =
        Mix { seed: 3, actors: 3, events: 12_000, timer: 0.0, environment: 0.0, loss: 0.0, ..Mix::default() };
    let plain = |r: &EventRecord| r.actor.starts_with("actor-");
    let records: Vec<EventRecord> = Generator::new(&mix).map(|g| g.record).filter(plain).collect();
    let mut last: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for record in &records {
        let seq = last.entry(record.actor.clone()).or_default();
        *seq = record.seq.max(*seq);
    }
    let old: Vec<String> = last.keys().cloned().collect();
    let send = records.iter().find(|r| r.kind == Kind::Send).unwrap();
    let receive = records.iter().find(|r| r.kind == Kind::Receive).unwrap();
    let mut added = Vec::new();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for n in 0..1_000 {
        let new = ["a-first", "actor-00000-b", "z-last"][n % 3].to_owned();
        let known = old[random.random_range(0..old.len())].clone();
        let (from, to) = if random.random_bool(0.5) { (new, known) } else { (known, new) };
        for (template, actor) in [(send, &from), (receive, &to)] {
            let seq = last.entry(actor.clone()).or_insert(0);
            *seq += 1;
            added.push(EventRecord {
                actor: actor.clone(),
                seq: *seq,
                incarnation: 0,
                msg_id: Some(format!("new-{n}")),
                from: Some(from.clone()),
                to: Some(to.clone()),
                via: None,
                ..template.clone()
            });
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, records: Vec<EventRecord>| {
        let file = dir.path().join(name);
        write_store_file(&file, records).unwrap();
        file
    };
    let files = [write("a.parquet", records), write("b.parquet", added)];
    let (grown, built) = (dir.path().join("grown"), dir.path().join("built"));
    assert_eq!(update(&files[..1], &grown), Refreshed::Built(RebuildReason::NoBase));
    assert_eq!(update(&files, &grown), Refreshed::Grown);
    update(&files, &built);
    assert!(grown.join("index/clocks.bin").is_file());
    let (a, b) = (Query::open(&grown, false).unwrap(), Query::open(&built, false).unwrap());
    let events = a.index().header().events;
    for _ in 0..300 {
        let (one, other) = (random.random_range(0..events), random.random_range(0..events));
        assert_eq!(a.index().name(one).unwrap(), b.index().name(one).unwrap());
        assert_eq!(a.order(one, other).unwrap(), b.order(one, other).unwrap());
        assert_eq!(a.past(one).unwrap(), b.past(one).unwrap());
    }
}

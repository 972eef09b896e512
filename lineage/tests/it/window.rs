//! Windows of random systems, against brute force over all events.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use demi_common::sealed::SealedFile;
use demi_lineage::generate::write_store_file;
use demi_lineage::query::{Query, Relation};
use demi_lineage::window::{Window, Windowed, cut};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::summary::Beginning;
use demi_schemas::{EventId, EventRecord};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// An event of a random system.
#[derive(Clone, Debug)]
struct Event {
    name: EventId,
    line: String,
    time: Option<i64>,
    alone: bool,
    state: bool,
    /// The id that it sends or receives.
    sends: Option<String>,
    receives: Option<String>,
}

/// Actors whose clocks differ, messages that are lost or come twice, restarts, an environment, events without a time.
fn system(seed: u64, events: usize) -> Vec<Event> {
    let mut rng = StdRng::seed_from_u64(seed);
    let actors = rng.random_range(1..6);
    let skew: Vec<i64> =
        (0..actors).map(|_| if rng.random_bool(0.5) { 0 } else { rng.random_range(-40..40) }).collect();
    let timeless = rng.random_bool(0.3);
    let mut place: Vec<(u32, u64)> = vec![(0, 0); actors];
    let (mut outside, mut ids) = (0, 0);
    // The id, the sender, the receiver, and when it comes.
    let mut on_their_way: Vec<(String, String, usize, usize)> = Vec::new();
    let mut all: Vec<Event> = Vec::new();
    for now in 0..events {
        let actor = rng.random_range(0..actors);
        if rng.random_bool(0.02) {
            place[actor] = (place[actor].0 + 1, 0);
        }
        let due = on_their_way.iter().position(|(_, _, to, when)| *to == actor && *when <= now);
        let (mut kind, mut sends, mut receives, mut ends) = ("local", None, None, None);
        let mut name = format!("a{actor}");
        if let Some(due) = due {
            let (id, from, ..) = on_their_way[due].clone();
            ends = Some((from, name.clone()));
            if !rng.random_bool(0.1) {
                on_their_way.remove(due);
            }
            (kind, receives) = ("receive", Some(id));
        } else if rng.random_bool(0.6) {
            ids += 1;
            if rng.random_bool(0.1) {
                name = "_environment".to_owned();
            }
            let (id, to) = (format!("m{ids}"), rng.random_range(0..actors));
            ends = Some((name.clone(), format!("a{to}")));
            if !rng.random_bool(0.1) {
                on_their_way.push((id.clone(), name.clone(), to, now + rng.random_range(0..30)));
            }
            (kind, sends) = ("send", Some(id));
        }
        let alone = name == "_environment";
        let (incarnation, seq) = match alone {
            true => {
                outside += 1;
                (0, outside)
            }
            false => {
                place[actor].1 += 1;
                place[actor]
            }
        };
        let time = (now as i64) * 10 + if alone { 0 } else { skew[actor] } + rng.random_range(0..12);
        let time = (!(timeless && rng.random_bool(0.4))).then_some(1_700_000_000_000_000_000 + time);
        let state = kind == "local" && rng.random_bool(0.5);
        let mut line =
            format!(r#"{{"actor":"{name}","incarnation":{incarnation},"seq":{seq},"kind":"{kind}""#);
        if let Some(id) = sends.as_ref().or(receives.as_ref()) {
            line.push_str(&format!(r#","msg_id":"{id}""#));
        }
        if let Some((from, to)) = ends {
            line.push_str(&format!(r#","from":"{from}","to":"{to}""#));
        }
        if let Some(time) = time {
            line.push_str(&format!(r#","time":"{time}""#));
        }
        if state {
            line.push_str(r#","state":{"x":1}"#);
        }
        line.push('}');
        let name = EventId { actor: name, incarnation, seq };
        all.push(Event { name, line, time, alone, state, sends, receives });
    }
    all
}

/// By log, the first place outside of a cut; a log that is not there is inside.
type Cut = BTreeMap<String, (u32, u64)>;

fn place(event: &Event) -> (u32, u64) {
    (event.name.incarnation, event.name.seq)
}

fn inside(cut: &Cut, event: &Event) -> bool {
    !event.alone && cut.get(&event.name.actor).is_none_or(|outside| place(event) < *outside)
}

/// The largest consistent cut before everything that is `later`, by trying all.
fn consistent(all: &[Event], later: impl Fn(i64) -> bool) -> Cut {
    let mut cut = Cut::new();
    let lower = |cut: &mut Cut, event: &Event| {
        let outside = cut.entry(event.name.actor.clone()).or_insert(place(event));
        *outside = place(event).min(*outside);
    };
    for event in all.iter().filter(|event| !event.alone && event.time.is_some_and(&later)) {
        lower(&mut cut, event);
    }
    loop {
        let wrong = all.iter().find(|receive| {
            let sent = |send: &&Event| send.sends == receive.receives && !send.alone && !inside(&cut, send);
            receive.receives.is_some() && inside(&cut, receive) && all.iter().any(|send| sent(&send))
        });
        match wrong {
            Some(receive) => lower(&mut cut, receive),
            None => return cut,
        }
    }
}

/// The names of the events in a file.
fn names(file: &SealedFile) -> BTreeSet<String> {
    let file = std::fs::File::open(file.path()).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let mut names = BTreeSet::new();
    for batch in batches.map(Result::unwrap) {
        for row in 0..batch.num_rows() {
            let column = |name: &str| batch.column_by_name(name).unwrap();
            let name = EventId {
                actor: column("actor").as_string::<i32>().value(row).to_owned(),
                incarnation: column("incarnation").as_primitive::<Int32Type>().value(row) as u32,
                seq: column("seq").as_primitive::<Int64Type>().value(row) as u64,
            };
            assert!(names.insert(name.to_string()), "{name} stands there twice");
        }
    }
    names
}

fn files(dir: &Path, all: &[Event], seed: u64) -> Vec<SealedFile> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut shuffled = all.to_vec();
    if rng.random_bool(0.5) {
        shuffled.shuffle(&mut rng);
    }
    let many = rng.random_range(1..4);
    let of = |number: usize| {
        let path = dir.join(format!("{number}.parquet"));
        let part = shuffled.iter().skip(number).step_by(many);
        write_store_file(&path, part.map(|event| EventRecord::parse(event.line.as_bytes()).unwrap()))
            .unwrap();
        path.into()
    };
    (0..many).map(of).collect()
}

/// Before and after: the closure of logs and messages. The environment has no order.
fn closure(all: &[Event]) -> Vec<Vec<bool>> {
    let mut before = vec![vec![false; all.len()]; all.len()];
    for (j, b) in all.iter().enumerate() {
        for (i, a) in all.iter().enumerate() {
            let log = a.name.actor == b.name.actor && !a.alone && place(a) < place(b);
            before[i][j] = log || a.sends.is_some() && a.sends == b.receives;
        }
    }
    for k in 0..all.len() {
        for i in 0..all.len() {
            if before[i][k] {
                let through = before[k].clone();
                before[i].iter_mut().zip(through).for_each(|(known, more)| *known |= more);
            }
        }
    }
    before
}

/// What was cut against what brute force says; `since` and `until` are the times that count.
fn check(
    all: &[Event],
    windowed: &Windowed,
    (since, until): (Option<i64>, Option<i64>),
    around: Option<&Event>,
    dir: &Path,
) {
    let mut end = until.map_or_else(Cut::new, |until| consistent(all, |time| time > until));
    if let Some(around) = around.filter(|event| !event.alone && !inside(&end, event)) {
        // With all that happens before it.
        let (at, closure) = (all.iter().position(|event| event.name == around.name).unwrap(), closure(all));
        for (i, event) in all.iter().enumerate().filter(|(_, event)| !event.alone) {
            if i == at || closure[i][at] {
                end.entry(event.name.actor.clone()).and_modify(|outside| {
                    *outside = (*outside).max((place(event).0, place(event).1 + 1));
                });
            }
        }
    }
    let begin = since.map(|since| {
        // Lowered within the end.
        let within: Vec<Event> = all.iter().filter(|event| inside(&end, event)).cloned().collect();
        let mut cut = consistent(&within, |time| time >= since);
        for event in all.iter().filter(|event| !event.alone && event.time.is_some_and(|time| time >= since)) {
            let outside = cut.entry(event.name.actor.clone()).or_insert(place(event));
            *outside = place(event).min(*outside);
        }
        cut
    });
    let before = |event: &Event| begin.as_ref().is_some_and(|begin| inside(begin, event));
    let within = |event: &Event| inside(&end, event) && !before(event);
    let received: BTreeSet<&String> =
        all.iter().filter(|event| within(event)).filter_map(|e| e.receives.as_ref()).collect();
    let wanted = |event: &Event| event.sends.as_ref().is_some_and(|id| received.contains(id));
    let timely = |event: &Event| match event.time {
        Some(time) => since.is_none_or(|since| time >= since) && until.is_none_or(|until| time <= until),
        None => since.is_none(),
    };
    // What was received before the beginning was sent before it.
    let earlier = |event: &Event| {
        event.sends.is_some() && all.iter().any(|other| other.receives == event.sends && before(other))
    };
    let here = |event: &Event| match event.alone {
        true => !earlier(event) && (wanted(event) || timely(event)),
        false => within(event),
    };
    let brought = |event: &Event| wanted(event) && if event.alone { earlier(event) } else { before(event) };
    let mut expected: BTreeSet<String> =
        all.iter().filter(|e| here(e) || brought(e)).map(|e| e.name.to_string()).collect();
    let mut states: BTreeMap<&str, &Event> = BTreeMap::new();
    for event in all.iter().filter(|event| event.state && before(event)) {
        let last = states.entry(&event.name.actor).or_insert(event);
        if place(last) < place(event) {
            *last = event;
        }
    }
    let summary = &windowed.summary;
    if summary.before > 0 {
        expected.extend(states.values().map(|event| event.name.to_string()));
    }
    assert_eq!(names(&windowed.file), expected);
    let in_flight = all.iter().filter(|event| brought(event)).count() as u64;
    assert_eq!(
        (summary.in_flight, summary.before + summary.after),
        (in_flight, all.iter().filter(|e| !here(e)).count() as u64)
    );
    assert_eq!(summary.replayable, summary.before == 0);
    assert_eq!(summary.begins == Beginning::Start, summary.before == 0);

    // The order among them is that of the whole.
    let exec = dir.join("exec");
    let options = BuildOptions {
        system: "s".into(),
        violation: ViolationSpec::None,
        window: Some(summary.clone()),
        ..BuildOptions::default()
    };
    build(std::slice::from_ref(&windowed.file), &options, &exec, &mut |_| {}).unwrap();
    let (query, before) = (Query::open(&exec, false).unwrap(), closure(all));
    let known: Vec<(usize, u32)> = all
        .iter()
        .enumerate()
        .filter(|(_, event)| here(event))
        .map(|(i, event)| (i, query.index().event(&event.name.to_string()).unwrap()))
        .collect();
    for &(i, a) in &known {
        for &(j, b) in &known {
            let is_before = query.order(a, b).unwrap() == Relation::Before;
            assert_eq!(is_before, before[i][j], "{} and {}", all[i].name, all[j].name);
        }
    }
}

fn cases() -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// A window between two times holds what brute force says, in the order of the whole.
    #[test]
    fn a_window_between_times(seed: u64, events in 1..90_usize, from in -5..95_i64, long in 0..60_i64, which in 0..3_u8) {
        let all = system(seed, events);
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path(), &all, seed);
        let at = |time: i64| 1_700_000_000_000_000_000 + 10 * time;
        let since = (which != 1).then(|| at(from));
        let until = (which != 0).then(|| at(from + long));
        let window = Window {
            since: since.map(|time| time.to_string()),
            until: until.map(|time| time.to_string()),
            ..Window::default()
        };
        match cut(&files, "s", &window, dir.path(), &mut |_| {}) {
            Ok(windowed) => check(&all, &windowed, (since, until), None, dir.path()),
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.contains("no event of system 's' lies") || error.contains("no event has a time"), "{error}");
            }
        }
    }

    /// The last events, and those around one, are those that the times say; no fewer than asked for lie at or after the beginning.
    #[test]
    fn a_number_of_events(seed: u64, events in 5..90_usize, last in 1..40_u64, around: bool) {
        let all = system(seed, events);
        let dir = tempfile::tempdir().unwrap();
        let files = files(dir.path(), &all, seed);
        let mut times: Vec<i64> = all.iter().filter_map(|event| event.time).collect();
        times.sort_unstable();
        prop_assume!(!times.is_empty());
        let event = all.iter().filter(|event| event.time.is_some()).nth(times.len() / 2).unwrap();
        let mut window = Window { last: Some(last), ..Window::default() };
        let (since, until);
        if around {
            window.around = vec![event.name.clone()];
            let many = last.max(2) as usize;
            let middle = times.partition_point(|time| *time <= event.time.unwrap());
            since = middle.checked_sub(many / 2).map(|first| times[first]);
            until = times.get(middle + (many - many / 2) - 1).copied();
        } else {
            since = times.len().checked_sub(last as usize).map(|first| times[first]);
            until = None;
        }
        match cut(&files, "s", &window, dir.path(), &mut |_| {}) {
            Ok(windowed) => {
                check(&all, &windowed, (since, until), around.then_some(event), dir.path());
                prop_assert!(!around || names(&windowed.file).contains(&event.name.to_string()));
            }
            Err(error) => {
                let error = error.to_string();
                // What the environment sent last may have been received long before, by its own clock.
                let outside = |event: &Event| event.alone || event.time < since;
                let empty = error.contains("no event of system 's' lies") && all.iter().all(outside);
                prop_assert!(empty || around && error.contains("a larger one holds it"), "{error}");
            }
        }
    }
}

#[test]
fn what_ids_do_not_order_has_no_window() {
    let dir = tempfile::tempdir().unwrap();
    let error = |line: &str| {
        let path = dir.path().join("w.parquet");
        let lines = [
            line,
            r#"{"actor":"b","seq":1,"kind":"receive","from":"a","to":"b","time":"2026-01-01T00:00:02Z"}"#,
        ];
        write_store_file(&path, lines.map(|line| EventRecord::parse(line.as_bytes()).unwrap())).unwrap();
        let window = Window { since: Some("2026-01-01T00:00:00Z".into()), ..Window::default() };
        cut(&[path.into()], "s", &window, dir.path(), &mut |_| {}).unwrap_err().to_string()
    };
    let send = r#"{"actor":"a","seq":1,"kind":"send","from":"a","to":"b","time":"2026-01-01T00:00:01Z"}"#;
    assert!(error(send).contains("1 sends and 1 receives have no msg_id"), "{}", error(send));
    let clock =
        r#"{"actor":"a","seq":1,"kind":"local","vector_clock":{"a":1},"time":"2026-01-01T00:00:01Z"}"#;
    assert!(error(clock).contains("vector clocks"), "{}", error(clock));
    let span = r#"{"actor":"a","seq":1,"kind":"local","attrs":{"trace_id":"t","span_id":"x"},"time":"2026-01-01T00:00:01Z"}"#;
    assert!(error(span).contains("spans"), "{}", error(span));
}

#[test]
fn a_time_that_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path(), &system(1, 10), 1);
    let error = |window: Window| cut(&files, "s", &window, dir.path(), &mut |_| {}).unwrap_err().to_string();
    assert!(error(Window { since: Some("noon".into()), ..Window::default() }).contains("'noon' is no time"));
    let turned =
        Window { since: Some("2026-01-02".into()), until: Some("2026-01-01".into()), ..Window::default() };
    assert!(error(turned).contains("ends before it begins"));
    let nobody = Window { around: EventId::readings("z/1").unwrap(), ..Window::default() };
    assert!(error(nobody).contains("there is no event z/1"));
}

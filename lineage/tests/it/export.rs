//! Exports of random executions and slices: what their readers ask of them, and no text breaks a format.

use std::collections::BTreeMap;

use demi_lineage::export::{Format, Selection, Trace, Window, WriteOptions, write};
use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::{EventRecord, Kind};
use proptest::prelude::*;
use serde_json::Value;

fn load(records: &[EventRecord], affected: &str, selection: &Selection) -> Trace {
    let dir = tempfile::tempdir().unwrap();
    let (file, exec) = (dir.path().join("events.parquet"), dir.path().join("exec"));
    write_store_file(&file, records.to_vec()).unwrap();
    let violation = ViolationSpec::Actors(vec![affected.to_owned()]);
    let options = BuildOptions { violation, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    Trace::load(&exec, selection).unwrap()
}

fn text(trace: &Trace, format: Format, split_loose: bool) -> String {
    let mut out = Vec::new();
    write(trace, format, WriteOptions { split_loose }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// An event of a ShiViz log: its text, host and clock.
type Logged = (String, String, BTreeMap<String, u64>);

/// Reads a log by the default parser expression, and checks what ShiViz checks of it.
fn shiviz(log: &str) -> Vec<Logged> {
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some(r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"));
    assert_eq!(lines.next(), Some(""), "no delimiter");
    let mut events: Vec<Logged> = Vec::new();
    while let Some(event) = lines.next() {
        let (host, clock) = lines.next().unwrap().split_once(' ').unwrap();
        let clock: BTreeMap<String, u64> = serde_json::from_str(clock).unwrap();
        events.push((event.to_owned(), host.to_owned(), clock));
    }
    let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (_, host, clock) in &events {
        assert!(!host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '{' || c == '}'));
        counts.entry(host).or_default().push(*clock.get(host).expect("the own host is a key"));
    }
    for (host, own) in &counts {
        let expected: Vec<u64> = (1..=own.len() as u64).collect();
        assert_eq!(own, &expected, "{host}: the own component begins with 1 and rises by 1");
    }
    for (_, _, clock) in &events {
        for (host, n) in clock {
            let known = counts.get(host.as_str()).unwrap_or_else(|| panic!("unknown host {host}"));
            assert!(*n >= 1 && *n <= known.len() as u64, "{host} never reaches {n}");
        }
    }
    events
}

fn mix() -> impl Strategy<Value = Mix> {
    let shares = (0.0..0.3, 0.0..0.2, 0.0..0.1, 0.0..0.3, 0.0..0.2, 0.0..0.2);
    (any::<u64>(), 2..6_u32, 5..60_u64, shares).prop_map(|(seed, actors, events, s)| Mix {
        seed,
        actors,
        events,
        loss: s.0,
        duplicate: s.1,
        restart: s.2,
        timer: s.3,
        environment: s.4,
        thread: s.5,
        multicast: s.0,
        ..Mix::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What order they tell is compared with the closure of the records where pages are tested, with that of all other pictures.
    #[test]
    fn slices_are_logs_as_shiviz_wants_them(mix in mix(), pick in any::<prop::sample::Index>(), way in 0..4, split: bool) {
        let records: Vec<EventRecord> = Generator::new(&mix).map(|g| g.record).collect();
        let affected = records.iter().map(|r| &r.actor).find(|a| a.starts_with("actor"));
        prop_assume!(affected.is_some());
        let affected = affected.unwrap();
        let event = records[pick.index(records.len())].id().to_string();
        let selection = match way {
            0 => Selection::default(),
            1 => Selection { past: Some(event), ..Selection::default() },
            2 => Selection { from: Some(event), ..Selection::default() },
            _ => Selection { actors: vec![affected.clone()], ..Selection::default() },
        };
        let trace = load(&records, affected, &selection);
        prop_assert_eq!(shiviz(&text(&trace, Format::Shiviz, split)).len(), trace.events.len());
    }

    #[test]
    fn no_text_breaks_a_format(payload in "(\\PC|[\\x00-\\x1f\"\\\\<>&;#{}\u{2028}]){0,24}", name in "[a-z {}\"<;#]{1,6}") {
        let mut start = EventRecord::new("other", 1, Kind::Receive);
        start.from = Some(name.clone());
        let mut send = EventRecord::new(name.clone(), 1, Kind::Send);
        (send.to, start.to) = (Some("other".into()), Some("other".into()));
        for record in [&mut send, &mut start] {
            record.msg_id = Some("1".into());
            record.payload = Some(payload.clone());
            record.type_ = Some(payload.clone());
        }
        let trace = load(&[send, start], "other", &Selection::default());
        prop_assert_eq!(shiviz(&text(&trace, Format::Shiviz, false)).len(), 2);
        let merged = text(&trace, Format::MergedLog, false);
        prop_assert_eq!(merged.lines().count(), trace.events.len(), "{}", merged);
        for (line, &e) in merged.lines().zip(&trace.events) {
            let kind = trace.skeleton.kind[e as usize].as_str();
            prop_assert!(line.contains(&format!("  {kind}")) && !line.contains(char::is_control), "{}", line);
        }
        let json: Value = serde_json::from_str(&text(&trace, Format::Json, false)).unwrap();
        prop_assert_eq!(json["events"][0]["payload"].as_str(), Some(payload.as_str()));
        let chrome: Value = serde_json::from_str(&text(&trace, Format::Perfetto, false)).unwrap();
        let phases: Vec<&str> =
            chrome["traceEvents"].as_array().unwrap().iter().map(|e| e["ph"].as_str().unwrap()).collect();
        prop_assert_eq!(phases, ["M", "M", "M", "M", "M", "M", "X", "X", "s", "f"]);
        let graph = text(&trace, Format::Graphml, false);
        for value in graph.split("<data key=\"payload\">").skip(1) {
            let value = value.split_once("</data>").unwrap().0;
            prop_assert!(!value.contains(['<', '>', '"', '\u{b}', '\u{0}']), "{}", value);
        }
        let dot = text(&trace, Format::Dot, false);
        for line in dot.lines() {
            let quotes = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
            prop_assert_eq!(quotes % 2, 0, "{}", line);
        }
        let mermaid = text(&trace, Format::Mermaid, false);
        prop_assert_eq!(mermaid.lines().count(), 4, "{}", mermaid);
    }
}

/// A window is a stretch of what the other conditions leave, as long as was asked for, and the event stands in its middle
/// unless an end is near.
#[test]
fn a_window_is_a_stretch_of_the_order() {
    let records: Vec<EventRecord> = Generator::new(&Mix::default()).map(|g| g.record).collect();
    let trace = load(&records, "actor-00000", &Selection::default());
    let one = vec!["actor-00001".to_owned()];
    for actors in [Vec::new(), one] {
        let all = Selection { actors, ..Selection::default() };
        let whole = trace.clone().select(&all).unwrap().events;
        let windowed = |window: Window| {
            let selection = Selection { window: Some(window), ..all.clone() };
            trace.clone().select(&selection).unwrap().events
        };
        for events in [1, 2, 7, whole.len(), whole.len() + 5, usize::MAX] {
            let expected = &whole[whole.len().saturating_sub(events)..];
            assert_eq!(windowed(Window::Last(events)), expected, "last {events}");
            for &at in &trace.events {
                let event = trace.skeleton.id(at).to_string();
                let found = windowed(Window::Around { event, events });
                assert_eq!(found.len(), events.min(whole.len()), "{events} around {at}");
                assert!(whole.windows(found.len()).any(|stretch| stretch == found), "{events} around {at}");
                let before = found.iter().filter(|&&e| e < at).count();
                let (first, last) = (found[0] == whole[0], found.last() == whole.last());
                assert!(before == events / 2 || first && before < events / 2 || last && before > events / 2);
            }
        }
    }
    let nobody = Window::Around { event: "nobody/1".into(), events: 3 };
    let selection = Selection { window: Some(nobody), ..Selection::default() };
    assert!(trace.select(&selection).unwrap_err().to_string().contains("nobody"));
}

#[test]
fn what_does_not_exist_is_named() {
    let records: Vec<EventRecord> = Generator::new(&Mix::default()).map(|g| g.record).collect();
    let trace = load(&records, "actor-00000", &Selection::default());
    let fails = |selection: Selection| trace.clone().select(&selection).unwrap_err().to_string();
    let past = |name: &str| Selection { past: Some(name.into()), ..Selection::default() };
    assert!(fails(past("nobody/1")).contains("actor-00003"), "{}", fails(past("nobody/1")));
    assert!(fails(past("actor-00000/99999")).contains("from actor-00000/1 to actor-00000/"));
    assert!(fails(past("actor-00000")).contains("ACTOR/SEQ"));
    let (first, last) =
        ("actor-00000/1".to_owned(), trace.skeleton.id(trace.events[trace.events.len() - 1]).to_string());
    let back = Selection { from: Some(last), to: Some(first), ..Selection::default() };
    assert!(fails(back).contains("does not happen before"));
}

//! Every mapping that comes with the program on a small log of its format: what each line becomes, line for line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::path::{Path, PathBuf};

use demi_formats::lines::{LineReader, Next};
use demi_formats::mapping::{Mapper, Mapping, Unit, shipped};
use demi_formats::{Events, Fate};
use demi_schemas::EventRecord;
use proptest::prelude::*;
use serde_json::Value;

fn samples() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let mut files: Vec<(String, PathBuf)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_stem().unwrap().to_string_lossy().into_owned(), p))
        .collect();
    files.sort();
    files
}

/// The mapping of a sample: its name, but for the logs that one mapping reads several kinds of.
fn mapping_of(sample: &str) -> &str {
    if sample == "tsviz" { "shiviz" } else { sample }
}

fn shown(units: &[Unit]) -> String {
    let mut out = String::new();
    for unit in units {
        let execution = unit.execution.as_ref().map_or_else(String::new, |e| format!(" [{e}]"));
        let place = format!("{}+{}{execution}", unit.line.number, unit.lines);
        match &unit.fate {
            Fate::LeftOut(why) => out.push_str(&format!("{place} skipped: {why}\n")),
            Fate::Quarantined(why) => {
                let (code, reason) = (why.code(), why.reason());
                out.push_str(&format!("{place} REJECTED {code}: {reason}\n"));
            }
            Fate::Row(Events { records, warnings }) => {
                for record in records {
                    out.push_str(&format!("{place} {}\n", serde_json::to_string(record).unwrap()));
                }
                warnings.iter().for_each(|w| out.push_str(&format!("    odd: {w}\n")));
            }
        }
    }
    out
}

/// The folder of mappings for logs of papers, which do not come with the program.
fn others() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mappings")
}

/// The mapping of a name, among those that come with the program or the others.
fn find(mapping: &str) -> Mapping {
    let file = others().join(mapping).with_extension("toml");
    if file.exists() { Mapping::read(&file).unwrap() } else { Mapping::named(mapping).unwrap() }
}

fn map(mapping: &str, name: &str, data: &[u8]) -> Vec<Unit> {
    Mapper::new(&find(mapping)).unwrap().map_text(name, data)
}

#[test]
fn every_format_has_a_sample_and_every_line_of_it_a_meaning() {
    let mut mapped: Vec<&str> = Vec::new();
    let files = samples();
    for (sample, path) in &files {
        let mapping = mapping_of(sample);
        let data = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        let units = map(mapping, &name, &data);
        insta::assert_snapshot!(sample.as_str(), shown(&units));
        mapped.push(mapping);
    }
    let others = std::fs::read_dir(others()).unwrap().map(|entry| entry.unwrap().path());
    let others: Vec<String> =
        others.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    for mapping in shipped().iter().map(|mapping| mapping.name).chain(others.iter().map(String::as_str)) {
        assert!(mapped.contains(&mapping), "{mapping} has no sample");
    }
}

/// Lines that hold something, by number.
fn filled_lines(data: &[u8]) -> Vec<u64> {
    let lines = data.split(|b| *b == b'\n').enumerate();
    lines.filter(|(_, l)| !l.trim_ascii().is_empty()).map(|(i, _)| i as u64 + 1).collect()
}

/// Mappings of logs made of lines.
fn by_lines() -> Vec<&'static str> {
    let documents = ["otlp", "zipkin", "jaeger", "elle", "itf", "jepsen", "tlc-json", "p-trace-json"];
    shipped().iter().map(|s| s.name).filter(|n| !documents.contains(n)).collect()
}

proptest! {
    /// Of any bytes every line becomes something, once, and says where it was.
    #[test]
    fn no_line_vanishes(
        which in 0usize..64,
        lines in proptest::collection::vec(prop_oneof![
            3 => "[ -~]{0,40}",
            2 => Just("a {\"a\":1}".to_owned()),
            1 => Just("b {\"b\":1, \"a\":1}".to_owned()),
            1 => Just("1,0 x".to_owned()),
            1 => Just("--".to_owned()),
            1 => Just("=== t ===".to_owned()),
            1 => Just("[INFO] [x] [y] [akka://s/user/a] received".to_owned()),
            1 => Just("{\"actor\":\"a\",\"msg\":1}".to_owned()),
            1 => Just(String::new()),
            1 => Just("\u{2028}".to_owned()),
            1 => "\\PC{0,12}",
        ], 0..24),
        ended in any::<bool>(),
    ) {
        let mapping = by_lines()[which % by_lines().len()];
        let mut data = lines.join("\n").into_bytes();
        if ended {
            data.push(b'\n');
        }
        let units = map(mapping, "f.log", &data);
        let mut met = vec![0_u32; lines.len() + 2];
        for unit in &units {
            let first = unit.line.number as usize;
            for line in first..first + unit.lines as usize {
                if let Some(count) = met.get_mut(line) {
                    *count += 1;
                }
            }
            let at = unit.line.offset as usize;
            prop_assert!(data.get(at..).is_some_and(|d| d.starts_with(&unit.raw)), "{mapping}: {unit:?}");
        }
        for line in filled_lines(&data) {
            prop_assert_eq!(met[line as usize], 1, "{}: line {} of {:?}", mapping, line, lines);
        }
    }

    /// A sample of any format in which bytes were changed, left out, or put in: nothing panics, what becomes an event keeps the rules, and of a log of
    /// lines each line is something, once.
    #[test]
    fn a_damaged_sample_loses_no_line(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0..4_usize, proptest::collection::vec(any::<u8>(), 1..6)), 1..6),
    ) {
        let samples = samples();
        let (sample, path) = &samples[which.index(samples.len())];
        let mapping = mapping_of(sample);
        let mut data = std::fs::read(path).unwrap();
        for (at, kind, bytes) in edits {
            let at = at.index(data.len().max(1)).min(data.len());
            let end = (at + bytes.len()).min(data.len());
            match kind {
                0 => data[at..end].copy_from_slice(&bytes[..end - at]),
                1 => drop(data.drain(at..end)),
                2 => drop(data.splice(at..at, bytes)),
                _ => data.truncate(at),
            }
        }
        let units = map(mapping, "f.log", &data);
        for unit in &units {
            if let Fate::Row(Events { records, .. }) = &unit.fate {
                records.iter().for_each(|record| record.check().unwrap());
            }
        }
        if by_lines().contains(&mapping) {
            let mut met = std::collections::BTreeMap::new();
            for unit in &units {
                (unit.line.number..unit.line.number + unit.lines).for_each(|line| *met.entry(line).or_insert(0) += 1);
            }
            for line in filled_lines(&data) {
                prop_assert_eq!(met.get(&line), Some(&1), "{}: line {} of {:?}", mapping, line, String::from_utf8_lossy(&data));
            }
        } else {
            prop_assert!(!units.is_empty() || data.trim_ascii().is_empty(), "{}: {:?}", mapping, data);
        }
    }

    /// What is no entry of a trace of the P checker is refused by itself, and all others are what they are without it.
    #[test]
    fn what_is_no_entry_of_a_trace_is_refused_by_itself(
        at in any::<prop::sample::Index>(),
        bad in prop::sample::select(vec!["7", "\"x\"", "null", "[]", "{}", "{\"type\":\"SendEvent\"}", "[{\"type\":\"Halt\",\"details\":{\"id\":\"A\"}}]"]),
    ) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/p-trace-json.json");
        let entries: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut lines: Vec<String> = entries.iter().map(Value::to_string).collect();
        let events = |lines: &[String]| {
            let units = map("p-trace-json", "f", format!("[{}]", lines.join(",\n")).as_bytes());
            let mut events = Vec::new();
            let mut refused = Vec::new();
            for unit in units {
                match unit.fate {
                    // The others stand a line further down.
                    Fate::Row(Events { records, .. }) => {
                        events.extend(records.into_iter().map(|record| EventRecord { line: None, offset: None, ..record }));
                    }
                    Fate::Quarantined(_) => refused.push(unit.line.number),
                    Fate::LeftOut(_) => {}
                }
            }
            (events, refused)
        };
        let (whole, none) = events(&lines);
        prop_assert_eq!(none, Vec::<u64>::new());
        let at = at.index(lines.len() + 1);
        lines.insert(at, bad.to_owned());
        prop_assert_eq!(events(&lines), (whole, vec![at as u64 + 1]));
    }

    /// An element of XML that cannot be read is refused by itself, and all others are what they are without it.
    #[test]
    fn what_is_no_element_is_refused_by_itself(
        count in 1..8_usize,
        at in any::<prop::sample::Index>(),
        bad in prop::sample::select(vec![
            "<e who='a'><x></y></e>", "<e who='a'>&unknown;</e>", "<e who=a/>", "<e who='a' who='b'/>", "<e/>", "<e who='a'>\u{1}&#0;</e>",
        ]),
    ) {
        let mapping = "name = 'x'\ndescription = 'd'\n[input]\ncontainer = 'xml'\n[event]\nactor = '{who}'\nseq = '{n}'\n";
        let mapping = Mapping::parse(mapping, "x").unwrap();
        let mut lines: Vec<String> = (1..=count).map(|n| format!("<e who='a' n='{n}'/>")).collect();
        let at = at.index(count + 1);
        lines.insert(at, bad.to_owned());
        let text = format!("<log>\n{}\n</log>\n", lines.join("\n"));
        let units = Mapper::new(&mapping).unwrap().map_text("f", text.as_bytes());
        let refused = |unit: &&Unit| matches!(unit.fate, Fate::Quarantined(_));
        let events = |unit: &&Unit| matches!(unit.fate, Fate::Row(_));
        let places: Vec<u64> = units.iter().filter(refused).map(|unit| unit.line.number).collect();
        prop_assert_eq!(places, vec![at as u64 + 2], "{:?}", units);
        prop_assert_eq!(units.iter().filter(events).count(), count);
    }

    /// Mapping the same bytes again gives the same records.
    #[test]
    fn mapping_is_a_function(which in 0usize..64, data in proptest::collection::vec(any::<u8>(), 0..200)) {
        let all = shipped();
        let mapping = all[which % all.len()].name;
        prop_assert_eq!(map(mapping, "f", &data), map(mapping, "f", &data));
    }
}

/// The units of a log that is read up to some line, left, and gone on with by another mapper.
fn map_in_two(mapping: &str, name: &str, data: &[u8], stop: usize) -> Vec<Unit> {
    let mapping = find(mapping);
    let mut mapper = Mapper::new(&mapping).unwrap();
    mapper.begin(name, data);
    let mut units = Vec::new();
    let mut reader = LineReader::new(data, 1 << 20, 100);
    let mut bytes = Vec::new();
    let mut number = 0;
    while let Next::Line(line) = reader.next_line(&mut bytes) {
        number = line.number;
        mapper.line(line, &bytes, &mut units);
        bytes.clear();
        if number as usize >= stop && !mapper.in_header() {
            break;
        }
    }
    let from = mapper.unfinished().unwrap_or((reader.offset(), number + 1));
    if from == (0, 1) {
        // A file of documents of JSON is gone on with from its beginning.
        units.clear();
    }
    let saved = serde_json::to_string(&(mapper.shared(), mapper.checkpoint())).unwrap();
    let mut mapper = Mapper::new(&mapping).unwrap();
    let (shared, of_source): (Value, Value) = serde_json::from_str(&saved).unwrap();
    if from != (0, 1) {
        mapper.resume_shared(&shared).unwrap();
    }
    mapper.resume(&of_source).unwrap();
    let mut reader = LineReader::new(&data[from.0 as usize..], 1 << 20, 100);
    bytes.clear();
    while let Next::Line(mut line) = reader.next_line(&mut bytes) {
        line.offset += from.0;
        line.number += from.1 - 1;
        mapper.line(line, &bytes, &mut units);
        bytes.clear();
    }
    mapper.end(&mut units);
    units
}

#[test]
fn a_log_may_be_left_anywhere_and_gone_on_with() {
    for (sample, path) in samples() {
        let data = std::fs::read(&path).unwrap();
        let whole = map(mapping_of(&sample), "f.log", &data);
        for stop in 1..=data.split(|b| *b == b'\n').count() {
            let parts = map_in_two(mapping_of(&sample), "f.log", &data, stop);
            assert_eq!(shown(&parts), shown(&whole), "{sample}, left after line {stop}");
        }
    }
}

#[test]
fn positions_are_counted_on_from_file_to_file() {
    let mut mapper = Mapper::new(&Mapping::named("logfmt").unwrap()).unwrap();
    let first = mapper.map_text("one.log", b"actor=a x=1\nactor=b x=1\n");
    let second = mapper.map_text("two.log", b"actor=a x=2\n");
    let seq = |units: &[Unit], i: usize| match &units[i].fate {
        Fate::Row(Events { records, .. }) => records[0].seq,
        other => panic!("{other:?}"),
    };
    assert_eq!((seq(&first, 0), seq(&first, 1), seq(&second, 0)), (1, 1, 2));
}

/// The mapping that `docs/formats.md` teaches with, on the log it shows.
#[test]
fn the_documented_mapping_does_what_it_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let file = |name: &str| {
        let behind = text.split(&format!("<!-- file: {name} -->\n")).nth(1).unwrap();
        behind.split("```").nth(1).unwrap().split_once('\n').unwrap().1
    };
    let (toml, log) = (file("mine.toml"), file("raft.log"));
    let units = Mapper::new(&Mapping::parse(toml, "docs").unwrap()).unwrap().map_text("f", log.as_bytes());
    let shown: Vec<String> = units
        .iter()
        .map(|unit| match &unit.fate {
            Fate::Row(Events { records, .. }) => {
                format!("{} {} {:?}", records[0].id(), records[0].kind.as_str(), records[0].payload)
            }
            other => format!("{other:?}"),
        })
        .collect();
    let expected = [
        "raft-1/1 send Some(\"AppendEntries(7)\")",
        "raft-2/1 receive Some(\"AppendEntries(7)\")",
        "raft-2/2 local Some(\"commit 7\")",
    ];
    assert_eq!(shown, expected);
    for mapping in shipped() {
        assert!(
            text.contains(&format!("`{}`", mapping.name)),
            "docs/formats.md does not name {}",
            mapping.name
        );
    }
}

/// The JSON Schema of mapping files; `UPDATE_SCHEMAS=1` writes it anew.
#[test]
fn the_committed_schema_agrees_with_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/json/mapping.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&schemars::schema_for!(Mapping)).unwrap());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "stale: UPDATE_SCHEMAS=1 writes it");
}

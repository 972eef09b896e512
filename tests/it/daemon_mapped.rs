//! Logs of other formats that the daemon follows through a mapping: what positions and messages become must not depend on
//! when it was killed, or on how the files were rotated.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use demi_store::Store;
use kill::check::{Told, rows, told};
use kill::daemon::Daemon;
use kill::random::Random;

/// One line an event; positions and message ids are counted.
const LINES: &str = r#"
name = "lines"
description = "test"
[input]
container = "text"
patterns = ['^(?<who>\w+) (?<what>does|sends|gets) (?<n>\d+)(?: (?<peer>\w+))?$']
[event]
actor = "{who}"
payload = "{n}"
[[rule]]
when = { what = "sends" }
emit = [{ kind = "send", to = "{peer}", link = { key = ["{who}", "{peer}"], order = "earlier" } }]
[[rule]]
when = { what = "gets" }
emit = [{ kind = "receive", from = "{peer}", link = { key = ["{peer}", "{who}"], order = "earlier" } }]
"#;

/// A record begins with a line that begins with `#`, and goes on to the next one.
const RECORDS: &str = r##"
name = "records"
description = "test"
[input]
container = "text"
start = '^#'
patterns = ['^# (?<who>\w+)\n(?<text>(?s:.*))$']
[event]
actor = "{who}"
payload = "{text}"
"##;

/// The file's name is the actor.
const NAMES: &str = r#"
name = "names"
description = "test"
[input]
container = "text"
patterns = ['^(?<text>.*)$']
[event]
actor = "{@stem}"
payload = "{text}"
"#;

struct Case {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

impl Case {
    fn start(mapping: &str) -> Self {
        Case::start_with(mapping, "")
    }

    fn start_with(mapping: &str, limits: &str) -> Self {
        Case::of_source(mapping, limits, "")
    }

    fn of_source(mapping: &str, limits: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let d = dir.path().display();
        fs::create_dir_all(dir.path().join("logs")).unwrap();
        fs::write(dir.path().join("map.toml"), mapping).unwrap();
        let config = format!(
            "[store]\ndir = \"{d}/store\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n[daemon]\nlog = \"info\"\n\
             [limits]\n{limits}\n[sources.mapped]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/logs/*\"]\nmapping = \"{d}/map.toml\"\n\
             poll_millis = 10\nscan_millis = 30\ngone_secs = 1\n{more}\n"
        );
        let mut daemon = Daemon::with_config(dir.path(), &config);
        daemon.start();
        Case { dir, daemon }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("logs/app.log")
    }

    fn append(&self, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Renames the log, copies and truncates it, or packs it.
    fn rotate(&self, n: u64, random: &mut Random) {
        let old = self.dir.path().join(format!("logs/app.log.{n}"));
        match random.below(3) {
            0 => fs::rename(self.log(), old).unwrap(),
            1 => {
                fs::copy(self.log(), &old).unwrap();
                OpenOptions::new().write(true).open(self.log()).unwrap().set_len(0).unwrap();
            }
            _ => {
                let bytes = fs::read(self.log()).unwrap();
                let packed = zstd::encode_all(bytes.as_slice(), 1).unwrap();
                fs::rename(self.log(), &old).unwrap();
                fs::write(old.with_extension(format!("{n}.zst")), packed).unwrap();
                fs::remove_file(old).unwrap();
            }
        }
    }

    fn finish(mut self, events: u64) -> BTreeMap<String, BTreeMap<u64, Told>> {
        self.daemon.wait_for(events);
        self.daemon.stop();
        let store = Store::open(self.dir.path().join("store")).unwrap();
        assert_eq!(rows(&store.quarantine_files("s").unwrap()), 0, "no line is none");
        told(store.dir())
    }
}

#[test]
fn counted_positions_and_messages_survive_kills_and_rotation() {
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let mut case = Case::start(LINES);
        // Of each actor the n-th line says n, so its position must be n.
        let mut counts = BTreeMap::from([("a", 0), ("b", 0)]);
        let mut line = |who: &'static str, what: &str| {
            let n = counts.get_mut(who).unwrap();
            *n += 1;
            let peer = if who == "a" { "b" } else { "a" };
            let end = if what == "does" { String::new() } else { format!(" {peer}") };
            format!("{who} {what} {n}{end}\n")
        };
        for round in 0..14 {
            // What is open at a kill: a message that was sent and not received.
            for _ in 0..1 + random.below(40) {
                let text =
                    [line("a", "sends"), line("b", "does"), line("b", "gets"), line("a", "does")].concat();
                let (first, second) = text.split_at(random.below(text.len() as u64) as usize);
                case.append(first);
                if random.below(40) == 0 {
                    thread::sleep(Duration::from_millis(random.below(60)));
                }
                case.append(second);
            }
            let sent = line("a", "sends");
            case.append(&sent);
            if random.below(3) == 0 {
                thread::sleep(Duration::from_millis(random.below(200)));
            }
            case.daemon.kill();
            if random.below(2) == 0 && case.log().exists() {
                case.rotate(round, &mut random);
            }
            let got = line("b", "gets");
            case.append(&got);
            case.daemon.start();
        }
        let total: u64 = counts.values().sum();
        let found = case.finish(total);
        let mut sends = Vec::new();
        let mut receives = Vec::new();
        for (actor, count) in &counts {
            let events = &found[*actor];
            assert_eq!(events.len() as u64, *count, "seed {seed}: {actor}");
            for (seq, event) in events {
                assert_eq!(event.payload, seq.to_string(), "seed {seed}: {actor}/{seq}");
                match event.kind.as_str() {
                    "send" => sends.push(event.msg_id.clone().unwrap()),
                    "receive" => receives.push(event.msg_id.clone().unwrap()),
                    _ => {}
                }
            }
        }
        assert_eq!(sends, receives, "seed {seed}: the n-th message received is the n-th sent");
    }
}

/// Lines of two streams as containerd writes them, cut and interleaved: each is whole and counted once, wherever the daemon was killed.
#[test]
fn lines_that_a_runtime_has_cut_are_whole_however_the_daemon_is_killed() {
    let mapping = "name = \"m\"\ndescription = \"d\"\n[input]\ncontainer = \"text\"\npatterns = ['^(?<text>.*)$']\n\
                   [event]\nactor = \"{wrapper_stream}\"\npayload = \"{text}\"\ntime = \"{wrapper_time}\"\n";
    let mut random = Random::new(11);
    let mut case = Case::of_source(mapping, "", "wrapper = \"cri\"");
    let mut counts = [0u64; 2];
    for _ in 0..30 {
        // Of each stream the n-th line says n, so its position must be n.
        let mut pieces = [Vec::new(), Vec::new()];
        for _ in 0..1 + random.below(30) {
            let of = random.below(2) as usize;
            counts[of] += 1;
            let (text, stream) = (format!("line {}", counts[of]), ["stdout", "stderr"][of]);
            let cut = random.below(text.len() as u64 + 1) as usize;
            let parts = if random.below(3) == 0 {
                vec![("P", &text[..cut]), ("F", &text[cut..])]
            } else {
                vec![("F", &text[..])]
            };
            pieces[of].extend(
                parts.iter().map(|(tag, part)| format!("2024-05-01T10:00:00Z {stream} {tag} {part}\n")),
            );
        }
        let mut pieces = pieces.map(Vec::into_iter);
        let mut text = String::new();
        while pieces.iter().any(|pieces| pieces.len() > 0) {
            text.extend(pieces[random.below(2) as usize].next());
        }
        let (first, second) = text.split_at(random.below(text.len() as u64) as usize);
        case.append(first);
        if random.below(3) == 0 {
            thread::sleep(Duration::from_millis(random.below(80)));
            case.daemon.kill();
            case.append(second);
            case.daemon.start();
        } else {
            case.append(second);
        }
    }
    let found = case.finish(counts.iter().sum());
    for (stream, count) in ["stdout", "stderr"].iter().zip(counts) {
        let events = &found[*stream];
        assert_eq!(events.len() as u64, count, "{stream}");
        for (seq, event) in events {
            assert_eq!(event.payload, format!("line {seq}"), "{stream}/{seq}");
        }
    }
}

#[test]
fn a_record_of_several_lines_is_whole_however_the_daemon_is_killed() {
    let mut random = Random::new(7);
    let mut case = Case::start(RECORDS);
    let mut expected = Vec::new();
    for _ in 0..20 {
        for _ in 0..1 + random.below(10) {
            let n = expected.len() + 1;
            let more: String = (0..random.below(4)).map(|i| format!("\n  line {i} of {n}")).collect();
            let payload = format!("record {n}{more}");
            let text = format!("# a\n{payload}\n");
            let (first, second) = text.split_at(random.below(text.len() as u64) as usize);
            case.append(first);
            if random.below(6) == 0 {
                thread::sleep(Duration::from_millis(random.below(80)));
                case.daemon.kill();
                case.append(second);
                case.daemon.start();
            } else {
                case.append(second);
            }
            expected.push(payload);
        }
    }
    // The last record may have more lines; it is taken as it is after some quiet seconds.
    let found = case.finish(expected.len() as u64);
    let got: Vec<&str> = found["a"].values().map(|event| event.payload.as_str()).collect();
    assert_eq!(got, expected);
    assert_eq!(
        found["a"].keys().copied().collect::<Vec<_>>(),
        (1..=expected.len() as u64).collect::<Vec<_>>()
    );
}

#[test]
fn files_of_before_are_read_in_the_order_in_which_they_were_written() {
    let mut case = Case::start(LINES);
    case.daemon.kill();
    // Their names say the opposite of their times.
    for (n, name) in ["app.log.2", "app.log.1", "app.log"].into_iter().enumerate() {
        let text: String = (1..=500).map(|i| format!("a does {}\n", n * 500 + i)).collect();
        fs::write(case.dir.path().join("logs").join(name), text).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    case.daemon.start();
    let found = case.finish(1500);
    assert!(found["a"].iter().all(|(seq, event)| event.payload == seq.to_string()));
    assert_eq!(found["a"].len(), 1500);
}

#[test]
fn a_large_file_is_read_in_pieces_and_no_record_is_cut() {
    // Slowed down, so that the file has long been quiet when its last pieces are read.
    let mut case = Case::start_with(RECORDS, "bytes_per_sec = 300000");
    let filler = "z".repeat(700);
    let records: Vec<String> = (1..=4000).map(|n| format!("record {n}\n  {filler}\n  end of {n}")).collect();
    let text: String = records.iter().map(|record| format!("# a\n{record}\n")).collect();
    case.append(&text);
    thread::sleep(Duration::from_secs(3));
    case.daemon.kill();
    case.daemon.start();
    let found = case.finish(4000);
    assert_eq!(found["a"].len(), 4000);
    for (seq, event) in &found["a"] {
        assert_eq!(event.payload, records[*seq as usize - 1]);
    }
}

#[test]
fn files_of_equal_content_are_not_one_where_their_names_tell_the_actor() {
    let mut case = Case::start(NAMES);
    let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    for name in ["one", "two", "three"] {
        fs::write(case.dir.path().join(format!("logs/{name}.log")), &text).unwrap();
        thread::sleep(Duration::from_millis(150));
        case.daemon.kill();
        case.daemon.start();
    }
    let found = case.finish(300);
    for name in ["one", "two", "three"] {
        let got: String = found[name].values().map(|event| format!("{}\n", event.payload)).collect();
        assert_eq!(got, text, "{name}");
    }
}

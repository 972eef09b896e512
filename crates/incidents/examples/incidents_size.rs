//! How long the journal of many incidents takes to open and to show, and how much memory it needs.
//!
//! `cargo run --release -p demi-incidents --example incidents_size -- FOLDER [INCIDENTS] [BUGS]` writes the journal where there is none in the folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use demi_incidents::class::Keys;
use demi_incidents::decide::{self, Seen};
use demi_incidents::event::{Event, Findings, Opened, Outcome, Output, Source, Stage};
use demi_incidents::view::Filter;
use demi_incidents::{IncidentId, Journal, LocalFolder, Objects, hex_of, page};

/// Packs that are written at a time.
const PACKS: usize = 100;
/// Bytes of a block of a disk.
const BLOCK: u64 = 4096;

/// A folder that is not synced: the journal is only there to be read.
#[derive(Clone)]
struct Quick(PathBuf);

impl Objects for Quick {
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.replace(name, bytes).map(|()| true)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        LocalFolder::new(self.0.clone()).read(name)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        std::fs::write(path, bytes)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        LocalFolder::new(self.0.clone()).remove(name)
    }

    fn sync(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        LocalFolder::new(self.0.clone()).list(folder)
    }
}

fn keys(incident: u64, bug: u64, of: &str) -> Keys {
    let text = |part: &str, n: u64| hex_of(&[of, part, &n.to_string()]);
    let item = |n: u64| (text("step", bug * 100 + n)[..12].to_owned(), 1);
    Keys {
        exact: text("exact", incident),
        shape: text("shape", incident / 2),
        profile: text("profile", bug),
        approximate: false,
        bag: (0..26).map(item).collect(),
    }
}

fn findings(incident: u64, bug: u64) -> Findings {
    let step = |n: u64| {
        format!(
            "{n}. **raft-member-{}** takes from raft-member-{} VoteCandidate(Term({incident})) (from step {})\n\
             role: Candidate → Leader\nsends to raft-member-1: AppendEntries(Term({incident}), 1, 0)\nwithout it the invariant holds",
            n % 4,
            (n + 1) % 4,
            n - 1
        )
    };
    let output = |n: u64| Output {
        name: format!("minimized-{}/file-{n}.json", hex_of(&[&incident.to_string()])),
        digest: hex_of(&[&n.to_string()]),
    };
    Findings {
        size: [26, 22, 8],
        initial: [677, 673, 8],
        reduced_steps: Some(28),
        violation: vec![format!("ElectionSafety-{bug}:raft-member-3:raft-member-4")],
        network: "fifo".to_owned(),
        proven: "No execution with these external events is shorter: an exhaustive search found none."
            .to_owned(),
        verified: true,
        at_least: Some(22),
        model: "raft".to_owned(),
        model_digest: hex_of(&["model"]),
        keys: Some(keys(incident, bug, "shortest")),
        reduced_keys: Some(keys(incident, bug, "reduced")),
        story: (1..=26).map(step).collect(),
        outputs: (0..9).map(output).collect(),
        ..Findings::default()
    }
}

fn write(folder: &Path, incidents: u64, bugs: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut journal = Journal::open(Quick(folder.to_owned()), "size")?;
    for n in 0..incidents {
        let bug = n % bugs;
        let id = IncidentId::of(&["size", &n.to_string()]);
        let mut opened = Opened::new(id, Source::Record { event: format!("_monitor/{n}") }, "prod");
        opened.invariant = format!("ElectionSafety-{bug}");
        opened.fingerprints = vec![format!("ElectionSafety-{bug}:raft-member-3:raft-member-4")];
        opened.affected = vec!["raft-member-3".to_owned(), "raft-member-4".to_owned()];
        opened.at = vec![format!("raft-member-3/{n}"), format!("raft-member-4/{n}")];
        opened.version = Some(format!("1.4.{}", n / 1000));
        let found = findings(n, bug);
        let stage = |stage, findings: Option<&Findings>| Event::Stage {
            id,
            attempt: 1,
            stage,
            seconds: 1.5,
            outputs: Vec::new(),
            findings: findings.map(|found| Box::new(found.clone())),
        };
        let events = [
            Event::Opened(Box::new(opened)),
            Event::Claimed { id, attempt: 1, worker: "size".to_owned() },
            stage(Stage::Replaying, None),
            stage(Stage::Reducing, None),
            stage(Stage::Minimizing, Some(&found)),
            stage(Stage::Classifying, Some(&found)),
            stage(Stage::Reporting, None),
            Event::Done { id, attempt: 1, outcome: Outcome::Minimized, findings: Box::new(found.clone()) },
        ];
        for event in events {
            journal.commit(|state| if state.allows(&event) { vec![event.clone()] } else { Vec::new() })?;
        }
        while journal.commit(decide::groupings)?.is_some() {}
    }
    while journal.pack(PACKS)? > 0 {}
    Ok(())
}

/// Bytes of a folder, in blocks of a disk.
fn on_disk(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata()? {
            meta if meta.is_dir() => on_disk(&entry.path())?,
            meta => meta.len().div_ceil(BLOCK) * BLOCK,
        };
    }
    Ok(bytes)
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0) / 1024
}

/// The longest of some runs.
fn longest<T>(mut run: impl FnMut() -> T) -> Duration {
    let of = |_| {
        let began = Instant::now();
        std::hint::black_box(run());
        began.elapsed()
    };
    (0..20).map(of).max().unwrap_or_default()
}

#[allow(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("name a folder")?);
    let incidents = args.next().map_or(Ok(10_000), |n| n.parse())?;
    let bugs = args.next().map_or(Ok(300), |n| n.parse())?;
    if !folder.join("journal").is_dir() {
        let began = Instant::now();
        write(&folder, incidents, bugs)?;
        println!("written in {:.1} s; start again to measure", began.elapsed().as_secs_f64());
        return Ok(());
    }
    let before = resident();
    let began = Instant::now();
    let journal = Journal::open(LocalFolder::new(folder.clone()), "size")?;
    println!("opened in {:.3} s", began.elapsed().as_secs_f64());
    println!("{} MiB on the disk", on_disk(&folder)? >> 20);
    println!("{} MiB more than before", resident().saturating_sub(before));
    let state = journal.state();
    println!("{} entries, {} incidents, {} bugs", state.last(), state.incidents().len(), state.bugs().len());
    let filter = Filter::default();
    let mut figures: BTreeMap<&str, Duration> = BTreeMap::new();
    figures.insert("list of bugs", longest(|| page::bugs(&state, &filter, 0)));
    figures.insert("list of incidents", longest(|| page::incidents(&state, &filter, None)));
    let stands = state.bug(1).map(|(_, bug)| bug.representative()).ok_or("no bug")?;
    drop(state);
    let bug = || -> Result<Option<String>, demi_incidents::JournalError> {
        let story = journal.story(stands)?;
        Ok(page::bug(&journal.state(), 1, &story))
    };
    figures.insert("page of a bug", longest(bug));
    let state = journal.state();
    let quiet = longest(|| decide::housekeeping(&state, &Seen::default(), &[]));
    figures.insert("decision that nothing is to do", quiet);
    let event = Event::Noted { bug: 1, by: String::new(), text: "x".to_owned() };
    figures.insert("whether a note is allowed", longest(|| state.allows(&event)));
    for (what, time) in figures {
        println!("{what}: {:.3} ms, the longest of 20", time.as_secs_f64() * 1000.0);
    }
    println!("list of bugs: {} KiB", page::bugs(&state, &filter, 0).len() / 1024);
    Ok(())
}

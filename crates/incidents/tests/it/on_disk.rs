//! The journal in a folder: threads, damage, snapshots.

use demi_incidents::decide::groupings;
use demi_incidents::event::{Event, Findings, Opened, Outcome, Source};
use demi_incidents::forget::{of_system, purge};
use demi_incidents::retention::sweep;
use demi_incidents::{IncidentId, Journal, JournalError, LocalFolder, Objects, Place, Rhythm};

use crate::disk::Disk;

fn open_one<O: Objects>(journal: &mut Journal<O>, n: usize) -> Result<Option<u64>, JournalError> {
    let opened = Opened::new(IncidentId::of(&[&n.to_string()]), Source::Command, "s");
    journal.commit(|state| {
        let new = !state.incidents().contains_key(&opened.id);
        if new { vec![Event::Opened(Box::new(opened.clone()))] } else { Vec::new() }
    })
}

#[test]
fn threads_that_write_at_once_leave_no_gap_and_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let each = 20;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let root = dir.path().to_owned();
            scope.spawn(move || {
                let mut journal = Journal::open(LocalFolder::new(root), format!("t{thread}")).unwrap();
                for n in 0..each {
                    // Half of what they open is the same.
                    open_one(&mut journal, if n % 2 == 0 { n } else { n + each * thread }).unwrap();
                }
            });
        }
    });
    let journal = Journal::open(LocalFolder::new(dir.path().to_owned()), "reader").unwrap();
    assert_eq!(journal.state().incidents().len(), 10 + 4 * 10);
    assert_eq!(journal.state().last(), 50);
    let files = std::fs::read_dir(dir.path().join("journal")).unwrap().count();
    assert_eq!(files, 50, "nothing is left behind");
}

#[test]
fn a_damaged_entry_stops_everybody_before_it() {
    let disk = Disk::default();
    let mut journal = Journal::open(disk.clone(), "a").unwrap();
    for n in 0..5 {
        open_one(&mut journal, n).unwrap();
    }
    let name = "journal/00000000000000000003.json";
    let whole = disk.read(name).unwrap().unwrap();
    // The last line end is no part of what was said.
    for at in 0..whole.len() - 1 {
        disk.damage(name, |bytes| bytes.truncate(at));
        assert!(
            matches!(Journal::open(disk.clone(), "b"), Err(JournalError::Damaged { n: 3, .. })),
            "cut at {at}"
        );
        disk.damage(name, |bytes| bytes.clone_from(&whole));
        disk.damage(name, |bytes| bytes[at] ^= 1);
        let opened = Journal::open(disk.clone(), "b");
        // A change behind the digest changes nothing that was said.
        let same = opened.as_ref().is_ok_and(|b| *b.state() == *journal.state());
        assert!(same || matches!(opened, Err(JournalError::Damaged { n: 3, .. })), "byte {at}");
        disk.damage(name, |bytes| bytes.clone_from(&whole));
    }
    assert!(Journal::open(disk, "b").is_ok());
}

#[test]
fn an_entry_of_a_later_version_is_refused_and_an_unknown_event_is_kept() {
    let disk = Disk::default();
    let write = |n: u64, line: &str| {
        let sum = demi_incidents_sum(line);
        assert!(
            disk.create(&format!("journal/{n:020}.json"), format!("{line}\n{sum}\n").as_bytes()).unwrap()
        );
    };
    write(
        1,
        r#"{"v":1,"n":1,"by":"later","tag":"t","at":"","events":[{"e":"sung","song":"x"},{"e":"watched","version":3}]}"#,
    );
    let journal = Journal::open(disk.clone(), "a").unwrap();
    assert_eq!((journal.state().watched(), journal.state().left_out()), (3, (0, 1)));
    write(2, r#"{"v":2,"n":2,"by":"later","tag":"t","at":"","events":[]}"#);
    assert!(matches!(Journal::open(disk, "a"), Err(JournalError::Newer { n: 2, found: 2 })));
}

fn demi_incidents_sum(line: &str) -> String {
    format!(r#"{{"blake3":"{}"}}"#, blake3::hash(line.as_bytes()).to_hex())
}

#[test]
fn a_snapshot_says_what_the_journal_says() {
    let disk = Disk::default();
    let mut journal = Journal::open(disk.clone(), "a").unwrap();
    for n in 0..usize::try_from(2 * Rhythm::default().snapshot + 10).unwrap() {
        open_one(&mut journal, n).unwrap();
    }
    let snapshots = disk.list("snapshot").unwrap();
    assert_eq!(snapshots.len(), 2);
    let with = Journal::open(disk.clone(), "b").unwrap();
    assert_eq!(*with.state(), *journal.state());
    // A damaged one is as good as none.
    for name in snapshots {
        disk.damage(&format!("snapshot/{name}"), |bytes| bytes.truncate(40));
    }
    assert_eq!(*Journal::open(disk, "b").unwrap().state(), *journal.state());
}

/// What is forgotten is in no object, who had read it before knows as little of it as who reads anew, and nothing else changes.
#[test]
fn what_is_forgotten_is_forgotten_by_everybody() {
    let disk = Disk::default();
    let place = tempfile::tempdir().unwrap();
    let place = Place::of(place.path());
    let mut journal = Journal::open(disk.clone(), "a").unwrap();
    let mut reader = Journal::open(disk.clone(), "b").unwrap();
    let ids: Vec<IncidentId> = (0..6).map(|n: u32| IncidentId::of(&[&n.to_string()])).collect();
    for (n, id) in ids.iter().enumerate() {
        let mut opened = Opened::new(*id, Source::Command, if n % 2 == 0 { "zebra" } else { "lion" });
        let of = &opened.system;
        (opened.invariant, opened.affected) = (format!("I-{of}"), vec![of.clone()]);
        let text = opened.system.clone();
        let findings = Findings {
            symptom: if n < 3 { "x".to_owned() } else { text.clone() },
            doubts: vec![text.clone()],
            story: vec![text.clone()],
            violation: vec![text.clone()],
            ..Findings::default()
        };
        let id = *id;
        let events = vec![
            Event::Opened(Box::new(opened)),
            Event::Claimed { id, attempt: 1, worker: "w".to_owned() },
            Event::Done { id, attempt: 1, outcome: Outcome::Diverged, findings: Box::new(findings) },
        ];
        let mut left = Some(events);
        journal.commit(|_| left.take().unwrap_or_default()).unwrap();
        while journal.commit(groupings).unwrap().is_some() {}
        let (bug, by) = (journal.state().incidents()[&id].bug().unwrap(), "somebody".to_owned());
        journal.say(Event::Noted { bug, by, text }).unwrap();
    }
    // One bug has incidents of both.
    journal.say(Event::Merged { bug: 2, into: 1, by: "somebody".to_owned() }).unwrap();
    reader.follow().unwrap();
    let holds = |text: &str| {
        let names = disk.list("journal").unwrap();
        let has = |name: &String| {
            let bytes = disk.read(&format!("journal/{name}")).unwrap().unwrap();
            String::from_utf8(bytes).unwrap().contains(text)
        };
        names.iter().filter(|name| has(name)).count()
    };
    let lions = holds("lion");
    let names = disk.list("journal").unwrap().into_iter();
    let read = |name: String| (name.clone(), disk.read(&format!("journal/{name}")).unwrap().unwrap());
    let before: Vec<(String, Vec<u8>)> = names.map(read).collect();
    assert!(holds("zebra") >= 3);
    let zebras = of_system(&journal.state(), "zebra");
    assert_eq!(zebras.len(), 3);
    purge(&mut journal, &place, &zebras, "somebody").unwrap();
    purge(&mut journal, &place, &zebras, "somebody").unwrap();
    reader.follow().unwrap();
    let anew = Journal::open(disk.clone(), "c").unwrap();
    for state in [journal.state(), reader.state(), anew.state()] {
        let lion = |id: &&IncidentId| state.incidents()[*id].opened().system == "lion";
        assert_eq!(ids.iter().filter(lion).count(), 3);
        assert!(of_system(&state, "zebra").is_empty());
    }
    assert_eq!(reader.state().incidents(), anew.state().incidents());
    assert_eq!(reader.state().bugs(), anew.state().bugs());
    // Of a bug with others, people's notes stay; all else is gone.
    let noted =
        |state: &demi_incidents::State| format!("{:?}", state.bugs()[&1].history()).contains("noted: zebra");
    assert!(noted(&reader.state()) && noted(&anew.state()));
    assert_eq!(holds("zebra"), 2, "the notes on the bug that is lions' too");
    assert_eq!(holds("lion"), lions);
    // Somebody who had read an entry before writes it now.
    let (name, bytes) =
        before.iter().find(|(_, bytes)| String::from_utf8_lossy(bytes).contains("I-zebra")).unwrap();
    disk.replace(&format!("journal/{name}"), bytes).unwrap();
    assert_eq!(holds("I-zebra"), 1);
    sweep(&mut reader, &place, u64::MAX).unwrap();
    assert_eq!((holds("I-zebra"), holds("zebra")), (0, 2));
    assert!(!demi_incidents::forget::again(&mut reader).unwrap(), "nothing is left");
}

//! The journal in a folder: threads, damage, snapshots.

use demi_incidents::event::{Event, Opened, Source};
use demi_incidents::journal::SNAPSHOT_EVERY;
use demi_incidents::{IncidentId, Journal, JournalError, LocalFolder, Objects};

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
        let same = opened.as_ref().is_ok_and(|b| b.state() == journal.state());
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
    for n in 0..usize::try_from(2 * SNAPSHOT_EVERY + 10).unwrap() {
        open_one(&mut journal, n).unwrap();
    }
    let snapshots = disk.list("snapshot").unwrap();
    assert_eq!(snapshots.len(), 2);
    let with = Journal::open(disk.clone(), "b").unwrap();
    assert_eq!(with.state(), journal.state());
    // A damaged one is as good as none.
    for name in snapshots {
        disk.damage(&format!("snapshot/{name}"), |bytes| bytes.truncate(40));
    }
    assert_eq!(Journal::open(disk, "b").unwrap().state(), journal.state());
}

//! Entries that are packed say what they said, whoever is killed when.

use std::collections::BTreeMap;

use demi_incidents::event::{Entry, Event, Opened, Source, Told};
use demi_incidents::forget::{of_system, purge};
use demi_incidents::{IncidentId, Journal, Objects, Place, Rhythm, State};

use crate::disk::Disk;

const RHYTHM: Rhythm = Rhythm { snapshot: 7, pack: 5 };
/// The same, of which nothing is ever packed.
const UNPACKED: Rhythm = Rhythm { pack: 1 << 40, ..RHYTHM };
const LAST: u64 = 40;
/// Packs end before the last snapshot but one, which is after entry 28.
const PACKED: u64 = 25;

fn open(disk: &Disk) -> Journal<Disk> {
    Journal::open_with(disk.clone(), "reader", RHYTHM).unwrap()
}

fn write(journal: &mut Journal<Disk>, n: u64) -> Option<u64> {
    let system = if n.is_multiple_of(3) { "zebra" } else { "lion" };
    let opened = Opened::new(IncidentId::of(&[&n.to_string()]), Source::Command, system);
    journal.commit(|_| vec![Event::Opened(Box::new(opened.clone()))]).unwrap()
}

/// A journal of which nothing is packed.
fn unpacked() -> Disk {
    let disk = Disk::default();
    let mut journal = Journal::open_with(disk.clone(), "writer", UNPACKED).unwrap();
    for n in 1..=LAST {
        assert_eq!(write(&mut journal, n), Some(n));
    }
    disk
}

/// All that a journal says: what it comes to, by its snapshots and without them, and each entry.
fn says(disk: &Disk) -> (State, State, Vec<Entry>) {
    let journal = open(disk);
    let entries = (1..=LAST).map(|n| journal.entry(n).unwrap().unwrap()).collect();
    let bare = disk.copy();
    for name in bare.list("snapshot").unwrap() {
        bare.remove(&format!("snapshot/{name}")).unwrap();
    }
    (State::clone(&journal.state()), State::clone(&open(&bare).state()), entries)
}

/// Packs until the power goes, after so many calls; whether it came to the end.
fn pack_for(disk: &Disk, calls: u32) -> bool {
    let journal = open(disk);
    disk.cut_after(calls);
    let ended = journal.pack(usize::MAX).is_ok();
    disk.restart(u64::from(calls));
    ended
}

/// Which entries stand by themselves.
fn singles(disk: &Disk) -> Vec<String> {
    disk.list("journal").unwrap()
}

fn holding(disk: &Disk, text: &str) -> Vec<String> {
    let plain = |name: &str, bytes: Vec<u8>| match name.ends_with(".zst") {
        true => zstd::decode_all(&*bytes).unwrap(),
        false => bytes,
    };
    let holds = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().contains(text);
    let all = disk.all().into_iter();
    all.filter(|(name, bytes)| holds(plain(name, bytes.clone()))).map(|(name, _)| name).collect()
}

#[test]
fn whoever_is_killed_while_packing_loses_and_doubles_nothing() {
    let disk = unpacked();
    let whole = says(&disk);
    let mut calls = 0;
    loop {
        let disk = disk.copy();
        let ended = pack_for(&disk, calls);
        assert_eq!(says(&disk), whole, "killed after {calls} calls");
        assert!(pack_for(&disk, u32::MAX));
        assert_eq!(says(&disk), whole, "killed after {calls} calls, and packed by the next");
        let left: Vec<String> = (PACKED + 1..=LAST).map(|n| format!("{n:020}.json")).collect();
        assert_eq!(singles(&disk), left, "killed after {calls} calls");
        assert_eq!(disk.list("pack").unwrap().len() as u64, PACKED / RHYTHM.pack);
        // Nothing is done again.
        let before = disk.all();
        assert_eq!(open(&disk).pack(usize::MAX).unwrap(), 0);
        assert!(disk.all() == before);
        if ended {
            break;
        }
        calls += 1;
    }
    assert!(calls > 40, "{calls} calls");
}

#[test]
fn what_is_forgotten_is_in_no_pack_whoever_is_killed_when() {
    let place = tempfile::tempdir().unwrap();
    let place = Place::of(place.path());
    let disk = unpacked();
    assert!(!holding(&disk, "zebra").is_empty());
    let forget = |journal: &mut Journal<Disk>| {
        let zebras: Vec<IncidentId> =
            (1..=LAST / 3).map(|n| IncidentId::of(&[&(3 * n).to_string()])).collect();
        purge(journal, &place, &zebras, "somebody")
    };
    let check = |disk: &Disk, when: &str| {
        assert_eq!(holding(disk, "zebra"), [""; 0], "{when}");
        let (state, anew, _) = says(disk);
        assert_eq!(state.incidents(), anew.incidents(), "{when}");
        assert!(of_system(&state, "zebra").is_empty());
        assert_eq!(of_system(&state, "lion").len() as u64, LAST - LAST / 3, "{when}");
    };
    // Who packs is killed, then it is forgotten, then the next packs.
    for calls in 0.. {
        let disk = disk.copy();
        let ended = pack_for(&disk, calls);
        forget(&mut open(&disk)).unwrap();
        check(&disk, &format!("packing was killed after {calls}"));
        disk.restart(u64::from(calls));
        assert!(pack_for(&disk, u32::MAX));
        check(&disk, &format!("packing was killed after {calls}, and packed"));
        if ended {
            break;
        }
    }
    // Who forgets is killed, somebody packs, and it is forgotten again.
    for calls in 0.. {
        let disk = disk.copy();
        pack_for(&disk, 30);
        let mut journal = open(&disk);
        disk.cut_after(calls);
        let ended = forget(&mut journal).is_ok();
        disk.restart(u64::from(calls));
        assert!(pack_for(&disk, u32::MAX));
        forget(&mut open(&disk)).unwrap();
        check(&disk, &format!("forgetting was killed after {calls}"));
        if ended {
            break;
        }
    }
}

/// An entry that is packed leaves its name free. Whoever wanted to write it, and slept, takes that name, and is told that somebody else was faster.
#[test]
fn a_writer_that_slept_while_its_number_was_packed_has_lost() {
    let disk = Disk::default();
    let mut slow = Journal::open_with(disk.clone(), "slow", RHYTHM).unwrap();
    for n in 1..=3 {
        write(&mut slow, n);
    }
    let of = disk.clone();
    disk.before_creation(move || {
        let mut other = Journal::open_with(of.clone(), "other", RHYTHM).unwrap();
        for n in 4..=LAST {
            write(&mut other, n);
        }
        assert!(!singles(&of).contains(&"00000000000000000004.json".to_owned()));
    });
    assert_eq!(write(&mut slow, LAST + 1), Some(LAST + 1));
    let writers = |journal: &Journal<Disk>| -> BTreeMap<String, Vec<u64>> {
        let mut by: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for n in 1..=journal.state().last() {
            by.entry(journal.entry(n).unwrap().unwrap().by).or_default().push(n);
        }
        by
    };
    assert_eq!(writers(&slow)["slow"], [1, 2, 3, LAST + 1]);
    assert_eq!(slow.conflicts(), 1);
    assert_eq!(*open(&disk).state(), *slow.state());
    assert!(!singles(&disk).contains(&"00000000000000000004.json".to_owned()), "it took it back");

    // Killed before that, what it wrote is believed by nobody, and goes with the next packing.
    let disk = Disk::default();
    let mut slow = Journal::open_with(disk.clone(), "slow", RHYTHM).unwrap();
    for n in 1..=3 {
        write(&mut slow, n);
    }
    let of = disk.clone();
    disk.before_creation(move || {
        let mut other = Journal::open_with(of.clone(), "other", RHYTHM).unwrap();
        for n in 4..=LAST {
            write(&mut other, n);
        }
        of.cut_after(3);
    });
    let opened = Opened::new(IncidentId::of(&["late"]), Source::Command, "late");
    assert!(slow.commit(|_| vec![Event::Opened(Box::new(opened.clone()))]).is_err());
    disk.restart(1);
    assert!(singles(&disk).contains(&"00000000000000000004.json".to_owned()));
    let reader = open(&disk);
    assert_eq!(reader.state().last(), LAST);
    let fourth = reader.entry(4).unwrap().unwrap();
    assert_eq!(fourth.by, "other");
    assert!(matches!(&fourth.events[..], [Told::Known(Event::Opened(one))] if one.system == "lion"));
    assert!(pack_for(&disk, u32::MAX));
    assert_eq!(holding(&disk, "late"), [""; 0]);
}

#[test]
fn a_damaged_pack_stops_everybody_before_it() {
    let disk = unpacked();
    assert!(pack_for(&disk, u32::MAX));
    for name in disk.list("snapshot").unwrap() {
        disk.remove(&format!("snapshot/{name}")).unwrap();
    }
    let second = format!("pack/{}", disk.list("pack").unwrap()[1]);
    let whole = disk.read(&second).unwrap().unwrap();
    let says = Journal::open_with(disk.clone(), "b", RHYTHM).unwrap().state().last();
    assert_eq!(says, LAST);
    for at in (0..whole.len()).step_by(3) {
        disk.damage(&second, |bytes| bytes.truncate(at));
        let opened = Journal::open_with(disk.clone(), "b", RHYTHM);
        let told = opened.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.starts_with("entry 6 of the journal is damaged: its pack"), "cut at {at}: {told}");
        disk.damage(&second, |bytes| bytes.clone_from(&whole));
    }
}

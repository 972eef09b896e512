//! What was made of incidents goes where it takes too much room.

use std::fs;
use std::path::Path;

use demi_incidents::class::Keys;
use demi_incidents::decide::groupings;
use demi_incidents::event::{Event, Findings, Input, Opened, Outcome, Source};
use demi_incidents::retention::sweep;
use demi_incidents::{IncidentId, Journal, Place, Work};

use crate::disk::Disk;

const FILE: u64 = 10_000;

fn id(n: u64) -> IncidentId {
    IncidentId::of(&[&n.to_string()])
}

/// An incident of the bug `n % 3`, of which the first is twice as frequent, with a file of its own and a log that two share.
fn incident(journal: &mut Journal<Disk>, place: &Place, n: u64) {
    let bug = [0, 0, 1, 2][usize::try_from(n % 4).unwrap()];
    let mut opened = Opened::new(id(n), Source::Command, "s");
    let upload = format!("log{}", n / 2);
    fs::create_dir_all(place.uploads().join(&upload)).unwrap();
    fs::write(place.uploads().join(&upload).join("log"), vec![0; 1000]).unwrap();
    opened.input = Input::Logs { upload, mapping: None };
    let keys = Keys {
        exact: format!("{bug}"),
        shape: format!("{bug}"),
        profile: format!("{bug}"),
        ..Keys::default()
    };
    let findings = Findings { size: [20 - n / 100, 1, 1], keys: Some(keys), ..Findings::default() };
    let (id, outcome) = (id(n), Outcome::Minimized);
    let events = vec![
        Event::Opened(Box::new(opened)),
        Event::Claimed { id, attempt: 1, worker: "w".to_owned() },
        Event::Done { id, attempt: 1, outcome, findings: Box::new(findings) },
    ];
    let mut left = Some(events);
    journal.commit(|_| left.take().unwrap_or_default()).unwrap();
    while journal.commit(groupings).unwrap().is_some() {}
    fs::create_dir_all(place.data(id)).unwrap();
    fs::write(place.data(id).join("page.html"), vec![0; usize::try_from(FILE).unwrap()]).unwrap();
}

fn taken(folder: &Path) -> u64 {
    let of = |entry: fs::DirEntry| match entry.metadata().unwrap() {
        meta if meta.is_dir() => taken(&entry.path()),
        meta => meta.len(),
    };
    fs::read_dir(folder).map_or(0, |entries| entries.map(|entry| of(entry.unwrap())).sum())
}

#[test]
fn what_takes_too_much_goes_and_what_stands_for_a_bug_stays() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::of(dir.path());
    let mut journal = Journal::open(Disk::default(), "a").unwrap();
    let most = 30 * FILE;
    for n in 0..200 {
        incident(&mut journal, &place, n);
        sweep(&mut journal, &place, most).unwrap();
        assert!(taken(place.root()) <= most, "after {n}");
        let state = journal.state();
        for bug in state.bugs().values() {
            assert!(place.data(bug.representative()).join("page.html").is_file(), "after {n}");
        }
    }
    let state = journal.state();
    assert_eq!(state.bugs().values().filter(|bug| bug.status().is_open()).count(), 3);
    let gone = |one: &&demi_incidents::Incident| one.work() == Work::Gone;
    let gone = state.incidents().values().filter(gone).count();
    assert!((160..190).contains(&gone), "{gone}");
    // The newest stay, and each has its log.
    for n in 197..200 {
        assert!(place.data(id(n)).is_dir() && place.uploads().join(format!("log{}", n / 2)).is_dir());
    }
    // Whoever was killed before the files went leaves them to the next.
    let left = state.incidents().iter().find(|(_, one)| one.work() == Work::Gone).map(|(id, _)| *id).unwrap();
    fs::create_dir_all(place.data(left)).unwrap();
    assert_eq!(sweep(&mut journal, &place, most).unwrap(), 0);
    assert!(!place.data(left).exists());
    // With less room than what has to stay, that stays.
    drop(state);
    sweep(&mut journal, &place, 1).unwrap();
    let state = journal.state();
    let kept = state.incidents().values().filter(|one| place.data(one.opened().id).is_dir()).count();
    assert_eq!(kept, 3);
    assert!(state.bugs().values().all(|bug| place.data(bug.representative()).is_dir()));
}

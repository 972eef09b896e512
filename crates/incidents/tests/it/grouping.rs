//! Which incidents are one bug: by keys, by cause, by likeness, and what people have said.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use demi_incidents::class::{self, Keys, Point};
use demi_incidents::event::{Event, Findings, Opened, Outcome, Source};
use demi_incidents::{IncidentId, Journal, Work, decide};

use crate::disk::Disk;

/// A journal into which incidents come that are done at once.
struct Bugs(Journal<Disk>);

impl Bugs {
    fn new() -> Self {
        Bugs(Journal::open(Disk::default(), "test".to_owned()).unwrap())
    }

    fn write(&mut self, event: Event) {
        assert!(self.0.commit(|_| vec![event.clone()]).unwrap().is_some());
    }

    /// Opens an incident.
    fn open(&mut self, name: &str, invariant: &str) -> IncidentId {
        let mut opened = Opened::new(IncidentId::of(&[name]), Source::Command, "demo".to_owned());
        opened.invariant = invariant.to_owned();
        let id = opened.id;
        self.write(Event::Opened(Box::new(opened)));
        id
    }

    /// Says what came of the work on one, and decides which bug it is.
    fn done(&mut self, id: IncidentId, findings: Findings) -> u32 {
        let attempt = self.0.state().incidents()[&id].attempt() + 1;
        self.write(Event::Claimed { id, attempt, worker: "w".to_owned() });
        let findings = Box::new(findings);
        self.write(Event::Done { id, attempt, outcome: Outcome::Minimized, findings });
        while self.0.commit(decide::groupings).unwrap().is_some() {}
        assert!(self.0.state().ungrouped().is_empty());
        self.bug(id)
    }

    fn add(&mut self, name: &str, invariant: &str, findings: Findings) -> u32 {
        let id = self.open(name, invariant);
        self.done(id, findings)
    }

    /// The bug of an incident, where it is now.
    fn bug(&self, id: IncidentId) -> u32 {
        let state = self.0.state();
        state.bug(state.incidents()[&id].bug().unwrap()).unwrap().0
    }

    fn why(&self, name: &str) -> String {
        self.0.state().incidents()[&IncidentId::of(&[name])].why().to_owned()
    }
}

/// Keys of a run in which one actor takes messages of these types.
fn keys(types: &[&str]) -> Keys {
    let point = |type_: &&str| Point {
        kind: "deliver".into(),
        type_: (*type_).to_owned(),
        actor: "a".into(),
        ..Point::default()
    };
    class::keys(&types.iter().map(point).collect::<Vec<_>>())
}

fn findings(shortest: &[&str], cause: &[&str]) -> Findings {
    Findings {
        model: "m".to_owned(),
        keys: Some(keys(shortest)),
        cause: cause.iter().map(|name| (*name).to_owned()).collect(),
        ..Findings::default()
    }
}

#[test]
fn equal_schedules_of_two_invariants_are_two_bugs_and_each_is_known_again() {
    let mut bugs = Bugs::new();
    let of = || findings(&["A", "B"], &[]);
    let first = bugs.add("1", "X:a:b", of());
    let second = bugs.add("2", "Y", of());
    assert_ne!(first, second);
    assert_eq!(bugs.add("3", "X:b:c", of()), first);
    assert_eq!(bugs.add("4", "Y", of()), second);
    assert_eq!(bugs.why("4"), "same execution");
    let other = Findings { model: "n".to_owned(), ..of() };
    assert_ne!(bugs.add("5", "X", other), first);
}

#[test]
fn what_one_repair_ends_is_one_bug() {
    let mut bugs = Bugs::new();
    let first = bugs.add("1", "X", findings(&["A"], &["common", "one"]));
    // A part of it does, whatever the invariant.
    assert_eq!(bugs.add("2", "Y", findings(&["B"], &["one"])), first);
    assert!(bugs.why("2").starts_with("same repair: it needs one"), "{}", bugs.why("2"));
    // What two defects have in common is not all that either needs.
    let second = bugs.add("3", "X", findings(&["C"], &["common", "other", "two"]));
    assert_ne!(second, first);
    assert_ne!(bugs.add("4", "X", findings(&["D"], &["common", "other", "three"])), second);
    // Where all of a part that is needed alone is another's, both are that one.
    assert_eq!(bugs.add("5", "X", findings(&["E"], &["two"])), second);
    // The same profile, and another repair.
    assert_ne!(bugs.add("7", "X", findings(&["A", "G"], &["seven"])), first);
    let other = bugs.add("8", "X", findings(&["G", "A"], &["eight"]));
    assert_ne!(other, bugs.bug(IncidentId::of(&["7"])));
}

#[test]
fn likeness_joins_and_names_the_nearest() {
    let mut bugs = Bugs::new();
    let long = ["A", "A", "A", "A", "B", "B", "B", "B", "C", "C"];
    let first = bugs.add("1", "X", findings(&long, &[]));
    let mut more = long.to_vec();
    more.push("D");
    assert_eq!(bugs.add("2", "X", findings(&more, &[])), first);
    assert!(bugs.why("2").starts_with("alike: 9"), "{}", bugs.why("2"));
    assert_ne!(bugs.add("3", "X", findings(&long[..5], &[])), first);
    assert!(bugs.why("3").contains(&format!("the nearest is B-{first}, 50 % alike")), "{}", bugs.why("3"));
    // Nor does likeness say anything against causes.
    bugs.add("4", "Y", findings(&long, &["one"]));
    assert_ne!(
        bugs.add("5", "Y", findings(&more, &["two"])),
        bugs.bug(IncidentId::of(&["4"])),
        "{}",
        bugs.why("5")
    );
}

#[test]
fn what_happened_reduced_counts_as_well_as_the_shortest_way() {
    let mut bugs = Bugs::new();
    let of = |shortest: &[&str], reduced: &[&str]| Findings {
        reduced_keys: Some(keys(reduced)),
        ..findings(shortest, &[])
    };
    let first = bugs.add("1", "X", of(&["A"], &["A", "B", "C"]));
    assert_eq!(bugs.add("2", "X", of(&["D", "E"], &["C", "B", "A"])), first);
    let other = bugs.add("3", "X", of(&["F"], &["G"]));
    assert_ne!(other, first);
    // One that has keys of both makes them one.
    assert_eq!(bugs.add("4", "X", of(&["D", "E"], &["G"])), first);
    assert_eq!(bugs.bug(IncidentId::of(&["3"])), first);
    assert_eq!(bugs.0.state().bugs().values().filter(|bug| bug.status().is_open()).count(), 1);
}

#[test]
fn a_shorter_schedule_that_comes_later_joins_what_it_shows_to_be_one() {
    let mut bugs = Bugs::new();
    let first = bugs.add("1", "X", findings(&["A"], &[]));
    let id = bugs.open("2", "X");
    let second = bugs.done(id, findings(&["B", "C", "D"], &[]));
    assert_ne!(first, second);
    bugs.write(Event::Retry { id, by: "me".to_owned() });
    assert_eq!(bugs.done(id, findings(&["A"], &[])), first);
    // Its longer schedule is known still.
    assert_eq!(bugs.add("3", "X", findings(&["B", "C", "D"], &[])), first);
}

#[test]
fn what_people_have_split_stays_apart() {
    let mut bugs = Bugs::new();
    let first = bugs.add("1", "X", findings(&["A"], &["one"]));
    let id = bugs.open("2", "X");
    assert_eq!(bugs.done(id, findings(&["B", "C"], &["one"])), first);
    bugs.write(Event::Split { bug: first, ids: vec![id], by: "me".to_owned() });
    let second = bugs.bug(id);
    assert_ne!(second, first);
    bugs.add("3", "X", findings(&["B", "C"], &["one"]));
    assert_eq!(bugs.bug(IncidentId::of(&["1"])), first);
    assert_eq!(bugs.bug(id), second, "nobody merged them");
}

/// Pairs of incidents: of one defect and one bug, of two defects and one bug, of one defect and two bugs.
#[derive(Default)]
struct Pairs {
    right: u32,
    wrong: u32,
    missed: u32,
}

/// Results of `minimize` in a folder, as `DEFECT/SEED/reduced` and `DEFECT/SEED/shortest`.
fn results(root: &Path) -> Vec<(String, String, PathBuf)> {
    let names = |folder: &Path| -> Vec<(String, PathBuf)> {
        let mut all: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
            .collect();
        all.sort();
        all
    };
    let mut found = Vec::new();
    for (defect, folder) in names(root) {
        for (seed, folder) in names(&folder) {
            if folder.join("shortest/summary.json").is_file() {
                found.push((defect.clone(), seed, folder));
            }
        }
    }
    // Defects by turns, as they come in.
    found.sort_by(|a, b| (&a.1, &a.0).cmp(&(&b.1, &b.0)));
    found
}

/// How well bugs are told apart, on a folder of results: `DEMI_GROUPING` names it.
#[test]
fn bugs_are_told_apart_on_recorded_results() {
    let Some(root) = std::env::var_os("DEMI_GROUPING") else {
        eprintln!("skipped: DEMI_GROUPING names no folder of results");
        return;
    };
    let results = results(Path::new(&root));
    for with_causes in [false, true] {
        let mut bugs = Bugs::new();
        let (mut nearest, mut asked) = (0, 0);
        let mut truth: Vec<(IncidentId, String, String)> = Vec::new();
        for (defect, seed, folder) in &results {
            let keys =
                |name: &str| class::of_result(&folder.join(name)).ok().map(|points| class::keys(&points));
            let summary = |name: &str| -> demi_schemas::summary::MinimizeSummary {
                serde_json::from_slice(&std::fs::read(folder.join(name).join("summary.json")).unwrap())
                    .unwrap()
            };
            let (reduced, shortest) = (summary("reduced"), summary("shortest"));
            let cause = |needs: Option<demi_schemas::summary::NeededSummary>| -> BTreeSet<String> {
                needs
                    .filter(|needs| needs.sole)
                    .map(|needs| needs.switches.into_iter().collect())
                    .unwrap_or_default()
            };
            let (happened, short) = (cause(reduced.needs), cause(shortest.needs));
            let cause = match happened.is_empty() || (!short.is_empty() && short.is_subset(&happened)) {
                true => short,
                false => happened,
            };
            let found = Findings {
                model: defect.split('-').next().unwrap().to_owned(),
                violation: shortest.violation,
                keys: keys("shortest"),
                reduced_keys: keys("reduced"),
                cause: if with_causes { cause } else { BTreeSet::new() },
                ..Findings::default()
            };
            let invariant = found.violation[0].split(':').next().unwrap().to_owned();
            let id = bugs.open(&format!("{defect}/{seed}"), &invariant);
            // The nearest of what is known, by the defect that most of that bug's incidents are of.
            let known: BTreeSet<&str> =
                truth.iter().filter(|(_, _, i)| *i == invariant).map(|(_, d, _)| d.as_str()).collect();
            if known.len() > 1 && known.contains(defect.as_str()) {
                let near = truth
                    .iter()
                    .filter(|(_, _, other)| *other == invariant)
                    .map(|(id, of, _)| {
                        let state = bugs.0.state();
                        let theirs = state.incidents()[id].findings().keys.as_ref().unwrap();
                        (found.keys.as_ref().unwrap().overlap(theirs), of)
                    })
                    .max_by(|a, b| a.0.total_cmp(&b.0));
                asked += 1;
                nearest += u32::from(near.is_some_and(|(_, of)| of == defect));
            }
            bugs.done(id, found);
            truth.push((id, defect.clone(), invariant));
        }
        let mut pairs = Pairs::default();
        for (at, (a, of, _)) in truth.iter().enumerate() {
            for (b, other, _) in &truth[..at] {
                match (of == other, bugs.bug(*a) == bugs.bug(*b)) {
                    (true, true) => pairs.right += 1,
                    (true, false) => pairs.missed += 1,
                    (false, true) => pairs.wrong += 1,
                    (false, false) => {}
                }
            }
        }
        let part = |of: u32, all: u32| f64::from(of) / f64::from(all.max(1));
        let open = bugs.0.state().bugs().values().filter(|bug| bug.status().is_open()).count();
        eprintln!(
            "causes {with_causes}: {} incidents, {open} bugs, precision {:.3}, recall {:.3}, nearest {nearest} of {asked}",
            truth.len(),
            part(pairs.right, pairs.right + pairs.wrong),
            part(pairs.right, pairs.right + pairs.missed),
        );
        assert!(part(pairs.right, pairs.right + pairs.wrong) >= 0.99, "{} wrong pairs", pairs.wrong);
        assert!(bugs.0.state().incidents().values().all(|one| matches!(one.work(), Work::Done { .. })));
    }
}

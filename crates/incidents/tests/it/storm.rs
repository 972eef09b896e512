//! Thousands of violations of one invariant within a minute, which are of three bugs.

use std::collections::{BTreeMap, BTreeSet};

use demi_incidents::class::Keys;
use demi_incidents::decide::{EXAMINED, Receiver, Seen, Worker, claim, housekeeping};
use demi_incidents::event::{Event, Findings, News, Outcome, Reason};
use demi_incidents::sources::{Record, watched};
use demi_incidents::{IncidentId, Journal, Work, hex_of};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::disk::Disk;

const VIOLATIONS: u64 = 10_000;
/// Violations that come between two turns of whoever works.
const AT_A_TIME: usize = 400;

/// A violation of one invariant in one system.
fn record(seq: u64) -> Record {
    Record {
        system: "prod".to_owned(),
        actor: "_monitor".to_owned(),
        seq,
        fields: Some(r#"{"fingerprints":["OneLeader:a:b"],"affected":["a","b"]}"#.to_owned()),
        ..Record::default()
    }
}

/// What a worker finds out: each bug has several schedules, and bugs share half of their steps.
fn findings(bug: u64, random: &mut StdRng) -> Findings {
    let text = |of: &str, n: u64| hex_of(&[of, &n.to_string()]);
    let schedule = bug * 10 + random.random_range(0..4);
    let common = (0..12).map(|n| (text("common", n), 1));
    let own = (0..12).map(|n| (text("own", bug * 100 + n), 1));
    let keys = Keys {
        exact: text("exact", random.random()),
        shape: text("shape", schedule * 10 + random.random_range(0..3)),
        profile: text("profile", schedule),
        approximate: false,
        bag: common.chain(own).collect(),
    };
    Findings {
        size: [20 + bug, 15, 5],
        model: "raft".to_owned(),
        violation: vec!["OneLeader:a:b".to_owned()],
        keys: Some(keys),
        ..Findings::default()
    }
}

fn receivers() -> Vec<Receiver> {
    vec![Receiver { name: "team".to_owned(), news: News::ALL.into(), systems: Vec::new() }]
}

/// Lets the violations come in, and one worker look at what is decided; `work` says what comes of an incident of a bug.
fn storm(
    mut work: impl FnMut(IncidentId, u32, u64, &mut StdRng) -> Event,
) -> (Journal<Disk>, BTreeMap<IncidentId, u64>) {
    let mut random = StdRng::seed_from_u64(48);
    let mut journal = Journal::open(Disk::default(), "a").unwrap();
    let worker = Worker { name: "w".to_owned(), lease: 1000, settle: 0 };
    let mut truth: BTreeMap<IncidentId, u64> = BTreeMap::new();
    let (mut seen, mut now, mut version) = (Seen::default(), 0, 0);
    let mut left = (0..VIOLATIONS).map(record).collect::<Vec<_>>().into_iter();
    loop {
        let some: Vec<Record> = left.by_ref().take(AT_A_TIME).collect();
        for record in &some {
            truth.insert(record.opened().id, random.random_range(0..3));
        }
        let last = some.is_empty();
        version += u64::from(!last);
        while journal.commit(|state| watched(state, &some, version)).unwrap().is_some() {}
        now += 10_000;
        seen.look(&journal.state(), now, |_, _| 0);
        while journal.commit(|state| housekeeping(state, &seen, &receivers())).unwrap().is_some() {}
        let mut claimed = None;
        journal
            .commit(|state| {
                let found = claim(state, &seen, &worker, |_| true);
                claimed = found.as_ref().and_then(|(id, events)| match events.as_slice() {
                    [Event::Claimed { attempt, .. }] => Some((*id, *attempt)),
                    _ => None,
                });
                found.map(|(_, events)| events).unwrap_or_default()
            })
            .unwrap();
        match claimed {
            Some((id, attempt)) => {
                let event = work(id, attempt, truth[&id], &mut random);
                journal.say(event).unwrap().expect("nobody else works");
                while journal.commit(|state| housekeeping(state, &seen, &receivers())).unwrap().is_some() {}
            }
            None if last => break,
            None => {}
        }
    }
    (journal, truth)
}

/// Incidents of a kind of which one in 2^k is looked at.
fn looked_at() -> usize {
    EXAMINED + (EXAMINED as u64 + 1..=VIOLATIONS).filter(|n| n.is_power_of_two()).count()
}

#[test]
fn a_storm_of_three_bugs_is_three_bugs_and_a_few_messages() {
    let done = |id, attempt, bug, random: &mut StdRng| {
        let findings = Box::new(findings(bug, random));
        Event::Done { id, attempt, outcome: Outcome::Minimized, findings }
    };
    let (journal, truth) = storm(done);
    let state = journal.state();
    assert_eq!((state.incidents().len() as u64, state.left_out()), (VIOLATIONS, (0, 0)));
    let worked = state.incidents().values().filter(|one| matches!(one.work(), Work::Done { .. })).count();
    assert_eq!(worked, looked_at());
    assert!(state.incidents().values().all(|one| !one.work().is_open()));
    let open: Vec<_> = state.bugs().values().filter(|bug| bug.status().is_open()).collect();
    for bug in &open {
        let of: BTreeSet<u64> = bug.incidents().iter().map(|id| truth[id]).collect();
        assert_eq!(of.len(), 1, "bugs that are merged wrongly");
    }
    let found: BTreeSet<u64> = open.iter().flat_map(|bug| bug.incidents()).map(|id| truth[id]).collect();
    assert_eq!((found.len(), open.len()), (3, 3));
    let messages: Vec<&String> = state.deliveries().keys().collect();
    assert!(messages.len() <= 25, "{messages:?}");
    assert!(messages.iter().any(|key| key.contains(".seen.")));
    assert_eq!(messages.iter().filter(|key| key.contains(".ready.")).count(), 3);
}

/// Where the model fails, nobody is told of each violation.
#[test]
fn a_storm_on_a_model_that_fails_is_a_few_messages() {
    let failed = |id, attempt, _, _: &mut StdRng| {
        let said = "no such model".to_owned();
        Event::Failed { id, attempt, reason: Reason::Refused, said }
    };
    let (journal, _) = storm(failed);
    let state = journal.state();
    let failed = state.incidents().values().filter(|one| matches!(one.work(), Work::Failed { .. })).count();
    assert_eq!(failed, looked_at());
    let of = |news: &str| state.deliveries().keys().filter(|key| key.contains(news)).count();
    assert_eq!((of(".seen."), of(".failed."), state.deliveries().len()), (1, 1, 2));
}

//! Random interleavings of writers that open, claim, work, die, and tell.

use std::collections::{BTreeMap, BTreeSet};

use demi_incidents::decide::{self, Receiver, Seen, Worker};
use demi_incidents::event::{Event, Findings, News, Opened, Outcome, Reason, Source, Stage, Told};
use demi_incidents::fold::Sent;
use demi_incidents::{IncidentId, Journal, JournalError, Objects, Rhythm, State, Work};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::disk::Disk;

/// How many steps all runs together take: some thousands, or a million where the environment asks for the long test.
fn steps() -> u64 {
    if std::env::var_os("DEMI_LONG").is_some() { 1_000_000 } else { 20_000 }
}

fn opened(n: u64) -> Opened {
    let mut opened = Opened::new(IncidentId::of(&[&n.to_string()]), Source::Command, format!("s{}", n % 3));
    opened.invariant = format!("I{}", n % 2);
    opened
}

fn receivers() -> Vec<Receiver> {
    let of = |name: &str| Receiver { name: name.into(), news: News::ALL.into(), systems: Vec::new() };
    vec![of("a"), of("b")]
}

/// One process: what it remembers is gone when it is killed.
struct Process {
    journal: Journal<Disk>,
    seen: Seen,
    /// What it works on: the attempt and the stage that it is at.
    holds: Option<(IncidentId, u32, usize)>,
    /// A message that it is sending.
    sends: Option<String>,
}

/// What really happened, which no journal knows.
#[derive(Default)]
struct Truth {
    opened: BTreeSet<IncidentId>,
    /// Publications that were answered with success, by incident.
    published: BTreeMap<IncidentId, Vec<u32>>,
    /// How often a message went out, and how often a process was killed while it was sending one.
    posts: BTreeMap<String, u32>,
    killed_sending: BTreeMap<String, u32>,
    beats: BTreeMap<(IncidentId, u32), u64>,
}

/// Often, so that much of it happens in a short run.
const RHYTHM: Rhythm = Rhythm { snapshot: 11, pack: 5 };
const STAGES: [Stage; 6] = Stage::ALL;

fn worker(name: usize) -> Worker {
    Worker { name: format!("w{name}"), lease: 50, settle: 0 }
}

impl Process {
    fn start(disk: &Disk, name: usize) -> Result<Self, JournalError> {
        Ok(Process {
            journal: Journal::open_with(disk.clone(), format!("p{name}"), RHYTHM)?,
            seen: Seen::default(),
            holds: None,
            sends: None,
        })
    }

    /// One step of the process; an error where the power went.
    fn step(
        &mut self,
        me: usize,
        now: u64,
        random: &mut StdRng,
        truth: &mut Truth,
    ) -> Result<(), JournalError> {
        match random.random_range(0..10) {
            0 => {
                let n = random.random_range(0..40);
                self.journal.commit(|state| {
                    let opened = opened(n);
                    let new = !state.incidents().contains_key(&opened.id);
                    if new { vec![Event::Opened(Box::new(opened))] } else { Vec::new() }
                })?;
                truth.opened.insert(opened(n).id);
            }
            1 => {
                let seen = &self.seen;
                self.journal.commit(|state| decide::housekeeping(state, seen, &receivers()))?;
            }
            2 => self.tell(truth)?,
            3 => {
                self.journal.follow()?;
                let beats = &truth.beats;
                self.seen.look(&self.journal.state(), now, |id, attempt| {
                    beats.get(&(id, attempt)).copied().unwrap_or(0)
                });
            }
            _ => self.work(me, random, truth)?,
        }
        Ok(())
    }

    fn tell(&mut self, truth: &mut Truth) -> Result<(), JournalError> {
        if let Some(key) = self.sends.take() {
            *truth.posts.entry(key.clone()).or_default() += 1;
            self.journal.commit(|state| match state.deliveries()[&key].sent {
                Sent::Sending => vec![Event::Sent { key: key.clone() }],
                _ => Vec::new(),
            })?;
            return Ok(());
        }
        let mut chosen = None;
        self.journal.commit(|state| {
            chosen = state.deliveries().iter().find(|(_, d)| d.sent == Sent::Queued).map(|(k, _)| k.clone());
            chosen.iter().map(|key| Event::Sending { key: key.clone() }).collect()
        })?;
        self.sends = chosen;
        Ok(())
    }

    fn work(&mut self, me: usize, random: &mut StdRng, truth: &mut Truth) -> Result<(), JournalError> {
        let Some((id, attempt, at)) = self.holds else {
            let (seen, mut claimed) = (&self.seen, None);
            self.journal.commit(|state| {
                let found = decide::claim(state, seen, &worker(me), |_| true);
                claimed = found.as_ref().and_then(|(id, events)| match events.as_slice() {
                    [Event::Claimed { attempt, .. }] => Some((*id, *attempt, 0)),
                    _ => None,
                });
                found.map(|(_, events)| events).unwrap_or_default()
            })?;
            self.holds = claimed;
            return Ok(());
        };
        // A worker that is cut off, or hangs, gives no sign.
        if random.random_ratio(7, 8) {
            *truth.beats.entry((id, attempt)).or_default() += 1;
        }
        let holds = |state: &State| {
            let incident = &state.incidents()[&id];
            incident.attempt() == attempt && matches!(incident.work(), Work::Held { .. })
        };
        if let Some(stage) = STAGES.get(at + 1) {
            let mut still = true;
            self.journal.commit(|state| {
                still = holds(state);
                if still { vec![decide::stage(id, attempt, *stage, 1.0)] } else { Vec::new() }
            })?;
            self.holds = still.then_some((id, attempt, at + 1));
            return Ok(());
        }
        let fails = random.random_ratio(1, 6);
        let done = self.journal.commit(|state| match (holds(state), fails) {
            (false, _) => Vec::new(),
            (true, true) => {
                let reason = Reason::ALL[random.random_range(0..Reason::ALL.len())];
                vec![Event::Failed { id, attempt, reason, said: String::new() }]
            }
            (true, false) => {
                let outcome = Outcome::Diverged;
                let findings = Findings {
                    symptom: format!("{}", state.incidents()[&id].entry() % 2),
                    ..Findings::default()
                };
                vec![Event::Done { id, attempt, outcome, findings: Box::new(findings) }]
            }
        })?;
        if done.is_some() && !fails {
            truth.published.entry(id).or_default().push(attempt);
        }
        self.holds = None;
        Ok(())
    }
}

/// What must hold of the journal, whatever happened.
fn check(journal: &Journal<Disk>, truth: &Truth) {
    let state = journal.state();
    let mut folded = State::default();
    let (mut ids, mut published, mut keys) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    let mut sent = BTreeSet::new();
    for n in 1..=state.last() {
        let entry = journal.entry(n).unwrap().expect("no number is missing");
        // Whether an event is valid can be asked before it is written, of a part of the state.
        for event in &entry.events {
            let Told::Known(event) = event else { continue };
            let allowed = folded.allows(event);
            let (mut after, mut one) = (folded.clone(), entry.clone());
            one.events = vec![Told::Known(event.clone())];
            after.apply(&one);
            assert_eq!(allowed, after.left_out().0 == folded.left_out().0, "{event:?}");
        }
        folded.apply(&entry);
        for told in &entry.events {
            match told {
                Told::Known(Event::Opened(opened)) => assert!(ids.insert(opened.id), "opened twice"),
                Told::Known(Event::Done { id, attempt, .. }) => {
                    let before = published.insert(*id, *attempt);
                    assert!(before.is_none(), "{id} is published twice, by {before:?} and {attempt}");
                }
                Told::Known(Event::Queued { key, .. }) => {
                    assert!(keys.insert(key.clone()), "{key} is queued twice")
                }
                Told::Known(Event::Sent { key }) => assert!(sent.insert(key.clone()), "{key} is sent twice"),
                Told::Known(_) => {}
                Told::Unknown(event) => panic!("{event}"),
            }
        }
    }
    assert_eq!(ids.len(), state.incidents().len());
    assert!(truth.opened.is_subset(&ids), "what was answered is there");
    for (id, attempts) in &truth.published {
        assert_eq!(attempts.as_slice(), [published[id]], "who was told that it published has published");
    }
    for (key, posts) in &truth.posts {
        let most = 1 + truth.killed_sending.get(key).copied().unwrap_or(0);
        assert!(*posts <= most, "{key} went out {posts} times");
        assert!(keys.contains(key));
    }
    // What is seen by who has read all is the same as what comes of reading anew: every entry, or what stands behind the last snapshot.
    assert_eq!(folded, *state);
    let disk = journal.objects();
    let anew = || Journal::open_with(disk.clone(), "anew", RHYTHM).unwrap();
    assert_eq!(*anew().state(), *state);
    // Old ones are packed.
    assert!(state.last() < 100 || disk.list("pack").unwrap().len() > 4, "of {} entries", state.last());
    let newest = || disk.list("snapshot").unwrap().pop().map(|name| format!("snapshot/{name}"));
    // With the newest damaged, the one before counts; one of an older program counts as none.
    if let Some(name) = newest() {
        let whole = disk.read(&name).unwrap().unwrap();
        disk.damage(&name, |bytes| bytes.truncate(whole.len() / 2));
        assert_eq!(*anew().state(), *state);
        disk.damage(&name, |bytes| *bytes = of_an_older_program(&whole));
        assert_eq!(*anew().state(), *state);
        disk.remove(&name).unwrap();
        assert_eq!(*anew().state(), *state);
    }
    while let Some(name) = newest() {
        disk.remove(&name).unwrap();
    }
    assert_eq!(*anew().state(), *state);
}

/// A snapshot that says something else, with a digest that is right, as a program wrote it whose entries came to something else.
fn of_an_older_program(snapshot: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(zstd::decode_all(snapshot).unwrap()).unwrap();
    let (_, state) = text.split_once('\n').unwrap();
    let state = state.replace("\"watched\":", "\"watched\":7");
    let sum = format!("{{\"blake3\":\"{}\"}}\n", blake3::hash(state.as_bytes()).to_hex());
    zstd::encode_all((sum + &state).as_bytes(), 3).unwrap()
}

fn run(seed: u64, length: u64) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let disk = Disk::default();
    let workers = random.random_range(1..=8);
    let mut processes: Vec<Process> = (0..workers).map(|n| Process::start(&disk, n).unwrap()).collect();
    let (mut truth, mut now) = (Truth::default(), 0);
    for step in 0..length {
        now += random.random_range(0..6);
        let me = random.random_range(0..workers);
        match random.random_range(0..60) {
            // A kill.
            0 => {
                if let Some(key) = processes[me].sends.take() {
                    // What was being sent may have gone out.
                    *truth.killed_sending.entry(key.clone()).or_default() += 1;
                    if random.random() {
                        *truth.posts.entry(key).or_default() += 1;
                    }
                }
                processes[me] = Process::start(&disk, me).unwrap();
            }
            // A power cut in the middle of a step, of all of them.
            1 => {
                disk.cut_after(random.random_range(0..12));
                let mut steps = 0;
                while processes[me].step(me, now, &mut random, &mut truth).is_ok() && steps < 50 {
                    steps += 1;
                }
                disk.restart(seed ^ step);
                for (n, process) in processes.iter_mut().enumerate() {
                    if let Some(key) = process.sends.take() {
                        *truth.killed_sending.entry(key).or_default() += 1;
                    }
                    *process = Process::start(&disk, n).unwrap();
                }
            }
            // An answer gets lost, as over a network.
            2 => {
                disk.lose_answer();
                let _ = processes[me].step(me, now, &mut random, &mut truth);
            }
            _ => processes[me].step(me, now, &mut random, &mut truth).unwrap(),
        }
    }
    processes[0].journal.follow().unwrap();
    check(&processes[0].journal, &truth);
    processes[0].journal.state().last()
}

#[test]
fn whatever_interleaving_kills_and_power_cuts_each_result_is_published_once() {
    let length = 400;
    let entries: u64 = (0..steps().div_ceil(length)).map(|seed| run(seed, length)).sum();
    assert!(entries > steps() / 10, "{entries} entries");
}

/// Where nobody is killed, everything that was opened comes to an end, and everything that is to be told is told once.
#[test]
fn what_is_left_alone_comes_to_an_end() {
    let disk = Disk::default();
    let mut random = StdRng::seed_from_u64(7);
    let mut processes: Vec<Process> = (0..4).map(|n| Process::start(&disk, n).unwrap()).collect();
    let mut truth = Truth::default();
    let mut now = 0;
    let over = |state: &State| {
        state.incidents().len() >= 40
            && state.active().iter().all(|id| !state.incidents()[id].work().is_open())
            && state.deliveries().values().all(|delivery| delivery.sent == Sent::Sent)
            && state.ungrouped().is_empty()
    };
    let mut turns = 0;
    while !over(&processes[0].journal.state()) || processes.iter().any(|p| p.sends.is_some()) {
        turns += 1;
        assert!(turns < 200_000, "{:?}", processes[0].journal.state().active().len());
        now += 1;
        for (me, process) in processes.iter_mut().enumerate() {
            process.step(me, now, &mut random, &mut truth).unwrap();
        }
    }
    check(&processes[0].journal, &truth);
    assert!(truth.posts.values().all(|posts| *posts == 1));
}

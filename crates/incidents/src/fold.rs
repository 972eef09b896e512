//! What the journal comes to.
//!
//! [`State::apply`] is a pure function of what was written. It never fails: an event that is not valid where it stands lost a race, and is counted;
//! one of a later version is counted too.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{
    Entry, Event, FORGOTTEN, Findings, JOURNAL_VERSION, News, Opened, Outcome, Output, Parked, Reason, Stage,
    Told,
};
use crate::id::IncidentId;
use crate::text::MANY;
use crate::version::compare;

/// How often the worker of an incident may be lost before it is given up.
pub const MOST_LOST: u32 = 3;
/// How often an incident is tried by itself.
pub const MOST_TRIES: u32 = 3;
/// Most versions of a system that are remembered in the order in which they came.
const VERSIONS: usize = 4096;
/// Most lines of a bug's history.
const HISTORY: usize = 512;

/// What the machine does about an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Work {
    /// Nobody works on it yet.
    Waiting,
    /// An attempt is at this stage.
    Held {
        /// The stage.
        stage: Stage,
    },
    /// It came to an end.
    Done {
        /// How.
        outcome: Outcome,
    },
    /// An attempt failed.
    Failed {
        /// Why.
        reason: Reason,
    },
    /// It is not worked on for now.
    Parked {
        /// Why.
        reason: Parked,
    },
    /// Its files were removed to make room.
    Gone,
    /// It was forgotten.
    Purged,
}

impl Work {
    /// A stable word for the state, and one for the stage, the outcome or the reason.
    #[must_use]
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Work::Waiting => ("waiting", ""),
            Work::Held { stage } => (stage.word(), ""),
            Work::Done { outcome } => ("done", outcome.word()),
            Work::Failed { reason } => ("failed", reason.word()),
            Work::Parked { reason } => ("parked", reason.word()),
            Work::Gone => ("gone", ""),
            Work::Purged => ("purged", ""),
        }
    }

    /// Whether something is left to do.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Work::Waiting | Work::Held { .. })
    }
}

/// An incident as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    opened: Opened,
    /// When the journal was told, and in which entry.
    opened_at: String,
    entry: u64,
    work: Work,
    attempt: u32,
    worker: String,
    /// How often it failed, and how often its worker was lost, since somebody last asked for it.
    tries: u32,
    lost: u32,
    /// Without the story, which stays in the entry that told it.
    findings: Findings,
    story: Option<u64>,
    /// Seconds of each stage of the last attempt.
    seconds: BTreeMap<Stage, f64>,
    said: String,
    bug: Option<u32>,
    why: String,
    nearest: Option<(u32, f64)>,
    done_at: Option<String>,
    /// When it was purged.
    #[serde(default)]
    purged_at: Option<String>,
}

impl Incident {
    /// What was known when it was opened.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The invariant that is broken: as it was told, or as the model names it.
    #[must_use]
    pub fn invariant(&self) -> &str {
        match self.findings.violation.first() {
            Some(found) if self.opened.invariant.is_empty() => found,
            _ => &self.opened.invariant,
        }
    }

    /// When it was purged, by the clock of whoever did.
    #[must_use]
    pub fn purged_at(&self) -> Option<&str> {
        self.purged_at.as_deref()
    }

    /// When it was opened, by the clock of whoever did.
    #[must_use]
    pub fn opened_at(&self) -> &str {
        &self.opened_at
    }

    /// The number of the entry that opened it.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// What the machine does about it.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// The number of the last attempt; 0 where there was none.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Who makes the last attempt.
    #[must_use]
    pub fn worker(&self) -> &str {
        &self.worker
    }

    /// How often it failed since somebody asked for it.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// How often its worker was lost.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// The entry that tells its steps as text, where one does: [`Journal::story`](crate::Journal::story) reads them.
    #[must_use]
    pub fn story_entry(&self) -> Option<u64> {
        self.story
    }

    /// Keeps what was found out but its story.
    fn find(&mut self, n: u64, findings: &Findings) {
        self.story = (!findings.story.is_empty()).then_some(n);
        self.findings = Findings { story: Vec::new(), ..findings.clone() };
    }

    /// What was found out so far, but for the steps as text.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Seconds of the stages of the last attempt.
    #[must_use]
    pub fn seconds(&self) -> &BTreeMap<Stage, f64> {
        &self.seconds
    }

    /// The end of what the last failed child said.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }

    /// The bug of which it is an occurrence.
    #[must_use]
    pub fn bug(&self) -> Option<u32> {
        self.bug
    }

    /// Why it is an occurrence of that bug.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The nearest other bug when it was grouped, and how near it was.
    #[must_use]
    pub fn nearest(&self) -> Option<(u32, f64)> {
        self.nearest
    }

    /// When it was done.
    #[must_use]
    pub fn done_at(&self) -> Option<&str> {
        self.done_at.as_deref()
    }
}

/// What people have said about a bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// Nothing yet.
    New,
    /// Somebody looks after it.
    Acknowledged,
    /// It is repaired.
    Resolved {
        /// The version from which on it does not happen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fixed_in: Option<String>,
        /// Whether its schedules were replayed on that version.
        checked: bool,
    },
    /// It was repaired, and is back.
    Regressed,
    /// It is another bug now.
    Merged {
        /// Which.
        into: u32,
    },
}

impl Status {
    /// A stable word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Status::New => "new",
            Status::Acknowledged => "acknowledged",
            Status::Resolved { .. } => "resolved",
            Status::Regressed => "regressed",
            Status::Merged { .. } => "merged",
        }
    }

    /// Whether there is something to do about it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Status::New | Status::Acknowledged | Status::Regressed)
    }
}

/// Something that happened to a bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// When.
    pub at: String,
    /// Who; empty where the machine did.
    pub by: String,
    /// What, in words.
    pub what: String,
}

/// What incidents have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bug {
    status: Status,
    priority: String,
    muted: bool,
    invariant: String,
    system: String,
    model: String,
    keys: BTreeSet<String>,
    incidents: BTreeSet<IncidentId>,
    /// The incident that stands for it: the first with the fewest steps.
    representative: IncidentId,
    /// Occurrences in versions that are older than the one in which it is fixed, and in versions that nobody knows.
    old: u64,
    unknown: u64,
    regressions: u32,
    replayed: BTreeMap<String, String>,
    history: Vec<Line>,
    /// Whether somebody has split it, or split it off: then nobody but people make it one with another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    apart: bool,
}

impl Bug {
    /// What people have said about it.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// `low`, `normal`, `high` or `urgent`.
    #[must_use]
    pub fn priority(&self) -> &str {
        &self.priority
    }

    /// Whether nobody is told of it.
    #[must_use]
    pub fn muted(&self) -> bool {
        self.muted
    }

    /// The invariant that its first incident breaks.
    #[must_use]
    pub fn invariant(&self) -> &str {
        &self.invariant
    }

    /// The system of its first incident.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// The model of its first incident.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The keys that it owns.
    #[must_use]
    pub fn keys(&self) -> &BTreeSet<String> {
        &self.keys
    }

    /// Its incidents.
    #[must_use]
    pub fn incidents(&self) -> &BTreeSet<IncidentId> {
        &self.incidents
    }

    /// The incident that stands for it.
    #[must_use]
    pub fn representative(&self) -> IncidentId {
        self.representative
    }

    /// Occurrences since it was fixed, in older versions and in versions that nobody knows.
    #[must_use]
    pub fn since_fixed(&self) -> (u64, u64) {
        (self.old, self.unknown)
    }

    /// How often it came back.
    #[must_use]
    pub fn regressions(&self) -> u32 {
        self.regressions
    }

    /// Whether people have split it, or split it off another one.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.apart
    }

    /// Verdicts by the digest of a model.
    #[must_use]
    pub fn replayed(&self) -> &BTreeMap<String, String> {
        &self.replayed
    }

    /// What happened to it.
    #[must_use]
    pub fn history(&self) -> &[Line] {
        &self.history
    }

    fn tell(&mut self, at: &str, by: &str, what: impl Into<String>) {
        // The first lines stay: they say how it began.
        if self.history.len() >= HISTORY {
            self.history.remove(HISTORY / 2);
        }
        self.history.push(Line { at: at.to_owned(), by: by.to_owned(), what: what.into() });
    }
}

/// A message to somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Who gets it.
    pub receiver: String,
    /// What it tells.
    pub news: News,
    /// Of which incident.
    pub id: IncidentId,
    /// How far it came.
    pub sent: Sent,
}

/// How far a message came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// It waits.
    Queued,
    /// It may have been sent.
    Sending,
    /// It was taken.
    Sent,
    /// It was given up, for this reason.
    Dead(String),
}

/// Everything that the journal comes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    last: u64,
    watched: u64,
    incidents: BTreeMap<IncidentId, Incident>,
    bugs: BTreeMap<u32, Bug>,
    /// Which bug owns a key.
    keys: BTreeMap<String, u32>,
    deliveries: BTreeMap<String, Delivery>,
    /// Versions in the order in which they were first seen.
    versions: Vec<String>,
    /// Incidents by what they share before anybody has looked at them, in the order in which they were opened.
    kinds: BTreeMap<String, Vec<IncidentId>>,
    /// Incidents that are waiting, held or failed: few of many.
    active: BTreeSet<IncidentId>,
    /// Done, and of no bug so far, or of one that does not know what came of the work since then.
    ungrouped: BTreeSet<IncidentId>,
    skipped: u64,
    unknown: u64,
}

impl State {
    /// Number of the last entry.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The version of the table up to which records were read.
    #[must_use]
    pub fn watched(&self) -> u64 {
        self.watched
    }

    /// All incidents by id.
    #[must_use]
    pub fn incidents(&self) -> &BTreeMap<IncidentId, Incident> {
        &self.incidents
    }

    /// All bugs by number.
    #[must_use]
    pub fn bugs(&self) -> &BTreeMap<u32, Bug> {
        &self.bugs
    }

    /// Which bug owns a key.
    #[must_use]
    pub fn owner(&self, key: &str) -> Option<u32> {
        self.keys.get(key).copied()
    }

    /// Messages by key.
    #[must_use]
    pub fn deliveries(&self) -> &BTreeMap<String, Delivery> {
        &self.deliveries
    }

    /// Incidents that are waiting, held or failed.
    #[must_use]
    pub fn active(&self) -> &BTreeSet<IncidentId> {
        &self.active
    }

    /// Incidents that are done and of no bug so far, or of one that does not know yet what came of more work.
    #[must_use]
    pub fn ungrouped(&self) -> &BTreeSet<IncidentId> {
        &self.ungrouped
    }

    /// Incidents that share system, model and invariant with this one, in the order in which they were opened.
    #[must_use]
    pub fn of_kind(&self, opened: &Opened) -> &[IncidentId] {
        self.kinds.get(&kind_of(opened)).map_or(&[], Vec::as_slice)
    }

    /// Incidents by what they share before anybody has looked at them: those of each kind, in the order in which they were opened.
    pub fn kinds(&self) -> impl Iterator<Item = &[IncidentId]> {
        self.kinds.values().map(Vec::as_slice)
    }

    /// Versions in the order in which they were first seen.
    #[must_use]
    pub fn versions(&self) -> &[String] {
        &self.versions
    }

    /// Events that were not valid where they stand, and events of a later version.
    #[must_use]
    pub fn left_out(&self) -> (u64, u64) {
        (self.skipped, self.unknown)
    }

    /// The bug that a number leads to: where it was merged into another one, that.
    #[must_use]
    pub fn bug(&self, number: u32) -> Option<(u32, &Bug)> {
        let mut number = number;
        // Merging leads to bugs that are not merged, so each turn comes to another one.
        for _ in 0..=self.bugs.len() {
            let bug = self.bugs.get(&number)?;
            match bug.status {
                Status::Merged { into } => number = into,
                _ => return Some((number, bug)),
            }
        }
        None
    }

    /// The incident of this name: an id, its short form, or any beginning that only one has.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<IncidentId> {
        if let Ok(id) = name.parse() {
            return self.incidents.contains_key(&id).then_some(id);
        }
        let name = name.strip_prefix("I-").unwrap_or(name).to_uppercase();
        let mut found =
            self.incidents.keys().filter(|id| !name.is_empty() && id.to_string().starts_with(&name));
        found.next().copied().filter(|_| found.next().is_none())
    }

    /// Whether an event would be valid now.
    #[must_use]
    pub fn allows(&self, event: &Event) -> bool {
        let mut copy = self.about(event);
        let (v, n, by, tag, at) =
            (JOURNAL_VERSION, self.last + 1, String::new(), String::new(), String::new());
        copy.event(&Entry { v, n, by, tag, at, events: Vec::new() }, event)
    }

    /// As much of it as decides whether an event is valid: the incidents, bugs and messages that it names.
    fn about(&self, event: &Event) -> State {
        let mut copy = State { last: self.last, watched: self.watched, ..State::default() };
        let (ids, bugs, key): (&[IncidentId], [Option<u32>; 2], Option<&String>) = match event {
            Event::Watched { .. } => (&[], [None; 2], None),
            Event::Opened(opened) => (std::slice::from_ref(&opened.id), [None; 2], None),
            Event::Claimed { id, .. }
            | Event::Stage { id, .. }
            | Event::Done { id, .. }
            | Event::Failed { id, .. }
            | Event::Retry { id, .. } => (std::slice::from_ref(id), [None; 2], None),
            Event::Parked { ids, .. } | Event::Swept { ids } | Event::Purged { ids, .. } => {
                (ids, [None; 2], None)
            }
            Event::Grouped { id, bug, .. } => {
                let own = self.incidents.get(id).and_then(|incident| incident.bug);
                (std::slice::from_ref(id), [*bug, own], None)
            }
            Event::Merged { bug, into, .. } => (&[], [Some(*bug), Some(*into)], None),
            Event::Split { bug, ids, .. } => (ids, [Some(*bug), None], None),
            Event::Acked { bug, .. }
            | Event::Closed { bug, .. }
            | Event::Reopened { bug, .. }
            | Event::Muted { bug, .. }
            | Event::Priority { bug, .. }
            | Event::Noted { bug, .. }
            | Event::Replayed { bug, .. } => (&[], [Some(*bug), None], None),
            Event::Queued { key, id, .. } => (std::slice::from_ref(id), [None; 2], Some(key)),
            Event::Sending { key } | Event::Sent { key } | Event::Dead { key, .. } => {
                (&[], [None; 2], Some(key))
            }
        };
        for id in ids {
            if let Some(incident) = self.incidents.get(id) {
                copy.incidents.insert(*id, incident.clone());
            }
            if self.active.contains(id) {
                copy.active.insert(*id);
            }
            if self.ungrouped.contains(id) {
                copy.ungrouped.insert(*id);
            }
        }
        for number in bugs.into_iter().flatten() {
            let mut number = number;
            // A bug that was merged leads to the one that it is now.
            while let Some(bug) = self.bugs.get(&number).filter(|_| !copy.bugs.contains_key(&number)) {
                copy.bugs.insert(number, bug.clone());
                match bug.status {
                    Status::Merged { into } => number = into,
                    _ => break,
                }
            }
        }
        if let Some((key, delivery)) = key.and_then(|key| self.deliveries.get_key_value(key)) {
            copy.deliveries.insert(key.clone(), delivery.clone());
        }
        copy
    }

    /// Takes the next entry in. One with another number is not the next, and changes nothing.
    pub fn apply(&mut self, entry: &Entry) {
        if entry.n != self.last + 1 {
            return;
        }
        self.last = entry.n;
        for told in &entry.events {
            match told {
                Told::Known(event) => {
                    if !self.event(entry, event) {
                        self.skipped += 1;
                    }
                }
                Told::Unknown(_) => self.unknown += 1,
            }
        }
    }

    /// Whether the event is valid here; then it is taken in.
    fn event(&mut self, entry: &Entry, event: &Event) -> bool {
        let at = entry.at.as_str();
        match event {
            Event::Watched { version } => {
                let later = *version > self.watched;
                if later {
                    self.watched = *version;
                }
                later
            }
            Event::Opened(opened) => self.open(entry, opened),
            Event::Claimed { id, attempt, worker } => self.claim(*id, *attempt, worker),
            Event::Stage { id, attempt, stage, seconds, outputs, findings } => {
                let Some(incident) = self.held(*id, *attempt) else { return false };
                if let Work::Held { stage: before } = incident.work {
                    incident.seconds.insert(before, *seconds);
                }
                incident.work = Work::Held { stage: *stage };
                if let Some(findings) = findings {
                    incident.find(entry.n, findings);
                }
                add(&mut incident.findings.outputs, outputs);
                true
            }
            Event::Done { id, attempt, outcome, findings } => {
                let Some(incident) = self.held(*id, *attempt) else { return false };
                let outputs = std::mem::take(&mut incident.findings.outputs);
                incident.find(entry.n, findings);
                add(&mut incident.findings.outputs, &outputs);
                incident.work = Work::Done { outcome: *outcome };
                incident.done_at = Some(at.to_owned());
                incident.said.clear();
                let grouped = incident.bug;
                self.active.remove(id);
                self.ungrouped.insert(*id);
                if let Some(bug) = grouped {
                    self.represent(bug);
                }
                true
            }
            Event::Failed { id, attempt, reason, said } => {
                let Some(incident) = self.held(*id, *attempt) else { return false };
                incident.work = Work::Failed { reason: *reason };
                incident.tries += 1;
                incident.said.clone_from(said);
                true
            }
            Event::Retry { id, by } => {
                let Some(incident) = self.incidents.get_mut(id) else { return false };
                let again = match incident.work {
                    Work::Failed { reason } => {
                        !by.is_empty() || (reason.is_transient() && incident.tries < MOST_TRIES)
                    }
                    Work::Done { .. } | Work::Parked { .. } => !by.is_empty(),
                    Work::Waiting | Work::Held { .. } | Work::Gone | Work::Purged => false,
                };
                if again {
                    incident.work = Work::Waiting;
                    if !by.is_empty() {
                        (incident.tries, incident.lost) = (0, 0);
                    }
                    self.active.insert(*id);
                    self.ungrouped.remove(id);
                }
                again
            }
            Event::Parked { ids, reason } => {
                let mut any = false;
                for id in ids {
                    if let Some(incident) = self.incidents.get_mut(id)
                        && incident.work == Work::Waiting
                    {
                        incident.work = Work::Parked { reason: *reason };
                        self.active.remove(id);
                        any = true;
                    }
                }
                any
            }
            Event::Grouped { id, bug, keys, why, nearest } => self.group(at, *id, *bug, keys, why, *nearest),
            Event::Merged { bug, into, by } => self.merge(at, *bug, *into, by),
            Event::Split { bug, ids, by } => self.split(at, *bug, ids, by),
            Event::Acked { bug, by } => self.of_bug(*bug, |bug| {
                let valid = matches!(bug.status, Status::New | Status::Regressed);
                if valid {
                    bug.status = Status::Acknowledged;
                    bug.tell(at, by, "acknowledged it");
                }
                valid
            }),
            Event::Closed { bug, by, fixed_in, checked } => self.of_bug(*bug, |bug| {
                let valid = bug.status.is_open();
                if valid {
                    bug.status = Status::Resolved { fixed_in: fixed_in.clone(), checked: *checked };
                    (bug.old, bug.unknown) = (0, 0);
                    let version =
                        fixed_in.as_ref().map(|version| format!(", fixed in {version}")).unwrap_or_default();
                    let checked = if *checked { "checked" } else { "not checked" };
                    bug.tell(at, by, format!("closed it{version} ({checked})"));
                }
                valid
            }),
            Event::Reopened { bug, by } => self.of_bug(*bug, |bug| {
                let valid = matches!(bug.status, Status::Resolved { .. });
                if valid {
                    bug.status = Status::Acknowledged;
                    bug.tell(at, by, "opened it again");
                }
                valid
            }),
            Event::Muted { bug, by, on } => self.of_bug(*bug, |bug| {
                let valid = bug.muted != *on;
                if valid {
                    bug.muted = *on;
                    bug.tell(at, by, if *on { "muted it" } else { "wants to hear of it again" });
                }
                valid
            }),
            Event::Priority { bug, by, to } => self.of_bug(*bug, |bug| {
                let valid = ["low", "normal", "high", "urgent"].contains(&to.as_str()) && bug.priority != *to;
                if valid {
                    bug.priority.clone_from(to);
                    bug.tell(at, by, format!("made its priority {to}"));
                }
                valid
            }),
            Event::Noted { bug, by, text } => self.of_bug(*bug, |bug| {
                bug.tell(at, by, format!("noted: {text}"));
                true
            }),
            Event::Queued { key, receiver, news, id } => {
                let new = !self.deliveries.contains_key(key) && self.incidents.contains_key(id);
                if new {
                    let delivery =
                        Delivery { receiver: receiver.clone(), news: *news, id: *id, sent: Sent::Queued };
                    self.deliveries.insert(key.clone(), delivery);
                }
                new
            }
            Event::Sending { key } => self.delivery(key, Sent::Sending),
            Event::Sent { key } => self.delivery(key, Sent::Sent),
            Event::Dead { key, reason } => self.delivery(key, Sent::Dead(reason.clone())),
            Event::Replayed { bug, model, verdict } => self.of_bug(*bug, |bug| {
                if bug.replayed.len() >= MANY {
                    bug.replayed.pop_first();
                }
                bug.replayed.insert(model.clone(), verdict.clone());
                true
            }),
            Event::Swept { ids } => self.forget(ids, Work::Gone, at),
            Event::Purged { ids, .. } => self.forget(ids, Work::Purged, at),
        }
    }

    fn open(&mut self, entry: &Entry, opened: &Opened) -> bool {
        // One that was seen before is no error: whoever saw it did not know.
        if self.incidents.contains_key(&opened.id) {
            return true;
        }
        if let Some(version) = &opened.version
            && !self.versions.contains(version)
            && self.versions.len() < VERSIONS
        {
            self.versions.push(version.clone());
        }
        self.kinds.entry(kind_of(opened)).or_default().push(opened.id);
        self.active.insert(opened.id);
        let incident = Incident {
            opened: opened.clone(),
            opened_at: entry.at.clone(),
            entry: entry.n,
            work: Work::Waiting,
            attempt: 0,
            worker: String::new(),
            tries: 0,
            lost: 0,
            findings: Findings::default(),
            story: None,
            seconds: BTreeMap::new(),
            said: String::new(),
            bug: None,
            why: String::new(),
            nearest: None,
            done_at: None,
            purged_at: None,
        };
        self.incidents.insert(opened.id, incident);
        true
    }

    fn claim(&mut self, id: IncidentId, attempt: u32, worker: &str) -> bool {
        let Some(incident) = self.incidents.get_mut(&id) else { return false };
        if !incident.work.is_open() || attempt != incident.attempt + 1 {
            return false;
        }
        if matches!(incident.work, Work::Held { .. }) {
            incident.lost += 1;
        }
        incident.work = Work::Held { stage: Stage::Building };
        incident.attempt = attempt;
        worker.clone_into(&mut incident.worker);
        incident.seconds.clear();
        true
    }

    /// The incident, if this attempt holds it.
    fn held(&mut self, id: IncidentId, attempt: u32) -> Option<&mut Incident> {
        let incident = self.incidents.get_mut(&id)?;
        let holds = incident.attempt == attempt && matches!(incident.work, Work::Held { .. });
        holds.then_some(incident)
    }

    fn group(
        &mut self,
        at: &str,
        id: IncidentId,
        bug: Option<u32>,
        keys: &[String],
        why: &str,
        nearest: Option<(u32, f64)>,
    ) -> bool {
        let Some(incident) = self.incidents.get(&id) else { return false };
        if !self.ungrouped.contains(&id) {
            return false;
        }
        if let Some(own) = incident.bug {
            // It stays what it is. What more work found out is the bug's from now on.
            let own = self.bug(own).map(|(number, _)| number);
            let same = bug.and_then(|bug| self.bug(bug)).map(|(number, _)| number);
            let Some(own) = own.filter(|own| Some(*own) == same) else { return false };
            self.own(own, keys);
            self.ungrouped.remove(&id);
            if let Some(incident) = self.incidents.get_mut(&id) {
                incident.nearest = nearest;
            }
            return true;
        }
        let number = match bug {
            Some(bug) => match self.bug(bug) {
                Some((number, _)) => number,
                None => return false,
            },
            None => self.bugs.last_key_value().map_or(1, |(last, _)| last + 1),
        };
        let bug = self.bugs.entry(number).or_insert_with(|| Bug {
            status: Status::New,
            priority: "normal".to_owned(),
            muted: false,
            invariant: incident.invariant().to_owned(),
            system: incident.opened.system.clone(),
            model: incident.findings.model.clone(),
            keys: BTreeSet::new(),
            incidents: BTreeSet::new(),
            representative: id,
            old: 0,
            unknown: 0,
            regressions: 0,
            replayed: BTreeMap::new(),
            history: Vec::new(),
            apart: false,
        });
        if bug.incidents.is_empty() {
            bug.tell(at, "", format!("first seen, as {}", id.short()));
        }
        bug.incidents.insert(id);
        if let Status::Resolved { fixed_in, .. } = &bug.status {
            let version = incident.opened.version.as_deref();
            let order = match (fixed_in, version) {
                // Fixed in a version that nobody named: any occurrence brings it back.
                (None, _) => Some(Ordering::Greater),
                (Some(fixed), Some(version)) => compare(version, fixed, &self.versions),
                (Some(_), None) => None,
            };
            match order {
                Some(Ordering::Less) => bug.old += 1,
                Some(_) => {
                    bug.status = Status::Regressed;
                    bug.regressions += 1;
                    let version = version.map(|version| format!(" in version {version}")).unwrap_or_default();
                    bug.tell(at, "", format!("back{version}, as {}", id.short()));
                }
                None => bug.unknown += 1,
            }
        }
        self.own(number, keys);
        self.ungrouped.remove(&id);
        if let Some(incident) = self.incidents.get_mut(&id) {
            incident.bug = Some(number);
            why.clone_into(&mut incident.why);
            incident.nearest = nearest;
        }
        self.represent(number);
        true
    }

    /// Gives a bug the keys that no other one has.
    fn own(&mut self, number: u32, keys: &[String]) {
        let Some(bug) = self.bugs.get_mut(&number) else { return };
        for key in keys {
            if !self.keys.contains_key(key) {
                self.keys.insert(key.clone(), number);
                bug.keys.insert(key.clone());
            }
        }
    }

    /// Chooses anew which incident stands for a bug: minimized, with the fewest steps, the first of these.
    fn represent(&mut self, number: u32) {
        let Some((number, bug)) = self.bug(number) else { return };
        let rank = |id: &&IncidentId| {
            self.incidents.get(*id).map(|incident| {
                let minimized = incident.work == Work::Done { outcome: Outcome::Minimized };
                (!minimized, incident.findings.size, incident.entry)
            })
        };
        let best = bug.incidents.iter().filter(|id| rank(id).is_some()).min_by_key(rank).copied();
        if let (Some(best), Some(bug)) = (best, self.bugs.get_mut(&number)) {
            bug.representative = best;
        }
    }

    fn merge(&mut self, at: &str, bug: u32, into: u32, by: &str) -> bool {
        let ends = self.bugs.get(&bug).is_some_and(|bug| !matches!(bug.status, Status::Merged { .. }));
        let Some((into, _)) = self.bug(into) else { return false };
        if bug == into || !ends {
            return false;
        }
        let Some(from) = self.bugs.get_mut(&bug) else { return false };
        from.status = Status::Merged { into };
        from.tell(at, by, format!("merged it into B-{into}"));
        let (keys, incidents) = (std::mem::take(&mut from.keys), std::mem::take(&mut from.incidents));
        for key in &keys {
            self.keys.insert(key.clone(), into);
        }
        for id in &incidents {
            if let Some(incident) = self.incidents.get_mut(id) {
                incident.bug = Some(into);
            }
        }
        if let Some(stays) = self.bugs.get_mut(&into) {
            stays.keys.extend(keys);
            stays.incidents.extend(incidents);
            stays.tell(at, by, format!("merged B-{bug} into it"));
        }
        self.represent(into);
        true
    }

    fn split(&mut self, at: &str, bug: u32, ids: &[IncidentId], by: &str) -> bool {
        let Some(from) = self.bugs.get(&bug) else { return false };
        let leaving: BTreeSet<IncidentId> =
            ids.iter().filter(|id| from.incidents.contains(id)).copied().collect();
        let Some(first) = leaving.first().copied() else { return false };
        if leaving.len() == from.incidents.len() {
            return false;
        }
        let keys_of = |id: &IncidentId| self.incidents.get(id).map(crate::group::keys_of).unwrap_or_default();
        let keys: BTreeSet<String> =
            leaving.iter().flat_map(keys_of).filter(|key| from.keys.contains(key)).collect();
        let number = self.bugs.last_key_value().map_or(1, |(last, _)| last + 1);
        let mut new = from.clone();
        new.status = Status::New;
        new.apart = true;
        new.keys.clone_from(&keys);
        new.incidents.clone_from(&leaving);
        new.representative = first;
        (new.old, new.unknown, new.regressions) = (0, 0, 0);
        new.replayed.clear();
        new.history.clear();
        new.tell(at, by, format!("split it from B-{bug}"));
        if let Some(from) = self.bugs.get_mut(&bug) {
            from.incidents.retain(|id| !leaving.contains(id));
            from.keys.retain(|key| !keys.contains(key));
            from.apart = true;
            from.tell(at, by, format!("split B-{number} from it"));
        }
        for key in keys {
            self.keys.insert(key, number);
        }
        for id in &leaving {
            if let Some(incident) = self.incidents.get_mut(id) {
                incident.bug = Some(number);
            }
        }
        self.bugs.insert(number, new);
        self.represent(bug);
        self.represent(number);
        true
    }

    fn of_bug(&mut self, number: u32, change: impl FnOnce(&mut Bug) -> bool) -> bool {
        let Some((number, _)) = self.bug(number) else { return false };
        self.bugs.get_mut(&number).is_some_and(change)
    }

    fn delivery(&mut self, key: &str, sent: Sent) -> bool {
        let Some(delivery) = self.deliveries.get_mut(key) else { return false };
        let valid = matches!(delivery.sent, Sent::Queued | Sent::Sending);
        if valid {
            delivery.sent = sent;
        }
        valid
    }

    fn forget(&mut self, ids: &[IncidentId], to: Work, at: &str) -> bool {
        let mut any = false;
        for id in ids {
            let Some(incident) = self.incidents.get_mut(id) else { continue };
            if incident.work == Work::Purged || (to == Work::Gone && incident.work.is_open()) {
                continue;
            }
            any = true;
            incident.work = to;
            incident.findings.outputs.clear();
            self.active.remove(id);
            if to == Work::Purged {
                incident.purged_at = Some(at.to_owned());
                self.ungrouped.remove(id);
                incident.opened = incident.opened.forgotten();
                incident.findings = incident.findings.forgotten();
                incident.story = None;
                incident.said.clear();
                for ids in self.kinds.values_mut() {
                    ids.retain(|other| other != id);
                }
            }
        }
        if to == Work::Purged {
            // A name of a kind says the system.
            self.kinds.retain(|_, ids| !ids.is_empty());
            self.rename(ids);
        }
        any
    }
}

impl State {
    /// Whether nothing is left of the incidents of a bug, or of the bug that it was merged into.
    #[must_use]
    pub fn is_forgotten(&self, number: u32) -> bool {
        self.bug(number).is_some_and(|(_, bug)| {
            let purged = |id| self.incidents.get(id).is_none_or(|one| one.work == Work::Purged);
            !bug.incidents.is_empty() && bug.incidents.iter().all(purged)
        })
    }

    /// Takes what was forgotten out of the bugs of these incidents: they are called by what is left.
    fn rename(&mut self, ids: &[IncidentId]) {
        let numbers: Vec<u32> = self.bugs.keys().copied().collect();
        for number in numbers {
            let Some((_, of)) = self.bug(number) else { continue };
            if !ids.iter().any(|id| of.incidents.contains(id)) {
                continue;
            }
            let left = of.incidents.iter().filter_map(|id| self.incidents.get(id));
            let left =
                left.filter(|one| one.work != Work::Purged).min_by_key(|one| (one.entry, one.opened.id));
            let named = left.map(|one| {
                (one.invariant().to_owned(), one.opened.system.clone(), one.findings.model.clone())
            });
            let forgotten = named.is_none();
            let (invariant, system, model) =
                named.unwrap_or_else(|| (FORGOTTEN.to_owned(), String::new(), String::new()));
            if let Some(bug) = self.bugs.get_mut(&number) {
                (bug.invariant, bug.system, bug.model) = (invariant, system, model);
                for line in
                    bug.history.iter_mut().filter(|line| forgotten && line.what.starts_with("noted: "))
                {
                    line.what = format!("noted: {FORGOTTEN}");
                }
            }
        }
    }
}

/// Outputs by name: what is made again takes the place of what was there.
fn add(outputs: &mut Vec<Output>, more: &[Output]) {
    for output in more {
        match outputs.iter().position(|known| known.name == output.name) {
            Some(at) => outputs[at].clone_from(output),
            None if outputs.len() < MANY => outputs.push(output.clone()),
            None => {}
        }
    }
}

fn kind_of(opened: &Opened) -> String {
    let (system, model, invariant) = opened.kind();
    [system, model.unwrap_or_default(), invariant].join("\u{0}")
}

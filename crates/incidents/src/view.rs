//! What is shown of incidents and bugs: the same as JSON for machines, as text, and as pages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::{Findings, Outcome};
use crate::fold::{Bug, Incident, Line, Sent, State, Status, Work};
use crate::id::IncidentId;
use crate::models::glob;
use crate::place::Beat;

/// A page of a list.
pub const PAGE: usize = 50;

/// An incident in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Short {
    /// Its id.
    pub id: IncidentId,
    /// What people call it.
    pub short: String,
    /// The bug, as in `B-17`.
    pub bug: Option<String>,
    /// The system.
    pub system: String,
    /// The invariant.
    pub invariant: String,
    /// Where it came from, a word.
    pub source: &'static str,
    /// What the machine does about it: a word, and one for outcome or reason.
    pub work: &'static str,
    /// The outcome or reason; empty where there is none.
    pub result: &'static str,
    /// Steps of the schedule so far; 0 where there is none.
    pub steps: u64,
    /// The version of the system.
    pub version: Option<String>,
    /// When it was opened.
    pub opened: String,
}

/// An incident.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Full {
    /// As in a list.
    #[serde(flatten)]
    pub short: Short,
    /// A sentence of whoever opened it.
    pub title: String,
    /// The invariant as a condition.
    pub holds: String,
    /// The name of the record of the violation, where one opened it.
    pub record: Option<String>,
    /// What that says.
    pub logged: String,
    /// Fingerprints of the violation.
    pub fingerprints: Vec<String>,
    /// The actors whose states break it.
    pub affected: Vec<String>,
    /// The events at which the execution ends.
    pub at: Vec<String>,
    /// When it happened, by the logs.
    pub time: Option<String>,
    /// Addresses that belong to it.
    pub links: Vec<String>,
    /// The number of the last attempt.
    pub attempt: u32,
    /// How often it failed.
    pub tries: u32,
    /// Seconds of each stage.
    pub stage_seconds: BTreeMap<&'static str, f64>,
    /// Why it is an occurrence of its bug.
    pub why: String,
    /// The nearest other bug, and how near it is.
    pub nearest: Option<(String, f64)>,
    /// The end of what a failed command said.
    pub said: String,
    /// What was found out.
    pub findings: Findings,
    /// The number of the last entry of the journal.
    pub journal: u64,
}

/// A bug.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BugView {
    /// Its name, as in `B-17`.
    pub bug: String,
    /// What people have said about it.
    #[serde(flatten)]
    pub status: Status,
    /// `low`, `normal`, `high` or `urgent`.
    pub priority: String,
    /// Whether nobody is told of it.
    pub muted: bool,
    /// The invariant.
    pub invariant: String,
    /// The system of its first occurrence.
    pub system: String,
    /// How often it happened.
    pub occurrences: usize,
    /// Occurrences since it was fixed, in older versions and in versions that nobody knows.
    pub since_fixed: (u64, u64),
    /// How often it came back.
    pub regressions: u32,
    /// The incident that stands for it.
    pub representative: IncidentId,
    /// Its steps, deliveries and external events.
    pub size: [u64; 3],
    /// When it was first and last seen.
    pub first: String,
    /// The last time.
    pub last: String,
    /// Versions in which it was seen.
    pub versions: Vec<String>,
    /// Occurrences by day.
    pub days: BTreeMap<String, u64>,
    /// The keys that it owns.
    pub keys: Vec<String>,
    /// Verdicts of replays, by the digest of a model.
    pub replayed: BTreeMap<String, String>,
    /// What happened to it.
    pub history: Vec<Line>,
}

/// An attempt that is being made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkerView {
    /// Who makes it.
    pub worker: String,
    /// Of which incident.
    pub incident: IncidentId,
    /// Its number.
    pub attempt: u32,
    /// The stage.
    pub stage: &'static str,
    /// How many signs of life there were, and the seconds of the stage at the last one.
    pub beats: u64,
    /// The seconds.
    pub seconds: f64,
}

/// The attempts that are being made; a sign of life is asked for by incident and attempt.
#[must_use]
pub fn workers(state: &State, beat: impl Fn(IncidentId, u32) -> Option<Beat>) -> Vec<WorkerView> {
    let held = state.active().iter().filter_map(|id| {
        let incident = state.incidents().get(id)?;
        let Work::Held { stage } = incident.work() else { return None };
        let beat = beat(*id, incident.attempt()).unwrap_or_default();
        Some(WorkerView {
            worker: incident.worker().to_owned(),
            incident: *id,
            attempt: incident.attempt(),
            stage: beat.stage.unwrap_or(stage).word(),
            beats: beat.count,
            seconds: beat.seconds,
        })
    });
    held.collect()
}

/// A model that incidents were worked on with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct ModelView {
    /// Its name.
    pub model: String,
    /// A digest of its scenario and program.
    pub digest: String,
    /// How many incidents.
    pub incidents: u64,
}

/// The models that incidents were worked on with.
#[must_use]
pub fn models(state: &State) -> Vec<ModelView> {
    let mut known: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for incident in state.incidents().values() {
        let findings = incident.findings();
        if !findings.model.is_empty() {
            *known.entry((&findings.model, &findings.model_digest)).or_default() += 1;
        }
    }
    let of = |((model, digest), incidents): ((&str, &str), u64)| ModelView {
        model: model.to_owned(),
        digest: digest.to_owned(),
        incidents,
    };
    known.into_iter().map(of).collect()
}

/// What became of the messages to somebody.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ReceiverView {
    /// Who gets them.
    pub receiver: String,
    /// How many wait.
    pub queued: u64,
    /// How many may have been sent.
    pub sending: u64,
    /// How many were taken.
    pub sent: u64,
    /// How many were given up.
    pub dead: u64,
    /// Why the last of these was.
    pub reason: Option<String>,
}

/// What became of the messages, by receiver.
#[must_use]
pub fn receivers(state: &State) -> Vec<ReceiverView> {
    let mut known: BTreeMap<&str, ReceiverView> = BTreeMap::new();
    for delivery in state.deliveries().values() {
        let one = known.entry(&delivery.receiver).or_default();
        match &delivery.sent {
            Sent::Queued => one.queued += 1,
            Sent::Sending => one.sending += 1,
            Sent::Sent => one.sent += 1,
            Sent::Dead(reason) => {
                one.dead += 1;
                one.reason = Some(reason.clone());
            }
        }
    }
    known.into_iter().map(|(receiver, one)| ReceiverView { receiver: receiver.to_owned(), ..one }).collect()
}

/// What of a list is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Glob of the system.
    pub system: Option<String>,
    /// Glob of the invariant.
    pub invariant: Option<String>,
    /// A word of the work.
    pub work: Option<String>,
    /// A word of the status.
    pub status: Option<String>,
    /// A bug.
    pub bug: Option<u32>,
    /// A version.
    pub version: Option<String>,
    /// Opened on this day or at this time, or later: the beginning of a time as journals have it.
    pub since: Option<String>,
    /// Opened before this day or time.
    pub until: Option<String>,
    /// A text that stands in the invariant, the title, or the name of an actor.
    pub q: Option<String>,
}

impl Filter {
    /// As the beginning of the query of an address, with `&` at its end.
    pub(crate) fn in_query(&self) -> String {
        let bug = self.bug.map(|bug| format!("B-{bug}"));
        let all = [
            ("system", &self.system),
            ("invariant", &self.invariant),
            ("work", &self.work),
            ("status", &self.status),
            ("bug", &bug),
            ("version", &self.version),
            ("since", &self.since),
            ("until", &self.until),
            ("q", &self.q),
        ];
        let mut query = String::new();
        for (name, value) in all {
            let Some(value) = value else { continue };
            query.push_str(name);
            query.push('=');
            for byte in value.bytes() {
                match byte {
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                        query.push(byte.into())
                    }
                    _ => query.push_str(&format!("%{byte:02X}")),
                }
            }
            query.push('&');
        }
        query
    }

    fn takes(&self, incident: &Incident) -> bool {
        let opened = incident.opened();
        let fits = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|p| glob(p, text));
        let work = incident.work().words();
        let found = |q: &String| {
            [&opened.invariant, &opened.title]
                .into_iter()
                .chain(&opened.affected)
                .any(|text| text.contains(q))
        };
        fits(&self.system, &opened.system)
            && fits(&self.invariant, &opened.invariant)
            && self.work.as_ref().is_none_or(|word| work.0 == word || work.1 == word)
            && self.bug.is_none_or(|bug| incident.bug() == Some(bug))
            && self.version.as_ref().is_none_or(|version| opened.version.as_ref() == Some(version))
            && self.since.as_deref().is_none_or(|since| incident.opened_at() >= since)
            && self.until.as_deref().is_none_or(|until| incident.opened_at() < until)
            && self.q.as_ref().is_none_or(found)
    }

    /// The incidents that fit, newest first, from behind the one named on: at most `limit`, and whether there are more.
    #[must_use]
    pub fn incidents(&self, state: &State, after: Option<IncidentId>, limit: usize) -> (Vec<Short>, bool) {
        let mut found: Vec<&Incident> =
            state.incidents().values().filter(|incident| self.takes(incident)).collect();
        let place = |incident: &Incident| (std::cmp::Reverse(incident.entry()), incident.opened().id);
        if let Some(after) = after.and_then(|id| state.incidents().get(&id)) {
            found.retain(|incident| place(incident) > place(after));
        }
        let more = found.len() > limit;
        if more {
            // A page of them is put in order, not all.
            found.select_nth_unstable_by_key(limit, |incident| place(incident));
            found.truncate(limit);
        }
        found.sort_by_key(|incident| place(incident));
        (found.into_iter().take(limit).map(short).collect(), more)
    }

    /// The bugs that fit, open ones first, then those seen last.
    #[must_use]
    pub fn bugs(&self, state: &State) -> Vec<u32> {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|p| glob(p, text));
        let mut found: Vec<(bool, std::cmp::Reverse<u64>, u32)> = state
            .bugs()
            .iter()
            .filter(|(_, bug)| {
                fits(&self.system, bug.system())
                    && fits(&self.invariant, bug.invariant())
                    && match &self.status {
                        Some(status) => bug.status().word() == status,
                        None => !matches!(bug.status(), Status::Merged { .. }),
                    }
                    && self.q.as_ref().is_none_or(|q| bug.invariant().contains(q))
            })
            .map(|(number, bug)| {
                let last = bug.incidents().iter().filter_map(|id| state.incidents().get(id));
                let last = last.map(Incident::entry).max().unwrap_or(0);
                (!bug.status().is_open(), std::cmp::Reverse(last), *number)
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, number)| number).collect()
    }
}

/// An incident in a list.
#[must_use]
pub fn short(incident: &Incident) -> Short {
    let opened = incident.opened();
    let (work, result) = incident.work().words();
    Short {
        id: opened.id,
        short: opened.id.short(),
        bug: incident.bug().map(|number| format!("B-{number}")),
        system: opened.system.clone(),
        invariant: incident.invariant().to_owned(),
        source: opened.source.word(),
        work,
        result,
        steps: incident.findings().size[0],
        version: opened.version.clone(),
        opened: incident.opened_at().to_owned(),
    }
}

/// An incident, with its steps.
#[must_use]
pub fn full(state: &State, incident: &Incident, story: Vec<String>) -> Full {
    let opened = incident.opened();
    Full {
        short: short(incident),
        title: opened.title.clone(),
        holds: opened.holds.clone(),
        record: opened.source.record().map(str::to_owned),
        logged: opened.logged.clone(),
        fingerprints: opened.fingerprints.clone(),
        affected: opened.affected.clone(),
        at: opened.at.clone(),
        time: opened.time.clone(),
        links: opened.links.clone(),
        attempt: incident.attempt(),
        tries: incident.tries(),
        stage_seconds: incident.seconds().iter().map(|(stage, s)| (stage.word(), *s)).collect(),
        why: incident.why().to_owned(),
        nearest: incident.nearest().map(|(number, near)| (format!("B-{number}"), near)),
        said: incident.said().to_owned(),
        findings: Findings { story, ..incident.findings().clone() },
        journal: state.last(),
    }
}

/// A bug.
#[must_use]
pub fn bug(state: &State, number: u32, bug: &Bug) -> BugView {
    let mut of: Vec<&Incident> = bug.incidents().iter().filter_map(|id| state.incidents().get(id)).collect();
    of.sort_by_key(|incident| incident.entry());
    let mut versions: Vec<String> = of.iter().filter_map(|i| i.opened().version.clone()).collect();
    versions.sort();
    versions.dedup();
    let mut days = BTreeMap::new();
    for incident in &of {
        let day = incident.opened_at().get(..10).unwrap_or_default().to_owned();
        *days.entry(day).or_insert(0) += 1;
    }
    let stands = state.incidents().get(&bug.representative());
    BugView {
        bug: format!("B-{number}"),
        status: bug.status().clone(),
        priority: bug.priority().to_owned(),
        muted: bug.muted(),
        invariant: stands.map_or_else(|| bug.invariant().to_owned(), |one| one.invariant().to_owned()),
        system: bug.system().to_owned(),
        occurrences: of.len(),
        since_fixed: bug.since_fixed(),
        regressions: bug.regressions(),
        representative: bug.representative(),
        size: stands.map(|incident| incident.findings().size).unwrap_or_default(),
        first: of.first().map(|incident| incident.opened_at().to_owned()).unwrap_or_default(),
        last: of.last().map(|incident| incident.opened_at().to_owned()).unwrap_or_default(),
        versions,
        days,
        keys: bug.keys().iter().cloned().collect(),
        replayed: bug.replayed().clone(),
        history: bug.history().to_vec(),
    }
}

/// The name of a file of an incident, if it is one that was published, by its kind, as in `page` or `test-python`.
#[must_use]
pub fn file(incident: &Incident, kind: &str) -> Option<String> {
    let names = || incident.findings().outputs.iter().map(|output| output.name.as_str());
    let ends = match kind {
        "page" => "/page.html",
        "schedule" => "/schedule.jsonl",
        "certificate" => "/certificate.json",
        "summary" => "/summary.json",
        "trace" => "/trace.md",
        "shiviz" => "/shiviz.log",
        _ => {
            let language = kind.strip_prefix("test-")?;
            let (_, _, file) = crate::work::TESTS.iter().find(|(known, ..)| *known == language)?;
            return names().rfind(|name| name.ends_with(&format!("/{file}"))).map(str::to_owned);
        }
    };
    names().rfind(|name| name.ends_with(ends)).map(str::to_owned)
}

/// What is wrong with an incident in one sentence.
#[must_use]
pub fn sentence(incident: &Incident) -> String {
    let opened = incident.opened();
    let what = match (incident.invariant(), opened.title.as_str()) {
        ("", "") => "An invariant is broken".to_owned(),
        (name, "") => format!("{name} is broken"),
        (_, title) => title.to_owned(),
    };
    let of = match opened.affected.as_slice() {
        [] => String::new(),
        some => format!(" by {}", some.join(", ")),
    };
    format!("{what}{of} in {}", opened.system)
}

/// How the work stands, in a sentence.
#[must_use]
pub fn standing(incident: &Incident) -> String {
    let [steps, deliveries, externals] = incident.findings().size;
    let [initial, ..] = incident.findings().initial;
    match incident.work() {
        Work::Done { outcome: Outcome::Minimized } => format!(
            "{steps} steps with {deliveries} deliveries and {externals} external events, of {initial} recorded steps"
        ),
        Work::Done { outcome: Outcome::Unmodelled } => {
            "no model takes this system: there is the recorded past alone".to_owned()
        }
        Work::Done { outcome: Outcome::Diverged } => {
            format!("the model cannot follow the recording: {}", incident.findings().symptom)
        }
        Work::Done { outcome: Outcome::NotReproduced } => {
            "the model follows the recording, and nothing breaks".to_owned()
        }
        Work::Waiting => "waiting".to_owned(),
        Work::Held { stage } if steps > 0 => format!("{}; {steps} steps so far", stage.word()),
        Work::Held { stage } => stage.word().to_owned(),
        Work::Failed { reason } => format!("failed: {}", reason.word()),
        Work::Parked { reason } => format!("not looked at: {}", reason.word()),
        Work::Gone => "its files were removed to make room".to_owned(),
        Work::Purged => "it was forgotten".to_owned(),
    }
}

//! What the journal says: entries, each with events.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::class::Keys;
use crate::id::IncidentId;
use crate::text::{LINE, MANY, NAME, NOTE, cut, cut_all};

/// The version of the journal that is written and understood.
pub const JOURNAL_VERSION: u32 = 1;
/// The text that stands where one was forgotten.
pub(crate) const FORGOTTEN: &str = "(forgotten)";
/// Most bytes of an entry.
pub const MOST_BYTES: usize = 1 << 20;

/// One entry of the journal: what somebody decided at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the journal, [`JOURNAL_VERSION`].
    pub v: u32,
    /// Its number, from 1.
    pub n: u64,
    /// Who wrote it.
    pub by: String,
    /// A random text, by which its writer knows it.
    pub tag: String,
    /// When, by its writer's clock, for people: nothing is decided by it but days.
    pub at: String,
    /// What was decided.
    pub events: Vec<Told>,
}

/// An event that this version knows, or one of a later version, which is kept as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Told {
    /// One that is understood.
    Known(Event),
    /// One that is not.
    Unknown(Value),
}

/// Where an incident came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A violation record in the store.
    Record {
        /// The record, as `ACTOR/SEQ`, with its incarnation where that is not 0.
        event: String,
    },
    /// `POST /v1/incidents`.
    Api {
        /// Whose token it was.
        by: String,
    },
    /// An alert of Alertmanager.
    Alertmanager {
        /// The alert's fingerprint.
        fingerprint: String,
    },
    /// Logs that somebody sent.
    Upload {
        /// A digest of their bytes.
        digest: String,
    },
    /// `demi-lineage incident open`.
    Command,
    /// A bundle of another store.
    Bundle {
        /// The incident, as that store names it.
        incident: IncidentId,
    },
}

impl Source {
    /// A short word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Source::Record { .. } => "record",
            Source::Api { .. } => "api",
            Source::Alertmanager { .. } => "alertmanager",
            Source::Upload { .. } => "upload",
            Source::Command => "command",
            Source::Bundle { .. } => "bundle",
        }
    }

    /// The name of the record, where one it was.
    #[must_use]
    pub fn record(&self) -> Option<&str> {
        match self {
            Source::Record { event } => Some(event),
            _ => None,
        }
    }
}

/// What an execution is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// The events of the incident's system in the store.
    #[default]
    Store,
    /// Logs that lie in the folder of uploads, under this name.
    Logs {
        /// Its name below `uploads`.
        upload: String,
        /// The mapping that reads them, of those that come with the program, where they are no event records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mapping: Option<String>,
    },
    /// An execution that lies in the folder of uploads.
    Execution {
        /// Its name below `uploads`.
        upload: String,
    },
}

/// What is known of an incident when it is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Its id, a hash of what caused it.
    pub id: IncidentId,
    /// Where it came from.
    pub source: Source,
    /// The system whose execution it is.
    pub system: String,
    /// The name of the invariant that is broken; empty where nobody said it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub invariant: String,
    /// The invariant as a condition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub holds: String,
    /// A sentence of whoever opened it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What the record of the violation says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logged: String,
    /// Fingerprints of the violation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fingerprints: Vec<String>,
    /// The actors whose states break it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected: Vec<String>,
    /// The events at which the execution ends, as `ACTOR/SEQ`; the last ones of the affected actors where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// When it happened, by the logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// How bad it is, in the words of whoever opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The version of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The name of the model to use, or the digest of a scenario that is kept with the incidents; the first that fits where nobody said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Addresses that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// What the execution is built from.
    #[serde(default)]
    pub input: Input,
}

impl Opened {
    /// One of which only cause and system are known.
    #[must_use]
    pub fn new(id: IncidentId, source: Source, system: impl Into<String>) -> Self {
        Opened {
            id,
            source,
            system: system.into(),
            invariant: String::new(),
            holds: String::new(),
            title: String::new(),
            logged: String::new(),
            fingerprints: Vec::new(),
            affected: Vec::new(),
            at: Vec::new(),
            time: None,
            severity: None,
            version: None,
            model: None,
            links: Vec::new(),
            input: Input::Store,
        }
    }

    /// The same with every text within its bound.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let short = |text: &mut String, most| *text = cut(text, most);
        for text in [&mut self.system, &mut self.invariant] {
            short(text, NAME);
        }
        for text in [&mut self.holds, &mut self.title, &mut self.logged] {
            short(text, LINE);
        }
        for text in [&mut self.time, &mut self.severity, &mut self.version, &mut self.model] {
            *text = text.as_deref().map(|text| cut(text, NAME));
        }
        for (list, most) in [
            (&mut self.fingerprints, LINE),
            (&mut self.affected, NAME),
            (&mut self.at, NAME),
            (&mut self.links, LINE),
        ] {
            *list = cut_all(&*list, most);
        }
        match &mut self.source {
            Source::Record { event: text }
            | Source::Api { by: text }
            | Source::Alertmanager { fingerprint: text }
            | Source::Upload { digest: text } => short(text, NAME),
            Source::Command | Source::Bundle { .. } => {}
        }
        self
    }

    /// What it is without names and texts: what stays when it is forgotten.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        let mut bare = Opened::new(self.id, Source::Command, "");
        FORGOTTEN.clone_into(&mut bare.invariant);
        bare
    }

    /// What all incidents of one kind share before anybody has looked at them: system, model and invariant.
    #[must_use]
    pub fn kind(&self) -> (&str, Option<&str>, &str) {
        (&self.system, self.model.as_deref(), &self.invariant)
    }
}

/// A stage of the work on an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// `build`: the execution that led to the violation.
    Building,
    /// `replay` on the model.
    Replaying,
    /// `minimize`, for what happened, reduced, in short time.
    Reducing,
    /// `minimize`, for the shortest way.
    Minimizing,
    /// `verify`, and the class of the schedule.
    Classifying,
    /// `report`.
    Reporting,
}

impl Stage {
    /// All of them, in the order in which they come.
    pub const ALL: [Stage; 6] = [
        Stage::Building,
        Stage::Replaying,
        Stage::Reducing,
        Stage::Minimizing,
        Stage::Classifying,
        Stage::Reporting,
    ];

    /// A stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Stage::Building => "building",
            Stage::Replaying => "replaying",
            Stage::Reducing => "reducing",
            Stage::Minimizing => "minimizing",
            Stage::Classifying => "classifying",
            Stage::Reporting => "reporting",
        }
    }
}

/// A file or folder that a stage made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// Its name in the incident's folder.
    pub name: String,
    /// BLAKE3 of the file; empty for folders, which carry digests of their own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// How the work on an incident ended, where it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is a shorter schedule that violates.
    Minimized,
    /// No model fits, so there is the recorded past alone.
    Unmodelled,
    /// The model cannot follow the recording.
    Diverged,
    /// The model follows the recording, and nothing breaks.
    NotReproduced,
}

impl Outcome {
    /// A stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Minimized => "minimized",
            Outcome::Unmodelled => "unmodelled",
            Outcome::Diverged => "diverged",
            Outcome::NotReproduced => "not_reproduced",
        }
    }
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A child used more memory than it may.
    OutOfMemory,
    /// A child took longer than it may.
    OutOfTime,
    /// The model failed, or the scenario cannot be used.
    ModelFailed,
    /// The model does not do the same twice.
    Nondeterministic,
    /// The store, the logs or the execution cannot be read.
    StoreUnreadable,
    /// No room on the disk.
    DiskFull,
    /// Workers were lost three times while they worked on it.
    LeaseLost,
    /// A command refused what it was given.
    Refused,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 8] = [
        Reason::OutOfMemory,
        Reason::OutOfTime,
        Reason::ModelFailed,
        Reason::Nondeterministic,
        Reason::StoreUnreadable,
        Reason::DiskFull,
        Reason::LeaseLost,
        Reason::Refused,
    ];

    /// A stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Reason::OutOfMemory => "out_of_memory",
            Reason::OutOfTime => "out_of_time",
            Reason::ModelFailed => "model_failed",
            Reason::Nondeterministic => "nondeterministic",
            Reason::StoreUnreadable => "store_unreadable",
            Reason::DiskFull => "disk_full",
            Reason::LeaseLost => "lease_lost",
            Reason::Refused => "refused",
        }
    }

    /// Whether it may go by itself, so that another attempt is made without being asked for.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Reason::OutOfMemory
                | Reason::OutOfTime
                | Reason::StoreUnreadable
                | Reason::DiskFull
                | Reason::ModelFailed
        )
    }
}

/// Why an incident is not worked on for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parked {
    /// Enough of its kind were looked at.
    Burst,
    /// Its bug is muted.
    Muted,
}

impl Parked {
    /// A stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Parked::Burst => "burst",
            Parked::Muted => "muted",
        }
    }
}

/// What a worker found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Steps, deliveries and external events of the shortest schedule.
    #[serde(default)]
    pub size: [u64; 3],
    /// The same of the recording.
    #[serde(default)]
    pub initial: [u64; 3],
    /// Steps of what happened, reduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced_steps: Option<u64>,
    /// Fingerprints of the violation in which the schedule ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violation: Vec<String>,
    /// The network rule.
    #[serde(default)]
    pub network: String,
    /// What is proven, in words; empty where nothing is.
    #[serde(default)]
    pub proven: String,
    /// Whether the proof was checked from scratch.
    #[serde(default)]
    pub verified: bool,
    /// The lower bound of deliveries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u64>,
    /// The model, and a digest of scenario and program.
    #[serde(default)]
    pub model: String,
    /// The digest.
    #[serde(default)]
    pub model_digest: String,
    /// Keys of the schedule's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
    /// The same of what happened, reduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced_keys: Option<Keys>,
    /// The switches of the scenario that the violation needs: with any of them off it is gone. Empty where none is known to be needed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cause: BTreeSet<String>,
    /// What is missing or uncertain, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The first steps, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub story: Vec<String>,
    /// Where the work ended without a schedule: what was refused or missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symptom: String,
    /// Files that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
}

impl Findings {
    /// What stays of them where they are forgotten: size and class, which have no names.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        Findings {
            size: self.size,
            keys: self.keys.clone(),
            reduced_keys: self.reduced_keys.clone(),
            cause: self.cause.clone(),
            ..Findings::default()
        }
    }

    /// The same with every text within its bound.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.violation = cut_all(&self.violation, LINE);
        self.doubts = cut_all(&self.doubts, LINE);
        self.cause = cut_all(&self.cause, NAME).into_iter().collect();
        self.story = self.story.iter().take(2 * MANY).map(|line| cut(line, LINE)).collect();
        for text in [&mut self.network, &mut self.model, &mut self.model_digest] {
            *text = cut(text, NAME);
        }
        for text in [&mut self.symptom, &mut self.proven] {
            *text = cut(text, LINE);
        }
        self.outputs.truncate(MANY);
        self
    }
}

/// What a delivery tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// An incident was opened that is no known bug's so far.
    Seen,
    /// A bug has its minimized page.
    Ready,
    /// A bug that was fixed is back.
    Regressed,
    /// Somebody resolved it.
    Resolved,
    /// It happened 10, 100 or 1,000 times.
    Milestone,
    /// The work on it failed for good.
    Failed,
}

impl News {
    /// All of them.
    pub const ALL: [News; 6] =
        [News::Seen, News::Ready, News::Regressed, News::Resolved, News::Milestone, News::Failed];

    /// A stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            News::Seen => "seen",
            News::Ready => "ready",
            News::Regressed => "regressed",
            News::Resolved => "resolved",
            News::Milestone => "milestone",
            News::Failed => "failed",
        }
    }
}

/// Something that was decided or done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
pub enum Event {
    /// Records of a table were read up to this version.
    Watched {
        /// The version.
        version: u64,
    },
    /// An incident.
    Opened(Box<Opened>),
    /// Somebody works on it.
    Claimed {
        /// Which.
        id: IncidentId,
        /// The number of the attempt, which is the fence of all that comes of it.
        attempt: u32,
        /// Who.
        worker: String,
    },
    /// An attempt came to another stage.
    Stage {
        /// Which.
        id: IncidentId,
        /// The attempt.
        attempt: u32,
        /// The stage that begins.
        stage: Stage,
        /// Seconds of the stage before.
        seconds: f64,
        /// What the stage before made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outputs: Vec<Output>,
        /// What is known so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        findings: Option<Box<Findings>>,
    },
    /// An attempt came to its end.
    Done {
        /// Which.
        id: IncidentId,
        /// The attempt.
        attempt: u32,
        /// How.
        outcome: Outcome,
        /// What was found out.
        findings: Box<Findings>,
    },
    /// An attempt failed.
    Failed {
        /// Which.
        id: IncidentId,
        /// The attempt.
        attempt: u32,
        /// Why.
        reason: Reason,
        /// The end of what the child said.
        said: String,
    },
    /// It is to be tried again.
    Retry {
        /// Which.
        id: IncidentId,
        /// Who wants it; empty where nobody had to.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// They are not worked on for now.
    Parked {
        /// Which.
        ids: Vec<IncidentId>,
        /// Why.
        reason: Parked,
    },
    /// An incident is an occurrence of a bug.
    Grouped {
        /// Which.
        id: IncidentId,
        /// The bug; a new one where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bug: Option<u32>,
        /// Keys that the bug owns from now on.
        keys: Vec<String>,
        /// Why.
        why: String,
        /// The nearest other bug, and how near it is, from 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<(u32, f64)>,
    },
    /// Two bugs are one.
    Merged {
        /// The one that ends.
        bug: u32,
        /// The one that stays.
        into: u32,
        /// Who said so.
        by: String,
    },
    /// Some incidents of a bug are another one.
    Split {
        /// Which bug.
        bug: u32,
        /// Which incidents.
        ids: Vec<IncidentId>,
        /// Who said so.
        by: String,
    },
    /// Somebody looks after a bug.
    Acked {
        /// Which.
        bug: u32,
        /// Who.
        by: String,
    },
    /// A bug is repaired.
    Closed {
        /// Which.
        bug: u32,
        /// Who said so.
        by: String,
        /// The version from which on it does not happen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fixed_in: Option<String>,
        /// Whether its schedules were replayed on a model of that version.
        checked: bool,
    },
    /// A bug is not repaired.
    Reopened {
        /// Which.
        bug: u32,
        /// Who said so.
        by: String,
    },
    /// Nobody is told of a bug, and its occurrences are not looked at.
    Muted {
        /// Which.
        bug: u32,
        /// Who said so.
        by: String,
        /// Whether from now on or no longer.
        on: bool,
    },
    /// How important a bug is.
    Priority {
        /// Which.
        bug: u32,
        /// Who said so.
        by: String,
        /// `low`, `normal`, `high` or `urgent`.
        to: String,
    },
    /// A note on a bug.
    Noted {
        /// Which.
        bug: u32,
        /// Who wrote it.
        by: String,
        /// The note.
        text: String,
    },
    /// A message is to be sent.
    Queued {
        /// Its key, of bug, news and receiver.
        key: String,
        /// The receiver.
        receiver: String,
        /// What it tells.
        news: News,
        /// Of which incident.
        id: IncidentId,
    },
    /// A message is being sent: after a kill nobody knows whether it was.
    Sending {
        /// Its key.
        key: String,
    },
    /// A message was taken.
    Sent {
        /// Its key.
        key: String,
    },
    /// A message was given up.
    Dead {
        /// Its key.
        key: String,
        /// Why.
        reason: String,
    },
    /// The schedules of a bug were replayed on a model.
    Replayed {
        /// Which.
        bug: u32,
        /// The model's digest.
        model: String,
        /// The verdict, a word.
        verdict: String,
    },
    /// Files of incidents were removed to make room.
    Swept {
        /// Which.
        ids: Vec<IncidentId>,
    },
    /// Everything of incidents but their class and number was removed for good.
    Purged {
        /// Which.
        ids: Vec<IncidentId>,
        /// Who said so.
        by: String,
    },
}

impl Event {
    /// The same with texts of people within their bounds.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        match &mut self {
            Event::Opened(opened) => **opened = (**opened).clone().bounded(),
            Event::Done { findings, .. } => **findings = std::mem::take(&mut **findings).bounded(),
            Event::Stage { findings: Some(findings), outputs, .. } => {
                **findings = std::mem::take(&mut **findings).bounded();
                outputs.truncate(MANY);
            }
            Event::Failed { said, .. } => *said = crate::text::end_of(said, NOTE),
            Event::Noted { text, by, .. } => {
                *text = cut(text, NOTE);
                *by = cut(by, NAME);
            }
            Event::Grouped { why, keys, .. } => {
                *why = cut(why, LINE);
                keys.truncate(MANY);
            }
            Event::Claimed { worker: text, .. }
            | Event::Retry { by: text, .. }
            | Event::Merged { by: text, .. }
            | Event::Split { by: text, .. }
            | Event::Acked { by: text, .. }
            | Event::Reopened { by: text, .. }
            | Event::Muted { by: text, .. }
            | Event::Purged { by: text, .. }
            | Event::Dead { reason: text, .. } => *text = cut(text, NAME),
            Event::Closed { by, fixed_in, .. } => {
                *by = cut(by, NAME);
                *fixed_in = fixed_in.as_deref().map(|version| cut(version, NAME));
            }
            Event::Priority { by, to, .. } => {
                *by = cut(by, NAME);
                *to = cut(to, NAME);
            }
            Event::Replayed { model, verdict, .. } => {
                *model = cut(model, NAME);
                *verdict = cut(verdict, NAME);
            }
            Event::Watched { .. }
            | Event::Stage { .. }
            | Event::Parked { .. }
            | Event::Queued { .. }
            | Event::Sending { .. }
            | Event::Sent { .. }
            | Event::Swept { .. } => {}
        }
        self
    }
}

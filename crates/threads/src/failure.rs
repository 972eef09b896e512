//! What went wrong in an execution.

use std::fmt;
use std::panic::Location;

use serde::{Deserialize, Serialize};

/// A place in the source, as text: `src/queue.rs:41:9`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spot(pub String);

impl From<&Location<'_>> for Spot {
    fn from(at: &Location<'_>) -> Self {
        Self(format!("{}:{}:{}", at.file(), at.line(), at.column()))
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A lock that a task holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The lock.
    pub what: String,
    /// Where it was taken.
    pub at: Spot,
}

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The task.
    pub task: String,
    /// Its operation.
    pub op: String,
    /// What the operation needs.
    pub what: String,
    /// Where it waits.
    pub at: Spot,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Where that one took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_at: Option<Spot>,
    /// What the task holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Held>,
    /// The last notification of a condition variable: its step, the task and the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_notify: Option<(u32, String, Spot)>,
    /// Whom that notification woke, where the wait had begun before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woke: Option<String>,
    /// A condition variable that nobody ever notified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_notified: bool,
}

/// The kind of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FailureKind {
    /// A task panicked.
    Panic {
        /// The task.
        task: String,
        /// What it said.
        message: String,
        /// Where.
        at: Spot,
    },
    /// No task can go on, and one has not ended.
    Deadlock {
        /// What each of them waits for.
        waits: Vec<Waits>,
    },
    /// A task goes round without letting others go first.
    Hog {
        /// The task.
        task: String,
        /// A place in its loop.
        at: Spot,
        /// Those that could go on.
        starved: Vec<String>,
        /// For so many steps.
        steps: u32,
    },
    /// The tasks go on without end, although each lets the others go first.
    Livelock {
        /// The tasks.
        tasks: Vec<String>,
        /// After so many steps.
        steps: u32,
        /// The steps of a round that comes again and again, where one was found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        round: Vec<String>,
    },
    /// The test does not do the same each time.
    Nondeterministic {
        /// What differed.
        message: String,
    },
    /// The test waits for something that this library does not control.
    Blocked {
        /// The task.
        task: String,
        /// After this operation.
        after: String,
        /// At this place.
        at: Spot,
    },
}

impl FailureKind {
    /// The class: failures of one class are the same failure to a search for a smaller schedule.
    #[must_use]
    pub fn class(&self) -> String {
        match self {
            FailureKind::Panic { at, .. } => format!("panic at {at}"),
            FailureKind::Deadlock { .. } => "deadlock".to_owned(),
            FailureKind::Hog { .. } => "hog".to_owned(),
            FailureKind::Livelock { .. } => "livelock".to_owned(),
            FailureKind::Nondeterministic { .. } => "nondeterministic".to_owned(),
            FailureKind::Blocked { .. } => "blocked".to_owned(),
        }
    }
}

/// Who waits for whom in a circle, if anybody does.
fn circle(waits: &[Waits]) -> Option<Vec<&Waits>> {
    for first in waits {
        let mut path = vec![first];
        while let Some(next) = path
            .last()
            .and_then(|last| last.by.as_ref())
            .and_then(|by| waits.iter().find(|waits| waits.task == *by))
        {
            if let Some(at) = path.iter().position(|waits| waits.task == next.task) {
                return Some(path.split_off(at));
            }
            path.push(next);
        }
    }
    None
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::Panic { task, message, at } => write!(f, "{task} panicked at {at}: {message}"),
            FailureKind::Deadlock { waits } => {
                write!(
                    f,
                    "deadlock: {} can go on",
                    if waits.len() == 1 { "the task that is left cannot; nobody" } else { "no task" }
                )?;
                for one in waits {
                    write!(f, "\n  {} waits in {}", one.task, one.op)?;
                    if !one.what.is_empty() {
                        write!(f, " for {}", one.what)?;
                    }
                    write!(f, " at {}", one.at)?;
                    match (&one.by, &one.by_at) {
                        (Some(by), Some(at)) if *by == one.task => {
                            write!(f, ", which it holds itself since {at}")?
                        }
                        (Some(by), Some(at)) => write!(f, ", which {by} holds since {at}")?,
                        (Some(by), None) if one.op == "read" => {
                            write!(f, ", for which {by} waits already, to write")?
                        }
                        (Some(by), None) if one.op != "join" => write!(f, ", which {by} holds")?,
                        _ => {}
                    }
                    if one.never_notified {
                        write!(f, "; nobody notified it")?;
                    }
                    if let Some((step, by, at)) = &one.last_notify {
                        write!(f, "; the last notification was step {step}, by {by} at {at}")?;
                        match &one.woke {
                            Some(woken) => write!(f, ", and woke {woken}")?,
                            None => write!(f, ", before this wait began")?,
                        }
                    }
                    for held in &one.holds {
                        write!(f, "\n    holds {} since {}", held.what, held.at)?;
                    }
                }
                match circle(waits) {
                    Some(circle) => {
                        let steps = circle.iter().map(|w| format!("{} waits for {}", w.task, w.what));
                        write!(f, "\n  in a circle: {}", steps.collect::<Vec<_>>().join(" -> "))?;
                        match circle.first() {
                            Some(first) => write!(f, " -> {}", first.task),
                            None => Ok(()),
                        }
                    }
                    None => write!(f, "\n  nobody is left who could end these waits"),
                }
            }
            FailureKind::Hog { task, at, starved, steps } if starved.is_empty() => write!(
                f,
                "{task} is still at {at} after {steps} steps, the most that an execution may have: it goes round without end, or needs more \
                 (DEMI_STEPS raises the limit)"
            ),
            FailureKind::Hog { task, at, starved, steps } => {
                write!(f, "{task} goes round at {at} for {steps} steps and never lets others go first")?;
                write!(f, " ({} could go on)", starved.join(", "))?;
                write!(f, "; call yield_now or spin_loop in the loop, or block")
            }
            FailureKind::Livelock { tasks, steps, round } if round.is_empty() => write!(
                f,
                "livelock: {} {} on without end, although each lets the others go first ({steps} steps; DEMI_STEPS raises the limit)",
                tasks.join(", "),
                if tasks.len() == 1 { "goes" } else { "go" }
            ),
            FailureKind::Livelock { tasks, steps, round } => write!(
                f,
                "livelock: {} can make this round again and again, although each lets the others go first (they did for {steps} steps; DEMI_STEPS \
                 raises the limit):\n  {}",
                tasks.join(", "),
                round.join("\n  ")
            ),
            FailureKind::Nondeterministic { message } => {
                write!(f, "the test is not deterministic: {message}")
            }
            FailureKind::Blocked { task, after, at } => write!(
                f,
                "{task} blocks for real after {after} at {at}: it waits for something that demi_threads does not control, such as a lock or channel \
                 of the standard library, or a thread of the operating system"
            ),
        }
    }
}

/// A failure of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(flatten)]
    kind: FailureKind,
}

impl Failure {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(kind: FailureKind) -> Self {
        Self { kind }
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &FailureKind {
        &self.kind
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> String {
        self.kind.class()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

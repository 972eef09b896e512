//! What a monitor is told, and what it tells.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json};

/// Options of a monitor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How long a record waits for what comes before it, in milliseconds.
    pub wait_millis: u64,
    /// How many records wait at most.
    pub wait_records: usize,
    /// How many rows of a history an invariant keeps at most, and how many rows and groups of it that fail.
    pub keys: usize,
    /// How many actors are known at most. Beyond, those that told nothing for the longest time are forgotten, first among those without a state.
    pub actors: usize,
    /// How many snapshots in a row must fail before it is told.
    pub confirm: u64,
    /// How long nothing is told of an invariant and group after something was, in milliseconds.
    pub quiet_millis: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            wait_millis: 2000,
            wait_records: 100_000,
            keys: 1_000_000,
            actors: 100_000,
            confirm: 1,
            quiet_millis: 300_000,
        }
    }
}

/// An invariant was found broken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    /// Known by invariant, row or group, and event: the same violation found again has the same id.
    pub id: String,
    /// The invariant's id.
    pub invariant: String,
    /// The invariant's name.
    pub name: String,
    /// The predicate.
    pub holds: String,
    /// The row or group that fails; empty for all actors.
    pub of: String,
    /// The event with which it began to fail.
    pub event: String,
    /// The actors of that row or group.
    pub affected: Vec<String>,
    /// What the affected actors told last, of the variables that are watched.
    pub states: Map<String, Json>,
    /// The events with which they told it, in the same order.
    pub told_at: Vec<String>,
}

/// Figures of a monitor's own work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that wait.
    pub held: usize,
    /// Messages on their way.
    pub on_their_way: usize,
    /// Rows of histories.
    pub kept: usize,
    /// How often an actor became uncertain.
    pub uncertain: u64,
    /// How many actors are known.
    pub actors: usize,
    /// How often an actor was forgotten because there were too many.
    pub forgotten: u64,
    /// Rows and groups that failed or could not be judged and were not told, because there were too many.
    pub untold: u64,
}

/// An invariant as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InvariantStatus {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The predicate.
    pub holds: String,
    /// Whether it is muted.
    pub muted: bool,
    /// The rows and groups that fail now, at most [`SHOWN`](Self::SHOWN); empty for all actors.
    pub failing: Vec<String>,
    /// How many fail.
    pub failing_groups: usize,
    /// How often it was looked at.
    pub checks: u64,
    /// How often it was found to fail anew.
    pub failures: u64,
    /// The event of the last failure.
    pub last_failure: Option<String>,
    /// Variables of it that no actor that it is about has told since the monitor began: it says nothing without them.
    pub never_told: Vec<String>,
    /// Rows and groups that cannot be judged now, with the reason: values that do not compare. At most [`SHOWN`](Self::SHOWN).
    pub unjudged: BTreeMap<String, String>,
    /// How many cannot be judged.
    pub unjudged_groups: usize,
}

impl InvariantStatus {
    /// Most rows or groups that are named.
    pub const SHOWN: usize = 100;
}

/// Rows or groups that cannot be judged any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// The invariant's id.
    pub invariant: String,
    /// The first of them, at most [`InvariantStatus::SHOWN`]; empty for all actors.
    pub of: Vec<String>,
    /// How many there are.
    pub groups: usize,
    /// Why the first of them cannot be judged.
    pub reason: String,
}

impl Violation {
    /// The violation as a fingerprint: the invariant and the actors that it is about.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut text = self.name.clone();
        for actor in &self.affected {
            text.push(':');
            text.push_str(actor);
        }
        text
    }
}

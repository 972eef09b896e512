//! What is asked of a build.

use demi_schemas::summary::{BackwardStamps, PlanSummary, ProvenanceRule, WindowSummary};

use crate::order::ViolationSpec;

/// Options of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Name of the recorded system, for the files written.
    pub system: String,
    /// How the violation is named.
    pub violation: ViolationSpec,
    /// Which events of the affected actors are kept.
    pub rule: ProvenanceRule,
    /// Most deliveries that are kept with which the schedule is written as text. A longer one is composed from the tables when it is
    /// asked for: nobody reads it.
    pub readable: u64,
    /// Whether the execution holds a copy of all records, as tables that other tools read. Without it, it refers to the rows of the store.
    pub copy: bool,
    /// Actors whose stamps run backwards through their logs; the summary says so.
    pub backwards: Vec<BackwardStamps>,
    /// The part of the system's events that the files hold; the summary says so.
    pub window: Option<WindowSummary>,
    /// The engine that found the causal past which the files hold, if one did; the summary says so.
    pub plan: Option<PlanSummary>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            system: String::new(),
            violation: ViolationSpec::default(),
            rule: ProvenanceRule::default(),
            readable: 100_000,
            copy: false,
            backwards: Vec::new(),
            window: None,
            plan: None,
        }
    }
}

/// An artifact beside the tables and the order index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Artifact {
    /// The schedule of what was kept.
    Schedule,
    /// What the execution can be grown from when events are added to the store.
    Base,
}

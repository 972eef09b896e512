//! What a scenario says of the model.

use demi_schemas::{Known, Scenario, ScenarioError};

/// The name by which scenarios call the model.
pub const NAME: &str = "tikv-raft";

/// The names of all invariants.
const INVARIANTS: [&str; 7] = [
    "ElectionSafety",
    "LogMatching",
    "StateMachineSafety",
    "LeaderCompleteness",
    "AcknowledgedWrites",
    "LinearizableReads",
    "NoPanic",
];

/// One invariant.
#[derive(Clone, Copy)]
pub(crate) struct Invariant(usize);

impl std::fmt::Debug for Invariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Invariant {
    /// Its place among all.
    pub(crate) fn number(self) -> usize {
        self.0
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        INVARIANTS[self.0]
    }

    /// Those that the scenario asks for; all where it names none.
    pub(crate) fn asked(scenario: &Scenario) -> Vec<Invariant> {
        let asked = |name: &str| scenario.invariants.as_ref().is_none_or(|all| all.iter().any(|n| n == name));
        (0..INVARIANTS.len()).filter(|&at| asked(INVARIANTS[at])).map(Invariant).collect()
    }
}

/// Ways to use the library against its documentation. All off, the program around it is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Messages go out at once; what they promise is synced later.
    pub send_before_sync: bool,
    /// What was applied is durable at once, though the commit index may not be.
    pub apply_before_persist: bool,
    /// A hard state is never synced, even where `Ready::must_sync` asks for it.
    pub ignore_must_sync: bool,
    /// A leader answers reads from its own state.
    pub read_without_index: bool,
    /// A node that has applied its own removal goes on, as a leader too.
    pub removed_goes_on: bool,
}

impl Switches {
    const NAMES: [&str; 5] = [
        "send_before_sync",
        "apply_before_persist",
        "ignore_must_sync",
        "read_without_index",
        "removed_goes_on",
    ];

    /// Whether something is written that is synced only later, by the timer `sync`.
    #[must_use]
    pub fn syncs_late(self) -> bool {
        self.send_before_sync || self.ignore_must_sync
    }
}

/// The sizes of a system, and how often clients ask for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Voters from the beginning.
    pub members: u64,
    /// Nodes that run but belong to nobody until they are added.
    pub spares: u64,
    /// The library's `Config::check_quorum`.
    pub check_quorum: bool,
    /// The library's `Config::pre_vote`.
    pub pre_vote: bool,
    /// Weight of writes among the requests of a random run.
    pub writes: u64,
    /// Weight of reads.
    pub reads: u64,
    /// Weight of changes of the membership.
    pub conf_changes: u64,
    /// Weight of compactions, after which a node that lags behind needs a snapshot.
    pub compactions: u64,
    /// Misuses of the library.
    pub switches: Switches,
}

/// Most nodes that a system may have.
const MOST: u64 = 9;

impl Settings {
    const NAMES: [&str; 7] =
        ["spares", "check_quorum", "pre_vote", "writes", "reads", "conf_changes", "compactions"];

    /// Reads them.
    ///
    /// # Errors
    /// When the scenario has a name that the model does not know, or a value out of range.
    pub fn new(scenario: &Scenario) -> Result<Settings, ScenarioError> {
        Known {
            switches: &Switches::NAMES,
            settings: &Settings::NAMES,
            invariants: &INVARIANTS,
            ..Known::default()
        }
        .check(scenario)?;
        let on = |name: &str| scenario.switches.get(name).copied().unwrap_or(false);
        let settings = Settings {
            members: u64::from(scenario.members.unwrap_or(3)),
            spares: number(scenario, "spares", 0)?,
            check_quorum: flag(scenario, "check_quorum")?,
            pre_vote: flag(scenario, "pre_vote")?,
            writes: number(scenario, "writes", 3)?,
            reads: number(scenario, "reads", 1)?,
            conf_changes: number(scenario, "conf_changes", 0)?,
            compactions: number(scenario, "compactions", 0)?,
            switches: Switches {
                send_before_sync: on("send_before_sync"),
                apply_before_persist: on("apply_before_persist"),
                ignore_must_sync: on("ignore_must_sync"),
                read_without_index: on("read_without_index"),
                removed_goes_on: on("removed_goes_on"),
            },
        };
        let nodes = settings.members.saturating_add(settings.spares);
        if settings.members == 0 || nodes > MOST {
            return Err(ScenarioError::Value(format!(
                "there must be a member, and at most {MOST} nodes with the spares, got {nodes}"
            )));
        }
        Ok(settings)
    }
}

fn number(scenario: &Scenario, name: &str, otherwise: u64) -> Result<u64, ScenarioError> {
    let Some(value) = scenario.settings.get(name) else { return Ok(otherwise) };
    let number = value.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= 1000);
    number.ok_or_else(|| ScenarioError::Value(format!("{name} must be from 0 to 1000, got {value}")))
}

fn flag(scenario: &Scenario, name: &str) -> Result<bool, ScenarioError> {
    let Some(value) = scenario.settings.get(name) else { return Ok(false) };
    value.as_bool().ok_or_else(|| ScenarioError::Value(format!("{name} must be true or false, got {value}")))
}

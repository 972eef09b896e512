//! What a scenario decides about the model: switches, payload options, invariants, number of members.

use std::collections::BTreeMap;

use demi_schemas::scenario::{Scenario, ScenarioError};

use demi_replay::registry::unknown_name;

/// Name of the model in scenario files.
pub const MODEL: &str = "akka-raft";

/// Members where the scenario names no number.
const DEFAULT_MEMBERS: u32 = 4;

/// More members than this are taken for a slip of the pen.
const MAX_MEMBERS: u32 = 1000;

/// Declares a struct of named flags that are off by default and set by name.
macro_rules! flags {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $field:ident,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$inner])* pub $field: bool,)* }

        impl $name {
            /// The names by which scenario files set the flags.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Sets a flag; false if there is none of that name.
            fn set(&mut self, name: &str, on: bool) -> bool {
                match name {
                    $(stringify!($field) => self.$field = on,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

flags! {
    /// Deviations from the repaired program.
    Switches {
        /// A candidate counts vote messages instead of voters.
        raft45_duplicate_votes,
        /// A candidate counts votes of earlier terms.
        raft46_stale_votes,
        /// A candidate that becomes follower forgets whom it voted for.
        raft56_forget_votes,
        /// The family of programs whose logs begin with index 0 and whose followers check no previous entry.
        raft58b_zero_indexed_log,
        /// The leader's tables are set up when `ElectedAsLeader` is handled, not when the election is won.
        raft58a_late_leader_init,
        /// The commit index is the most frequent match index instead of the one a majority has reached.
        raft42_mode_quorum,
        /// A follower cuts its log behind every append, also where nothing conflicts.
        raft66_truncate,
        /// A member that fails restarts with nothing remembered.
        raft62_restart,
        /// A candidate declines a stale request under the request's term.
        stale_decline_echoes_term,
        /// A follower takes the term of a newer vote request and loses the request.
        follower_drops_newer_rv,
        /// A candidate takes the term of a newer vote request and loses the request.
        candidate_drops_newer_rv,
        /// A candidate may vote for another without becoming follower.
        candidate_votes_in_place,
        /// A candidate stays one when it is declined under a newer term.
        newer_decline_ignored,
        /// Votes are granted whatever the candidate's log.
        vote_ignores_log,
        /// A vote request leaves the voter's election timer alone.
        vote_keeps_timer,
        /// A candidate whose timer fires arms no new one.
        candidate_timeout_no_rearm,
        /// An accepted append sets the term to that of the last log entry, even if it is lower.
        term_from_log,
        /// A leader that steps down forgets whom it voted for.
        leader_forgets_votes,
        /// A vote is never granted twice, not even to the same candidate.
        never_repeats_vote,
        /// Votes and vote requests of all newer terms are taken for current ones.
        no_term_checks,
    }
}

flags! {
    /// How payloads and violations are written.
    Payload {
        /// A client message names its client.
        client_message_names_client,
        /// A configuration change does not list the members.
        bare_change_configuration,
        /// A broken Election Safety names the term.
        violation_names_term,
    }
}

/// Which invariants are checked. Crashes always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariants {
    /// At most one leader in a term.
    pub election_safety: bool,
    /// Logs agree up to every entry they share.
    pub log_match: bool,
    /// Leaders have every entry committed in earlier terms.
    pub leader_completeness: bool,
    /// Members apply the same commands in the same order.
    pub state_machine: bool,
}

impl Invariants {
    /// The names that scenario files may use.
    pub const NAMES: &'static [&'static str] = &[
        "ElectionSafety",
        "LogMatch",
        "LogMatching",
        "LeaderCompleteness",
        "StateMachine",
        "StateMachineSafety",
        "Crash",
        "NoCrash",
    ];

    fn parse(names: Option<&[String]>) -> Result<Self, ScenarioError> {
        let all = names.is_none();
        let mut on =
            Invariants { election_safety: all, log_match: all, leader_completeness: all, state_machine: all };
        for name in names.unwrap_or_default() {
            match name.as_str() {
                "ElectionSafety" => on.election_safety = true,
                "LogMatch" | "LogMatching" => on.log_match = true,
                "LeaderCompleteness" => on.leader_completeness = true,
                "StateMachine" | "StateMachineSafety" => on.state_machine = true,
                "Crash" | "NoCrash" => {}
                _ => return Err(unknown_name(MODEL, "invariant", name, Self::NAMES)),
            }
        }
        Ok(on)
    }
}

/// What the scenario says, checked.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Deviations from the repaired program.
    pub switches: Switches,
    /// How payloads and violations are written.
    pub payload: Payload,
    /// Which invariants are checked.
    pub invariants: Invariants,
    /// Number of members.
    pub members: u32,
}

impl Config {
    /// Reads the model's part of a scenario.
    ///
    /// # Errors
    /// When it uses a name that the model does not know, or no sensible number of members.
    pub fn parse(scenario: &Scenario) -> Result<Config, ScenarioError> {
        let mut switches = Switches::default();
        set_all("switch", &scenario.switches, Switches::NAMES, |name, on| switches.set(name, on))?;
        let mut payload = Payload::default();
        set_all("payload option", &scenario.payload, Payload::NAMES, |name, on| payload.set(name, on))?;
        if let Some(name) = scenario.settings.keys().next() {
            return Err(unknown_name(MODEL, "setting", name, &[]));
        }
        let invariants = Invariants::parse(scenario.invariants.as_deref())?;
        let members = scenario.members.unwrap_or(DEFAULT_MEMBERS);
        if !(1..=MAX_MEMBERS).contains(&members) {
            return Err(ScenarioError::Value(format!(
                "model '{MODEL}' has 1 to {MAX_MEMBERS} members, got {members}"
            )));
        }
        Ok(Config { switches, payload, invariants, members })
    }
}

fn set_all(
    what: &'static str,
    given: &BTreeMap<String, bool>,
    known: &[&str],
    mut set: impl FnMut(&str, bool) -> bool,
) -> Result<(), ScenarioError> {
    match given.iter().find(|(name, on)| !set(name, **on)) {
        Some((name, _)) => Err(unknown_name(MODEL, what, name, known)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ScenarioError> {
        Config::parse(
            &Scenario::parse(&format!("model = \"akka-raft\"\nnetwork = \"fifo\"\n{text}")).unwrap(),
        )
    }

    #[test]
    fn everything_is_off_and_all_invariants_are_on_by_default() {
        let config = parse("").unwrap();
        assert_eq!(config.switches, Switches::default());
        assert_eq!(config.members, 4);
        assert!(config.invariants.state_machine && config.invariants.election_safety);
    }

    #[test]
    fn listed_invariants_are_the_only_ones() {
        let on = parse("invariants = [\"LogMatching\", \"NoCrash\"]").unwrap().invariants;
        assert!(on.log_match && !on.election_safety && !on.leader_completeness && !on.state_machine);
    }

    #[test]
    fn misspelt_names_are_refused_with_the_nearest() {
        for (text, near) in [
            ("[switches]\nraft45_duplicate_vote = true", "raft45_duplicate_votes"),
            ("[payload]\nbare_change_config = true", "bare_change_configuration"),
            ("invariants = [\"ElectionSafty\"]", "ElectionSafety"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean '{near}'?")), "{error}");
        }
        assert!(parse("[settings]\nx = 1").unwrap_err().to_string().contains("setting 'x'"));
        assert!(parse("members = 0").is_err());
    }
}

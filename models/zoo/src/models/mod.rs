//! The systems, one file each.

use demi_replay::Visitor;
use demi_replay::{Names, Simulator};
use demi_schemas::{Scenario, ScenarioError};

use crate::{Half, System};

/// Ids of actors named `prefix-1`, `prefix-2` and so on.
fn group(names: &mut Names, prefix: &str, count: usize) -> Vec<demi_replay::ActorId> {
    (1..=count).map(|n| names.id(&format!("{prefix}-{n}"))).collect()
}

/// Whether a switch of the scenario is on.
fn on(scenario: &Scenario, switch: &str) -> bool {
    scenario.switches.get(switch).copied().unwrap_or(false)
}

macro_rules! zoo {
    ($($module:ident::$model:ident, $name:literal, $half:ident, $title:literal, $switch:literal;)*) => {
        $(mod $module;)*

        /// All systems, in the order of the list in `README.md`.
        pub const ZOO: &[System] = &[
            $(System { name: $name, half: Half::$half, title: $title, switch: $switch },)*
        ];

        /// The text of a system's scenario file.
        fn text(name: &str) -> Option<&'static str> {
            match name {
                $($name => Some(include_str!(concat!("../../scenarios/", $name, ".toml"))),)*
                _ => None,
            }
        }

        /// Makes the simulator of the model that the scenario names and hands it to the visitor.
        ///
        /// # Errors
        /// When the zoo has no such model.
        pub fn with_model<V: Visitor>(scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
            let mut names = Names::default();
            match scenario.model.as_str() {
                $($name => {
                    let model = $module::$model::new(scenario, &mut names);
                    Ok(visitor.visit(Simulator::new(model, names, scenario)?))
                })*
                other => Err(unknown(other)),
            }
        }
    };
}

zoo! {
    paxos::Paxos, "paxos", Tuning, "multi-Paxos", "stale_promises";
    chain::Chain, "chain", Tuning, "chain replication", "no_seal";
    abd::Abd, "abd", Tuning, "ABD register", "no_write_back";
    chord::Chord, "chord", Measuring, "Chord", "original";
    two_phase::TwoPhase, "two-phase-xa", Tuning, "two-phase commit", "rollback_prepared";
    three_phase::ThreePhase, "three-phase", Measuring, "three-phase commit", "timeouts_decide";
    snapshot::Snapshot, "snapshot", Tuning, "Chandy–Lamport snapshot", "plain_markers";
    ring::Ring, "ring", Measuring, "ring election (Chang–Roberts)", "no_hops";
    bully::Bully, "bully", Tuning, "bully election (Zen)", "joins_twice";
    ricart::Ricart, "ricart", Measuring, "Ricart–Agrawala", "own_numbers";
    token::Token, "token", Tuning, "token mutual exclusion", "times_out";
    ibft::Ibft, "ibft", Measuring, "PBFT view change (IBFT)", "forgets_prepared";
    crdt::Crdt, "crdt", Tuning, "CRDT set", "common_dots";
    swim::Swim, "swim", Measuring, "gossip membership (SWIM)", "dead_keeps_incarnation";
    lease::Lease, "lease", Tuning, "lock service with leases", "no_fencing";
    transactions::Transactions, "transactions", Measuring, "transactions over a key-value store", "blind_retry";
}

fn unknown(name: &str) -> ScenarioError {
    ScenarioError::Value(format!("the zoo has no '{name}'"))
}

/// A system's scenario.
///
/// # Errors
/// When the zoo has no such system, or its file is not a scenario.
pub fn scenario(name: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text(name).ok_or_else(|| unknown(name))?)
}

//! Three registers, written for Stateright, with all commands of a model's own program:
//!
//!     cargo run -p demi-stateright --example registers -- fuzz --scenario models/stateright/scenarios/paxos.toml --out found
//!     cargo run -p demi-stateright --example registers -- minimize found --scenario models/stateright/scenarios/paxos.toml --out min

mod abd;
mod paxos;
mod register;
mod single_copy;

use demi_commands::{Models, Scenario};
use demi_stateright::System;

/// Whether the scenario switches something on.
fn on(scenario: &Scenario, switch: &str) -> bool {
    scenario.switches.get(switch).copied().unwrap_or(false)
}

/// The number of servers.
fn servers(scenario: &Scenario, otherwise: usize) -> usize {
    scenario.members.map_or(otherwise, |members| members as usize)
}

fn main() {
    let models = Models::new()
        .with("single-copy", |scenario, names| {
            System::new(single_copy::system(servers(scenario, 2)), scenario, names)
        })
        .with("paxos", |scenario, names| {
            let bug = on(scenario, "half_is_a_quorum");
            System::new(paxos::system(servers(scenario, 3), bug), scenario, names)
        })
        .with("abd", |scenario, names| {
            let bug = on(scenario, "older_overwrites");
            System::new(abd::system(servers(scenario, 2), bug), scenario, names)
        });
    demi_commands::main(models)
}

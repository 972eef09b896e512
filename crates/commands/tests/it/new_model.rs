//! The model that a new project begins with, compiled as it is written there.

use demi_commands::testing::{search, violations};

#[path = "../../templates/rust/src/lib.rs"]
mod project;

/// The name has not been filled in.
const SCENARIO: &str =
    "model = '{{name}}'\nnetwork = 'fifo'\nmembers = 2\nswitches = { forgetful_lease = true }";

#[test]
fn the_bug_is_found_and_can_be_followed_again() {
    let found = search(&project::models(), SCENARIO, 1, 1_000, 200).unwrap().unwrap();
    let again = violations(&project::models(), SCENARIO, &found.to_text()).unwrap();
    assert_eq!(again, ["MutualExclusion"]);
}

#[test]
fn the_repaired_system_breaks_nothing() {
    let repaired = SCENARIO.replace("true", "false");
    for network in ["fifo", "fifo-loss"] {
        let repaired = repaired.replace("fifo", network);
        for seed in 0..20 {
            let found = search(&project::models(), &repaired, seed, 10, 300).unwrap();
            assert_eq!(found.map(|schedule| schedule.to_text()), None, "{network}");
        }
    }
}

#[test]
fn a_name_that_the_model_does_not_know_is_an_error() {
    let wrong = SCENARIO.replace("forgetful_lease", "forgetful_leas");
    let why = search(&project::models(), &wrong, 1, 1, 1).unwrap_err().to_string();
    assert!(why.contains("did you mean 'forgetful_lease'?"), "{why}");
}

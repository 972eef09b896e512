//! Properties of the model: the repaired system breaks nothing, and what is found can be followed again.

use demi_commands::testing::{search, violations};
use {{crate}}::models;
use proptest::prelude::*;

const BUGGY: &str = include_str!("../scenario.toml");

fn repaired() -> String {
    BUGGY.replace("forgetful_lease = true", "forgetful_lease = false")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_repaired_system_breaks_nothing(seed: u64) {
        let found = search(&models(), &repaired(), seed, 10, 200).unwrap();
        prop_assert_eq!(found.map(|schedule| schedule.to_text()), None);
    }

    #[test]
    fn what_is_found_is_found_again(seed: u64) {
        if let Some(schedule) = search(&models(), BUGGY, seed, 10, 200).unwrap() {
            let again = violations(&models(), BUGGY, &schedule.to_text()).unwrap();
            prop_assert_eq!(again, schedule.header.violation);
        }
    }
}

#[test]
fn the_bug_is_found() {
    assert!(search(&models(), BUGGY, 1, 1_000, 200).unwrap().is_some());
}

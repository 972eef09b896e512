//! The scenario files, and what is wrong with others.

use demi_replay::Names;
use demi_tikv_raft::{NAME, TikvRaft};

use crate::common::{SCENARIOS, scenario, three};

#[test]
fn each_file_names_the_model_and_one_switch() {
    for (name, _) in SCENARIOS {
        let scenario = scenario(name);
        assert_eq!(scenario.model, *NAME);
        let on: Vec<String> = scenario.switches.keys().map(|switch| switch.replace('_', "-")).collect();
        let expected = match name {
            "correct" => "",
            "removed-reads" => "removed-goes-on",
            other => other,
        };
        assert_eq!(on.join(" "), expected);
        TikvRaft::new(&scenario, &mut Names::default()).unwrap();
    }
}

#[test]
fn what_the_model_does_not_know_is_refused() {
    let why = |rest: &str| TikvRaft::new(&three(rest), &mut Names::default()).unwrap_err().to_string();
    assert!(why("[switches]\nignore_mustsync = true").contains("did you mean 'ignore_must_sync'"));
    assert!(why("[settings]\nreeds = 1").contains("did you mean 'reads'"));
    assert!(why("[settings]\nreads = -1").contains("from 0 to 1000"));
    assert!(why("[settings]\npre_vote = 1").contains("true or false"));
    assert!(why("members = 0").contains("there must be a member"));
    assert!(why("members = 9\n[settings]\nspares = 1").contains("at most 9 nodes"));
}

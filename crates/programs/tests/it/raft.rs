//! Maelstrom's own Raft in Python, with a node that votes twice in a term: long, so only where it is asked for.

use std::time::Instant;

use crate::citizens::python;
use crate::workloads::{Search, scenario};
use demi_programs::WithPrograms;
use demi_replay::Registry;
use demi_replay::registry::NoModels;

/// The program, if it is there and there is time.
fn raft() -> Option<String> {
    let corpus = std::env::var_os("DEMI_CORPUS").map(std::path::PathBuf::from);
    let text =
        corpus.and_then(|corpus| std::fs::read_to_string(corpus.join("maelstrom/demo/python/raft.py")).ok());
    if std::env::var_os("DEMI_LONG").is_none() || text.is_none() || !python() {
        println!(
            "skipped: DEMI_LONG and DEMI_CORPUS ask for it, with a folder that has maelstrom/demo/python/raft.py"
        );
        return None;
    }
    text
}

#[test]
fn two_votes_in_a_term_are_found() {
    let Some(text) = raft() else { return };
    let vote = "elif self.voted_for is not None:";
    assert!(text.contains(vote), "the program has changed");
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &text.replace(vote, "elif False:"), "lin-kv", "unordered", "");
    let mut found = 0;
    let seeds: u64 = std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10);
    for seed in 1..=seeds {
        let began = Instant::now();
        let registry = WithPrograms::new(NoModels);
        let violation = registry
            .visit(&scenario, Search { scenario: &scenario, seed, runs: 400, deliveries: 120 })
            .unwrap();
        assert_eq!(registry.fault(), None);
        println!(
            "seed {seed}: {violation:?} after {:.1} s, {:?}",
            began.elapsed().as_secs_f64(),
            registry.programs()
        );
        found += u64::from(violation == Some(vec!["lin-kv/not linearizable".to_owned()]));
    }
    assert!(found * 10 >= seeds * 9, "{found} of {seeds}");
}

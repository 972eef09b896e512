//! The library used as documented: nothing breaks, and a lot happens.

use demi_replay::fuzz::{FuzzOptions, fuzz};

use crate::common::{Walk, client, node, scenario, simulator};

#[test]
fn random_runs_break_nothing() {
    let scenario = scenario("correct");
    let mut made = 0;
    let options = FuzzOptions::new(11, 40, 500);
    let found = fuzz(&mut simulator(&scenario), &scenario, &options, &mut |so_far| {
        made = so_far.executed;
        true
    });
    assert_eq!(found.unwrap().map(|found| found.violation), None);
    assert!(made >= 15_000, "{made} deliveries");
}

/// What walks reached, added up.
#[derive(Debug, Default)]
struct Reached {
    acknowledged: usize,
    read: usize,
    newcomers: usize,
    removed: usize,
    compacted: usize,
    terms: u64,
}

#[test]
fn walks_write_read_change_members_compact_and_elect() {
    let mut all = Reached::default();
    for seed in 1..=6 {
        let mut walk = Walk::new(&scenario("correct"), seed);
        for _ in 0..1_500 {
            walk.step();
            let mut found = Vec::new();
            walk.sim.check(&walk.world, &mut (), &mut found);
            assert_eq!(found, []);
        }
        let client = client(&walk.sim, &walk.world);
        all.acknowledged += client.acknowledged.len();
        all.read += usize::from(client.read > 0);
        for id in 1..=4 {
            let node = node(&walk.sim, &walk.world, id);
            let stored = &node.disk.written;
            let voters = &stored.application.members().voters;
            // The fourth node begins with nothing: only a snapshot brings it what was applied before.
            all.newcomers += usize::from(id == 4 && stored.entries.base() > 0);
            all.removed += usize::from(!voters.is_empty() && voters.len() < 3);
            all.compacted += usize::from(stored.entries.base() > 1);
            all.terms = all.terms.max(stored.hard.term);
        }
    }
    println!("{all:?}");
    assert!(all.acknowledged > 20 && all.read > 2 && all.terms > 3, "{all:?}");
    assert!(all.newcomers > 0 && all.removed > 0 && all.compacted > 0, "{all:?}");
}

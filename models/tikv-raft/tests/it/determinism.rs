//! The same choices lead to the same configurations, whatever the library draws at random.

use std::thread;

use crate::common::{Walk, scenario};

/// The configurations of a walk.
fn digests(seed: u64) -> Vec<u128> {
    let mut walk = Walk::new(&scenario("correct"), seed);
    (0..600)
        .map(|_| {
            walk.step();
            walk.digest()
        })
        .collect()
}

#[test]
fn a_walk_is_the_same_in_every_thread() {
    let seeds = || 1..4;
    let here: Vec<_> = seeds().map(digests).collect();
    let there: Vec<_> = seeds().map(|seed| thread::spawn(move || digests(seed))).collect();
    let there: Vec<_> = there.into_iter().map(|walk| walk.join().unwrap()).collect();
    assert_eq!(here, there);
    assert_ne!(here[0], here[1]);
}

//! A crash leaves what was synced, and nothing else.

use demi_replay::{Simulator, World};
use demi_tikv_raft::{Hard, Msg, Role, TikvRaft};

use crate::common::{deliver, node, raft, simulator, three};

fn hard(sim: &Simulator<TikvRaft>, world: &World<TikvRaft>, id: usize) -> Hard {
    node(sim, world, id).disk.written.hard
}

fn restart(sim: &mut Simulator<TikvRaft>, world: &mut World<TikvRaft>, id: usize) {
    let actor = sim.model().nodes()[id - 1];
    sim.crash(world, actor);
    sim.restart(world, actor);
}

/// Node 1 is elected with the vote of node 2, which has then taken its first entry.
fn elected(rest: &str) -> (Simulator<TikvRaft>, World<TikvRaft>) {
    let mut sim = simulator(&three(rest));
    let mut world = sim.empty_world();
    deliver(&mut sim, &mut world, 1, |msg| *msg == Msg::Election);
    deliver(&mut sim, &mut world, 2, raft("MsgRequestVote"));
    deliver(&mut sim, &mut world, 1, raft("MsgRequestVoteResponse"));
    deliver(&mut sim, &mut world, 2, raft("MsgAppend"));
    assert!(node(&sim, &world, 1).leads());
    (sim, world)
}

#[test]
fn a_vote_and_entries_survive_where_they_are_synced() {
    let (mut sim, mut world) = elected("");
    restart(&mut sim, &mut world, 2);
    assert_eq!(hard(&sim, &world, 2), Hard { term: 2, vote: 1, commit: 1 });
    let back = node(&sim, &world, 2);
    assert_eq!(back.disk.written.entries.last(), 2);
    assert_eq!(back.volatile.as_ref().map(|v| (v.role, v.leader)), Some((Role::Follower, 0)));
}

#[test]
fn a_commit_index_alone_need_not_be_synced_and_takes_what_was_applied_with_it() {
    let (mut sim, mut world) = elected("");
    deliver(&mut sim, &mut world, 1, raft("MsgAppendResponse"));
    let stored = &node(&sim, &world, 1).disk.written;
    assert_eq!((stored.hard.commit, stored.application.index()), (2, 2));
    restart(&mut sim, &mut world, 1);
    let stored = &node(&sim, &world, 1).disk.written;
    assert_eq!((stored.hard.term, stored.entries.last()), (2, 2));
    assert_eq!((stored.hard.commit, stored.application.index()), (1, 1));
}

#[test]
fn a_crash_loses_what_was_not_synced_yet() {
    let (mut sim, mut world) = elected("[switches]\nsend_before_sync = true");
    restart(&mut sim, &mut world, 2);
    assert_eq!(hard(&sim, &world, 2), Hard { term: 1, vote: 0, commit: 1 });
    assert_eq!(node(&sim, &world, 2).disk.written.entries.last(), 1);
}

#[test]
fn the_timer_syncs_what_was_sent_too_early() {
    let (mut sim, mut world) = elected("[switches]\nsend_before_sync = true");
    deliver(&mut sim, &mut world, 2, |msg| *msg == Msg::Sync);
    restart(&mut sim, &mut world, 2);
    assert_eq!(hard(&sim, &world, 2), Hard { term: 2, vote: 1, commit: 1 });
    assert_eq!(node(&sim, &world, 2).disk.written.entries.last(), 2);
}

#[test]
fn an_ignored_must_sync_loses_the_vote_and_keeps_the_entries() {
    let (mut sim, mut world) = elected("[switches]\nignore_must_sync = true");
    restart(&mut sim, &mut world, 2);
    assert_eq!(hard(&sim, &world, 2), Hard { term: 1, vote: 0, commit: 1 });
    assert_eq!(node(&sim, &world, 2).disk.written.entries.last(), 2);
}

#[test]
fn what_was_applied_too_early_ends_the_next_start() {
    let (mut sim, mut world) = elected("[switches]\napply_before_persist = true");
    deliver(&mut sim, &mut world, 1, raft("MsgAppendResponse"));
    restart(&mut sim, &mut world, 1);
    let died = node(&sim, &world, 1).died.as_deref().unwrap_or_default();
    assert!(died.contains("applied(2) is out of range"), "{died}");
}

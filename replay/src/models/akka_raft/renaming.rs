//! Members in each other's places.
//!
//! The program asks for names only to sort the members it knows; the order in which it then addresses them is no order
//! between channels. There is one exception: the quorum rule that takes the most frequent match index decides ties by
//! the order in which its hash table enumerates, and indices of one bucket come in the order of their members.

use std::sync::Arc;

use super::AkkaRaft;
use super::message::Msg;
use super::state::Member;
use crate::names::ActorId;

/// From this index on two indices may share a bucket of the hash table.
const FIRST_SHARED: i32 = 8;

/// A member's variables with others, or it itself, in other places.
pub fn member(model: &AkkaRaft, state: &Member, to: &dyn Fn(ActorId) -> ActorId) -> Option<Member> {
    let far = state.matched.iter().any(|(_, index)| index >= FIRST_SHARED);
    if model.config.switches.raft42_mode_quorum && far {
        return None;
    }
    let mut renamed = state.clone();
    renamed.config = list(model, &state.config, to);
    renamed.votes.iter_mut().for_each(|(_, candidate)| *candidate = to(*candidate));
    renamed.tally.voters.iter_mut().for_each(|voter| *voter = to(*voter));
    renamed.next = state.next.renamed(to);
    renamed.matched = state.matched.renamed(to);
    Some(renamed)
}

/// A message that speaks of others.
pub fn message(model: &AkkaRaft, msg: &Msg, to: &dyn Fn(ActorId) -> ActorId) -> Msg {
    match msg {
        Msg::RequestVote { term, candidate, last_term, last_index } => Msg::RequestVote {
            term: *term,
            candidate: to(*candidate),
            last_term: *last_term,
            last_index: *last_index,
        },
        Msg::ChangeConfiguration { members } => {
            Msg::ChangeConfiguration { members: list(model, members, to) }
        }
        other => other.clone(),
    }
}

/// Members by name, as the program sorts them.
fn list(model: &AkkaRaft, members: &[ActorId], to: &dyn Fn(ActorId) -> ActorId) -> Arc<[ActorId]> {
    let mut renamed: Vec<ActorId> = members.iter().map(|member| to(*member)).collect();
    let place = |member: &ActorId| model.members.iter().position(|m| m == member);
    renamed.sort_by_key(|member| (place(member), member.0));
    renamed.into()
}

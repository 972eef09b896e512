//! Symmetry reduction: members in each other's places.
//!
//! It estimates nothing. It is exact where it applies: the program asks for names only to sort the members it knows, and
//! the order in which it then addresses them is no order between channels. There is one exception: the quorum rule that
//! takes the most frequent match index decides ties by the order in which its hash table enumerates, and indices of one
//! bucket come in the order of their members. Such a state is not renamed.
//!
//! `replay/tests/it/raft_renaming.rs` tests it: along random walks a delivery does to the renamed configuration what it
//! does to the configuration, renamed.

use std::sync::Arc;

use crate::AkkaRaft;
use crate::message::Msg;
use crate::state::Member;
use demi_replay::model::Symmetry;
use demi_replay::names::ActorId;

/// From this index on two indices may share a bucket of the hash table.
const FIRST_SHARED: i32 = 8;

impl Symmetry<Member, Msg> for AkkaRaft {
    fn state(&self, state: &Member, to: &dyn Fn(ActorId) -> ActorId) -> Option<Member> {
        let far = state.matched.iter().any(|(_, index)| index >= FIRST_SHARED);
        if self.config.switches.raft42_mode_quorum && far {
            return None;
        }
        let mut renamed = state.clone();
        renamed.config = list(self, &state.config, to);
        renamed.votes.iter_mut().for_each(|(_, candidate)| *candidate = to(*candidate));
        renamed.tally.voters.iter_mut().for_each(|voter| *voter = to(*voter));
        renamed.next = state.next.renamed(to);
        renamed.matched = state.matched.renamed(to);
        Some(renamed)
    }

    fn message(&self, msg: &Msg, to: &dyn Fn(ActorId) -> ActorId) -> Option<Msg> {
        Some(match msg {
            Msg::RequestVote { term, candidate, last_term, last_index } => Msg::RequestVote {
                term: *term,
                candidate: to(*candidate),
                last_term: *last_term,
                last_index: *last_index,
            },
            Msg::ChangeConfiguration { members } => {
                Msg::ChangeConfiguration { members: list(self, members, to) }
            }
            other => other.clone(),
        })
    }
}

/// Members by name, as the program sorts them.
fn list(model: &AkkaRaft, members: &[ActorId], to: &dyn Fn(ActorId) -> ActorId) -> Arc<[ActorId]> {
    let mut renamed: Vec<ActorId> = members.iter().map(|member| to(*member)).collect();
    let place = |member: &ActorId| model.members.iter().position(|m| m == member);
    renamed.sort_by_key(|member| (place(member), member.0));
    renamed.into()
}

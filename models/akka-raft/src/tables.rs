//! What a leader knows of its peers and a candidate of its voters.

use demi_replay::names::ActorId;

/// A small map from members to indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table(Vec<(ActorId, i32)>);

impl Table {
    /// The value of a member.
    #[must_use]
    pub fn get(&self, member: ActorId) -> Option<i32> {
        self.0.iter().find(|(id, _)| *id == member).map(|(_, value)| *value)
    }

    /// The value of a member, which becomes `default` if it has none.
    pub fn entry(&mut self, member: ActorId, default: i32) -> &mut i32 {
        let at = match self.0.binary_search_by_key(&member, |(id, _)| *id) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (member, default));
                at
            }
        };
        &mut self.0[at].1
    }

    /// Replaces everything by `value` for each member.
    pub fn fill(&mut self, members: &[ActorId], value: i32) {
        self.0.clear();
        for member in members {
            *self.entry(*member, value) = value;
        }
    }

    /// The table with other members in the places of these.
    #[must_use]
    pub fn renamed(&self, to: &dyn Fn(ActorId) -> ActorId) -> Table {
        let mut entries: Vec<(ActorId, i32)> = self.0.iter().map(|(id, value)| (to(*id), *value)).collect();
        entries.sort_unstable_by_key(|(id, _)| *id);
        Table(entries)
    }

    /// Members and values, by id.
    pub fn iter(&self) -> impl Iterator<Item = (ActorId, i32)> + '_ {
        self.0.iter().copied()
    }
}

/// The votes collected in one candidacy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Votes that count.
    pub count: u32,
    /// Who cast them; empty where messages are counted instead of voters.
    pub voters: Vec<ActorId>,
}

impl Tally {
    /// Starts over.
    pub fn clear(&mut self) {
        self.count = 0;
        self.voters.clear();
    }

    /// Counts a vote, unless voters are counted once and this one has been.
    pub fn count(&mut self, voter: ActorId, once: bool) {
        if once {
            if self.voters.contains(&voter) {
                return;
            }
            self.voters.push(voter);
        }
        self.count += 1;
    }
}

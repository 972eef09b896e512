//! Actors that nothing distinguishes yet: configurations that differ only in which of them is which are one.
//!
//! What becomes of a configuration does not depend on names, where the model says how to rename ([`Model::renamed`]):
//! the way to a violation that names neither of two actors is as long from the configuration in which they have
//! changed places (Ip and Dill, "Better verification through symmetry", 1996). Only hashes are compared: the least of
//! all renamings stands for the configuration, which itself keeps its names.

use demi_replay::{ActorId, Model, Pending, Simulator, Status, World};

/// Most actors that change places: 24 permutations.
const MOST: usize = 4;

/// For each actor, by number, who takes its place. What is beyond stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming(Vec<u16>);

impl Renaming {
    /// Who takes an actor's place.
    #[must_use]
    pub fn of(&self, actor: ActorId) -> ActorId {
        self.0.get(actor.index()).map_or(actor, |&to| ActorId(to))
    }

    /// The entry with its actors renamed; nothing where the model cannot.
    pub fn entry<M: Model>(&self, sim: &mut Simulator<M>, entry: &Pending) -> Option<Pending> {
        let msg = sim.renamed_message(entry.msg, &|a| self.of(a))?;
        let msg = sim.intern(msg);
        let (from, to, channel) = (self.of(entry.from), self.of(entry.to), self.of(entry.channel));
        Some(Pending { from, to, channel, msg, ..*entry })
    }
}

/// The renamings, but for the one that changes nothing, among the actors that run in a world and that no text of the
/// target names, and that are not `apart` for another reason.
#[must_use]
pub fn renamings<M: Model>(
    sim: &Simulator<M>,
    world: &World<M>,
    target: &[String],
    apart: &[ActorId],
) -> Vec<Renaming> {
    let free = free(sim, world, target).into_iter().filter(|actor| !apart.contains(actor));
    let free: Vec<u16> = free.map(|actor| actor.0).take(MOST).collect();
    let size = world.actors() as u16;
    let mut all = Vec::new();
    permute(&mut free.clone(), 0, &mut |places| {
        let mut map: Vec<u16> = (0..size).collect();
        free.iter().zip(places).for_each(|(from, to)| map[usize::from(*from)] = *to);
        if places != free {
            all.push(Renaming(map));
        }
    });
    all
}

/// The actors that run in a world and that no text of the target names.
#[must_use]
pub fn free<M: Model>(sim: &Simulator<M>, world: &World<M>, target: &[String]) -> Vec<ActorId> {
    let named = |actor: ActorId| target.iter().any(|text| mentions(text, sim.names().get(actor)));
    let free = sim.model().actors().iter().copied().filter(|&actor| {
        // Actors that share memory are not told apart by their cells.
        world.status(actor) == Status::Running && sim.cell_of(actor) == actor && !named(actor)
    });
    free.collect()
}

/// Whether a text names an actor, and not only one whose name begins alike.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let rest = &text[at + name.len()..];
        !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

fn permute(places: &mut Vec<u16>, from: usize, take: &mut impl FnMut(&[u16])) {
    if from == places.len() {
        return take(places);
    }
    for at in from..places.len() {
        places.swap(from, at);
        permute(places, from + 1, take);
        places.swap(from, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole() {
        assert!(mentions("ElectionSafety:raft-member-1:raft-member-3", "raft-member-1"));
        assert!(!mentions("ElectionSafety:raft-member-12:raft-member-3", "raft-member-1"));
    }

    #[test]
    fn all_orders() {
        let mut all = Vec::new();
        permute(&mut vec![1, 2, 3], 0, &mut |p| all.push(p.to_vec()));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}

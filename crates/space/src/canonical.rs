//! The hash by which a configuration is known: the least of its own and those under renamings of actors.
//!
//! It is computed for every delivery of a search, so all renamings are summed up in one pass, and what does not depend on
//! them once.

use demi_replay::ActorId;

use crate::entry::FREE;
use crate::faults;
use crate::packed::{self, Hot};
use crate::symmetry::Renaming;

/// Hashes of states and entries under all renamings.
#[derive(Debug, Default)]
pub struct Canonical {
    renamings: Vec<Renaming>,
    /// Actors that change places.
    moved: Vec<u16>,
    /// Of each local state, and of each entry, a hash for each renaming.
    locals: Vec<u128>,
    entries: Vec<u128>,
}

/// Room to add hashes up.
#[derive(Debug, Default)]
pub struct Sums {
    /// How many entries of a channel were met.
    met: Vec<u32>,
    sums: Vec<u128>,
}

impl Canonical {
    /// For these renamings.
    pub fn new(renamings: Vec<Renaming>, actors: usize) -> Self {
        let moves = |actor: &u16| renamings.iter().any(|r| r.of(ActorId(*actor)) != ActorId(*actor));
        let moved = (0..actors as u16).filter(moves).collect();
        Canonical { renamings, moved, ..Canonical::default() }
    }

    /// The renamings.
    pub fn renamings(&self) -> &[Renaming] {
        &self.renamings
    }

    /// Adds the hashes of the next local state.
    pub fn add_local(&mut self, renamed: &[u128]) {
        self.locals.extend_from_slice(renamed);
    }

    /// Adds the hashes of the next entry.
    pub fn add_entry(&mut self, renamed: &[u128]) {
        self.entries.extend_from_slice(renamed);
    }

    /// The least hash of a configuration, given its own.
    pub fn of(&self, room: &mut Sums, words: &[u32], own: u128, hot: &[Hot]) -> u128 {
        let count = self.renamings.len();
        if count == 0 {
            return own;
        }
        room.sums.clear();
        room.sums.resize(count, faults::hash(packed::faults(words)));
        self.add_places(room, words);
        let pending = &words[packed::first_pending(words)..];
        for &entry in pending {
            let channel = hot[entry as usize].channel as usize;
            let mut before = 0;
            if channel != FREE as usize {
                if channel >= room.met.len() {
                    room.met.resize(channel + 1, 0);
                }
                before = room.met[channel];
                room.met[channel] += 1;
            }
            let names = &self.entries[entry as usize * count..][..count];
            if before == 0 {
                room.sums.iter_mut().zip(names).for_each(|(sum, name)| *sum = sum.wrapping_add(*name));
            } else {
                let power = packed::power(before);
                let scaled = names.iter().map(|name| name.wrapping_mul(power));
                room.sums.iter_mut().zip(scaled).for_each(|(sum, name)| *sum = sum.wrapping_add(name));
            }
        }
        for &entry in pending {
            if let Some(met) = room.met.get_mut(hot[entry as usize].channel as usize) {
                *met = 0;
            }
        }
        room.sums.iter().copied().fold(own, u128::min)
    }

    /// Adds up what stands for states and statuses.
    fn add_places(&self, room: &mut Sums, words: &[u32]) {
        let count = self.renamings.len();
        let first = packed::status(words, self.moved.first().copied().unwrap_or(0));
        let alike = self.moved.iter().all(|actor| packed::status(words, *actor) == first);
        let mut statuses = 0_u128;
        for place in 0..packed::places(words) {
            if let number @ 1.. = packed::local(words, place) {
                let names = &self.locals[(number as usize - 1) * count..][..count];
                room.sums.iter_mut().zip(names).for_each(|(sum, name)| *sum = sum.wrapping_add(*name));
            }
            if alike {
                // Who changes places has the same status: the sum stays.
                statuses = statuses.wrapping_add(packed::status_hash(words, place, place));
                continue;
            }
            for (sum, renaming) in room.sums.iter_mut().zip(&self.renamings) {
                let to = renaming.of(ActorId(place as u16)).index();
                *sum = sum.wrapping_add(packed::status_hash(words, place, to));
            }
        }
        room.sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add(statuses));
    }
}

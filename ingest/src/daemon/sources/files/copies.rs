//! Files that are copies of others: made by rotation, or packed.

use std::path::Path;

use super::follow::Follower;
use super::packed::{Identity, identify};
use super::state::{HEAD, State, TAIL};

impl Follower {
    /// So many bytes that two files have in common make one of them a copy; `None`: nothing does.
    fn least_of_a_copy(&self) -> Option<u64> {
        match &self.mapped {
            // Records name their actors: what is equal is the same.
            None => Some(1),
            // The first lines of two logs may be equal and mean two things.
            Some(mapped) => mapped.copies.then_some(TAIL as u64),
        }
    }

    /// Whether a file that holds what was read of another one is a copy of it.
    pub(super) fn is_copy(&self, state: &State) -> bool {
        self.least_of_a_copy().is_some_and(|least| state.offset >= least)
    }

    /// Takes over the state of another file that was read further and of which this is a copy. Lines that were mapped are
    /// never mapped again: where the log has no positions they would be other events.
    pub(super) fn catch_up(&mut self, number: usize) -> std::io::Result<()> {
        let known = &self.known[number];
        let (Some(file), Some(least)) = (&known.file, self.least_of_a_copy()) else { return Ok(()) };
        if known.state.offset < least {
            return Ok(());
        }
        let mut best: Option<&State> = None;
        for other in
            self.known.iter().enumerate().filter(|(n, _)| *n != number).map(|(_, known)| &known.state)
        {
            let reached = best.map_or(known.state.offset, |best| best.offset);
            // From so many bytes on, two files that begin alike have one fingerprint.
            let alike = known.state.offset < HEAD as u64 || other.head == known.state.head;
            if alike && !other.packed && other.offset > reached && other.continues(file)? {
                best = Some(other);
            }
        }
        if let Some(best) = best.cloned() {
            self.known[number].state.take_over(best);
        }
        Ok(())
    }

    /// The same for a packed file.
    pub(super) fn catch_up_packed(&mut self, number: usize) -> std::io::Result<()> {
        let state = &self.known[number].state;
        let states: Vec<&State> = self.known.iter().map(|known| &known.state).collect();
        if let Identity::Known(_, best) = identify(Path::new(&state.path), &states)?
            && self.least_of_a_copy().is_some_and(|least| best.offset >= least)
            && best.offset > state.offset
        {
            self.known[number].state.take_over(best);
        }
        Ok(())
    }
}

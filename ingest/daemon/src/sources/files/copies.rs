//! Files that are copies of others: made by rotation, or packed.

use std::fs::File;
use std::path::Path;

use super::follow::Follower;
use super::packed::{Identity, identify};
use super::state::{HEAD, State, TAIL};

impl Follower {
    /// Whether the file at `path`, which holds what was read of another one, is a copy of it.
    pub(super) fn is_copy(&self, path: &Path, state: &State) -> bool {
        match &self.mapped {
            // Records name their actors: what is equal is the same.
            None => true,
            Some(mapped) if !mapped.copies => false,
            // The first lines of two logs may be equal and mean two things, unless the other one has them no more.
            Some(_) => state.offset >= TAIL as u64 || akin(path, state.place()) && vanished(state),
        }
    }

    /// Takes over the state of another file, plain or packed, that was read further and of which this is a copy, or which is
    /// a copy of this. Lines that were mapped are never mapped again: where the log has no positions they would be other
    /// events.
    pub(super) fn catch_up(&mut self, number: usize) -> std::io::Result<()> {
        let known = &self.known[number];
        // Of a file of which nothing was read nothing is known.
        let Some(file) = known.file.as_ref().filter(|_| known.state.offset > 0) else { return Ok(()) };
        let mut best: Option<&State> = None;
        for other in
            self.known.iter().enumerate().filter(|(n, _)| *n != number).map(|(_, known)| &known.state)
        {
            let reached = best.map_or(known.state.offset, |best| best.offset);
            // From so many bytes on, two files that begin alike have one fingerprint.
            let alike = known.state.offset < HEAD as u64 || other.head == known.state.head;
            if (known.state.copied || other.copied)
                && alike
                && other.offset > reached
                && other.continues(file)?
            {
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
        if let Identity::Known(_, best) = identify(state.place(), &states, &self.context.shutdown)?
            && self.is_copy(state.place(), &best)
            && best.offset > state.offset
        {
            self.known[number].state.take_over(*best);
        }
        Ok(())
    }
}

/// Whether one name may be what rotation made of the other.
fn akin(one: &Path, other: &Path) -> bool {
    let stem = |path: &Path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(name.split('.').next()?.to_owned())
    };
    let (Some(a), Some(b)) = (stem(one), stem(other)) else { return false };
    one.parent() == other.parent() && (a.starts_with(&b) || b.starts_with(&a))
}

/// Whether the file of the state no longer holds what was read of it.
fn vanished(state: &State) -> bool {
    File::open(state.place()).and_then(|file| state.continues(&file)).map_or(true, |continues| !continues)
}

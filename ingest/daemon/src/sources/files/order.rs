//! Reading the files of a source one after the other, where what lines mean depends on those before them.

use std::cmp::Reverse;
use std::time::SystemTime;

use super::follow::{Follower, Known};
use super::read::UNFINISHED;

impl Known {
    /// Whether something of it waits to be read that may be going on.
    fn is_unfinished(&self) -> bool {
        let Some(file) = &self.file else { return false };
        let waits = match self.state.packed {
            true => self.state.done_size.is_none(),
            false => file.metadata().is_ok_and(|meta| meta.len() > self.state.offset),
        };
        waits && self.grown.1.max(self.active).elapsed() < UNFINISHED
    }
}

impl Follower {
    /// Reads a chunk of the file that was changed longest ago, of those that have something to read: what is rotated
    /// away comes before what follows it.
    pub(super) fn read_oldest(&mut self) -> bool {
        // A copy in the making may hold what comes before everything else.
        if !self.waiting.is_empty() {
            return false;
        }
        for number in self.order() {
            if self.read_one(number) {
                return true;
            }
            if self.known[number].is_unfinished() {
                return false;
            }
        }
        false
    }

    /// Numbers of the open files, the one that was changed longest ago first.
    fn order(&self) -> Vec<usize> {
        let changed = |known: &Known| known.file.as_ref()?.metadata().ok()?.modified().ok();
        let mut order: Vec<(SystemTime, usize)> =
            self.known.iter().enumerate().filter_map(|(n, known)| Some((changed(known)?, n))).collect();
        // Clocks of file systems tick slowly. Of equals, what was read before is older than what was not, and rotated files
        // have the longer names and the higher numbers.
        order.sort_by(|a, b| {
            let rest = |n: usize| {
                let state = &self.known[n].state;
                (state.offset == 0, Reverse((state.path.len(), &state.path)))
            };
            a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(&rest(b.1)))
        });
        order.into_iter().map(|(_, number)| number).collect()
    }

    /// Whether a file of which nothing was read is the next one, now that its first bytes are at hand: if it was copied and
    /// cut before they were read, the copy is there by now and comes first.
    pub(super) fn comes_first(&mut self, number: usize) -> bool {
        if !self.mapped.as_ref().is_some_and(|mapped| mapped.ordered) {
            return true;
        }
        self.look();
        let before = self.order().into_iter().take_while(|n| *n != number);
        self.waiting.is_empty() && before.into_iter().all(|n| !self.known[n].is_unfinished())
    }
}

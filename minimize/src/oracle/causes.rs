//! Which step of a run brought about which other: the edges from a send to its delivery, without actors' own order.

use demi_replay::{Did, Pending, PendingKind};

/// A step, and which of the things it sent and set, from 0.
pub type Cause = (usize, usize);

/// Which step brought about each pending entry, in their order.
#[derive(Debug, Default)]
pub struct Causes(Vec<(Pending, Option<Cause>)>);

impl Causes {
    /// Follows a step, which delivered the entry of that index and did these things; gives what brought the entry
    /// about.
    pub fn follow(
        &mut self,
        pending: &[Pending],
        delivered: Option<usize>,
        did: &[Did],
        step: usize,
    ) -> Option<Cause> {
        let taken = delivered.filter(|&at| at < self.0.len()).map(|at| self.0.remove(at));
        // A repeating timer is armed again at once.
        self.0.extend(taken.filter(|(entry, _)| entry.kind == PendingKind::Repeating));
        let sent = did.iter().filter_map(|d| match d {
            Did::Sent(entry) | Did::TimerSet(entry) => Some(*entry),
            _ => None,
        });
        self.0.extend(sent.enumerate().map(|(nth, entry)| (entry, Some((step, nth)))));
        // What was lost, cancelled or never arrived is no longer there; of equal entries the older one is gone.
        let mut known = std::mem::take(&mut self.0);
        self.0 = pending
            .iter()
            .rev()
            .map(|entry| {
                let at = known.iter().rposition(|(k, _)| k == entry);
                (*entry, at.and_then(|at| known.drain(at..).next()).and_then(|(_, cause)| cause))
            })
            .collect();
        self.0.reverse();
        taken.and_then(|(_, cause)| cause)
    }
}

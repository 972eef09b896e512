//! Events of one time: where many of them stand beside each other.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Events beside each other that are looked through one by one.
const FEW: usize = 8;
/// Events that are remembered, of all crowds together: at most 36 MB.
const MOST: usize = 1 << 20;

/// Sequence numbers taken from a clock that follow one another, with the digests of their events. It is a memory of what was looked up: what it
/// has forgotten is looked up again.
#[derive(Default)]
pub(super) struct Crowds {
    /// By incarnation and first number.
    all: BTreeMap<(u32, u64), Crowd>,
    events: usize,
}

struct Crowd {
    /// The number behind the last one.
    end: u64,
    /// By digest, how far behind the first number its last event is.
    digests: FxHashMap<u64, u32>,
}

/// What is known of a digest that would stand at a number or behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stands there, before any free number.
    There,
    /// Up to this number everything is taken by others.
    NotBefore(u64),
}

impl Crowds {
    /// What is known of a digest from `seq` on.
    pub(super) fn standing(&self, slot: u32, seq: u64, digest: u64) -> Standing {
        match self.at(slot, seq) {
            Some((first, crowd)) => match crowd.digests.get(&digest) {
                Some(behind) if first + u64::from(*behind) >= seq => Standing::There,
                _ => Standing::NotBefore(crowd.end),
            },
            None => Standing::NotBefore(seq),
        }
    }

    /// The crowd that a number stands in.
    fn at(&self, slot: u32, seq: u64) -> Option<(u64, &Crowd)> {
        let (&(_, first), crowd) = self.all.range((slot, 0)..=(slot, seq)).next_back()?;
        (crowd.end > seq).then_some((first, crowd))
    }

    /// Takes note of the digests of the events from `from` on, without a gap, that were looked through for an event of `seq`. What was known
    /// before ends at `from`.
    pub(super) fn learn(&mut self, (slot, seq): (u32, u64), from: u64, digests: &[u64]) {
        let known = self.at(slot, seq).filter(|(_, crowd)| crowd.end == from).map(|(first, _)| first);
        let first = match known {
            Some(first) => first,
            None if from == seq && digests.len() > FEW => from,
            None => return,
        };
        if self.events + digests.len() > MOST {
            *self = Crowds::default();
            return;
        }
        let crowd = self
            .all
            .entry((slot, first))
            .or_insert_with(|| Crowd { end: first, digests: FxHashMap::default() });
        for digest in digests {
            let Ok(behind) = u32::try_from(crowd.end - first) else { return };
            crowd.digests.insert(*digest, behind);
            crowd.end += 1;
            self.events += 1;
        }
    }
}

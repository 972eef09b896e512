//! Sends and receives that have not met yet, among the recent ones: an alarm for broken lineage while it happens.

use demi_common::Recent;
use demi_schemas::{EventRecord, Kind};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Members of the younger half of a set; memory is at most four sets of so many numbers of 8 bytes.
const HALF: usize = 1 << 19;

/// The recent unmatched sends and orphan receives of one system.
///
/// A send and a receive meet when they have the same message id and receiver. Messages without an id are not
/// judged, nor are sends to everybody (`*`).
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    sends: Recent<(), HALF>,
    receives: Recent<(), HALF>,
}

impl Pairs {
    /// Takes in an event that is new.
    pub(crate) fn take(&mut self, record: &EventRecord) {
        let (Some(id), Kind::Send | Kind::Receive) = (&record.msg_id, record.kind) else { return };
        self.event(record.kind, id, record.to.as_deref(), &record.actor);
    }

    /// The same from its columns.
    pub(crate) fn event(&mut self, kind: Kind, id: &str, to: Option<&str>, actor: &str) {
        match (kind, to) {
            (Kind::Send, Some("*")) => {}
            (Kind::Send, to) => {
                let key = key(id, to.unwrap_or_default());
                if self.receives.remove(key).is_none() {
                    self.sends.insert(key, ());
                }
            }
            (Kind::Receive, to) => {
                let key = key(id, to.unwrap_or(actor));
                if self.sends.remove(key).is_none() {
                    self.receives.insert(key, ());
                }
            }
            _ => {}
        }
    }

    /// Sends without a receive, and receives without a send.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.sends.len(), self.receives.len())
    }
}

fn key(id: &str, to: &str) -> u64 {
    xxh3_64_with_seed(id.as_bytes(), xxh3_64(to.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_is_not_counted() {
        let mut pairs = Pairs::default();
        pairs.event(Kind::Send, "1", Some("b"), "a");
        pairs.event(Kind::Send, "2", Some("b"), "a");
        pairs.event(Kind::Send, "2", Some("c"), "a");
        pairs.event(Kind::Send, "3", Some("*"), "a");
        assert_eq!(pairs.counts(), (3, 0));
        pairs.event(Kind::Receive, "2", None, "c");
        pairs.event(Kind::Receive, "9", Some("b"), "b");
        assert_eq!(pairs.counts(), (2, 1));
        pairs.event(Kind::Send, "9", Some("b"), "x");
        assert_eq!(pairs.counts(), (2, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut pairs = Pairs::default();
        for n in 0..3 * HALF {
            pairs.event(Kind::Send, &n.to_string(), Some("b"), "a");
        }
        assert!(pairs.counts().0 <= 2 * HALF);
        pairs.event(Kind::Receive, &(3 * HALF - 1).to_string(), Some("b"), "b");
        assert_eq!(pairs.counts().1, 0);
    }
}

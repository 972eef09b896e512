//! Network rules: which pending messages may be delivered next.

use std::cell::Cell;

use demi_schemas::NetworkRule;

use crate::names::OUTSIDE;
use crate::pending::{Pending, PendingKind};

/// Whether an entry belongs to a channel at all: timers, messages from outside, messages without a sender and second copies
/// of a message do not, and may be delivered at any time.
#[must_use]
pub fn ordered(entry: &Pending) -> bool {
    entry.kind == PendingKind::Message && entry.channel != OUTSIDE
}

/// Whether two entries travel on the same channel.
#[must_use]
pub fn same_channel(a: &Pending, b: &Pending) -> bool {
    a.channel == b.channel && a.to == b.to && ordered(a) && ordered(b)
}

/// Whether the network allows `pending[index]` to be delivered next.
///
/// `fifo`: only the oldest of its channel. `fifo-loss`: any, for what it overtakes is lost with its delivery
/// ([`overtaken`]). `unordered`: any.
#[must_use]
pub fn allows(rule: NetworkRule, pending: &[Pending], index: usize) -> bool {
    match rule {
        NetworkRule::Unordered | NetworkRule::FifoLoss => true,
        NetworkRule::Fifo => blocker(pending, index).is_none(),
    }
}

/// The oldest entry that stands before `pending[index]` on its channel.
#[must_use]
pub fn blocker(pending: &[Pending], index: usize) -> Option<usize> {
    let entry = &pending[index];
    if !ordered(entry) {
        return None;
    }
    pending[..index].iter().position(|older| same_channel(older, entry))
}

/// Answers [`allows`] for many entries: the head of the channel that was asked for last is looked up once.
pub struct Heads<'a> {
    rule: NetworkRule,
    pending: &'a [Pending],
    last: Cell<Option<usize>>,
}

impl<'a> Heads<'a> {
    /// For what is pending, under a rule.
    #[must_use]
    pub fn new(rule: NetworkRule, pending: &'a [Pending]) -> Self {
        Heads { rule, pending, last: Cell::new(None) }
    }

    /// Whether the network allows the entry of that index to be delivered next.
    pub fn allow(&self, index: usize) -> bool {
        let entry = &self.pending[index];
        if self.rule != NetworkRule::Fifo || !ordered(entry) {
            return true;
        }
        let known = self.last.get().filter(|&head| same_channel(&self.pending[head], entry));
        let head = known.or_else(|| self.pending[..=index].iter().position(|p| same_channel(p, entry)));
        self.last.set(head);
        head == Some(index)
    }
}

/// Removes what the delivery of `pending[index]` overtakes under `fifo-loss`; gives the entry's new index.
pub fn overtaken(pending: &mut Vec<Pending>, index: usize) -> usize {
    let entry = pending[index];
    let (mut at, mut new_index) = (0, index);
    pending.retain(|older| {
        let lost = at < index && same_channel(older, &entry);
        at += 1;
        new_index -= usize::from(lost);
        !lost
    });
    new_index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ActorId;
    use crate::pending::MsgId;

    fn message(channel: u16, to: u16, msg: u32) -> Pending {
        Pending {
            from: ActorId(channel),
            to: ActorId(to),
            channel: ActorId(channel),
            msg: MsgId(msg),
            kind: PendingKind::Message,
            timer: 0,
            survives: false,
            via: None,
        }
    }

    #[test]
    fn fifo_allows_heads_only() {
        let pending = [message(1, 2, 0), message(1, 2, 1), message(1, 3, 2), message(0, 2, 3)];
        let allowed: Vec<bool> = (0..4).map(|i| allows(NetworkRule::Fifo, &pending, i)).collect();
        assert_eq!(allowed, [true, false, true, true]);
        assert!((0..4).all(|i| allows(NetworkRule::Unordered, &pending, i)));
        // In whatever order they are asked for.
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 1]] {
            let heads = Heads::new(NetworkRule::Fifo, &pending);
            assert!(order.into_iter().all(|i| heads.allow(i) == allowed[i]));
        }
    }

    #[test]
    fn loss_forgets_what_is_overtaken() {
        let mut pending = vec![message(1, 2, 0), message(1, 3, 1), message(1, 2, 2), message(1, 2, 3)];
        let index = overtaken(&mut pending, 2);
        assert_eq!((index, pending.len()), (1, 3));
        assert_eq!(pending[index].msg, MsgId(2));
        assert_eq!(pending[0].msg, MsgId(1));
    }
}

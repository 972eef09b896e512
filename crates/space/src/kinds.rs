//! Kinds of deliveries: messages of which type, or who receives messages of which type. How often a witness has each kind spans a neighbourhood around
//! it: the executions, in any order, that deliver no kind more often, or only a few of them.
//!
//! Where a witness has thirty deliveries of a dozen kinds, this leaves out most configurations, and what is left can often be
//! searched to its end (large neighbourhood search; Shaw 1998). It asks nothing of the model.

use demi_replay::ActorId;
use demi_replay::names::TextId;
use demi_replay::script::Act;
use rustc_hash::FxHashMap;

/// The number of deliveries beyond what the witness has, whatever their kind.
const BEYOND: u16 = 0;

/// What makes two deliveries one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// The type of the message, whoever receives it: then actors may have each other's parts.
    Type,
    /// The receiver too.
    ReceiverAndType,
}

/// How often the kinds of a witness may be delivered.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    numbers: FxHashMap<(Option<ActorId>, TextId), u16>,
    whoever: bool,
    /// By number, how often; first how many may be beyond that.
    most: Vec<u8>,
}

impl Kinds {
    /// Those of some acts, and how many deliveries may be beyond them.
    pub fn of(acts: &[Act], alike: Alike, beyond: u8) -> Self {
        let whoever = alike == Alike::Type;
        let mut kinds = Kinds { numbers: FxHashMap::default(), whoever, most: vec![beyond] };
        for act in acts {
            let Act::Deliver(want) = act else { continue };
            let fresh = kinds.most.len() as u16;
            let number = *kinds.numbers.entry((kinds.receiver(want.to), want.type_)).or_insert(fresh);
            if number == fresh {
                kinds.most.push(0);
            }
            let most = &mut kinds.most[usize::from(number)];
            *most = most.saturating_add(1);
        }
        kinds
    }

    fn receiver(&self, to: ActorId) -> Option<ActorId> {
        Some(to).filter(|_| !self.whoever)
    }

    /// The number of a kind.
    pub fn number(&self, to: ActorId, type_: TextId) -> u16 {
        self.numbers.get(&(self.receiver(to), type_)).copied().unwrap_or(BEYOND)
    }

    /// How many numbers a configuration needs to count its deliveries; 0 where nothing is counted.
    pub fn counters(&self) -> usize {
        self.most.len()
    }

    /// Under which number another delivery of a kind counts, if there may be another one.
    pub fn room(&self, counts: &[u8], kind: u16) -> Option<u16> {
        let less = |kind: u16| counts[usize::from(kind)] < self.most[usize::from(kind)];
        match kind {
            _ if self.most.is_empty() => Some(BEYOND),
            BEYOND => less(BEYOND).then_some(BEYOND),
            kind if less(kind) => Some(kind),
            _ => less(BEYOND).then_some(BEYOND),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_witness_is_counted_apart() {
        let kinds = Kinds { most: vec![1, 2], ..Kinds::default() };
        assert_eq!(kinds.room(&[0, 1], 1), Some(1));
        assert_eq!(kinds.room(&[0, 2], 1), Some(0));
        assert_eq!(kinds.room(&[1, 2], 1), None);
        assert_eq!(kinds.room(&[1, 0], 0), None);
        assert_eq!(Kinds::default().room(&[], 7), Some(0));
    }
}

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

/// How often the kinds of a witness may be delivered, or in which order.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    numbers: FxHashMap<(Option<ActorId>, TextId), u16>,
    whoever: bool,
    /// By number, how often; first how many may be beyond that.
    most: Vec<u8>,
    /// Where the order counts: the kinds of the witness's deliveries, one after the other.
    order: Option<Vec<u16>>,
}

impl Kinds {
    /// Those of some acts, and how many deliveries may be beyond them.
    pub fn of(acts: &[Act], alike: Alike, beyond: u8) -> Self {
        let whoever = alike == Alike::Type;
        let mut kinds = Kinds { numbers: FxHashMap::default(), whoever, most: vec![beyond], order: None };
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

    /// Deliveries of a witness that are followed in their order, at most.
    pub const LONGEST: usize = 250;

    /// The deliveries of some acts in their order: any may be passed over, and so many others may come between them. Only the first
    /// [`Kinds::LONGEST`] are followed.
    ///
    /// What is passed over costs nothing, so a part that the rest does not need is left out whole, and what it needs in its place comes in
    /// (limited discrepancy search; Harvey and Ginsberg, IJCAI 1995).
    pub fn in_order(acts: &[Act], alike: Alike, beyond: u8) -> Self {
        let kinds = Kinds::of(acts, alike, beyond);
        let number = |act: &Act| match act {
            Act::Deliver(want) => Some(kinds.number(want.to, want.type_)),
            _ => None,
        };
        let order = acts.iter().filter_map(number).take(Self::LONGEST).collect();
        Kinds { order: Some(order), ..kinds }
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
        if self.order.is_some() { 2 } else { self.most.len() }
    }

    /// As what another delivery of a kind may count.
    pub fn ways(&self, counts: &[u8], kind: u16) -> impl Iterator<Item = u16> + use<> {
        let Some(order) = &self.order else { return [self.room(counts, kind), None].into_iter().flatten() };
        let passed = usize::from(counts[1]);
        let follows = order[passed..].iter().position(|next| *next == kind);
        let follows = follows.map(|more| (passed + more + 1) as u16);
        let between = (counts[0] < self.most[0]).then_some(BEYOND);
        [follows, between].into_iter().flatten()
    }

    /// Counts a delivery.
    pub fn count(&self, counts: &mut [u8], counts_as: u16) {
        match (&self.order, counts_as) {
            (Some(_), BEYOND) => counts[0] += 1,
            (Some(_), follows) => counts[1] = follows as u8,
            (None, kind) => {
                if let Some(count) = counts.get_mut(usize::from(kind)) {
                    *count += 1;
                }
            }
        }
    }

    /// What tells equal configurations apart that have other deliveries before them: 0 where nothing does.
    pub fn apart(&self, counts: &[u8]) -> u128 {
        const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        match self.order {
            Some(_) => (1 + (u128::from(counts[0]) << 8 | u128::from(counts[1]))).wrapping_mul(ODD),
            None => 0,
        }
    }

    /// How far the witness was followed, where its order counts.
    pub fn followed(&self, counts: &[u8]) -> Option<u8> {
        self.order.as_ref().map(|_| counts[1])
    }

    /// Under which number another delivery of a kind counts, if there may be another one.
    fn room(&self, counts: &[u8], kind: u16) -> Option<u16> {
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

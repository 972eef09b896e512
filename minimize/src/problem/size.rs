//! The size of a schedule, and which of two sizes is smaller.

use demi_replay::script::Act;

/// The size of a schedule, as DEMi counts it. [`Objective`] says which of two is smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Size {
    /// External events: delivered external messages, starts, injected faults.
    pub externals: usize,
    /// Deliveries, timers and external messages included.
    pub deliveries: usize,
}

impl Size {
    /// Whether it is at most as large in both figures and not equal.
    #[must_use]
    pub fn dominates(self, other: Size) -> bool {
        self.externals <= other.externals && self.deliveries <= other.deliveries && self != other
    }
}

/// Deliveries that one external event less may cost in a result, where external events count first.
pub const WORTH: usize = 10;

/// What "smaller" means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Fewest external events; of equals, fewest deliveries, as DEMi. In a result an external event less may cost
    /// [`WORTH`] deliveries.
    #[default]
    Externals,
    /// Fewest deliveries; of equals, fewest external events.
    Deliveries,
}

impl Objective {
    /// The number that is compared; less is smaller.
    #[must_use]
    pub fn key(self, size: Size) -> (usize, usize) {
        match self {
            Objective::Externals => (size.externals, size.deliveries),
            Objective::Deliveries => (size.deliveries, size.externals),
        }
    }

    /// Whether `a` is smaller than `b`.
    #[must_use]
    pub fn smaller(self, a: Size, b: Size) -> bool {
        self.key(a) < self.key(b)
    }

    /// The number that finished results are compared by; less is smaller. An external event less is worth it as long as
    /// it costs no more than [`WORTH`] deliveries. It looks at one result alone, so that what else was found does not
    /// change which of two is smaller.
    #[must_use]
    pub fn settled(self, size: Size) -> (usize, usize) {
        match self {
            Objective::Externals => (size.deliveries + WORTH * size.externals, size.externals),
            Objective::Deliveries => self.key(size),
        }
    }

    /// Which of several finished results to take: the smallest by [`Objective::settled`], the first of equals.
    #[must_use]
    pub fn choose(self, sizes: impl Iterator<Item = Size>) -> Option<usize> {
        sizes.enumerate().min_by_key(|(i, s)| (self.settled(*s), *i)).map(|(i, _)| i)
    }

    /// Whether a finished result replaces one that is proven to be the shortest over its external events, of which there are
    /// `few`: where it has fewer of them, and a delivery more for each at most.
    #[must_use]
    pub fn replaces(self, size: Size, proven: Size, few: bool) -> bool {
        let smaller = self.settled(size) < self.settled(proven);
        let fewer = proven.externals.saturating_sub(size.externals);
        smaller && (!few || size.deliveries <= proven.deliveries + fewer)
    }

    /// The name used in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Objective::Externals => "externals",
            Objective::Deliveries => "deliveries",
        }
    }
}

/// Counts a script as DEMi counts it.
#[must_use]
pub fn size(acts: &[Act]) -> Size {
    Size {
        externals: acts.iter().filter(|a| a.is_external()).count(),
        deliveries: acts.iter().filter(|a| a.is_delivery()).count(),
    }
}

/// How many of the deliveries are timers.
#[must_use]
pub fn timers(acts: &[Act]) -> usize {
    acts.iter().filter(|a| matches!(a, Act::Deliver(want) if want.timer)).count()
}

/// Whether an actor starts after the first delivery.
#[must_use]
pub fn starts_late(acts: &[Act]) -> bool {
    acts.iter().skip_while(|act| !act.is_delivery()).any(|act| matches!(act, Act::Start(_)))
}

#[cfg(test)]
mod tests {
    use demi_replay::ActorId;
    use demi_replay::names::TextId;
    use demi_replay::script::Want;

    use super::*;

    fn size(deliveries: usize, externals: usize) -> Size {
        Size { externals, deliveries }
    }

    #[test]
    fn an_external_event_is_worth_ten_deliveries_and_no_more() {
        let choose = |sizes: &[Size]| Objective::Externals.choose(sizes.iter().copied()).map(|i| sizes[i]);
        assert_eq!(choose(&[size(22, 8), size(35, 7)]), Some(size(22, 8)));
        assert_eq!(choose(&[size(16, 10), size(28, 8), size(18, 9)]), Some(size(28, 8)));
        // At the same price the one with fewer external events; of equals the first.
        assert_eq!(choose(&[size(18, 9), size(28, 8)]), Some(size(28, 8)));
        assert_eq!(Objective::Externals.choose([size(5, 4), size(5, 4)].into_iter()), Some(0));
        assert_eq!(choose(&[]), None);
        let sizes = [size(28, 8), size(16, 10)];
        assert_eq!(Objective::Deliveries.choose(sizes.into_iter()), Some(1));
    }

    #[test]
    fn what_is_proven_over_few_external_events_stays_unless_fewer_cost_little() {
        let replaces = |(d, e), proven| Objective::Externals.replaces(size(d, e), proven, true);
        assert!(!replaces((27, 6), size(22, 8)) && !replaces((23, 7), size(21, 8)));
        assert!(replaces((23, 7), size(22, 8)) && replaces((22, 8), size(21, 9)));
        // One that starts an actor late may be shorter over the same external events.
        assert!(replaces((21, 8), size(22, 8)) && !replaces((22, 8), size(22, 8)));
        assert!(!replaces((20, 9), size(22, 8)));
        assert!(Objective::Externals.replaces(size(27, 6), size(22, 8), false));
    }

    #[test]
    fn starts_before_the_first_delivery_are_not_late() {
        let (a, b) = (Act::Start(ActorId(1)), Act::Start(ActorId(2)));
        let want = Want {
            from: ActorId(1),
            to: ActorId(2),
            type_: TextId(0),
            payload: TextId(0),
            fingerprint: TextId(0),
            timer: false,
            external: None,
            clock: None,
        };
        let delivery = Act::Deliver(want);
        assert!(!starts_late(&[a, b, delivery]) && !starts_late(&[a, b]));
        assert!(starts_late(&[a, delivery, b]));
    }

    #[test]
    fn which_of_two_is_smaller_does_not_depend_on_a_third() {
        let all: Vec<Size> = (5..40).flat_map(|d| (1..12).map(move |e| size(d, e))).collect();
        for (a, b) in all.iter().zip(all.iter().rev()) {
            let of_two = Objective::Externals.choose([*a, *b].into_iter());
            let of_three = Objective::Externals.choose([*a, *b, size(40, 12)].into_iter());
            assert_eq!(of_two, of_three);
        }
    }
}

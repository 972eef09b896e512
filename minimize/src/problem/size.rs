//! The size of a schedule, and the one order of sizes: which of two is smaller.
//!
//! Fewest steps come first, then fewest external events, then fewest deliveries; or external events before steps, if that is
//! asked for. Nothing else counts: not what was found besides, and not what was proven.

use demi_replay::script::Act;

/// The size of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Size {
    /// Everything that is in the schedule file: deliveries, starts, faults, actions.
    pub steps: usize,
    /// External events: delivered external messages, starts, injected faults.
    pub externals: usize,
    /// Deliveries, timers and external messages included.
    pub deliveries: usize,
}

impl Size {
    /// Whether it is at most as large in steps and in external events, and smaller in one of them: then the other is not on
    /// the Pareto front.
    #[must_use]
    pub fn dominates(self, other: Size) -> bool {
        let (mine, others) = ((self.steps, self.externals), (other.steps, other.externals));
        mine.0 <= others.0 && mine.1 <= others.1 && mine != others
    }
}

/// Which figure comes first in the order of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Fewest steps, of equals fewest external events, of equals fewest deliveries.
    #[default]
    Steps,
    /// Fewest external events, of equals fewest steps, of equals fewest deliveries.
    Externals,
}

impl Objective {
    /// What is compared; less is smaller. This is the only order of sizes there is.
    #[must_use]
    pub fn key(self, size: Size) -> (usize, usize, usize) {
        match self {
            Objective::Steps => (size.steps, size.externals, size.deliveries),
            Objective::Externals => (size.externals, size.steps, size.deliveries),
        }
    }

    /// Whether `a` is smaller than `b`.
    #[must_use]
    pub fn smaller(self, a: Size, b: Size) -> bool {
        self.key(a) < self.key(b)
    }

    /// The place of the smallest, the first of equals.
    #[must_use]
    pub fn least(self, sizes: impl Iterator<Item = Size>) -> Option<usize> {
        sizes.enumerate().min_by_key(|(i, s)| (self.key(*s), *i)).map(|(i, _)| i)
    }

    /// The name used in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Objective::Steps => "steps",
            Objective::Externals => "externals",
        }
    }
}

/// Counts a script.
#[must_use]
pub fn size(acts: &[Act]) -> Size {
    let written = |act: &&Act| !matches!(act, Act::Inject(..) | Act::Noted(_) | Act::Sent);
    Size {
        steps: acts.iter().filter(written).count(),
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

    fn size(steps: usize, externals: usize, deliveries: usize) -> Size {
        Size { steps, externals, deliveries }
    }

    #[test]
    fn steps_come_first_or_external_events_do() {
        let sizes = [size(26, 8, 22), size(27, 6, 23), size(26, 7, 23), size(26, 7, 22)];
        assert_eq!(Objective::Steps.least(sizes.into_iter()), Some(3));
        assert_eq!(Objective::Externals.least(sizes.into_iter()), Some(1));
        assert_eq!(Objective::Steps.least([sizes[0], sizes[0]].into_iter()), Some(0));
        assert_eq!(Objective::Steps.least(std::iter::empty()), None);
    }

    #[test]
    fn starts_before_the_first_delivery_are_not_late() {
        let (a, b) = (Act::Start(ActorId(1)), Act::Start(ActorId(2)));
        let want = Want {
            from: ActorId(1),
            to: ActorId(2),
            type_: TextId(0),
            role: None,
            payload: TextId(0),
            fingerprint: TextId(0),
            timer: false,
            which: None,
            external: None,
            copy: false,
            clock: None,
        };
        let delivery = Act::Deliver(want);
        assert!(!starts_late(&[a, b, delivery]) && !starts_late(&[a, b]));
        assert!(starts_late(&[a, delivery, b]));
    }
}

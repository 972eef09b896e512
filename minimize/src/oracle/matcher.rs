//! Which pending entry serves a wanted step, and what to do when another stands before it.

use demi_replay::script::Want;
use demi_replay::{Model, Pending, Simulator, World};
use demi_schemas::NetworkRule;

/// How a wanted step is matched to what is pending, from exact to coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matcher {
    /// The same payload, timer generations included (DEMi's STSSched), and what the model hides from logs, if it is told.
    Payload,
    /// The same fingerprint; masks hide timer generations.
    Exact,
    /// The oldest of the same type between the same two actors.
    TypeOldest,
    /// The newest of the same type between the same two actors.
    TypeNewest,
    /// The oldest whose clock stands to the receiver's as the wanted one's did.
    ClockOldest,
    /// The newest whose clock stands to the receiver's as the wanted one's did.
    ClockNewest,
    /// The same fingerprint, and where there is none, as [`Matcher::ClockOldest`].
    ExactOrClock,
}

/// What to do when the wanted entry stands behind others of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocker {
    /// Skip the step (the STS rule).
    Skip,
    /// Deliver what stands before it first; these deliveries count.
    Flush,
    /// Give the whole test up, also when nothing matches (DEMi's "no diverge").
    Fail,
}

/// A matcher and a blocker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Which entry.
    pub matcher: Matcher,
    /// What if it is blocked.
    pub blocker: Blocker,
}

/// The policy for exact tests.
pub const EXACT: Policy = Policy::new(Matcher::Exact, Blocker::Skip);

impl Policy {
    /// From its parts.
    #[must_use]
    pub const fn new(matcher: Matcher, blocker: Blocker) -> Self {
        Policy { matcher, blocker }
    }

    /// Whether messages are told apart by clocks; where there are none, another policy does the same.
    #[must_use]
    pub fn by_clock(self) -> bool {
        matches!(self.matcher, Matcher::ClockOldest | Matcher::ClockNewest)
    }

    /// A short name for tables.
    #[must_use]
    pub fn name(self) -> String {
        let matcher = match self.matcher {
            Matcher::Payload => "payload",
            Matcher::Exact => "exact",
            Matcher::TypeOldest => "type-oldest",
            Matcher::TypeNewest => "type-newest",
            Matcher::ClockOldest => "clock-oldest",
            Matcher::ClockNewest => "clock-newest",
            Matcher::ExactOrClock => "exact-or-clock",
        };
        match self.blocker {
            Blocker::Skip => matcher.to_owned(),
            Blocker::Flush => format!("{matcher}+flush"),
            Blocker::Fail => format!("{matcher}+fail"),
        }
    }

    /// The portfolio for a network rule, the one that gains most in general first.
    #[must_use]
    pub fn portfolio(rule: NetworkRule) -> Vec<Policy> {
        let matchers = [
            Matcher::ClockNewest,
            Matcher::TypeNewest,
            Matcher::ClockOldest,
            Matcher::ExactOrClock,
            Matcher::TypeOldest,
            Matcher::Exact,
        ];
        let blockers: &[Blocker] = match rule {
            NetworkRule::Fifo => &[Blocker::Flush, Blocker::Skip],
            NetworkRule::FifoLoss | NetworkRule::Unordered => &[Blocker::Skip],
        };
        matchers.iter().flat_map(|&m| blockers.iter().map(move |&b| Policy::new(m, b))).collect()
    }
}

impl Matcher {
    /// Index of the pending entry that serves `want`; `usable` filters out what may not be delivered.
    pub fn find<M: Model>(
        self,
        sim: &Simulator<M>,
        world: &World<M>,
        want: &Want,
        usable: impl Fn(usize, &Pending) -> bool,
    ) -> Option<usize> {
        let pending = world.pending();
        let fits = |p: &Pending, m: Matcher| {
            if !want.same_place(p) {
                return false;
            }
            let info = sim.info(p.msg);
            if want.external.is_some() || m == Matcher::Payload {
                // What logs do not show is compared where the step tells it.
                return info.payload == want.payload && (info.fingerprint == info.shown || want.fits(info));
            }
            match m {
                Matcher::Payload | Matcher::Exact | Matcher::ExactOrClock => want.fits(info),
                Matcher::TypeOldest | Matcher::TypeNewest => info.type_ == want.type_,
                Matcher::ClockOldest | Matcher::ClockNewest => {
                    info.type_ == want.type_
                        && (want.clock.is_none() || want.clock == sim.relative_clock(world, p))
                }
            }
        };
        let mut there = world.pending_at(want.place());
        let serves = |at: &usize| fits(&pending[*at], self) && usable(*at, &pending[*at]);
        let at = match self {
            Matcher::TypeNewest | Matcher::ClockNewest => there.rfind(serves),
            Matcher::TypeOldest | Matcher::ClockOldest => there.find(serves),
            // Of those that look alike the one that is meant, where it is pending.
            Matcher::Payload | Matcher::Exact | Matcher::ExactOrClock => {
                let mut other = None;
                let meant = there.find(|at| {
                    let serves = serves(at);
                    other = other.or(serves.then_some(*at));
                    serves && want.means(sim, &pending[*at])
                });
                meant.or(other)
            }
        };
        if at.is_none()
            && want.external.is_none()
            && let Some(role) = want.role
        {
            // A request may be answered by a message of another type where something before it is left out.
            let plays = |at: &usize| {
                let entry = &pending[*at];
                want.same_place(entry) && sim.info(entry.msg).role == Some(role) && usable(*at, entry)
            };
            match self {
                Matcher::TypeNewest | Matcher::ClockNewest => {
                    return world.pending_at(want.place()).rfind(plays);
                }
                Matcher::TypeOldest | Matcher::ClockOldest => {
                    return world.pending_at(want.place()).find(plays);
                }
                Matcher::Payload | Matcher::Exact | Matcher::ExactOrClock => {}
            }
        }
        if at.is_none() && self == Matcher::ExactOrClock {
            return Matcher::ClockOldest.find(sim, world, want, usable);
        }
        at
    }
}

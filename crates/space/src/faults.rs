//! Faults on the way of a search: each may happen at any time, once, those of one actor in their order. None of them is a
//! delivery, so none makes an execution longer.

use demi_replay::script::Act;
use demi_replay::{ActorId, Model, Pending, PendingKind, Simulator, World};
use demi_schemas::NetworkRule;

/// Most faults that a search takes: their number has to fit beside that of the places.
pub const MOST: usize = 16;
/// An odd number without pattern.
const MIX: u128 = 0xd6e8_feb8_6659_fd93_a076_1d64_78bd_642f;

/// Why a search cannot answer a question. It is not that there is nothing: nothing was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unsearchable {
    /// More faults, and starts where these may happen at any time, than fit.
    #[error("it knows {MOST} faults and late starts, and here are {0}")]
    Faults(usize),
    /// An actor that starts twice.
    #[error("an actor starts twice")]
    StartsTwice,
    /// A start where all must be there already.
    #[error("an actor starts later than the search begins")]
    StartsLater,
    /// What is neither a start, a delivery nor a fault.
    #[error("the driver's own actions cannot be left to it")]
    Action,
    /// A beginning at which a handler has panicked.
    #[error("a handler panics where it would begin")]
    Panicked,
    /// A beginning at a place that the witness does not have.
    #[error("there is no such place to begin at")]
    NoPlace,
    /// The time ended before it began.
    #[error("the time ended")]
    TimeOver,
}

/// The faults of an execution. Sets of them are numbers, a bit for each.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Act>);

impl Faults {
    /// The faults among some acts.
    ///
    /// # Errors
    /// If there is something else than starts of different actors, deliveries and faults, or too many of these.
    pub fn of(acts: &[Act]) -> Result<Faults, Unsearchable> {
        let (mut faults, mut started) = (Vec::new(), Vec::new());
        for act in acts {
            match act {
                Act::Deliver(_) | Act::Inject(..) => {}
                Act::Start(actor) if !started.contains(actor) => started.push(*actor),
                fault if fault.is_fault() => faults.push(*fault),
                Act::Start(_) => return Err(Unsearchable::StartsTwice),
                _ => return Err(Unsearchable::Action),
            }
        }
        Faults::fitting(faults)
    }

    fn fitting(faults: Vec<Act>) -> Result<Faults, Unsearchable> {
        match faults.len() {
            0..=MOST => Ok(Faults(faults)),
            more => Err(Unsearchable::Faults(more)),
        }
    }

    /// The same with the starts, which may then happen at any time as well.
    ///
    /// # Errors
    /// As [`Faults::of`] has them; starts count too.
    pub fn with_starts(acts: &[Act]) -> Result<Faults, Unsearchable> {
        Faults::of(acts)?;
        let free = acts.iter().filter(|act| act.is_fault() || matches!(act, Act::Start(_)));
        Faults::fitting(free.copied().collect())
    }

    /// All of them.
    pub fn all(&self) -> u32 {
        (1 << self.0.len()) - 1
    }

    /// The fault of a number.
    pub fn get(&self, number: usize) -> Option<&Act> {
        self.0.get(number)
    }

    /// Whether the network repeats a message. Its content may name any actor.
    pub fn repeat(&self) -> bool {
        self.0.iter().any(|fault| matches!(fault, Act::Duplicate(_)))
    }

    /// Actors that a fault happens to: not interchangeable with others.
    pub fn actors(&self) -> Vec<ActorId> {
        self.0.iter().filter_map(Act::actor).collect()
    }

    /// Which of those that are left may happen next: the first of each actor, and any repeated message.
    pub fn next(&self, left: u32) -> impl Iterator<Item = usize> {
        let is_left = move |number: usize| left & 1 << number != 0;
        (0..self.0.len()).filter(move |&number| {
            let earlier = (0..number).any(|other| is_left(other) && waits(&self.0[number], &self.0[other]));
            is_left(number) && !earlier
        })
    }

    /// Makes a fault happen. What is pending from outside stays so: it is sent when it is taken, which may be in a later
    /// incarnation.
    pub fn perform<M: Model>(
        &self,
        number: usize,
        sim: &mut Simulator<M>,
        world: &World<M>,
        rule: NetworkRule,
    ) -> Option<World<M>> {
        let act = self.0.get(number)?;
        let mut after = world.clone();
        act.perform(sim, &mut after, &[], rule).ok()?;
        let Act::Stop(actor) = act else { return Some(after) };
        // Nothing runs when an actor ends, so nothing can panic.
        let outside = |entry: &&Pending| entry.to == *actor && entry.kind == PendingKind::External;
        let kept = world.pending().iter().filter(outside);
        let pending = after.pending().iter().chain(kept).copied().collect();
        let status = (0..after.actors()).map(|at| after.status(ActorId(at as u16))).collect();
        Some(World::assemble(after.cells().to_vec(), status, pending))
    }
}

/// Whether a fault waits until another has happened: those of one actor come in their order. What the network repeats has no
/// part in that.
fn waits(fault: &Act, other: &Act) -> bool {
    let repeats = |act: &Act| matches!(act, Act::Duplicate(_));
    fault.actor() == other.actor() && !repeats(fault) && !repeats(other)
}

/// A part of a configuration's hash, for the faults that are left.
pub fn hash(left: u32) -> u128 {
    match left {
        0 => 0,
        _ => (u128::from(left) | 1 << 64).wrapping_mul(MIX).rotate_left(53).wrapping_mul(MIX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_one_actor_come_in_order() {
        let (a, b) = (ActorId(1), ActorId(2));
        let acts = [Act::Start(a), Act::Crash(a), Act::Start(b), Act::Isolate(b), Act::Restart(a)];
        let faults = Faults::of(&acts).expect("they can be searched");
        assert_eq!(faults.all(), 0b111);
        assert_eq!(faults.next(0b111).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(faults.next(0b110).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(faults.next(0).count(), 0);
        assert!(matches!(
            Faults::of(&[Act::Start(a), Act::Stop(a), Act::Start(a)]),
            Err(Unsearchable::StartsTwice)
        ));
        assert!(matches!(Faults::of(&[Act::Crash(a); MOST + 1]), Err(Unsearchable::Faults(17))));
        assert!(hash(1) != hash(2) && hash(0) == 0);
    }
}

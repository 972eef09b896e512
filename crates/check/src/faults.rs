//! Faults of the executions that a certificate speaks of.

use demi_replay::script::{Act, Refusal};
use demi_replay::{ActorId, Model, Pending, PendingKind, World};

use crate::certificate::CertificateError;

/// Which faults may happen next: the first of each actor, and any message that the network repeats.
pub(super) fn first_of_each(faults: &[Act]) -> Vec<usize> {
    let repeats = |at: usize| matches!(faults[at], Act::Duplicate(_));
    let apart = |at: usize, earlier: usize| {
        faults[earlier].actor() != faults[at].actor() || repeats(at) || repeats(earlier)
    };
    let first = |at: &usize| (0..*at).all(|earlier| apart(*at, earlier));
    (0..faults.len()).filter(first).collect()
}

/// The world with the messages from outside that an actor had before: they are sent when they are taken, which may be in
/// a later incarnation.
pub(super) fn with_outside<M: Model>(world: &World<M>, before: &World<M>, actor: ActorId) -> World<M> {
    let outside = |entry: &&Pending| entry.to == actor && entry.kind == PendingKind::External;
    let pending = world.pending().iter().chain(before.pending().iter().filter(outside)).copied().collect();
    let status = (0..world.actors()).map(|at| world.status(ActorId(at as u16))).collect();
    World::assemble(world.cells().to_vec(), status, pending)
}

/// Why a fault of a certificate cannot be made.
pub(super) fn impossible(refusal: Refusal) -> CertificateError {
    CertificateError::False(format!("a fault is impossible: {refusal:?}"))
}

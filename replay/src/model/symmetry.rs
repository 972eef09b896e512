//! Actors that can take each other's places.

use crate::names::ActorId;

/// States and messages as they would be if actors had each other's places.
///
/// A delivery must do the same to what is renamed as to what is not, and so must the invariants but for the names they
/// report. Searches then take configurations that differ only in the places of actors for one (symmetry reduction:
/// C. N. Ip and D. L. Dill, 1996). Both methods are needed, so a model has either both or none.
pub trait Symmetry<S, Msg> {
    /// A state with actors in each other's places; `to` tells for each who takes its place. `None` where this one
    /// cannot be renamed, which ends the reduction.
    fn state(&self, state: &S, to: &dyn Fn(ActorId) -> ActorId) -> Option<S>;

    /// A message with actors in each other's places; `None` where this one cannot be renamed.
    fn message(&self, msg: &Msg, to: &dyn Fn(ActorId) -> ActorId) -> Option<Msg>;
}

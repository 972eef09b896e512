//! What is on its way: messages that were sent and not yet delivered, and armed timers.

use demi_schemas::event::Via;

use crate::names::ActorId;

/// An interned message: equal ids mean equal messages within one simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MsgId(pub u32);

/// What a pending entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PendingKind {
    /// A message between actors.
    Message,
    /// A message from outside.
    External,
    /// A timer that is gone when it fires.
    Timer,
    /// A timer that is armed again when it fires.
    Repeating,
}

impl PendingKind {
    /// Whether it is a timer.
    #[must_use]
    pub fn is_timer(self) -> bool {
        matches!(self, PendingKind::Timer | PendingKind::Repeating)
    }
}

/// A message sent and not yet delivered, or an armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    /// The sender it names.
    pub from: ActorId,
    /// The receiver.
    pub to: ActorId,
    /// The actor that really sent; [`OUTSIDE`](crate::names::OUTSIDE) is outside every order.
    pub channel: ActorId,
    /// Content.
    pub msg: MsgId,
    /// What it is.
    pub kind: PendingKind,
    /// For timers: which of the actor's timers.
    pub timer: u16,
    /// For timers: whether it stays armed when the actor restarts.
    pub survives: bool,
    /// How `from` came to differ from the channel.
    pub via: Option<Via>,
}

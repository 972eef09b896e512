//! What has a number: local states and pending entries, and what a delivery does besides changing a state.

use std::sync::Arc;

use demi_replay::{Model, Pending};

/// No channel: the entry may be delivered at any time.
pub const FREE: u32 = 0;

/// A local state at its place.
pub struct Local<M: Model> {
    /// The state.
    pub state: Arc<M::State>,
    /// Hash of the place and the content.
    pub hash: u128,
    /// What [`Simulator::watch_state`] says.
    pub watch: Option<u64>,
}

/// A kind of pending entry. Timers that differ in nothing that a handler reads are one.
#[derive(Clone)]
pub struct Entry<M: Model> {
    /// One of them.
    pub pending: Pending,
    /// Its message.
    pub msg: M::Msg,
    /// Hash of the content and of whom it goes to.
    pub hash: u128,
    /// Its channel, or [`FREE`].
    pub channel: u32,
    /// The cell its receiver works on.
    pub cell: usize,
    /// For timers: which timer of which actor, never 0; 0 for messages.
    pub timer: u32,
    /// Whether the bound looks at it.
    pub seen: bool,
    /// Its kind ([`Kinds`]).
    pub kind: u16,
}

/// What a delivery does besides changing a state. Numbers are of entries.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// A message becomes pending unless its receiver or sender cannot be reached.
    Send(u32),
    /// A timer is armed in place of the live one.
    Arm(u32),
    /// A timer ends, if it is live.
    Disarm(u32),
}

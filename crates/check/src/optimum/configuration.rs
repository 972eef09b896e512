//! A configuration as a list of numbers: who runs, in which states, and what is pending.

use demi_replay::ActorId;

/// The number of a state or of a pending entry in the tables of [`Handlers`](super::handlers::Handlers).
pub(super) type Id = u32;

/// Whether an actor takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Life {
    /// It has not started, and nothing was sent to it.
    Absent,
    /// It has not started, and lost something that was sent to it.
    Missed,
    Running,
    Crashed,
}

/// See the module's first line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Configuration {
    /// Whether anything but a start has happened.
    pub(super) begun: bool,
    /// The first recorded fault that may still come.
    pub(super) fault: u32,
    /// How often each message from outside of which there are few was delivered.
    pub(super) used: Vec<u8>,
    /// By the numbers of actors.
    pub(super) lives: Vec<Life>,
    /// By the numbers of cells; 0 where there is none.
    pub(super) states: Vec<Id>,
    /// What is pending, sorted; what stands in one channel keeps its order where the network does.
    pub(super) pending: Vec<Id>,
}

impl Configuration {
    pub(super) fn new(actors: usize, few: usize) -> Self {
        Configuration {
            begun: false,
            fault: 0,
            used: vec![0; few],
            lives: vec![Life::Absent; actors],
            states: vec![0; actors],
            pending: Vec::new(),
        }
    }

    pub(super) fn life(&self, actor: ActorId) -> Life {
        self.lives[actor.index()]
    }

    /// Equal for equal configurations alone: the lengths of all lists but the last are fixed.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + 4 * (self.states.len() + self.pending.len()));
        bytes.push(u8::from(self.begun));
        bytes.extend(self.fault.to_le_bytes());
        bytes.extend(&self.used);
        bytes.extend(self.lives.iter().map(|&life| life as u8));
        for id in self.states.iter().chain(&self.pending) {
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }
}

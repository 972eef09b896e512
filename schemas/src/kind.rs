//! What an event is, and how its message travelled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The actor began to exist.
    Start,
    /// The actor (or a thread of it) sent a message.
    Send,
    /// The actor took a message and handled it to the end.
    Receive,
    /// The actor armed a timer.
    TimerSet,
    /// The actor cancelled a timer.
    TimerCancel,
    /// A timer of the actor fired and was handled.
    TimerFire,
    /// The actor failed.
    Crash,
    /// The actor began a new incarnation.
    Restart,
    /// The actor is gone for good.
    Stop,
    /// The actor was cut off from the network.
    Isolate,
    /// Code that ran outside the actors.
    Action,
    /// An atomic block of a thread outside the handlers begins.
    BlockBegin,
    /// The block ends.
    BlockEnd,
    /// Variables of the actor at this point.
    State,
    /// An invariant was found broken.
    Violation,
    /// Something else that the actor logged: no message and no timer (an internal event; L. Lamport, CACM 21(7), 1978).
    Local,
    /// The actor that was cut off is back on the network.
    Heal,
}

impl Kind {
    /// All kinds, in the order of their declaration; the position is the code used in compact columns.
    pub const ALL: [Kind; 17] = [
        Kind::Start,
        Kind::Send,
        Kind::Receive,
        Kind::TimerSet,
        Kind::TimerCancel,
        Kind::TimerFire,
        Kind::Crash,
        Kind::Restart,
        Kind::Stop,
        Kind::Isolate,
        Kind::Action,
        Kind::BlockBegin,
        Kind::BlockEnd,
        Kind::State,
        Kind::Violation,
        Kind::Local,
        Kind::Heal,
    ];

    /// The name written in records and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Send => "send",
            Kind::Receive => "receive",
            Kind::TimerSet => "timer_set",
            Kind::TimerCancel => "timer_cancel",
            Kind::TimerFire => "timer_fire",
            Kind::Crash => "crash",
            Kind::Restart => "restart",
            Kind::Stop => "stop",
            Kind::Isolate => "isolate",
            Kind::Heal => "heal",
            Kind::Action => "action",
            Kind::BlockBegin => "block_begin",
            Kind::BlockEnd => "block_end",
            Kind::State => "state",
            Kind::Violation => "violation",
            Kind::Local => "local",
        }
    }

    /// The kind of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.as_str() == name)
    }

    /// Whether the event is the handling of something: a received message or a fired timer.
    #[must_use]
    pub fn is_delivery(self) -> bool {
        matches!(self, Kind::Receive | Kind::TimerFire)
    }
}

/// How a message came to carry a `from` that is not the actor that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// Put back into the log owner's own inbox under the original sender's name.
    Forward,
    /// Sent without a sender, or armed through a scheduler, by the handler before it.
    Scheduler,
    /// Sent by another thread of the actor, outside any handler: no cause in the handler before it.
    Thread,
    /// A question: `from` is a temporary actor.
    Ask,
}

impl Via {
    /// The name written in records and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Via::Forward => "forward",
            Via::Scheduler => "scheduler",
            Via::Thread => "thread",
            Via::Ask => "ask",
        }
    }

    /// The way of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Via> {
        [Via::Forward, Via::Scheduler, Via::Thread, Via::Ask].into_iter().find(|v| v.as_str() == name)
    }
}

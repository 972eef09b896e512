//! A macro for each kind of event.
//!
//! Further fields are written as in [`tracing`]: `name = value`, `name = %shown`, `name = ?debugged`. Those that event
//! records know (`payload`, `fingerprint`, `external`, `via`, `fields`, `time`) mean what they mean there; others are
//! kept under their names. `fields` (and `state`) given as JSON text (`%`) are written as JSON.

/// One event of any kind: `event!("kind", actor, field = value, …)`.
#[macro_export]
macro_rules! event {
    ($kind:expr, $actor:expr $(, $($rest:tt)*)?) => {
        $crate::private::tracing::event!(
            target: "demi_log",
            $crate::private::tracing::Level::INFO,
            kind = $kind,
            actor = $actor
            $(, $($rest)*)?
        )
    };
}

/// An actor sends a message: `send!(actor, to, "Type", payload = …)`. Gives the [`MsgId`](crate::MsgId) that the message
/// has to carry; an id of the system's own can be given instead: `send!(actor, to, "Type", id: own, payload = …)`.
#[macro_export]
macro_rules! send {
    ($actor:expr, $to:expr, $type:expr, id: $id:expr $(, $($rest:tt)*)?) => {
        $crate::event!("send", $actor, to = $to, "type" = $type, msg_id = %$id $(, $($rest)*)?)
    };
    ($actor:expr, $to:expr, $type:expr $(, $($rest:tt)*)?) => {{
        let id = $crate::MsgId::next();
        $crate::event!("send", $actor, to = $to, "type" = $type, msg_id = %id $(, $($rest)*)?);
        id
    }};
}

/// An actor takes a message and handles it: `receive!(actor, from, "Type", id, payload = …)`.
#[macro_export]
macro_rules! receive {
    ($actor:expr, $from:expr, $type:expr, $id:expr $(, $($rest:tt)*)?) => {
        $crate::event!("receive", $actor, from = $from, "type" = $type, msg_id = %$id $(, $($rest)*)?)
    };
}

/// An actor arms a timer: `timer_set!(actor, "name")`. Gives the id for [`timer_fire!`](crate::timer_fire).
#[macro_export]
macro_rules! timer_set {
    ($actor:expr, $name:expr $(, $($rest:tt)*)?) => {{
        let id = $crate::MsgId::next();
        $crate::event!("timer_set", $actor, "type" = $name, msg_id = %id $(, $($rest)*)?);
        id
    }};
}

/// A timer fires and is handled: `timer_fire!(actor, "name", id)`.
#[macro_export]
macro_rules! timer_fire {
    ($actor:expr, $name:expr, $id:expr $(, $($rest:tt)*)?) => {
        $crate::event!("timer_fire", $actor, "type" = $name, msg_id = %$id $(, $($rest)*)?)
    };
}

/// An actor cancels a timer: `timer_cancel!(actor, "name")`.
#[macro_export]
macro_rules! timer_cancel {
    ($actor:expr, $name:expr $(, $($rest:tt)*)?) => {
        $crate::event!("timer_cancel", $actor, "type" = $name $(, $($rest)*)?)
    };
}

/// An actor begins to exist: `start!(actor)`.
#[macro_export]
macro_rules! start {
    ($actor:expr $(, $($rest:tt)*)?) => { $crate::event!("start", $actor $(, $($rest)*)?) };
}

/// An actor begins a new incarnation, with sequence numbers from 1: `restart!(actor)`.
#[macro_export]
macro_rules! restart {
    ($actor:expr $(, $($rest:tt)*)?) => { $crate::event!("restart", $actor $(, $($rest)*)?) };
}

/// An actor fails: `crash!(actor)`.
#[macro_export]
macro_rules! crash {
    ($actor:expr $(, $($rest:tt)*)?) => { $crate::event!("crash", $actor $(, $($rest)*)?) };
}

/// An actor is gone for good: `stop!(actor)`.
#[macro_export]
macro_rules! stop {
    ($actor:expr $(, $($rest:tt)*)?) => { $crate::event!("stop", $actor $(, $($rest)*)?) };
}

/// Something else an actor did: `local!(actor, "type", field = value, …)`.
#[macro_export]
macro_rules! local {
    ($actor:expr, $type:expr $(, $($rest:tt)*)?) => {
        $crate::event!("local", $actor, "type" = $type $(, $($rest)*)?)
    };
}

/// A thread does something with a lock, a shared value or another thread: `operation!(thread, "lock", "queue")`. The operation is `lock`, `unlock`,
/// `wait`, `notify`, `read`, `write`, `spawn` or `join`, and what follows is the lock, the value or the other thread. It is a `local` record with a
/// number that counts over all threads, and with the number of the process. Log a `lock` after the lock is taken, a `wait` before it begins, and everything else before it is done.
///
/// A test with the crate `demi-threads` follows such a log: `DEMI_LOG=events.jsonl cargo test`.
#[macro_export]
macro_rules! operation {
    ($thread:expr, $operation:expr, $on:expr $(, $($rest:tt)*)?) => {
        $crate::event!(
            "local", $thread, "type" = $operation, payload = %$on, operation = $crate::private::operation(),
            process = $crate::private::process() $(, $($rest)*)?
        )
    };
}

/// Variables of an actor at this point: `state!(actor, term = 3, role = "leader")`.
#[macro_export]
macro_rules! state {
    ($actor:expr $(, $($rest:tt)*)?) => { $crate::event!("state", $actor $(, $($rest)*)?) };
}

/// The variables of an actor, as serde writes them: `state_of!(actor, self)`, at the end of a handler. Which variables are told, and under
/// which names, says `#[derive(Serialize)]` with `#[serde(skip)]` and `#[serde(rename = …)]`. Nothing is serialized where nothing is
/// logged.
///
/// ```
/// #[derive(serde::Serialize)]
/// struct Member {
///     term: u64,
///     role: &'static str,
///     #[serde(skip)]
///     password: String,
/// }
///
/// let member = Member { term: 3, role: "leader", password: "secret".into() };
/// demi_log::state_of!("raft-2", member);
/// ```
#[macro_export]
macro_rules! state_of {
    ($actor:expr, $value:expr $(, $($rest:tt)*)?) => {
        $crate::event!("state", $actor, state = %$crate::AsJson(&$value) $(, $($rest)*)?)
    };
}

/// A monitor finds an invariant broken: `violation!("name of the invariant", fields = %json)`.
#[macro_export]
macro_rules! violation {
    ($what:expr $(, $($rest:tt)*)?) => {
        $crate::event!("violation", "_monitor", "type" = $what $(, $($rest)*)?)
    };
}

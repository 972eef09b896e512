//! What a handler may do besides changing its state: send, set timers, start and stop actors, fail.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use demi_schemas::event::Via;

use crate::names::{ActorId, Names, OUTSIDE};

/// A timer of one actor: what it is called, and how it behaves.
///
/// An actor has at most one live timer of each name and key. A text is the timer of that name with key 0 that fires once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    pub(crate) name: &'static str,
    pub(crate) key: u64,
    pub(crate) repeats: bool,
    pub(crate) survives: bool,
}

impl Timer {
    /// The timer of that name and key 0. It fires once, and a restart of its actor ends it.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Timer { name, key: 0, repeats: false, survives: false }
    }

    /// Tells timers of one name apart, such as one for each request.
    #[must_use]
    pub const fn keyed(self, key: u64) -> Self {
        Timer { key, ..self }
    }

    /// It is armed again at once when it fires.
    #[must_use]
    pub const fn repeating(self) -> Self {
        Timer { repeats: true, ..self }
    }

    /// It stays armed when its actor restarts.
    #[must_use]
    pub const fn surviving(self) -> Self {
        Timer { survives: true, ..self }
    }
}

impl Timer {
    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl From<&'static str> for Timer {
    fn from(name: &'static str) -> Self {
        Timer::named(name)
    }
}

/// How many names of timers there may be that a program makes up while it runs.
pub const MOST_TIMER_NAMES: usize = 10_000;
/// The name of a timer beyond those.
const TOO_MANY: &str = "(one name of a timer too many)";

impl Timer {
    /// The timer of a name that is known only while the program runs; nothing where there are [`MOST_TIMER_NAMES`] others. Names stay in memory:
    /// what tells timers of one sort apart is their key.
    #[must_use]
    pub fn called(name: &str) -> Option<Self> {
        static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Some(Timer::named(known));
        }
        if names.len() == MOST_TIMER_NAMES {
            return None;
        }
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        names.insert(name);
        Some(Timer::named(name))
    }
}

impl From<&String> for Timer {
    fn from(name: &String) -> Self {
        Timer::called(name).unwrap_or(Timer::named(TOO_MANY))
    }
}

impl From<String> for Timer {
    fn from(name: String) -> Self {
        Timer::from(&name)
    }
}

/// What a handler reads that is neither its state nor its message.
///
/// Each is `None` in every run today: a schedule has no step that says what time it was or what a random number came to,
/// and what is not in a schedule cannot be replayed. A model has to say what it does then. Once schedules have such
/// steps, handlers get them here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inputs {
    /// The present time on the actor's own clock, from the beginning of the run.
    pub now: Option<Duration>,
    /// A random number.
    pub random: Option<u64>,
}

/// What a handler asks the simulator to do, in order.
#[derive(Clone, Debug)]
pub(crate) enum Effect<Msg> {
    Send { from: ActorId, channel: ActorId, to: ActorId, msg: Msg, via: Option<Via>, external: bool },
    SetTimer { timer: Timer, to: ActorId, msg: Msg },
    CancelTimer { timer: Timer, to: ActorId },
    Start(ActorId),
    Stop(ActorId),
    Crash,
}

impl<Msg> Effect<Msg> {
    /// The message that it brings, if it brings one.
    pub(crate) fn message(&self) -> Option<&Msg> {
        match self {
            Effect::Send { msg, .. } | Effect::SetTimer { msg, .. } => Some(msg),
            Effect::CancelTimer { .. } | Effect::Start(_) | Effect::Stop(_) | Effect::Crash => None,
        }
    }

    /// The message that it brings, if it brings one.
    pub(crate) fn into_message(self) -> Option<Msg> {
        match self {
            Effect::Send { msg, .. } | Effect::SetTimer { msg, .. } => Some(msg),
            Effect::CancelTimer { .. } | Effect::Start(_) | Effect::Stop(_) | Effect::Crash => None,
        }
    }
}

/// What a handler may do besides changing its state. Effects happen in order when the handler ends.
pub struct Ctx<'a, Msg> {
    pub(crate) me: ActorId,
    pub(crate) from: ActorId,
    pub(crate) effects: &'a mut Vec<Effect<Msg>>,
    pub(crate) names: &'a mut Names,
    pub(crate) crash_reason: &'a mut Option<String>,
}

impl<Msg> Ctx<'_, Msg> {
    /// The actor that handles.
    #[must_use]
    pub fn me(&self) -> ActorId {
        self.me
    }

    /// The sender of the message being handled, [`OUTSIDE`] for timers and messages from outside.
    #[must_use]
    pub fn sender(&self) -> ActorId {
        self.from
    }

    /// What the handler may read besides; see [`Inputs`] for what is there today.
    #[must_use]
    pub fn inputs(&self) -> Inputs {
        Inputs::default()
    }

    /// Names of the actors; a name that is new becomes known.
    pub fn names(&mut self) -> &mut Names {
        self.names
    }

    /// Sends a message.
    pub fn send(&mut self, to: ActorId, msg: Msg) {
        let me = self.me;
        self.effects.push(Effect::Send { from: me, channel: me, to, msg, via: None, external: false });
    }

    /// Puts a message back into the own inbox under the name of the sender of the message being handled. The
    /// copy joins the end of that sender's channel.
    pub fn forward(&mut self, msg: Msg) {
        let (from, to) = (self.from, self.me);
        self.effects.push(Effect::Send {
            from,
            channel: from,
            to,
            msg,
            via: Some(Via::Forward),
            external: false,
        });
    }

    /// Sends under another name: `channel` is the actor that really sends ([`OUTSIDE`] for none, which is
    /// outside every order), `from` the name the message carries.
    pub fn send_as(&mut self, from: ActorId, channel: ActorId, to: ActorId, msg: Msg, via: Via) {
        self.effects.push(Effect::Send { from, channel, to, msg, via: Some(via), external: false });
    }

    /// Sends without a sender: a scheduled message that may be delivered at any time.
    pub fn send_unordered(&mut self, to: ActorId, msg: Msg, via: Via) {
        self.send_as(OUTSIDE, OUTSIDE, to, msg, via);
    }

    /// Arms a timer of this actor; a live one of that name and key is cancelled first.
    ///
    /// A handler that makes up more names than [`MOST_TIMER_NAMES`] fails: see [`Timer::keyed`].
    pub fn set_timer(&mut self, timer: impl Into<Timer>, msg: Msg) {
        let (to, timer) = (self.me, timer.into());
        match timer.name {
            TOO_MANY => self.crash(format!(
                "more than {MOST_TIMER_NAMES} names of timers: use the key of a timer to tell them apart"
            )),
            _ => self.effects.push(Effect::SetTimer { timer, to, msg }),
        }
    }

    /// Cancels the timer of this actor with that name and key, if it is live. A cancelled timer never fires.
    pub fn cancel_timer(&mut self, timer: impl Into<Timer>) {
        let to = self.me;
        self.effects.push(Effect::CancelTimer { timer: timer.into(), to });
    }

    /// Brings an actor into existence.
    pub fn start_actor(&mut self, actor: ActorId) {
        self.effects.push(Effect::Start(actor));
    }

    /// Ends an actor for good.
    pub fn stop_actor(&mut self, actor: ActorId) {
        self.effects.push(Effect::Stop(actor));
    }

    /// The handler fails: what it sent so far stays sent, the message is consumed.
    pub fn crash(&mut self, reason: impl Into<String>) {
        *self.crash_reason = Some(reason.into());
        self.effects.push(Effect::Crash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_timers_may_be_made_up() {
        let request = 7;
        let (made_up, known) = (Timer::from(format!("retry-{request}")), Timer::from("retry-7"));
        assert_eq!(made_up, known);
        assert!(std::ptr::eq(made_up.name, Timer::called("retry-7").unwrap().name), "one copy of each name");
    }
}

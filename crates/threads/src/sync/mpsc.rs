//! Channels, as [`std::sync::mpsc`].

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use crate::op::{Kind, Place, ResourceKind, Tag};
use crate::step::{came_to, step, step_with};
use crate::time::pass;
use crate::world::WORLD;

struct Shared<T> {
    tag: Tag,
    capacity: Option<usize>,
    state: std::sync::Mutex<State<T>>,
}

struct State<T> {
    queue: VecDeque<T>,
    senders: u32,
    receiver: bool,
}

impl<T> Shared<T> {
    fn with<R>(&self, f: impl FnOnce(&mut State<T>) -> R) -> R {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn object(&self) -> Option<(&Tag, ResourceKind)> {
        Some((&self.tag, ResourceKind::Channel))
    }

    /// A step after which the world knows what is in the channel.
    fn step<R>(&self, kind: Kind, at: Place, f: impl FnOnce(&mut State<T>) -> R) -> R {
        self.registered();
        let mut f = Some(f);
        let mut call = || f.take().map(|f| self.with(f));
        let done = step(kind, self.object(), at, |world, on| {
            let result = call();
            let (count, senders, receiver) =
                self.with(|state| (state.queue.len() as u32, state.senders, state.receiver));
            let resource = world.of(on);
            if count < resource.count {
                resource.generation += 1;
            }
            resource.count = count;
            resource.senders = senders;
            resource.busy = !receiver;
            world.writes(on);
            result
        });
        #[allow(clippy::expect_used, reason = "one of the two calls it")]
        done.flatten().or_else(call).expect("called once")
    }

    /// A channel that was made outside of the execution is made known to it.
    fn registered(&self) {
        WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            if world.active && self.tag.id_in(world.execution).is_none() {
                let id = world.resource(&self.tag, ResourceKind::Channel);
                let (count, senders, receiver) =
                    self.with(|state| (state.queue.len() as u32, state.senders, state.receiver));
                let resource = world.of(id);
                resource.count = count;
                resource.senders = senders;
                resource.busy = !receiver;
                resource.capacity = self.capacity.map_or(u32::MAX, |capacity| capacity as u32);
            }
        });
    }

    fn clone_sender(&self) {
        self.with(|state| state.senders += 1);
        WORLD.with(|world| {
            let world = &mut *world.borrow_mut();
            if world.active
                && let Some(id) = self.tag.id_in(world.execution)
            {
                world.of(id).senders += 1;
            }
        });
    }

    #[track_caller]
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        let at = Location::caller();
        let mut value = Some(value);
        self.step(Kind::Send, at, |state| {
            if state.receiver
                && let Some(value) = value.take()
            {
                state.queue.push_back(value);
            }
        });
        if let Some(value) = value {
            return Err(SendError(value));
        }
        if self.capacity == Some(0) {
            let taken = |world: &mut crate::world::World, on| world.of(on).generation;
            let back = step_with(Kind::SendTaken, self.object(), at, taken, |world, on| {
                world.writes(on);
                // Nobody will take it any more.
                self.with(|state| if state.receiver { None } else { state.queue.pop_front() })
            });
            if let Some(value) = back.flatten() {
                return Err(SendError(value));
            }
        }
        Ok(())
    }
}

/// The end of a channel that sends, without a bound.
pub struct Sender<T>(Arc<Shared<T>>);

/// The end of a channel that sends, with a bound.
pub struct SyncSender<T>(Arc<Shared<T>>);

/// The end of a channel that receives.
pub struct Receiver<T>(Arc<Shared<T>>, OneThread);

/// It may be given to another task, and not be used by two.
type OneThread = std::marker::PhantomData<std::cell::Cell<()>>;

fn shared<T>(capacity: Option<usize>, at: Place) -> Arc<Shared<T>> {
    let state = State { queue: VecDeque::new(), senders: 1, receiver: true };
    let shared = Arc::new(Shared { tag: Tag::new(at, None), capacity, state: std::sync::Mutex::new(state) });
    shared.registered();
    shared
}

/// A channel without a bound.
#[track_caller]
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = shared(None, Location::caller());
    (Sender(Arc::clone(&shared)), Receiver(shared, OneThread::default()))
}

/// A channel that holds at most so many values; with 0, a send waits for its receive.
#[track_caller]
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let shared = shared(Some(bound), Location::caller());
    (SyncSender(Arc::clone(&shared)), Receiver(shared, OneThread::default()))
}

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    /// With the value, when the receiver is gone.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }
}

impl<T> SyncSender<T> {
    /// Sends a value when there is room.
    ///
    /// # Errors
    /// With the value, when the receiver is gone.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }

    /// Sends a value if there is room. Where the bound is 0 there never is: who receives cannot be seen to wait.
    ///
    /// # Errors
    /// With the value, when there is no room or the receiver is gone.
    #[track_caller]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let room = self.0.capacity.unwrap_or(usize::MAX);
        let sent = self.0.step(Kind::TrySend, Location::caller(), |state| {
            if !state.receiver {
                Err(TrySendError::Disconnected(value))
            } else if state.queue.len() >= room {
                Err(TrySendError::Full(value))
            } else {
                state.queue.push_back(value);
                Ok(())
            }
        });
        match sent {
            Err(TrySendError::Full(_)) => came_to("no room"),
            Err(TrySendError::Disconnected(_)) => came_to("no receiver"),
            Ok(()) => {}
        }
        sent
    }
}

impl<T> Receiver<T> {
    /// Waits for a value.
    ///
    /// # Errors
    /// When all senders are gone and nothing is left.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.0.step(Kind::Recv, Location::caller(), |state| state.queue.pop_front().ok_or(RecvError))
    }

    /// A value, if one is there.
    ///
    /// # Errors
    /// When none is there, or all senders are gone.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let received =
            self.0.step(Kind::TryRecv, Location::caller(), |state| match state.queue.pop_front() {
                Some(value) => Ok(value),
                None if state.senders == 0 => Err(TryRecvError::Disconnected),
                None => Err(TryRecvError::Empty),
            });
        match received {
            Err(TryRecvError::Empty) => came_to("nothing is there"),
            Err(TryRecvError::Disconnected) => came_to("no sender"),
            Ok(_) => {}
        }
        received
    }

    /// Waits for a value or the end of a time, whichever the schedule says: there is no clock.
    ///
    /// # Errors
    /// When none came, or all senders are gone.
    #[track_caller]
    pub fn recv_timeout(&self, time: Duration) -> Result<T, RecvTimeoutError> {
        let received =
            self.0.step(Kind::RecvOrTimeOut, Location::caller(), |state| match state.queue.pop_front() {
                Some(value) => Ok(value),
                None if state.senders == 0 => Err(RecvTimeoutError::Disconnected),
                None => Err(RecvTimeoutError::Timeout),
            });
        match received {
            Err(RecvTimeoutError::Timeout) => {
                came_to("timed out");
                pass(time);
            }
            Err(RecvTimeoutError::Disconnected) => came_to("no sender"),
            Ok(_) => {}
        }
        received
    }

    /// The values until all senders are gone.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// The values that are there.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

/// See [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// See [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// The values of a receiver that is used up.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.clone_sender();
        Self(Arc::clone(&self.0))
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> Self {
        self.0.clone_sender();
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    #[track_caller]
    fn drop(&mut self) {
        self.0.step(Kind::DropSender, self.0.tag.made, |state| state.senders -= 1);
    }
}

impl<T> Drop for SyncSender<T> {
    fn drop(&mut self) {
        self.0.step(Kind::DropSender, self.0.tag.made, |state| state.senders -= 1);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let rest = self.0.step(Kind::DropReceiver, self.0.tag.made, |state| {
            state.receiver = false;
            // Who hands a value over and waits for that gets it back.
            let waits = self.0.capacity == Some(0);
            if waits { VecDeque::new() } else { std::mem::take(&mut state.queue) }
        });
        drop(rest);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

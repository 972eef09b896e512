//! Initialization that happens once, as [`std::sync::Once`], [`std::sync::OnceLock`] and [`std::sync::LazyLock`].

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::op::{Kind, Place, ResourceKind, Tag};
use crate::step::{step, step_with};

const NEW: u8 = 0;
const DONE: u8 = 2;
const POISONED: u8 = 3;

/// A step that is made once.
pub struct Once {
    tag: Tag,
    state: AtomicU8,
}

/// What a closure of [`Once::call_once_force`] is told.
#[derive(Debug)]
pub struct OnceState {
    poisoned: bool,
}

impl OnceState {
    /// Whether an earlier attempt panicked.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

struct Ends<'a> {
    once: &'a Once,
    at: Place,
    done: bool,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let state = if self.done { DONE } else { POISONED };
        let ended = step(Kind::OnceEnd, Some((&self.once.tag, ResourceKind::Once)), self.at, |world, on| {
            self.once.state.store(state, Ordering::Relaxed);
            world.of(on).busy = false;
            world.of(on).count = if self.done { 1 } else { 2 };
            if let Some(holder) = world.of(on).holder.take() {
                world.release(on, holder);
            }
            world.writes(on);
        });
        if ended.is_none() {
            self.once.state.store(state, Ordering::Relaxed);
        }
    }
}

impl Once {
    /// One that was not made yet.
    #[track_caller]
    #[must_use]
    pub const fn new() -> Self {
        Self { tag: Tag::new(Location::caller(), None), state: AtomicU8::new(NEW) }
    }

    #[allow(clippy::panic, reason = "as the standard library does")]
    fn call(&self, force: bool, at: Place, f: impl FnOnce(&OnceState)) {
        let look = || self.state.load(Ordering::Relaxed);
        let state = step(Kind::OnceBegin, Some((&self.tag, ResourceKind::Once)), at, |world, on| {
            let state = look();
            if state == DONE {
                world.reads(on);
            } else {
                if state == NEW || force {
                    let me = world.current;
                    world.of(on).busy = true;
                    world.of(on).holder = Some(me);
                    world.hold(on, at);
                }
                world.writes(on);
            }
            state
        });
        match state.unwrap_or_else(look) {
            DONE => {}
            POISONED if !force => panic!("Once instance has previously been poisoned"),
            state => {
                let mut ends = Ends { once: self, at, done: false };
                f(&OnceState { poisoned: state == POISONED });
                ends.done = true;
            }
        }
    }

    /// Calls the closure if none was called before, and waits for its end.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.call(false, Location::caller(), |_| f());
    }

    /// The same, also where an earlier closure panicked.
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        self.call(true, Location::caller(), f);
    }

    /// Waits until it has happened.
    ///
    /// # Panics
    /// When the closure panicked.
    #[track_caller]
    #[allow(clippy::panic, reason = "as the standard library does")]
    pub fn wait(&self) {
        if self.waits(false, Location::caller()) == POISONED {
            panic!("Once instance has previously been poisoned");
        }
    }

    /// Waits until it has happened, also where an earlier closure panicked.
    #[track_caller]
    pub fn wait_force(&self) {
        self.waits(true, Location::caller());
    }

    fn waits(&self, force: bool, at: Place) -> u8 {
        let look = || self.state.load(Ordering::Relaxed);
        // What it came to in an earlier execution, the world does not know: 1 says that it is over, 2 that a panic is no end.
        let over = |state: u8| match state {
            DONE => 1,
            POISONED if !force => 1,
            _ if force => 2,
            _ => 0,
        };
        let object = Some((&self.tag, ResourceKind::Once));
        step_with(
            Kind::OnceWait,
            object,
            at,
            |_, _| over(look()),
            |world, on| {
                world.reads(on);
                look()
            },
        )
        .unwrap_or_else(look)
    }

    /// Whether it happened.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        let look = || self.state.load(Ordering::Relaxed) == DONE;
        let at = Location::caller();
        step(Kind::OnceGet, Some((&self.tag, ResourceKind::Once)), at, |world, on| {
            world.reads(on);
            look()
        })
        .unwrap_or_else(look)
    }
}

impl Default for Once {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}

/// A value that is set once.
pub struct OnceLock<T> {
    once: Once,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// One without a value.
    #[track_caller]
    #[must_use]
    pub const fn new() -> Self {
        Self { once: Once::new(), value: std::sync::OnceLock::new() }
    }

    /// The value, if it is set.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        if self.once.is_completed() { self.value.get() } else { None }
    }

    /// The value, once it is set.
    #[track_caller]
    #[allow(clippy::expect_used, reason = "who waited to the end finds it")]
    pub fn wait(&self) -> &T {
        self.once.waits(true, Location::caller());
        self.value.get().expect("it was set")
    }

    /// The value, which nobody else can have.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Sets the value.
    ///
    /// # Errors
    /// With the new value, when there is one already.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.once.call(true, Location::caller(), |_| {
            if let Some(value) = value.take() {
                let _ = self.value.set(value);
            }
        });
        value.map_or(Ok(()), Err)
    }

    /// The value; if there is none, the closure's.
    #[track_caller]
    #[allow(clippy::expect_used, reason = "the closure set it, or the call did not return")]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        self.once.call(true, Location::caller(), |_| {
            let _ = self.value.set(f());
        });
        self.value.get().expect("it was set")
    }

    /// The value.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out.
    pub fn take(&mut self) -> Option<T> {
        self.once.state.store(NEW, Ordering::Relaxed);
        self.value.take()
    }
}

impl<T> Default for OnceLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Self::new, Self::from)
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T> From<T> for OnceLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        let cell = Self::new();
        cell.once.state.store(DONE, Ordering::Relaxed);
        let _ = cell.value.set(value);
        cell
    }
}

/// A value that is made at its first use.
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    make: std::sync::Mutex<Cell<Option<F>>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// A value that the closure will make.
    #[track_caller]
    pub const fn new(make: F) -> Self {
        Self { cell: OnceLock::new(), make: std::sync::Mutex::new(Cell::new(Some(make))) }
    }

    /// Makes the value if there is none.
    #[track_caller]
    #[allow(clippy::panic, reason = "as the standard library does")]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_init(|| {
            let make = this.make.lock().unwrap_or_else(PoisonError::into_inner).take();
            match make {
                Some(make) => make(),
                None => panic!("LazyLock instance has previously been poisoned"),
            }
        })
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cell.fmt(f)
    }
}

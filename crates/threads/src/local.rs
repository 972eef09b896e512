//! Values of which each task has its own, as [`std::thread_local!`] declares them.
//!
//! What a task has of them is dropped as its last steps: a destructor that takes a lock waits for it as any other code, and others may go first.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use crate::locals::Locals;
use crate::world::WORLD;

thread_local! {
    static OUTSIDE: RefCell<Locals> = RefCell::default();
}

/// Asks the values of the task that runs, or those of the thread of the operating system where none does.
fn ask<R>(f: impl FnOnce(&mut Locals) -> R) -> R {
    WORLD.with(|world| {
        let world = &mut *world.borrow_mut();
        let current = usize::from(world.current);
        match world.tasks.get_mut(current).filter(|_| world.active) {
            Some(task) => f(&mut task.locals),
            None => OUTSIDE.with(|outside| f(&mut outside.borrow_mut())),
        }
    })
}

/// Drops what the task that runs has, the last first. Destructors may make others.
pub(crate) fn ends() {
    while let Some(value) = ask(Locals::pop) {
        drop(value);
    }
}

/// The name of a value of which each task has its own.
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

/// The value is not there any more: the task has dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("already destroyed")
    }
}

impl std::error::Error for AccessError {}

impl<T: 'static> LocalKey<T> {
    /// For [`thread_local!`](crate::thread_local).
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// Calls a closure with the task's value, which is made at its first use.
    ///
    /// # Panics
    /// When the task has dropped it.
    #[allow(clippy::expect_used, reason = "as the standard library does")]
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        self.try_with(f)
            .expect("cannot access a Thread Local Storage value during or after destruction: AccessError")
    }

    /// The same.
    ///
    /// # Errors
    /// When the task has dropped it.
    pub fn try_with<F, R>(&'static self, f: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let key = std::ptr::from_ref(self) as usize;
        let value = match ask(|locals| locals.get(key)) {
            Some(value) => value.ok_or(AccessError)?,
            None => {
                let value: Rc<dyn Any> = Rc::new((self.init)());
                ask(|locals| locals.set(key, Rc::clone(&value)));
                value
            }
        };
        let value = value.downcast_ref::<T>().ok_or(AccessError)?;
        Ok(f(value))
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Sets the value.
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// The value.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Takes the value, and leaves the default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Sets the value, and gives the one before.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Calls a closure with the value.
    pub fn with_borrow<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Calls a closure with the value, which it may change.
    pub fn with_borrow_mut<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&mut T) -> R,
    {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets the value.
    pub fn set(&'static self, value: T) {
        self.with(|cell| *cell.borrow_mut() = value);
    }

    /// Takes the value, and leaves the default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Sets the value, and gives the one before.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// Declares values of which each task has its own, as [`std::thread_local!`] does.
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = const $init:block; $($rest:tt)*) => {
        $crate::thread_local!(@one [$(#[$attribute])*] $vis $name $type, $init);
        $crate::thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = const $init:block) => {
        $crate::thread_local!(@one [$(#[$attribute])*] $vis $name $type, $init);
    };
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::thread_local!(@one [$(#[$attribute])*] $vis $name $type, $init);
        $crate::thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = $init:expr) => {
        $crate::thread_local!(@one [$(#[$attribute])*] $vis $name $type, $init);
    };
    (@one [$($attribute:tt)*] $vis:vis $name:ident $type:ty, $init:expr) => {
        $($attribute)*
        $vis static $name: $crate::LocalKey<$type> = $crate::LocalKey::new({
            fn init() -> $type {
                $init
            }
            init
        });
    };
}

//! Atomics, as [`std::sync::atomic`]. All are sequentially consistent, whatever the ordering says: bugs of weak memory are not found here.

use std::fmt;
use std::panic::Location;

pub use std::sync::atomic::Ordering;

use crate::op::{Kind, Place, ResourceKind, Tag};
use crate::step::{came_to, step};

/// A fence: does nothing, for every access is sequentially consistent.
pub fn fence(_: Ordering) {}

/// The same for the compiler.
pub fn compiler_fence(_: Ordering) {}

fn loads<R>(tag: &Tag, at: Place, f: impl Fn() -> R) -> R {
    let loaded = step(Kind::Load, Some((tag, ResourceKind::Atomic)), at, |world, on| {
        world.reads(on);
        f()
    });
    loaded.unwrap_or_else(f)
}

fn changes<R>(kind: Kind, tag: &Tag, at: Place, f: impl Fn() -> R) -> R {
    let changed = step(kind, Some((tag, ResourceKind::Atomic)), at, |world, on| {
        world.writes(on);
        f()
    });
    changed.unwrap_or_else(f)
}

fn exchanges<R>(tag: &Tag, at: Place, f: impl Fn() -> Result<R, R>) -> Result<R, R> {
    let result = step(Kind::Update, Some((tag, ResourceKind::Atomic)), at, |world, on| {
        let result = f();
        match result {
            Ok(_) => world.writes(on),
            Err(_) => world.reads(on),
        }
        result
    });
    if matches!(result, Some(Err(_))) {
        came_to("another value");
    }
    result.unwrap_or_else(f)
}

macro_rules! atomic {
    ($name:ident $(<$param:ident>)?, $value:ty) => {
        /// As the type of the same name in [`std::sync::atomic`].
        pub struct $name $(<$param>)? {
            tag: Tag,
            inner: std::sync::atomic::$name $(<$param>)?,
        }

        impl $(<$param>)? $name $(<$param>)? {
            /// One with this value.
            #[track_caller]
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self { tag: Tag::new(Location::caller(), None), inner: std::sync::atomic::$name::new(value) }
            }

            /// One with this value and a name for reports.
            #[track_caller]
            #[must_use]
            pub const fn named(name: &'static str, value: $value) -> Self {
                Self { tag: Tag::new(Location::caller(), Some(name)), inner: std::sync::atomic::$name::new(value) }
            }

            /// The value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                loads(&self.tag, Location::caller(), || self.inner.load(order))
            }

            /// Sets the value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                changes(Kind::Store, &self.tag, Location::caller(), || self.inner.store(value, order));
            }

            /// Sets the value and gives the one before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                changes(Kind::Update, &self.tag, Location::caller(), || self.inner.swap(value, order))
            }

            /// Sets the value if it is what is expected.
            ///
            /// # Errors
            /// With the value, when it is another.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                exchanges(&self.tag, Location::caller(), || self.inner.compare_exchange(current, new, success, failure))
            }

            /// The same; it does not fail without a reason here.
            ///
            /// # Errors
            /// With the value, when it is another.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                exchanges(&self.tag, Location::caller(), || self.inner.compare_exchange(current, new, success, failure))
            }

            /// Changes the value by a closure, again and again until nobody else has changed it meanwhile.
            ///
            /// # Errors
            /// With the value, when the closure gives none.
            #[track_caller]
            pub fn fetch_update<F>(&self, set: Ordering, fetch: Ordering, mut f: F) -> Result<$value, $value>
            where
                F: FnMut($value) -> Option<$value>,
            {
                let at = Location::caller();
                let mut before = loads(&self.tag, at, || self.inner.load(fetch));
                while let Some(next) = f(before) {
                    match exchanges(&self.tag, at, || self.inner.compare_exchange(before, next, set, fetch)) {
                        Ok(value) => return Ok(value),
                        Err(value) => before = value,
                    }
                }
                Err(before)
            }

            /// The same as [`Self::fetch_update`].
            ///
            /// # Errors
            /// With the value, when the closure gives none.
            #[track_caller]
            pub fn try_update<F>(&self, set: Ordering, fetch: Ordering, f: F) -> Result<$value, $value>
            where
                F: FnMut($value) -> Option<$value>,
            {
                self.fetch_update(set, fetch, f)
            }

            /// Changes the value by a closure, again and again until nobody else has changed it meanwhile, and gives the one before.
            #[track_caller]
            pub fn update<F>(&self, set: Ordering, fetch: Ordering, mut f: F) -> $value
            where
                F: FnMut($value) -> $value,
            {
                self.fetch_update(set, fetch, |value| Some(f(value))).unwrap_or_else(|value| value)
            }

            /// The value, which nobody else can have.
            pub fn get_mut(&mut self) -> &mut $value {
                self.inner.get_mut()
            }

            /// The value.
            pub fn into_inner(self) -> $value {
                self.inner.into_inner()
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl $(<$param>)? From<$value> for $name $(<$param>)? {
            #[track_caller]
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

macro_rules! arithmetic {
    ($name:ident, $value:ty, $($(#[$doc:meta])* $op:ident),+) => {
        impl $name {
            $(
                /// As the method of the same name in [`std::sync::atomic`].
                #[track_caller]
                pub fn $op(&self, value: $value, order: Ordering) -> $value {
                    changes(Kind::Update, &self.tag, Location::caller(), || self.inner.$op(value, order))
                }
            )+
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    };
}

macro_rules! integers {
    ($($name:ident $value:ty),+) => {
        $(
            atomic!($name, $value);
            arithmetic!(
                $name, $value, fetch_add, fetch_sub, fetch_and, fetch_nand, fetch_or, fetch_xor, fetch_max, fetch_min
            );
        )+
    };
}

integers!(
    AtomicU8 u8,
    AtomicU16 u16,
    AtomicU32 u32,
    AtomicU64 u64,
    AtomicUsize usize,
    AtomicI8 i8,
    AtomicI16 i16,
    AtomicI32 i32,
    AtomicI64 i64,
    AtomicIsize isize
);
atomic!(AtomicBool, bool);
arithmetic!(AtomicBool, bool, fetch_and, fetch_nand, fetch_or, fetch_xor);
atomic!(AtomicPtr<T>, *mut T);

impl AtomicBool {
    /// As the method of the same name in [`std::sync::atomic`].
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        changes(Kind::Update, &self.tag, Location::caller(), || self.inner.fetch_not(order))
    }
}

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

//! What tasks share, with the names and signatures of [`std::sync`].

pub mod atomic;
mod barrier;
mod condvar;
pub mod mpsc;
mod mutex;
mod once;
mod rwlock;

pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use once::{LazyLock, Once, OnceLock, OnceState};
#[cfg(feature = "parking_lot")]
pub(crate) use rwlock::RwLockUpgradableReadGuard;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

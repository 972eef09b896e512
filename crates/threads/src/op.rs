//! What a task does next: its operation, the resource that it touches, and the place in the source.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in the source.
pub type Place = &'static Location<'static>;

/// The number of a task in one execution: 0 is the test itself, the others count in the order in which they were spawned.
pub type TaskId = u16;

/// The number of a resource in one execution, in the order of first use.
pub type ResourceId = u32;

/// No resource.
pub const NOWHERE: ResourceId = ResourceId::MAX;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named after the call of the standard library that it stands for")]
#[cfg_attr(not(feature = "parking_lot"), allow(dead_code, reason = "some calls only parking_lot has"))]
pub enum Kind {
    Start,
    Spawn,
    Join,
    IsFinished,
    Lock,
    TryLock,
    Unlock,
    Read,
    ReadRecursive,
    TryRead,
    Unread,
    Write,
    TryWrite,
    Unwrite,
    Downgrade,
    UpgradableRead,
    TryUpgradableRead,
    EndUpgradable,
    Upgrade,
    TryUpgrade,
    Wait,
    Wake,
    WakeOrTimeOut,
    NotifyOne,
    NotifyAll,
    Load,
    Store,
    Update,
    Park,
    ParkOrTimeOut,
    Unpark,
    Yield,
    Sleep,
    Arrive,
    Pass,
    OnceBegin,
    OnceEnd,
    OnceGet,
    OnceWait,
    Send,
    SendTaken,
    TrySend,
    Recv,
    TryRecv,
    RecvOrTimeOut,
    DropSender,
    DropReceiver,
    Poll,
    WakeTask,
}

impl Kind {
    /// The word for people and files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Spawn => "spawn",
            Kind::Join => "join",
            Kind::IsFinished => "is_finished",
            Kind::Lock => "lock",
            Kind::TryLock => "try_lock",
            Kind::Unlock => "unlock",
            Kind::Read => "read",
            Kind::ReadRecursive => "read_recursive",
            Kind::TryRead => "try_read",
            Kind::Unread => "end of read",
            Kind::Write => "write",
            Kind::TryWrite => "try_write",
            Kind::Unwrite => "end of write",
            Kind::Downgrade => "downgrade",
            Kind::UpgradableRead => "upgradable_read",
            Kind::TryUpgradableRead => "try_upgradable_read",
            Kind::EndUpgradable => "end of upgradable_read",
            Kind::Upgrade => "upgrade",
            Kind::TryUpgrade => "try_upgrade",
            Kind::Wait => "wait",
            Kind::Wake => "wake-up",
            Kind::WakeOrTimeOut => "wake-up or timeout",
            Kind::NotifyOne => "notify_one",
            Kind::NotifyAll => "notify_all",
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::Update => "update",
            Kind::Park => "park",
            Kind::ParkOrTimeOut => "park_timeout",
            Kind::Unpark => "unpark",
            Kind::Yield => "yield_now",
            Kind::Sleep => "sleep",
            Kind::Arrive => "arrive",
            Kind::Pass => "pass",
            Kind::OnceBegin => "call_once",
            Kind::OnceEnd => "end of call_once",
            Kind::OnceGet => "get",
            Kind::OnceWait => "wait",
            Kind::Send => "send",
            Kind::SendTaken => "hand over",
            Kind::TrySend => "try_send",
            Kind::Recv => "recv",
            Kind::TryRecv => "try_recv",
            Kind::RecvOrTimeOut => "recv_timeout",
            Kind::DropSender => "drop of a sender",
            Kind::DropReceiver => "drop of the receiver",
            Kind::Poll => "poll",
            Kind::WakeTask => "wake",
        }
    }

    /// Whether a task that is about to do this lets others go first: leaving it is no preemption.
    #[must_use]
    pub fn yields(self) -> bool {
        matches!(
            self,
            Kind::Yield | Kind::Sleep | Kind::WakeOrTimeOut | Kind::ParkOrTimeOut | Kind::RecvOrTimeOut
        )
    }
}

/// An operation that a task has announced.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub(crate) kind: Kind,
    pub(crate) at: Place,
    pub(crate) on: ResourceId,
    /// A number that the operation needs: the task that is joined, the generation of a barrier.
    pub(crate) aux: u32,
}

/// What a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is named after the type of the standard library")]
pub enum ResourceKind {
    Mutex,
    RwLock,
    Condvar,
    Barrier,
    Once,
    Atomic,
    Channel,
    Future,
}

impl ResourceKind {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ResourceKind::Mutex => "Mutex",
            ResourceKind::RwLock => "RwLock",
            ResourceKind::Condvar => "Condvar",
            ResourceKind::Barrier => "Barrier",
            ResourceKind::Once => "Once",
            ResourceKind::Atomic => "atomic",
            ResourceKind::Channel => "channel",
            ResourceKind::Future => "future",
        }
    }
}

/// What a shared object knows of itself: where it was made, its name, and its number in the execution that runs.
#[derive(Debug)]
pub struct Tag {
    /// The execution in the upper half, the number in the lower.
    now: AtomicU64,
    pub(crate) made: Place,
    pub(crate) name: Option<&'static str>,
}

impl Tag {
    pub(crate) const fn new(made: Place, name: Option<&'static str>) -> Self {
        Self { now: AtomicU64::new(0), made, name }
    }

    pub(crate) fn id_in(&self, execution: u32) -> Option<ResourceId> {
        let now = self.now.load(Ordering::Relaxed);
        ((now >> 32) as u32 == execution).then_some(now as u32)
    }

    pub(crate) fn set(&self, execution: u32, id: ResourceId) {
        self.now.store((u64::from(execution) << 32) | u64::from(id), Ordering::Relaxed);
    }
}

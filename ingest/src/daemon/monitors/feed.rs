//! How records come to a monitor: from the threads that parse, past the committer, without ever holding it up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, PoisonError, RwLock};

use demi_monitor::{Interest, Record};

use crate::daemon::metrics::Metrics;
use demi_formats::read::parse::What;

/// What a monitor is told.
pub(crate) enum Told {
    /// Records of a frame, in order.
    Records(Cut),
    /// All frames up to this one were told of, and are in the store; by a reader that began in this turn.
    Committed(u64, Turn),
}

/// How often a monitor has begun: what was read for one that is gone is nothing to the next.
pub(crate) type Turn = u64;

/// Records of a frame, cut down to what an interest needs.
pub(crate) struct Cut {
    pub(crate) lsn: u64,
    pub(crate) interest: Arc<Interest>,
    pub(crate) records: Vec<Record>,
    /// Whether the frame ends with them.
    pub(crate) end: bool,
    /// Whether records before them were dropped.
    pub(crate) lost: bool,
    /// The turn in which their reader began.
    pub(crate) turn: Turn,
}

/// The way to the monitor of one system. The monitor ends when it is gone.
#[derive(Debug)]
pub(crate) struct Feed {
    name: String,
    to: SyncSender<Told>,
    /// The turn in which records were dropped since some were taken, counted from 1; 0 where none were.
    lost: AtomicU64,
    wanted: Arc<Wanted>,
}

/// What a monitor wants of the records to come.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// What records are cut down to.
    interest: RwLock<Arc<Interest>>,
    /// The frames up to here need not be read again: what they say is in the checkpoint.
    safe: AtomicU64,
    /// How often the monitor began again.
    turn: AtomicU64,
}

impl Wanted {
    pub(crate) fn new(interest: Interest, safe: u64) -> Arc<Wanted> {
        Arc::new(Wanted {
            interest: RwLock::new(Arc::new(interest)),
            safe: AtomicU64::new(safe),
            turn: AtomicU64::new(0),
        })
    }

    /// The monitor begins again with what it wrote down up to this frame: frames behind it are read again. The turn in which they are.
    pub(crate) fn begin_again(&self, safe: u64) -> Turn {
        self.set_safe(safe);
        self.turn.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(crate) fn set_interest(&self, interest: Interest) {
        *self.interest.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(interest);
    }

    pub(crate) fn set_safe(&self, lsn: u64) {
        self.safe.store(lsn, Ordering::Release);
    }
}

impl Feed {
    pub(crate) fn new(name: &str, to: SyncSender<Told>, wanted: Arc<Wanted>) -> Feed {
        Feed { name: name.to_owned(), to, lost: AtomicU64::new(0), wanted }
    }

    /// Cuts the records of a chunk down.
    pub(crate) fn cut<'w>(&self, lsn: u64, rows: impl Iterator<Item = &'w What>, end: bool) -> Cut {
        let interest = self.wanted.interest.read().unwrap_or_else(PoisonError::into_inner).clone();
        let records = rows.filter_map(|what| match what {
            What::Event { record, .. } => Some(interest.record(record)),
            _ => None,
        });
        Cut { lsn, records: records.collect(), end, lost: false, interest, turn: 0 }
    }

    /// Hands records on; when the monitor is behind they are dropped and counted.
    pub(crate) fn send(&self, mut cut: Cut, turn: Turn, metrics: &Metrics) {
        cut.turn = turn;
        if cut.records.is_empty() && !cut.end {
            return;
        }
        cut.lost = self.lost.swap(0, Ordering::Relaxed) == turn + 1;
        let count = cut.records.len() as u64;
        if let Err(TrySendError::Full(Told::Records(_))) = self.to.try_send(Told::Records(cut)) {
            self.lost.store(turn + 1, Ordering::Relaxed);
            metrics.monitors.dropped(&self.name, count);
        }
    }

    /// Says that all frames up to this one are in the store. When the monitor is behind it hears of a later one.
    pub(crate) fn committed(&self, lsn: u64, turn: Turn) {
        let _ = self.to.try_send(Told::Committed(lsn, turn));
    }

    /// The turn that the monitor is in.
    pub(crate) fn turn(&self) -> Turn {
        self.wanted.turn.load(Ordering::Acquire)
    }

    /// The frames up to here need not be read again.
    pub(crate) fn safe(&self) -> u64 {
        self.wanted.safe.load(Ordering::Acquire)
    }
}

/// The feeds, by system.
pub(crate) type Feeds = Arc<std::collections::BTreeMap<Arc<str>, Arc<Feed>>>;

//! How records come to a monitor: from the threads that parse, past the committer. New records never hold it up: a monitor that is too far
//! behind does not see them. Records that are read again wait for the monitor, and none is missed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use demi_monitor::{Interest, Record};

use crate::metrics::Metrics;
use demi_formats::Fate;
use demi_formats::read::parse::Row;

/// Bytes of lines on their way to a monitor: chunks take up to five times as much memory.
const MOST_BYTES: usize = 12 << 20;
/// What a record takes besides its bytes.
const RECORD: usize = 64;
/// How long to wait for a monitor before looking whether it is still there.
const PATIENCE: Duration = Duration::from_millis(50);

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
    /// Its share of what may be on its way, until it is taken.
    share: Option<Share>,
}

/// How much is on its way to a monitor.
#[derive(Debug)]
struct Way {
    bytes: Mutex<usize>,
    less: Condvar,
    most: usize,
}

/// Bytes on their way.
struct Share {
    bytes: usize,
    of: Arc<Way>,
}

impl Way {
    fn new(most: usize) -> Arc<Way> {
        Arc::new(Way { bytes: Mutex::new(0), less: Condvar::new(), most })
    }

    /// Takes a share where there is room; else waits as long as `go_on` says.
    fn take(self: &Arc<Way>, bytes: usize, go_on: impl Fn() -> bool) -> Option<Share> {
        let mut now = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        // What is more than all there may be goes alone.
        while *now > 0 && now.saturating_add(bytes) > self.most {
            if !go_on() {
                return None;
            }
            (now, _) = self.less.wait_timeout(now, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        }
        *now += bytes;
        Some(Share { bytes, of: self.clone() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.of.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.of.less.notify_one();
    }
}

/// Whether records wait for a monitor that is behind.
#[derive(Clone, Copy)]
pub(crate) enum Waits<'a> {
    /// They are new: the monitor does not see them.
    Never,
    /// They are read again, and wait until the daemon gives up.
    Until(&'a AtomicBool),
}

/// The way to the monitor of one system. The monitor ends when it is gone.
#[derive(Debug)]
pub(crate) struct Feed {
    name: String,
    to: Sender<Told>,
    way: Arc<Way>,
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
    /// Whether the monitor has ended and is yet to begin again: then everything is read again for it.
    away: AtomicBool,
}

impl Wanted {
    pub(crate) fn new(interest: Interest, safe: u64) -> Arc<Wanted> {
        Arc::new(Wanted {
            interest: RwLock::new(Arc::new(interest)),
            safe: AtomicU64::new(safe),
            turn: AtomicU64::new(0),
            away: AtomicBool::new(false),
        })
    }

    /// The monitor has ended, and will begin again: nothing is kept for it until then.
    pub(crate) fn goes_away(&self) {
        self.away.store(true, Ordering::Release);
    }

    /// The monitor begins again with what it wrote down up to this frame: frames behind it are read again. The turn in which they are.
    pub(crate) fn begin_again(&self, safe: u64) -> Turn {
        self.set_safe(safe);
        let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
        self.away.store(false, Ordering::Release);
        turn
    }

    pub(crate) fn set_interest(&self, interest: Interest) {
        *self.interest.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(interest);
    }

    pub(crate) fn set_safe(&self, lsn: u64) {
        self.safe.store(lsn, Ordering::Release);
    }
}

impl Feed {
    pub(crate) fn new(name: &str, to: Sender<Told>, wanted: Arc<Wanted>) -> Feed {
        Feed::with_room(name, to, wanted, MOST_BYTES)
    }

    fn with_room(name: &str, to: Sender<Told>, wanted: Arc<Wanted>, most: usize) -> Feed {
        Feed { name: name.to_owned(), to, way: Way::new(most), lost: AtomicU64::new(0), wanted }
    }

    /// Cuts the records of a chunk down.
    pub(crate) fn cut<'w>(&self, lsn: u64, rows: impl Iterator<Item = &'w Fate<Row>>, end: bool) -> Cut {
        let interest = self.wanted.interest.read().unwrap_or_else(PoisonError::into_inner).clone();
        let records = rows.filter_map(|fate| match fate {
            Fate::Row(row) => Some(interest.record(&row.record)),
            _ => None,
        });
        Cut { lsn, records: records.collect(), end, lost: false, interest, turn: 0, share: None }
    }

    /// Hands on the records of a chunk of so many bytes. New records that a monitor is too far behind for are dropped and counted.
    pub(crate) fn send(&self, mut cut: Cut, bytes: usize, turn: Turn, waits: Waits<'_>, metrics: &Metrics) {
        cut.turn = turn;
        if cut.records.is_empty() && !cut.end {
            return;
        }
        // Whoever begins again has it read again.
        let is_heard = || !self.wanted.away.load(Ordering::Acquire) && self.turn() == turn;
        if !is_heard() {
            return;
        }
        let go_on = || match waits {
            Waits::Never => false,
            Waits::Until(give_up) => is_heard() && !give_up.load(Ordering::Relaxed),
        };
        let count = cut.records.len();
        cut.share = self.way.take(bytes.saturating_add(count.saturating_mul(RECORD)), go_on);
        if cut.share.is_none() {
            if matches!(waits, Waits::Never) {
                self.lost.store(turn + 1, Ordering::Relaxed);
                metrics.monitors.dropped(&self.name, count as u64);
            }
            return;
        }
        cut.lost = self.lost.swap(0, Ordering::Relaxed) == turn + 1;
        let _ = self.to.send(Told::Records(cut));
    }

    /// Says that all frames up to this one are in the store. When the monitor is behind it hears of a later one.
    pub(crate) fn committed(&self, lsn: u64, turn: Turn) {
        if let Some(share) = self.way.take(RECORD, || false) {
            drop(share);
            let _ = self.to.send(Told::Committed(lsn, turn));
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use demi_monitor::Invariant;

    use super::*;

    fn feed(most: usize) -> (Arc<Feed>, Arc<Wanted>, Receiver<Told>) {
        let file = "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i\"\nholds = \"x > 0\"\n";
        let wanted = Wanted::new(Interest::of(&Invariant::read(file).unwrap()), 0);
        let (to, from) = channel();
        (Arc::new(Feed::with_room("m", to, wanted.clone(), most)), wanted, from)
    }

    fn taken(from: &Receiver<Told>) -> Vec<u64> {
        let told = std::iter::from_fn(|| from.try_recv().ok());
        told.filter_map(|told| match told {
            Told::Records(cut) => Some(cut.lsn),
            Told::Committed(..) => None,
        })
        .collect()
    }

    fn dropped(metrics: &Metrics) -> bool {
        !metrics.text().contains("monitor_dropped_total{monitor=\"m\"} 0\n")
    }

    /// There is room for three at a time.
    #[test]
    fn what_is_read_again_waits_for_the_monitor_and_new_records_do_not() {
        let (feed, _, from) = feed(3 * 100);
        let metrics = Metrics::shared();
        let give_up = AtomicBool::new(false);
        metrics.monitors.dropped("m", 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for lsn in 1..=100 {
                    feed.send(feed.cut(lsn, [].iter(), true), 100, 0, Waits::Until(&give_up), &metrics);
                }
            });
            for lsn in 1..=100 {
                let Told::Records(cut) = from.recv().unwrap() else { continue };
                assert_eq!((cut.lsn, cut.lost), (lsn, false));
            }
        });
        assert!(!dropped(&metrics));
        for lsn in 101..=110 {
            feed.send(feed.cut(lsn, [].iter(), true), 100, 0, Waits::Never, &metrics);
        }
        assert_eq!(taken(&from), [101, 102, 103]);
        // What is larger than all the room goes alone, and the next says that some are missing.
        feed.send(feed.cut(111, [].iter(), true), 1000, 0, Waits::Never, &metrics);
        let Told::Records(cut) = from.try_recv().unwrap() else { return };
        assert_eq!((cut.lsn, cut.lost), (111, true));
    }

    /// Whatever waits ends when the monitor begins again, or the daemon gives up.
    #[test]
    fn nothing_waits_for_a_monitor_that_is_gone() {
        let (feed, wanted, from) = feed(100);
        let metrics = Metrics::shared();
        let give_up = AtomicBool::new(false);
        metrics.monitors.dropped("m", 0);
        let send = |lsn, turn| {
            feed.send(feed.cut(lsn, [].iter(), true), 100, turn, Waits::Until(&give_up), &metrics);
        };
        send(1, 0);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| send(2, 0));
            wanted.goes_away();
            waiting.join().unwrap();
            // None of them is kept for it, and none counts as missed: they are read again.
            feed.send(feed.cut(3, [].iter(), true), 100, 0, Waits::Never, &metrics);
            assert_eq!(wanted.begin_again(0), 1);
            send(3, 0);
            let waiting = scope.spawn(|| send(1, 1));
            give_up.store(true, Ordering::Relaxed);
            waiting.join().unwrap();
        });
        assert_eq!(taken(&from), [1]);
        assert!(!dropped(&metrics));
    }
}

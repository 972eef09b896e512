//! The committer: takes what is durable into the store, once.
//!
//! Every commit to `events` carries the number of the last frame in it (`txn` action `demi-spool/ID`, and one a
//! source), so a frame that is read again after a crash is passed over. Records are known by key besides, whatever
//! a source sends again. After a failure everything is opened anew and read again from the spool.

mod completeness;
mod gauges;
mod parse;
pub(crate) mod progress;
mod retention;
mod session;
mod system;
mod upkeep;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use session::Session;

use super::backoff::Backoff;
use super::codec::CodecError;
use super::config::Keep;
use super::metrics::Metrics;
use super::monitors::{Feed, Feeds, Turn, Waits};
use super::positions::Positions;
use super::reserve::{Reserve, is_full};
use super::tasks::{Task, Tasks};
use crate::spool::{Disk, Reader, Releaser, SpoolError};
use demi_store::fs::FileSystem;
use demi_store::{Store, StoreError};

/// Chunks that are parsed or wait to be taken.
const CHUNKS: usize = 16;
/// Longest time without looking at anything.
const TICK: Duration = Duration::from_millis(500);
/// First and longest pause after a failure. Tests make thousands of them.
const PAUSES: (Duration, Duration) = match cfg!(test) {
    true => (Duration::from_millis(1), Duration::from_millis(20)),
    false => (Duration::from_millis(100), Duration::from_secs(5)),
};

/// How the committer works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The store's folder.
    pub store: PathBuf,
    /// What store and spool are written with.
    pub files: Arc<dyn FileSystem>,
    /// Identity of the spool.
    pub spool: u64,
    /// Folder for temporary data and the checkpoint of positions: the spool's.
    pub scratch: PathBuf,
    /// The systems of the configured sources.
    pub systems: Vec<Arc<str>>,
    /// How long events of systems are kept that are not kept for ever.
    pub keep: BTreeMap<Arc<str>, Keep>,
    /// Longest line that is parsed, in bytes.
    pub max_line_bytes: usize,
    /// Rows after which a commit is made.
    pub seal_rows: u64,
    /// Bytes of lines after which a commit is made.
    pub seal_bytes: u64,
    /// Age of the oldest line after which a commit is made.
    pub seal_after: Duration,
    /// Small files of a partition that are merged when there are so many.
    pub compact_files: usize,
    /// Size below which a file is small, in bytes.
    pub small_file_bytes: u64,
    /// How long files that are no longer part of the tables are kept.
    pub keep_removed: Duration,
    /// Room on the store's disk for commits.
    pub(super) reserve: Arc<Reserve>,
    /// Most actors of a system, each incarnation counted, at which a source brings new ones.
    pub(super) most_actors: MostActors,
    /// The monitors of systems.
    pub(super) feeds: Feeds,
    /// Most bytes of the spool that are kept for monitors alone.
    pub(super) monitor_bytes: u64,
}

/// Most actors of a system at which sources bring new ones.
#[derive(Clone, Debug, Default)]
pub(super) struct MostActors {
    /// Of those that have none of their own.
    pub(super) all: u64,
    /// By source.
    pub(super) by_source: BTreeMap<String, u64>,
}

impl MostActors {
    fn of(&self, source: &str) -> u64 {
        self.by_source.get(source).copied().unwrap_or(self.all)
    }
}

/// Why a stretch of committing ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// A frame cannot be understood.
    #[error("frame {lsn} of the spool")]
    Frame {
        /// Its number.
        lsn: u64,
        /// What is wrong.
        source: CodecError,
    },
    /// The store is not the one that was committed to.
    #[error(
        "{store}: this store ends at frame {committed} of the spool, but frames up to {released} were committed and \
         removed from the spool: is it another store, or an older copy? (where it was restored, tell the spool: demi-lineage ingest restore --store \
         STORE --spool SPOOL)"
    )]
    OtherStore {
        /// Where it is.
        store: String,
        /// Last frame in it.
        committed: u64,
        /// Last frame known to be committed.
        released: u64,
    },
    /// A monitor began again, and wants frames that were read before.
    #[error("a monitor reads again what it has not written down")]
    MonitorAgain,
    /// Events are too old to be kept.
    #[error("events are too old to be kept")]
    Expired,
    /// A thread ended without saying why.
    #[error("the parsing thread ended unexpectedly")]
    ParserLost,
}

/// Locks the systems and commits until the spool is closed and all of it is in the store, or `give_up` is set.
/// Readers and releaser are those of the spool.
///
/// # Errors
/// When a system is locked by another process or the thread cannot be started.
pub(super) fn spawn<D: Disk>(
    settings: Settings,
    new_reader: impl Fn(u64) -> Reader<D> + Send + 'static,
    releaser: Releaser<D>,
    positions: Positions,
    metrics: Arc<Metrics>,
    give_up: Arc<AtomicBool>,
    tasks: Tasks,
) -> Result<JoinHandle<()>, StoreError> {
    let store = Store::create_on(&settings.store, settings.files.clone())?;
    let locks = settings.systems.iter().map(|s| store.lock(s)).collect::<Result<Vec<File>, _>>()?;
    drop(store);
    let thread = thread::Builder::new().name("committer".into()).spawn(move || {
        let _locks = locks;
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let mut positions = positions;
        let mut task = tasks.task("committer");
        while !give_up.load(Ordering::Relaxed) {
            let begin = Instant::now();
            task.runs();
            let run = Run {
                settings: &settings,
                metrics: &metrics,
                releaser: &releaser,
                give_up: &give_up,
                tasks: &tasks,
            };
            let lost = match Task::caught(|| run.session(&new_reader, &mut positions)) {
                Ok(Ok(())) => return,
                Ok(Err(CommitError::MonitorAgain)) => continue,
                Ok(Err(CommitError::Expired)) => match retention::delete(&settings, &metrics) {
                    Ok(()) => continue,
                    Err(error) => run.failed(&error.into()),
                },
                Err(panic) => panic,
                Ok(Err(error @ (CommitError::ParserLost | CommitError::Store(StoreError::WriterLost)))) => {
                    error.to_string()
                }
                Ok(Err(error)) => run.failed(&error),
            };
            // A defect, not a disk that may be well again.
            if !lost.is_empty() {
                match task.failed(&lost) {
                    Some(pause) => thread::sleep(pause),
                    None => return,
                }
                continue;
            }
            thread::sleep(backoff.after(begin.elapsed()));
        }
    });
    thread.map_err(|source| StoreError::Io {
        path: PathBuf::from("committer"),
        action: "start this thread",
        source,
    })
}

/// What monitors were told in a session.
struct ToldOf {
    /// The turns that they are in, by feed.
    turns: Vec<Turn>,
    /// The last frame that was read.
    read: u64,
    /// The frames up to here were there when the session began: monitors may have known them, and miss none.
    there: u64,
}

struct Run<'a, D> {
    settings: &'a Settings,
    metrics: &'a Metrics,
    releaser: &'a Releaser<D>,
    give_up: &'a AtomicBool,
    tasks: &'a Tasks,
}

impl<D: Disk> Run<'_, D> {
    /// Tells of a failure of the store or the disk, which may pass.
    fn failed(&self, error: &CommitError) -> String {
        self.metrics.commit_failures.inc();
        self.metrics.store_failing.set(1);
        let cause = std::error::Error::source(error).map(ToString::to_string);
        let why = cause.as_ref().filter(|cause| !error.to_string().contains(*cause));
        self.tasks
            .note_trouble("store", Some(why.map_or(error.to_string(), |cause| format!("{error}: {cause}"))));
        tracing::error!(%error, cause, "cannot commit; trying again");
        if is_full(error) && self.settings.reserve.give_up() {
            tracing::warn!("the store's disk is full: sources wait until there is room again");
        }
        String::new()
    }

    /// Commits until the end of the spool. `positions` is brought up to date with each commit.
    fn session(
        &self,
        new_reader: &impl Fn(u64) -> Reader<D>,
        positions: &mut Positions,
    ) -> Result<(), CommitError> {
        let from = positions.lsn;
        // They are known before anything is read: whoever begins later reads again.
        let turns = self.turns();
        let (mut session, done) = Session::open(self.settings, self.metrics, self.tasks, positions.clone())?;
        self.metrics.store_failing.set(0);
        self.tasks.note_trouble("store", None);
        self.metrics.committed_lsn.set(i64::try_from(done).unwrap_or(i64::MAX));
        let watched = self.settings.feeds.values().map(|feed| feed.safe()).min().unwrap_or(done);
        let begin = from.min(done).min(watched);
        let reader = new_reader(begin);
        let mut told = ToldOf { turns, read: begin, there: self.releaser.durable() };
        let stop = AtomicBool::new(false);
        let (to, chunks) = sync_channel(CHUNKS);
        let frames = parse::Frames {
            done,
            limit: self.settings.max_line_bytes,
            feeds: &self.settings.feeds,
            tasks: self.tasks,
        };
        thread::scope(|scope| {
            let stop = &stop;
            let parser = scope.spawn(move || parse::read_frames(reader, &frames, &to, stop));
            let result = self.receive(&mut session, &chunks, positions, &mut told);
            stop.store(true, Ordering::Relaxed);
            drop(chunks);
            parser.join().map_err(|_| CommitError::ParserLost)?;
            result
        })
    }

    fn receive(
        &self,
        session: &mut Session<'_>,
        chunks: &std::sync::mpsc::Receiver<parse::Message>,
        positions: &mut Positions,
        told: &mut ToldOf,
    ) -> Result<(), CommitError> {
        let turns = told.turns.clone();
        let turn = |of: &Arc<Feed>| {
            let at = self.settings.feeds.values().position(|feed| Arc::ptr_eq(feed, of));
            at.map_or(0, |at| turns[at])
        };
        let mut upkeep = upkeep::Upkeep::new(self.settings);
        let mut retention = retention::Retention::new();
        let (mut whole, mut idle) = (true, false);
        while !self.give_up.load(Ordering::Relaxed) {
            self.tasks.may_break("committer");
            if self.turns() != turns {
                return Err(CommitError::MonitorAgain);
            }
            let due = session.due_in().is_some_and(|left| left.is_zero());
            if whole && (due || idle && session.is_large()) {
                session.commit()?;
                self.release(session, positions, told)?;
                upkeep.run(session, self.metrics, self.has_room())?;
            }
            if whole && retention.is_due(session, self.settings)? {
                session.commit()?;
                self.release(session, positions, told)?;
                return Err(CommitError::Expired);
            }
            idle = false;
            // A frame is committed whole: between its chunks nothing else is done.
            let wait = if whole { session.due_in().unwrap_or(TICK).min(TICK) } else { TICK };
            match chunks.recv_timeout(wait) {
                Ok(message) => {
                    let mut chunk = message?.recv().map_err(|_| CommitError::ParserLost)?;
                    whole = chunk.end;
                    if whole {
                        told.read = told.read.max(chunk.lsn);
                    }
                    if let (Some(cut), Some(feed)) =
                        (chunk.cut.take(), self.settings.feeds.get(&chunk.origin.system))
                    {
                        let waits = match chunk.lsn <= told.there {
                            true => Waits::Until(self.give_up),
                            false => Waits::Never,
                        };
                        feed.send(cut, chunk.block.bytes().len(), turn(feed), waits, self.metrics);
                    }
                    session.take(&mut chunk)?;
                }
                Err(RecvTimeoutError::Timeout) if whole => {
                    idle = true;
                    if session.settled().is_some() {
                        self.release(session, positions, told)?;
                        if !self.has_room() {
                            upkeep.run(session, self.metrics, false)?;
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    session.commit()?;
                    return self.release(session, positions, told);
                }
            }
        }
        Ok(())
    }

    /// In which turns the monitors are.
    fn turns(&self) -> Vec<Turn> {
        self.settings.feeds.values().map(|feed| feed.turn()).collect()
    }

    /// Whether there is room for the next commit; takes it where it was given up.
    fn has_room(&self) -> bool {
        let reserve = &self.settings.reserve;
        let before = reserve.is_held();
        let now = reserve.take().is_ok();
        if now && !before {
            tracing::info!("there is room on the store's disk again");
        }
        self.metrics.reserve_held.set(i64::from(now));
        now
    }

    /// Saves the positions of what is committed, then removes the segments that hold nothing else.
    fn release(
        &self,
        session: &Session<'_>,
        positions: &mut Positions,
        told: &ToldOf,
    ) -> Result<(), CommitError> {
        let Some(lsn) = session.settled() else { return Ok(()) };
        // Batches of which nothing is stored are done too.
        self.metrics.committed_lsn.set(i64::try_from(lsn).unwrap_or(i64::MAX));
        if positions.lsn < session.positions.lsn {
            *positions = session.positions.clone();
        }
        // What is in the store and was not read again yet, a monitor does not know.
        let read = lsn.min(told.read);
        self.settings.feeds.values().zip(&told.turns).for_each(|(feed, turn)| feed.committed(read, *turn));
        // What a monitor has not written down is read again after a crash, unless that takes too much room.
        let watched = self.settings.feeds.values().map(|feed| feed.safe()).min().unwrap_or(lsn);
        let lsn = if self.releaser.bytes() > self.settings.monitor_bytes { lsn } else { lsn.min(watched) };
        if self.releaser.would_release(lsn) {
            positions.write(self.releaser.disk())?;
            self.releaser.release(lsn)?;
            self.metrics.spool_bytes.set(i64::try_from(self.releaser.bytes()).unwrap_or(i64::MAX));
        }
        Ok(())
    }
}

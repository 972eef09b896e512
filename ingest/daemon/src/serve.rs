//! The daemon as a whole: starting, serving, stopping.

mod error;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use error::ServeError;
use futures::FutureExt;
use tokio::task::JoinHandle;

use super::admin;
use super::batch::Origin;
use super::committer::progress::application;
use super::committer::{self, MostActors, Settings};
use super::config::Config;
use super::intake::Intake;
use super::metrics::Metrics;
use super::monitors::{Carried, Feeds, Monitors};
use super::positions::{LivePositions, Positions};
use super::reserve::Reserve;
use super::shutdown::{Reload, Shutdown};
use super::sources::Context;
use super::sources::budget::Budget;
use super::sources::rate::Rate;
use super::tasks::{GivenUp, Tasks};
use super::{codec, descriptors, incidents, writer};
use crate::spool::{Disk as _, Folder, Options, Spool, SpoolError};
use demi_formats::read::names::real;
use demi_store::Store;
use demi_store::fs::{self, FileSystem, create_dirs};

/// The file in the spool's folder that whoever uses the spool has locked.
pub(super) const LOCK: &str = "lock";
/// How long a stop may take after a task was given up.
const GIVEN_UP: Duration = Duration::from_secs(2);
/// How long the committer is watched before it is said how long it needs.
const MEASURED: Duration = Duration::from_millis(500);
/// Frames that are few enough to be waited for in any case.
const FEW_FRAMES: u64 = 4;

/// What a running daemon tells whoever started it.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// The addresses that sources listen on, by name; `admin` is the admin listener.
    pub addresses: Vec<(String, std::net::SocketAddr)>,
}

/// A daemon that was started.
pub struct Daemon {
    shutdown: Shutdown,
    reload: Reload,
    pub(crate) tasks: Tasks,
    budget: Budget,
    pub(crate) intake: Intake,
    pub(crate) metrics: Arc<Metrics>,
    sources: Vec<JoinHandle<()>>,
    admin: Option<JoinHandle<()>>,
    monitors: Monitors,
    writer: thread::JoinHandle<()>,
    committer: thread::JoinHandle<()>,
    give_up: Arc<AtomicBool>,
    drain: Duration,
    /// How many files a source may have open.
    open_files: usize,
    /// Held until the end: one daemon a spool.
    _lock: std::fs::File,
    started: Started,
}

impl Daemon {
    /// Opens spool and store, takes in what an earlier process left behind, and starts all sources.
    ///
    /// # Errors
    /// When something cannot be opened or listened on. What is in the spool stays there.
    pub async fn start(config: &Config) -> Result<Self, ServeError> {
        Self::start_on(config, fs::os()).await
    }

    /// As [`start`](Self::start), on a file system of the caller's choice.
    pub(crate) async fn start_on(config: &Config, files: Arc<dyn FileSystem>) -> Result<Self, ServeError> {
        let metrics = Metrics::shared();
        config.sources.iter().for_each(|(name, source)| metrics.expect(name, &source.system));
        let opened = {
            let (config, metrics) = (config.clone(), metrics.clone());
            tokio::task::spawn_blocking(move || Opened::open(&config, &metrics, files)).await
        };
        let Opened { spool, disk, saved, live, mut settings, lock, done } =
            opened.map_err(std::io::Error::other)??;
        let (shutdown, reload, give_up) =
            (Shutdown::new(), Reload::default(), Arc::new(AtomicBool::new(false)));
        let tasks = Tasks::new(metrics.clone(), shutdown.clone());
        let live = LivePositions::new(live);
        let (intake, requests) = Intake::new(live.clone(), metrics.clone(), config.redact.clone());
        let to = Carried { intake: &intake, metrics: &metrics, shutdown: &shutdown, tasks: &tasks };
        let monitors = Monitors::start(config, &disk, done, &to);
        let (monitors, feeds) = monitors.map_err(|(name, source)| ServeError::Monitor { name, source })?;
        settings.feeds = feeds;
        let releaser = spool.releaser();
        let readers = spool.readers();
        let writer = writer::Writer {
            positions: live,
            metrics: metrics.clone(),
            stop: shutdown.clone(),
            reserve: settings.reserve.clone(),
            tasks: tasks.clone(),
        };
        let writer = writer.spawn(spool, requests)?;
        let committer = {
            let (metrics, give_up, tasks) = (metrics.clone(), give_up.clone(), tasks.clone());
            let spawned = tokio::task::spawn_blocking(move || {
                committer::spawn(
                    settings,
                    move |after| readers.reader(after),
                    releaser,
                    saved,
                    metrics,
                    give_up,
                    tasks,
                )
            });
            spawned.await.map_err(std::io::Error::other)??
        };
        let mut daemon = Daemon {
            shutdown,
            reload,
            tasks,
            budget: Budget::new(config.limits.requests_bytes),
            intake,
            metrics,
            sources: Vec::new(),
            admin: None,
            monitors,
            writer,
            committer,
            give_up,
            drain: Duration::from_secs(config.daemon.drain_secs),
            open_files: 0,
            _lock: lock,
            started: Started::default(),
        };
        if let Err(error) = daemon.start_sources(config).await {
            daemon.stop().await;
            return Err(error);
        }
        Ok(daemon)
    }

    async fn start_sources(&mut self, config: &Config) -> Result<(), ServeError> {
        let limit = descriptors::raise();
        self.open_files = descriptors::share(limit, config.sources.len());
        tracing::info!(limit, each_source = self.open_files, "files that may be open");
        for (name, source) in &config.sources {
            let context = self.context(config, name, &source.system);
            let running = source.kind.source().start(context.clone()).await;
            let running = running.map_err(|source| ServeError::Source { name: name.clone(), source })?;
            self.started.addresses.extend(running.addresses.iter().map(|a| (name.clone(), *a)));
            let kind = source.kind.clone();
            let again = move || {
                let started = kind.source().start(context.clone());
                async move { started.await.map(|running| running.task) }.boxed()
            };
            let task = self.tasks.task(format!("source {name}")).tend(running.task, again);
            self.sources.push(tokio::spawn(task));
        }
        if let Some(listen) = &config.admin {
            let context = self.context(config, "admin", "admin");
            let running = admin::start(listen, context.clone(), self.monitors.clone()).await;
            let running = running.map_err(|source| ServeError::Admin { source })?;
            self.started.addresses.extend(running.addresses.iter().map(|a| ("admin".to_owned(), *a)));
            let (listen, monitors) = (listen.clone(), self.monitors.clone());
            let again = move || {
                let (listen, context, monitors) = (listen.clone(), context.clone(), monitors.clone());
                async move { admin::start(&listen, context, monitors).await.map(|running| running.task) }
                    .boxed()
            };
            let task = self.tasks.task("admin").tend(running.task, again);
            self.admin = Some(tokio::spawn(task));
        }
        if let Some(incidents) = &config.incidents {
            let wanted = incidents::Wanted {
                config: incidents.clone(),
                models: config.models.clone(),
                receivers: config.receivers.clone(),
                store: config.store.dir.clone(),
            };
            let context = self.context(config, "incidents", "incidents");
            let running = incidents::start(&wanted, context).await;
            let running = running.map_err(|source| ServeError::Incidents { source })?;
            self.started.addresses.extend(running.addresses.iter().map(|a| ("incidents".to_owned(), *a)));
            self.sources.push(running.task);
        }
        Ok(())
    }

    fn context(&self, config: &Config, name: &str, system: &str) -> Context {
        Context {
            origin: Origin { source: Arc::from(name), system: Arc::from(system) },
            intake: self.intake.clone(),
            shutdown: self.shutdown.clone(),
            reload: self.reload.clone(),
            limits: config.limits,
            open_files: self.open_files,
            own: [&config.store.dir, &config.spool.dir].map(|dir| real(dir)).into(),
            metrics: self.metrics.clone(),
            tasks: self.tasks.clone(),
            budget: self.budget.clone(),
            rate: Arc::new(Rate::new(Some(config.limits.bytes_per_sec))),
        }
    }

    /// What it listens on.
    #[must_use]
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// Makes sources read certificates and tokens again, and monitors their invariants.
    pub fn reload(&self) {
        self.monitors.reload();
        self.reload.ask();
    }

    /// Returns when a task failed so often that the daemon cannot go on. Safe to drop and call again.
    pub(super) async fn given_up(&self) -> GivenUp {
        self.tasks.given_up().await
    }

    /// Stops: sources take nothing new, what is on its way becomes durable, and what is spooled is committed as far as
    /// the time for it goes. Says whether all of it was.
    pub async fn stop(self) -> bool {
        let begin = Instant::now();
        self.shutdown.throw();
        // Without a part of itself the daemon gets nothing done that is worth waiting for.
        let drain = if self.tasks.has_given_up() { self.drain.min(GIVEN_UP) } else { self.drain };
        let left = || drain.saturating_sub(begin.elapsed());
        for source in self.sources.into_iter().chain(self.admin) {
            let mut task = source;
            if tokio::time::timeout(left(), &mut task).await.is_err() {
                task.abort();
            }
        }
        drop(self.intake);
        let (writer, committer, give_up) = (self.writer, self.committer, self.give_up);
        // The spool closes when the last intake is gone; then the committer finishes.
        let done = || writer.is_finished() && committer.is_finished();
        let pace = Pace::new(&self.metrics);
        while !done() && !left().is_zero() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if pace.needs(&self.metrics).is_some_and(|needed| needed > left()) {
                tracing::info!("what is not in the store yet stays in the spool: it would take too long");
                break;
            }
        }
        let drained = committer.is_finished();
        self.monitors.stop().await;
        give_up.store(true, Ordering::Relaxed);
        let grace = Instant::now();
        while !committer.is_finished() && grace.elapsed() < Duration::from_secs(2) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drained
    }
}

/// How fast the committer takes what is in the spool.
struct Pace {
    since: Instant,
    /// The last frame and the bytes that it had taken at that time.
    taken: (u64, u64),
}

impl Pace {
    /// From now on.
    fn new(metrics: &Metrics) -> Pace {
        Pace { since: Instant::now(), taken: metrics.taken() }
    }

    /// How long it needs at least for what is left, where that can be said: after a while, and when something was taken since.
    fn needs(&self, metrics: &Metrics) -> Option<Duration> {
        let (elapsed, (frame, bytes)) = (self.since.elapsed(), metrics.taken());
        let left = u64::try_from(metrics.durable_lsn.get()).ok()?.checked_sub(frame)?;
        if elapsed < MEASURED || left < FEW_FRAMES || bytes == self.taken.1 {
            return None;
        }
        // While it is at the first frame, that takes so long at least.
        let done = frame.saturating_sub(self.taken.0).max(1);
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * left as f64 / done as f64).ok()
    }
}

/// Room on the store's disk for commits.
fn reserve(config: &Config, metrics: &Metrics) -> Arc<Reserve> {
    let reserve = Reserve::new(&config.store.dir, config.store.reserve_bytes);
    if let Err(error) = reserve.take() {
        let bytes = config.store.reserve_bytes;
        tracing::warn!(%error, bytes, "there is no room to hold for commits: sources wait until there is");
    }
    metrics.reserve_held.set(i64::from(reserve.is_held()));
    Arc::new(reserve)
}

/// Takes a spool for this process.
pub(super) fn take_lock(spool: &Path) -> Result<std::fs::File, ServeError> {
    let dir = spool.display().to_string();
    let failed = |action| {
        let dir = dir.clone();
        move |source| ServeError::Spool { dir, source: SpoolError::io(LOCK, action)(source) }
    };
    let lock = fs::lock_file(&spool.join(LOCK)).map_err(failed("open this file"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(ServeError::Busy { dir }),
        Err(std::fs::TryLockError::Error(error)) => Err(failed("lock this file")(error)),
    }
}

/// Counts frames that were acknowledged and are gone.
fn lost(metrics: &Metrics, first: u64, last: u64) {
    let lost = i64::try_from(last - first + 1).unwrap_or(i64::MAX);
    metrics.spool_lost_frames.set(metrics.spool_lost_frames.get().saturating_add(lost));
}

/// What is opened before anything runs.
struct Opened {
    spool: Spool<Folder>,
    disk: Folder,
    /// Positions as of the checkpoint.
    saved: Positions,
    /// Positions with those of all frames in the spool.
    live: Positions,
    settings: Settings,
    lock: std::fs::File,
    /// Last frame in the store.
    done: u64,
}

impl Opened {
    fn open(config: &Config, metrics: &Metrics, files: Arc<dyn FileSystem>) -> Result<Self, ServeError> {
        let dir = config.spool.dir.display().to_string();
        let failed = |source| ServeError::Spool { dir: dir.clone(), source };
        let folder = |path: &Path| {
            let path = path.to_owned();
            move |source| ServeError::Folder { path, source }
        };
        let (spool, store) = (&config.spool, &config.store);
        create_dirs(&*files, &spool.dir, spool.mode.bits()).map_err(folder(&spool.dir))?;
        create_dirs(&*files, &store.dir, store.mode.bits()).map_err(folder(&store.dir))?;
        let disk = Folder::create_on(&spool.dir, files.clone()).map_err(folder(&spool.dir))?;
        let lock = take_lock(&spool.dir)?;
        let options =
            Options { segment_bytes: config.spool.segment_bytes, max_bytes: config.spool.max_bytes };
        let (mut spool, found) = Spool::open(disk.clone(), options).map_err(failed)?;
        for damage in &found.damage {
            tracing::error!(
                segment = damage.segment, offset = damage.offset, reason = damage.reason, lost = ?damage.lost,
                "the spool is damaged"
            );
        }
        if found.torn_bytes > 0 || found.void_frames > 0 {
            tracing::info!(
                bytes = found.torn_bytes,
                frames = found.void_frames,
                "cut off what nothing says was acknowledged"
            );
        }
        let saved = Positions::read(&disk).map_err(failed)?;
        let mut live = saved.clone();
        let mut reader = spool.reader(saved.lsn);
        while let Some(frame) = reader.next_frame().map_err(failed)? {
            match codec::decode(frame.body) {
                Ok(batch) => live.apply(frame.lsn, &batch.origin.source, &batch.positions),
                Err(error) => tracing::error!(lsn = frame.lsn, %error, "a frame cannot be read"),
            }
        }
        let store = Store::create_on(&config.store.dir, files.clone())?;
        // Who deletes events looks for them here too.
        store.note_spool(&config.spool.dir)?;
        let done = store.progress(&application(spool.id()))?.unwrap_or(0);
        // Another store may have what this one lacks.
        let stored = done.max(saved.committed);
        if found.begins_after > stored {
            let (first, last) = (stored + 1, found.begins_after);
            tracing::error!(first, last, "frames are neither in the spool nor in the store");
            spool.note_lost(first, last).map_err(failed)?;
            if found.aside.iter().all(|known| known.lost != (first, last)) {
                lost(metrics, first, last);
            }
        }
        for aside in &found.aside {
            let (first, last) = aside.lost;
            if aside.is_new && last <= stored {
                // Nothing of it is lost.
                disk.remove(&aside.name)
                    .map_err(SpoolError::io(&aside.name, "remove this file"))
                    .map_err(failed)?;
                continue;
            }
            let file = &aside.name;
            tracing::error!(
                first,
                last,
                file,
                "frames that were acknowledged cannot be read; what was there is kept"
            );
            lost(metrics, first, last);
        }
        if done > spool.last_lsn() {
            tracing::warn!(
                committed = done,
                spooled = spool.last_lsn(),
                "the spool lost frames that are in the store"
            );
        }
        spool.skip_to(done.max(saved.lsn));
        metrics.spool_bytes.set(i64::try_from(spool.bytes()).unwrap_or(i64::MAX));
        // What an earlier process made durable is so still.
        metrics.durable_lsn.set(i64::try_from(spool.last_lsn()).unwrap_or(i64::MAX));
        tracing::info!(
            spooled = spool.last_lsn(),
            committed = done,
            frames = found.frames,
            bytes = spool.bytes(),
            "spool opened"
        );
        let mut systems: Vec<Arc<str>> =
            config.sources.values().map(|s| Arc::from(s.system.as_str())).collect();
        systems.sort();
        systems.dedup();
        let keep = systems.iter().filter_map(|name| Some((name.clone(), config.keep(name)?))).collect();
        let settings = Settings {
            store: config.store.dir.clone(),
            files,
            spool: spool.id(),
            scratch: config.spool.dir.clone(),
            systems,
            keep,
            max_line_bytes: config.limits.line_bytes,
            seal_rows: config.store.seal_rows,
            seal_bytes: config.store.seal_bytes,
            seal_after: config.seal_after(),
            compact_files: config.store.compact_files,
            small_file_bytes: config.store.small_file_bytes,
            keep_removed: Duration::from_secs(config.store.keep_removed_hours.saturating_mul(3600)),
            reserve: reserve(config, metrics),
            most_actors: MostActors {
                all: config.limits.actors,
                by_source: config
                    .sources
                    .iter()
                    .filter_map(|(name, s)| Some((name.clone(), s.actors?)))
                    .collect(),
            },
            feeds: Feeds::default(),
            monitor_bytes: config.spool.max_bytes / 2,
        };
        Ok(Opened { spool, disk, saved, live, settings, lock, done })
    }
}

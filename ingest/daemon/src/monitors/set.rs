//! All monitors of a daemon: opening, starting, stopping.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_schema::DataType;
use demi_monitor::Interest;
use demi_schemas::EventRecord;
use demi_schemas::event::MONITOR;
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

use super::checkpoint::{Checkpoint, FIRST_INCARNATION, Known};
use super::config::MonitorConfig;
use super::courier::Courier;
use super::courier::SOURCE;
use super::feed::{Feed, Feeds, Wanted};
use super::work::{Desk, Mute, Work, lock};
use crate::batch::Content;
use crate::codec;
use crate::config::Config;
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::spool::{Disk, Options, Spool, SpoolError, identity, inspect};
use crate::tasks::Tasks;
use demi_store::scan::scan;
use demi_store::{Store, StoreError};

/// How long a request waits for a monitor.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a stop waits for what a monitor writes down.
const GRACE: Duration = Duration::from_secs(2);

/// Why a monitor cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// Its invariants, or another file that it names.
    #[error("{0}")]
    File(String),
    /// What it knew cannot be read.
    #[error("what the monitor knew")]
    Checkpoint(#[source] SpoolError),
    /// The violations that it told before cannot be counted.
    #[error("what the monitor told before")]
    Store(#[source] StoreError),
    /// The system.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// The monitors of a daemon at work.
#[derive(Clone, Default)]
pub(crate) struct Monitors {
    all: Arc<BTreeMap<String, Arc<Desk>>>,
    threads: Arc<std::sync::Mutex<Vec<JoinHandle<()>>>>,
}

impl Monitors {
    /// Starts the monitors of a configuration; `done` is the last frame in the store. The tasks that carry alerts end when the intake
    /// takes no more.
    pub(crate) fn start<D: Disk + Clone>(
        config: &Config,
        disk: &D,
        done: u64,
        to: &Carried<'_>,
    ) -> Result<(Monitors, Feeds), (String, MonitorError)> {
        let (mut all, mut feeds, mut threads) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (name, monitor) in &config.monitors {
            let failed = |error| (name.clone(), error);
            let (desk, feed, thread) =
                start(name, monitor, &config.store.dir, disk.clone(), done, to).map_err(failed)?;
            all.insert(name.clone(), desk);
            feeds.insert(Arc::from(monitor.system.as_str()), feed);
            threads.push(thread);
        }
        let threads = Arc::new(std::sync::Mutex::new(threads));
        Ok((Monitors { all: Arc::new(all), threads }, Arc::new(feeds)))
    }

    /// Has the files of invariants read again.
    pub(crate) fn reload(&self) {
        self.all.values().for_each(|desk| desk.reload.store(true, Ordering::Relaxed));
    }

    /// Mutes an invariant or lets it be heard again, and returns when that is written down; whether there is one of this id or name.
    pub(crate) async fn mute(&self, id: &str, muted: bool) -> bool {
        let mut found = false;
        for desk in self.all.values() {
            let (answer, answered) = oneshot::channel();
            lock(&desk.mute).push(Mute { id: id.to_owned(), muted, answer });
            found |= tokio::time::timeout(PATIENCE, answered).await.is_ok_and(|answer| answer == Ok(true));
        }
        found
    }

    /// The invariants as they stood a moment ago, by monitor.
    pub(crate) fn list(&self) -> Value {
        let all = self.all.iter().map(|(name, desk)| {
            let (watching, sample) = lock(&desk.watching).clone();
            (name.clone(), json!({ "sample": sample, "invariants": watching }))
        });
        Value::Object(all.collect())
    }

    /// Waits a little for monitors whose feeds have ended.
    pub(crate) async fn stop(self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        let begin = std::time::Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) && begin.elapsed() < GRACE {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.all.values().for_each(|desk| desk.give_up.store(true, Ordering::Relaxed));
    }
}

/// With what alerts are carried out.
pub(crate) struct Carried<'a> {
    pub(crate) intake: &'a Intake,
    pub(crate) metrics: &'a Arc<Metrics>,
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) tasks: &'a Tasks,
}

type Started = (Arc<Desk>, Arc<Feed>, JoinHandle<()>);

fn start<D: Disk + Clone>(
    name: &str,
    config: &MonitorConfig,
    store: &Path,
    disk: D,
    done: u64,
    with: &Carried<'_>,
) -> Result<Started, MonitorError> {
    let invariants = config.read_invariants().map_err(MonitorError::File)?;
    let known = match Checkpoint::read(&disk, name).map_err(MonitorError::Checkpoint)? {
        Known::Checkpoint(known) if known.system != config.system => {
            Known::Damaged(format!("it is of the system '{}'", known.system))
        }
        known => known,
    };
    let checkpoint = match &known {
        Known::Checkpoint(known) => (**known).clone(),
        Known::Nothing => anew(name, config, store, &disk, done)?,
        Known::Damaged(reason) => {
            let aside = Checkpoint::set_aside(&disk, name).map_err(MonitorError::Checkpoint)?;
            tracing::error!(
                monitor = name,
                reason,
                aside,
                "what the monitor knew cannot be read and was set aside: it begins anew behind what is in the store"
            );
            anew(name, config, store, &disk, done)?
        }
    };
    with.metrics.monitors.begin(name, &invariants, &checkpoint.last_told);
    if matches!(known, Known::Damaged(_)) {
        with.metrics.monitors.begins_anew(name);
    }
    let (to, from) = channel();
    let wanted = Wanted::new(Interest::of(&invariants), checkpoint.lsn);
    let feed = Arc::new(Feed::new(name, to, wanted.clone()));
    let desk = Arc::new(Desk::default());
    let (alerts, carried) = unbounded_channel();
    let courier = Arc::new(Courier {
        name: name.to_owned(),
        config: config.clone(),
        store: store.to_owned(),
        intake: with.intake.clone(),
        desk: desk.clone(),
        metrics: with.metrics.clone(),
        shutdown: with.shutdown.clone(),
        tasks: with.tasks.clone(),
    });
    let carried = Arc::new(tokio::sync::Mutex::new(carried));
    let task = with.tasks.task(format!("alerts of monitor {name}"));
    let first = tokio::spawn(courier.clone().run(carried.clone()));
    let again = move || {
        // What the one before had in hand is told again; what is done twice is known by its id.
        courier.desk.carry_again.store(true, Ordering::Relaxed);
        let running = tokio::spawn(courier.clone().run(carried.clone()));
        async move { Ok::<_, std::convert::Infallible>(running) }.boxed()
    };
    tokio::spawn(task.tend(first, again));
    let work = Work {
        name: name.to_owned(),
        config: config.clone(),
        disk,
        wanted,
        from,
        desk: desk.clone(),
        metrics: with.metrics.clone(),
        alerts,
        checkpoint,
        turn: 0,
        tasks: with.tasks.clone(),
    };
    let thread = thread::Builder::new().name(format!("monitor {name}"));
    let task = with.tasks.task(format!("monitor {name}"));
    let thread = thread.spawn(move || work.keep_running(invariants, task)).map_err(MonitorError::Thread)?;
    Ok((desk, feed, thread))
}

/// A monitor that begins behind what is in the store. What is not in the store yet is watched, also if this process ends before its
/// first commit.
fn anew<D: Disk + Clone>(
    name: &str,
    config: &MonitorConfig,
    store: &Path,
    disk: &D,
    done: u64,
) -> Result<Checkpoint, MonitorError> {
    // Numbers of records are counted from the beginning again: under an incarnation that nobody has used.
    // A store has a runtime of its own, and this is called in one.
    let read = || last_incarnation(store, &config.system);
    let written = thread::scope(|scope| scope.spawn(read).join());
    let ended = |_| MonitorError::Thread(std::io::Error::other("it ended early"));
    let written = written.map_err(ended)?.map_err(MonitorError::Store)?;
    let waiting = waiting_incarnation(disk, &config.system, done).map_err(MonitorError::Checkpoint)?;
    let incarnation = written.max(waiting).map_or(FIRST_INCARNATION, |last| last.saturating_add(1));
    let checkpoint = Checkpoint::new(&config.system, done, incarnation.max(FIRST_INCARNATION));
    checkpoint.write(disk, name).map_err(MonitorError::Checkpoint)?;
    Ok(checkpoint)
}

/// The last incarnation under which violations of a system stand in a store.
fn last_incarnation(store: &Path, system: &str) -> Result<Option<u32>, StoreError> {
    let opened = Store::open(store)?;
    let columns = [("actor", DataType::Utf8), ("incarnation", DataType::Int32)];
    let mut last = None;
    scan(&opened.known_event_files(system)?, &columns, |batch| {
        let (actors, numbers) =
            (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int32Type>());
        let own = (0..batch.num_rows()).filter(|row| actors.value(*row) == MONITOR);
        last = last.max(own.map(|row| numbers.value(row) as u32).max());
        Ok(())
    })?;
    Ok(last)
}

/// The last incarnation under which violations of a system stand in the frames of the spool behind `done`.
fn waiting_incarnation<D: Disk + Clone>(
    disk: &D,
    system: &str,
    done: u64,
) -> Result<Option<u32>, SpoolError> {
    let Some(id) = identity(disk)? else { return Ok(None) };
    let found = inspect(disk, id)?;
    if found.last_lsn <= done {
        return Ok(None);
    }
    let mut reader = Spool::offline(disk.clone(), Options::default(), found).reader(done);
    let mut last = None;
    while let Some(frame) = reader.next_frame()? {
        // What is no batch is told of where it is taken into the store.
        let Ok(batch) = codec::decode(frame.body) else { continue };
        let Content::Items(items) = batch.content else { continue };
        if *batch.origin.system != *system || !batch.origin.source.starts_with(SOURCE) {
            continue;
        }
        let records = items.iter().filter_map(|item| EventRecord::parse(&item.bytes).ok());
        last = last.max(records.map(|record| record.incarnation).max());
    }
    Ok(last)
}

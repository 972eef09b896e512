//! All monitors of a daemon: opening, starting, stopping.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use demi_monitor::Interest;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::oneshot;

use super::checkpoint::Checkpoint;
use super::config::MonitorConfig;
use super::courier::Courier;
use super::feed::{Feed, Feeds, Wanted};
use super::work::{Desk, Mute, Work, lock};
use crate::daemon::config::Config;
use crate::daemon::intake::Intake;
use crate::daemon::metrics::Metrics;
use crate::daemon::shutdown::Shutdown;
use crate::spool::{Disk, SpoolError};

/// Chunks of records that may wait for a monitor: about 1 MiB each where states are large.
const QUEUE: usize = 48;
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
}

type Started = (Arc<Desk>, Arc<Feed>, JoinHandle<()>);

fn start<D: Disk>(
    name: &str,
    config: &MonitorConfig,
    store: &Path,
    disk: D,
    done: u64,
    with: &Carried<'_>,
) -> Result<Started, MonitorError> {
    let invariants = config.read_invariants().map_err(MonitorError::File)?;
    let known = Checkpoint::read(&disk, name).map_err(MonitorError::Checkpoint)?;
    let checkpoint = match known {
        Some(checkpoint) => checkpoint,
        None => {
            // What is not in the store yet is watched, also if this process ends before its first commit.
            let checkpoint = Checkpoint::new(done);
            checkpoint.write(&disk, name).map_err(MonitorError::Checkpoint)?;
            checkpoint
        }
    };
    let (to, from) = sync_channel(QUEUE);
    let wanted = Wanted::new(Interest::of(&invariants), checkpoint.lsn);
    let feed = Arc::new(Feed::new(name, to, wanted.clone()));
    let desk = Arc::new(Desk::default());
    let (alerts, carried) = unbounded_channel();
    let courier = Courier {
        name: name.to_owned(),
        config: config.clone(),
        store: store.to_owned(),
        intake: with.intake.clone(),
        desk: desk.clone(),
        metrics: with.metrics.clone(),
        shutdown: with.shutdown.clone(),
    };
    tokio::spawn(courier.run(carried));
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
    };
    let thread = thread::Builder::new().name(format!("monitor {name}"));
    let thread = thread.spawn(move || work.run(invariants)).map_err(MonitorError::Thread)?;
    Ok((desk, feed, thread))
}

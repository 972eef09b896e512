//! The parts of the service, and what they share.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::FutureExt as _;

use demi_incidents::decide::{Calm, Receiver, Seen, Worker};
use demi_incidents::models::Models;
use demi_incidents::watch::Watch;
use demi_incidents::work::{Setup, Turn, Workshop};
use demi_incidents::{JournalError, retention};

use super::config::{IncidentsConfig, ReceiverConfig, Settings};
use super::shared::Shared;
use super::{tell, web};
use crate::backoff::Backoff;
use crate::batch::Origin;
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::net::security::{ListenConfig, Listener, SecurityError};
use crate::positions::LivePositions;
use crate::shutdown::{Reload, Shutdown};
use crate::sources::budget::Budget;
use crate::sources::rate::Rate;
use crate::sources::web::{Protocols, serve as serve_http};
use crate::sources::{Context, Limits, Running};
use crate::tasks::Tasks;

/// How long it is waited where there is nothing to do.
const PAUSE: Duration = Duration::from_millis(250);
/// Packs of the journal that are written at a time.
const PACKS: usize = 100;
/// How often it is looked how much room incidents take.
const ROOM: Duration = Duration::from_secs(300);
/// First and longest pause after an error.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// An error of starting the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// It cannot listen.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The system says no.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What of the service is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) config: IncidentsConfig,
    pub(crate) models: Models,
    pub(crate) receivers: BTreeMap<String, ReceiverConfig>,
    pub(crate) store: PathBuf,
}

/// Starts the whole service in a daemon.
pub(crate) async fn start(wanted: &Wanted, context: Context) -> Result<Running, ServiceError> {
    let opened = {
        let Wanted { config, models, receivers, store } = wanted.clone();
        tokio::task::spawn_blocking(move || Shared::open(&store, config.settings, models, receivers))
    };
    let shared = Arc::new(opened.await.map_err(std::io::Error::other)??);
    let running = pages(&wanted.config.listen, shared.clone(), context.clone()).await?;
    let again = {
        let (wanted, shared, context) = (wanted.clone(), shared.clone(), context.clone());
        move || {
            let (wanted, shared, context) = (wanted.clone(), shared.clone(), context.clone());
            async move { pages(&wanted.config.listen, shared, context).await.map(|running| running.task) }
                .boxed()
        }
    };
    let served = context.tasks.task("incidents pages").tend(running.task, again);
    let running = Running { task: tokio::spawn(served), ..running };
    let receivers: Vec<Receiver> = wanted
        .receivers
        .iter()
        .map(|(name, config)| Receiver {
            name: name.clone(),
            news: config.events.iter().copied().collect(),
            systems: config.systems.clone(),
        })
        .collect();
    let pause = shared.pause(PAUSE);
    let part = |name: String, begin: Begin| {
        let (name, shutdown, tasks) =
            (format!("incidents {name}"), context.shutdown.clone(), context.tasks.clone());
        let task = tasks.task(name.clone());
        // What panicked begins anew, with what the journal says.
        let kept = move || task.keep(|| keep(&name, (&shutdown, &tasks), pause, begin()));
        thread::Builder::new().name("incidents".to_owned()).spawn(kept)
    };
    let (of_watch, told, metrics) = (shared.clone(), receivers.clone(), context.metrics.clone());
    part("watch".to_owned(), Box::new(move || Box::new(watching(&of_watch, told.clone(), metrics.clone()))))?;
    let of_room = shared.clone();
    part("room".to_owned(), Box::new(move || Box::new(making_room(&of_room))))?;
    for number in 0..wanted.config.settings.at_once {
        let (shared, stop) = (shared.clone(), context.shutdown.clone());
        let setup = setup(wanted, number, receivers.clone())?;
        let begin = move || -> Part { Box::new(working(&shared, setup.clone(), stop.clone())) };
        part(format!("worker {number}"), Box::new(begin))?;
    }
    for (name, config) in &wanted.receivers {
        let told = tell::Telling {
            name: name.clone(),
            config: config.clone(),
            shared: shared.clone(),
            public_url: wanted
                .config
                .settings
                .public_url
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            shutdown: context.shutdown.clone(),
            tasks: context.tasks.clone(),
        };
        let task = context.tasks.task(told.task());
        let telling = tokio::spawn(told.clone().run());
        let again = move || {
            let told = told.clone();
            async move { Ok::<_, Infallible>(tokio::spawn(told.run())) }.boxed()
        };
        tokio::spawn(task.tend(telling, again));
    }
    Ok(running)
}

fn setup(wanted: &Wanted, number: usize, receivers: Vec<Receiver>) -> std::io::Result<Setup> {
    let settings = &wanted.config.settings;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Ok(Setup {
        worker: Worker {
            name: format!("daemon:{}:{number}", std::process::id()),
            lease: settings.lease_secs * 1000,
            settle: settings.settle_secs * 1000,
        },
        models: wanted.models.clone(),
        program: std::env::current_exe()?,
        jobs: (cores / settings.at_once.max(1)).max(1),
        systems: Vec::new(),
        receivers,
    })
}

/// A part of the service: one turn of it, which says whether there may be more to do.
type Part = Box<dyn FnMut() -> Result<bool, String> + Send>;
/// Begins a part.
type Begin = Box<dyn Fn() -> Part + Send>;

/// Runs a part until the daemon stops, with pauses where there is nothing to do, and longer ones after errors.
fn keep(name: &str, (shutdown, tasks): (&Shutdown, &Tasks), idle: Duration, mut run: Part) {
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    let mut failed = false;
    while !shutdown.is_thrown() {
        tasks.may_break(name);
        let pause = match run() {
            Ok(true) => continue,
            Ok(false) => {
                if failed {
                    backoff = Backoff::new(PAUSES.0, PAUSES.1);
                }
                failed = false;
                idle
            }
            Err(error) => {
                failed = true;
                tracing::error!(part = name, error, "a part of the incident service failed; trying again");
                backoff.after(Duration::ZERO)
            }
        };
        let until = std::time::Instant::now() + pause;
        while std::time::Instant::now() < until && !shutdown.is_thrown() {
            thread::sleep(PAUSE.min(pause));
        }
    }
}

/// Opens what comes into the store, and decides what anybody may decide.
fn watching(
    shared: &Shared,
    receivers: Vec<Receiver>,
    metrics: Arc<Metrics>,
) -> impl FnMut() -> Result<bool, String> + Send + use<> {
    let mut told = None;
    let (mut journal, mut watch) = (shared.part("watch"), Watch::of(shared.place.store()));
    let (mut seen, mut calm) = (Seen::default(), Calm::default());
    let began = std::time::Instant::now();
    move || {
        let said = |error: &dyn std::error::Error| error.to_string();
        watch.look(&mut journal).map_err(|e| said(&e))?;
        let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // It claims nothing, so that signs of life are of no use to it.
        seen.look(&journal.state(), now, |_, _| 0);
        let decided =
            journal.commit(|state| calm.housekeeping(state, &seen, &receivers)).map_err(|e| said(&e))?;
        let state = journal.state();
        if told != Some(state.last()) {
            told = Some(state.last());
            metrics.incidents.take(&state);
        }
        Ok(decided.is_some())
    }
}

/// Removes what was made of incidents where it takes too much room.
fn making_room(shared: &Shared) -> impl FnMut() -> Result<bool, String> + Send + use<> {
    let (mut journal, place) = (shared.part("room"), shared.place.clone());
    let most = shared.settings.space_bytes;
    let mut last: Option<std::time::Instant> = None;
    move || {
        // All files are looked at.
        if last.is_none_or(|at| at.elapsed() >= ROOM) {
            last = Some(std::time::Instant::now());
            let gone = retention::sweep(&mut journal, &place, most).map_err(|error| error.to_string())?;
            if gone > 0 {
                tracing::info!(incidents = gone, "files of incidents were removed to make room");
            }
            // An older program left each entry by itself.
            while journal.pack(PACKS).map_err(|error| error.to_string())? > 0 {}
        }
        Ok(false)
    }
}

fn working(
    shared: &Shared,
    setup: Setup,
    stop: Shutdown,
) -> impl FnMut() -> Result<bool, String> + Send + use<> {
    let mut shop = Workshop::new(shared.part(&setup.worker.name), shared.place.clone(), setup);
    move || {
        let turn = shop.turn(&|| !stop.is_thrown()).map_err(|e| e.to_string())?;
        if let Turn::Worked(id) = turn
            && let Some(incident) = shop.state().incidents().get(&id)
        {
            let (work, result) = incident.work().words();
            tracing::info!(incident = id.to_string(), work, result, "an incident was worked on");
        }
        Ok(turn != Turn::Idle)
    }
}

/// Serves the pages of a store.
async fn pages(
    listen: &ListenConfig,
    shared: Arc<Shared>,
    context: Context,
) -> Result<Running, ServiceError> {
    let listener = Listener::bind(listen, &context.reload, &[]).await?;
    let addresses = vec![listener.address()];
    let encrypted = listen.tls_cert.is_some();
    let router = web::router(shared, listener.tokens(), context.shutdown.clone(), encrypted);
    let task = tokio::spawn(serve_http(listener, context, router, Protocols::HTTP1));
    Ok(Running { addresses, task })
}

/// Serves the pages of a store without a daemon, until it is interrupted; `ready` is told the address. Bugs may be replayed on these models.
///
/// # Errors
/// When it cannot listen, or the journal cannot be read.
pub fn serve(
    listen: &ListenConfig,
    settings: Settings,
    models: Models,
    store: &Path,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServiceError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let shared = Arc::new(Shared::open(store, settings, models, BTreeMap::new())?);
    runtime.block_on(async {
        let shutdown = Shutdown::new();
        let metrics = Metrics::shared();
        let limits = Limits::default();
        let (intake, _requests) = Intake::new(LivePositions::new(Default::default()), metrics.clone(), None);
        let context = Context {
            origin: Origin { source: Arc::from("incidents"), system: Arc::from("incidents") },
            intake,
            shutdown: shutdown.clone(),
            reload: Reload::default(),
            limits,
            open_files: 0,
            own: Arc::from([]),
            tasks: Tasks::new(metrics.clone(), shutdown.clone()),
            metrics,
            budget: Budget::new(limits.requests_bytes),
            rate: Arc::new(Rate::new(None)),
        };
        let running = pages(listen, shared, context).await?;
        if let Some(address) = running.addresses.first() {
            ready(*address);
        }
        let mut task = running.task;
        tokio::select! {
            _ = &mut task => {}
            _ = tokio::signal::ctrl_c() => {
                shutdown.throw();
                let _ = task.await;
            }
        }
        Ok(())
    })
}

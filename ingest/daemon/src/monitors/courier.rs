//! What becomes of an alert: a record in the store, a post, an execution.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use demi_schemas::event::MONITOR;
use demi_schemas::{EventRecord, Kind};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::checkpoint::{Alert, Stage, Told};
use super::config::MonitorConfig;
use super::work::{Desk, lock};
use super::{follow_up, webhook};
use crate::batch::{Batch, Content, Item, Origin, Refusal};
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;
use crate::tasks::Tasks;

/// With what the names of the sources of violations begin.
pub(crate) const SOURCE: &str = "monitors.";
/// Pause after the spool was full.
const PAUSE: Duration = Duration::from_secs(1);

/// Carries the alerts of one monitor out, one after the other.
pub(crate) struct Courier {
    pub(crate) name: String,
    pub(crate) config: MonitorConfig,
    pub(crate) store: PathBuf,
    pub(crate) intake: Intake,
    pub(crate) desk: Arc<Desk>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shutdown: Shutdown,
    pub(crate) tasks: Tasks,
}

/// Alerts on their way to be carried out.
pub(crate) type Alerts = Arc<tokio::sync::Mutex<UnboundedReceiver<Alert>>>;

impl Courier {
    /// Works until no more alerts come, or the daemon takes no more records.
    ///
    /// # Panics
    /// When a part of it has panicked: it is to be started again as a whole.
    pub(crate) async fn run(self: Arc<Self>, alerts: Alerts) {
        let courier = self;
        let mut alerts = alerts.lock().await;
        // A receiver that is away, or a long search, holds up no record.
        let (to_post, posts) = unbounded_channel();
        let (to_build, builds) = unbounded_channel();
        // They end with it.
        let mut parts = JoinSet::new();
        parts.spawn(courier.clone().post_all(posts));
        parts.spawn(courier.clone().build_all(builds));
        // What is not done when the daemon stops is done at its next start.
        loop {
            let next = tokio::select! {
                next = courier.shutdown.unless(alerts.recv()) => next.flatten(),
                Some(ended) = parts.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        std::panic::resume_unwind(error.into_panic());
                    }
                    continue;
                }
            };
            let Some(mut alert) = next else { break };
            courier.tasks.may_break(&format!("alerts of {}", courier.name));
            let Told { name, id, first, more, .. } = &alert.violation;
            let (event, of, more) = (&first.event, &first.of, more.len());
            tracing::warn!(
                monitor = courier.name,
                invariant = name,
                event,
                of,
                more,
                id,
                "an invariant is broken"
            );
            if alert.done.recorded.is_none() {
                let Some(Some(lsn)) = courier.shutdown.unless(courier.record(&alert)).await else { break };
                courier.done(&mut alert, Stage::Recorded(lsn));
            }
            let _ = to_post.send(alert.clone());
            let _ = to_build.send(alert);
        }
        drop((to_post, to_build));
        let rest = async { while parts.join_next().await.is_some() {} };
        let _ = courier.shutdown.unless(rest).await;
    }

    fn done(&self, alert: &mut Alert, stage: Stage) {
        alert.done.set(&stage);
        lock(&self.desk.done).push((alert.place(), stage));
    }

    /// Brings the record of a violation into the spool, for as long as it takes; the number of its frame, or nothing if the daemon stops.
    async fn record(&self, alert: &Alert) -> Option<u64> {
        let bytes = line(alert);
        loop {
            let item = Item { offset: alert.seq, line: 0, bytes: bytes.clone().into(), rejected: None };
            let batch = Batch {
                origin: Origin {
                    source: Arc::from(format!("{SOURCE}{}", self.name)),
                    system: Arc::from(self.config.system.as_str()),
                },
                stream: Arc::from(format!("{SOURCE}{}", self.name)),
                content: Content::Items(vec![item]),
                positions: Vec::new(),
            };
            match self.intake.submit(batch, Duration::MAX).await {
                Ok(ack) => return Some(ack.lsn),
                Err(Refusal::Full) => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    tracing::info!(monitor = self.name, %error, "a violation is recorded at the next start");
                    return None;
                }
            }
        }
    }

    async fn post_all(self: Arc<Self>, mut alerts: UnboundedReceiver<Alert>) {
        while let Some(mut alert) = alerts.recv().await {
            if alert.done.posted {
                continue;
            }
            self.tasks.may_break(&format!("posts of {}", self.name));
            let id = &alert.violation.id;
            let failed = |reason: &str| {
                self.metrics.monitors.post_failed(&self.name);
                tracing::warn!(monitor = self.name, id, reason, "an alert was not taken; trying again");
            };
            webhook::post(&self.config, &alert.violation, failed).await;
            self.done(&mut alert, Stage::Posted);
        }
    }

    /// Builds executions one at a time. One that failed is tried again later, and holds up no other.
    async fn build_all(self: Arc<Self>, mut alerts: UnboundedReceiver<Alert>) {
        // By when it is due, and its place: what is tried again.
        let mut again: BTreeMap<(Instant, (u32, u64)), Alert> = BTreeMap::new();
        loop {
            let due = again.first_key_value().map(|(key, _)| key.0);
            let wait = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let alert = tokio::select! {
                biased;
                () = wait => again.pop_first().map(|(_, alert)| alert),
                alert = alerts.recv() => match alert {
                    Some(alert) => Some(alert),
                    // What is left is tried again at the next start.
                    None => return,
                },
            };
            let Some(mut alert) = alert else { continue };
            if !self.config.build {
                self.done(&mut alert, Stage::Built);
            } else if !alert.done.built && self.build(&mut alert).await {
                let due = Instant::now() + follow_up::pause(alert.done.attempts);
                again.insert((due, alert.place()), alert);
            }
        }
    }

    /// Builds an execution; whether to try again.
    async fn build(&self, alert: &mut Alert) -> bool {
        follow_up::committed(&self.metrics, alert.done.recorded.unwrap_or(0)).await;
        let id = alert.violation.id.clone();
        let result = follow_up::run(&self.config, &self.store, &alert.violation).await;
        let Err(reason) = result else {
            tracing::info!(monitor = self.name, id, "the execution is built");
            self.done(alert, Stage::Built);
            return false;
        };
        self.metrics.monitors.build_failed(&self.name);
        self.done(alert, Stage::BuildFailed(reason.clone()));
        let attempts = alert.done.attempts;
        if attempts < follow_up::ATTEMPTS {
            tracing::warn!(monitor = self.name, id, attempts, reason, "no execution was built; trying again");
            return true;
        }
        tracing::error!(monitor = self.name, id, attempts, reason, "no execution was built; it is given up");
        self.metrics.monitors.build_given_up(&self.name);
        follow_up::give_up(&self.store, &alert.violation, &reason);
        self.done(alert, Stage::Built);
        false
    }
}

/// The record of violations: the same bytes whenever it is made.
fn line(alert: &Alert) -> Vec<u8> {
    let told = &alert.violation;
    let mut record = EventRecord::new(MONITOR, alert.seq, Kind::Violation);
    record.incarnation = alert.incarnation;
    let affected: BTreeSet<&String> = told.groups().flat_map(|group| &group.affected).collect();
    let mut fields = json!({
        "fingerprints": told.groups().map(|group| &group.fingerprint).collect::<Vec<_>>(),
        "affected": affected,
        "invariant": told.invariant,
        "holds": told.holds,
        "of": told.first.of,
        "event": told.first.event,
        "monitor": told.monitor,
        "id": told.id,
        "told_at": told.first.told_at,
    });
    if !told.more.is_empty() {
        let more = told.more.iter().map(|group| json!({ "of": group.of, "event": group.event }));
        fields["more"] = more.collect();
    }
    record.fields = Some(fields);
    serde_json::to_vec(&record).unwrap_or_default()
}

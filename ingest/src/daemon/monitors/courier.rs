//! What becomes of an alert: a record in the store, a post, an execution.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use demi_schemas::event::MONITOR;
use demi_schemas::{EventRecord, Kind};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::checkpoint::{Alert, Stage, Told};
use super::config::MonitorConfig;
use super::work::{Desk, lock};
use super::{follow_up, webhook};
use crate::daemon::batch::{Batch, Content, Item, Origin, Outcome, Refusal};
use crate::daemon::intake::Intake;
use crate::daemon::metrics::Metrics;
use crate::daemon::shutdown::Shutdown;

/// The incarnation of [`MONITOR`] under which the daemon writes; logs that tell violations of their own have the first.
const INCARNATION: u32 = 1;
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
}

impl Courier {
    /// Works until no more alerts come, or the daemon takes no more records.
    pub(crate) async fn run(self, mut alerts: UnboundedReceiver<Alert>) {
        let courier = Arc::new(self);
        // A receiver that is away, or a long search, holds up no record.
        let (to_post, posts) = unbounded_channel();
        let (to_build, builds) = unbounded_channel();
        let poster = tokio::spawn(courier.clone().post_all(posts));
        let builder = tokio::spawn(courier.clone().build_all(builds));
        // What is not done when the daemon stops is done at its next start.
        while let Some(Some(mut alert)) = courier.shutdown.unless(alerts.recv()).await {
            let Told { name, event, of, id, .. } = &alert.violation;
            tracing::warn!(monitor = courier.name, invariant = name, event, of, id, "an invariant is broken");
            if alert.done.recorded.is_none() {
                let Some(Some(lsn)) = courier.shutdown.unless(courier.record(&alert)).await else { break };
                courier.done(&mut alert, Stage::Recorded(lsn));
            }
            let _ = to_post.send(alert.clone());
            let _ = to_build.send(alert);
        }
        drop((to_post, to_build));
        let (stop, stop_building) = (poster.abort_handle(), builder.abort_handle());
        let rest = async { tokio::join!(poster, builder) };
        if courier.shutdown.unless(rest).await.is_none() {
            stop.abort();
            stop_building.abort();
        }
    }

    fn done(&self, alert: &mut Alert, stage: Stage) {
        alert.done.set(stage);
        lock(&self.desk.done).push((alert.seq, stage));
    }

    /// Brings the record of a violation into the spool, for as long as it takes; the number of its frame, or nothing if the daemon stops.
    async fn record(&self, alert: &Alert) -> Option<u64> {
        let bytes = line(alert);
        loop {
            let outcome = Outcome::Record(bytes.clone().into());
            let batch = Batch {
                origin: Origin {
                    source: Arc::from(format!("monitors.{}", self.name)),
                    system: Arc::from(self.config.system.as_str()),
                },
                stream: Arc::from(format!("monitors.{}", self.name)),
                content: Content::Items(vec![Item { offset: alert.seq, line: 0, outcome }]),
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
            let id = &alert.violation.id;
            let failed = |reason: &str| {
                self.metrics.monitors.post_failed(&self.name);
                tracing::warn!(monitor = self.name, id, reason, "an alert was not taken; trying again");
            };
            webhook::post(&self.config, &alert.violation, failed).await;
            self.done(&mut alert, Stage::Posted);
        }
    }

    async fn build_all(self: Arc<Self>, mut alerts: UnboundedReceiver<Alert>) {
        while let Some(mut alert) = alerts.recv().await {
            if self.config.build && !alert.done.built {
                follow_up::committed(&self.metrics, alert.done.recorded.unwrap_or(0)).await;
                let id = &alert.violation.id;
                match follow_up::run(&self.config, &self.store, &alert.violation).await {
                    Ok(()) => tracing::info!(monitor = self.name, id, "the execution is built"),
                    Err(reason) => tracing::error!(monitor = self.name, id, reason, "no execution was built"),
                }
            }
            self.done(&mut alert, Stage::Built);
        }
    }
}

/// The record of a violation: the same bytes whenever it is made.
fn line(alert: &Alert) -> Vec<u8> {
    let told = &alert.violation;
    let mut record = EventRecord::new(MONITOR, alert.seq, Kind::Violation);
    record.incarnation = INCARNATION;
    record.fields = Some(json!({
        "fingerprints": [told.fingerprint],
        "affected": told.affected,
        "invariant": told.invariant,
        "holds": told.holds,
        "of": told.of,
        "event": told.event,
        "monitor": told.monitor,
        "id": told.id,
    }));
    serde_json::to_vec(&record).unwrap_or_default()
}

//! What the daemon counts, for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use demi_formats::REASONS;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::batch::{Ack, Batch, Refusal};
use super::incidents::IncidentFigures;
use super::monitors::Figures;
use super::process::Process;

/// With what all names begin but those of the process.
const PREFIX: &str = "demi";

/// Label of what is counted by source.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct SourceLabel {
    /// Name in the configuration.
    pub source: String,
}

/// Label of what is counted by system.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct SystemLabel {
    /// The system.
    pub system: String,
}

/// Label of what was turned away.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ReasonLabel {
    /// A short, stable word.
    pub reason: String,
}

/// Labels of a source's refusals.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RefusedLabels {
    /// Name in the configuration.
    pub source: String,
    /// A short, stable word.
    pub reason: String,
}

/// Label of what is counted by task.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct TaskLabel {
    /// The task.
    pub task: String,
}

/// Labels of an actor's gaps.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ActorLabels {
    /// The system.
    pub system: String,
    /// The actor.
    pub actor: String,
}

/// The daemon's metrics. All are registered in one registry, which [`Metrics::text`] writes out.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// What has no prefix.
    unprefixed: Registry,
    process: Process,
    /// Lines and records that became durable, by source.
    pub events_received: Family<SourceLabel, Counter>,
    /// Bytes that became durable, by source.
    pub received_bytes: Family<SourceLabel, Counter>,
    /// Batches and connections refused, by source and reason.
    pub refused: Family<RefusedLabels, Counter>,
    /// Connections open, by source.
    pub connections: Family<SourceLabel, Gauge>,
    /// Files being followed, by source.
    pub files: Family<SourceLabel, Gauge>,
    /// Events committed to the store, by system.
    pub events_written: Family<SystemLabel, Counter>,
    /// Records that were there already, by system.
    pub events_duplicate: Family<SystemLabel, Counter>,
    /// Events that are stamped earlier than the event before them in their actor's log, by system.
    pub backward_stamps: Family<SystemLabel, Counter>,
    /// Events that were deleted since they were too old, by system.
    pub events_expired: Family<SystemLabel, Counter>,
    /// Lines put in quarantine, by reason.
    pub events_rejected: Family<ReasonLabel, Counter>,
    /// Missing positions between the first and the last of each actor.
    pub sequence_gaps: Family<ActorLabels, Gauge>,
    /// The last frame and the bytes of lines that the committer took: not told, but looked at when the daemon stops.
    taken: [AtomicU64; 2],
    /// Actors that are known, each incarnation counted, by system.
    pub actors: Family<SystemLabel, Gauge>,
    /// Recent sends whose receive was not seen, by system.
    pub unmatched_sends: Family<SystemLabel, Gauge>,
    /// Recent receives whose send was not seen, by system.
    pub orphan_receives: Family<SystemLabel, Gauge>,
    /// Bytes of the spool's segments.
    pub spool_bytes: Gauge,
    /// 1 while the spool cannot be written.
    pub spool_failing: Gauge,
    /// Acknowledged frames that could not be read; what was there is kept in files.
    pub spool_lost_frames: Gauge,
    /// 1 while room is held on the store's disk for commits.
    pub reserve_held: Gauge,
    /// Last durable batch.
    pub durable_lsn: Gauge,
    /// Last batch in the store.
    pub committed_lsn: Gauge,
    /// Commits to the store.
    pub commits: Counter,
    /// Commits that failed and were tried again.
    pub commit_failures: Counter,
    /// 1 while the store cannot be written.
    pub store_failing: Gauge,
    /// Data files merged into larger ones.
    pub compacted_files: Counter,
    /// Seconds from a commit's begin to its end.
    pub commit_seconds: Histogram,
    /// Seconds to write and sync a group of batches.
    pub sync_seconds: Histogram,
    /// Times that a task panicked or ended before its time.
    pub task_failures: Family<TaskLabel, Counter>,
    /// What monitors count.
    pub monitors: Figures,
    /// What is counted of incidents.
    pub incidents: IncidentFigures,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut m = Metrics {
            registry: Registry::with_prefix(PREFIX),
            unprefixed: Registry::default(),
            process: Process::default(),
            events_received: Family::default(),
            received_bytes: Family::default(),
            refused: Family::default(),
            connections: Family::default(),
            files: Family::default(),
            events_written: Family::default(),
            events_duplicate: Family::default(),
            backward_stamps: Family::default(),
            events_expired: Family::default(),
            events_rejected: Family::default(),
            sequence_gaps: Family::default(),
            taken: Default::default(),
            actors: Family::default(),
            unmatched_sends: Family::default(),
            orphan_receives: Family::default(),
            spool_bytes: Gauge::default(),
            spool_failing: Gauge::default(),
            spool_lost_frames: Gauge::default(),
            reserve_held: Gauge::default(),
            durable_lsn: Gauge::default(),
            committed_lsn: Gauge::default(),
            commits: Counter::<u64, AtomicU64>::default(),
            commit_failures: Counter::default(),
            store_failing: Gauge::default(),
            compacted_files: Counter::default(),
            commit_seconds: Histogram::new(exponential_buckets(0.01, 2.0, 12)),
            sync_seconds: Histogram::new(exponential_buckets(0.0005, 2.0, 12)),
            task_failures: Family::default(),
            monitors: Figures::default(),
            incidents: IncidentFigures::default(),
        };
        m.register();
        m
    }
}

impl Metrics {
    fn register(&mut self) {
        self.process.register(&mut self.unprefixed);
        let r = &mut self.registry;
        r.register("build", "What this is", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        r.register("events_received", "Lines and records that became durable", self.events_received.clone());
        r.register_with_unit(
            "received",
            "Bytes that became durable",
            Unit::Bytes,
            self.received_bytes.clone(),
        );
        r.register("refused", "Batches and connections refused", self.refused.clone());
        r.register("connections", "Connections open", self.connections.clone());
        r.register("files", "Files being followed", self.files.clone());
        r.register("events_written", "Events committed to the store", self.events_written.clone());
        r.register("events_duplicate", "Records that were there already", self.events_duplicate.clone());
        r.register(
            "backward_stamps",
            "Events stamped earlier than the event before them in their actor's log",
            self.backward_stamps.clone(),
        );
        r.register("events_expired", "Events deleted as too old", self.events_expired.clone());
        r.register("events_rejected", "Lines put in quarantine", self.events_rejected.clone());
        r.register("sequence_gaps", "Missing positions of an actor", self.sequence_gaps.clone());
        r.register("actors", "Actors that are known, each incarnation counted", self.actors.clone());
        r.register("unmatched_sends", "Recent sends without a receive", self.unmatched_sends.clone());
        r.register("orphan_receives", "Recent receives without a send", self.orphan_receives.clone());
        r.register("spool_bytes", "Bytes of the spool", self.spool_bytes.clone());
        r.register("spool_failing", "1 while the spool cannot be written", self.spool_failing.clone());
        r.register(
            "spool_lost_frames",
            "Acknowledged frames that cannot be read",
            self.spool_lost_frames.clone(),
        );
        r.register("reserve_held", "1 while room is held for commits", self.reserve_held.clone());
        r.register("durable_lsn", "Last durable batch", self.durable_lsn.clone());
        r.register("committed_lsn", "Last batch in the store", self.committed_lsn.clone());
        r.register("commits", "Commits to the store", self.commits.clone());
        r.register("commit_failures", "Commits that failed", self.commit_failures.clone());
        r.register("store_failing", "1 while the store cannot be written", self.store_failing.clone());
        r.register("compacted_files", "Data files merged into larger ones", self.compacted_files.clone());
        r.register_with_unit("commit", "Time of a commit", Unit::Seconds, self.commit_seconds.clone());
        r.register("task_failures", "Times that a task panicked or ended early", self.task_failures.clone());
        self.monitors.register(r);
        self.incidents.register(r);
        r.register_with_unit("spool_sync", "Time of a group write", Unit::Seconds, self.sync_seconds.clone());
    }

    /// New metrics, to be shared.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        Arc::new(Metrics::default())
    }

    /// Makes the series of a source that brings events of a system, at 0: a counter that begins with its first event has no rate then.
    pub(super) fn expect(&self, name: &str, system: &str) {
        let label = SourceLabel { source: name.to_owned() };
        drop(self.events_received.get_or_create(&label));
        drop(self.received_bytes.get_or_create(&label));
        for reason in ["full", "too_large", "closed"] {
            let labels = RefusedLabels { source: name.to_owned(), reason: reason.to_owned() };
            drop(self.refused.get_or_create(&labels));
        }
        for reason in REASONS {
            drop(self.events_rejected.get_or_create(&ReasonLabel { reason: reason.to_owned() }));
        }
        let system = SystemLabel { system: system.to_owned() };
        for counter in
            [&self.events_written, &self.events_duplicate, &self.backward_stamps, &self.events_expired]
        {
            drop(counter.get_or_create(&system));
        }
    }

    /// All metrics in the OpenMetrics text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.process.read();
        // Writing to a string does not fail.
        let _ = text::encode_registry(&mut out, &self.unprefixed);
        let _ = text::encode(&mut out, &self.registry);
        out
    }

    /// Counts a batch or connection that was not taken.
    pub fn count_refused(&self, source: &str, reason: &str) {
        let labels = RefusedLabels { source: source.to_owned(), reason: reason.to_owned() };
        self.refused.get_or_create(&labels).inc();
    }

    /// Takes note that the committer took some lines, and with them a frame if it is whole.
    pub(super) fn took(&self, frame: Option<u64>, bytes: usize) {
        let [last, sum] = &self.taken;
        sum.fetch_add(bytes as u64, Ordering::Relaxed);
        last.fetch_max(frame.unwrap_or(0), Ordering::Relaxed);
    }

    /// The last frame that the committer took, and how many bytes of lines since the start.
    pub(super) fn taken(&self) -> (u64, u64) {
        let [last, sum] = &self.taken;
        (last.load(Ordering::Relaxed), sum.load(Ordering::Relaxed))
    }

    pub(super) fn submitted(&self, batch: &Batch, result: &Result<Ack, Refusal>) {
        let source = &batch.origin.source;
        match result {
            Ok(ack) => {
                self.durable_lsn.set(i64::try_from(ack.lsn).unwrap_or(i64::MAX).max(self.durable_lsn.get()));
                let label = SourceLabel { source: source.to_string() };
                self.events_received.get_or_create(&label).inc_by(batch.content.count());
                self.received_bytes.get_or_create(&label).inc_by(batch.content.len() as u64);
            }
            Err(Refusal::Full) => self.count_refused(source, "full"),
            Err(Refusal::TooLarge { .. }) => self.count_refused(source, "too_large"),
            Err(Refusal::Closed) => self.count_refused(source, "closed"),
        }
    }
}

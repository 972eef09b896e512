//! What is counted of incidents, for `/metrics`.

use std::collections::BTreeMap;

use demi_incidents::event::{Reason, Stage};
use demi_incidents::fold::Sent;
use demi_incidents::{State, Work};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The state of the work on an incident.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct WorkLabel {
    /// A word, as in docs/incidents.md.
    pub state: &'static str,
}

/// Why work failed.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct FailureLabel {
    /// A word, as in docs/incidents.md.
    pub reason: &'static str,
}

/// What people have said about a bug.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct BugLabel {
    /// A word.
    pub status: &'static str,
}

/// How far messages to a receiver came.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
pub struct DeliveryLabel {
    /// Name in the configuration.
    pub receiver: String,
    /// `queued`, `sending`, `sent` or `dead`.
    pub result: &'static str,
}

/// The metrics of incidents, which say how they stand now.
#[derive(Clone, Debug, Default)]
pub struct IncidentFigures {
    /// Incidents by the state of their work.
    pub work: Family<WorkLabel, Gauge>,
    /// Incidents that failed, by reason.
    pub failures: Family<FailureLabel, Gauge>,
    /// Bugs by status.
    pub bugs: Family<BugLabel, Gauge>,
    /// Messages by receiver, and how far they came.
    pub deliveries: Family<DeliveryLabel, Gauge>,
    /// Entries of the journal.
    pub entries: Gauge,
}

impl IncidentFigures {
    /// Names them.
    pub(crate) fn register(&self, r: &mut Registry) {
        r.register("incident_work", "Incidents by the state of the work on them", self.work.clone());
        r.register(
            "incident_failures",
            "Incidents whose last attempt failed, by reason",
            self.failures.clone(),
        );
        r.register("incident_bugs", "Bugs by status", self.bugs.clone());
        r.register(
            "incident_deliveries",
            "Messages by receiver and how far they came",
            self.deliveries.clone(),
        );
        r.register("incident_journal_entries", "Entries of the journal of incidents", self.entries.clone());
    }

    /// Takes over what the journal comes to.
    pub(super) fn take(&self, state: &State) {
        // All that there may be are there from the start on, at 0: a rule that looks for growth sees the first of anything.
        let stages = Stage::ALL.iter().map(|stage| stage.word());
        let states = ["waiting", "done", "failed", "parked", "gone", "purged"].into_iter().chain(stages);
        let mut work: BTreeMap<WorkLabel, i64> = states.map(|state| (WorkLabel { state }, 0)).collect();
        let reasons = Reason::ALL.iter().map(|reason| (FailureLabel { reason: reason.word() }, 0));
        let mut failures: BTreeMap<FailureLabel, i64> = reasons.collect();
        for incident in state.incidents().values() {
            let (word, reason) = incident.work().words();
            *work.entry(WorkLabel { state: word }).or_default() += 1;
            if let Work::Failed { .. } = incident.work() {
                *failures.entry(FailureLabel { reason }).or_default() += 1;
            }
        }
        let status = ["new", "acknowledged", "resolved", "regressed", "merged"];
        let mut bugs: BTreeMap<BugLabel, i64> = status.map(|status| (BugLabel { status }, 0)).into();
        for bug in state.bugs().values() {
            *bugs.entry(BugLabel { status: bug.status().word() }).or_default() += 1;
        }
        let mut deliveries: BTreeMap<DeliveryLabel, i64> = BTreeMap::new();
        for delivery in state.deliveries().values() {
            let result = match delivery.sent {
                Sent::Queued => "queued",
                Sent::Sending => "sending",
                Sent::Sent => "sent",
                Sent::Dead(_) => "dead",
            };
            let receiver = &delivery.receiver;
            for result in ["queued", "sending", "sent", "dead"] {
                deliveries.entry(DeliveryLabel { receiver: receiver.clone(), result }).or_default();
            }
            let receiver = receiver.clone();
            *deliveries.entry(DeliveryLabel { receiver, result }).or_default() += 1;
        }
        set(&self.work, work);
        set(&self.failures, failures);
        set(&self.bugs, bugs);
        set(&self.deliveries, deliveries);
        self.entries.set(i64::try_from(state.last()).unwrap_or(i64::MAX));
    }
}

/// Sets what was counted.
fn set<L>(family: &Family<L, Gauge>, counts: BTreeMap<L, i64>)
where
    L: Clone + std::hash::Hash + Eq,
{
    for (label, count) in counts {
        family.get_or_create(&label).set(count);
    }
}

//! What the committer tells the metrics.

use std::time::Instant;

use super::session::Session;
use crate::metrics::{ActorLabels, ReasonLabel, SystemLabel};

impl Session<'_> {
    /// Counts a commit that began then.
    pub(super) fn count(&mut self, begin: Instant) {
        let m = self.metrics;
        m.commits.inc();
        m.commit_seconds.observe(begin.elapsed().as_secs_f64());
        for system in &mut self.systems {
            let label = SystemLabel { system: system.known.system.clone() };
            let counts = std::mem::take(&mut system.counts);
            m.events_written.get_or_create(&label).inc_by(counts.written);
            m.events_duplicate.get_or_create(&label).inc_by(counts.duplicates);
            m.backward_stamps.get_or_create(&label).inc_by(counts.backward_stamps);
            for (reason, n) in std::mem::take(&mut system.known.quarantine.added) {
                m.events_rejected.get_or_create(&ReasonLabel { reason }).inc_by(n);
            }
        }
    }

    /// Sets the gauges of all systems.
    pub(super) fn gauges(&self) {
        for system in &self.systems {
            let label = SystemLabel { system: system.known.system.clone() };
            let (sends, receives) = system.pairs.counts();
            self.metrics.unmatched_sends.get_or_create(&label).set(sends as i64);
            self.metrics.orphan_receives.get_or_create(&label).set(receives as i64);
            self.metrics.actors.get_or_create(&label).set(system.known.seen.incarnations() as i64);
            for (actor, missing) in system.gaps() {
                let labels = ActorLabels { system: system.known.system.clone(), actor: actor.to_owned() };
                self.metrics.sequence_gaps.get_or_create(&labels).set(missing as i64);
            }
        }
    }
}

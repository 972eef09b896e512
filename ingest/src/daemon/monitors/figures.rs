//! What monitors count, for `/metrics`.

use std::sync::atomic::AtomicU64;

use demi_monitor::{Counts, Watching};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Label of what is counted by monitor.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct MonitorLabel {
    /// Name in the configuration.
    pub monitor: String,
}

/// Labels of what is counted by invariant.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct InvariantLabels {
    /// Name in the configuration.
    pub monitor: String,
    /// The invariant's id.
    pub invariant: String,
}

/// The metrics of monitors.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Looks at an invariant.
    pub checks: Family<InvariantLabels, Gauge>,
    /// Failures that were told.
    pub failures: Family<InvariantLabels, Counter>,
    /// 1 where an invariant cannot be checked any more: its values do not compare.
    pub unchecked: Family<InvariantLabels, Gauge>,
    /// Share of the states that are looked at.
    pub sample: Family<MonitorLabel, Gauge<f64, AtomicU64>>,
    /// Records that wait for others.
    pub held: Family<MonitorLabel, Gauge>,
    /// Rows of histories.
    pub kept: Family<MonitorLabel, Gauge>,
    /// How often an actor became uncertain.
    pub uncertain: Family<MonitorLabel, Gauge>,
    /// Records that were dropped because the monitor was behind.
    pub dropped: Family<MonitorLabel, Counter>,
    /// Posts that failed and were tried again.
    pub posts_failed: Family<MonitorLabel, Counter>,
}

impl Figures {
    pub(crate) fn register(&self, r: &mut Registry) {
        r.register("invariant_checks", "Looks at an invariant", self.checks.clone());
        r.register("invariant_failures", "Failures of an invariant", self.failures.clone());
        r.register("invariant_unchecked", "1 where values do not compare", self.unchecked.clone());
        r.register("invariant_sample", "Share of states that are looked at", self.sample.clone());
        r.register("monitor_held_records", "Records that wait for others", self.held.clone());
        r.register("monitor_history_rows", "Rows of histories", self.kept.clone());
        r.register("monitor_uncertain", "How often an actor became uncertain", self.uncertain.clone());
        r.register("monitor_dropped", "Records that a monitor did not see", self.dropped.clone());
        r.register("monitor_posts_failed", "Posts that failed", self.posts_failed.clone());
    }

    pub(crate) fn show(&self, monitor: &str, watching: &[Watching], counts: Counts, sample: f64) {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let label = MonitorLabel { monitor: monitor.to_owned() };
        self.sample.get_or_create(&label).set(sample);
        self.held.get_or_create(&label).set(number(counts.held as u64));
        self.kept.get_or_create(&label).set(number(counts.kept as u64));
        self.uncertain.get_or_create(&label).set(number(counts.uncertain));
        for known in watching {
            let labels = InvariantLabels { monitor: monitor.to_owned(), invariant: known.id.clone() };
            self.checks.get_or_create(&labels).set(number(known.checks));
            self.unchecked.get_or_create(&labels).set(i64::from(known.unjudged.is_some()));
        }
    }

    /// Forgets the invariants of a monitor that are not watched any more. What failed stays counted.
    pub(crate) fn keep(&self, monitor: &str, before: &[Watching], now: &[Watching]) {
        for gone in before.iter().filter(|old| now.iter().all(|new| new.id != old.id)) {
            let labels = InvariantLabels { monitor: monitor.to_owned(), invariant: gone.id.clone() };
            self.checks.remove(&labels);
            self.unchecked.remove(&labels);
        }
    }

    pub(crate) fn failed(&self, monitor: &str, invariant: &str) {
        let labels = InvariantLabels { monitor: monitor.to_owned(), invariant: invariant.to_owned() };
        self.failures.get_or_create(&labels).inc();
    }

    pub(crate) fn dropped(&self, monitor: &str, records: u64) {
        self.dropped.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc_by(records);
    }

    pub(crate) fn post_failed(&self, monitor: &str) {
        self.posts_failed.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_watched_any_more_is_forgotten() {
        let mut registry = Registry::default();
        let figures = Figures::default();
        figures.register(&mut registry);
        let watching = |id: &str| Watching {
            id: id.to_owned(),
            name: id.to_owned(),
            holds: "x > 0".to_owned(),
            muted: false,
            failing: None,
            checks: 7,
            failures: 0,
            last_failure: None,
            never_told: Vec::new(),
            unjudged: None,
        };
        let (before, now) = ([watching("old"), watching("both")], [watching("both"), watching("new")]);
        figures.show("m", &before, Counts::default(), 1.0);
        figures.failed("m", "old");
        figures.keep("m", &before, &now);
        figures.show("m", &now, Counts::default(), 1.0);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let has =
            |name: &str, id: &str| text.contains(&format!("{name}{{monitor=\"m\",invariant=\"{id}\"}} "));
        assert!(!has("invariant_checks", "old") && !has("invariant_unchecked", "old"), "{text}");
        assert!(has("invariant_checks", "both") && has("invariant_checks", "new"), "{text}");
        assert!(has("invariant_failures_total", "old"), "{text}");
    }
}

//! What monitors count, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use demi_monitor::{Counts, Invariant, InvariantStatus};
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

/// The metrics of monitors. All of a monitor are there from its start on, at 0 where nothing was counted: a rule that looks for growth
/// sees the first of anything.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Looks at an invariant.
    pub checks: Family<InvariantLabels, Gauge>,
    /// Failures that were told.
    pub failures: Family<InvariantLabels, Counter>,
    /// When a failure was last told, in seconds since 1970; 0 before the first.
    pub last_failure: Family<InvariantLabels, Gauge>,
    /// Rows and groups that fail now.
    pub failing: Family<InvariantLabels, Gauge>,
    /// Rows and groups that cannot be judged now: their values do not compare.
    pub unjudged: Family<InvariantLabels, Gauge>,
    /// Share of the states that are looked at.
    pub sample: Family<MonitorLabel, Gauge<f64, AtomicU64>>,
    /// Records that wait for others.
    pub held: Family<MonitorLabel, Gauge>,
    /// Rows of histories.
    pub kept: Family<MonitorLabel, Gauge>,
    /// How often an actor became uncertain.
    pub uncertain: Family<MonitorLabel, Gauge>,
    /// Rows and groups that failed and were not told, because there were too many.
    pub untold: Family<MonitorLabel, Gauge>,
    /// Actors that are known.
    pub actors: Family<MonitorLabel, Gauge>,
    /// How often an actor was forgotten because there were too many.
    pub forgotten: Family<MonitorLabel, Gauge>,
    /// Alerts that were recorded and not posted, and violations that were not told, because too many wait.
    pub shed: Family<MonitorLabel, Counter>,
    /// Records that were dropped because the monitor was behind.
    pub dropped: Family<MonitorLabel, Counter>,
    /// Posts that failed and were tried again.
    pub posts_failed: Family<MonitorLabel, Counter>,
    /// Executions that could not be built, each time.
    pub builds_failed: Family<MonitorLabel, Counter>,
    /// Executions that were given up.
    pub builds_given_up: Family<MonitorLabel, Counter>,
    /// 1 while what the monitor knows cannot be written down.
    pub stuck: Family<MonitorLabel, Gauge>,
    /// 1 where the monitor began anew, because what it knew could not be read.
    pub began_anew: Family<MonitorLabel, Gauge>,
}

impl Figures {
    pub(crate) fn register(&self, r: &mut Registry) {
        r.register("invariant_checks", "Looks at an invariant", self.checks.clone());
        r.register("invariant_failures", "Failures of an invariant", self.failures.clone());
        r.register(
            "invariant_last_failure_timestamp_seconds",
            "When a failure was last told, in seconds since 1970",
            self.last_failure.clone(),
        );
        r.register("invariant_failing", "Rows and groups that fail now", self.failing.clone());
        r.register(
            "invariant_unjudged",
            "Rows and groups whose values do not compare",
            self.unjudged.clone(),
        );
        r.register("invariant_sample", "Share of states that are looked at", self.sample.clone());
        r.register("monitor_held_records", "Records that wait for others", self.held.clone());
        r.register("monitor_history_rows", "Rows of histories", self.kept.clone());
        r.register("monitor_uncertain", "How often an actor became uncertain", self.uncertain.clone());
        r.register("monitor_untold", "Failures that there was no room for", self.untold.clone());
        r.register("monitor_actors", "Actors that a monitor knows", self.actors.clone());
        r.register("monitor_forgotten_actors", "How often an actor was forgotten", self.forgotten.clone());
        r.register("monitor_alerts_shed", "Alerts that were only recorded, or not told", self.shed.clone());
        r.register("monitor_dropped", "Records that a monitor did not see", self.dropped.clone());
        r.register("monitor_posts_failed", "Posts that failed", self.posts_failed.clone());
        r.register("monitor_builds_failed", "Executions that could not be built", self.builds_failed.clone());
        r.register("monitor_builds_given_up", "Executions that were given up", self.builds_given_up.clone());
        r.register("monitor_stuck", "1 while a monitor cannot write down what it knows", self.stuck.clone());
        r.register("monitor_began_anew", "1 where a monitor lost what it knew", self.began_anew.clone());
    }

    /// Makes all series of a monitor; `last_told` says when invariants were last told, in seconds since 1970.
    pub(crate) fn begin(&self, monitor: &str, invariants: &[Invariant], last_told: &BTreeMap<String, u64>) {
        let label = MonitorLabel { monitor: monitor.to_owned() };
        let gauges = [&self.held, &self.kept, &self.uncertain, &self.untold, &self.stuck, &self.began_anew];
        for gauge in gauges.into_iter().chain([&self.actors, &self.forgotten]) {
            drop(gauge.get_or_create(&label));
        }
        drop(self.sample.get_or_create(&label));
        let counters = [&self.dropped, &self.posts_failed, &self.builds_failed, &self.builds_given_up];
        for counter in counters.into_iter().chain([&self.shed]) {
            drop(counter.get_or_create(&label));
        }
        for invariant in invariants {
            let labels = labels(monitor, &invariant.id);
            for gauge in [&self.checks, &self.failing, &self.unjudged] {
                drop(gauge.get_or_create(&labels));
            }
            drop(self.failures.get_or_create(&labels));
            let last = last_told.get(&invariant.id).copied().unwrap_or(0);
            self.last_failure.get_or_create(&labels).set(number(last));
        }
    }

    /// Counts an alert that is only recorded, or violations that are not told.
    pub(crate) fn shed(&self, monitor: &str, count: u64) {
        self.shed.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc_by(count);
    }

    pub(crate) fn show(&self, monitor: &str, watching: &[InvariantStatus], counts: Counts, sample: f64) {
        let label = MonitorLabel { monitor: monitor.to_owned() };
        self.sample.get_or_create(&label).set(sample);
        self.held.get_or_create(&label).set(number(counts.held as u64));
        self.kept.get_or_create(&label).set(number(counts.kept as u64));
        self.uncertain.get_or_create(&label).set(number(counts.uncertain));
        self.untold.get_or_create(&label).set(number(counts.untold));
        self.actors.get_or_create(&label).set(number(counts.actors as u64));
        self.forgotten.get_or_create(&label).set(number(counts.forgotten));
        for known in watching {
            let labels = labels(monitor, &known.id);
            self.checks.get_or_create(&labels).set(number(known.checks));
            self.failing.get_or_create(&labels).set(number(known.failing_groups as u64));
            self.unjudged.get_or_create(&labels).set(number(known.unjudged_groups as u64));
        }
    }

    /// Forgets the invariants of a monitor that are not watched any more. What failed stays counted.
    pub(crate) fn keep(&self, monitor: &str, before: &[InvariantStatus], now: &[InvariantStatus]) {
        for gone in before.iter().filter(|old| now.iter().all(|new| new.id != old.id)) {
            let labels = labels(monitor, &gone.id);
            for gauge in [&self.checks, &self.failing, &self.unjudged] {
                gauge.remove(&labels);
            }
        }
    }

    /// Failures of an invariant are told, at a time in seconds since 1970.
    pub(crate) fn failed(&self, monitor: &str, invariant: &str, count: u64, at: u64) {
        let labels = labels(monitor, invariant);
        self.failures.get_or_create(&labels).inc_by(count);
        self.last_failure.get_or_create(&labels).set(number(at));
    }

    pub(crate) fn dropped(&self, monitor: &str, records: u64) {
        self.dropped.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc_by(records);
    }

    pub(crate) fn post_failed(&self, monitor: &str) {
        self.posts_failed.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc();
    }

    pub(crate) fn build_failed(&self, monitor: &str) {
        self.builds_failed.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc();
    }

    pub(crate) fn build_given_up(&self, monitor: &str) {
        self.builds_given_up.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).inc();
    }

    pub(crate) fn is_stuck(&self, monitor: &str, stuck: bool) {
        self.stuck.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).set(i64::from(stuck));
    }

    pub(crate) fn begins_anew(&self, monitor: &str) {
        self.began_anew.get_or_create(&MonitorLabel { monitor: monitor.to_owned() }).set(1);
    }
}

fn labels(monitor: &str, invariant: &str) -> InvariantLabels {
    InvariantLabels { monitor: monitor.to_owned(), invariant: invariant.to_owned() }
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_watched_any_more_is_forgotten() {
        let mut registry = Registry::default();
        let figures = Figures::default();
        figures.register(&mut registry);
        let watching = |id: &str| InvariantStatus {
            id: id.to_owned(),
            name: id.to_owned(),
            holds: "x > 0".to_owned(),
            muted: false,
            failing: Vec::new(),
            failing_groups: 0,
            checks: 7,
            failures: 0,
            last_failure: None,
            never_told: Vec::new(),
            unjudged: BTreeMap::new(),
            unjudged_groups: 0,
        };
        let (before, now) = ([watching("old"), watching("both")], [watching("both"), watching("new")]);
        figures.show("m", &before, Counts::default(), 1.0);
        figures.failed("m", "old", 1, 7);
        figures.keep("m", &before, &now);
        figures.show("m", &now, Counts::default(), 1.0);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let has =
            |name: &str, id: &str| text.contains(&format!("{name}{{monitor=\"m\",invariant=\"{id}\"}} "));
        assert!(!has("invariant_checks", "old") && !has("invariant_unjudged", "old"), "{text}");
        assert!(has("invariant_checks", "both") && has("invariant_checks", "new"), "{text}");
        assert!(has("invariant_failures_total", "old"), "{text}");
    }

    /// A rule that looks for growth sees the first failure only where there was a 0 before it.
    #[test]
    fn all_series_of_a_monitor_are_there_before_anything_happens() {
        let mut registry = Registry::default();
        let figures = Figures::default();
        figures.register(&mut registry);
        let file = "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"i\"\nholds = \"x > 0\"\n";
        figures.begin("m", &Invariant::read(file).unwrap(), &BTreeMap::new());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for name in [
            "invariant_checks",
            "invariant_failing",
            "invariant_failures_total",
            "invariant_last_failure_timestamp_seconds",
            "invariant_unjudged",
        ] {
            assert!(text.contains(&format!("{name}{{monitor=\"m\",invariant=\"i\"}} 0\n")), "{name}: {text}");
        }
        for name in [
            "held_records",
            "history_rows",
            "uncertain",
            "untold",
            "dropped_total",
            "posts_failed_total",
            "builds_failed_total",
            "builds_given_up_total",
            "stuck",
            "began_anew",
            "actors",
            "forgotten_actors",
            "alerts_shed_total",
        ] {
            assert!(text.contains(&format!("monitor_{name}{{monitor=\"m\"}} 0\n")), "{name}: {text}");
        }
    }
}

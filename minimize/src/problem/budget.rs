//! How much work may be done: seconds, replays or states, and whether somebody asked to stop.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A limit on the work of one minimization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// Wall-clock time. Results may depend on the machine's speed.
    Seconds(f64),
    /// Schedules tested. Results do not depend on the machine.
    Replays(u64),
    /// Configurations visited, one a delivery executed. Results do not depend on the machine.
    States(u64),
}

/// Largest number of a budget; beyond it a duration cannot be counted.
const MOST: f64 = 1e12;

impl FromStr for Budget {
    type Err = String;

    /// Reads `60s`, `2m`, `500ms`, `20000r` (replays), or `5000000states`.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "'{text}' is no budget: expected seconds (60s), minutes (2m), replays (20000r), or states (5000000states)"
            )
        };
        let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(at);
        let value: f64 = number.parse().map_err(|_| bad())?;
        if !value.is_finite() {
            return Err(bad());
        }
        if value <= 0.0 {
            return Err(format!("'{text}' leaves no room for any work: a budget is more than 0"));
        }
        if value > MOST {
            return Err(format!("'{text}' never ends: a budget is at most {MOST:e} of its unit"));
        }
        match unit {
            "s" | "" => Ok(Budget::Seconds(value)),
            "ms" => Ok(Budget::Seconds(value / 1000.0)),
            "m" => Ok(Budget::Seconds(value * 60.0)),
            "r" | "replays" => Ok(Budget::Replays(value.ceil() as u64)),
            "states" => Ok(Budget::States(value.ceil() as u64)),
            _ => Err(bad()),
        }
    }
}

/// Set from outside, for instance by Ctrl-C, to end the work with the best result so far.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Asks for the end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No pass makes it smaller.
    Fixpoint,
    /// The budget is used up.
    Budget,
    /// Somebody asked.
    Interrupted,
}

impl Ended {
    /// The word used in summaries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Ended::Fixpoint => "fixpoint",
            Ended::Budget => "budget",
            Ended::Interrupted => "interrupted",
        }
    }
}

/// Deliveries that a budget of replays allows exhaustive searches for each of them: as many as a long schedule has. A
/// search makes deliveries without a replay; when it may make no more the work goes on without searches.
const PER_REPLAY: u64 = 2_000;

/// The running account of one engine.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Schedules tested.
    pub replays: u64,
    /// Deliveries executed.
    pub executed: u64,
    max_replays: u64,
    max_executed: u64,
    max_searched: u64,
    /// When it begins and when it must end.
    time: Option<(Instant, Instant)>,
    stop: StopFlag,
}

impl Meter {
    /// A share of a budget, counted from now.
    #[must_use]
    pub fn new(budget: Budget, stop: StopFlag) -> Self {
        let (mut max_replays, mut max_executed, mut max_searched) = (u64::MAX, u64::MAX, u64::MAX);
        let mut time = None;
        match budget {
            Budget::Seconds(s) => {
                let now = Instant::now();
                time = Some((now, now + Duration::from_secs_f64(s.min(1e9))));
            }
            Budget::Replays(n) => (max_replays, max_searched) = (n, n.saturating_mul(PER_REPLAY)),
            Budget::States(n) => (max_executed, max_searched) = (n, n),
        }
        Meter { replays: 0, executed: 0, max_replays, max_executed, max_searched, time, stop }
    }

    /// Ends the work after so many more deliveries, if it does not end before.
    pub fn at_most(&mut self, more: u64) {
        self.max_executed = self.max_executed.min(self.executed.saturating_add(more));
    }

    /// Deliveries that searches may still execute.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.max_searched.saturating_sub(self.executed)
    }

    /// Whether a part of the seconds there are has gone, or somebody asked to stop: what only prepares the work ends then.
    #[must_use]
    pub fn gone(&self, part: f64) -> bool {
        let late = |(began, end): (Instant, Instant)| began.elapsed() >= (end - began).mul_f64(part);
        self.stop.is_set() || self.time.is_some_and(late)
    }

    /// Whether the seconds have gone, or somebody asked to stop. Where work is counted and not timed this costs nothing, so that it can be
    /// asked before each step, which may be slow.
    #[must_use]
    pub fn late(&self) -> bool {
        self.time.is_some_and(|(_, end)| self.stop.is_set() || Instant::now() >= end)
    }

    /// Why the work must end now, if it must.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        if self.stop.is_set() {
            Some(Ended::Interrupted)
        } else if self.replays >= self.max_replays
            || self.executed >= self.max_executed
            || self.time.is_some_and(|(_, end)| Instant::now() >= end)
        {
            Some(Ended::Budget)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_of_budget_ends_the_work() {
        let meter = |budget| Meter::new(budget, StopFlag::default());
        let mut replays = meter(Budget::Replays(2));
        let mut states = meter(Budget::States(5));
        for (work, ended) in [(1, false), (2, true)] {
            (replays.replays, states.executed) = (work, 3 * work);
            assert_eq!((replays.ended().is_some(), states.ended().is_some()), (ended, ended));
        }
        assert_eq!(meter(Budget::Seconds(0.0)).ended(), Some(Ended::Budget));
        let mut searches = meter(Budget::Replays(2));
        searches.executed = 2 * PER_REPLAY - 1;
        assert_eq!((searches.ended(), searches.left()), (None, 1));
        searches.executed += 1;
        assert_eq!((searches.ended(), searches.left()), (None, 0));
    }

    #[test]
    fn budgets_are_read() {
        assert_eq!("60s".parse(), Ok(Budget::Seconds(60.0)));
        assert_eq!("2m".parse(), Ok(Budget::Seconds(120.0)));
        assert_eq!("5000r".parse(), Ok(Budget::Replays(5000)));
        assert_eq!("70states".parse(), Ok(Budget::States(70)));
        for bad in ["", "x", "-3s", "3h", "NaNs"] {
            assert!(bad.parse::<Budget>().is_err(), "{bad}");
        }
    }
}

//! How much work may be done: seconds, replays or states, and whether somebody asked to stop.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
/// Seconds of the longest budget that is timed.
const MOST_SECONDS: f64 = 1e9;

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

    /// What is set once somebody asked.
    #[must_use]
    pub fn shared(&self) -> &Arc<AtomicBool> {
        &self.0
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

/// How often the result is run after everything was searched: it is replayed strictly twice, and told.
const RUNS: u32 = 3;
/// The same with what it takes to load and verify it, where it was found elsewhere.
const RUNS_LOADED: u32 = 5;
/// Part of the whole that is kept back for the certificate, at most.
const CERTIFIED: f64 = 0.1;
/// How late a command may end: what is still to do when the time ends is not begun if it would end later.
const SLACK: Duration = Duration::from_secs(1);

/// When a whole minimization must end, and how long that takes which must follow its searches. All lines of work share it, so that none goes on
/// for longer, whatever its own share of the seconds is. A budget of replays or states has no such end.
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    end: Option<Instant>,
    whole: Duration,
    /// Nanoseconds of a step, as the runs of results were measured.
    step: Arc<AtomicU64>,
    /// Nanoseconds before the end at which searches end.
    kept: Arc<AtomicU64>,
}

impl Deadline {
    /// The end of a budget that begins now.
    #[must_use]
    pub fn of(budget: Budget) -> Self {
        let whole = match budget {
            Budget::Seconds(s) => Some(Duration::from_secs_f64(s.min(MOST_SECONDS))),
            Budget::Replays(_) | Budget::States(_) => None,
        };
        let end = whole.map(|whole| Instant::now() + whole);
        Deadline { end, whole: whole.unwrap_or_default(), ..Deadline::default() }
    }

    /// Takes in how long a run of so many steps took.
    pub fn measured(&self, took: Duration, steps: usize) {
        let step = took.as_nanos() / steps.max(1) as u128;
        self.step.store(u64::try_from(step).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long a run of so many steps takes.
    #[must_use]
    pub fn run_of(&self, steps: usize) -> Duration {
        Duration::from_nanos(self.step.load(Ordering::Relaxed).saturating_mul(steps as u64))
    }

    /// Keeps back what the end of the work takes with a result of so many steps.
    pub fn keep_for(&self, steps: usize) {
        self.keep(self.run_of(steps).saturating_mul(RUNS) + self.removals(steps));
    }

    /// The same with a result that must be loaded first.
    pub fn keep_to_load(&self, steps: usize) {
        self.keep(self.run_of(steps).saturating_mul(RUNS_LOADED) + self.removals(steps));
    }

    /// How long the certificate takes, for which each step is left out once: a small part of the whole at most.
    fn removals(&self, steps: usize) -> Duration {
        let each = self.run_of(steps).saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
        each.min(self.whole.mul_f64(CERTIFIED))
    }

    /// Keeps back so much before the end.
    pub fn keep(&self, kept: Duration) {
        self.kept.store(u64::try_from(kept.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When searches must end; nothing where no time is set.
    #[must_use]
    fn search_ends(&self) -> Option<Instant> {
        let kept = Duration::from_nanos(self.kept.load(Ordering::Relaxed));
        let end = self.end?;
        Some(end.checked_sub(kept).unwrap_or_else(Instant::now))
    }

    /// How long searches may still go on; nothing where no time is set.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.search_ends().map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether the time itself is over, and the second after it in which a command may end.
    #[must_use]
    pub fn over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end + SLACK)
    }

    /// Whether what takes so long ends soon enough if it begins now.
    #[must_use]
    pub fn fits(&self, cost: Duration) -> bool {
        self.end.is_none_or(|end| Instant::now() + cost.min(Duration::from_secs(1 << 32)) <= end + SLACK)
    }
}

/// The limits of a meter that were narrowed for a while.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    executed: u64,
    searched: u64,
    time: Option<(Instant, Instant)>,
}

/// The running account of one engine.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Schedules tested.
    pub replays: u64,
    /// Deliveries executed, and steps that processes had to make.
    pub executed: u64,
    max_replays: u64,
    max_executed: u64,
    max_searched: u64,
    /// When it begins and when it must end.
    time: Option<(Instant, Instant)>,
    deadline: Deadline,
    stop: StopFlag,
}

impl demi_check::Quota for Meter {
    fn late(&self) -> bool {
        Meter::late(self)
    }

    fn take(&mut self) -> bool {
        let room = self.ended().is_none() && self.left() > 0;
        self.executed += u64::from(room);
        room
    }
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
                time = Some((now, now + Duration::from_secs_f64(s.min(MOST_SECONDS))));
            }
            Budget::Replays(n) => (max_replays, max_searched) = (n, n.saturating_mul(PER_REPLAY)),
            Budget::States(n) => (max_executed, max_searched) = (n, n),
        }
        let deadline = Deadline::default();
        Meter { replays: 0, executed: 0, max_replays, max_executed, max_searched, time, deadline, stop }
    }

    /// The same where processes answer, and a replay may cost so many deliveries. Then all work counts, not only that of searches.
    #[must_use]
    pub fn costly(self, replay: u64) -> Self {
        let searched = match self.max_replays {
            u64::MAX => self.max_searched,
            replays => replays.saturating_mul(replay),
        };
        Meter { max_searched: searched, max_executed: self.max_executed.min(searched), ..self }
    }

    /// The same, within a whole that must end by a deadline.
    #[must_use]
    pub fn within(self, deadline: &Deadline) -> Self {
        Meter { deadline: deadline.clone(), ..self }
    }

    /// Leaves a part of what is left for what comes next; [`Meter::widen`] takes the limits that were there before.
    pub fn narrow(&mut self, part: f64) -> Limits {
        let before = Limits { executed: self.max_executed, searched: self.max_searched, time: self.time };
        let of = |most: u64| {
            self.executed.saturating_add((most.saturating_sub(self.executed) as f64 * part) as u64)
        };
        (self.max_executed, self.max_searched) = (of(self.max_executed), of(self.max_searched));
        let now = Instant::now();
        let end = self.time.map(|(_, end)| end).into_iter().chain(self.deadline.search_ends()).min();
        self.time = end.map(|end| (now, now + end.saturating_duration_since(now).mul_f64(part)));
        before
    }

    /// Goes on with the limits that were there before.
    pub fn widen(&mut self, before: Limits) {
        (self.max_executed, self.max_searched, self.time) = (before.executed, before.searched, before.time);
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
        self.stop.is_set() || self.timed_out()
    }

    fn timed_out(&self) -> bool {
        let ends = self.time.map(|(_, end)| end).into_iter().chain(self.deadline.search_ends());
        ends.min().is_some_and(|end| Instant::now() >= end)
    }

    /// Whether the time of the whole is over, with all that was kept back of it.
    #[must_use]
    pub fn over(&self) -> bool {
        self.deadline.over()
    }

    /// Why the work must end now, if it must.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        if self.stop.is_set() {
            Some(Ended::Interrupted)
        } else if self.replays >= self.max_replays || self.executed >= self.max_executed || self.timed_out() {
            Some(Ended::Budget)
        } else {
            None
        }
    }
}

impl demi_space::Allowance for Meter {
    fn late(&self) -> bool {
        Meter::late(self)
    }

    fn ended(&self) -> bool {
        Meter::ended(self).is_some()
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

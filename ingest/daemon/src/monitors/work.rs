//! The thread that watches: takes records, finds violations, keeps what it knows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use demi_monitor::{Invariant, InvariantStatus, Monitor, MonitorState, Record, Unjudged, Violation};
use rustix::time::{ClockId, clock_gettime};

use super::checkpoint::{Alert, Checkpoint, Done, Known, Stage, Told as ToldViolation};
use super::config::MonitorConfig;
use super::feed::{Cut, Told, Turn, Wanted};
use crate::metrics::Metrics;
use crate::spool::{Disk, SpoolError};
use crate::tasks::{Task, Tasks};

/// Longest time without looking at the clock.
const TICK: Duration = Duration::from_millis(50);
/// How often shares of time are looked at, and figures given out.
const EVERY: Duration = Duration::from_secs(1);
/// How long what fails after an alert of the same invariant waits to be told with others.
const BURST: Duration = Duration::from_secs(1);
/// Most rows and groups that one alert names.
const MOST_TOLD: usize = 100;
/// Pause after a checkpoint could not be written.
const PAUSE: Duration = Duration::from_secs(1);
/// Most alerts that wait to be posted or built. What comes beyond is recorded alone, and beyond twice as many not told.
const MOST_ALERTS: usize = if cfg!(test) { 8 } else { 10_000 };
/// Most violations that wait to be told with others.
const MOST_WAITING: usize = 100_000;
/// Least share of the states that are looked at.
const LEAST_SAMPLE: f64 = 1.0 / 65_536.0;

/// What others tell and ask of a monitor.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The invariants as they stood a moment ago, and the share of states that is looked at.
    pub(crate) watching: Mutex<(Vec<InvariantStatus>, f64)>,
    /// Invariants to be muted, or to be heard again; it is answered when that is written down.
    pub(crate) mute: Mutex<Vec<Mute>>,
    /// The file of invariants is to be read again.
    pub(crate) reload: AtomicBool,
    /// Alerts are to be carried out again, because whoever did it is gone.
    pub(crate) carry_again: AtomicBool,
    /// What was done about alerts, by incarnation and number of their records.
    pub(crate) done: Mutex<Vec<((u32, u64), Stage)>>,
    /// The daemon gives up: nothing more is taken.
    pub(crate) give_up: AtomicBool,
}

/// An invariant is to be muted, or to be heard again.
#[derive(Debug)]
pub(crate) struct Mute {
    pub(crate) id: String,
    pub(crate) muted: bool,
    /// Whether there is one of this id or name.
    pub(crate) answer: tokio::sync::oneshot::Sender<bool>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No holder leaves them half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a monitor's thread works with.
pub(crate) struct Work<D> {
    pub(crate) name: String,
    pub(crate) config: MonitorConfig,
    pub(crate) disk: D,
    pub(crate) wanted: Arc<Wanted>,
    pub(crate) from: Receiver<Told>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) metrics: Arc<Metrics>,
    /// Where alerts go that were written down.
    pub(crate) alerts: tokio::sync::mpsc::UnboundedSender<Alert>,
    pub(crate) checkpoint: Checkpoint,
    /// The turn that it is in.
    pub(crate) turn: Turn,
    pub(crate) tasks: Tasks,
}

/// Why the work on one file of invariants ended.
enum Ended {
    Reload(Vec<Invariant>),
    Stopped,
}

impl<D: Disk> Work<D> {
    /// Watches until the feed is closed or the daemon gives up. After a panic it goes on from what is written down.
    pub(crate) fn keep_running(mut self, invariants: Vec<Invariant>, mut task: Task) {
        let mut again = Vec::new();
        loop {
            task.runs();
            let panic = match Task::caught(|| {
                self.run(if again.is_empty() { invariants.clone() } else { again.clone() })
            }) {
                Ok(()) => return,
                Err(panic) => panic,
            };
            self.wanted.goes_away();
            let Some(pause) = task.failed(&panic) else { return };
            std::thread::sleep(pause);
            // It is read again, and whoever waits to tell more goes on.
            while self.from.try_recv().is_ok() {}
            match Checkpoint::read(&self.disk, &self.name) {
                Ok(Known::Checkpoint(known)) => self.checkpoint = *known,
                // It was written when the monitor began.
                Ok(Known::Nothing | Known::Damaged(_)) | Err(_) => {
                    return task.lost("what the monitor knew cannot be read");
                }
            }
            again = self.config.read_invariants().unwrap_or_default();
            self.turn = self.wanted.begin_again(self.checkpoint.lsn);
        }
    }

    /// Watches until the feed is closed or the daemon gives up.
    fn run(&mut self, mut invariants: Vec<Invariant>) {
        for alert in self.checkpoint.alerts.clone() {
            let _ = self.alerts.send(alert);
        }
        loop {
            let saved = std::mem::take(&mut self.checkpoint.saved);
            match self.watch(&invariants, &saved) {
                Ended::Reload(anew) => invariants = anew,
                Ended::Stopped => return,
            }
        }
    }

    fn watch(&mut self, invariants: &[Invariant], saved: &MonitorState) -> Ended {
        let mut monitor = Monitor::resume(invariants, self.config.options(), saved);
        self.metrics.monitors.begin(&self.name, invariants, &self.checkpoint.last_told);
        self.wanted.set_interest(monitor.interest().clone());
        let mut clock = Clock::new();
        let mut share = Share::new(&self.config);
        monitor.set_sample(share.sample);
        let mut last = self.checkpoint.lsn;
        // Whether anything changed since it was written down, and whether it has to be written down now.
        let (mut dirty, mut due) = (false, false);
        // When the last attempt failed, if it did.
        let mut failed: Option<Instant> = None;
        // Up to which number alerts were handed on, and when each invariant was last told.
        let mut handed = self.checkpoint.last_seq;
        let mut told: BTreeMap<String, Instant> = BTreeMap::new();
        let mut answers = Vec::new();
        // How often records were missed in the last second.
        let mut losses = 0;
        let mut found = Vec::new();
        loop {
            if self.desk.give_up.load(Ordering::Relaxed) {
                return Ended::Stopped;
            }
            self.tasks.may_break(&self.name);
            let before = last;
            let closed = match self.from.recv_timeout(TICK) {
                // It was read for a monitor that is gone.
                Ok(Told::Records(Cut { turn, .. }) | Told::Committed(_, turn)) if turn != self.turn => false,
                Ok(Told::Records(cut)) => {
                    dirty = true;
                    last = self.take(&mut monitor, cut, last, clock.now(), &mut found, &mut losses);
                    false
                }
                Ok(Told::Committed(lsn, _)) => {
                    last = last.max(lsn);
                    due = true;
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if clock.is_tick() || closed {
                monitor.tick(clock.now(), &mut found);
            }
            dirty |= last != before || !found.is_empty();
            self.note(&mut found);
            let asked = std::mem::take(&mut *lock(&self.desk.mute));
            let changed = self.tell_due(&mut told, clock.now()) | self.take_done() | !asked.is_empty();
            answers.extend(asked.into_iter().map(|m| (monitor.mute(&m.id, m.muted), m.answer)));
            dirty |= changed;
            due |= changed || closed;
            if dirty && due && failed.is_none_or(|at| closed || at.elapsed() >= PAUSE) {
                let begin = used();
                failed = self.try_keep(&monitor, last, failed);
                // To look at fewer states would not make this cheaper.
                share.used += used().saturating_sub(begin);
                if failed.is_none() {
                    (dirty, due) = (false, false);
                    // Who is told of a failure finds it in the list.
                    if self.checkpoint.last_seq > handed {
                        self.publish(&monitor, share.sample);
                    }
                    // They are told of only now: after a crash they are found in the checkpoint, or found again.
                    for alert in self.checkpoint.alerts.iter().filter(|alert| alert.seq > handed) {
                        let _ = self.alerts.send(alert.clone());
                    }
                    handed = self.checkpoint.last_seq;
                }
            }
            if self.desk.carry_again.swap(false, Ordering::Relaxed) {
                for alert in self.checkpoint.alerts.iter().filter(|alert| alert.seq <= handed) {
                    let _ = self.alerts.send(alert.clone());
                }
            }
            if !answers.is_empty() && failed.is_none() {
                self.publish(&monitor, share.sample);
                for (found, answer) in answers.drain(..) {
                    let _ = answer.send(found);
                }
            }
            if closed {
                return Ended::Stopped;
            }
            if share.is_due() {
                let before = share.sample;
                share.adjust();
                if before >= self.config.sample && share.sample < before {
                    let cpu_share = self.config.cpu_share;
                    tracing::warn!(
                        monitor = self.name,
                        cpu_share,
                        "watching takes more than its share: fewer states are looked at"
                    );
                }
                if losses > 0 {
                    tracing::warn!(
                        monitor = self.name,
                        times = losses,
                        "the monitor was behind and missed records"
                    );
                    losses = 0;
                }
                self.tell_unjudged(monitor.take_unjudged());
                monitor.set_sample(share.sample);
                self.publish(&monitor, share.sample);
            }
            // What is not written down yet is, before anything else begins.
            if failed.is_none() && self.desk.reload.swap(false, Ordering::Relaxed) {
                match self.config.read_invariants() {
                    Ok(anew) => {
                        tracing::info!(
                            monitor = self.name,
                            invariants = anew.len(),
                            "invariants were read again"
                        );
                        self.checkpoint.lsn = last;
                        self.checkpoint.saved = monitor.save();
                        return Ended::Reload(anew);
                    }
                    Err(reason) => {
                        tracing::error!(monitor = self.name, reason, "invariants stay as they are");
                    }
                }
            }
        }
    }

    /// Takes records; the last frame of which all is taken.
    fn take(
        &self,
        monitor: &mut Monitor<'_>,
        cut: Cut,
        last: u64,
        now: u64,
        found: &mut Vec<Violation>,
        losses: &mut u64,
    ) -> u64 {
        if cut.lost {
            *losses += 1;
            monitor.lose();
        }
        let same = *cut.interest == *monitor.interest();
        for record in cut.records {
            let record: Record = match same {
                true => record,
                false => monitor.interest().translate(record, &cut.interest),
            };
            monitor.take(record, cut.lsn, now, found);
        }
        if cut.end { last.max(cut.lsn) } else { last }
    }

    /// Takes up violations, to be told.
    fn note(&mut self, found: &mut Vec<Violation>) {
        let told = found.drain(..).map(|v| ToldViolation::new(v, &self.config.system, &self.name));
        self.checkpoint.waiting.extend(told);
        let beyond = self.checkpoint.waiting.len().saturating_sub(MOST_WAITING);
        if beyond > 0 {
            self.checkpoint.waiting.truncate(MOST_WAITING);
            self.metrics.monitors.shed(&self.name, beyond as u64);
        }
    }

    /// Makes alerts of the violations that wait, at a time in milliseconds; whether there were any. The first of an invariant is told at
    /// once. What comes within a second after an alert is put together.
    fn tell_due(&mut self, told: &mut BTreeMap<String, Instant>, now: u64) -> bool {
        if self.checkpoint.waiting.is_empty() {
            return false;
        }
        let waits = |told: &BTreeMap<String, Instant>, v: &ToldViolation| {
            told.get(&v.invariant).is_some_and(|at| at.elapsed() < BURST)
        };
        let (due, wait): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.checkpoint.waiting).into_iter().partition(|v| !waits(told, v));
        self.checkpoint.waiting = wait;
        // By invariant: the alert that others of it go into.
        let mut open: BTreeMap<String, usize> = BTreeMap::new();
        let any = !due.is_empty();
        for violation in due {
            let invariant = violation.invariant.clone();
            self.metrics.monitors.failed(&self.name, &invariant, 1, now / 1000);
            self.checkpoint.last_told.insert(invariant.clone(), now / 1000);
            told.insert(invariant.clone(), Instant::now());
            let into = open.get(&invariant).and_then(|place| self.checkpoint.alerts.get_mut(*place));
            if let Some(alert) = into.filter(|alert| alert.violation.more.len() + 1 < MOST_TOLD) {
                alert.violation.more.push(violation.first);
                continue;
            }
            let waiting = self.checkpoint.alerts.len();
            if waiting >= MOST_ALERTS {
                self.metrics.monitors.shed(&self.name, 1);
            }
            if waiting >= 2 * MOST_ALERTS {
                continue;
            }
            // What cannot be posted for so long is in the store.
            let recorded_alone = waiting >= MOST_ALERTS;
            let done = Done { posted: recorded_alone, built: recorded_alone, ..Done::default() };
            self.checkpoint.last_seq += 1;
            let (incarnation, seq) = (self.checkpoint.incarnation, self.checkpoint.last_seq);
            open.insert(invariant, self.checkpoint.alerts.len());
            self.checkpoint.alerts.push(Alert { incarnation, seq, violation, done });
        }
        any
    }

    /// Takes up what was done about alerts; whether anything was.
    fn take_done(&mut self) -> bool {
        let done = std::mem::take(&mut *lock(&self.desk.done));
        for (place, stage) in &done {
            if let Some(alert) = self.checkpoint.alerts.iter_mut().find(|alert| alert.place() == *place) {
                alert.done.set(stage);
            }
        }
        self.checkpoint.alerts.retain(|alert| !alert.done.is_all());
        !done.is_empty()
    }

    /// Writes down what is known; when that failed, if it did. The monitor goes on: it tries again, and tells nobody until it can.
    fn try_keep(&mut self, monitor: &Monitor<'_>, last: u64, before: Option<Instant>) -> Option<Instant> {
        let result = self.keep(monitor, last);
        self.metrics.monitors.is_stuck(&self.name, result.is_err());
        match (result, before) {
            (Ok(()), None) => None,
            (Ok(()), Some(_)) => {
                tracing::info!(monitor = self.name, "what the monitor knows is written down again");
                None
            }
            (Err(error), _) => {
                if before.is_none() {
                    tracing::error!(
                        monitor = self.name,
                        %error,
                        "what the monitor knows cannot be written down: nothing is told until it can"
                    );
                }
                Some(Instant::now())
            }
        }
    }

    /// Writes down what is known.
    fn keep(&mut self, monitor: &Monitor<'_>, last: u64) -> Result<(), SpoolError> {
        // What waits comes again with its frame.
        self.checkpoint.lsn = monitor.oldest_waiting().map_or(last, |lsn| last.min(lsn.saturating_sub(1)));
        self.checkpoint.saved = monitor.save();
        let written = self.checkpoint.write(&self.disk, &self.name);
        // It takes as much memory as the monitor itself.
        self.checkpoint.saved = MonitorState::default();
        written?;
        self.wanted.set_safe(self.checkpoint.lsn);
        Ok(())
    }

    /// Says once of which rows and groups nothing can be said.
    fn tell_unjudged(&self, unjudged: Vec<Unjudged>) {
        for Unjudged { invariant, of, groups, reason } in unjudged {
            let of = of.join("; ");
            tracing::error!(
                monitor = self.name,
                invariant,
                of,
                groups,
                reason,
                "an invariant cannot be judged here"
            );
        }
    }

    fn publish(&self, monitor: &Monitor<'_>, sample: f64) {
        let watching = monitor.watching();
        let mut shown = lock(&self.desk.watching);
        self.metrics.monitors.keep(&self.name, &shown.0, &watching);
        self.metrics.monitors.show(&self.name, &watching, monitor.counts(), sample);
        *shown = (watching, sample);
    }
}

/// Milliseconds since 1970 that never go backward.
struct Clock {
    begin: Instant,
    at: u64,
    ticked: Instant,
}

impl Clock {
    fn new() -> Clock {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let begin = Instant::now();
        Clock { begin, at: at.try_into().unwrap_or_default(), ticked: begin }
    }

    fn now(&self) -> u64 {
        self.at + self.begin.elapsed().as_millis() as u64
    }

    /// Whether a tick is due.
    fn is_tick(&mut self) -> bool {
        let due = self.ticked.elapsed() >= TICK;
        if due {
            self.ticked = Instant::now();
        }
        due
    }
}

/// The share of a core that the thread takes, and the share of states that it looks at.
struct Share {
    wanted: f64,
    most: f64,
    sample: f64,
    since: Instant,
    used: Duration,
}

impl Share {
    fn new(config: &MonitorConfig) -> Share {
        let (wanted, most) = (config.cpu_share, config.sample);
        Share { wanted, most, sample: most, since: Instant::now(), used: used() }
    }

    fn is_due(&self) -> bool {
        self.since.elapsed() >= EVERY
    }

    fn adjust(&mut self) {
        let now = used();
        let share = now.saturating_sub(self.used).as_secs_f64() / self.since.elapsed().as_secs_f64();
        (self.since, self.used) = (Instant::now(), now);
        if share > self.wanted {
            self.sample = (self.sample / 2.0).max(LEAST_SAMPLE);
        } else if share < self.wanted / 2.0 {
            self.sample = (self.sample * 2.0).min(self.most);
        }
    }
}

/// Time that this thread was on a core.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

//! One line of work: an engine, the best witness so far, and the account of what each phase did.

use std::time::Instant;

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::summary::{CurvePoint, PhaseSummary};

use demi_space::Unsearchable;

use super::stats::{Account, Cost};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::Policy;
use crate::oracle::witness::Shared;
use crate::problem::options::Progress;
use crate::problem::size::{size, timers};
use crate::search::Searched;

/// One line of work on a witness.
pub struct Reducer<'a, M: Model> {
    /// The oracle.
    pub engine: Engine<M>,
    /// The best so far.
    pub best: Shared<M>,
    /// What each phase did.
    pub phases: Vec<PhaseSummary>,
    /// The curve of size against work, a point an improvement.
    pub curve: Vec<CurvePoint>,
    /// What each pass won.
    pub account: Account,
    running: String,
    /// Whether its best is what the whole minimization ends with, if nothing better is found.
    main: bool,
    /// Whoever watches.
    pub tell: &'a (dyn Fn(&Progress<'_>) + Sync),
}

impl<'a, M: Model> Reducer<'a, M> {
    /// Begins with a witness.
    pub fn new(engine: Engine<M>, best: Shared<M>, tell: &'a (dyn Fn(&Progress<'_>) + Sync)) -> Self {
        let (phases, curve) = (Vec::new(), Vec::new());
        let (account, running) = (Account::default(), String::new());
        Reducer { engine, best, phases, curve, account, running, main: false, tell }
    }

    /// The same, as the line of work whose best is the result: from now on the time is kept back that the end of the work takes with it.
    #[must_use]
    pub fn main(mut self) -> Self {
        self.main = true;
        self.keep_back();
        self
    }

    fn keep_back(&self) {
        if self.main {
            let deadline = &self.engine.problem.deadline;
            deadline.measured(self.best.took, self.best.acts.len());
            deadline.keep_for(self.best.acts.len());
        }
    }

    /// Whether the budget is used up or somebody asked to stop.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.engine.meter.ended().is_some()
    }

    /// Tests the best witness without some of its steps; keeps the result if it is smaller and says so.
    pub fn without(&mut self, removed: &[bool], policy: Policy) -> bool {
        let found = self.engine.test(&self.best, removed, policy);
        self.keep(found)
    }

    /// Keeps a witness if it is smaller than the best, and says so.
    pub fn keep(&mut self, found: Option<Shared<M>>) -> bool {
        let Some(found) = found.filter(|f| self.engine.smaller(f.size, self.best.size)) else {
            return false;
        };
        self.take(found);
        true
    }

    /// Goes on with another witness, and says so.
    pub fn take(&mut self, witness: Shared<M>) {
        self.best = witness;
        self.keep_back();
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        self.curve.push(CurvePoint {
            replays,
            executed,
            deliveries: self.best.size.deliveries as u64,
            externals: self.best.size.externals as u64,
        });
        self.say(false);
    }

    /// What a search of the running phase came to; why it could not be made is noted in the account, but for the end of the time, which
    /// is told otherwise.
    pub fn searched(&mut self, searched: Result<Searched<M>, Unsearchable>) -> Option<Searched<M>> {
        let why = match searched {
            Ok(searched) => return Some(searched),
            Err(why) => why,
        };
        if why != Unsearchable::TimeOver {
            self.account.refuse(&self.running, why.to_string());
        }
        None
    }

    /// Says that what there is now is the recording, reduced by local passes.
    pub fn say_reduced(&self) {
        self.say(true);
    }

    fn say(&self, reduced: bool) {
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        let schedule = || self.engine.to_schedule(&self.best.acts);
        let phase = self.running.clone();
        let size = self.best.size;
        (self.tell)(&Progress { phase, reduced, size, replays, executed, schedule: &schedule });
    }

    /// Appends the curve of a line of work that went on from this one.
    pub fn join(&mut self, points: &[CurvePoint]) {
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        self.curve.extend(points.iter().map(|p| CurvePoint {
            replays: p.replays + replays,
            executed: p.executed + executed,
            ..p.clone()
        }));
    }

    /// Runs one phase and accounts for it. Says whether it found something smaller.
    pub fn phase(&mut self, name: &str, pass: impl FnOnce(&mut Self)) -> bool {
        if self.ended() {
            return false;
        }
        let began = Instant::now();
        let (replays, executed) = (self.engine.meter.replays, self.engine.meter.executed);
        let before = self.best.size;
        name.clone_into(&mut self.running);
        pass(self);
        let size = self.best.size;
        let cost = Cost {
            replays: self.engine.meter.replays - replays,
            executed: self.engine.meter.executed - executed,
            seconds: began.elapsed().as_secs_f64(),
        };
        self.account.note(name, cost, before, size);
        let line = PhaseSummary {
            replays: cost.replays,
            executed: cost.executed,
            seconds: cost.seconds,
            ..phase_line(name, &self.best.acts)
        };
        // Repeated phases that gained nothing are one line.
        match self.phases.last_mut() {
            Some(last) if last.phase == line.phase && size == before => {
                last.replays += line.replays;
                last.executed += line.executed;
                last.seconds += line.seconds;
            }
            _ => self.phases.push(line),
        }
        size != before
    }
}

/// A line of the table of phases with the size of a schedule and no work yet.
#[must_use]
pub fn phase_line(phase: &str, acts: &[Act]) -> PhaseSummary {
    let size = size(acts);
    PhaseSummary {
        phase: phase.to_owned(),
        replays: 0,
        executed: 0,
        seconds: 0.0,
        deliveries: size.deliveries as u64,
        externals: size.externals as u64,
        timers: timers(acts) as u64,
    }
}

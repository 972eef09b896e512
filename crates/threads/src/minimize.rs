//! The failing schedule with the fewest preemptions: what can be left out is, and a bounded search below the rest finds less or proves that there
//! is none.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use crate::failure::{Failure, FailureKind};
use crate::log::{Followed, Log};
use crate::op::Place;
use crate::run::{Body, Ways, drive};
use crate::schedule::{After, Did, FORMAT, Header, Last, Schedule, Switch};
use crate::search::{Bounded, Found, Single};
use crate::world::{Cost, Directive, Guide, Plan, Why, World, directed};

/// The most operations of one piece in a file.
const MOST_IN_A_PIECE: usize = 24;

/// The most executions of one way to make a failure smaller.
const MOST_TESTS: u64 = 2_000;

/// The most places at which a simple schedule leaves the deterministic scheduler.
const MOST_PLACES: u32 = 8;

/// The version of the runtime, as `Cargo.toml` pins it.
pub(crate) const SHUTTLE: &str = "0.9.10";

/// What a run by directives came to.
pub(crate) struct Run {
    pub(crate) failure: Option<Failure>,
    pub(crate) directives: Vec<(Directive, bool)>,
    pub(crate) preemptions: u32,
    pub(crate) steps: u32,
    pub(crate) pieces: Option<Pieces>,
}

pub(crate) struct Pieces {
    switches: Vec<Switch>,
    last: Last,
    tasks: Vec<(String, String)>,
}

/// Runs once by directives.
pub(crate) fn follow(body: &Body, ways: Ways, directives: &[Directive], log: bool) -> Result<Run, Failure> {
    let plan = Plan { log, ..Plan::by(directed(directives)) };
    let single = Single::new(plan, move |world, ended| Run {
        directives: world.directives(),
        preemptions: ended.preemptions,
        steps: ended.steps,
        pieces: log.then(|| pieces(world, ended.steps)),
        failure: ended.failure,
    });
    let single = drive(body, single, ways)?;
    Ok(single.result.unwrap_or(Run {
        failure: None,
        directives: Vec::new(),
        preemptions: 0,
        steps: 0,
        pieces: None,
    }))
}

/// Runs once by a log, as far as it goes.
pub(crate) fn follow_log(
    body: &Body,
    ways: Ways,
    log: Arc<Log>,
) -> Result<(Option<Found>, Option<Followed>), Failure> {
    let plan = Plan::by(Guide::Logged(log));
    let single = Single::new(plan, |world, ended| {
        let found = ended.failure.clone().map(|failure| Found::new(world, &ended, failure, 1));
        (found, world.followed_log(ended.failure.is_some()))
    });
    Ok(drive(body, single, ways)?.result.unwrap_or((None, None)))
}

fn pieces(world: &World, steps: u32) -> Pieces {
    let did = |op: &crate::op::Op| {
        let what = format!("{} {}", op.kind.word(), world.touched(op));
        Did { op: what.trim_end().to_owned(), came_to: None, at: spot(op.at) }
    };
    let made = |step: &crate::world::Step| Did { came_to: step.came_to.map(str::to_owned), ..did(&step.op) };
    let cut = |mut all: Vec<Did>| {
        if all.len() > MOST_IN_A_PIECE {
            let half = MOST_IN_A_PIECE / 2;
            let left_out = all.len() - 2 * half;
            let middle = Did::left_out(left_out, all[half].at.clone());
            all.splice(half..half + left_out, [middle]);
        }
        all
    };
    let forced = |task: u16, ops: u32| {
        world.branches.iter().any(|branch| branch.current == task && branch.ops == ops && !branch.by_default)
    };
    // A task that yields and goes on all the same is told too: the deterministic scheduler would have let another one go on.
    let goes_on: HashSet<(u16, u32)> = world
        .branches
        .iter()
        .filter(|branch| branch.chosen == branch.current && !branch.by_default)
        .map(|branch| (branch.current, branch.ops))
        .collect();
    let mut switches = Vec::new();
    let mut current: (u16, Vec<Did>) = (0, Vec::new());
    let mut ops = vec![0u32; world.tasks.len()];
    for step in &world.steps {
        let same = step.task == current.0;
        if !same || goes_on.contains(&(step.task, ops[usize::from(step.task)])) {
            let (task, all) = std::mem::replace(&mut current, (step.task, Vec::new()));
            let left = &world.tasks[usize::from(task)];
            let done = ops[usize::from(task)];
            // What it would have done next is the next thing that it does, or what it still waits for.
            let next = world
                .steps
                .iter()
                .filter(|other| other.task == task)
                .nth(done as usize)
                .map(|other| did(&other.op))
                .or_else(|| (!left.finished).then(|| did(&left.pending)));
            let why = step.why.unwrap_or(if same { Why::Yield } else { Why::Block });
            let holds = world.steps.iter().filter(|other| other.task == task).nth(done as usize).map_or_else(
                || world.held(task),
                |other| other.holds.iter().map(|id| world.resource_name(*id)).collect(),
            );
            switches.push(Switch {
                after: After { task: world.name(task), ops: done },
                to: world.name(step.task),
                why: why.word().to_owned(),
                forced: forced(task, done),
                next: if why == Why::End { None } else { next },
                then: Some(made(step)),
                holds,
                did: cut(all),
            });
        }
        ops[usize::from(step.task)] += 1;
        current.1.push(made(step));
    }
    if let (Some(last), true) = (world.steps.last(), steps as usize > world.steps.len()) {
        current.1.push(Did::left_out(steps as usize - world.steps.len(), spot(last.op.at)));
    }
    let tasks = (0..world.tasks.len() as u16).map(|task| (world.name(task), world.path(task))).collect();
    let shuttle = (!world.turns.is_empty()).then(|| crate::schedule::as_shuttle_has_it(&world.turns));
    Pieces { switches, last: Last { last: world.name(current.0), did: cut(current.1), shuttle }, tasks }
}

fn spot(at: Place) -> crate::failure::Spot {
    at.into()
}

/// A minimized failure.
pub(crate) struct Minimal {
    pub(crate) schedule: Schedule,
    pub(crate) tests: u64,
}

struct Search<'a> {
    body: &'a Body,
    ways: Ways,
    class: String,
    tests: u64,
    most: u64,
    best: Vec<(Directive, bool)>,
    preemptions: u32,
    steps: u32,
    deadline: Option<Instant>,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether a run by these still fails in the same way, and is no worse; then it is the best.
    fn keeps(&mut self, directives: &[Directive]) -> Result<bool, Failure> {
        if self.tests >= self.most || self.is_over() {
            return Ok(false);
        }
        self.tests += 1;
        let run = follow(self.body, self.ways, directives, false)?;
        let same = run.failure.as_ref().is_some_and(|failure| failure.class() == self.class);
        let size = |preemptions: u32, directives: &[(Directive, bool)], steps: u32| {
            (preemptions, directives.len(), steps)
        };
        let better = size(run.preemptions, &run.directives, run.steps)
            < size(self.preemptions, &self.best, self.steps);
        if same && better {
            self.best = run.directives;
            self.preemptions = run.preemptions;
            self.steps = run.steps;
        }
        Ok(same && better)
    }

    /// Leaves out what can be left out, in pieces that get smaller; only those that are preemptions, or only the others.
    fn leave_out(&mut self, preemptive: bool) -> Result<(), Failure> {
        let of_kind = |best: &[(Directive, bool)]| {
            (0..best.len()).filter(|at| best[*at].1 == preemptive).collect::<Vec<_>>()
        };
        let mut size = of_kind(&self.best).len().div_ceil(2).max(1);
        loop {
            let places = of_kind(&self.best);
            let mut any = false;
            for chunk in places.chunks(size) {
                let rest: Vec<Directive> =
                    (0..self.best.len()).filter(|at| !chunk.contains(at)).map(|at| self.best[at].0).collect();
                if self.keeps(&rest)? {
                    any = true;
                    break;
                }
            }
            if any {
                size = size.min(of_kind(&self.best).len().max(1));
                continue;
            }
            if size == 1 {
                return Ok(());
            }
            size = size.div_ceil(2);
        }
    }

    /// Moves a switch by a few operations, or leaves two out.
    fn move_about(&mut self) -> Result<bool, Failure> {
        for at in 0..self.best.len() {
            for by in [-1i64, 1, -2, 2, -3, 3, -4, 4] {
                let mut moved: Vec<Directive> = self.best.iter().map(|(directive, _)| *directive).collect();
                let Ok(ops) = u32::try_from(i64::from(moved[at].after.1) + by) else { continue };
                moved[at].after.1 = ops;
                if self.keeps(&moved)? {
                    return Ok(true);
                }
            }
        }
        if self.best.len() <= 24 {
            for first in 0..self.best.len() {
                for second in first + 1..self.best.len() {
                    let rest: Vec<Directive> = (0..self.best.len())
                        .filter(|at| *at != first && *at != second)
                        .map(|at| self.best[at].0)
                        .collect();
                    if self.keeps(&rest)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

/// How long a failure may be made smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Executions below a result.
    pub(crate) executions: u64,
    pub(crate) until: Option<Instant>,
}

/// Minimizes a failure. `proven` says that every execution with fewer preemptions than this was run before, and none failed.
pub(crate) fn minimize(
    body: &Body,
    ways: Ways,
    test: &str,
    found: &Found,
    proven: Option<u32>,
    patience: Patience,
) -> Result<Minimal, Failure> {
    let mut search = Search {
        body,
        ways,
        class: found.failure.class(),
        tests: 0,
        most: MOST_TESTS,
        best: found.directives.clone(),
        preemptions: found.preemptions,
        steps: found.steps,
        deadline: patience.until,
    };
    let mut other = None;
    let mut least = proven.is_some_and(|proven| proven >= found.preemptions) || found.preemptions == 0;
    loop {
        if !least || search.preemptions > 0 {
            search.leave_out(true)?;
        }
        search.leave_out(false)?;
        while search.tests < search.most && !search.is_over() && search.move_about()? {
            search.leave_out(true)?;
            search.leave_out(false)?;
        }
        if least || search.preemptions == 0 {
            least = true;
            break;
        }
        // Where tasks are many, even all executions with fewer preemptions are too many to come to the simplest ones of them soon.
        let mut few = Bounded::few_places(search.preemptions - 1, MOST_PLACES);
        few.class = Some(search.class.clone());
        few.allowance = MOST_TESTS;
        few.deadline = search.deadline;
        let mut few = drive(body, few, ways)?;
        other = few.other.take().or(other);
        search.tests += few.executions;
        search.most += few.executions;
        if let Some(found) = few.found {
            search.best = found.directives;
            search.preemptions = found.preemptions;
            search.steps = found.steps;
            continue;
        }
        // Below the result: a hit is a better one, the end of the search is the proof.
        let mut below = Bounded::new(Cost::Preemptions, search.preemptions - 1, true);
        below.class = Some(search.class.clone());
        below.allowance = patience.executions;
        below.deadline = search.deadline;
        let mut below = drive(body, below, ways)?;
        // What this search finds first has the fewest.
        other = below.other.take().or(other);
        search.tests += below.executions;
        search.most += below.executions;
        match below.found.take() {
            Some(found) => {
                search.best = found.directives;
                search.preemptions = found.preemptions;
                search.steps = found.steps;
                // The levels under it are complete, unless something was lost.
                least = below.diverged == 0 && !below.is_full();
                if !least {
                    break;
                }
            }
            None => {
                least = below.complete() == Some(search.preemptions - 1);
                break;
            }
        }
    }
    let directives: Vec<Directive> = search.best.iter().map(|(directive, _)| *directive).collect();
    let mut schedule = told(body, ways, test, &directives, &found.failure)?;
    schedule.header.least = least;
    schedule.header.other = other.filter(|(_, preemptions)| *preemptions < schedule.header.preemptions);
    schedule.header.executions = found.executions + search.tests;
    Ok(Minimal { schedule, tests: search.tests })
}

/// The schedule of a run by directives, with what each task does.
pub(crate) fn told(
    body: &Body,
    ways: Ways,
    test: &str,
    directives: &[Directive],
    otherwise: &Failure,
) -> Result<Schedule, Failure> {
    let run = follow(body, ways, directives, true)?;
    let failure = run.failure.filter(|failure| failure.class() == otherwise.class()).ok_or_else(|| {
        let message =
            format!("one schedule failed, and did not fail so when it was followed once more: {otherwise}");
        Failure::new(FailureKind::Nondeterministic { message })
    })?;
    let pieces =
        run.pieces.unwrap_or(Pieces { switches: Vec::new(), last: Last::default(), tasks: Vec::new() });
    let header = Header {
        format: FORMAT.to_owned(),
        test: test.to_owned(),
        shuttle: SHUTTLE.to_owned(),
        failure,
        preemptions: run.preemptions,
        least: false,
        other: None,
        executions: 1,
        steps: run.steps,
        tasks: pieces.tasks,
    };
    Ok(Schedule { header, switches: pieces.switches, last: pieces.last })
}

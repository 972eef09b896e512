//! Searches over the executions of a test: all of them within a bound, or random ones.

use std::sync::Arc;

use crate::failure::{Failure, FailureKind};
use crate::hash::HashKeyed;
use crate::op::TaskId;
use crate::world::{Cost, Directive, Ended, Graphs, Guide, Plan, Strategy, World};

/// What was run with one number of preemptions or delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    pub(crate) executions: u64,
    pub(crate) steps: u64,
    pub(crate) pruned: u64,
    pub(crate) complete: bool,
}

impl Level {
    /// Executions.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// Steps of all of them, each up to the known state that it came to.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Executions that came to a state which was known.
    #[must_use]
    pub fn pruned(&self) -> u64 {
        self.pruned
    }

    /// Whether there are no others.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.complete
    }
}

/// A failing execution.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) failure: Failure,
    pub(crate) directives: Vec<(Directive, bool)>,
    pub(crate) preemptions: u32,
    pub(crate) steps: u32,
    /// How many executions there were, this one included.
    pub(crate) executions: u64,
}

impl Found {
    pub(crate) fn new(world: &World, ended: &Ended, failure: Failure, executions: u64) -> Self {
        Self {
            failure,
            directives: world.directives(),
            preemptions: ended.preemptions,
            steps: ended.steps,
            executions,
        }
    }
}

struct Item {
    trace: Arc<[TaskId]>,
    len: u32,
    other: TaskId,
    /// A part of the hash of what happened before, which is enough to see that something else did.
    graph: u64,
    /// How often it was tried and went another way.
    tries: u8,
}

/// So many executions may go another way and be gone the next time: more are no chance.
const MOST_STRAYS: u64 = 2;

/// The most choices that wait: 32 bytes each.
const MOST_WAITING: usize = 1 << 23;

/// All executions within a bound, those with the least cost first.
pub(crate) struct Bounded {
    cost: Cost,
    cached: bool,
    bound: u32,
    work: Vec<Vec<Item>>,
    level: usize,
    current: Option<(Item, usize)>,
    pub(crate) levels: Vec<Level>,
    pub(crate) found: Option<Found>,
    /// Only failures of this class count.
    pub(crate) class: Option<String>,
    /// The first failure of another class: none has fewer of what is counted.
    pub(crate) other: Option<(Failure, u32)>,
    /// Go on after a failure.
    pub(crate) all: bool,
    pub(crate) classes: std::collections::BTreeMap<String, u32>,
    pub(crate) graphs: Option<Graphs>,
    pub(crate) executions: u64,
    /// At most so many more.
    pub(crate) allowance: u64,
    pub(crate) diverged: u64,
    /// Whether a task had to let others go first: that it does not counts as a preemption.
    pub(crate) held_back: bool,
    /// Executions that went another way, those that did not the next time included.
    strays: u64,
    pub(crate) deadline: Option<std::time::Instant>,
    /// The most preemptions, where the cost is the number of choices that are not those of the deterministic scheduler.
    most_preemptions: Option<u32>,
    /// Choices that wait, of all costs.
    waiting: usize,
    /// From this cost on there was no room for some.
    no_room: Option<usize>,
    known: HashKeyed<u32>,
    /// Whether tasks are left before they did anything: where all executions are run, and where delays are counted and a task yields. Who has
    /// begun and has to wait takes no turn, and keeps nobody from going on after a yield, as one does that has not begun.
    leaves_at_once: bool,
}

/// The choices of each cost in the beginning: that of the deterministic scheduler.
fn first(bound: u32) -> Vec<Vec<Item>> {
    let mut work: Vec<Vec<Item>> = (0..=bound).map(|_| Vec::new()).collect();
    if let Some(first) = work.first_mut() {
        first.push(Item { trace: Arc::from([]), len: 0, other: TaskId::MAX, graph: 0, tries: 0 });
    }
    work
}

impl Bounded {
    pub(crate) fn new(cost: Cost, bound: u32, cached: bool) -> Self {
        let work = first(bound);
        Self {
            cost,
            cached,
            bound,
            work,
            level: 0,
            current: None,
            levels: vec![Level::default(); bound as usize + 1],
            found: None,
            class: None,
            other: None,
            all: false,
            classes: std::collections::BTreeMap::new(),
            graphs: None,
            executions: 0,
            allowance: u64::MAX,
            diverged: 0,
            held_back: false,
            strays: 0,
            deadline: None,
            most_preemptions: None,
            waiting: 1,
            no_room: None,
            known: HashKeyed::default(),
            leaves_at_once: !cached,
        }
    }

    /// Begins again, and leaves tasks before they did anything.
    fn begin_again(&mut self) {
        self.leaves_at_once = true;
        self.work = first(self.bound);
        self.level = 0;
        self.levels.fill(Level::default());
        self.waiting = 1;
        self.no_room = None;
        self.classes.clear();
        if let Some(graphs) = &mut self.graphs {
            graphs.clear();
        }
    }

    /// Executions with at most so many preemptions, those first that leave the deterministic scheduler at the fewest places.
    pub(crate) fn few_places(most_preemptions: u32, places: u32) -> Self {
        let mut few = Self::new(Cost::Preemptions, places, false);
        few.most_preemptions = Some(most_preemptions);
        few
    }

    /// Whether choices were left out because there was no room for them.
    pub(crate) fn is_full(&self) -> bool {
        self.no_room.is_some()
    }

    /// The highest bound up to which nothing is left, if any.
    pub(crate) fn complete(&self) -> Option<u32> {
        let complete = self.levels.iter().take_while(|level| level.complete).count();
        let complete = complete.min(self.no_room.unwrap_or(usize::MAX));
        if self.diverged > 0 { None } else { (complete as u32).checked_sub(1) }
    }
}

impl Strategy for Bounded {
    fn known(&mut self) -> Option<&mut HashKeyed<u32>> {
        Some(&mut self.known)
    }

    fn next(&mut self) -> Option<Plan> {
        if (self.found.is_some() && !self.all) || self.allowance == 0 {
            return None;
        }
        if self.deadline.is_some_and(|end| std::time::Instant::now() >= end) {
            return None;
        }
        let item = loop {
            let level = self.work.get_mut(self.level)?;
            match level.pop() {
                Some(item) => {
                    self.waiting -= 1;
                    break item;
                }
                None => {
                    self.levels[self.level].complete = self.no_room.is_none_or(|from| self.level < from);
                    self.level += 1;
                }
            }
        };
        let other = (item.other != TaskId::MAX).then_some(item.other);
        let guide = Guide::Prefix {
            trace: Arc::clone(&item.trace),
            len: item.len as usize,
            other,
            graph: item.graph,
        };
        self.current = Some((item, self.level));
        Some(Plan {
            cost: self.cost,
            cached: self.cached,
            expands: true,
            leaves_at_once: self.leaves_at_once,
            ..Plan::by(guide)
        })
    }

    fn done(&mut self, world: &World, ended: Ended) {
        let Some((mut item, level)) = self.current.take() else { return };
        if ended.diverged {
            // A stray event may be gone the next time, if there are few; else nothing can be promised of what would have come after.
            item.tries += 1;
            self.strays += 1;
            if item.tries < 2 && self.strays <= MOST_STRAYS {
                self.waiting += 1;
                self.work[level].push(item);
            } else {
                self.diverged += 1;
            }
            return;
        }
        self.held_back |= ended.held_back;
        self.executions += 1;
        self.allowance -= 1;
        let too_few = self.cost == Cost::Delays && !self.leaves_at_once && world.has_yielded();
        if too_few && (self.all || ended.failure.is_none()) {
            return self.begin_again();
        }
        let sums = &mut self.levels[level];
        sums.executions += 1;
        // What comes behind a known state is run because that is cheaper than to stop; it is nothing new.
        let known = world.known_from.and_then(|at| world.branches.get(at));
        sums.steps += u64::from(known.map_or(ended.steps, |branch| branch.step()));
        sums.pruned += u64::from(ended.pruned);
        let begin = item.len as usize + usize::from(item.other != TaskId::MAX);
        let until = world.known_from.unwrap_or(world.branches.len());
        let mut trace: Option<Arc<[TaskId]>> = None;
        let mut places = 0;
        for at in 0..until {
            let branch = &world.branches[at];
            let before = places;
            places += u32::from(!branch.by_default);
            if at < begin {
                continue;
            }
            for (delay, other) in world.choices(branch).iter().enumerate().skip(1).rev() {
                let spent = match (self.most_preemptions, self.cost) {
                    (Some(most), _) if branch.spent + branch.preempts(delay) > most => continue,
                    (Some(_), _) => before + 1,
                    (None, Cost::Preemptions) => branch.spent + branch.preempts(delay),
                    (None, Cost::Delays) => branch.spent + delay as u32,
                };
                if spent > self.bound {
                    continue;
                }
                if self.waiting >= MOST_WAITING {
                    let from = spent as usize;
                    self.no_room = Some(self.no_room.map_or(from, |before| before.min(from)));
                    continue;
                }
                self.waiting += 1;
                let trace =
                    trace.get_or_insert_with(|| world.branches.iter().map(|branch| branch.chosen).collect());
                self.work[spent as usize].push(Item {
                    trace: Arc::clone(trace),
                    len: at as u32,
                    other: *other,
                    graph: branch.graph as u64,
                    tries: 0,
                });
            }
        }
        // What comes behind a known state was seen when it was met first, or the cache loses it.
        if let Some(graphs) = &mut self.graphs
            && ended.failure.is_none()
            && !ended.pruned
        {
            graphs.insert(ended.graph);
        }
        if let Some(failure) = &ended.failure {
            let class = failure.class();
            if self.class.as_ref().is_none_or(|wanted| *wanted == class) {
                if self.all && !ended.pruned {
                    let least = self.classes.entry(class).or_insert(level as u32);
                    *least = (*least).min(level as u32);
                }
                if self.found.is_none() {
                    self.found = Some(Found::new(world, &ended, failure.clone(), self.executions));
                }
            } else if self.other.is_none() {
                self.other = Some((failure.clone(), ended.preemptions));
            }
        }
    }
}

/// Random executions: at each point a task is chosen with a weight of the operations that it has left, as the first executions show them. This
/// makes all interleavings about equally likely (URW, "Selectively Uniform Concurrency Testing", ASPLOS 2025).
pub(crate) struct Random {
    pub(crate) seed: u64,
    weighted: bool,
    weights: Option<Arc<HashKeyed<u32>>>,
    pub(crate) found: Option<Found>,
    pub(crate) executions: u64,
    pub(crate) steps: u64,
    pub(crate) allowance: u64,
    pub(crate) deadline: Option<std::time::Instant>,
    /// A round that may be endless.
    round: Option<(Arc<[TaskId]>, usize)>,
    /// Rounds that were tried.
    tried: u64,
}

/// So many random executions are looked through for rounds that come again.
const LOOKED_THROUGH: u64 = 512;
/// So many executions show how many operations each task has.
const ESTIMATES: u64 = 32;
/// So many rounds are tried.
const ROUNDS_TRIED: u64 = 64;

impl Random {
    pub(crate) fn new(seed: u64, weighted: bool) -> Self {
        Self {
            seed,
            weighted,
            weights: None,
            found: None,
            executions: 0,
            steps: 0,
            allowance: u64::MAX,
            deadline: None,
            round: None,
            tried: 0,
        }
    }
}

impl Strategy for Random {
    fn next(&mut self) -> Option<Plan> {
        if self.found.is_some() || self.allowance == 0 {
            return None;
        }
        if self.deadline.is_some_and(|end| std::time::Instant::now() >= end) {
            return None;
        }
        if let Some((trace, from)) = self.round.clone() {
            let guide = Guide::Round { trace, from };
            let cost = Cost::Preemptions;
            return Some(Plan { cost, log: true, compares: true, ..Plan::by(guide) });
        }
        let state = self.seed.wrapping_add(self.executions.wrapping_mul(0x2545_F491_4F6C_DD1D));
        // A task whose operations were counted while it gave up early would hardly ever run on: every second execution goes without weights.
        let weights = self.weights.clone().filter(|_| self.executions.is_multiple_of(2));
        // What is done after several yields in a row is done in unfair executions only.
        let unfair = self.executions % 4 == 3;
        let guide = Guide::Random { state, weights, unfair };
        let compares = !unfair && self.executions < LOOKED_THROUGH && self.tried < ROUNDS_TRIED;
        Some(Plan { compares, ..Plan::by(guide) })
    }

    fn done(&mut self, world: &World, ended: Ended) {
        if self.round.take().is_some() {
            self.tried += 1;
        } else if ended.failure.is_none() && self.tried < ROUNDS_TRIED {
            self.round = world.round();
        }
        self.executions += 1;
        self.steps += u64::from(ended.steps);
        self.allowance -= 1;
        if self.weighted && self.executions <= ESTIMATES {
            let mut most = self.weights.take().map_or_else(HashKeyed::default, |weights| (*weights).clone());
            for (task, operations) in world.weights() {
                let known = most.entry(task).or_default();
                *known = (*known).max(operations);
            }
            self.weights = Some(Arc::new(most));
        }
        if let Some(failure) = &ended.failure {
            self.found = Some(Found::new(world, &ended, failure.clone(), self.executions));
        }
    }
}

/// One execution by a plan, and what it left.
pub(crate) struct Single<R> {
    plan: Option<Plan>,
    #[allow(clippy::type_complexity, reason = "it is called once")]
    look: Option<Box<dyn FnOnce(&World, Ended) -> R + Send>>,
    pub(crate) result: Option<R>,
}

impl<R> Single<R> {
    pub(crate) fn new(plan: Plan, look: impl FnOnce(&World, Ended) -> R + Send + 'static) -> Self {
        Self { plan: Some(plan), look: Some(Box::new(look)), result: None }
    }
}

impl<R: Send> Strategy for Single<R> {
    fn next(&mut self) -> Option<Plan> {
        self.plan.take()
    }

    fn done(&mut self, world: &World, ended: Ended) {
        self.result = self.look.take().map(|look| look(world, ended));
    }
}

/// Whether the same choices lead to the same operations: two executions are compared.
pub(crate) struct Twice {
    left: u8,
    first: Option<(Vec<String>, String)>,
    pub(crate) differs: Option<FailureKind>,
}

impl Twice {
    pub(crate) fn new() -> Self {
        Self { left: 2, first: None, differs: None }
    }
}

impl Strategy for Twice {
    fn next(&mut self) -> Option<Plan> {
        self.left = self.left.checked_sub(1)?;
        let guide = Guide::Random { state: 7, weights: None, unfair: false };
        Some(Plan { log: true, ..Plan::by(guide) })
    }

    fn done(&mut self, world: &World, ended: Ended) {
        let end = ended.failure.map_or_else(|| "nothing fails".to_owned(), |failure| failure.class());
        let steps: Vec<String> = world
            .steps
            .iter()
            .map(|step| {
                let what = format!("{} {}", step.op.kind.word(), world.touched(&step.op));
                format!("{} does {} at {}", world.name(step.task), what.trim_end(), step.op.at)
            })
            .collect();
        let Some((first, first_end)) = &self.first else {
            self.first = Some((steps, end));
            return;
        };
        let at = first.iter().zip(&steps).position(|(a, b)| a != b);
        let at = at.or_else(|| (first.len() != steps.len()).then(|| first.len().min(steps.len())));
        if let Some(at) = at {
            let told =
                |steps: &[String]| steps.get(at).cloned().unwrap_or_else(|| "nothing follows".to_owned());
            let message = format!(
                "after the same {at} steps, {} in one execution and {} in another; time, hash order, addresses, statics and threads of the operating \
                 system differ from run to run",
                told(first),
                told(&steps)
            );
            self.differs = Some(FailureKind::Nondeterministic { message });
        } else if *first_end != end {
            let message = format!(
                "two executions of the same steps end in two ways, one so: {first_end}; the other so: {end}; what a static keeps from one execution \
                 to the next differs, and so do time and addresses"
            );
            self.differs = Some(FailureKind::Nondeterministic { message });
        }
    }
}

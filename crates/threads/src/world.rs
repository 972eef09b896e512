//! One execution: its tasks, its resources, what is enabled, and who goes next.
//!
//! Every operation is announced before it happens. At that point the world decides who goes next; only if that is another task is the stack
//! switched. An operation that cannot complete is not enabled, so what is chosen always completes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::failure::{Failure, FailureKind, Held, Waits};
use crate::fair::{Fair, Tasks};
use crate::hash::{HashKeyed, HashSet, mix, of_text};
use std::time::Duration;

use crate::locals::Locals;
use crate::log::{Followed, Log, Logged};
use crate::op::{Kind, NOWHERE, Op, Place, ResourceId, ResourceKind, Tag, TaskId};
use crate::recheck::Enumeration;
pub(crate) use crate::summary::Cost;

/// A task.
#[derive(Debug)]
pub(crate) struct Task {
    /// The same in every execution, whatever was spawned before it.
    pub(crate) birth: u128,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) parent: TaskId,
    /// Which child of its parent it is, counted from 1.
    ordinal: u32,
    children: u32,
    /// The hash of all that happened before its last operation, and of that operation.
    hash: u128,
    pub(crate) pending: Op,
    pub(crate) finished: bool,
    /// Its own operations so far.
    pub(crate) ops: u32,
    token: bool,
    holds: Vec<(ResourceId, Place)>,
    /// What is left of its operations and its children's, after an estimate.
    left: i64,
    late_steps: u32,
    late_yields: u32,
    /// Whether it woke up at a condition variable and has not taken the lock again.
    woke: bool,
    /// The step in which it last began to wait at a condition variable.
    waits_since: u32,
    pub(crate) locals: Locals,
    /// How far its own clock went on.
    pub(crate) clock: Duration,
}

/// A shared object.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) kind: ResourceKind,
    pub(crate) made: Place,
    pub(crate) name: Option<&'static str>,
    written: u128,
    read: u128,
    pub(crate) holder: Option<TaskId>,
    pub(crate) readers: Vec<TaskId>,
    /// The reader that can become the writer without giving the lock back.
    pub(crate) upgrader: Option<TaskId>,
    /// Writers that came while somebody read: new readers have to wait until those that read have left.
    pub(crate) queued: Tasks,
    /// The tasks that wait at a condition variable, and for each signal that nobody consumed those that may.
    waiting: Tasks,
    signals: Vec<Tasks>,
    last_notify: Option<(u32, TaskId, Place)>,
    /// The last task that took a signal.
    last_woken: Option<TaskId>,
    /// Entries of a channel, arrivals at a barrier, permits.
    pub(crate) count: u32,
    pub(crate) capacity: u32,
    /// Generations of a barrier, things taken out of a channel.
    pub(crate) generation: u32,
    /// Senders of a channel.
    pub(crate) senders: u32,
    /// The receiver is gone, the initialization runs.
    pub(crate) busy: bool,
}

impl Resource {
    fn new(kind: ResourceKind, made: Place, name: Option<&'static str>) -> Self {
        Self {
            kind,
            made,
            name,
            written: 1,
            read: 0,
            holder: None,
            readers: Vec::new(),
            upgrader: None,
            queued: Tasks::default(),
            waiting: Tasks::default(),
            signals: Vec::new(),
            last_notify: None,
            last_woken: None,
            count: 0,
            capacity: u32::MAX,
            generation: 0,
            senders: 0,
            busy: false,
        }
    }
}

impl Resource {
    /// Whether a reader may come in: nobody writes, and no writer waits until those that read have left. So do the locks of the standard library
    /// on Linux and of `parking_lot`; that others let readers in all the same is the same as a writer that comes later.
    pub(crate) fn lets_readers_in(&self) -> bool {
        self.holder.is_none() && (self.readers.is_empty() || self.queued.is_empty())
    }

    /// Whether a task may come to write, or to wait for those that read.
    fn may_try_to_write(&self, task: TaskId) -> bool {
        self.holder.is_none() && (self.readers.is_empty() || !self.queued.has(task))
    }
}

/// A point at which more than one task could go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    pub(crate) chosen: TaskId,
    pub(crate) current: TaskId,
    /// Whether the current task could go on and did not yield: leaving it is a preemption.
    pub(crate) stays: bool,
    /// Where the enabled tasks begin in the pool, in the order of the deterministic scheduler, how many there are, and from which on they have
    /// to let others go first.
    begin: u32,
    len: u16,
    held: u16,
    /// Whether the choice counts as a preemption.
    preempted: bool,
    /// What was spent before.
    pub(crate) spent: u32,
    /// The hash of what happened before.
    pub(crate) graph: u128,
    /// The current task's own operations before.
    pub(crate) ops: u32,
    /// Whether the deterministic scheduler would have chosen the same.
    pub(crate) by_default: bool,
    /// Steps before.
    step: u32,
}

impl Branch {
    /// What the choice at this place in the order costs, where preemptions are counted: to leave a task that could go on is one, and so is to
    /// go on with one that has to let others go first.
    pub(crate) fn preempts(&self, choice: usize) -> u32 {
        u32::from((self.stays && choice > 0) || choice >= usize::from(self.held))
    }

    /// Steps before it.
    pub(crate) fn step(&self) -> u32 {
        self.step
    }
}

/// A step, for reports.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) task: TaskId,
    pub(crate) op: Op,
    /// What it came to, of an operation that may come to several things.
    pub(crate) came_to: Option<&'static str>,
    /// Why this task ran, if it is not the one before: see [`Why`].
    pub(crate) why: Option<Why>,
    pub(crate) holds: Vec<ResourceId>,
}

/// Why another task goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The one before could have gone on.
    Preempt,
    /// The one before has to wait.
    Block,
    /// The one before yielded, or has to let others go first.
    Yield,
    /// This one yielded again and others wait, and goes on all the same: it counts as a preemption.
    Unfair,
    /// The one before ended.
    End,
}

impl Why {
    /// The word in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Why::Preempt => "preempt",
            Why::Block => "block",
            Why::Yield => "yield",
            Why::Unfair => "unfair",
            Why::End => "end",
        }
    }
}

/// A switch of tasks that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Directive {
    /// After so many operations of this task,
    pub(crate) after: (u128, u32),
    /// this one goes on.
    pub(crate) to: u128,
}

/// The number of the task with this path.
pub(crate) fn born(path: &str) -> Option<u128> {
    let first = of_text("main");
    if path.is_empty() {
        return Some(first);
    }
    path.split('.')
        .try_fold(first, |birth, child| child.parse::<u32>().ok().map(|child| mix(birth, u128::from(child))))
}

/// Directives as what guides an execution.
pub(crate) fn directed<'a>(directives: impl IntoIterator<Item = &'a Directive>) -> Guide {
    let one = |directive: &Directive| (mix(directive.after.0, u128::from(directive.after.1)), directive.to);
    Guide::Directed(Arc::new(directives.into_iter().map(one).collect()))
}

/// What decides.
#[derive(Clone, Debug)]
pub(crate) enum Guide {
    /// The first choices of an earlier execution, then another one, then the deterministic scheduler.
    Prefix { trace: Arc<[TaskId]>, len: usize, other: Option<TaskId>, graph: u64 },
    /// Chance, weighted by the operations that are left to each task, where known.
    Random { state: u64, weights: Option<Arc<HashKeyed<u32>>>, unfair: bool },
    /// The deterministic scheduler, but for these.
    Directed(Arc<HashKeyed<u128>>),
    /// The choices of an earlier execution, and then those from a place on again and again.
    Round { trace: Arc<[TaskId]>, from: usize },
    /// The operations of a log, as far as they go.
    Logged(Arc<Log>),
    /// Who enumerates all executions on its own.
    Enumerated(Arc<Mutex<Enumeration>>),
    /// The scheduler of shuttle that runs the test without ours.
    Guest,
}

impl Guide {
    /// Whether a task may go on that has to let others go first. It never may where rounds without end are looked for: unfair ones are none.
    fn offers_unfair(&self) -> bool {
        match self {
            Guide::Random { unfair, .. } => *unfair,
            Guide::Round { .. } | Guide::Guest => false,
            Guide::Prefix { .. } | Guide::Directed(_) | Guide::Logged(_) | Guide::Enumerated(_) => true,
        }
    }
}

/// What says how the next execution is to go, and learns from the last.
pub(crate) trait Strategy: Send {
    /// The next one, if there is to be any.
    fn next(&mut self) -> Option<Plan>;
    /// What became of it.
    fn done(&mut self, world: &World, ended: Ended);
    /// The states that are known, which the world keeps while executions run.
    fn known(&mut self) -> Option<&mut HashKeyed<u32>> {
        None
    }
}

/// How one execution is to go.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) guide: Guide,
    pub(crate) cost: Cost,
    pub(crate) cached: bool,
    /// Whether each step is kept.
    pub(crate) log: bool,
    /// Whether the choices are kept for what follows from them.
    pub(crate) expands: bool,
    /// Whether it is looked for places that look alike.
    pub(crate) compares: bool,
    /// Whether a task may be left before it did anything, which most often comes to the same as not to choose it.
    pub(crate) leaves_at_once: bool,
}

/// The most steps of an execution that are kept for reports.
const MOST_STEPS_KEPT: usize = 1 << 20;

impl Plan {
    /// One that does no more than to follow its guide.
    pub(crate) fn by(guide: Guide) -> Self {
        Self {
            guide,
            cost: Cost::Preemptions,
            cached: false,
            log: false,
            expands: false,
            compares: false,
            leaves_at_once: false,
        }
    }
}

/// What a place in an execution looks like: where each task is, and who holds what. Values of the program are not in it.
#[derive(Clone, Copy, Debug)]
struct Look {
    looks: u128,
    /// Tasks that ran since the branch before, that yielded, and that could have run; only of the first 64.
    ran: u64,
    yielded: u64,
    could: u64,
}

/// How far an execution may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: u32,
    pub(crate) idle: u32,
}

/// Where an execution ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) failure: Option<Failure>,
    pub(crate) steps: u32,
    pub(crate) preemptions: u32,
    pub(crate) delays: u32,
    /// The hash of the whole graph, where the execution ended by itself and was not cut.
    pub(crate) graph: u128,
    pub(crate) pruned: bool,
    /// Another operation than before came after the same choices.
    pub(crate) diverged: bool,
    /// A task that yielded again had to let others go first, or it counted as a preemption that it did not.
    pub(crate) held_back: bool,
    /// Directives that were not reached, or whose task was not enabled.
    pub(crate) ignored: usize,
    pub(crate) tasks: usize,
}

/// The state of the execution that runs on this thread of the operating system.
pub(crate) struct World {
    pub(crate) active: bool,
    pub(crate) execution: u32,
    pub(crate) tasks: Vec<Task>,
    live: Vec<TaskId>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) current: TaskId,
    pub(crate) chosen: Option<TaskId>,
    pub(crate) stopped: bool,
    scratch: Vec<TaskId>,
    plan: Plan,
    limits: Limits,
    pub(crate) branches: Vec<Branch>,
    pool: Vec<TaskId>,
    /// From this branch on nothing follows that is not known.
    pub(crate) known_from: Option<usize>,
    graph: u128,
    fair: Fair,
    pub(crate) cache: HashKeyed<u32>,
    pub(crate) cache_limit: usize,
    order: u128,
    why: Option<Why>,
    idle: u32,
    followed: usize,
    pub(crate) ended: Ended,
    pub(crate) steps: Vec<Step>,
    looks: Vec<Look>,
    ran: u64,
    yielded: u64,
    pub(crate) heart: Option<Arc<Heart>>,
    /// A panic that is on its way up.
    pub(crate) panicked: Option<(String, String)>,
    /// All panics so far, the last few of them: text and place. What is caught may be passed on later.
    pub(crate) panics: Vec<(String, String)>,
    /// What tasks have that came to no end: it is dropped when nothing runs.
    pub(crate) orphans: Vec<Locals>,
    /// What a task that changes nothing was seen to do.
    seen: HashSet,
    /// The operations of the log that were followed, and what the resources of the test are called there.
    logged: usize,
    called: HashMap<ResourceId, String>,
    parted: Option<String>,
    /// Whom the log wants next.
    wanted: Option<TaskId>,
    /// Whom shuttle was told to run, at each of its points, where steps are kept.
    pub(crate) turns: Vec<TaskId>,
}

/// What another thread sees of the execution.
#[derive(Debug, Default)]
pub(crate) struct Heart {
    pub(crate) beats: AtomicU64,
    /// The last step, where steps are kept.
    pub(crate) last: Mutex<Option<(String, Kind, Place)>>,
}

static EXECUTIONS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    pub(crate) static WORLD: RefCell<World> = RefCell::new(World::new());
}

/// What a task does after it announced an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It goes on.
    Go,
    /// It gives way to whom the world has chosen.
    Switch,
}

fn here() -> Place {
    std::panic::Location::caller()
}

impl World {
    fn new() -> Self {
        Self {
            active: false,
            execution: 0,
            tasks: Vec::new(),
            live: Vec::new(),
            resources: Vec::new(),
            current: 0,
            chosen: None,
            stopped: false,
            scratch: Vec::new(),
            plan: Plan::by(Guide::Directed(Arc::default())),
            limits: Limits { steps: 20_000, idle: 1_000 },
            branches: Vec::new(),
            pool: Vec::new(),
            known_from: None,
            graph: 0,
            fair: Fair::default(),
            cache: HashKeyed::default(),
            cache_limit: 1 << 22,
            order: 0,
            why: None,
            idle: 0,
            followed: 0,
            ended: Ended::default(),
            steps: Vec::new(),
            looks: Vec::new(),
            ran: 0,
            yielded: 0,
            heart: None,
            panicked: None,
            panics: Vec::new(),
            orphans: Vec::new(),
            seen: HashSet::default(),
            logged: 0,
            called: HashMap::new(),
            parted: None,
            wanted: None,
            turns: Vec::new(),
        }
    }

    /// Begins an execution.
    pub(crate) fn begin(&mut self, plan: Plan, limits: Limits) {
        self.active = true;
        self.execution = EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        self.tasks.clear();
        self.live.clear();
        self.resources.clear();
        self.current = 0;
        self.chosen = None;
        self.stopped = false;
        self.plan = plan;
        self.limits = limits;
        self.branches.clear();
        self.pool.clear();
        self.known_from = None;
        self.graph = 0;
        self.fair.reset();
        self.order = 0;
        self.why = None;
        self.idle = 0;
        self.followed = 0;
        self.ended = Ended::default();
        self.steps.clear();
        self.looks.clear();
        (self.ran, self.yielded) = (0, 0);
        self.panicked = None;
        self.panics.clear();
        self.logged = 0;
        self.called.clear();
        self.parted = None;
        self.wanted = None;
        self.turns.clear();
        if let Some(heart) = &self.heart {
            heart.beats.fetch_add(1, Ordering::Relaxed);
        }
        self.add(of_text("main"), Some("main".into()), 0, 0, here());
    }

    fn add(
        &mut self,
        birth: u128,
        name: Option<Arc<str>>,
        parent: TaskId,
        ordinal: u32,
        at: Place,
    ) -> TaskId {
        let id = self.tasks.len() as TaskId;
        let left = match &self.plan.guide {
            Guide::Random { weights: Some(weights), .. } => {
                i64::from(weights.get(&birth).copied().unwrap_or(1))
            }
            _ => 0,
        };
        self.order = mix(self.order, birth);
        self.graph = self.graph.wrapping_add(mix(birth, birth));
        self.tasks.push(Task {
            birth,
            name,
            parent,
            ordinal,
            children: 0,
            hash: birth,
            pending: Op { kind: Kind::Start, at, on: NOWHERE, aux: 0 },
            finished: false,
            ops: 0,
            token: false,
            holds: Vec::new(),
            left,
            late_steps: 0,
            late_yields: 0,
            woke: false,
            waits_since: 0,
            locals: Locals::default(),
            clock: Duration::ZERO,
        });
        self.live.push(id);
        id
    }

    /// A child of the task that runs. The caller has made the step.
    pub(crate) fn spawn(&mut self, name: Option<String>, at: Place) -> Option<TaskId> {
        if self.tasks.len() >= usize::from(TaskId::MAX) {
            return None;
        }
        let parent = &mut self.tasks[usize::from(self.current)];
        parent.children += 1;
        let birth = mix(parent.birth, u128::from(parent.children));
        let ordinal = parent.children;
        let hash = parent.hash;
        let child = self.add(birth, name.map(Into::into), self.current, ordinal, at);
        self.idle = 0;
        let left = self.tasks[usize::from(child)].left;
        self.tasks[usize::from(self.current)].left -= left;
        let child_hash = mix(hash, birth);
        self.hashed(child, child_hash);
        Some(child)
    }

    /// The name of a task: its own, or its place among the children of the task that spawned it.
    pub(crate) fn name(&self, task: TaskId) -> String {
        let Some(found) = self.tasks.get(usize::from(task)) else { return format!("task {task}") };
        match &found.name {
            Some(name) if task == 0 => name.to_string(),
            Some(name) => {
                let same = self.tasks[..usize::from(task)].iter().filter(|t| t.name.as_ref() == Some(name));
                match same.count() {
                    0 => name.to_string(),
                    n => format!("{name}#{}", n + 1),
                }
            }
            None if found.parent == 0 => format!("task {}", found.ordinal),
            None => format!("{}.{}", self.name(found.parent), found.ordinal),
        }
    }

    /// A resource as people call it.
    pub(crate) fn resource_name(&self, id: ResourceId) -> String {
        let Some(resource) = self.resources.get(id as usize) else { return String::new() };
        let same = |other: &&Resource| match resource.name {
            Some(name) => other.name == Some(name),
            // Its name says the line, and there may be several in one.
            None => {
                let (one, two) = (other.made, resource.made);
                let here = one.file() == two.file() && one.line() == two.line();
                other.name.is_none() && here && other.kind == resource.kind
            }
        };
        let all = self.resources.iter().filter(same).count();
        let before = self.resources[..id as usize].iter().filter(same).count();
        let mut text = match resource.name {
            Some(name) => name.to_owned(),
            None => {
                let file = resource.made.file();
                let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
                format!("{} of {file}:{}", resource.kind.word(), resource.made.line())
            }
        };
        if all > 1 {
            text.push_str(&format!("#{}", before + 1));
        }
        text
    }

    fn hashed(&mut self, task: TaskId, hash: u128) {
        let task = &mut self.tasks[usize::from(task)];
        self.graph = self.graph.wrapping_sub(mix(task.hash, task.birth)).wrapping_add(mix(hash, task.birth));
        task.hash = hash;
    }

    /// The resource of an object, registered at its first use.
    pub(crate) fn resource(&mut self, tag: &Tag, kind: ResourceKind) -> ResourceId {
        if let Some(id) = tag.id_in(self.execution) {
            return id;
        }
        let id = self.resources.len() as ResourceId;
        self.resources.push(Resource::new(kind, tag.made, tag.name));
        tag.set(self.execution, id);
        id
    }

    pub(crate) fn of(&mut self, id: ResourceId) -> &mut Resource {
        &mut self.resources[id as usize]
    }

    /// A node of the graph that changes a resource: it comes after all earlier ones of it, and before all later ones.
    pub(crate) fn writes(&mut self, id: ResourceId) {
        let task = self.current;
        let of = &self.tasks[usize::from(task)];
        let resource = &mut self.resources[id as usize];
        let node = mix(mix(of.hash, resource.written), resource.read);
        resource.written = node;
        resource.read = 0;
        self.hashed(task, node);
        self.idle = 0;
    }

    /// A node that only looks: it commutes with others that only look.
    pub(crate) fn reads(&mut self, id: ResourceId) {
        let task = self.current;
        let of = &self.tasks[usize::from(task)];
        let resource = &mut self.resources[id as usize];
        let node = mix(of.hash, resource.written ^ 5);
        resource.read = resource.read.wrapping_add(mix(node, 7));
        self.hashed(task, node);
    }

    /// A node of another task's end in this one's past.
    pub(crate) fn joins(&mut self, other: TaskId) {
        let node = mix(self.tasks[usize::from(self.current)].hash, self.tasks[usize::from(other)].hash);
        self.hashed(self.current, node);
        self.idle = 0;
    }

    /// A node that only looks at another task.
    pub(crate) fn looks_at(&mut self, other: TaskId) {
        // Later than the other's last step, earlier than its next one: both know of it.
        let node = mix(self.tasks[usize::from(self.current)].hash, self.tasks[usize::from(other)].hash ^ 17);
        self.hashed(self.current, node);
        let after = mix(self.tasks[usize::from(other)].hash, node);
        self.hashed(other, after);
    }

    pub(crate) fn enabled(&self, task: TaskId) -> bool {
        let op = &self.tasks[usize::from(task)].pending;
        let resource = || &self.resources[op.on as usize];
        match op.kind {
            Kind::Lock => resource().holder.is_none(),
            Kind::Read => resource().lets_readers_in(),
            Kind::ReadRecursive => resource().holder.is_none(),
            Kind::UpgradableRead => resource().upgrader.is_none() && resource().lets_readers_in(),
            Kind::Write => resource().upgrader.is_none() && resource().may_try_to_write(task),
            Kind::Upgrade => resource().may_try_to_write(task),
            Kind::Wake => resource().signals.iter().any(|signal| signal.has(task)),
            Kind::Join => self.tasks[op.aux as usize].finished,
            Kind::Park => self.tasks[usize::from(task)].token,
            Kind::Pass => resource().generation != op.aux,
            Kind::OnceBegin => !resource().busy,
            Kind::OnceWait => op.aux == 1 || resource().count == 1 || (resource().count == 2 && op.aux == 0),
            Kind::Send => resource().busy || resource().count < resource().capacity.max(1),
            Kind::SendTaken => resource().busy || resource().generation > op.aux,
            Kind::Recv => resource().count > 0 || resource().senders == 0,
            Kind::Poll => resource().count > 0,
            _ => true,
        }
    }

    /// The task that runs announces what it does next.
    pub(crate) fn announce(&mut self, op: Op) -> Next {
        let current = self.current;
        self.tasks[usize::from(current)].pending = op;
        if self.is_guest() {
            return Next::Switch;
        }
        self.decide();
        match self.chosen {
            // Where steps are kept, each is a point of shuttle's too, so that its own schedule can be told.
            Some(chosen) if chosen == current && !self.stopped && !self.tells_turns() => {
                self.chosen = None;
                Next::Go
            }
            _ => Next::Switch,
        }
    }

    /// Whether all tasks have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether shuttle decides who goes next.
    pub(crate) fn is_guest(&self) -> bool {
        matches!(self.plan.guide, Guide::Guest)
    }

    /// Whether each operation is a point of shuttle's.
    pub(crate) fn tells_turns(&self) -> bool {
        self.plan.log && matches!(self.plan.guide, Guide::Directed(_))
    }

    /// Whether the execution of a guest can go on; fails if not.
    pub(crate) fn looks_for_an_end(&mut self) {
        if self.stopped || self.live.is_empty() {
            return;
        }
        let current = self.current;
        if !self.live.iter().any(|task| self.enabled(*task)) {
            let waits = self.waits();
            self.fail(FailureKind::Deadlock { waits });
        } else if self.ended.steps >= self.limits.steps {
            let kind = self.without_end();
            self.fail(kind);
        } else if !self.tasks[usize::from(current)].finished
            && self.idle > self.limits.idle
            && !self.others(current).is_empty()
        {
            let kind = self.hog(current);
            self.fail(kind);
        }
    }

    /// The operation of the task that runs happens now.
    pub(crate) fn happens(&mut self) -> Op {
        let current = self.current;
        let task = &mut self.tasks[usize::from(current)];
        let op = task.pending;
        let place = u128::from(op.at.line()) << 40 | u128::from(op.at.column()) << 20 | op.kind as u128;
        task.ops += 1;
        task.left -= 1;
        task.woke = matches!(op.kind, Kind::Wake | Kind::WakeOrTimeOut);
        self.ended.steps += 1;
        if self.ended.steps > self.limits.steps / 2 {
            task.late_steps += 1;
            task.late_yields += u32::from(op.kind.yields());
        }
        let hash = mix(task.hash, place);
        if self.plan.compares && current < 64 {
            self.ran |= 1 << current;
            self.yielded |= u64::from(op.kind.yields()) << current;
        }
        if let Some(heart) = &self.heart {
            heart.beats.fetch_add(1, Ordering::Relaxed);
        }
        if self.plan.log && self.steps.len() < MOST_STEPS_KEPT {
            let holds = task.holds.iter().map(|(id, _)| *id).collect();
            self.steps.push(Step { task: current, op, came_to: None, why: self.why.take(), holds });
            self.tells_heart(current, op.kind, op.at);
        }
        let half = self.limits.idle / 2;
        if op.kind.yields() {
            self.idle = 0;
        } else if self.idle <= half {
            self.seen.clear();
            self.idle += 1;
        } else if !self.seen.insert(mix(place, u128::from(op.on) + 1)) {
            // Who looks at one thing after the other goes on; who comes back to what it did goes round.
            self.idle += 1;
        }
        self.hashed(current, hash);
        op
    }

    /// Says what the last operation came to.
    pub(crate) fn came_to(&mut self, what: &'static str) {
        if self.plan.log
            && let Some(last) = self.steps.last_mut()
        {
            last.came_to = Some(what);
        }
    }

    /// Lets another thread know who did what last.
    fn tells_heart(&self, task: TaskId, kind: Kind, at: Place) {
        if let Some(mut last) = self.heart.as_ref().and_then(|heart| heart.last.lock().ok()) {
            *last = Some((self.name(task), kind, at));
        }
    }

    /// The task that runs begins.
    pub(crate) fn begins(&mut self) {
        let current = self.current;
        let hash = mix(self.tasks[usize::from(current)].hash, 3);
        self.hashed(current, hash);
        if self.plan.log {
            self.tells_heart(current, Kind::Start, self.tasks[usize::from(current)].pending.at);
        }
    }

    /// The task that runs is at its end.
    pub(crate) fn finish(&mut self) {
        let current = self.current;
        let task = &mut self.tasks[usize::from(current)];
        task.finished = true;
        let hash = mix(task.hash, 11);
        self.hashed(current, hash);
        if let Some(at) = self.live.iter().position(|task| *task == current) {
            self.live.remove(at);
        }
        if self.live.is_empty() {
            self.ended.graph = self.graph;
        }
        self.idle = 0;
    }

    pub(crate) fn fail(&mut self, kind: FailureKind) {
        if self.ended.failure.is_none() {
            self.ended.failure = Some(Failure::new(kind));
        }
        self.stopped = true;
    }

    /// Chooses who goes next.
    pub(crate) fn decide(&mut self) {
        if self.stopped {
            return;
        }
        let current = self.current;
        let mut enabled = std::mem::take(&mut self.scratch);
        enabled.clear();
        enabled.extend(self.live.iter().copied().filter(|task| self.enabled(*task)));
        self.choose(current, &mut enabled);
        self.scratch = enabled;
    }

    fn choose(&mut self, current: TaskId, enabled: &mut Vec<TaskId>) {
        if enabled.is_empty() {
            if !self.live.is_empty() {
                let waits = self.waits();
                self.fail(FailureKind::Deadlock { waits });
            }
            self.stopped = true;
            return;
        }
        let running = !self.tasks[usize::from(current)].finished;
        let kind = self.tasks[usize::from(current)].pending.kind;
        let yields = running && kind.yields();
        if self.ended.steps >= self.limits.steps {
            let kind = self.without_end();
            return self.fail(kind);
        }
        if running && self.idle > self.limits.idle && enabled.len() > 1 {
            let kind = self.hog(current);
            return self.fail(kind);
        }
        let began = running && self.tasks[usize::from(current)].ops == 0;
        // A task that was chosen and did nothing has not run, or it would matter to others that it was left at once.
        if !began || yields {
            self.fair.stepped(current, enabled, yields);
        }
        let could = running && enabled.contains(&current);
        let mut held = self.fair.order(enabled);
        self.ended.held_back |= held < enabled.len();
        if !self.plan.guide.offers_unfair() {
            enabled.truncate(held);
        }
        let stays = could && !yields && enabled[..held].contains(&current);
        let just_began = began && !self.plan.leaves_at_once;
        self.wanted = self.by_log(enabled);
        let chosen = if let [only] = enabled[..] {
            only
        } else if let Guide::Enumerated(all) = &self.plan.guide {
            let chosen = all.lock().unwrap_or_else(PoisonError::into_inner).choose(
                current,
                !running || yields,
                enabled,
                held,
            );
            let Some(chosen) = chosen else {
                self.ended.diverged = true;
                self.stopped = true;
                return;
            };
            chosen
        } else if stays
            && just_began
            && !self.leaves(current)
            && self.wanted.is_none_or(|task| task == current)
        {
            // To leave a task before it did anything is not to choose it, which was tried.
            current
        } else {
            // The order of the deterministic scheduler: this task if it may stay, then round robin.
            let from = if stays { current } else { current + 1 };
            for part in [0..held, held..enabled.len()] {
                let part = &mut enabled[part];
                let at = part.partition_point(|task| *task < from);
                part.rotate_left(at);
            }
            self.branch(current, stays, enabled, held)
        };
        if self.stopped {
            return;
        }
        held = held.min(enabled.len());
        let unfair = enabled[held..].contains(&chosen);
        if unfair {
            self.fair.goes_on(chosen);
        }
        if chosen != current || unfair {
            self.why = Some(if stays {
                Why::Preempt
            } else if unfair {
                Why::Unfair
            } else if !running {
                Why::End
            } else if !could {
                Why::Block
            } else {
                Why::Yield
            });
        }
        if chosen != current {
            self.idle = 0;
        }
        self.current = chosen;
        self.chosen = Some(chosen);
    }

    /// Whether a task has yielded.
    pub(crate) fn has_yielded(&self) -> bool {
        self.fair.active()
    }

    /// Whether a directive says that this task is left now.
    fn leaves(&self, current: TaskId) -> bool {
        let task = &self.tasks[usize::from(current)];
        matches!(&self.plan.guide, Guide::Directed(map) if map.contains_key(&mix(task.birth, u128::from(task.ops))))
    }

    /// The task that a log calls so.
    fn called(&self, log: &Log, name: &str) -> Option<TaskId> {
        let mut all = 0..self.tasks.len() as TaskId;
        if let Some(task) = all.clone().find(|task| self.name(*task) == name) {
            return Some(task);
        }
        let (parent, ordinal) = log.child(name)?;
        let parent = if parent == name { return None } else { self.called(log, parent)? };
        all.find(|task| {
            let found = &self.tasks[usize::from(*task)];
            *task > 0 && found.parent == parent && found.ordinal == ordinal
        })
    }

    /// Whether the next operation of a task is not of those that the log tells.
    fn is_untold(&self, log: &Log, id: TaskId) -> bool {
        let task = &self.tasks[usize::from(id)];
        let name = self.resources.get(task.pending.on as usize).and_then(|resource| resource.name);
        // Who wakes up takes the lock again, and who has waited to write comes again, which many logs do not tell.
        (task.woke && task.pending.kind == Kind::Lock)
            || self.is_queued(id)
            || !log.tells(task.pending.kind, name)
    }

    /// Whether a task has come to write already, and waits for those that read.
    fn is_queued(&self, task: TaskId) -> bool {
        let op = self.tasks[usize::from(task)].pending;
        matches!(op.kind, Kind::Write | Kind::Upgrade)
            && self.resources.get(op.on as usize).is_some_and(|resource| resource.queued.has(task))
    }

    /// Whether the next operation of a task is that of the log.
    fn is_told(&self, log: &Log, entry: &crate::log::Entry, task: TaskId) -> bool {
        let op = self.tasks[usize::from(task)].pending;
        if !entry.kind.fits(op.kind) || self.is_queued(task) {
            return false;
        }
        let Some(on) = &entry.on else { return true };
        match entry.kind {
            Logged::Spawn => true,
            Logged::Join => self.called(log, on).is_none_or(|task| u32::from(task) == op.aux),
            _ => match self.resources.get(op.on as usize) {
                None => true,
                Some(resource) if resource.name.is_some() => {
                    resource.name == Some(on) || self.resource_name(op.on) == *on
                }
                Some(_) => match self.called.get(&op.on) {
                    Some(known) => known == on,
                    None => !self.called.values().any(|known| known == on),
                },
            },
        }
    }

    /// Whom a log wants next: the task of its next operation, or one that has to make way for it.
    fn by_log(&mut self, enabled: &[TaskId]) -> Option<TaskId> {
        let Guide::Logged(log) = &self.plan.guide else { return None };
        let log = Arc::clone(log);
        if self.parted.is_some() {
            return None;
        }
        let entry = log.entries.get(self.logged)?;
        let wanted = self.called(&log, &entry.task);
        let parts = |does: String| Some(format!("{}; the test: {does}", entry.told()));
        if let Some(task) = wanted {
            let known = &self.tasks[usize::from(task)];
            let op = known.pending;
            if known.finished {
                self.parted = parts(format!("{} has ended", self.name(task)));
                return None;
            }
            let told = self.is_told(&log, entry, task);
            if !told && !self.is_untold(&log, task) {
                self.parted = parts(self.doing(task));
                return None;
            }
            if enabled.contains(&task) {
                if told {
                    self.logged += 1;
                    if let (Some(on), Some(resource)) = (&entry.on, self.resources.get(op.on as usize))
                        && resource.name.is_none()
                    {
                        self.called.insert(op.on, on.clone());
                    }
                }
                return Some(task);
            }
        }
        let makes_way = enabled.iter().find(|task| Some(**task) != wanted && self.is_untold(&log, **task));
        if makes_way.is_none() {
            self.parted = parts(match wanted {
                Some(task) => format!("{}, and has to wait", self.doing(task)),
                None => format!("there is no task {} yet", entry.task),
            });
        }
        makes_way.copied()
    }

    /// What an operation is about: another task, or a resource.
    pub(crate) fn touched(&self, op: &Op) -> String {
        match op.kind {
            Kind::Join => self.name(op.aux as TaskId),
            _ => self.resource_name(op.on),
        }
    }

    /// What a task does next, and where.
    fn doing(&self, task: TaskId) -> String {
        let op = self.tasks[usize::from(task)].pending;
        let what = format!("{} {}", op.kind.word(), self.touched(&op));
        format!("{} does {} at {}", self.name(task), what.trim_end(), op.at)
    }

    /// How far the log was followed, in an execution that came to its end or failed.
    pub(crate) fn followed_log(&self, failed: bool) -> Option<Followed> {
        let Guide::Logged(log) = &self.plan.guide else { return None };
        let parted = self.parted.clone().or_else(|| {
            let next = log.entries.get(self.logged).filter(|_| !failed)?;
            Some(format!("{}; the test: it has ended", next.told()))
        });
        Some(Followed { operations: self.logged, all: log.entries.len(), parted })
    }

    fn branch(&mut self, current: TaskId, stays: bool, enabled: &[TaskId], held: usize) -> TaskId {
        let at = self.branches.len();
        let spent = match self.plan.cost {
            Cost::Preemptions => self.ended.preemptions,
            Cost::Delays => self.ended.delays,
        };
        let default = enabled[0];
        if self.plan.compares {
            let could = enabled.iter().filter(|task| **task < 64).fold(0, |set, task| set | 1 << *task);
            let look = Look { looks: self.looks(current), ran: self.ran, yielded: self.yielded, could };
            self.looks.push(look);
            (self.ran, self.yielded) = (0, 0);
        }
        if let Guide::Round { trace, from } = &self.plan.guide {
            let round = trace.len() - from;
            // At the end of a round everything looks as at its beginning, or it is none.
            let before = at.checked_sub(round).and_then(|before| self.looks.get(before));
            let same = at < trace.len()
                || before.zip(self.looks.get(at)).is_some_and(|(before, now)| before.looks == now.looks);
            if !same {
                self.stopped = true;
                return default;
            }
        }
        let ops = self.tasks[usize::from(current)].ops;
        let mut fresh = true;
        let chosen = match &mut self.plan.guide {
            Guide::Prefix { trace, len, other, graph } => {
                if at < *len {
                    fresh = false;
                    trace[at]
                } else if let (true, Some(other)) = (at == *len, *other) {
                    fresh = false;
                    if *graph != self.graph as u64 || !enabled.contains(&other) {
                        self.ended.diverged = true;
                        self.stopped = true;
                        return default;
                    }
                    other
                } else {
                    default
                }
            }
            Guide::Round { trace, from } => match trace.get(at) {
                Some(chosen) => *chosen,
                None => trace[*from + (at - *from) % (trace.len() - *from)],
            },
            Guide::Random { state, weights, .. } => {
                let weigh = |task: &TaskId| match weights {
                    Some(_) => self.tasks[usize::from(*task)].left.max(1) as u64,
                    None => 1,
                };
                let total: u64 = enabled.iter().map(weigh).sum();
                *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                z ^= z >> 31;
                let mut left = z % total.max(1);
                let mut found = default;
                for task in enabled {
                    let weight = weigh(task);
                    if left < weight {
                        found = *task;
                        break;
                    }
                    left -= weight;
                }
                found
            }
            Guide::Logged(_) => self.wanted.unwrap_or(default),
            Guide::Guest | Guide::Enumerated(_) => default,
            Guide::Directed(map) => {
                let task = &self.tasks[usize::from(current)];
                match map.get(&mix(task.birth, u128::from(task.ops))) {
                    Some(to) => {
                        let found = enabled.iter().find(|t| self.tasks[usize::from(**t)].birth == *to);
                        self.followed += usize::from(found.is_some());
                        found.copied().unwrap_or(default)
                    }
                    None => default,
                }
            }
        };
        let Some(delay) = enabled.iter().position(|task| *task == chosen) else {
            self.ended.diverged = true;
            self.stopped = true;
            return default;
        };
        if self.plan.cached && fresh && self.known_from.is_none() {
            let key = self.key(current, stays, enabled);
            let room = self.cache.len() < self.cache_limit;
            match self.cache.get_mut(&key) {
                Some(least) if *least <= spent => {
                    self.known_from = Some(at);
                    self.ended.pruned = true;
                }
                Some(least) => *least = spent,
                None if room => drop(self.cache.insert(key, spent)),
                None => {}
            }
        }
        let begin = self.pool.len() as u32;
        if self.plan.expands {
            self.pool.extend_from_slice(enabled);
        }
        let mut branch = Branch {
            chosen,
            current,
            stays,
            begin,
            held: held as u16,
            preempted: false,
            len: if self.plan.expands { enabled.len() as u16 } else { 0 },
            spent,
            graph: self.graph,
            ops,
            by_default: chosen == default,
            step: self.ended.steps,
        };
        branch.preempted = branch.preempts(delay) > 0;
        self.ended.preemptions += u32::from(branch.preempted);
        self.branches.push(branch);
        self.ended.delays += delay as u32;
        chosen
    }

    /// A number for all that decides what follows.
    fn key(&self, current: TaskId, stays: bool, _enabled: &[TaskId]) -> u128 {
        let birth = |task: TaskId| self.tasks[usize::from(task)].birth;
        // A search that begins again to leave tasks at once knows nothing of what it saw before.
        let mut key = if self.plan.leaves_at_once { !self.graph } else { self.graph };
        if stays {
            key = mix(key, birth(current));
        }
        if self.plan.cost == Cost::Delays {
            key = mix(mix(key, birth(current)), self.order);
        }
        if self.fair.active() {
            key = mix(key, self.fair.key(birth));
        }
        key
    }

    fn looks(&self, current: TaskId) -> u128 {
        let mut sum = mix(u128::from(current), 1);
        for task in &self.live {
            let task = &self.tasks[usize::from(*task)];
            let op = &task.pending;
            let place =
                u128::from(op.at.line()) << 64 | u128::from(op.at.column()) << 40 | u128::from(op.on) << 8;
            let place = place | op.kind as u128;
            sum = sum.wrapping_add(mix(task.birth, mix(place, u128::from(task.token))));
        }
        for (id, resource) in self.resources.iter().enumerate() {
            let holder = resource.holder.map_or(0, |task| u128::from(task) + 1);
            let state =
                holder << 80 | (resource.readers.len() as u128) << 64 | u128::from(resource.count) << 32;
            let more = (resource.queued.iter().count() as u128) << 16 | resource.signals.len() as u128;
            sum = sum.wrapping_add(mix(id as u128, state | more));
        }
        sum
    }

    /// Two branches that look alike, between which every task that ran yielded, and every task that could have run all the time did.
    pub(crate) fn round(&self) -> Option<(Arc<[TaskId]>, usize)> {
        let mut seen: HashKeyed<usize> = HashKeyed::default();
        for (end, look) in self.looks.iter().enumerate().take(self.branches.len()) {
            let Some(from) = seen.insert(look.looks, end) else { continue };
            let (mut ran, mut yielded, mut could) = (0, 0, u64::MAX);
            for look in &self.looks[from + 1..=end] {
                ran |= look.ran;
                yielded |= look.yielded;
                could &= look.could;
            }
            if ran != 0 && ran & !yielded == 0 && could & !ran == 0 {
                let trace = self.branches[..end].iter().map(|branch| branch.chosen).collect();
                return Some((trace, from));
            }
        }
        None
    }

    fn endless(&self, from: usize, round: usize) -> FailureKind {
        let mark = |at: usize| self.branches.get(at).map_or(0, |branch| branch.step) as usize;
        let (begin, end) = (mark(from), mark(from + round));
        let told = |step: &Step| {
            let on = self.resource_name(step.op.on);
            let what = format!("{} {on}", step.op.kind.word());
            format!("{} does {} at {}", self.name(step.task), what.trim_end(), step.op.at)
        };
        let steps = self.steps.get(begin..end).unwrap_or_default();
        let mut tasks: Vec<TaskId> = steps.iter().map(|step| step.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        FailureKind::Livelock {
            tasks: tasks.into_iter().map(|task| self.name(task)).collect(),
            steps: self.ended.steps,
            round: steps.iter().map(told).collect(),
        }
    }

    /// Those that could go on at a branch, in the order of the deterministic scheduler.
    pub(crate) fn choices(&self, branch: &Branch) -> &[TaskId] {
        &self.pool[branch.begin as usize..][..usize::from(branch.len)]
    }

    /// A signal for one task that waits, or for all; for how many.
    pub(crate) fn notify(&mut self, id: ResourceId, all: bool, at: Place) -> usize {
        let (step, task) = (self.ended.steps, self.current);
        let resource = self.of(id);
        resource.last_notify = Some((step, task, at));
        // A task that was signalled already and did not wake up yet waits no more in the eyes of a later signal only if the earlier one can
        // be for nobody else.
        let waiting = resource.waiting.clone();
        let count = waiting.iter().count();
        if all {
            for task in waiting.iter() {
                let mut one = Tasks::default();
                one.insert(task);
                resource.signals.push(one);
            }
            resource.waiting.clear();
        } else if count > 0 {
            resource.signals.push(waiting);
        }
        if all { count } else { count.min(1) }
    }

    pub(crate) fn waits_at(&mut self, id: ResourceId) {
        let task = self.current;
        self.tasks[usize::from(task)].waits_since = self.ended.steps;
        self.of(id).waiting.insert(task);
    }

    /// The task that runs wakes up; says whether by a signal.
    pub(crate) fn wakes_at(&mut self, id: ResourceId) -> bool {
        let task = self.current;
        let resource = self.of(id);
        let signal = resource.signals.iter().position(|signal| signal.has(task));
        if let Some(at) = signal {
            resource.signals.remove(at);
            resource.last_woken = Some(task);
        }
        resource.waiting.remove(task);
        resource.signals.iter_mut().for_each(|signal| signal.remove(task));
        resource.signals.retain(|signal| signal.iter().next().is_some());
        signal.is_some()
    }

    pub(crate) fn hold(&mut self, id: ResourceId, at: Place) {
        let current = self.current;
        self.tasks[usize::from(current)].holds.push((id, at));
    }

    /// A task gives a lock back: most often the one that runs, but a guard can be dropped elsewhere.
    pub(crate) fn release(&mut self, id: ResourceId, holder: TaskId) {
        if let Some(task) = self.tasks.get_mut(usize::from(holder))
            && let Some(at) = task.holds.iter().rposition(|(held, _)| *held == id)
        {
            task.holds.remove(at);
        }
    }

    pub(crate) fn unpark(&mut self, task: TaskId) {
        // The token is a resource of the task: whoever gives it comes before whoever takes it.
        let node = mix(self.tasks[usize::from(self.current)].hash, u128::from(task) + 13);
        self.hashed(self.current, node);
        let other = mix(self.tasks[usize::from(task)].hash, node);
        self.hashed(task, other);
        self.tasks[usize::from(task)].token = true;
        self.idle = 0;
    }

    pub(crate) fn take_token(&mut self) -> bool {
        let current = self.current;
        std::mem::take(&mut self.tasks[usize::from(current)].token)
    }

    /// The locks that a task holds.
    pub(crate) fn held(&self, task: TaskId) -> Vec<String> {
        self.tasks[usize::from(task)].holds.iter().map(|(id, _)| self.resource_name(*id)).collect()
    }

    fn holder_of(&self, op: &Op) -> Option<TaskId> {
        let resource = self.resources.get(op.on as usize);
        match op.kind {
            Kind::Join => Some(op.aux as TaskId),
            // Nobody writes: a writer waits.
            Kind::Read => resource.and_then(|r| r.holder.or_else(|| r.queued.iter().next())),
            _ => resource.and_then(|r| r.holder.or(r.upgrader).or_else(|| r.readers.first().copied())),
        }
    }

    /// What each task waits for.
    fn waits(&self) -> Vec<Waits> {
        let held = |task: TaskId| {
            let holds = &self.tasks[usize::from(task)].holds;
            holds
                .iter()
                .map(|(id, at)| Held { what: self.resource_name(*id), at: (*at).into() })
                .collect::<Vec<_>>()
        };
        let one = |task: TaskId| {
            let op = self.tasks[usize::from(task)].pending;
            let resource = self.resources.get(op.on as usize);
            let by = self.holder_of(&op);
            let by_at = by.and_then(|by| {
                self.tasks[usize::from(by)]
                    .holds
                    .iter()
                    .find(|(id, _)| *id == op.on)
                    .map(|(_, at)| (*at).into())
            });
            let notified = resource
                .filter(|r| r.kind == ResourceKind::Condvar)
                .map(|r| r.last_notify.map(|(step, by, at)| (step, self.name(by), at.into())));
            Waits {
                task: self.name(task),
                op: op.kind.word().to_owned(),
                what: match op.kind {
                    Kind::Join => format!("the end of {}", self.name(op.aux as TaskId)),
                    _ => self.resource_name(op.on),
                },
                at: op.at.into(),
                by: by.map(|by| self.name(by)),
                by_at,
                holds: held(task),
                last_notify: notified.flatten(),
                woke: resource
                    .filter(|r| {
                        r.last_notify
                            .is_some_and(|(step, ..)| step >= self.tasks[usize::from(task)].waits_since)
                    })
                    .and_then(|r| r.last_woken)
                    .map(|woken| self.name(woken)),
                never_notified: resource
                    .is_some_and(|r| r.kind == ResourceKind::Condvar && r.last_notify.is_none()),
            }
        };
        self.live.iter().map(|task| one(*task)).collect()
    }

    fn others(&self, current: TaskId) -> Vec<String> {
        let others = self.live.iter().filter(|task| **task != current && self.enabled(**task));
        others.map(|task| self.name(*task)).collect()
    }

    fn hog(&self, current: TaskId) -> FailureKind {
        FailureKind::Hog {
            task: self.name(current),
            at: self.tasks[usize::from(current)].pending.at.into(),
            starved: self.others(current),
            steps: self.limits.idle,
        }
    }

    /// What it is that does not end: a task that never lets others go, or all of them together.
    fn without_end(&self) -> FailureKind {
        // A loop may count its rounds, which nobody sees from outside: only what goes on to the limit is called endless.
        if let Guide::Round { trace, from } = &self.plan.guide
            && self.branches.len() > trace.len()
        {
            return self.endless(*from, trace.len() - from);
        }
        let busy = |task: &&TaskId| self.tasks[usize::from(**task)].late_steps > 0;
        let never = self.live.iter().filter(busy).find(|task| {
            let task = &self.tasks[usize::from(**task)];
            task.late_yields == 0 && task.late_steps > self.limits.steps / 4
        });
        match never {
            Some(task) => FailureKind::Hog {
                task: self.name(*task),
                at: self.tasks[usize::from(*task)].pending.at.into(),
                starved: self.others(*task),
                steps: self.limits.steps,
            },
            None => FailureKind::Livelock {
                tasks: self.live.iter().filter(busy).map(|task| self.name(*task)).collect(),
                steps: self.limits.steps,
                round: Vec::new(),
            },
        }
    }

    /// What the next executions may expect of each task: its operations with those of its children.
    pub(crate) fn weights(&self) -> HashKeyed<u32> {
        let mut sums: Vec<u32> = self.tasks.iter().map(|task| task.ops.max(1)).collect();
        for at in (1..sums.len()).rev() {
            let parent = usize::from(self.tasks[at].parent);
            sums[parent] = sums[parent].saturating_add(sums[at]);
        }
        self.tasks.iter().map(|task| task.birth).zip(sums).collect()
    }

    /// The path of a task from the first: which child of which child it is. Empty for the first.
    pub(crate) fn path(&self, task: TaskId) -> String {
        match self.tasks.get(usize::from(task)) {
            Some(found) if task > 0 => match self.path(found.parent) {
                parent if parent.is_empty() => found.ordinal.to_string(),
                parent => format!("{parent}.{}", found.ordinal),
            },
            _ => String::new(),
        }
    }

    /// Where the deterministic scheduler was not followed, as directives, each with whether it is a preemption.
    pub(crate) fn directives(&self) -> Vec<(Directive, bool)> {
        let birth = |task: TaskId| self.tasks[usize::from(task)].birth;
        let one = |branch: &Branch| {
            let after = (birth(branch.current), branch.ops);
            (Directive { after, to: birth(branch.chosen) }, branch.preempted)
        };
        self.branches.iter().filter(|branch| !branch.by_default).map(one).collect()
    }

    /// Forgets a panic that was caught.
    pub(crate) fn calm(&mut self) {
        if self.panicked.is_some() && !std::thread::panicking() {
            self.panicked = None;
        }
    }

    /// Ends the execution.
    pub(crate) fn end(&mut self) -> Ended {
        self.active = false;
        if let Guide::Directed(map) = &self.plan.guide {
            self.ended.ignored = map.len().saturating_sub(self.followed);
        }
        self.ended.tasks = self.tasks.len();
        self.orphans.extend(self.tasks.iter_mut().map(|task| std::mem::take(&mut task.locals)));
        std::mem::take(&mut self.ended)
    }
}

/// Terminal graphs, for the oracle.
pub(crate) type Graphs = HashSet;

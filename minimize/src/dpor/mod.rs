//! Optimal dynamic partial order reduction for message delivery: every order of deliveries that matters is executed,
//! and each only once.
//!
//! Two deliveries depend on each other only at the same receiver (the same cell, where actors share memory), or where
//! an invariant could tell their order; what one sends comes after it. Orders that differ otherwise only are one
//! (Mazurkiewicz trace). From each executed order its races are read, and for each race that can be reversed a wakeup
//! tree takes in how (Abdulla, Aronis, Jonsson, Sagonas, JACM 64(4), 2017: source sets and wakeup trees; sleep sets:
//! Godefroid 1996). Timers and messages from outside are deliveries too; faults happen in their recorded order at any
//! time. Under `fifo` only the head of a channel can be delivered, and channels never race with themselves.
//!
//! The algorithm is depth first. Here the branches that are open may be taken in any order ([`Priority`]): steps that
//! were taken from a world before go to sleep for those taken later, whether they are explored to the end yet or not,
//! for they will be. What a race tells then goes down to where it is not covered yet, and a wakeup order that can
//! begin with a step that was taken meanwhile is dropped when its turn comes.

mod races;
mod reversal;
pub mod step;
mod wakeup;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use demi_replay::model::DistanceOf;
use demi_replay::script::{Act, Want};
use demi_replay::{Model, Pending, Simulator, World};

use self::step::{Choice, Ground, Named, Proc, Step, Tracked};
use self::wakeup::Wakeup;
use crate::oracle::snapshots::{Node, Snapshots, Uses};

/// Which open branch comes next.
#[derive(Clone)]
pub enum Priority<M: Model> {
    /// The deepest: depth first.
    Depth,
    /// The one with the fewest reversals since the first schedule (TFB, NSDI'16 section 4), of those the deepest.
    Closeness,
    /// The one from whose world a violation is nearest, as the model's bound says.
    Distance(Arc<DistanceOf<M>>),
}

/// When an exploration ends, and what it may remember.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Schedules to execute.
    pub executions: u64,
    /// Steps of one schedule. Where it cuts schedules off the exploration is not complete.
    pub depth: usize,
    /// Worlds kept.
    pub snapshots: usize,
}

/// What explorers are asked about.
pub trait Guide<M: Model> {
    /// Which step to take where no wakeup tree says; nothing to end the schedule here. `mark` belongs to the world
    /// and is handed on to what follows, `awake` are the steps that may be taken.
    fn pick(
        &mut self,
        sim: &Simulator<M>,
        at: &Tracked<M>,
        mark: &mut usize,
        awake: &[(Proc, Choice)],
    ) -> Option<usize>;

    /// Whether a world, after a step that an invariant might notice, is what is looked for.
    fn found(&mut self, sim: &Simulator<M>, world: &World<M>) -> bool;

    /// A schedule was executed to the end. Whether to go on.
    fn executed(&mut self, steps: &[Step]) -> bool {
        let _ = steps;
        true
    }
}

/// What came of an exploration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// What was looked for, with all acts from the first world on, if it was found.
    pub found: Option<Vec<Act>>,
    /// Schedules executed to their end.
    pub executions: u64,
    /// Schedules given up because each possible step was asleep; 0 if the reduction is optimal.
    pub blocked: u64,
    /// Steps made.
    pub steps: u64,
    /// Whether every order was explored.
    pub complete: bool,
    /// What the kept worlds were good for.
    pub snapshots: Uses,
}

/// A world on the way.
struct Place {
    parent: Node,
    /// The step that leads here.
    step: Step,
    act: Act,
    entry: Option<Pending>,
    /// What could have been delivered but for this step.
    lost: Vec<Named>,
    depth: usize,
    /// Reversals on the way.
    turns: usize,
    mark: usize,
    /// Steps that need not be taken from here: what begins with them is explored from an earlier world.
    sleep: Vec<Step>,
    /// Steps that were taken from here, and where they lead.
    taken: Vec<(Step, Node)>,
    wakeup: Wakeup,
}

/// An open branch: how urgent it is, its number, the node, the first step.
type Waiting = ([usize; 2], usize, Node, Proc);

/// An exploration.
pub struct Explorer<'a, M: Model, G: Guide<M>> {
    ground: Ground<'a, M>,
    guide: &'a mut G,
    priority: Priority<M>,
    limits: Limits,
    places: Vec<Place>,
    worlds: Snapshots<Tracked<M>>,
    open: BinaryHeap<Reverse<Waiting>>,
    opened: usize,
    result: Explored,
    cut: bool,
}

impl<'a, M: Model, G: Guide<M>> Explorer<'a, M, G> {
    /// An exploration from a world.
    pub fn new(
        ground: Ground<'a, M>,
        first: Tracked<M>,
        guide: &'a mut G,
        priority: Priority<M>,
        limits: Limits,
    ) -> Self {
        let root = Place {
            parent: 0,
            step: Step { proc: 0, creator: 0, place: 0, visible: false, global: true },
            act: Act::Sent,
            entry: None,
            lost: Vec::new(),
            depth: 0,
            turns: 0,
            mark: 0,
            sleep: Vec::new(),
            taken: Vec::new(),
            wakeup: Wakeup::default(),
        };
        Explorer {
            ground,
            guide,
            priority,
            limits,
            places: vec![root],
            worlds: Snapshots::new(first, limits.snapshots),
            open: BinaryHeap::new(),
            opened: 0,
            result: Explored::default(),
            cut: false,
        }
    }

    /// Explores until something is found, everything was explored, or a limit is met.
    pub fn explore(mut self) -> Explored {
        let mut from = Some((0, true));
        while let Some((node, fresh)) = from {
            if fresh && !self.execute(node) {
                break;
            }
            if self.result.executions + self.result.blocked >= self.limits.executions {
                break;
            }
            from = self.open.pop().map(|Reverse((_, _, node, proc))| match self.branch(node, proc) {
                Some(child) => (child, true),
                None => (node, false),
            });
        }
        self.result.complete = from.is_none() && !self.cut;
        self.result.snapshots = self.worlds.uses;
        self.result
    }

    /// Takes an open branch; gives where it leads.
    fn branch(&mut self, node: Node, proc: Proc) -> Option<Node> {
        let place = &mut self.places[node as usize];
        let asleep: Vec<Step> = place.asleep().collect();
        let branch = place.wakeup.take(proc, &asleep)?;
        let world = self.world(node)?;
        let turns = self.places[node as usize].turns + 1;
        self.step(node, world, proc, branch.rest, turns).map(|(child, _)| child)
    }

    /// The world of a node.
    fn world(&mut self, node: Node) -> Option<Tracked<M>> {
        let (places, ground, made) = (&self.places, &mut self.ground, &mut self.result.steps);
        self.worlds.get(
            node,
            |node| places[node as usize].parent,
            |node, mut world| {
                *made += 1;
                let choice = choice_of(ground, &world, places[node as usize].step.proc)?;
                ground.make(&mut world, choice)?;
                Some(world)
            },
        )
    }

    /// Makes a step from a node's world; gives the new node with its world. What was found is noted.
    fn step(
        &mut self,
        node: Node,
        mut world: Tracked<M>,
        proc: Proc,
        wakeup: Wakeup,
        turns: usize,
    ) -> Option<(Node, Tracked<M>)> {
        let choice = choice_of(&self.ground, &world, proc)?;
        let (act, entry) = match choice {
            Choice::Deliver(index) => {
                let entry = world.world.pending()[index];
                (Act::Deliver(Want::of(self.ground.sim, &world.world, &entry)), Some(entry))
            }
            Choice::Fault => (self.ground.faults[world.faults], None),
        };
        let (step, lost) = self.ground.make(&mut world, choice)?;
        self.result.steps += 1;
        let parent = &self.places[node as usize];
        let sleep = parent.asleep().filter(|s| !s.depends(&step)).collect();
        let child = self.places.len() as Node;
        let parent = &mut self.places[node as usize];
        parent.taken.push((step, child));
        let (depth, mark, taken) = (parent.depth + 1, parent.mark, Vec::new());
        self.places.push(Place {
            parent: node,
            step,
            act,
            entry,
            lost,
            depth,
            turns,
            mark,
            sleep,
            taken,
            wakeup,
        });
        self.worlds.put(child, world.clone());
        if step.visible && self.guide.found(self.ground.sim, &world.world) {
            self.result.found = Some(self.acts(child));
        }
        Some((child, world))
    }

    /// The acts that lead to a node.
    fn acts(&self, node: Node) -> Vec<Act> {
        self.way(node).into_iter().map(|n| self.places[n as usize].act).collect()
    }

    fn steps(&self, way: &[Node]) -> Vec<Step> {
        way.iter().map(|n| self.places[*n as usize].step).collect()
    }

    /// The nodes on the way to a node, without the first.
    fn way(&self, node: Node) -> Vec<Node> {
        let mut way = Vec::with_capacity(self.places[node as usize].depth);
        let mut at = node;
        while at != 0 {
            way.push(at);
            at = self.places[at as usize].parent;
        }
        way.reverse();
        way
    }

    /// Executes a schedule from a node to its end and reads its races. Says whether to go on.
    fn execute(&mut self, from: Node) -> bool {
        let Some(mut world) = self.world(from) else { return true };
        let mut node = from;
        let mut possible = Vec::new();
        if self.result.found.is_some() {
            return false;
        }
        loop {
            let place = &mut self.places[node as usize];
            if place.depth >= self.limits.depth {
                self.cut = true;
                break;
            }
            let turns = place.turns;
            let next = if place.wakeup.branches.is_empty() {
                self.ground.possible(&world, &mut possible);
                if possible.is_empty() {
                    break;
                }
                possible.retain(|(proc, _)| place.asleep().all(|s| s.proc != *proc));
                if possible.is_empty() {
                    // All that follows is explored elsewhere, but not what the races up to here tell.
                    self.result.blocked += 1;
                    let way = self.way(node);
                    let steps = self.steps(&way);
                    self.reverse(&way, &steps, None);
                    return true;
                }
                match self.guide.pick(self.ground.sim, &world, &mut place.mark, &possible) {
                    Some(at) => (possible[at].0, Wakeup::default()),
                    None => {
                        self.cut = true;
                        break;
                    }
                }
            } else {
                // The oldest order first; the other branches wait for their turn.
                let first = place.wakeup.branches.remove(0);
                let others: Vec<Proc> = place.wakeup.branches.iter().map(|b| b.step.proc).collect();
                others.into_iter().for_each(|proc| self.wait(node, proc, &world));
                (first.step.proc, first.rest)
            };
            let Some((child, after)) = self.step(node, world, next.0, next.1, turns) else { return true };
            (node, world) = (child, after);
            if self.result.found.is_some() {
                return false;
            }
        }
        self.result.executions += 1;
        let way = self.way(node);
        let steps = self.steps(&way);
        if !self.guide.executed(&steps) {
            return false;
        }
        self.reverse(&way, &steps, Some(&world));
        true
    }

    /// Puts a branch among the open ones.
    fn wait(&mut self, node: Node, proc: Proc, world: &Tracked<M>) {
        let place = &self.places[node as usize];
        let shallow = usize::MAX - place.depth;
        let urgency = match &self.priority {
            Priority::Depth => [0, shallow],
            Priority::Closeness => [place.turns, shallow],
            Priority::Distance(bound) => [self.ground.sim.lower_bound(&world.world, bound), shallow],
        };
        self.opened += 1;
        self.open.push(Reverse((urgency, self.opened, node, proc)));
    }
}

impl Place {
    /// The steps not to take from here.
    fn asleep(&self) -> impl Iterator<Item = Step> {
        self.sleep.iter().copied().chain(self.taken.iter().map(|(step, _)| *step))
    }
}

/// The choice of that name.
fn choice_of<M: Model>(ground: &Ground<'_, M>, at: &Tracked<M>, proc: Proc) -> Option<Choice> {
    let mut possible = Vec::new();
    ground.possible(at, &mut possible);
    possible.into_iter().find(|(name, _)| *name == proc).map(|(_, choice)| choice)
}

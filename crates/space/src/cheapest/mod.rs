//! All executions within bounds, the cheapest first.
//!
//! Configurations are taken in the order of what was spent on them: cost, faults, steps (iterative context bounding; Musuvathi and Qadeer,
//! PLDI 2007). So what is found first is the least, and when a cost is done everything that costs no more is known. A configuration that
//! was met before, for as little and after as few steps, is not gone on with: it leads to nothing that is not known.
//!
//! What comes after a batch of configurations is worked out by the system, on as many threads as it likes, and taken up in the order of the
//! configurations. So the number of threads changes nothing in what is found, counted or promised.

mod met;
mod pieces;
mod ways;

use std::collections::BTreeMap;

use demi_replay::Violation;

use self::met::Met;
use self::pieces::Pieces;
pub use self::ways::{Way, Ways};
use crate::system::{After, Child, Spent, System, Unfit};

/// Most configurations of a batch. Enough that a thread has work for milliseconds, few enough that what comes after them fits into memory.
const BATCH: usize = 512;

/// A violation, with the cheapest execution that ends in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<C> {
    /// What is broken.
    pub violations: Vec<Violation>,
    /// What the execution spent.
    pub spent: Spent,
    /// The execution, from the first configuration on.
    pub path: Vec<C>,
    /// Where it left the default order.
    pub deviations: Vec<Deviation>,
    /// Where it stands in the tree of choices.
    pub place: usize,
}

/// A choice of an execution that left the default order, or was a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Which of the execution's choices.
    pub choice: usize,
    /// What it added to what the execution spent; never any steps.
    pub spends: Spent,
    /// What was chosen.
    pub taken: String,
    /// What would have come in the default order.
    pub instead_of: String,
}

/// What was done with the executions of one cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Configurations that were gone on from.
    pub moments: u64,
    /// Steps that were executed.
    pub steps: u64,
    /// Configurations that were known.
    pub known: u64,
    /// Executions that came to an end by themselves.
    pub ends: u64,
    /// Executions that were cut off after as many steps as one may have.
    pub cut: u64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every execution within the bounds was looked at.
    Complete,
    /// What was found is enough.
    Found,
    /// The caller stopped it.
    Stopped,
}

/// What is told while it goes on.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// What the executions have spent that are looked at now.
    pub at: Spent,
    /// Steps so far.
    pub steps: u64,
    /// Configurations that wait.
    pub waiting: u64,
    /// Different violations.
    pub found: usize,
    /// The part of the tree of executions that is done, where all that comes after one configuration is taken for equally large (the weighted
    /// backtrack estimator; Kilby, Slaney, Thiébaux and Walsh, AAAI 2006, after Knuth, Math. Comp. 29, 1975). From 0 to 1.
    pub part: f64,
}

/// Where a search stands, to go on another time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stand<C> {
    /// The tree of choices.
    pub ways: Ways<C>,
    /// What waits.
    pub waiting: Vec<Waiting>,
    /// The numbers of what was met, and after how few steps.
    pub met: Vec<(u128, u32)>,
    /// What was done, by cost.
    pub levels: Vec<Level>,
    /// The places of what was found, and what it spent.
    pub findings: Vec<(usize, Spent)>,
    /// See [`Told::part`].
    pub part: f64,
}

impl<C> Default for Stand<C> {
    fn default() -> Self {
        let (waiting, met, levels, findings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Stand { ways: Ways::default(), waiting, met, levels, findings, part: 0.0 }
    }
}

/// A configuration that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waiting {
    /// What was spent on it.
    pub spent: Spent,
    /// Its place in the tree of choices.
    pub place: usize,
    /// Its [key](System::key).
    pub key: u128,
    /// Its part of the tree of executions.
    pub weight: f64,
    /// Whether it violates.
    pub violates: bool,
}

/// How to search.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a, C> {
    /// Most an execution may have spent of each.
    pub most: Spent,
    /// Whether to go on after the first violation, to the least of each.
    pub all: bool,
    /// Whether configurations that are known are not gone on with. Off only to test that this changes nothing.
    pub cache: bool,
    /// How many waiting configurations are kept; others are made again when it is their turn. Changes nothing in the result.
    pub kept: usize,
    /// Where an earlier search stopped. It is not trusted: what it says is compared with what the system can do.
    pub from: Option<&'a Stand<C>>,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<C> {
    /// What was found: for each set of fingerprints the least of what violates so, in the order of what they spent.
    pub findings: Vec<Finding<C>>,
    /// What was done, by cost.
    pub levels: Vec<Level>,
    /// How many different configurations there were.
    pub met: u64,
    /// The sum of their numbers: equal sets have equal sums.
    pub digest: u128,
    /// How it ended.
    pub ended: Ended,
    /// What is needed to go on from where it stopped, and to tell again what it found.
    pub stand: Stand<C>,
}

/// A configuration that waits, and how it was reached.
struct Node<S: System> {
    /// The configuration itself, unless it is made again when its turn comes.
    state: Option<S::State>,
    place: usize,
    key: u128,
    weight: f64,
    /// What it violates; nothing where it does not, and an empty list where that is found out again.
    violations: Option<Box<[Violation]>>,
}

/// What is to be done with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It violates.
    Found,
    /// Everything that it leads to is known.
    Known,
    /// What comes after it is looked at.
    GoOn {
        /// The fewest steps after which it was met before.
        before: u32,
    },
}

/// A configuration that was made again from its choices.
struct Again<S: System> {
    state: S::State,
    violations: Vec<Violation>,
    /// What was spent on the way; only where that is compared.
    spent: Spent,
}

/// Configurations, and what is to be done with each.
type Turns<S> = (Vec<Node<S>>, Vec<Turn>);

type Results<S> = Vec<Option<Result<After<S>, <S as System>::Error>>>;

struct Search<'a, S: System> {
    system: &'a mut S,
    options: Options<'a, S::Choice>,
    ways: Ways<S::Choice>,
    waiting: BTreeMap<Spent, Pieces<Node<S>>>,
    /// How many wait, and how many of them are kept.
    count: (u64, usize),
    met: Met,
    levels: Vec<Level>,
    steps: u64,
    findings: Vec<Finding<S::Choice>>,
    part: f64,
}

/// What a configuration violates that waits; nothing where it does not.
fn held(violations: Vec<Violation>) -> Option<Box<[Violation]>> {
    Some(violations).filter(|found| !found.is_empty()).map(Vec::into_boxed_slice)
}

/// Searches all executions within the bounds. `tell` is asked now and then whether to go on.
///
/// # Errors
/// When the system cannot go on, or what an earlier search left does not fit it.
pub fn search<S: System>(
    system: &mut S,
    options: Options<'_, S::Choice>,
    tell: &mut dyn FnMut(Told) -> bool,
) -> Result<Outcome<S::Choice>, S::Error> {
    let met = Met::new(options.cache);
    let search = Search {
        system,
        options,
        ways: Ways::default(),
        waiting: BTreeMap::new(),
        count: (0, 0),
        met,
        levels: Vec::new(),
        steps: 0,
        findings: Vec::new(),
        part: 0.0,
    };
    search.run(tell)
}

impl<S: System> Search<'_, S> {
    fn run(mut self, tell: &mut dyn FnMut(Told) -> bool) -> Result<Outcome<S::Choice>, S::Error> {
        match self.options.from {
            Some(stand) => self.resume(stand)?,
            None => {
                let state = self.system.first()?;
                let violations = held(self.system.violations(&state));
                let key = self.system.key(&state, Spent::default());
                let node = Node { state: Some(state), place: 0, key, weight: 1.0, violations };
                self.wait(Spent::default(), node);
            }
        }
        let mut ended = None;
        while ended.is_none()
            && let Some((spent, nodes)) = self.waiting.pop_first()
        {
            self.level(spent);
            let mut nodes = nodes.into_iter().peekable();
            while ended.is_none() && nodes.peek().is_some() {
                let turns = self.turns(&mut nodes, spent);
                let after = self.after(&turns, spent);
                ended = self.take((turns, after), spent, tell)?;
            }
            for node in nodes {
                self.wait(spent, node);
            }
        }
        // Where nothing was left at a cost there is nothing at higher ones.
        if ended.is_none() {
            let levels = self.options.most.cost as usize + 1;
            self.levels.resize_with(levels.max(self.levels.len()), Level::default);
        }
        let ended = ended.unwrap_or(Ended::Complete);
        let stand = if ended == Ended::Stopped { self.stand() } else { self.finished() };
        let (met, digest) = self.met.sum();
        Ok(Outcome { findings: self.findings, levels: self.levels, met, digest, ended, stand })
    }

    fn wait(&mut self, spent: Spent, mut node: Node<S>) {
        // Where there is room, it is not worth while to ask whether it will be known when its turn comes.
        let scarce = self.count.1 >= self.options.kept / 2;
        let ahead = scarce && node.violations.is_none() && self.met.is_ahead(node.key, spent);
        if ahead || self.count.1 >= self.options.kept {
            node.state = None;
        }
        self.count.0 += 1;
        self.count.1 += usize::from(node.state.is_some());
        self.waiting.entry(spent).or_default().push(node);
    }

    fn level(&mut self, spent: Spent) -> &mut Level {
        let at = spent.cost as usize;
        if self.levels.len() <= at {
            self.levels.resize_with(at + 1, Level::default);
        }
        &mut self.levels[at]
    }

    /// The next configurations of those that wait, and what is to be done with each.
    fn turns(&mut self, nodes: &mut impl Iterator<Item = Node<S>>, spent: Spent) -> Turns<S> {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let Some(node) = nodes.next() else { break };
            let enough = node.violations.is_some() && !self.options.all;
            batch.push(node);
            if enough {
                break;
            }
        }
        self.count.0 -= batch.len() as u64;
        self.count.1 -= batch.iter().filter(|node| node.state.is_some()).count();
        self.met.expect(batch.iter().map(|node| node.key));
        let turn = |node: &Node<S>| match node.violations.is_some() {
            true => Turn::Found,
            // Configurations come in the order of their costs, so only steps can be fewer than before.
            false => match self.met.meet(node.key, spent.steps) {
                Ok(before) => Turn::GoOn { before },
                Err(_) => Turn::Known,
            },
        };
        let turns = batch.iter().map(turn).collect();
        (batch, turns)
    }

    /// What comes after each configuration that is gone on from.
    fn after(&mut self, (nodes, turns): &Turns<S>, spent: Spent) -> Results<S> {
        let mut results: Results<S> = turns.iter().map(|_| None).collect();
        let mut made = Vec::new();
        for (at, (node, turn)) in nodes.iter().zip(turns).enumerate() {
            if node.state.is_none() && matches!(turn, Turn::GoOn { .. }) {
                match self.waited(node, spent) {
                    Ok(state) => made.push((at, state)),
                    Err(error) => results[at] = Some(Err(error)),
                }
            }
        }
        let mut made = made.iter().peekable();
        let (mut places, mut batch) = (Vec::new(), Vec::new());
        for (at, (node, turn)) in nodes.iter().zip(turns).enumerate() {
            let again = made.next_if(|(place, _)| *place == at).map(|(_, state)| state);
            if let (Turn::GoOn { .. }, Some(state)) = (turn, node.state.as_ref().or(again)) {
                places.push(at);
                batch.push((state, spent));
            }
        }
        let after = self.system.after(&batch, self.options.most);
        places.into_iter().zip(after).for_each(|(at, after)| results[at] = Some(after));
        results
    }

    /// Takes up what comes after the configurations of a batch, one after the other. Says how the search ended, if it did.
    fn take(
        &mut self,
        ((nodes, turns), after): (Turns<S>, Results<S>),
        spent: Spent,
        tell: &mut dyn FnMut(Told) -> bool,
    ) -> Result<Option<Ended>, S::Error> {
        let mut rest = nodes.into_iter().zip(turns).zip(after);
        let stopped = loop {
            let Some(((node, turn), after)) = rest.next() else { return Ok(None) };
            let told = Told {
                at: spent,
                steps: self.steps,
                waiting: self.count.0 + rest.len() as u64,
                found: self.findings.len(),
                part: self.part,
            };
            if !tell(told) {
                break (node, turn);
            }
            match (turn, after) {
                (Turn::Found, _) => {
                    self.part += node.weight;
                    self.found(node.place, node.violations.unwrap_or_default().into_vec(), spent)?;
                    if !self.options.all {
                        return Ok(Some(Ended::Found));
                    }
                }
                (Turn::GoOn { .. }, Some(after)) => self.go_on(&node, after?, spent),
                (Turn::Known | Turn::GoOn { .. }, _) => {
                    self.part += node.weight;
                    self.level(spent).known += 1;
                }
            }
        };
        // What was not taken up waits again, as if it had never been met.
        let left: Vec<(Node<S>, Turn)> = std::iter::once(stopped).chain(rest.map(|(turn, _)| turn)).collect();
        for (node, turn) in left.iter().rev() {
            if let Turn::GoOn { before } = turn {
                self.met.forget(node.key, *before);
            }
        }
        left.into_iter().for_each(|(node, _)| self.wait(spent, node));
        Ok(Some(Ended::Stopped))
    }

    /// Lets the configurations wait that come after one.
    fn go_on(&mut self, node: &Node<S>, after: After<S>, spent: Spent) {
        let children = match after {
            After::End => {
                self.part += node.weight;
                self.level(spent).ends += 1;
                return;
            }
            After::Cut => {
                self.part += node.weight;
                self.level(spent).cut += 1;
                return;
            }
            After::Children(children) => children,
        };
        let steps = children.len() as u64;
        self.steps += steps;
        let level = self.level(spent);
        level.moments += 1;
        level.steps += steps;
        if children.is_empty() {
            self.part += node.weight;
        }
        let weight = node.weight / steps.max(1) as f64;
        for Child { state, choice, spent, key, violations } in children {
            let place = self.ways.add(Way { from: node.place, choice }).unwrap_or_default();
            let violations = held(violations);
            self.wait(spent, Node { state: Some(state), place, key, weight, violations });
        }
    }

    fn found(&mut self, place: usize, violations: Vec<Violation>, spent: Spent) -> Result<(), S::Error> {
        let known = |violations: &[Violation], finding: &Finding<S::Choice>| {
            finding.violations.iter().map(|v| &v.fingerprint).eq(violations.iter().map(|v| &v.fingerprint))
        };
        if !violations.is_empty() && self.findings.iter().any(|finding| known(&violations, finding)) {
            return Ok(());
        }
        let path: Vec<S::Choice> = self.ways.to(place).into_iter().cloned().collect();
        let Again { violations, spent: real, .. } = self.again(&path)?;
        if self.options.from.is_some() && (violations.is_empty() || real != spent) {
            return Err(Unfit("what it found does not violate, or not at that cost".into()).into());
        }
        if self.findings.iter().any(|finding| known(&violations, finding)) {
            return Ok(());
        }
        let deviations = self.deviations(&path)?;
        self.findings.push(Finding { violations, spent, path, deviations, place });
        Ok(())
    }

    /// Makes a configuration again that waited.
    fn waited(&mut self, node: &Node<S>, spent: Spent) -> Result<S::State, S::Error> {
        let path: Vec<S::Choice> = self.ways.to(node.place).into_iter().cloned().collect();
        let Again { state, violations, spent: real } = self.again(&path)?;
        if self.options.from.is_some() {
            let real = (real, self.system.key(&state, real), violations.is_empty());
            if real != (spent, node.key, true) {
                return Err(Unfit("its choices lead to another configuration than it says".into()).into());
            }
        }
        Ok(state)
    }

    /// Makes a configuration again, and looks at what it violates.
    fn again(&mut self, path: &[S::Choice]) -> Result<Again<S>, S::Error> {
        let mut state = self.system.first()?;
        let mut spent = Spent::default();
        for choice in path {
            let chosen = S::chosen(choice);
            if self.options.from.is_some() {
                let menu = self.system.menu(&state, self.options.most.faults)?;
                let Some(item) = menu.into_iter().find(|item| item.choice == chosen) else {
                    return Err(Unfit(format!("{chosen:?} is not possible where it says so")).into());
                };
                spent = spent + item.spends;
            }
            let (next, made) = self.system.make(&state, &chosen)?;
            if self.options.from.is_some() && made != *choice {
                return Err(Unfit("the test driver does something else".into()).into());
            }
            state = next;
        }
        // Only the last configuration can violate: what violates is not gone on from.
        let violations = self.system.violations(&state);
        Ok(Again { state, violations, spent })
    }

    /// Where an execution left the default order.
    fn deviations(&mut self, path: &[S::Choice]) -> Result<Vec<Deviation>, S::Error> {
        let mut state = self.system.first()?;
        let mut deviations = Vec::new();
        for (at, choice) in path.iter().enumerate() {
            let chosen = S::chosen(choice);
            let items = self.system.menu(&state, self.options.most.faults)?;
            if let (Some(first), Some(taken)) = (items.first(), items.iter().find(|i| i.choice == chosen)) {
                let spends = Spent { steps: 0, ..taken.spends };
                if spends != Spent::default() {
                    let taken = self.system.told(&state, &taken.choice);
                    let instead_of = self.system.told(&state, &first.choice);
                    deviations.push(Deviation { choice: at, spends, taken, instead_of });
                }
            }
            state = self.system.make(&state, &chosen)?.0;
        }
        Ok(deviations)
    }

    /// Where it stands, to go on another time.
    fn stand(&self) -> Stand<S::Choice> {
        let waiting = self.waiting.iter().flat_map(|(spent, nodes)| {
            nodes.iter().map(|node| Waiting {
                spent: *spent,
                place: node.place,
                key: node.key,
                weight: node.weight,
                violates: node.violations.is_some(),
            })
        });
        Stand {
            ways: self.ways.clone(),
            waiting: waiting.collect(),
            met: self.met.entries(),
            levels: self.levels.clone(),
            findings: self.findings.iter().map(|finding| (finding.place, finding.spent)).collect(),
            part: self.part,
        }
    }

    /// What was found, without all that did not lead to it.
    fn finished(&self) -> Stand<S::Choice> {
        let mut ways = Ways::default();
        let findings = self.findings.iter().map(|finding| {
            let mut from = 0;
            for choice in &finding.path {
                from = ways.add(Way { from, choice: choice.clone() }).unwrap_or_default();
            }
            (from, finding.spent)
        });
        let findings = findings.collect();
        Stand { ways, findings, levels: self.levels.clone(), part: 1.0, ..Stand::default() }
    }

    /// Takes up where an earlier search stopped.
    fn resume(&mut self, stand: &Stand<S::Choice>) -> Result<(), S::Error> {
        self.ways = stand.ways.clone();
        self.met = Met::of(&stand.met, self.options.cache);
        self.levels.clone_from(&stand.levels);
        self.part = stand.part;
        self.steps = self.levels.iter().map(|level| level.steps).sum();
        for (place, spent) in &stand.findings {
            self.found(*place, Vec::new(), *spent)?;
        }
        for waits in &stand.waiting {
            let Waiting { spent, place, key, weight, violates } = *waits;
            let violations = violates.then(Box::default);
            self.wait(spent, Node { state: None, place, key, weight, violations });
        }
        Ok(())
    }
}

//! All executions within the bounds, the cheapest first.
//!
//! Moments are taken in the order of what was spent on them: cost, faults, steps (iterative context bounding; Musuvathi and Qadeer,
//! PLDI 2007). So what is found first is the least, and when a cost is done everything that costs no more is known. A moment that
//! was met before, for as little and after as few steps, is not gone on with: it leads to nothing that is not known.
//!
//! What comes after the moments of a batch is worked out by all threads, and taken up in the order of the moments. So the number of
//! threads changes nothing in what is found, counted or promised.

use std::collections::BTreeMap;

use demi_replay::{Model, Simulator, Violation};

use crate::batch::{self, Node, Turn};
use crate::cost::{Bounds, Spent};
use crate::explored::{Ended, ExploreOptions, Explored, Finding, Level, Told};
use crate::met::Met;
use crate::moment::Moment;
use crate::saved::{Resume, Saved, Waiting};
use crate::scene::{Scene, SceneError};
use crate::ways::{Way, Ways};
use crate::worker::{After, Again, Child, Frame, broken};

/// Explores from a beginning. `tell` is asked now and then whether to go on.
///
/// # Errors
/// When the model does not know a condition, or what an earlier exploration left does not fit it.
pub fn explore<M: Model>(
    sim: &mut Simulator<M>,
    (scene, first): (&Scene, Moment<M>),
    bounds: Bounds,
    options: ExploreOptions<'_>,
    tell: &mut dyn FnMut(Told) -> bool,
) -> Result<Explored, SceneError> {
    let frame = Frame { scene, first, bounds, checked: options.from.is_some() };
    let mut others: Vec<Simulator<M>> = (1..options.jobs.max(1)).map(|_| sim.clone()).collect();
    let unused = (!others.is_empty()).then(|| sim.clone());
    let mut sims: Vec<&mut Simulator<M>> = std::iter::once(&mut *sim).chain(&mut others).collect();
    if let Some(explored) = Search::new(&frame, options).run(&mut sims, tell)? {
        return Ok(explored);
    }
    // Actors came up on the way, and each thread numbers them in its own order: one thread does it alone.
    if let Some(unused) = unused {
        *sim = unused;
    }
    let alone = Search::new(&frame, options).run(&mut [sim], tell)?;
    Ok(alone.unwrap_or_else(|| unreachable!("one thread numbers actors in its own order alone")))
}

pub(crate) struct Search<'a, M: Model> {
    frame: &'a Frame<'a, M>,
    options: ExploreOptions<'a>,
    ways: Ways,
    waiting: BTreeMap<Spent, Vec<Node<M>>>,
    /// How many wait, and how many of them are kept.
    count: (u64, usize),
    met: Met,
    levels: Vec<Level>,
    steps: u64,
    findings: Vec<Finding>,
    part: f64,
}

impl<'a, M: Model> Search<'a, M> {
    fn new(frame: &'a Frame<'a, M>, options: ExploreOptions<'a>) -> Self {
        Search {
            frame,
            options,
            ways: Ways::new(&frame.scene.before),
            waiting: BTreeMap::new(),
            count: (0, 0),
            met: Met::new(options.cache),
            levels: Vec::new(),
            steps: 0,
            findings: Vec::new(),
            part: 0.0,
        }
    }

    /// Explores; `None` where actors came up while several threads were at work.
    fn run(
        mut self,
        sims: &mut [&mut Simulator<M>],
        tell: &mut dyn FnMut(Told) -> bool,
    ) -> Result<Option<Explored>, SceneError> {
        let actors = sims[0].names().len();
        match self.options.from {
            Some(saved) => self.resume(sims[0], saved)?,
            None => {
                let mut first = self.frame.first.clone();
                let violations = broken(sims[0], &first);
                let key = self.frame.key(sims[0], None, &mut first, Spent::default());
                let moment = Some(first);
                let node = Node {
                    moment,
                    owner: 0,
                    place: 0,
                    key,
                    weight: 1.0,
                    violates: !violations.is_empty(),
                    violations,
                };
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
                let after = batch::after(self.frame, &self.ways, sims, &turns, spent);
                if sims.len() > 1 && sims.iter().any(|sim| sim.names().len() != actors) {
                    return Ok(None);
                }
                ended = self.take(sims, (turns, after), spent, tell)?;
            }
            for node in nodes {
                self.wait(spent, node);
            }
        }
        // Where nothing was left at a cost there is nothing at higher ones.
        if ended.is_none() {
            let levels = self.frame.bounds.most.cost as usize + 1;
            self.levels.resize_with(levels.max(self.levels.len()), Level::default);
        }
        let ended = ended.unwrap_or(Ended::Complete);
        let saved = if ended == Ended::Stopped { self.saved() } else { self.finished() };
        let (met, digest) = self.met.sum();
        Ok(Some(Explored { findings: self.findings, levels: self.levels, met, digest, ended, saved }))
    }

    fn wait(&mut self, spent: Spent, mut node: Node<M>) {
        if !node.violates && self.met.is_ahead(node.key, spent) || self.count.1 >= self.options.kept {
            node.moment = None;
        }
        self.count.0 += 1;
        self.count.1 += usize::from(node.moment.is_some());
        self.waiting.entry(spent).or_default().push(node);
    }

    fn level(&mut self, spent: Spent) -> &mut Level {
        let at = spent.cost as usize;
        if self.levels.len() <= at {
            self.levels.resize_with(at + 1, Level::default);
        }
        &mut self.levels[at]
    }

    /// The next moments of those that wait, and what is to be done with each.
    fn turns(&mut self, nodes: &mut impl Iterator<Item = Node<M>>, spent: Spent) -> Vec<(Node<M>, Turn)> {
        let mut turns = Vec::new();
        while turns.len() < batch::MOST {
            let Some(node) = nodes.next() else { break };
            self.count.0 -= 1;
            self.count.1 -= usize::from(node.moment.is_some());
            let turn = match node.violates {
                true => Turn::Found,
                // Moments come in the order of their costs, so only steps can be fewer than before.
                false => match self.met.meet(node.key, spent.steps) {
                    Ok(before) => Turn::GoOn { before },
                    Err(_) => Turn::Known,
                },
            };
            let enough = turn == Turn::Found && !self.options.all;
            turns.push((node, turn));
            if enough {
                break;
            }
        }
        turns
    }

    /// Takes up what comes after the moments of a batch, one after the other. Says how the exploration ended, if it did.
    fn take(
        &mut self,
        sims: &mut [&mut Simulator<M>],
        (turns, after): (Vec<(Node<M>, Turn)>, batch::Results<M>),
        spent: Spent,
        tell: &mut dyn FnMut(Told) -> bool,
    ) -> Result<Option<Ended>, SceneError> {
        let mut rest = turns.into_iter().zip(after);
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
                    self.found(sims, node, spent)?;
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
        let left: Vec<(Node<M>, Turn)> = std::iter::once(stopped).chain(rest.map(|(turn, _)| turn)).collect();
        for (node, turn) in left.iter().rev() {
            if let Turn::GoOn { before } = turn {
                self.met.forget(node.key, *before);
            }
        }
        left.into_iter().for_each(|(node, _)| self.wait(spent, node));
        Ok(Some(Ended::Stopped))
    }

    /// Lets the moments wait that come after one.
    fn go_on(&mut self, node: &Node<M>, (owner, after): batch::Done<M>, spent: Spent) {
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
        for Child { moment, way, spent, key, violations } in children {
            let place = self.ways.add(way).unwrap_or_default();
            let violates = !violations.is_empty();
            self.wait(spent, Node { moment: Some(moment), owner, place, key, weight, violates, violations });
        }
    }

    fn found(
        &mut self,
        sims: &mut [&mut Simulator<M>],
        node: Node<M>,
        spent: Spent,
    ) -> Result<(), SceneError> {
        // Its actors and messages have the numbers of the thread that met it.
        let path = self.ways.to(node.place);
        let known = |violations: &[Violation], finding: &Finding| {
            finding.violations.iter().map(|v| &v.fingerprint).eq(violations.iter().map(|v| &v.fingerprint))
        };
        let told = !node.violations.is_empty();
        if told && self.findings.iter().any(|finding| known(&node.violations, finding)) {
            return Ok(());
        }
        let sim = &mut *sims[0];
        let Again { moment, violations, spent: real } = self.frame.again(sim, &path)?;
        if self.frame.checked && (violations.is_empty() || real != spent) {
            return Err(SceneError::Unfinished("what it found does not violate, or not at that cost".into()));
        }
        if self.findings.iter().any(|finding| known(&violations, finding)) {
            return Ok(());
        }
        let livelock = if sim.livelock_counts() { sim.livelock(&moment.world) } else { None };
        let round = livelock.map(|livelock| livelock.round).unwrap_or_default();
        let deviations = self.frame.deviations(sim, &path)?;
        let (place, choices) = (node.place, self.ways.choices(node.place));
        self.findings.push(Finding { violations, spent, choices, deviations, round, place });
        Ok(())
    }

    /// Where it stands, to go on another time.
    fn saved(&self) -> Saved {
        let waiting = self.waiting.iter().flat_map(|(spent, nodes)| {
            nodes.iter().map(|node| Waiting {
                spent: *spent,
                place: node.place,
                key: node.key,
                weight: node.weight,
                violates: node.violates,
            })
        });
        Saved {
            ways: self.ways.clone(),
            waiting: waiting.collect(),
            met: self.met.entries(),
            levels: self.levels.clone(),
            findings: self.findings.iter().map(|finding| (finding.place, finding.spent)).collect(),
            part: self.part,
        }
    }

    /// What was found, without all that did not lead to it.
    fn finished(&self) -> Saved {
        let mut ways = Ways::new(&self.frame.scene.before);
        let findings = self.findings.iter().map(|finding| {
            let mut from = 0;
            for way in self.ways.to(finding.place) {
                from = ways.add(Way { from, ..way.clone() }).unwrap_or_default();
            }
            (from, finding.spent)
        });
        let findings = findings.collect();
        let (waiting, met, levels) = (Vec::new(), Vec::new(), self.levels.clone());
        Saved { ways, waiting, met, levels, findings, part: 1.0 }
    }

    /// Takes up where an earlier exploration stopped.
    fn resume(&mut self, sim: &mut Simulator<M>, saved: &Saved) -> Result<(), SceneError> {
        saved.fits(&self.frame.scene.before, self.frame.bounds.most).map_err(SceneError::Unfinished)?;
        let Resume { ways, met, levels, findings, part } = saved.resume(self.options.cache);
        (self.ways, self.met, self.levels, self.part) = (ways, met, levels, part);
        self.steps = self.levels.iter().map(|level| level.steps).sum();
        for (place, spent) in findings {
            let node = Node::waits(place, 0, 0.0, true);
            self.found(&mut [&mut *sim], node, spent)?;
        }
        for waits in &saved.waiting {
            self.wait(waits.spent, Node::waits(waits.place, waits.key, waits.weight, waits.violates));
        }
        Ok(())
    }
}

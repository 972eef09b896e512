//! What a thread does with a moment: make each choice that the bounds allow, and look at what comes of it.
//!
//! Each worker has a simulator of its own, which numbers messages and timers as they come up. So a moment makes sense to the worker alone
//! that made it. Another one makes it again from its choices.

use demi_replay::fuzz::{self, Choice};
use demi_replay::{Model, OUTSIDE, Simulator, Violation};

use crate::cost::{Bounds, Cost, Spent};
use crate::menu::{Item, menu};
use crate::moment::Moment;
use crate::scene::{Scene, SceneError};
use crate::ways::Way;

/// What all workers know.
pub(crate) struct Frame<'a, M: Model> {
    pub scene: &'a Scene,
    pub first: Moment<M>,
    pub bounds: Bounds,
    /// Whether moments that are made again are compared with what the model can do. What comes out of a file need not be possible.
    pub checked: bool,
}

/// A moment that was made again from its choices.
pub(crate) struct Again<M: Model> {
    pub moment: Moment<M>,
    pub violations: Vec<Violation>,
    /// What was spent on the way; only where that is compared.
    pub spent: Spent,
}

/// A moment that was made.
pub(crate) struct Child<M: Model> {
    pub moment: Moment<M>,
    pub way: Way,
    pub spent: Spent,
    /// See [`Moment::key`].
    pub key: u128,
    /// Set where it violates.
    pub violations: Vec<Violation>,
}

/// What comes after a moment.
pub(crate) enum After<M: Model> {
    /// Nothing can happen.
    End,
    /// Something could, after as many steps as an execution may have.
    Cut,
    /// Moments, in the default order.
    Children(Vec<Child<M>>),
}

impl<M: Model> Frame<'_, M> {
    /// Makes each choice that the bounds allow at the moment of a place.
    ///
    /// # Errors
    /// When the model does not know a condition.
    pub fn after(
        &self,
        sim: &mut Simulator<M>,
        (moment, place): (&Moment<M>, usize),
        spent: Spent,
    ) -> Result<After<M>, SceneError> {
        let most = self.bounds.most;
        let items = menu(sim, self.scene, moment, self.bounds.cost, most.faults - spent.faults);
        if items.is_empty() {
            return Ok(After::End);
        }
        if spent.steps >= most.steps {
            return Ok(After::Cut);
        }
        let mut children = Vec::with_capacity(items.len());
        for item in items {
            let spent = spent + item.spends;
            if spent.cost > most.cost {
                continue;
            }
            let before = moment;
            let mut moment = before.clone();
            let mut choices: Vec<Choice> = [item.choice].into_iter().chain(item.then).collect();
            let chosen = choices.len();
            choices.iter().for_each(|choice| make(sim, self.scene, &mut moment, *choice));
            moment.at = item.at;
            let mut violations = broken(sim, &moment);
            if violations.is_empty() {
                self.scene.settle(sim, &mut moment, &mut choices)?;
                if choices.len() > 1 {
                    violations = broken(sim, &moment);
                }
            }
            let key = match violations.is_empty() {
                true => self.key(sim, Some(before), &mut moment, spent),
                false => 0,
            };
            let way = Way { from: place, choices: choices.into(), chosen, at: item.at };
            children.push(Child { moment, way, spent, key, violations });
        }
        Ok(After::Children(children))
    }

    /// The number of a moment and the faults that were spent on it.
    pub fn key(
        &self,
        sim: &Simulator<M>,
        before: Option<&Moment<M>>,
        moment: &mut Moment<M>,
        spent: Spent,
    ) -> u128 {
        let waits = !self.scene.program.is_over(moment.done);
        moment.key(sim, before, spent.faults, (waits, self.bounds.cost == Cost::Preempt))
    }

    /// Makes a moment again that waited with what was spent on it and its number.
    ///
    /// # Errors
    /// When the model does not know a condition, or the moment comes out of a file and is not what the file says.
    pub fn waited(
        &self,
        sim: &mut Simulator<M>,
        path: &[&Way],
        (spent, key): (Spent, u128),
    ) -> Result<Moment<M>, SceneError> {
        let Again { mut moment, violations, spent: real } = self.again(sim, path)?;
        if self.checked {
            let real = (real, self.key(sim, None, &mut moment, real), violations.is_empty());
            if real != (spent, key, true) {
                return Err(SceneError::Unfinished(
                    "its choices lead to another configuration than it says".into(),
                ));
            }
        }
        Ok(moment)
    }

    /// Makes a moment again, and looks at what it violates.
    ///
    /// # Errors
    /// When the model does not know a condition, or the choices come out of a file and are not possible.
    pub fn again(&self, sim: &mut Simulator<M>, path: &[&Way]) -> Result<Again<M>, SceneError> {
        let mut moment = self.first.clone();
        let mut spent = Spent::default();
        let mut violations = if path.is_empty() { broken(sim, &moment) } else { Vec::new() };
        for (at, way) in path.iter().enumerate() {
            if self.checked {
                spent = spent + self.spends(sim, &moment, way)?;
            }
            let (chosen, driven) = way.choices.split_at(way.chosen);
            chosen.iter().for_each(|choice| make(sim, self.scene, &mut moment, *choice));
            moment.at = way.at;
            // Only the last moment can violate: what violates is not gone on from.
            let last = at + 1 == path.len();
            if last {
                violations = broken(sim, &moment);
            }
            let mut done = Vec::new();
            if violations.is_empty() {
                self.scene.settle(sim, &mut moment, &mut done)?;
                if last {
                    violations = broken(sim, &moment);
                }
            }
            if self.checked && done != driven {
                return Err(SceneError::Unfinished("the test driver does something else".into()));
            }
        }
        Ok(Again { moment, violations, spent })
    }

    /// What the choices of a way spend.
    ///
    /// # Errors
    /// When they are not possible at the moment.
    fn spends(&self, sim: &mut Simulator<M>, moment: &Moment<M>, way: &Way) -> Result<Spent, SceneError> {
        let (chosen, most) = (&way.choices[..way.chosen], self.bounds.most);
        let is = |item: &&Item| {
            let choices = [item.choice].into_iter().chain(item.then);
            choices.eq(chosen.iter().copied()) && item.at == way.at
        };
        let menu = menu(sim, self.scene, moment, self.bounds.cost, most.faults);
        let impossible = || SceneError::Unfinished(format!("{chosen:?} is not possible where it says so"));
        menu.iter().find(is).map(|item| item.spends).ok_or_else(impossible)
    }
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

impl<M: Model> Frame<'_, M> {
    /// Where an execution left the default order.
    ///
    /// # Errors
    /// When the model does not know a condition.
    pub fn deviations(&self, sim: &mut Simulator<M>, path: &[&Way]) -> Result<Vec<Deviation>, SceneError> {
        let mut moment = self.first.clone();
        let mut choice = self.scene.before.len();
        let mut deviations = Vec::new();
        for way in path {
            let items = menu(sim, self.scene, &moment, self.bounds.cost, self.bounds.most.faults);
            let taken = items.iter().find(|item| Some(&item.choice) == way.choices.first());
            let spends = taken.map(|item| Spent { steps: 0, ..item.spends }).unwrap_or_default();
            if let (Some(first), Some(taken)) = (items.first(), taken)
                && spends != Spent::default()
            {
                let taken = self.told(sim, &moment, taken.choice);
                let instead_of = self.told(sim, &moment, first.choice);
                deviations.push(Deviation { choice, spends, taken, instead_of });
            }
            choice += way.choices.len();
            let chosen = &way.choices[..way.chosen];
            chosen.iter().for_each(|choice| make(sim, self.scene, &mut moment, *choice));
            moment.at = way.at;
            self.scene.settle(sim, &mut moment, &mut Vec::new())?;
        }
        Ok(deviations)
    }

    /// A choice at a moment, for people.
    fn told(&self, sim: &Simulator<M>, moment: &Moment<M>, choice: Choice) -> String {
        match choice {
            Choice::Deliver(index) => {
                moment.world.pending().get(index as usize).map_or_else(String::new, |entry| sim.told(entry))
            }
            Choice::Client(..) => "the next client message".to_owned(),
            Choice::Crash(actor) => format!("{} fails", sim.names().get(actor)),
            Choice::Isolate(actor) => format!("{} is cut off", sim.names().get(actor)),
            Choice::Heal(actor) => format!("{} is back on the network", sim.names().get(actor)),
            Choice::Start(actor) | Choice::Restart(actor) => format!("{} starts", sim.names().get(actor)),
            Choice::Duplicate(_) => "a message is repeated".to_owned(),
            Choice::Bootstrap | Choice::Program(_) => "the recorded step".to_owned(),
        }
    }
}

/// Makes a choice at a moment.
fn make<M: Model>(sim: &mut Simulator<M>, scene: &Scene, moment: &mut Moment<M>, choice: Choice) {
    match choice {
        Choice::Client(..) => moment.sent += 1,
        Choice::Deliver(index) => {
            moment.last = moment.world.pending().get(index as usize).map(|entry| entry.to);
        }
        _ => {}
    }
    fuzz::apply(sim, &mut moment.world, &scene.program, choice, scene.rule);
}

/// What a moment breaks by itself, in the order of the fingerprints. A panic of the model is a violation.
pub(crate) fn broken<M: Model>(sim: &Simulator<M>, moment: &Moment<M>) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Err(panic) = sim.judge(&moment.world, &mut M::History::default(), &mut found) {
        // A handler's is a violation that was found, or none.
        let outside = || Violation { fingerprint: sim.explain(&panic), affected: Vec::new() };
        return (panic.actor == OUTSIDE).then(outside).into_iter().collect();
    }
    found.sort_by(|a, b| a.fingerprint.cmp(&b.fingerprint));
    found
}

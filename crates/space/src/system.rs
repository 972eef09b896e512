//! What can be searched: anything that says what may happen next, and makes it happen.

use std::fmt::Debug;
use std::ops::Add;

use demi_replay::Violation;

/// What an execution has spent, or may spend. Executions are explored in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spent {
    /// Units of the cost.
    pub cost: u32,
    /// Faults: failures, restarts, actors cut off or back, and messages lost or repeated.
    pub faults: u32,
    /// Steps: deliveries, messages that the environment sends, and faults.
    pub steps: u32,
}

impl Add for Spent {
    type Output = Spent;

    fn add(self, more: Spent) -> Spent {
        Spent {
            cost: self.cost.saturating_add(more.cost),
            faults: self.faults.saturating_add(more.faults),
            steps: self.steps.saturating_add(more.steps),
        }
    }
}

/// A choice and what it adds to what an execution has spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<C> {
    /// What happens.
    pub choice: C,
    /// What it adds.
    pub spends: Spent,
}

/// A configuration that comes after another one.
pub struct Child<S: System + ?Sized> {
    /// The configuration.
    pub state: S::State,
    /// What led to it.
    pub choice: S::Choice,
    /// What an execution has spent that comes to it so.
    pub spent: Spent,
    /// Its [key](System::key); 0 where it violates, for nothing comes after that.
    pub key: u128,
    /// What it violates.
    pub violations: Vec<Violation>,
}

/// What comes after a configuration.
pub enum After<S: System + ?Sized> {
    /// Nothing can happen.
    End,
    /// Something could, after as many steps as an execution may have.
    Cut,
    /// These, in the order of the menu.
    Children(Vec<Child<S>>),
}

/// A system that can be searched. That of a model is packed ([`Space`](crate::Space)); one whose configurations cannot be copied keeps the choices
/// that lead to them, and runs them again.
pub trait System {
    /// A configuration with all that its future depends on.
    type State;
    /// Something that may happen, and after it happened also what followed from it without a choice.
    type Choice: Clone + Debug + PartialEq;
    /// Why it cannot go on.
    type Error: From<Unfit>;

    /// The first configuration.
    ///
    /// # Errors
    /// When there is none.
    fn first(&mut self) -> Result<Self::State, Self::Error>;

    /// What may happen next, the default first; things that are faults only where `faults` of them are left.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn menu(&mut self, state: &Self::State, faults: u32) -> Result<Vec<Item<Self::Choice>>, Self::Error>;

    /// Makes something happen that is on the menu, with what follows from it. Gives the configuration, and all that happened.
    ///
    /// # Errors
    /// When it cannot be made.
    fn make(
        &mut self,
        state: &Self::State,
        choice: &Self::Choice,
    ) -> Result<(Self::State, Self::Choice), Self::Error>;

    /// A number for a configuration and what was spent on it, as far as that decides what comes after: equal ones have equal futures.
    fn key(&self, state: &Self::State, spent: Spent) -> u128;

    /// What a configuration violates by itself, in the order of the fingerprints.
    fn violations(&mut self, state: &Self::State) -> Vec<Violation>;

    /// The choice as the menu has it, without what followed.
    fn chosen(choice: &Self::Choice) -> Self::Choice {
        choice.clone()
    }

    /// A choice at a configuration, for people.
    fn told(&self, state: &Self::State, choice: &Self::Choice) -> String {
        let _ = state;
        format!("{choice:?}")
    }

    /// What comes after configurations, of those choices that an execution may still make that has spent so much of the most there is.
    fn after(
        &mut self,
        batch: &[(&Self::State, Spent)],
        most: Spent,
    ) -> Vec<Result<After<Self>, Self::Error>> {
        batch.iter().map(|(state, spent)| self.after_one(state, *spent, most)).collect()
    }

    /// The same after one configuration.
    ///
    /// # Errors
    /// When something cannot be made.
    fn after_one(
        &mut self,
        state: &Self::State,
        spent: Spent,
        most: Spent,
    ) -> Result<After<Self>, Self::Error> {
        let items = self.menu(state, most.faults - spent.faults)?;
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
            let (state, choice) = self.make(state, &item.choice)?;
            let violations = self.violations(&state);
            let key = if violations.is_empty() { self.key(&state, spent) } else { 0 };
            children.push(Child { state, choice, spent, key, violations });
        }
        Ok(After::Children(children))
    }
}

/// What an earlier search left is not of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

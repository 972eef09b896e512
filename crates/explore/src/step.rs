//! What happens at one choice: what was chosen, and what the test driver did then.

use demi_replay::fuzz::Choice;

/// One step of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step(Kind);

/// Nearly all steps are deliveries and nothing else. There are millions of them, so these are small.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A delivery.
    Delivery { index: u32, at: u32 },
    /// Anything else.
    Other(Box<Other>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    first: Choice,
    rest: Box<[Choice]>,
    /// How many of `rest` were chosen too.
    then: u32,
    /// How much of the recorded execution is then done or passed over.
    at: u32,
}

impl Step {
    /// A choice, what happens right after it without one, and how much of the recorded execution is then done.
    #[must_use]
    pub fn new(choice: Choice, then: Option<Choice>, at: usize) -> Self {
        let rest = then.as_slice();
        Step::made(choice, rest, rest.len() as u32, at as u32)
    }

    /// One of so many choices of which the first `chosen` were chosen; nothing where that is none of them, or more than there are.
    pub(crate) fn of(choices: &[Choice], chosen: usize, at: usize) -> Option<Self> {
        let (first, rest) = choices.split_first()?;
        let then = u32::try_from(chosen.checked_sub(1)?).ok().filter(|then| *then as usize <= rest.len())?;
        Some(Step::made(*first, rest, then, u32::try_from(at).ok()?))
    }

    fn made(first: Choice, rest: &[Choice], then: u32, at: u32) -> Self {
        match (first, rest) {
            (Choice::Deliver(index), []) => Step(Kind::Delivery { index, at }),
            _ => Step(Kind::Other(Box::new(Other { first, rest: rest.into(), then, at }))),
        }
    }

    /// With what the test driver did then.
    pub(crate) fn driven(&self, by: &[Choice]) -> Self {
        if by.is_empty() {
            return self.clone();
        }
        let rest: Vec<Choice> = self.rest().iter().chain(by).copied().collect();
        Step::made(self.first(), &rest, self.then(), self.at() as u32)
    }

    /// What was chosen, alone.
    pub(crate) fn alone(&self) -> Self {
        Step::made(self.first(), &self.rest()[..self.then() as usize], self.then(), self.at() as u32)
    }

    /// What was chosen.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = Choice> {
        std::iter::once(self.first()).chain(self.rest()[..self.then() as usize].iter().copied())
    }

    /// All that happened.
    pub fn choices(&self) -> impl Iterator<Item = Choice> {
        std::iter::once(self.first()).chain(self.rest().iter().copied())
    }

    /// How much of the recorded execution is then done or passed over.
    #[must_use]
    pub fn at(&self) -> usize {
        match &self.0 {
            Kind::Delivery { at, .. } => *at as usize,
            Kind::Other(other) => other.at as usize,
        }
    }

    fn first(&self) -> Choice {
        match &self.0 {
            Kind::Delivery { index, .. } => Choice::Deliver(*index),
            Kind::Other(other) => other.first,
        }
    }

    fn rest(&self) -> &[Choice] {
        match &self.0 {
            Kind::Delivery { .. } => &[],
            Kind::Other(other) => &other.rest,
        }
    }

    fn then(&self) -> u32 {
        match &self.0 {
            Kind::Delivery { .. } => 0,
            Kind::Other(other) => other.then,
        }
    }
}

//! What happens at one choice: what was chosen, and what the test driver did then.

use demi_replay::fuzz::Choice;

/// One step of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
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
        let rest: Box<[Choice]> = then.into_iter().collect();
        Step { first: choice, then: rest.len() as u32, rest, at: at as u32 }
    }

    /// One of so many choices of which the first `chosen` were chosen; nothing where that is none of them, or more than there are.
    pub(crate) fn of(choices: &[Choice], chosen: usize, at: usize) -> Option<Self> {
        let (first, rest) = choices.split_first()?;
        let then = u32::try_from(chosen.checked_sub(1)?).ok().filter(|then| *then as usize <= rest.len())?;
        Some(Step { first: *first, rest: rest.into(), then, at: u32::try_from(at).ok()? })
    }

    /// With what the test driver did then.
    pub(crate) fn driven(&self, by: &[Choice]) -> Self {
        match by {
            [] => self.clone(),
            by => Step { rest: self.rest.iter().chain(by).copied().collect(), ..*self },
        }
    }

    /// What was chosen, alone.
    pub(crate) fn alone(&self) -> Self {
        Step { rest: self.rest[..self.then as usize].into(), ..*self }
    }

    /// What was chosen.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = Choice> {
        std::iter::once(self.first).chain(self.rest[..self.then as usize].iter().copied())
    }

    /// All that happened.
    pub fn choices(&self) -> impl Iterator<Item = Choice> {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// How much of the recorded execution is then done or passed over.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at as usize
    }
}

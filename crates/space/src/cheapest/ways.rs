//! How configurations are reached: a tree of choices.

use super::pieces::Pieces;

/// How a configuration is reached from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way<C> {
    /// The place of the configuration that it begins at.
    pub from: usize,
    /// What happens.
    pub choice: C,
}

/// The tree. The place of a configuration is the number of the way that ends in it, from 1; the first configuration has place 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ways<C>(Pieces<Way<C>>);

impl<C> Default for Ways<C> {
    fn default() -> Self {
        Ways(Pieces::default())
    }
}

impl<C> Ways<C> {
    /// Adds a way; gives the place of the configuration that it leads to. `None` where it begins nowhere.
    pub fn add(&mut self, way: Way<C>) -> Option<usize> {
        if way.from > self.0.len() {
            return None;
        }
        self.0.push(way);
        Some(self.0.len())
    }

    /// The ways that were added, in that order.
    pub fn added(&self) -> impl Iterator<Item = &Way<C>> {
        self.0.iter()
    }

    /// How many were added.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// What leads from the first configuration to that of a place.
    #[must_use]
    pub fn to(&self, place: usize) -> Vec<&C> {
        let mut path = Vec::new();
        let mut at = place;
        // A way begins before it, so this ends.
        while let Some(way) = at.checked_sub(1).and_then(|at| self.0.get(at)) {
            path.push(&way.choice);
            at = way.from;
        }
        path.reverse();
        path
    }
}

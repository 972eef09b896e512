//! How moments are reached: a tree of choices.

use demi_replay::fuzz::Choice;

/// How a moment is reached from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// The place of the moment that it begins at.
    pub from: usize,
    /// What is chosen, and then what the test driver does.
    pub choices: Box<[Choice]>,
    /// How many of them are chosen.
    pub chosen: usize,
    /// How much of the recorded execution is then done or passed over.
    pub at: usize,
}

/// The tree. The place of a moment is the number of the way that ends in it; the first moment has place 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ways {
    ways: Vec<Way>,
}

impl Ways {
    /// A tree without choices, whose first moment comes after what leads to the beginning.
    pub fn new(before: &[Choice]) -> Ways {
        Ways { ways: vec![Way { from: 0, choices: before.into(), chosen: before.len(), at: 0 }] }
    }

    /// Adds a way; gives the place of the moment that it leads to. `None` where it begins nowhere.
    pub fn add(&mut self, way: Way) -> Option<usize> {
        if way.from >= self.ways.len() || way.chosen > way.choices.len() {
            return None;
        }
        self.ways.push(way);
        Some(self.ways.len() - 1)
    }

    /// How many moments there are.
    pub fn len(&self) -> usize {
        self.ways.len()
    }

    /// The ways that were added, in that order.
    pub fn added(&self) -> &[Way] {
        &self.ways[1..]
    }

    /// The ways from the first moment to that of a place.
    pub fn to(&self, place: usize) -> Vec<&Way> {
        let mut path = Vec::new();
        let mut at = place;
        // A way begins before it, so this ends.
        while at != 0 {
            path.push(&self.ways[at]);
            at = self.ways[at].from;
        }
        path.reverse();
        path
    }

    /// All choices from nothing on to the moment of a place.
    pub fn choices(&self, place: usize) -> Vec<Choice> {
        let first = self.ways[0].choices.iter();
        first.chain(self.to(place).into_iter().flat_map(|way| way.choices.iter())).copied().collect()
    }
}

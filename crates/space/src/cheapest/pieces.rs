//! A list that grows without being copied: there may be millions of things in it.

/// Things of one piece.
const PIECE: usize = 1024;

/// The list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces<T>(Vec<Vec<T>>);

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces(Vec::new())
    }
}

impl<T> Pieces<T> {
    /// Adds one at the end.
    pub fn push(&mut self, one: T) {
        match self.0.last_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => piece.push(one),
            None => {
                // The first piece is small: most lists are short.
                let mut piece = Vec::with_capacity(if self.0.is_empty() { 0 } else { PIECE });
                piece.push(one);
                self.0.push(piece);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PIECE + last.len())
    }

    /// The one at a place.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / PIECE)?.get(at % PIECE)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

impl<T> IntoIterator for Pieces<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_where_it_was_put() {
        for count in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7] {
            let mut pieces = Pieces::default();
            (0..count).for_each(|n| pieces.push(n));
            assert_eq!(pieces.len(), count);
            assert!((0..count).all(|n| pieces.get(n) == Some(&n)));
            assert_eq!(pieces.get(count), None);
            assert!(pieces.iter().copied().eq(0..count));
            assert!(pieces.into_iter().eq(0..count));
        }
    }
}

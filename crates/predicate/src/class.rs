//! Classes of actors: whom a predicate is about.

use glob::Pattern;
pub use glob::PatternError as ClassError;

/// The actors that may stand at the places of a row, by patterns of their names as a shell has them: `*`, `?`, `[..]`. The default is every
/// actor at all places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// One for each place; the last counts for all further ones.
    places: Vec<Pattern>,
}

impl Class {
    /// Reads the class of an invariant: a pattern, or for messages and chains several with arrows in between (`client-* -> server-*`).
    ///
    /// # Errors
    /// When one is no pattern.
    pub fn parse(text: &str) -> Result<Class, ClassError> {
        Ok(Class { places: text.split(" -> ").map(Pattern::new).collect::<Result<_, _>>()? })
    }

    /// The patterns, by place; none where it is every actor.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(Pattern::as_str)
    }

    /// Whether an actor may stand at a place of a row, counted from 0: that is the only one of all rows but those of messages and
    /// chains.
    #[must_use]
    pub fn has(&self, actor: &str, place: usize) -> bool {
        self.places.get(place).or(self.places.last()).is_none_or(|pattern| pattern.matches(actor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pattern_counts_for_all_further_places() {
        let class = Class::parse("client-* -> server-[ab]").unwrap();
        assert!(class.has("client-1", 0) && !class.has("server-a", 0));
        assert!(class.has("server-b", 1) && class.has("server-a", 7) && !class.has("server-c", 1));
        assert!(Class::default().has("anyone", 3));
        assert!(Class::parse("[").is_err());
    }
}

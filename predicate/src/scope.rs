//! What the rows of a predicate are: the words in front of WHERE, GROUP BY and HAVING.

use std::fmt;

/// What the rows of a predicate are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One row an actor: its last state; `prev.x` is of the one before.
    Actors,
    /// One row an ordered pair of different actors, under two names.
    Pairs(String, String),
    /// One row a state that was told so far.
    Ever,
    /// One row a pair of states told so far, the first before the second, of any actors, under two names.
    EverPairs(String, String),
}

/// How the state before the last is called.
pub(crate) const BEFORE: &str = "prev";

impl Scope {
    /// The side of a row that goes by a name in front of a variable.
    pub(crate) fn side(&self, name: &str) -> Option<usize> {
        match self {
            Scope::Actors => (name == BEFORE).then_some(1),
            Scope::Ever => None,
            Scope::Pairs(a, b) | Scope::EverPairs(a, b) => [a, b].iter().position(|n| *n == name),
        }
    }

    /// The name in front of variables of a side; none where they stand alone.
    pub(crate) fn name(&self, side: usize) -> Option<&str> {
        match self {
            Scope::Actors => (side == 1).then_some(BEFORE),
            Scope::Ever => None,
            Scope::Pairs(a, b) | Scope::EverPairs(a, b) => Some(if side == 0 { a } else { b }),
        }
    }

    /// The two names of a scope of pairs.
    pub(crate) fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Scope::Pairs(a, b) | Scope::EverPairs(a, b) => Some((a, b)),
            Scope::Actors | Scope::Ever => None,
        }
    }

    /// Whether its rows are states told at any time, and not those of one moment.
    #[must_use]
    pub fn is_history(&self) -> bool {
        matches!(self, Scope::Ever | Scope::EverPairs(..))
    }

    /// Takes the words of the scope off the text; returns how many bytes they are.
    ///
    /// A word counts only with what must follow it, so that variables may be called `ever` or `pairs`.
    pub(crate) fn take(text: &str) -> (Scope, usize) {
        let mut words = Words { text, at: 0 };
        let ever = words.word().is_some_and(|w| w.eq_ignore_ascii_case("ever"));
        if !ever {
            words.at = 0;
        }
        let after_ever = words.at;
        if words.word().is_some_and(|w| w.eq_ignore_ascii_case("pairs"))
            && let Some(a) = words.word()
            && words.comma()
            && let Some(b) = words.word()
        {
            let (a, b) = (a.to_owned(), b.to_owned());
            return (if ever { Scope::EverPairs(a, b) } else { Scope::Pairs(a, b) }, words.at);
        }
        let next = Words { text, at: after_ever }.word().unwrap_or_default().to_lowercase();
        match ever && is_clause(&next) {
            true => (Scope::Ever, after_ever),
            false => (Scope::Actors, 0),
        }
    }
}

/// Whether a word, in small letters, begins what follows a scope.
pub(crate) fn is_clause(word: &str) -> bool {
    matches!(word, "where" | "group" | "having")
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Actors => Ok(()),
            Scope::Ever => f.write_str("EVER "),
            Scope::Pairs(a, b) => write!(f, "PAIRS {a}, {b} "),
            Scope::EverPairs(a, b) => write!(f, "EVER PAIRS {a}, {b} "),
        }
    }
}

struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn word(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some(word)
    }

    fn comma(&mut self) -> bool {
        let found = self.rest().starts_with(',');
        self.at += usize::from(found);
        found
    }
}

//! What the rows of a predicate are: the words in front of WHERE, GROUP BY and HAVING.

use std::fmt;

/// The rows of a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One row an actor: its last state; `prev.x` is of the one before.
    Actors,
    /// One row an ordered pair of different actors, under two names.
    Pairs(String, String),
    /// As pairs, of actors that exchanged a message so far.
    Neighbours(String, String),
    /// One row a message that was delivered so far, of one type or of all: the states of its sender and its receiver, the receiver's
    /// before it, and the message.
    Messages(Option<String>),
    /// One row a causal chain of messages so far: the states of its actors, the first first.
    Chain,
    /// One row a state that was told so far.
    Ever,
    /// One row a pair of states told so far, the first before the second, of any actors, under two names.
    EverPairs(String, String),
}

/// The states of an actor that a predicate can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// The last alone.
    Now,
    /// The last and the one before.
    Step,
    /// Each that is reported.
    Each,
}

/// How the state before the last is called.
pub(crate) const BEFORE: &str = "prev";

/// The sides of a message, in their order.
const MESSAGE: [&str; 4] = ["sender", "receiver", "before", "message"];
/// The side with what the message itself tells.
pub(crate) const TELLS: usize = 3;
/// The side with the type of a message. It has one column.
pub(crate) const TYPE: usize = 9;
/// How the column with the type of a message is called.
pub(crate) const TYPE_NAME: &str = "type";
/// The states of a causal chain, in their order.
const LINKS: [&str; LONGEST] = ["s1", "s2", "s3", "s4", "s5"];
/// Most states of a causal chain.
pub const LONGEST: usize = 5;
/// Least states of a causal chain: two are a message.
pub(crate) const SHORTEST: usize = 3;

impl Scope {
    /// The side of a row that goes by a name in front of a variable.
    pub(crate) fn side(&self, name: &str) -> Option<usize> {
        match self {
            Scope::Actors => (name == BEFORE).then_some(1),
            Scope::Ever => None,
            Scope::Messages(_) => MESSAGE.iter().position(|n| *n == name),
            Scope::Chain => LINKS.iter().position(|n| *n == name),
            Scope::Pairs(a, b) | Scope::Neighbours(a, b) | Scope::EverPairs(a, b) => {
                [a, b].iter().position(|n| *n == name)
            }
        }
    }

    /// The name in front of variables of a side; none where they stand alone.
    pub(crate) fn name(&self, side: usize) -> Option<&str> {
        match self {
            Scope::Actors => (side == 1).then_some(BEFORE),
            Scope::Ever => None,
            Scope::Messages(_) => MESSAGE.get(side).copied(),
            Scope::Chain => LINKS.get(side).copied(),
            Scope::Pairs(a, b) | Scope::Neighbours(a, b) | Scope::EverPairs(a, b) => {
                Some(if side == 0 { a } else { b })
            }
        }
    }

    /// The two names of a scope of pairs.
    pub(crate) fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Scope::Pairs(a, b) | Scope::Neighbours(a, b) | Scope::EverPairs(a, b) => Some((a, b)),
            Scope::Actors | Scope::Ever | Scope::Messages(_) | Scope::Chain => None,
        }
    }

    /// The names of which one has to stand in front of each variable; none where variables may stand alone.
    pub(crate) fn sides(&self) -> Option<Vec<&str>> {
        match self {
            Scope::Actors | Scope::Ever => None,
            Scope::Messages(_) => Some(MESSAGE.to_vec()),
            Scope::Chain => Some(LINKS.to_vec()),
            Scope::Pairs(a, b) | Scope::Neighbours(a, b) | Scope::EverPairs(a, b) => Some(vec![a, b]),
        }
    }

    /// Whether its rows are messages or chains of them.
    #[must_use]
    pub fn is_of_messages(&self) -> bool {
        matches!(self, Scope::Messages(_) | Scope::Chain)
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
        if !ever && let Some(found) = Scope::of_messages(text) {
            return found;
        }
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

impl Scope {
    /// The scopes that speak of messages.
    fn of_messages(text: &str) -> Option<(Scope, usize)> {
        let mut words = Words { text, at: 0 };
        let scope = match words.word()?.to_lowercase().as_str() {
            "neighbours" => {
                let a = words.word()?.to_owned();
                let b = words.comma().then(|| words.word())??.to_owned();
                return Some((Scope::Neighbours(a, b), words.at));
            }
            "messages" => Scope::Messages(words.quoted()),
            "chain" => Scope::Chain,
            _ => return None,
        };
        let at = words.at;
        is_clause(&words.word()?.to_lowercase()).then_some((scope, at))
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
            Scope::Neighbours(a, b) => write!(f, "NEIGHBOURS {a}, {b} "),
            Scope::Messages(None) => f.write_str("MESSAGES "),
            Scope::Messages(Some(kind)) => write!(f, "MESSAGES '{}' ", kind.replace('\'', "''")),
            Scope::Chain => f.write_str("CHAIN "),
        }
    }
}

/// The words of a scope, one after the other.
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

    /// A text in single quotes, in which two stand for one.
    fn quoted(&mut self) -> Option<String> {
        let inner = self.rest().strip_prefix('\'')?;
        let mut text = String::new();
        let mut letters = inner.char_indices().peekable();
        while let Some((i, letter)) = letters.next() {
            match letter {
                '\'' if letters.next_if(|(_, next)| *next == '\'').is_some() => text.push('\''),
                '\'' => {
                    self.at = self.text.len() - inner.len() + i + 1;
                    return Some(text);
                }
                _ => text.push(letter),
            }
        }
        None
    }

    fn comma(&mut self) -> bool {
        let found = self.rest().starts_with(',');
        self.at += usize::from(found);
        found
    }
}

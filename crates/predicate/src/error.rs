//! Why a text is no predicate, and where in it.

use std::fmt;

use demi_common::hint::did_you_mean;

/// An error of reading a predicate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    reason: String,
    /// The line of the text that is meant, and the letters before the place in it.
    place: Option<(String, usize)>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match &self.place {
            None => Ok(()),
            Some((line, before)) => write!(f, "\n  {line}\n  {:before$}^", ""),
        }
    }
}

/// A mistake in a text, and its place.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) reason: String,
    /// The byte of the text that is meant; none where it is about the text as a whole.
    at: Option<usize>,
    /// Whether the text cannot be read at all.
    syntax: bool,
}

impl Mistake {
    /// Something that can be read at a place, and is not allowed there.
    pub(crate) fn at(reason: String, at: usize) -> Mistake {
        Mistake { reason, at: Some(at), syntax: false }
    }

    /// A place at which the text cannot be read on.
    pub(crate) fn syntax(reason: String, at: usize) -> Mistake {
        Mistake { reason: format!("no predicate: {reason}"), at: Some(at), syntax: true }
    }

    /// The same where `bytes` stand before the text that was read.
    pub(crate) fn moved(self, bytes: usize) -> Mistake {
        Mistake { at: self.at.map(|at| at + bytes), ..self }
    }
}

impl From<String> for Mistake {
    fn from(reason: String) -> Mistake {
        Mistake { reason, at: None, syntax: false }
    }
}

impl From<&str> for Mistake {
    fn from(reason: &str) -> Mistake {
        reason.to_owned().into()
    }
}

/// Words of the language that a slip of the pen may have hit.
const WORDS: [&str; 18] = [
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "FILTER",
    "DISTINCT",
    "BETWEEN",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "PAIRS",
    "EVER",
    "NEIGHBOURS",
    "MESSAGES",
    "CHAIN",
];

impl ParseError {
    /// An error about the text as a whole.
    pub(crate) fn whole(reason: impl Into<String>) -> ParseError {
        ParseError { reason: reason.into(), place: None }
    }

    /// What is wrong with `text`. Where it cannot be read, a word that was likely meant is named.
    pub(crate) fn new(text: &str, wrong: Mistake) -> ParseError {
        let Some(at) = wrong.at else { return ParseError::whole(wrong.reason) };
        let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[begin..].lines().next().unwrap_or_default();
        let before = text[begin..at].chars().count();
        let hint = if wrong.syntax { meant(line, before) } else { String::new() };
        ParseError { reason: wrong.reason + &hint, place: Some((line.to_owned(), before)) }
    }
}

/// A word of the language that is near to the one before the place or at it, without being it.
fn meant(line: &str, before: usize) -> String {
    let at = line.char_indices().nth(before).map_or(line.len(), |(i, _)| i);
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let here = line[at..].split(|c| !letter(c)).next().unwrap_or_default();
    let last = line[..at].split(|c| !letter(c)).rfind(|w| !w.is_empty()).unwrap_or_default();
    let first = line.split(|c| !letter(c)).find(|w| !w.is_empty()).unwrap_or_default();
    [here, last, first]
        .into_iter()
        .filter(|word| word.len() > 1)
        .map(str::to_uppercase)
        .filter(|word| !WORDS.contains(&word.as_str()))
        .map(|word| did_you_mean(&word, WORDS))
        .find(|hint| !hint.is_empty())
        .unwrap_or_default()
}

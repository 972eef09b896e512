//! Why a text is no predicate, and where in it.

use std::fmt;

use demi_common::hint::did_you_mean;
use sqlparser::tokenizer::Location;

/// Why a text is no predicate.
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

/// What is wrong, and where in the statement that was made of the text.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) reason: String,
    pub(crate) at: Option<Location>,
}

impl From<String> for Wrong {
    fn from(reason: String) -> Wrong {
        Wrong { reason, at: None }
    }
}

impl From<&str> for Wrong {
    fn from(reason: &str) -> Wrong {
        Wrong { reason: reason.to_owned(), at: None }
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

    /// An error at a place of `text`, of which a statement was made by putting `prefix` letters before it.
    pub(crate) fn new(text: &str, prefix: usize, wrong: Wrong) -> ParseError {
        let place = wrong.at.filter(|at| at.line > 0 && at.column > 0).and_then(|at| {
            let line = text.lines().nth(at.line as usize - 1)?.to_owned();
            let before = at.column as usize - 1;
            let before = if at.line == 1 { before.checked_sub(prefix)? } else { before };
            let before = before.min(line.chars().count());
            Some((line, before))
        });
        ParseError { reason: wrong.reason, place }
    }

    /// The same error of the statement's parser, whose message names the place, with the word that was likely meant.
    pub(crate) fn syntax(text: &str, prefix: usize, message: &str) -> ParseError {
        let message = message.strip_prefix("sql parser error: ").unwrap_or(message);
        let (reason, at) = match message.split_once(" at Line: ") {
            Some((reason, at)) => (reason, location(at)),
            None => (message, None),
        };
        let end = Location { line: 1, column: (prefix + text.trim_end().chars().count() + 1) as u64 };
        let at = at.or_else(|| (!text.contains('\n')).then_some(end));
        let mut error =
            ParseError::new(text, prefix, Wrong { reason: format!("no predicate: {reason}"), at });
        if let Some((line, before)) = &error.place {
            error.reason.push_str(&meant(line, *before));
        }
        error
    }
}

fn location(text: &str) -> Option<Location> {
    let (line, column) = text.split_once(", Column: ")?;
    Some(Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
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

//! A handler that panics, or raises an exception where models are written in other languages: a violation like others.

use super::Simulator;
use crate::guard::Panic;
use crate::model::{Model, Violation};
use crate::names::OUTSIDE;
use crate::world::World;

/// How the fingerprint of a crash begins.
const CRASH: &str = "crash: ";
/// Characters of an error's text that a fingerprint has; where it happened comes besides.
const SHOWN: usize = 400;

/// Whether a fingerprint is that of a crash. No bound of a model is about one.
#[must_use]
pub fn is_crash(fingerprint: &str) -> bool {
    fingerprint.starts_with(CRASH)
}

impl<M: Model> Simulator<M> {
    /// The violation that a panic is: that of a handler, unless the scenario says that it is none.
    #[must_use]
    pub fn crashed(&self, panic: &Panic) -> Option<Violation> {
        let counts = self.crash_counts && panic.actor != OUTSIDE;
        let fingerprint = || format!("{CRASH}{}, {}", self.names.get(panic.actor), stable(&panic.message));
        counts.then(|| Violation { fingerprint: fingerprint(), affected: vec![panic.actor] })
    }

    /// The violation that a world ends in, if the step that led there was a crash that counts.
    #[must_use]
    pub fn crash_of(&self, world: &World<M>) -> Option<Violation> {
        world.panic().and_then(|panic| self.crashed(panic))
    }
}

/// An error's text without what differs from run to run: addresses, the order of sets and maps, and line breaks. A long one is cut.
#[must_use]
pub fn stable(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = without_addresses(&sorted(&words.join(" ")));
    let (said, place) = match text.rfind(" (") {
        Some(at) if text.ends_with(')') => text.split_at(at),
        _ => (&text[..], ""),
    };
    match said.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…{place}", &said[..end]),
        None => text.clone(),
    }
}

/// The text with "0x…" for each number that is written like an address.
fn without_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push_str(&rest[..at + 2]);
        // What is short is a number that somebody wrote.
        out.push_str(if digits >= 6 { "…" } else { &rest[at + 2..at + 2 + digits] });
        rest = &rest[at + 2 + digits..];
    }
    out.push_str(rest);
    out
}

/// The text with what stands between braces, separated by commas, in order: sets and maps are printed in any order. Where braces do not
/// match it stays as it is.
fn sorted(text: &str) -> String {
    // The items of each brace that is open, and how deep other brackets are within the last of them.
    let mut open: Vec<(Vec<String>, i32)> = vec![(vec![String::new()], 0)];
    let mut quote = None;
    for c in text.chars() {
        let Some((items, depth)) = open.last_mut() else { return text.to_owned() };
        let starts_item = items.last().is_some_and(String::is_empty);
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            // An apostrophe within a word is no quote.
            '"' | '\'' if starts_item || items.last().is_some_and(|i| i.ends_with([' ', '(', '['])) => {
                quote = Some(c);
            }
            '{' => {
                open.push((vec![String::new()], 0));
                continue;
            }
            '}' => {
                let Some((mut items, _)) = open.pop() else { return text.to_owned() };
                let Some((outer, _)) = open.last_mut() else { return text.to_owned() };
                items.iter_mut().for_each(|item| *item = item.trim().to_owned());
                items.sort_unstable();
                if let Some(last) = outer.last_mut() {
                    last.push_str(&format!("{{{}}}", items.join(", ")));
                }
                continue;
            }
            '(' | '[' => *depth += 1,
            ')' | ']' => *depth -= 1,
            ',' if *depth == 0 && open.len() > 1 => {
                if let Some((items, _)) = open.last_mut() {
                    items.push(String::new());
                }
                continue;
            }
            _ => {}
        }
        let inside = open.len() > 1;
        // What comes after a comma begins an item.
        if let Some(item) = open.last_mut().and_then(|(items, _)| items.last_mut())
            && !(inside && item.is_empty() && c == ' ')
        {
            item.push(c);
        }
    }
    match &open[..] {
        [(items, _)] if quote.is_none() => items.concat(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        for (text, expected) in [
            ("no key 'a' (m.py:7)", "no key 'a' (m.py:7)"),
            ("<Node at 0x7f3a5c001234> is 0x1f (m.py:7)", "<Node at 0x…> is 0x1f (m.py:7)"),
            ("left: {3, 1, 2}\n  right: {}", "left: {1, 2, 3} right: {}"),
            ("{'b': {2, 1}, 'a': [3, 2]} it's", "{'a': [3, 2], 'b': {1, 2}} it's"),
            ("{\"x, y\": 1, \"a\": (2, 1)}", "{\"a\": (2, 1), \"x, y\": 1}"),
            ("State { b: 1, a: 2 }", "State {a: 2, b: 1}"),
            ("not closed {b, a", "not closed {b, a"),
            ("closed } twice", "closed } twice"),
            ("", ""),
        ] {
            assert_eq!(stable(text), expected);
        }
        let long = format!("{} (m.py:7)", "é".repeat(1_000));
        assert_eq!(stable(&long), format!("{}… (m.py:7)", "é".repeat(SHOWN)));
    }
}

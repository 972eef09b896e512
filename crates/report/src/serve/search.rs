//! Searches of a served page: what its script makes of the typed text comes as patterns, and events that hold them go back.

use std::collections::BinaryHeap;

use demi_lineage::export::{self, Content, Skeleton};
use demi_schemas::Kind;
use regex::{Regex, RegexBuilder};
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::Value;

use super::Served;
use super::answer::Answer;
use crate::error::ReportError;
use crate::timeline::plain;

/// Most patterns of one question, with an order between them.
const PATTERNS: usize = 16;

/// What an event, or one field of it, has to hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Test {
    /// The field; any where it is absent.
    #[serde(default)]
    key: Option<Key>,
    /// The member of `fields` or of the state.
    #[serde(default)]
    path: Vec<String>,
    text: String,
    /// Whether the text is a regular expression.
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    flags: String,
    /// Whether the text is a number that what is found is above or below.
    #[serde(default)]
    compare: Option<Compare>,
}

/// How a number is compared with another.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
enum Compare {
    #[serde(rename = ">")]
    Above,
    #[serde(rename = ">=")]
    From,
    #[serde(rename = "<")]
    Below,
    #[serde(rename = "<=")]
    UpTo,
}

impl Compare {
    fn holds(self, number: f64, bound: f64) -> bool {
        match self {
            Compare::Above => number > bound,
            Compare::From => number >= bound,
            Compare::Below => number < bound,
            Compare::UpTo => number <= bound,
        }
    }
}

/// A field that a search can name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Key {
    Actor,
    Kind,
    Id,
    Type,
    Payload,
    From,
    To,
    Fields,
    Time,
    MsgId,
    Source,
    State,
    Is,
}

/// Tests that all hold, or, with `not`, do not all hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Term {
    #[serde(default)]
    not: bool,
    tests: Vec<Test>,
}

/// A decimal number; names such as `inf` are none.
fn number(text: &str) -> Option<f64> {
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    text.trim().parse().ok().filter(|_| text.trim().chars().all(digits))
}

/// Whether a text holds what is looked for.
enum Holding {
    Part(String),
    Regex(Regex),
    Number(Compare, f64),
}

impl Holding {
    fn of(test: &Test) -> Result<Holding, ReportError> {
        if let Some(compare) = test.compare {
            let none = || ReportError::Pattern(format!("{} is no number", test.text));
            return Ok(Holding::Number(compare, number(&test.text).ok_or_else(none)?));
        }
        if !test.regex {
            return Ok(Holding::Part(test.text.to_lowercase()));
        }
        let has = |flag| test.flags.contains(flag);
        let regex = RegexBuilder::new(&test.text)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .build();
        Ok(Holding::Regex(regex.map_err(|e| ReportError::Pattern(e.to_string()))?))
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Holding::Part(part) => text.to_lowercase().contains(part),
            Holding::Regex(regex) => regex.is_match(text),
            Holding::Number(compare, bound) => {
                number(text).is_some_and(|number| compare.holds(number, *bound))
            }
        }
    }
}

/// A test that is ready to be asked.
struct Prepared<'a> {
    test: &'a Test,
    holding: Holding,
    /// The events that change a variable so that the test holds.
    changing: FxHashSet<u32>,
}

/// The value at a path inside a JSON text, as it is written.
fn member(text: &str, path: &[String]) -> Option<String> {
    if path.is_empty() {
        return Some(text.to_owned());
    }
    let mut value: Value = serde_json::from_str(text).ok()?;
    for name in path {
        value = match value {
            Value::Object(mut members) => members.remove(name)?,
            Value::Array(mut items) => {
                let at: usize = name.parse().ok()?;
                (at < items.len()).then(|| items.swap_remove(at))?
            }
            _ => return None,
        };
    }
    Some(plain(&value))
}

impl<'a> Prepared<'a> {
    fn new(served: &Served, test: &'a Test) -> Result<Prepared<'a>, ReportError> {
        let holding = Holding::of(test)?;
        let mut changing = FxHashSet::default();
        if matches!(test.key, None | Some(Key::State)) && !(test.text.is_empty() && test.path.is_empty()) {
            let inside = test.path.get(1..).unwrap_or_default();
            served.timelines.each(|event, name, value| {
                let within = || {
                    value.and_then(|value| member(value, inside)).is_some_and(|value| holding.holds(&value))
                };
                // Of a name alone, what changes it to anything is asked for, and what ends it.
                let gone = || value.is_none() && inside.is_empty() && holding.holds("");
                let holds = match test.path.first() {
                    Some(variable) => name == variable && (gone() || within()),
                    None => holding.holds(name) || within(),
                };
                if holds {
                    changing.insert(event);
                }
            });
        }
        Ok(Prepared { test, holding, changing })
    }

    fn holds(&self, served: &Served, e: u32, content: &Content) -> bool {
        let (s, i) = (&served.skeleton, e as usize);
        let violation = || served.violations.binary_search(&e).is_ok();
        if self.test.key == Some(Key::Is) {
            return match self.test.text.as_str() {
                "violation" => violation(),
                "kept" => s.kept[i],
                "pruned" => !s.kept[i],
                "outside" => content.external,
                "affected" => content.reason.as_deref() == Some("affected"),
                "local" => {
                    let elsewhere = |other: u32| s.actor[other as usize] != s.actor[i];
                    !matches!(s.kind[i], Kind::Send | Kind::Receive)
                        && !s.causes(e).chain(s.effects(e)).any(|edge| elsewhere(edge.event))
                }
                _ => false,
            };
        }
        if (self.test.text.is_empty() && self.test.path.is_empty()) || self.changing.contains(&e) {
            return true;
        }
        let wanted = |key: Key| self.test.key.map_or(key != Key::Source, |one| one == key);
        let path = &self.test.path;
        let text = |key: Key, text: Option<&str>| {
            let Some(text) = text.filter(|_| wanted(key)) else { return false };
            match path.as_slice() {
                [] => self.holding.holds(text),
                path => member(text, path).is_some_and(|member| self.holding.holds(&member)),
            }
        };
        text(Key::Actor, Some(&s.actors[s.actor[i] as usize]))
            || text(Key::Kind, Some(s.kind[i].as_str()))
            || text(Key::Type, content.type_.as_deref())
            || text(Key::Payload, content.payload.as_deref())
            || text(Key::From, content.from.as_deref())
            || text(Key::To, content.to.as_deref())
            || text(Key::Fields, content.fields.as_deref())
            || text(Key::Time, content.time.as_deref())
            || text(Key::MsgId, content.msg_id.as_deref())
            || text(Key::Source, content.source.as_deref())
            || (wanted(Key::Id) && self.holding.holds(&s.id(e).to_string()))
    }
}

/// A pattern that is ready to be asked.
struct Pattern<'a>(Vec<(bool, Vec<Prepared<'a>>)>);

impl<'a> Pattern<'a> {
    fn new(served: &Served, terms: &'a [Term]) -> Result<Pattern<'a>, ReportError> {
        let terms = terms.iter().map(|term| {
            let tests =
                term.tests.iter().map(|test| Prepared::new(served, test)).collect::<Result<_, _>>()?;
            Ok((term.not, tests))
        });
        Ok(Pattern(terms.collect::<Result<_, ReportError>>()?))
    }

    fn holds(&self, served: &Served, e: u32, content: &Content) -> bool {
        self.0.iter().all(|(not, tests)| tests.iter().all(|test| test.holds(served, e, content)) != *not)
    }
}

impl Served {
    /// The first events after `after` that hold a pattern; of several patterns, those that end a chain of events, each of which happens
    /// before the next.
    pub(crate) fn search(
        &self,
        patterns: &[Vec<Term>],
        after: Option<u32>,
        results: usize,
    ) -> Result<Answer, ReportError> {
        if patterns.is_empty() || patterns.len() > PATTERNS {
            return Err(ReportError::Pattern(format!("1 to {PATTERNS} events are looked for")));
        }
        let first = after.map_or(0, |a| a.saturating_add(1));
        let patterns: Vec<Pattern<'_>> =
            patterns.iter().map(|terms| Pattern::new(self, terms)).collect::<Result<_, _>>()?;
        if let [pattern] = patterns.as_slice() {
            // The earliest events are wanted, and the file is in another order: the largest of too many is dropped.
            let (mut found, mut total) = (BinaryHeap::new(), 0);
            export::contents(
                &self.exec,
                |e| e >= first,
                |e, content| -> Result<(), ReportError> {
                    if pattern.holds(self, e, &content) {
                        total += 1;
                        found.push(e);
                        if found.len() > results {
                            found.pop();
                        }
                    }
                    Ok(())
                },
            )?;
            return Ok(Answer::Found { events: found.into_sorted_vec(), total, matches: Vec::new() });
        }
        let mut holding = vec![vec![false; self.skeleton.len()]; patterns.len()];
        export::contents(
            &self.exec,
            |_| true,
            |e, content| -> Result<(), ReportError> {
                for (pattern, holding) in patterns.iter().zip(&mut holding) {
                    holding[e as usize] = pattern.holds(self, e, &content);
                }
                Ok(())
            },
        )?;
        let (matches, total) = chains(&self.skeleton, &holding, first, results);
        let events = matches.iter().filter_map(|one| one.last().copied()).collect();
        Ok(Answer::Found { events, total, matches })
    }
}

/// For each event from `first` on that may be the last of a chain: the chain with the latest event that may stand before it, and so on. At
/// most `results` of them, and how many there are.
fn chains(s: &Skeleton, holding: &[Vec<bool>], first: u32, results: usize) -> (Vec<Vec<u32>>, u64) {
    // By pattern and event: the latest end of it at or before the event, from 1.
    let mut latest = vec![vec![0_u32; s.len()]; holding.len()];
    let strictly = |latest: &[u32], e: u32| {
        let causes = s.causes(e).map(|edge| edge.event).chain(s.previous(e));
        causes.map(|cause| latest[cause as usize]).max().unwrap_or(0)
    };
    let (mut matches, mut total) = (Vec::new(), 0);
    for e in 0..s.len() as u32 {
        let i = e as usize;
        let before: Vec<u32> = latest.iter().map(|latest| strictly(latest, e)).collect();
        for (p, holding) in holding.iter().enumerate() {
            let ends = holding[i] && p.checked_sub(1).is_none_or(|q| before[q] > 0);
            latest[p][i] = if ends { e + 1 } else { before[p] };
            if ends && p + 1 == latest.len() && e >= first {
                total += 1;
                if matches.len() < results {
                    let mut chain = vec![e];
                    for latest in latest[..p].iter().rev() {
                        let last = chain.last().copied().unwrap_or(e);
                        chain.push(strictly(latest, last).saturating_sub(1));
                    }
                    chain.reverse();
                    matches.push(chain);
                }
            }
        }
    }
    (matches, total)
}

/// The longest chain of events from one to another, each of which happens before the next; from a first event where `from` is absent.
/// `within` says which events may be on it.
pub(crate) fn longest(s: &Skeleton, from: Option<u32>, to: u32, within: impl Fn(u32) -> bool) -> Vec<u32> {
    // By event: how many stand on the longest chain to it, and the one before it, from 1.
    let low = from.unwrap_or(0);
    let size = (to + 1).saturating_sub(low) as usize;
    let mut depth = vec![(0_u32, 0_u32); size];
    for e in low..=to {
        if !within(e) {
            continue;
        }
        let causes = s.previous(e).into_iter().chain(s.causes(e).map(|edge| edge.event));
        let mut best = (0, 0);
        for cause in causes.filter(|cause| *cause >= low) {
            let deep = depth[(cause - low) as usize].0;
            if deep > best.0 {
                best = (deep, cause + 1);
            }
        }
        if best.0 > 0 || from.is_none_or(|from| from == e) {
            depth[(e - low) as usize] = (best.0 + 1, best.1);
        }
    }
    let mut chain = Vec::new();
    let mut at = Some(to).filter(|to| depth.get((*to).wrapping_sub(low) as usize).is_some_and(|d| d.0 > 0));
    while let Some(e) = at {
        chain.push(e);
        at = depth[(e - low) as usize].1.checked_sub(1);
    }
    chain.reverse();
    chain
}

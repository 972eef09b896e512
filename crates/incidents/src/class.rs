//! The class of a schedule: what stays when actors have other names, values other numbers, and concurrent steps another order.
//!
//! A schedule is a graph: a vertex for each step, each actor and each value, and edges from a step to the next one at its actor, to the steps that
//! took what it sent, to its actor and to the actors and values that its content names. Concurrent steps have no edge, so the graph is the
//! Mazurkiewicz trace. Its canonical form is found by colour refinement and individualization; its digest is a key. Coarser keys leave out values,
//! and then order.

mod canonical;
mod effects;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::hex_of;
use canonical::Graph;

pub use read::{Unread, of_result};

/// Most items of a bag that are kept.
const MOST_ITEMS: usize = 256;
/// How many digits of a digest tell the items of one bag from each other.
const DIGITS: usize = 12;

/// One step of a schedule that was run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// What it does.
    pub kind: String,
    /// The type of the message, or the timer's name.
    pub type_: String,
    /// Whether it comes from outside.
    pub external: bool,
    /// At which actor it happens.
    pub actor: String,
    /// Its content, as text.
    pub content: String,
    /// The steps before it, at other actors, that it follows directly.
    pub causes: Vec<usize>,
    /// What it changes and sends, as the explanation of the result tells it, one a line: `term: 0 → 1`, `to b: Vote(1)`.
    pub effects: Vec<String>,
}

/// The keys of a schedule, from exact to coarse.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Keys {
    /// With values.
    pub exact: String,
    /// Without values.
    pub shape: String,
    /// How many of which steps each actor takes; actors have no names.
    pub profile: String,
    /// Whether the canonical form was too much work: then equal schedules have equal keys, and a few different ones may too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// How often which step comes, with what it does: which parts of the state it changes and how, and what it sends. Digests, since these texts
    /// are the system's own. Nearness is judged from it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bag: BTreeMap<String, u32>,
}

impl Keys {
    /// The keys as texts that tell their kind, from exact to coarse. Bugs of another model or invariant, `of`, have other ones.
    #[must_use]
    pub fn texts(&self, of: &[&str]) -> Vec<String> {
        let of = hex_of(of);
        [("exact", &self.exact), ("shape", &self.shape), ("profile", &self.profile)]
            .map(|(kind, key)| format!("{kind}:{}", hex_of(&[&of, key])))
            .to_vec()
    }

    /// How near two schedules are, from 0 to 1: the steps that both have, of those that one of them has. A step is what it takes and what it does.
    #[must_use]
    pub fn overlap(&self, other: &Keys) -> f64 {
        let names: BTreeSet<&String> = self.bag.keys().chain(other.bag.keys()).collect();
        let count = |bag: &BTreeMap<String, u32>, name| f64::from(bag.get(name).copied().unwrap_or(0));
        let (mut shared, mut all) = (0.0, 0.0);
        for name in names {
            let (a, b) = (count(&self.bag, name), count(&other.bag, name));
            shared += a.min(b);
            all += a.max(b);
        }
        if all == 0.0 { 0.0 } else { shared / all }
    }
}

/// An actor's class: its name without numbers.
fn class_of(actor: &str) -> String {
    let mut class = String::with_capacity(actor.len());
    for c in actor.chars() {
        if !c.is_ascii_digit() {
            class.push(c);
        } else if !class.ends_with('#') {
            class.push('#');
        }
    }
    class
}

/// The keys of a schedule.
#[must_use]
pub fn keys(points: &[Point]) -> Keys {
    let actors: BTreeSet<&str> = points.iter().map(|p| p.actor.as_str()).filter(|a| !a.is_empty()).collect();
    let contents = Contents::of(points, &actors);
    let (exact, exactly) = graph(points, &actors, &contents, true).canonical();
    let (shape, shapely) = graph(points, &actors, &contents, false).canonical();
    Keys {
        exact,
        shape,
        profile: profile(points),
        approximate: !exactly || !shapely,
        bag: bag(points, &actors),
    }
}

fn step_of(point: &Point) -> String {
    format!("{}\u{1}{}\u{1}{}", point.kind, point.type_, point.external)
}

/// The multiset, over actors, of the multisets of their steps.
fn profile(points: &[Point]) -> String {
    let mut by_actor: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for point in points {
        by_actor.entry(&point.actor).or_default().push(step_of(point));
    }
    let mut profiles: Vec<String> = by_actor
        .into_values()
        .map(|mut steps| {
            steps.sort();
            hex_of(&steps)
        })
        .collect();
    profiles.sort();
    hex_of(&profiles)
}

fn bag(points: &[Point], actors: &BTreeSet<&str>) -> BTreeMap<String, u32> {
    let mut bag: BTreeMap<String, u32> = BTreeMap::new();
    for point in points {
        let effects: BTreeSet<String> =
            point.effects.iter().filter_map(|effect| effects::abstracted(effect, actors)).collect();
        let mut step = vec![step_of(point)];
        step.extend(effects);
        let mut item = hex_of(&step);
        item.truncate(DIGITS);
        if bag.len() < MOST_ITEMS || bag.contains_key(&item) {
            *bag.entry(item).or_default() += 1;
        }
    }
    bag
}

/// A part of a content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    /// Words and marks, which count as they are.
    Literal(&'a str),
    /// A number, which counts by its rank.
    Number(&'a str),
    /// An actor.
    Actor(&'a str),
    /// Any other text, which counts by equality.
    Value(&'a str),
}

/// What the contents of steps are made of.
struct Contents<'a> {
    parts: Vec<Vec<Part<'a>>>,
    /// By sort (the type of the message and the place in it): its numbers, in order.
    ranks: BTreeMap<(&'a str, usize), Vec<Number<'a>>>,
}

/// A number as text, ordered by its value: without zeros in front, the longer one is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number<'a> {
    digits: usize,
    text: &'a str,
}

impl<'a> Number<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.trim_start_matches('0');
        Number { digits: text.len(), text }
    }
}

impl<'a> Contents<'a> {
    fn of(points: &'a [Point], actors: &BTreeSet<&str>) -> Self {
        let mut ranks: BTreeMap<_, Vec<Number<'a>>> = BTreeMap::new();
        let mut parts = Vec::with_capacity(points.len());
        for point in points {
            let found = split(&point.content, actors);
            for (at, part) in found.iter().enumerate() {
                if let Part::Number(text) = part {
                    ranks.entry((point.type_.as_str(), at)).or_default().push(Number::of(text));
                }
            }
            parts.push(found);
        }
        for numbers in ranks.values_mut() {
            numbers.sort_unstable();
            numbers.dedup();
        }
        Contents { parts, ranks }
    }

    fn rank(&self, type_: &str, at: usize, text: &str) -> usize {
        let numbers = self.ranks.get(&(type_, at)).map_or(&[][..], Vec::as_slice);
        numbers.binary_search(&Number::of(text)).unwrap_or(0)
    }
}

/// Whether a name of an actor may go on with this character.
fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn split<'a>(content: &'a str, actors: &BTreeSet<&str>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut rest = content;
    while let Some(first) = rest.chars().next() {
        let length = if goes_on(first) {
            let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
            // Names may hold other characters too, as in `a@host:1`: the longest wins.
            let longest = actors
                .iter()
                .filter(|name| {
                    rest.starts_with(**name) && !rest[name.len()..].chars().next().is_some_and(goes_on)
                })
                .map(|name| name.len())
                .max();
            match longest {
                Some(length) => {
                    parts.push(Part::Actor(&rest[..length]));
                    length
                }
                None => {
                    let word = &rest[..end];
                    let digit = |c: char| c.is_ascii_digit();
                    parts.push(match (word.contains(digit), word.chars().all(digit)) {
                        (_, true) => Part::Number(word),
                        (true, false) => Part::Value(word),
                        (false, false) => Part::Literal(word),
                    });
                    end
                }
            }
        } else {
            let end = rest.find(goes_on).unwrap_or(rest.len());
            parts.push(Part::Literal(&rest[..end]));
            end
        };
        rest = &rest[length..];
    }
    parts
}

/// The graph of a schedule.
fn graph(points: &[Point], actors: &BTreeSet<&str>, contents: &Contents<'_>, values: bool) -> Graph {
    let mut graph = Graph::default();
    let steps: Vec<usize> = points
        .iter()
        .zip(&contents.parts)
        .map(|(point, parts)| {
            let mut colour = format!("step\u{2}{}", step_of(point));
            if values {
                for (at, part) in parts.iter().enumerate() {
                    match part {
                        Part::Number(text) => {
                            colour.push_str(&format!("\u{2}{at}={}", contents.rank(&point.type_, at, text)));
                        }
                        Part::Literal(text) => colour.push_str(&format!("\u{2}{at}:{text}")),
                        Part::Actor(_) | Part::Value(_) => {}
                    }
                }
            }
            graph.vertex(&colour)
        })
        .collect();
    let of_actor: BTreeMap<&str, usize> =
        actors.iter().map(|name| (*name, graph.vertex(&format!("actor\u{2}{}", class_of(name))))).collect();
    let mut of_value: BTreeMap<&str, usize> = BTreeMap::new();
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for ((point, parts), step) in points.iter().zip(&contents.parts).zip(&steps) {
        if let Some(actor) = of_actor.get(point.actor.as_str()) {
            graph.edge(*step, *actor, "at");
            if let Some(before) = last.insert(&point.actor, *step) {
                graph.edge(before, *step, "next");
            }
        }
        for cause in &point.causes {
            if let Some(from) = steps.get(*cause) {
                graph.edge(*from, *step, "sent");
            }
        }
        for (at, part) in parts.iter().enumerate() {
            match part {
                Part::Actor(name) => {
                    if let Some(actor) = of_actor.get(name) {
                        graph.edge(*step, *actor, &format!("names {at}"));
                    }
                }
                Part::Value(text) if values => {
                    let value = *of_value.entry(text).or_insert_with(|| graph.vertex("value"));
                    graph.edge(*step, value, &format!("holds {at}"));
                }
                _ => {}
            }
        }
    }
    graph
}

#[cfg(test)]
mod tests;

//! The questions that a served page asks, and their answers.

use std::collections::BTreeMap;

use demi_lineage::export::Skeleton;
use demi_lineage::query::Query;
use serde::{Deserialize, Serialize};

use super::Served;
use super::counts::{By, Group};
use super::search::{Term, longest};
use crate::columns::ColumnBuilder;
use crate::data::{Changes, Columns};
use crate::error::ReportError;

/// Actor, variable, value, event of the change, value before.
type Variable = (u32, String, Option<String>, u32, Option<String>);

/// Most events of one answer.
const WINDOW: u32 = 4096;
/// Most arrows that pass over a window without an end in it.
const PASSING: usize = 300;
/// Most results of one answer to a search.
const RESULTS: usize = 100_000;
/// Rows of the picture of the whole.
const OVERVIEW: usize = 600;

/// A question. Events are known by their position in the order, from 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Ask {
    /// The events from `from` to before `to`.
    Events { from: u32, to: u32 },
    /// All variables of all actors after an event.
    State { at: u32 },
    /// What happens before an event.
    Past { of: u32 },
    /// What happens after it.
    Future { of: u32 },
    /// The next step after (or before) an event.
    Step { from: u32, forward: bool },
    /// The next event of the same actor in the order, or the one before it.
    Actor { of: u32, forward: bool },
    /// Events after `after` that hold a pattern, or end a chain of events that hold several.
    Search { patterns: Vec<Vec<Term>>, after: Option<u32> },
    /// The longest chain of events that leads to one, from another or from a beginning.
    Chain { from: Option<u32>, to: u32 },
    /// The event of that name.
    Named { name: String },
    /// How many events of each actor lie in each part of the order.
    Overview {},
    /// How many events there are of each type, actor or kind.
    Counts { by: By },
}

/// An answer.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Events {
        from: u32,
        columns: Box<Columns>,
        crossing: Vec<[u32; 4]>,
        /// How many steps there are before `from`.
        steps: u32,
    },
    /// Actor, variable, value, event of the change, value before.
    State {
        state: Vec<Variable>,
    },
    /// By actor: how many of its events (past), or from which on (future). Of the loose events those between such bounds, both
    /// included.
    Reach {
        bounds: Vec<u32>,
        loose: Vec<[u32; 2]>,
        size: u64,
    },
    Event {
        event: Option<u32>,
    },
    /// The first of the events that were looked for, and how many there are; for several patterns the chain that ends with each.
    Found {
        events: Vec<u32>,
        total: u64,
        matches: Vec<Vec<u32>>,
    },
    Chain {
        chain: Vec<u32>,
    },
    Overview {
        counts: Vec<Vec<u32>>,
    },
    /// Groups of many events first.
    Counts {
        groups: Vec<Group>,
    },
}

impl Served {
    /// Answers a question. What does not exist is answered with nothing.
    pub(crate) fn answer(&self, ask: Ask) -> Result<Answer, ReportError> {
        let s = &self.skeleton;
        let n = s.len() as u32;
        Ok(match ask {
            Ask::Events { from, to } => {
                let (from, to) = (from.min(n), to.min(n).min(from.saturating_add(WINDOW)));
                let mut filling = ColumnBuilder::until(to);
                for (e, mut content) in (from..to).zip(self.ranks.contents(&self.query()?, from..to)?) {
                    // Variables are asked for by themselves.
                    content.state = None;
                    filling.push(s, e, &content);
                }
                let crossing = self.crossing.over(s, from, to);
                let steps = self.steps_before(from);
                Answer::Events { from, columns: Box::new(filling.finish(s)), crossing, steps }
            }
            Ask::State { at } => Answer::State { state: self.timelines.at(at) },
            Ask::Past { of } if of < n => self.reach(of, false)?,
            Ask::Future { of } if of < n => self.reach(of, true)?,
            Ask::Past { .. } | Ask::Future { .. } => Answer::Event { event: None },
            Ask::Step { from, forward } => {
                let event = match forward {
                    true => (from.saturating_add(1).min(n)..n).find(|&e| self.is_step(e)),
                    false => (0..from.min(n)).rev().find(|&e| self.is_step(e)),
                };
                Answer::Event { event }
            }
            Ask::Actor { of, forward } => {
                let same = |e: &u32| s.actor.get(of as usize) == Some(&s.actor[*e as usize]);
                let event = match forward {
                    true => (of.saturating_add(1).min(n)..n).find(same),
                    false => (0..of.min(n)).rev().find(same),
                };
                Answer::Event { event }
            }
            Ask::Search { patterns, after } => self.search(&patterns, after, RESULTS)?,
            Ask::Chain { from, to } if to < n && from.is_none_or(|from| from <= to) => {
                let past = self.ranks.reach(&self.query()?, to, false)?;
                Answer::Chain { chain: longest(s, from, to, |e| past[e as usize]) }
            }
            Ask::Chain { .. } => Answer::Chain { chain: Vec::new() },
            Ask::Named { name } => Answer::Event { event: s.named(&name).ok() },
            Ask::Counts { by } => Answer::Counts { groups: self.counts(by)? },
            Ask::Overview {} => {
                let rows = OVERVIEW.min(s.len()).max(1);
                let mut counts = vec![vec![0; s.actors.len()]; rows];
                for e in 0..s.len() {
                    counts[e * rows / s.len()][s.actor[e] as usize] += 1;
                }
                Answer::Overview { counts }
            }
        })
    }

    /// How many steps there are before an event.
    fn steps_before(&self, e: u32) -> u32 {
        let block = (e as usize / BLOCK).min(self.steps.len().saturating_sub(1));
        let rest = (block * BLOCK) as u32..e;
        self.steps.get(block).map_or(0, |before| before + rest.filter(|e| self.is_step(*e)).count() as u32)
    }

    /// The order index, which belongs to one question: what it has read stays in its own memory.
    fn query(&self) -> Result<Query, ReportError> {
        Ok(Query::open(&self.exec, false)?)
    }

    fn reach(&self, of: u32, forward: bool) -> Result<Answer, ReportError> {
        let s = &self.skeleton;
        let mask = self.ranks.reach(&self.query()?, of, forward)?;
        let inside = |e: &u32| mask[*e as usize] != forward;
        let bounds = s.chain.iter().map(|chain| chain.partition_point(inside) as u32).collect();
        let size = mask.iter().filter(|m| **m).count() as u64;
        Ok(Answer::Reach { bounds, loose: self.loose_in(&mask), size })
    }

    /// The loose events of a mask, as stretches of all loose events: those of the environment are many, and mostly all of one sort.
    fn loose_in(&self, mask: &[bool]) -> Vec<[u32; 2]> {
        let mut all: Vec<u32> = self.skeleton.loose.iter().flatten().copied().collect();
        all.sort_unstable();
        let alike = all.chunk_by(|a, b| mask[*a as usize] == mask[*b as usize]);
        let inside = alike.filter(|stretch| mask[stretch[0] as usize]);
        inside.map(|stretch| [stretch[0], stretch[stretch.len() - 1]]).collect()
    }
}

/// By actor and variable, the events of changes and the values.
type Spans = BTreeMap<(u32, u32), Vec<(u32, i64)>>;

/// Changes by actor and variable, so that any moment is found by bisection.
#[derive(Debug, Default)]
pub(crate) struct Timelines {
    texts: Vec<String>,
    spans: Spans,
}

impl Timelines {
    pub(crate) fn new(changes: Changes) -> Timelines {
        let mut spans = Spans::new();
        for i in 0..changes.event.len() {
            let key = (changes.actor[i], changes.variable[i]);
            spans.entry(key).or_default().push((changes.event[i], changes.value[i]));
        }
        Timelines { texts: changes.texts, spans }
    }

    /// Calls `f` with the event, the variable and the value of each change.
    pub(crate) fn each(&self, mut f: impl FnMut(u32, &str, Option<&str>)) {
        let text = |n: i64| usize::try_from(n).ok().and_then(|n| self.texts.get(n)).map(String::as_str);
        for ((_, variable), span) in &self.spans {
            let name = text(i64::from(*variable)).unwrap_or_default();
            for (event, value) in span {
                f(*event, name, text(*value));
            }
        }
    }

    fn at(&self, at: u32) -> Vec<Variable> {
        let text = |n: i64| usize::try_from(n).ok().and_then(|n| self.texts.get(n)).cloned();
        let mut state = Vec::new();
        for ((actor, variable), span) in &self.spans {
            let Some(last) = span.partition_point(|s| s.0 <= at).checked_sub(1) else { continue };
            let before = last.checked_sub(1).and_then(|b| text(span[b].1));
            let name = text(i64::from(*variable)).unwrap_or_default();
            state.push((*actor, name, text(span[last].1), span[last].0, before));
        }
        state
    }
}

/// Finds edges that pass over a window: blocks of causes with the latest effect of each.
#[derive(Debug, Default)]
pub(crate) struct Crossing {
    latest: Vec<u32>,
}

/// Events in a block.
pub(crate) const BLOCK: usize = 1024;

impl Crossing {
    pub(crate) fn new(s: &Skeleton) -> Crossing {
        let mut latest = vec![0; s.len().div_ceil(BLOCK)];
        for e in 0..s.len() as u32 {
            let last = &mut latest[e as usize / BLOCK];
            *last = s.effects(e).map(|edge| edge.event).fold(*last, u32::max);
        }
        Crossing { latest }
    }

    /// Cause, its actor, effect, its actor, of edges that begin before `from` and end at `to` or later.
    fn over(&self, s: &Skeleton, from: u32, to: u32) -> Vec<[u32; 4]> {
        let mut found = Vec::new();
        for block in (0..=(from as usize / BLOCK).min(self.latest.len().saturating_sub(1))).rev() {
            if self.latest.get(block).is_none_or(|latest| *latest < to) {
                continue;
            }
            let end = (from as usize).min((block + 1) * BLOCK);
            for e in (block * BLOCK..end).rev() {
                for edge in s.effects(e as u32).filter(|edge| edge.event >= to) {
                    if found.len() < PASSING {
                        found.push([e as u32, s.actor[e], edge.event, s.actor[edge.event as usize]]);
                    }
                }
            }
            if found.len() >= PASSING {
                break;
            }
        }
        found
    }
}

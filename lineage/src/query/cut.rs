//! Cuts: one place in each log; whether they are consistent, and what is in flight there.

use std::collections::BTreeMap;

use demi_schemas::EventId;
use serde::Serialize;

use super::Query;
use crate::error::{LineageError, ViolationError};
use crate::index::{Limits, Logs, Sweep, Tally};
use crate::matching::Reason;

/// A cut as it is named: by actor, the incarnation and sequence number up to which its log is in the cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutSpec(pub BTreeMap<String, (u32, u64)>);

/// An event that makes a cut inconsistent by its absence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// An event outside the cut,
    pub event: String,
    /// which happens before this event in it.
    pub before: String,
}

/// A message on its way at a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// Its send, inside the cut.
    pub send: String,
    /// Its receive, outside.
    pub receive: String,
    /// Whether no other match is possible.
    pub certain: bool,
}

/// The description of a cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutAnswer {
    /// By actor, the last event in the cut; actors without one are left out.
    pub cut: BTreeMap<String, String>,
    /// Whether everything that happens before an event in the cut is in it.
    pub consistent: bool,
    /// Whether it is consistent and no message is on its way: every message that is received at all, and sent in the cut, is received
    /// in it.
    pub ground_state: bool,
    /// Messages sent in the cut and received after it; absent where the cut is not consistent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// The first of them in the logs of their receivers, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<InFlight>,
    /// Messages sent in the cut that nobody was seen to receive.
    pub never_received: u64,
    /// Of these, the ones that were overtaken for good on a channel that is in order.
    pub lost: u64,
    /// Events in the cut; those outside their log's order are not counted.
    pub events: u64,
    /// Why it is not consistent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
}

impl CutSpec {
    /// Reads `ACTOR/SEQ`, or `ACTOR/INCARNATION/SEQ`, of one actor; 0 is the empty part of a log.
    ///
    /// # Errors
    /// When the text names no event.
    pub fn add(&mut self, query: &Query, text: &str) -> Result<(), LineageError> {
        let text = text.trim();
        let empty = text.strip_suffix("/0").filter(|actor| query.index.find_actor(actor).is_some());
        let readings = match empty {
            Some(actor) => vec![EventId { actor: actor.to_owned(), incarnation: 0, seq: 0 }],
            None => EventId::readings(text).map_err(ViolationError::from)?,
        };
        let known = readings.iter().find(|id| query.index.find_actor(&id.actor).is_some());
        let Some(id) = known else {
            query.index.event(text)?;
            return Ok(());
        };
        self.0.insert(id.actor.clone(), (id.incarnation, id.seq));
        Ok(())
    }

    /// Reads a line of a file of cuts: a JSON object of sequence numbers by actor (`{"a": 3, "b": "1/5"}`), or names of events.
    ///
    /// # Errors
    /// When the text is neither.
    pub fn parse(query: &Query, line: &str) -> Result<CutSpec, LineageError> {
        let mut cut = CutSpec::default();
        let line = line.trim();
        if !line.starts_with('{') {
            let apart = |c: char| c.is_whitespace() || c == ',';
            line.split(apart).filter(|t| !t.is_empty()).try_for_each(|text| cut.add(query, text))?;
            return Ok(cut);
        }
        let bad = |what: String| LineageError::Question(format!("no cut: {what}"));
        let value: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        for (actor, place) in value {
            query.index.actor(&actor)?;
            let text = match place {
                serde_json::Value::Number(n) => n.to_string(),
                serde_json::Value::String(s) => s,
                other => return Err(bad(format!("the sequence number of '{actor}' is {other}"))),
            };
            let text = text.strip_prefix(&format!("{actor}/")).unwrap_or(&text).to_owned();
            let (incarnation, seq) = text.split_once('/').unwrap_or(("0", &text));
            let (Ok(incarnation), Ok(seq)) = (incarnation.parse(), seq.parse()) else {
                return Err(bad(format!(
                    "the sequence number of '{actor}' is '{text}', not SEQ or INCARNATION/SEQ"
                )));
            };
            cut.0.insert(actor, (incarnation, seq));
        }
        Ok(cut)
    }
}

impl Query {
    /// By actor, the end of its part of a cut, without events behind it that stand alone.
    pub(crate) fn cut_ends(&self, cut: &CutSpec) -> Result<Vec<u32>, LineageError> {
        let actors = self.index.header().actors.len();
        let mut ends: Vec<u32> = (0..actors).map(|a| self.index.events_of(a).start).collect();
        for (name, &(incarnation, seq)) in &cut.0 {
            let actor = self.index.actor(name)?;
            ends[actor] = self.index.chain_end(actor, self.index.prefix(actor, incarnation, seq)?)?;
        }
        Ok(ends)
    }

    /// What is known of a cut.
    ///
    /// # Errors
    /// When the cut names an actor that has no log, or a file of the index cannot be read.
    pub fn cut(&self, cut: &CutSpec) -> Result<CutAnswer, LineageError> {
        self.cut_at(&self.cut_ends(cut)?)
    }

    /// The smallest consistent cut with these events: their causal past.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn cut_of(&self, events: &[u32]) -> Result<CutAnswer, LineageError> {
        self.cut_at(&self.cut_ends_of(events)?)
    }

    /// What is known of a cut that is named, or of the smallest consistent one with some events; with up to `most` of the messages on their way.
    ///
    /// # Errors
    /// When the cut names an actor that has no log, or a file of the index cannot be read.
    pub fn cut_with_messages(
        &self,
        cut: &CutSpec,
        at: &[u32],
        most: usize,
    ) -> Result<CutAnswer, LineageError> {
        let ends = if at.is_empty() { self.cut_ends(cut)? } else { self.cut_ends_of(at)? };
        let mut answer = self.cut_at(&ends)?;
        let count = usize::try_from(answer.in_flight.unwrap_or(0)).unwrap_or(usize::MAX);
        answer.messages = self.messages_across(&ends, most.min(count))?;
        Ok(answer)
    }

    /// The states of all actors at a cut that is named, or at the smallest consistent cut with some events.
    ///
    /// # Errors
    /// When the cut names an actor that has no log, or a file cannot be read.
    pub fn state_of(&self, cut: &CutSpec, at: &[u32]) -> Result<super::GlobalState, LineageError> {
        let ends = if at.is_empty() { self.cut_ends(cut)? } else { self.cut_ends_of(at)? };
        self.state_at(self.cut_at(&ends)?, &ends)
    }

    /// By actor, the end of its part of the causal past of these events.
    pub(crate) fn cut_ends_of(&self, events: &[u32]) -> Result<Vec<u32>, LineageError> {
        let mut sweep = Sweep::new(&self.index, Limits::none(self.certain));
        events.iter().try_for_each(|&e| sweep.add(e))?;
        sweep.run()?;
        Ok(sweep.finish().end)
    }

    /// What is known of the cut with these ends.
    pub(crate) fn cut_at(&self, ends: &[u32]) -> Result<CutAnswer, LineageError> {
        let missing = self.missing(ends)?;
        let mut tally = Tally::default();
        for (actor, &end) in ends.iter().enumerate() {
            tally = tally.plus(&self.index.tally(self.index.events_of(actor).start..end)?);
        }
        let in_flight = match missing {
            Some(_) => None,
            None => Some(
                (tally.sent() + self.links_across(ends)?)
                    .saturating_sub(tally.sends_to_alone() + tally.delivered()),
            ),
        };
        Ok(CutAnswer {
            cut: self.last_of(ends)?,
            consistent: missing.is_none(),
            ground_state: in_flight == Some(0),
            in_flight,
            messages: Vec::new(),
            never_received: tally.never(),
            lost: tally.lost(),
            events: tally.events(),
            missing,
        })
    }

    /// The first messages from inside a cut to outside, in the logs of their receivers. Once there are as many as asked for, no more is read.
    fn messages_across(&self, ends: &[u32], most: usize) -> Result<Vec<InFlight>, LineageError> {
        let mut found = Vec::new();
        let mut across = Vec::new();
        for (actor, &end) in ends.iter().enumerate() {
            for effect in end..self.index.events_of(actor).end {
                if found.len() >= most {
                    return Ok(found);
                }
                let info = self.index.info(effect)?;
                if info.is_alone() {
                    continue;
                }
                self.index.each_cause(effect, info, |cause| {
                    across.push((cause.event(), cause.certain(), cause.reason().is_no_message()));
                    Ok(())
                })?;
                for (send, certain, no_message) in across.drain(..) {
                    let inside = ends.get(self.index.actor_of(send)).is_some_and(|&end| send < end);
                    if inside && !no_message && !self.index.info(send)?.is_alone() {
                        let (send, receive) = (self.index.name(send)?, self.index.name(effect)?);
                        found.push(InFlight {
                            send: send.to_string(),
                            receive: receive.to_string(),
                            certain,
                        });
                    }
                }
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// Messages by explicit edges from inside the cut to outside. An edge by clocks stands for a message of which nothing else tells; a parent,
    /// a link and an edge between threads are none.
    fn links_across(&self, ends: &[u32]) -> Result<u64, LineageError> {
        let mut across = 0;
        for (cause, effect, how) in self.index.links().all()? {
            if matches!(how.reason, Reason::Parent | Reason::Link | Reason::Operation) {
                continue;
            }
            let inside = |e: u32| ends.get(self.index.actor_of(e)).is_some_and(|&end| e < end);
            across += u64::from(inside(cause) && !inside(effect) && !self.index.info(cause)?.is_alone());
        }
        Ok(across)
    }

    /// An event outside the cut that happens before one in it.
    fn missing(&self, ends: &[u32]) -> Result<Option<Missing>, LineageError> {
        let mut sweep = Sweep::new(&self.index, Limits::none(self.certain));
        sweep.within(ends);
        for (actor, &end) in ends.iter().enumerate() {
            if end > self.index.events_of(actor).start {
                sweep.add_prefix(actor, end)?;
            }
        }
        sweep.run()?;
        let Some((event, source)) = sweep.outside() else { return Ok(None) };
        let before = match source {
            Some(effect) => effect,
            // By a stored clock: some last event of the cut is after it.
            None => {
                let mut found = event;
                for (actor, &end) in ends.iter().enumerate() {
                    let last = end.saturating_sub(1);
                    if end > self.index.events_of(actor).start && self.precedes(event, last)? {
                        found = last;
                        break;
                    }
                }
                found
            }
        };
        let name = |e| Ok::<_, LineageError>(self.index.name(e)?.to_string());
        Ok(Some(Missing { event: name(event)?, before: name(before)? }))
    }
}

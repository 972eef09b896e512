//! The causal past and future of an event, as cuts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{EventSet, Query};
use crate::error::LineageError;
use crate::index::{Future, Info, Limits, Past, Role, Sweep};
use crate::read::NONE;

/// The past (or future) of an event, in numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastAnswer {
    /// The event asked about.
    pub event: String,
    /// How many events happen before it (or after it), itself not counted.
    pub size: u64,
    /// How many of them stand outside the order of their logs: of the environment, or of threads.
    pub outside: u64,
    /// How many events are neither before nor after it; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<u64>,
    /// By actor, the last event in the past (or the first in the future), the event itself included. Actors without one are
    /// left out.
    pub frontier: BTreeMap<String, String>,
}

impl Query {
    /// The past of one or more events, these included.
    pub(crate) fn past_cut(&self, events: &[u32]) -> Result<Past, LineageError> {
        let mut sweep = Sweep::new(&self.index, Limits::none(self.certain));
        events.iter().try_for_each(|&event| sweep.add(event))?;
        sweep.run()?;
        self.with_alone(sweep.finish())
    }

    /// Adds events that stand alone and have explicit effects in the past: a sweep that ends early does not meet them.
    fn with_alone(&self, mut past: Past) -> Result<Past, LineageError> {
        let header = self.index.header();
        if header.links == 0 || header.alone == 0 {
            return Ok(past);
        }
        let mut grown = true;
        while grown {
            grown = false;
            for cause in self.index.linked_causes()? {
                let info = self.index.info(cause)?;
                if !info.is_alone() || past.alone.binary_search(&cause).is_ok() {
                    continue;
                }
                let mut inside = false;
                self.index.each_effect(cause, info, |effect| {
                    inside |= (effect.certain() || !self.certain) && self.in_past(&past, effect.event())?;
                    Ok(())
                })?;
                if inside {
                    past.alone.insert(past.alone.partition_point(|&e| e < cause), cause);
                    grown = true;
                }
            }
        }
        Ok(past)
    }

    /// Whether an event is in a past; for those that stand alone and have no explicit effects, look at their delivery.
    pub(crate) fn in_past(&self, past: &Past, event: u32) -> Result<bool, LineageError> {
        Ok(match self.index.info(event)?.is_alone() {
            true => past.alone.binary_search(&event).is_ok(),
            false => past.end[self.index.actor_of(event)] > event,
        })
    }

    /// The size and frontier of an event's past.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn past(&self, event: u32) -> Result<PastAnswer, LineageError> {
        if self.minds_ties()? {
            return self.answer_of(event, &self.certain_past(&[event])?, true);
        }
        let past = self.past_cut(&[event])?;
        let (mut inside, mut outside) = (0, past.alone.len() as u64);
        for (actor, &end) in past.end.iter().enumerate() {
            let range = self.index.events_of(actor).start..end;
            let tally = self.index.tally(range.clone())?;
            inside += tally.events();
            outside += match self.certain && self.index.header().uncertain > 0 {
                false => tally.deliveries_from_alone(),
                true => self.certainly(range, |i| i.role() == Role::Delivery && i.is_sent_alone())?,
            };
        }
        let own = self.index.info(event)?.is_alone();
        Ok(PastAnswer {
            event: self.index.name(event)?.to_string(),
            size: inside + outside - 1,
            outside: outside - u64::from(own),
            concurrent: None,
            frontier: self.last_of(&past.end)?,
        })
    }

    /// The size and frontier of an event's future.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn future(&self, event: u32) -> Result<PastAnswer, LineageError> {
        if self.minds_ties()? {
            return self.answer_of(event, &self.certain_future(&[event])?, false);
        }
        let future = self.future_cut(&[event])?;
        let (mut inside, mut outside) = (0, future.alone().len() as u64);
        let mut frontier = BTreeMap::new();
        for (actor, &start) in future.start().iter().enumerate() {
            let range = start..self.index.events_of(actor).end;
            if !range.is_empty() {
                let name = self.index.name(start)?;
                frontier.insert(name.actor.clone(), name.to_string());
            }
            inside += self.index.tally(range)?.events();
        }
        // Deliveries of the environment, told by their sends.
        if let Some(environment) = self.index.header().environment {
            for delivery in self.index.events_of(environment as usize) {
                outside += u64::from(self.delivery_in_future(&future, delivery)?);
            }
        }
        let own = self.index.info(event)?.is_alone();
        Ok(PastAnswer {
            event: self.index.name(event)?.to_string(),
            size: inside + outside - 1,
            outside: outside - u64::from(own),
            concurrent: None,
            frontier,
        })
    }

    /// The answer of the past (or future) of an event: of a past the last event of each log is at its frontier, of a future the first.
    fn answer_of(&self, event: u32, set: &EventSet, past: bool) -> Result<PastAnswer, LineageError> {
        let mut outside = 0;
        let mut frontier = BTreeMap::new();
        for member in set.ranges().iter().cloned().flatten() {
            if self.index.info(member)?.is_alone() {
                outside += u64::from(member != event);
                continue;
            }
            let actor = self.index.actor_of(member);
            let first = frontier.entry(actor).or_insert(member);
            *first = if past { member } else { *first };
        }
        let named = |(actor, event): (usize, u32)| {
            Ok((self.index.header().actors[actor].name.clone(), self.index.name(event)?.to_string()))
        };
        Ok(PastAnswer {
            event: self.index.name(event)?.to_string(),
            size: set.len() - 1,
            outside,
            concurrent: None,
            frontier: frontier.into_iter().map(named).collect::<Result<_, LineageError>>()?,
        })
    }

    /// Whether a delivery that stands alone is in the future by its send and not in the list of those met.
    pub(crate) fn delivery_in_future(&self, future: &Future, delivery: u32) -> Result<bool, LineageError> {
        let info = self.index.info(delivery)?;
        if !info.is_alone()
            || info.role() != Role::Delivery
            || future.alone().binary_search(&delivery).is_ok()
        {
            return Ok(false);
        }
        let mut inside = false;
        self.index.each_cause(delivery, info, |cause| {
            let alone = self.index.info(cause.event())?.is_alone();
            let after = future.start()[self.index.actor_of(cause.event())] <= cause.event();
            inside |= (cause.certain() || !self.certain) && !alone && after;
            Ok(())
        })?;
        Ok(inside)
    }

    /// The future of one or more events, these included.
    pub(crate) fn future_cut(&self, events: &[u32]) -> Result<Future, LineageError> {
        self.index.future_of(events, self.certain)
    }

    /// Certain matches of that sort in a part of a log.
    fn certainly(
        &self,
        range: std::ops::Range<u32>,
        sort: impl Fn(Info) -> bool,
    ) -> Result<u64, LineageError> {
        let mut count = 0;
        for event in range {
            let info = self.index.info(event)?;
            let matched = self.index.mates().get(event)? != NONE;
            count += u64::from(matched && !info.is_alone() && info.is_certain() && sort(info));
        }
        Ok(count)
    }

    /// The last event of each actor before the ends.
    pub(crate) fn last_of(&self, ends: &[u32]) -> Result<BTreeMap<String, String>, LineageError> {
        let mut last = BTreeMap::new();
        for (actor, &end) in ends.iter().enumerate() {
            if end > self.index.events_of(actor).start {
                let name = self.index.name(end - 1)?;
                last.insert(name.actor.clone(), name.to_string());
            }
        }
        Ok(last)
    }
}

//! Sets of events as ranges of their numbers, and pasts and futures as such sets.

use std::ops::Range;

use super::Query;
use crate::error::LineageError;
use crate::index::{Future, Past, Role};

/// A set of events: ranges in order that neither meet nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSet(Vec<Range<u32>>);

impl EventSet {
    /// One event.
    #[must_use]
    pub fn one(event: u32) -> EventSet {
        EventSet::of(&[event])
    }

    /// Some events, which are in order.
    pub(super) fn of(events: &[u32]) -> EventSet {
        let mut set = EventSet::default();
        events.iter().for_each(|&event| set.push(event..event.saturating_add(1)));
        set
    }

    /// The ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[Range<u32>] {
        &self.0
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(|r| u64::from(r.end - r.start)).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the event is in the set.
    #[must_use]
    pub fn contains(&self, event: u32) -> bool {
        let after = self.0.partition_point(|r| r.end <= event);
        self.0.get(after).is_some_and(|r| r.start <= event)
    }

    /// Adds a range that does not begin before the last one.
    pub(super) fn push(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => self.0.push(range),
        }
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &EventSet) -> EventSet {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = EventSet::default();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            both.push(x.start.max(y.start)..x.end.min(y.end));
            if x.end < y.end {
                a.next()
            } else {
                b.next()
            };
        }
        both
    }

    /// What is in one or both.
    #[must_use]
    pub fn or(&self, other: &EventSet) -> EventSet {
        let mut all: Vec<&Range<u32>> = self.0.iter().chain(&other.0).collect();
        all.sort_unstable_by_key(|r| r.start);
        let mut either = EventSet::default();
        all.into_iter().for_each(|r| either.push(r.clone()));
        either
    }

    /// What is not in it, of that many events.
    #[must_use]
    pub fn complement(&self, events: u32) -> EventSet {
        let mut rest = EventSet::default();
        let mut from = 0;
        for range in &self.0 {
            rest.push(from..range.start);
            from = range.end;
        }
        rest.push(from..events.max(from));
        rest
    }
}

impl Query {
    /// Events of each actor's part that stand in the order of their log, and of those that do not the ones that `holds`.
    fn collect(
        &self,
        part: impl Fn(usize) -> Range<u32>,
        mut holds: impl FnMut(u32) -> Result<bool, LineageError>,
    ) -> Result<EventSet, LineageError> {
        let mut set = EventSet::default();
        for actor in 0..self.index.header().actors.len() {
            let part = part(actor);
            if self.index.header().alone == 0 {
                set.push(part);
                continue;
            }
            for event in self.index.events_of(actor) {
                let inside = match self.index.info(event)?.is_alone() {
                    true => holds(event)?,
                    false => part.contains(&event),
                };
                if inside {
                    set.push(event..event + 1);
                }
            }
        }
        Ok(set)
    }

    fn set_of_past(&self, past: &Past) -> Result<EventSet, LineageError> {
        self.collect(
            |actor| self.index.events_of(actor).start..past.end[actor],
            |event| {
                if past.alone.binary_search(&event).is_ok() {
                    return Ok(true);
                }
                // A send that stands alone is before what takes its message.
                let mut before = false;
                let info = self.index.info(event)?;
                self.index.each_effect(event, info, |effect| {
                    before |= (effect.certain() || !self.certain) && self.in_past(past, effect.event())?;
                    Ok(())
                })?;
                Ok(before)
            },
        )
    }

    fn set_of_future(&self, future: &Future) -> Result<EventSet, LineageError> {
        self.collect(
            |actor| future.start()[actor]..self.index.events_of(actor).end,
            |event| {
                let met = future.alone().binary_search(&event).is_ok();
                Ok(met
                    || (self.index.info(event)?.role() == Role::Delivery
                        && self.delivery_in_future(future, event)?))
            },
        )
    }

    /// The events that happen before `event`, and itself.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn past_set(&self, event: u32) -> Result<EventSet, LineageError> {
        self.past_set_of(&[event])
    }

    /// These events, and all that happen before one of them.
    pub(crate) fn past_set_of(&self, events: &[u32]) -> Result<EventSet, LineageError> {
        if self.minds_ties()? {
            return self.certain_past(events);
        }
        let mut own = events.to_vec();
        own.sort_unstable();
        Ok(self.set_of_past(&self.past_cut(events)?)?.or(&EventSet::of(&own)))
    }

    /// The events that `event` happens before, and itself.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn future_set(&self, event: u32) -> Result<EventSet, LineageError> {
        self.future_set_of(&[event])
    }

    /// These events, and all that one of them happens before.
    fn future_set_of(&self, events: &[u32]) -> Result<EventSet, LineageError> {
        if self.minds_ties()? {
            return self.certain_future(events);
        }
        let mut own = events.to_vec();
        own.sort_unstable();
        Ok(self.set_of_future(&self.future_cut(events)?)?.or(&EventSet::of(&own)))
    }

    /// The events that neither happen before `event` nor after it.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn concurrent_set(&self, event: u32) -> Result<EventSet, LineageError> {
        let ordered = self.past_set(event)?.or(&self.future_set(event)?);
        Ok(ordered.complement(self.index.header().events))
    }

    /// The largest set without these events that has with each event all that happens before it.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn without(&self, events: &[u32]) -> Result<EventSet, LineageError> {
        Ok(self.future_set_of(events)?.complement(self.index.header().events))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(members: &BTreeSet<u32>) -> EventSet {
        let mut set = EventSet::default();
        members.iter().for_each(|&e| set.push(e..e + 1));
        set
    }

    fn members(set: &EventSet) -> BTreeSet<u32> {
        set.ranges().iter().flat_map(Clone::clone).collect()
    }

    proptest! {
        #[test]
        fn sets_are_sets(a in proptest::collection::btree_set(0..60_u32, 0..40), b in proptest::collection::btree_set(0..60_u32, 0..40)) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(members(&x), a.clone());
            prop_assert_eq!(members(&x.and(&y)), &a & &b);
            prop_assert_eq!(members(&x.or(&y)), &a | &b);
            prop_assert_eq!(members(&x.complement(60)), &(0..60).collect() - &a);
            prop_assert_eq!(x.len() as usize, a.len());
            for e in 0..60 {
                prop_assert_eq!(x.contains(e), a.contains(&e));
            }
            for all in [x.and(&y), x.or(&y), x.complement(60)] {
                prop_assert!(all.ranges().windows(2).all(|w| w[0].end < w[1].start));
            }
        }
    }
}

//! Times as they stand in logs, and the cut at one.

use arrow_array::Array;
use demi_schemas::event::is_clock_seq;

use super::{EventSet, Query};
use crate::error::LineageError;
use crate::execution::Tables;
use crate::read::columns;

/// The point in time that a stamp tells, in nanoseconds since 1970; nothing where it tells none. A number counts from 1970, unless it is so small that
/// a program counted from another moment.
pub(crate) fn instant(text: &str) -> Option<i64> {
    demi_common::time::nanos(text).or_else(|| {
        let nanos = crate::read::Stamp::read(text)?.nanos();
        u64::try_from(nanos).is_ok_and(is_clock_seq).then_some(nanos)
    })
}

/// The order of an event's stamp and a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StampOrder {
    /// It is neither before nor after: there is none, or it cannot be read.
    Unknown,
    NotLater,
    Later,
}

/// The cut at a time, by each log's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedCut {
    /// The events in it.
    pub set: EventSet,
    /// Events of the execution without a time.
    pub absent: u64,
    /// Events of the execution with a time that cannot be read.
    pub unread: u64,
    /// The first of these, by its name, and its time.
    pub first_unread: Option<(String, String)>,
}

impl TimedCut {
    /// What is to be known of events that no time is known of; nothing where there are none.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.absent > 0 {
            parts.push(format!("{} events have no time", self.absent));
        }
        if let Some((event, text)) = &self.first_unread {
            parts.push(format!(
                "{} events have a time that cannot be read (the first is that of {event}, '{text}')",
                self.unread
            ));
        }
        let rule = "they are in the cut only where they happen before an event that is not later";
        (!parts.is_empty()).then(|| format!("{}: {rule}", parts.join(", ")))
    }
}

impl Query {
    /// The cut at a point in time that a text names, or nothing where the text names none: what is not later by its own clock, with what
    /// happens before it, and without what happens after something later. An event whose time is absent or cannot be read is neither
    /// later nor not later: it is in the cut where an event that is not later comes after it.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn cut_until(&self, time: &str) -> Result<Option<TimedCut>, LineageError> {
        let Some(limit) = instant(time) else { return Ok(None) };
        let mut cut = TimedCut { set: EventSet::default(), absent: 0, unread: 0, first_unread: None };
        let stamps = self.stamps(limit, &mut cut)?;
        let (mut later, mut last) = (Vec::new(), Vec::new());
        for actor in 0..self.index.header().actors.len() {
            // Of a log the first that is later has all the others after it.
            let mut behind = false;
            for event in self.index.events_of(actor) {
                let alone = self.index.info(event)?.is_alone();
                if stamps[event as usize] == StampOrder::Later && (alone || !behind) {
                    later.push(event);
                    behind |= !alone;
                }
            }
        }
        let inside = self.without(&later)?;
        for actor in 0..self.index.header().actors.len() {
            let mut found = false;
            for event in self.index.events_of(actor).rev() {
                let alone = self.index.info(event)?.is_alone();
                let counts = stamps[event as usize] == StampOrder::NotLater && inside.contains(event);
                if counts && (alone || !found) {
                    last.push(event);
                    found |= !alone;
                }
            }
        }
        cut.set = self.past_set_of(&last)?;
        Ok(Some(cut))
    }

    /// By event, how its stamp stands to a time.
    fn stamps(&self, limit: i64, cut: &mut TimedCut) -> Result<Vec<StampOrder>, LineageError> {
        let mut stamps = vec![StampOrder::Unknown; self.index.header().events as usize];
        let mut first: Option<(u32, String)> = None;
        let (rows, tables) = (self.rows(), Tables::open(&self.folder)?);
        for &part in tables.parts() {
            let numbering = rows.numbering(part);
            for batch in tables.stored(part, &["time"], None)? {
                let (places, batch) = batch?;
                let times = columns::text(&batch, "time")?;
                for (row, place) in places.into_iter().enumerate() {
                    let Some(event) = numbering.of(place) else { continue };
                    if times.is_null(row) {
                        cut.absent += 1;
                        continue;
                    }
                    let text = times.value(row);
                    match instant(text) {
                        Some(time) if time > limit => stamps[event as usize] = StampOrder::Later,
                        Some(_) => stamps[event as usize] = StampOrder::NotLater,
                        None => {
                            cut.unread += 1;
                            if first.as_ref().is_none_or(|first| event < first.0) {
                                first = Some((event, text.to_owned()));
                            }
                        }
                    }
                }
            }
        }
        if let Some((event, text)) = first {
            cut.first_unread = Some((self.index.name(event)?.to_string(), text));
        }
        Ok(stamps)
    }
}

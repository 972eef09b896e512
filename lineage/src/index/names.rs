//! Names of events and their numbers.

use demi_common::nearest;
use demi_schemas::EventId;
use demi_schemas::event::is_time_seq;

use super::Index;
use crate::error::{LineageError, ViolationError};

/// Bytes of a run: sequence number, incarnation, first event.
pub(crate) const RUN: u32 = 2;

/// Incarnation, sequence number and place of the event that a run begins with, and the end of the run.
type SeqRun = (u32, u64, u32, u32);

/// The place of a name in a run, if it is there.
fn place_in((incarnation, seq, first, end): SeqRun, key: (u32, u64)) -> Option<u32> {
    let event = u64::from(first).checked_add(key.1.checked_sub(seq)?)?;
    (incarnation == key.0 && event < u64::from(end)).then_some(event as u32)
}

/// The runs of a log whose names do not ascend, sorted by their names: spans may stand in the order of their parents instead of that of their
/// stamps.
pub(super) struct ByName {
    runs: Vec<SeqRun>,
    /// By run: where the last of it and of those with smaller names ends.
    ends: Vec<u32>,
}

impl ByName {
    fn new(mut runs: Vec<SeqRun>) -> ByName {
        runs.sort_unstable();
        let ends = runs.iter().scan(0, |last, run| {
            *last = run.3.max(*last);
            Some(*last)
        });
        ByName { ends: ends.collect(), runs }
    }

    /// The last run that begins no later than a name, and the end of what stands up to there.
    fn last(&self, key: (u32, u64)) -> Option<(SeqRun, u32)> {
        let at = self.runs.partition_point(|run| (run.0, run.1) <= key).checked_sub(1)?;
        Some((*self.runs.get(at)?, *self.ends.get(at)?))
    }
}

/// Whether so many events, the first of which has this sequence number, are of times that follow each other.
fn is_tie(seq: u64, events: u32) -> bool {
    events > 1 && is_time_seq(seq)
}

impl Index {
    /// Incarnation, sequence number and number of the event that a run begins with.
    fn run(&self, i: u32) -> Result<(u32, u64, u32), LineageError> {
        let (seq, rest) = (self.runs().get(i * RUN)?, self.runs().get(i * RUN + 1)?);
        Ok(((rest >> 32) as u32, seq, rest as u32))
    }

    fn runs_of(&self, actor: usize) -> std::ops::Range<u32> {
        let end = self.header.actors.get(actor + 1).map_or(self.header.runs, |a| a.first_run);
        self.header.actors[actor].first_run..end
    }

    /// The last of the actor's runs for which `holds`, which is true for the first ones and then no more.
    fn last_run(
        &self,
        actor: usize,
        holds: impl Fn((u32, u64, u32)) -> bool,
    ) -> Result<Option<SeqRun>, LineageError> {
        let runs = self.runs_of(actor);
        let (mut low, mut high) = (runs.start, runs.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.run(middle)?) { low = middle + 1 } else { high = middle }
        }
        if low == runs.start {
            return Ok(None);
        }
        let (incarnation, seq, first) = self.run(low - 1)?;
        let end = if low < runs.end { self.run(low)?.2 } else { self.events_of(actor).end };
        Ok(Some((incarnation, seq, first, end)))
    }

    /// The number of the actor of that name.
    #[must_use]
    pub fn find_actor(&self, name: &str) -> Option<usize> {
        self.header.actors.binary_search_by(|a| a.name.as_str().cmp(name)).ok()
    }

    /// The event of that name, if there is one.
    pub(crate) fn find(&self, id: &EventId) -> Result<Option<u32>, LineageError> {
        let Some(actor) = self.find_actor(&id.actor) else { return Ok(None) };
        self.find_in(actor, (id.incarnation, id.seq))
    }

    fn find_in(&self, actor: usize, key: (u32, u64)) -> Result<Option<u32>, LineageError> {
        // In most logs the names ascend; where they do not, what is found so is still the event.
        let found = self.last_run(actor, |(l, s, _)| (l, s) <= key)?.and_then(|run| place_in(run, key));
        if found.is_some() {
            return Ok(found);
        }
        let Some(names) = self.by_name(actor)? else { return Ok(None) };
        Ok(names.last(key).and_then(|(run, _)| place_in(run, key)))
    }

    /// The runs of an actor in the order of their names, where that is not the order of its log.
    fn by_name(&self, actor: usize) -> Result<Option<&ByName>, LineageError> {
        let Some(cell) = self.names_by_log().get(actor) else { return Ok(None) };
        if let Some(known) = cell.get() {
            return Ok(known.as_deref());
        }
        let runs = self.runs_of(actor);
        let (mut before, mut ascend) = (None, true);
        for i in runs.clone() {
            let (incarnation, seq, _) = self.run(i)?;
            ascend &= before.replace((incarnation, seq)) < Some((incarnation, seq));
            if !ascend {
                break;
            }
        }
        let mut all = Vec::new();
        if !ascend {
            for i in runs.clone() {
                let (incarnation, seq, first) = self.run(i)?;
                let end = if i + 1 < runs.end { self.run(i + 1)?.2 } else { self.events_of(actor).end };
                all.push((incarnation, seq, first, end));
            }
        }
        Ok(cell.get_or_init(|| (!ascend).then(|| Box::new(ByName::new(all)))).as_deref())
    }

    /// The number of the event that `text` names, as `ACTOR/SEQ` or `ACTOR/INCARNATION/SEQ`.
    ///
    /// # Errors
    /// When there is no such event; the message says what there is.
    pub fn event(&self, text: &str) -> Result<u32, LineageError> {
        let readings = EventId::readings(text).map_err(ViolationError::from)?;
        for id in &readings {
            if let Some(event) = self.find(id)? {
                return Ok(event);
            }
        }
        let known = readings.iter().find_map(|id| self.find_actor(&id.actor));
        let Some(actor) = known else {
            return Err(self.no_actor(readings.last().map_or(text, |id| &id.actor)).into());
        };
        let range = self.events_of(actor);
        let has = format!(
            "the log of '{}' goes from {} to {}",
            self.header.actors[actor].name,
            self.name(range.start)?,
            self.name(range.end - 1)?
        );
        Err(ViolationError::NoEvent { name: text.to_owned(), has }.into())
    }

    /// The number of the actor of that name.
    ///
    /// # Errors
    /// When there is none; the message names the nearest.
    pub fn actor(&self, name: &str) -> Result<usize, LineageError> {
        self.find_actor(name).ok_or_else(|| self.no_actor(name).into())
    }

    fn no_actor(&self, name: &str) -> ViolationError {
        let names = || self.header.actors.iter().map(|a| a.name.as_str());
        let mut actors = names().take(20).collect::<Vec<_>>().join(", ");
        if self.header.actors.len() > 20 {
            actors.push_str(&format!(" and {} more", self.header.actors.len() - 20));
        }
        ViolationError::NoActor {
            name: name.to_owned(),
            nearest: nearest(name, names()).map(str::to_owned),
            actors,
        }
    }

    /// The name of an event.
    ///
    /// # Errors
    /// When there is no event of that number, or a file cannot be read.
    pub fn name(&self, event: u32) -> Result<EventId, LineageError> {
        let (actor, incarnation, seq) = self.place(event)?;
        Ok(EventId { actor: self.header.actors[actor].name.clone(), incarnation, seq })
    }

    /// The parts of an event's name: the number of its actor, its incarnation and its sequence number.
    pub(crate) fn place(&self, event: u32) -> Result<(usize, u32, u64), LineageError> {
        let actor = self.actor_of(event);
        let found = self.last_run(actor, |(_, _, first)| first <= event)?;
        let Some((incarnation, seq, first, _)) = found.filter(|_| event < self.header.events) else {
            return Err(self.broken(format!("no event {event} of {}", self.header.events)));
        };
        Ok((actor, incarnation, seq.saturating_add(u64::from(event - first))))
    }

    /// The events of a log that no clock told apart from this one, itself included: their numbers are times, and follow each other. Nothing
    /// where the event is told apart from all others.
    pub(crate) fn tied(&self, event: u32) -> Result<Option<std::ops::Range<u32>>, LineageError> {
        let run = self.last_run(self.actor_of(event), |(_, _, first)| first <= event)?;
        Ok(run.filter(|&(_, seq, first, end)| is_tie(seq, end - first)).map(|(_, _, first, end)| first..end))
    }

    /// All events that some clock did not tell apart from others of their logs, as ranges of their numbers.
    pub(crate) fn all_tied(&self) -> Result<Vec<std::ops::Range<u32>>, LineageError> {
        let mut all = Vec::new();
        for actor in 0..self.header.actors.len() {
            let (runs, log) = (self.runs_of(actor), self.events_of(actor));
            for i in runs.clone() {
                let (_, seq, first) = self.run(i)?;
                let end = if i + 1 < runs.end { self.run(i + 1)?.2 } else { log.end };
                if is_tie(seq, end.saturating_sub(first)) {
                    all.push(first..end);
                }
            }
        }
        Ok(all)
    }

    /// The runs of an actor's log: incarnation, first and last sequence number of each.
    pub(crate) fn runs_of_log(&self, actor: usize) -> Result<Vec<(u32, u64, u64)>, LineageError> {
        let (runs, log) = (self.runs_of(actor), self.events_of(actor));
        let mut all = Vec::with_capacity(runs.len());
        for i in runs.clone() {
            let (incarnation, seq, first) = self.run(i)?;
            let end = if i + 1 < runs.end { self.run(i + 1)?.2 } else { log.end };
            let more = u64::from(end.saturating_sub(first)).saturating_sub(1);
            all.push((incarnation, seq, seq.saturating_add(more)));
        }
        Ok(all)
    }

    /// The end of the prefix of an actor's log up to incarnation and sequence number, both included. Where there is no event of that name, it
    /// is that up to the last event whose name is smaller.
    pub(crate) fn prefix(&self, actor: usize, incarnation: u32, seq: u64) -> Result<u32, LineageError> {
        let key = (incarnation, seq);
        if let Some(event) = self.find_in(actor, key)? {
            return Ok(event + 1);
        }
        let end = match self.by_name(actor)? {
            Some(names) => names.last(key).map(|(_, end)| end),
            None => self.last_run(actor, |(l, s, _)| (l, s) <= key)?.map(|(.., end)| end),
        };
        let log = self.events_of(actor);
        Ok(end.map_or(log.start, |end| end.clamp(log.start, log.end)))
    }
}

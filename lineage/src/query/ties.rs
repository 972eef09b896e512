//! Events of one log that its clock does not tell apart, and what is certain of the order all the same.
//!
//! An event that is numbered by the time in its record stands behind those of earlier times. Of several events of one time each is given the next number,
//! as they were read: from several files, or as spans that were exported when they ended. That order is a guess. So where only certain edges
//! count, an event of such a tie has nothing of its tie before or after it, but its span's parent and start where they are in it, which come
//! first by what they are; and what a tie's event causes is caused by it alone and by what is before the whole tie.
//!
//! This is a search over all events between, event by event: a prefix of a log is no past where there are ties.

use std::cell::OnceCell;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{EventSet, Query};
use crate::error::LineageError;
use crate::execution::Tables;
use crate::index::{Hop, Index};
use crate::read::{SpanEvent, columns};

/// The ties of an execution, found when first asked for.
#[derive(Default)]
pub(super) struct Ties {
    all: OnceCell<Vec<Range<u32>>>,
    kin: OnceCell<Kin>,
}

/// What is known of the order within ties: causes and effects of events, by what their spans say.
#[derive(Default)]
struct Kin {
    causes: FxHashMap<u32, Vec<u32>>,
    effects: FxHashMap<u32, Vec<u32>>,
}

/// The direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Toward {
    Past,
    Future,
}

/// What was reached: of each log a part at its beginning or end, and single events.
struct Reach<'a> {
    index: &'a Index,
    kin: &'a Kin,
    toward: Toward,
    /// By actor: where the part ends (of a past) or begins (of a future).
    bound: Vec<u32>,
    single: FxHashSet<u32>,
    next: Vec<u32>,
    /// Nothing outside these places of the linear extension matters.
    places: Range<u32>,
}

impl Query {
    /// Whether some events of a log are not told apart by its clock.
    pub(super) fn has_ties(&self) -> Result<bool, LineageError> {
        Ok(!self.all_ties()?.is_empty())
    }

    /// Whether only certain edges count, and there are ties.
    pub(super) fn minds_ties(&self) -> Result<bool, LineageError> {
        Ok(self.certain && self.has_ties()?)
    }

    /// How many events there are that their clocks do not tell apart from others of their logs.
    pub(super) fn tied(&self) -> Result<u64, LineageError> {
        Ok(self.all_ties()?.iter().map(|tie| u64::from(tie.end - tie.start)).sum())
    }

    fn all_ties(&self) -> Result<&[Range<u32>], LineageError> {
        if let Some(known) = self.ties.all.get() {
            return Ok(known);
        }
        let found = self.index.all_tied()?;
        Ok(self.ties.all.get_or_init(|| found))
    }

    fn kin(&self) -> Result<&Kin, LineageError> {
        if let Some(known) = self.ties.kin.get() {
            return Ok(known);
        }
        let found = self.read_kin()?;
        Ok(self.ties.kin.get_or_init(|| found))
    }

    /// Reads what spans say of the events of ties.
    fn read_kin(&self) -> Result<Kin, LineageError> {
        let ties = self.all_ties()?;
        let mut told: Vec<(u32, SpanEvent)> = Vec::new();
        let (rows, tables) = (self.rows(), Tables::open(&self.folder)?);
        for &part in tables.parts() {
            let numbering = rows.numbering(part);
            let places = rows.rows_of(part, ties);
            for batch in tables.stored(part, &["attrs"], Some(&places))? {
                let (places, batch) = batch?;
                let attrs = columns::text(&batch, "attrs")?;
                for (row, place) in places.into_iter().enumerate() {
                    let said = columns::at(attrs, row).and_then(SpanEvent::read);
                    told.extend(numbering.of(place).zip(said));
                }
            }
        }
        // The start of each span, where there is one.
        let mut starts: FxHashMap<&str, Option<u32>> = FxHashMap::default();
        for (event, said) in told.iter().filter(|(_, said)| said.starts) {
            starts.entry(&said.span).and_modify(|start| *start = None).or_insert(Some(*event));
        }
        let mut kin = Kin::default();
        for (event, said) in &told {
            let cause = said.after.as_deref().and_then(|span| starts.get(span).copied().flatten());
            let Some(cause) = cause else { continue };
            let at = ties.partition_point(|tie| tie.end <= *event);
            if cause < *event && ties.get(at).is_some_and(|tie| tie.contains(&cause)) {
                kin.causes.entry(*event).or_default().push(cause);
                kin.effects.entry(cause).or_default().push(*event);
            }
        }
        Ok(kin)
    }

    fn reach(&self, toward: Toward, from: &[u32], places: Range<u32>) -> Result<Reach<'_>, LineageError> {
        let logs = (0..self.index.header().actors.len()).map(|actor| self.index.events_of(actor));
        let bound = logs.map(|log| if toward == Toward::Past { log.start } else { log.end });
        let (index, kin) = (&self.index, self.kin()?);
        let mut reach = Reach {
            index,
            kin,
            toward,
            bound: bound.collect(),
            single: FxHashSet::default(),
            next: from.to_vec(),
            places,
        };
        reach.run()?;
        Ok(reach)
    }

    /// The events that certainly happen before one of these, and these.
    pub(super) fn certain_past(&self, events: &[u32]) -> Result<EventSet, LineageError> {
        self.reach(Toward::Past, events, 0..u32::MAX)?.set()
    }

    /// The events that one of these certainly happens before, and these.
    pub(super) fn certain_future(&self, events: &[u32]) -> Result<EventSet, LineageError> {
        self.reach(Toward::Future, events, 0..u32::MAX)?.set()
    }

    /// A causal chain from `a` to `b` with the fewest messages; nothing where `a` is not before `b`. A step along a log between events that their
    /// clock does not tell apart is not certain.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn path(&self, a: u32, b: u32) -> Result<Option<Vec<Hop>>, LineageError> {
        if a != b && self.minds_ties()? && !self.certainly_precedes(a, b)? {
            return Ok(None);
        }
        let mut path = self.index.path(a, b, self.certain)?;
        for hop in path.iter_mut().flatten().filter(|hop| hop.is_log()) {
            let (from, to) = (self.index.event(&hop.from)?, self.index.event(&hop.to)?);
            let tied = self.index.tied(from)?.is_some_and(|tie| tie.contains(&to));
            hop.certain = !tied || self.certainly_precedes(from, to)?;
        }
        Ok(path)
    }

    /// Whether `a` certainly happens before `b`.
    pub(super) fn certainly_precedes(&self, a: u32, b: u32) -> Result<bool, LineageError> {
        let places = self.index.order(a)?..u32::MAX;
        Ok(a != b && self.reach(Toward::Past, &[b], places)?.holds(a)?)
    }
}

impl Reach<'_> {
    fn run(&mut self) -> Result<(), LineageError> {
        while let Some(event) = self.next.pop() {
            if self.holds(event)? || !self.places.contains(&self.index.order(event)?) {
                continue;
            }
            self.single.insert(event);
            self.go_on_from(event)?;
            if self.index.info(event)?.is_alone() {
                continue;
            }
            // The log goes on behind the event, or behind the whole tie.
            let tie = self.index.tied(event)?.unwrap_or(event..event + 1);
            let actor = self.index.actor_of(event);
            let bound = self.bound[actor];
            let passed = match self.toward {
                Toward::Past => bound..tie.start.max(bound),
                Toward::Future => tie.end.min(bound)..bound,
            };
            self.bound[actor] = if self.toward == Toward::Past { passed.end } else { passed.start };
            for event in passed {
                if !self.index.info(event)?.is_alone() && !self.single.remove(&event) {
                    self.go_on_from(event)?;
                }
            }
        }
        Ok(())
    }

    /// Notes the causes of an event, or its effects, outside the order of its log.
    fn go_on_from(&mut self, event: u32) -> Result<(), LineageError> {
        let (info, next) = (self.index.info(event)?, &mut self.next);
        match self.toward {
            Toward::Past => {
                next.extend(self.kin.causes.get(&event).into_iter().flatten());
                self.index.each_cause(event, info, |cause| {
                    next.extend(cause.certain().then(|| cause.event()));
                    Ok(())
                })
            }
            Toward::Future => {
                next.extend(self.kin.effects.get(&event).into_iter().flatten());
                self.index.each_effect(event, info, |effect| {
                    next.extend(effect.certain().then(|| effect.event()));
                    Ok(())
                })
            }
        }
    }

    fn holds(&self, event: u32) -> Result<bool, LineageError> {
        let bound = self.bound[self.index.actor_of(event)];
        let inside = if self.toward == Toward::Past { event < bound } else { event >= bound };
        Ok(self.single.contains(&event) || inside && !self.index.info(event)?.is_alone())
    }

    fn set(&self) -> Result<EventSet, LineageError> {
        let mut single: Vec<u32> = self.single.iter().copied().collect();
        single.sort_unstable();
        let mut parts = EventSet::default();
        for (actor, &bound) in self.bound.iter().enumerate() {
            let log = self.index.events_of(actor);
            let part = if self.toward == Toward::Past { log.start..bound } else { bound..log.end };
            if self.index.header().alone == 0 {
                parts.push(part);
                continue;
            }
            for event in part {
                if !self.index.info(event)?.is_alone() {
                    parts.push(event..event + 1);
                }
            }
        }
        Ok(parts.or(&EventSet::of(&single)))
    }
}

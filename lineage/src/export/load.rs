//! Reading an execution: its order from the order index, what its events are and say from its tables.

use std::ops::Range;
use std::path::Path;

use arrow_array::{Array, RecordBatch};
use demi_schemas::Kind;

use super::content::Content;
use super::skeleton::{Builder, Joint, Skeleton};
use crate::error::LineageError;
use crate::execution::Tables;
use crate::matching::{Reason, Status};
use crate::query::Query;
use crate::read::columns::{self, at};

/// Reads the order of the execution in `exec`.
///
/// # Errors
/// When the index or a table is missing or not what a build writes.
pub fn skeleton(exec: &Path) -> Result<Skeleton, LineageError> {
    ordered(&Query::open(exec, false)?).map(|(skeleton, _)| skeleton)
}

/// The order of an execution as pictures show it, and the places in it of what the index knows.
///
/// # Errors
/// When the index or a table is missing or not what a build writes.
pub fn ordered(query: &Query) -> Result<(Skeleton, Ranks), LineageError> {
    let ranks = Ranks::read(query)?;
    let (kinds, kept) = kinds(query)?;
    let index = query.index();
    let actors = &index.header().actors;
    let mut builder = Builder::default();
    let numbers: Vec<u32> = actors.iter().map(|actor| builder.actor(&actor.name)).collect();
    // Names come run by run, events by their place in the order.
    let mut names: Vec<(u32, u64)> = Vec::with_capacity(kinds.len());
    for actor in 0..actors.len() {
        for (incarnation, from, to) in index.runs_of_log(actor)? {
            // A run that somebody made up may be endless: one more than there are events is enough to tell.
            let most = (kinds.len() + 1).saturating_sub(names.len());
            names.extend((from..=to).take(most).map(|seq| (incarnation, seq)));
        }
    }
    if names.len() != kinds.len() {
        return Err(index.broken(format!("{} events have {} names", kinds.len(), names.len())));
    }
    for &event in &ranks.events {
        let e = event as usize;
        let info = index.info(event)?;
        let actor = numbers[index.actor_of(event)];
        let at = builder.push_at(actor, names[e], kinds[e], kept[e], info.is_alone());
        if index.mate(event)?.is_none() {
            builder.open(at, open(info.status()));
        }
    }
    for (event, rank) in (0..).zip(&ranks.of) {
        index.each_cause(event, index.info(event)?, |cause| {
            let from = ranks.of[cause.event() as usize];
            if from >= *rank {
                let (cause, effect) = (index.name(cause.event())?, index.name(event)?);
                return Err(index.broken(format!("{cause} is a cause of {effect} and stands behind it")));
            }
            builder.join(from, *rank, joint(cause.reason()), cause.certain());
            Ok(())
        })?;
    }
    Ok((builder.finish(), ranks))
}

/// The places of an execution's events in its order, from 0.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// By event of the index: its place.
    of: Vec<u32>,
    /// By place: the event.
    events: Vec<u32>,
}

impl Ranks {
    fn read(query: &Query) -> Result<Ranks, LineageError> {
        let index = query.index();
        let count = index.header().events;
        let mut of = Vec::with_capacity(count as usize);
        let mut events = vec![u32::MAX; count as usize];
        for event in 0..count {
            let rank = index.order(event)?.wrapping_sub(1);
            match events.get_mut(rank as usize) {
                Some(place) if *place == u32::MAX => *place = event,
                _ => return Err(index.broken("the order does not number the events from 1".into())),
            }
            of.push(rank);
        }
        Ok(Ranks { of, events })
    }

    /// By place: whether the index says that it happens before the event at `of` (or after it, where that is asked), or is it.
    ///
    /// # Errors
    /// When there is no such event, or a file of the index cannot be read.
    pub fn reach(&self, query: &Query, of: u32, forward: bool) -> Result<Vec<bool>, LineageError> {
        let event = self.event(query, of)?;
        let set = if forward { query.future_set(event)? } else { query.past_set(event)? };
        let mut reached = vec![false; self.of.len()];
        for event in set.ranges().iter().cloned().flatten() {
            if let Some(&rank) = self.of.get(event as usize) {
                reached[rank as usize] = true;
            }
        }
        Ok(reached)
    }

    fn event(&self, query: &Query, rank: u32) -> Result<u32, LineageError> {
        if query.index().header().events as usize != self.of.len() {
            return Err(query.index().broken("the execution was built anew".into()));
        }
        let gone = || query.index().broken(format!("there is no event {rank}"));
        self.events.get(rank as usize).copied().ok_or_else(gone)
    }

    /// What the events at these places say, in their order. Only pages that hold such an event are read.
    ///
    /// # Errors
    /// When there is no such event, or a table is not what a build writes.
    pub fn contents(&self, query: &Query, places: Range<u32>) -> Result<Vec<Content>, LineageError> {
        let mut events = places.clone().map(|at| self.event(query, at)).collect::<Result<Vec<u32>, _>>()?;
        events.sort_unstable();
        let ranges: Vec<Range<u32>> = events.into_iter().map(|event| event..event + 1).collect();
        let mut all = vec![Content::default(); places.len()];
        let tables = Tables::open(query.folder())?;
        for &part in tables.parts() {
            let rows = query.rows_of(part, &ranges);
            for batch in tables.stored(part, &CONTENT, Some(&rows))? {
                read_contents(&batch?.1, &|e| places.contains(&e), &mut |e, content| {
                    all[(e - places.start) as usize] = content;
                    Ok::<(), LineageError>(())
                })?;
            }
        }
        Ok(all)
    }
}

/// By event: what it is, and whether it was kept.
fn kinds(query: &Query) -> Result<(Vec<Kind>, Vec<bool>), LineageError> {
    let index = query.index();
    let events = index.header().events as usize;
    let (mut kinds, mut kept) = (vec![Kind::Start; events], vec![false; events]);
    let (mut rows, tables, rows_of) = (0, Tables::open(query.folder())?, query.rows());
    for &part in tables.parts() {
        let numbering = rows_of.numbering(part);
        for batch in tables.stored(part, &["kind", "kept"], None)? {
            let (places, batch) = batch?;
            let (kind, keep) = (columns::text(&batch, "kind")?, columns::flag(&batch, "kept")?);
            rows += batch.num_rows();
            for (row, place) in places.into_iter().enumerate() {
                let Some(event) = numbering.of(place) else { continue };
                let Some(what) = Kind::from_name(kind.value(row)) else {
                    return Err(index.broken(format!("unknown kind '{}'", kind.value(row))));
                };
                (kinds[event as usize], kept[event as usize]) = (what, keep.value(row));
            }
        }
    }
    match rows == events {
        true => Ok((kinds, kept)),
        false => Err(index.broken(format!("{events} events, but {rows} in the table"))),
    }
}

fn joint(reason: Reason) -> Joint {
    match reason {
        Reason::None | Reason::Inferred => Joint::Inferred,
        Reason::ChannelOrder => Joint::ChannelOrder,
        Reason::Timer => Joint::Timer,
        Reason::MessageId => Joint::MessageId,
        Reason::Clock => Joint::Clock,
        Reason::Parent => Joint::Parent,
        Reason::Link => Joint::Link,
        Reason::Operation => Joint::Operation,
    }
}

fn open(status: Status) -> Joint {
    match status {
        Status::Local | Status::Matched | Status::Order => Joint::Local,
        Status::InFlight => Joint::InFlight,
        Status::Lost => Joint::Lost,
        Status::SenderMissing => Joint::SenderMissing,
        Status::Duplicate => Joint::Duplicate,
        Status::External => Joint::External,
    }
}

/// The columns of what an event says.
const CONTENT: [&str; 14] = [
    "kind", "msg_id", "from", "to", "type", "payload", "external", "fields", "state", "time", "source",
    "offset", "reason", "order",
];

/// Calls `each` with the rank in the order and what the event says, for each wanted event, in the order in which they
/// are stored.
///
/// # Errors
/// When the table is missing or not what a build writes, and what `each` returns.
pub fn contents<E: From<LineageError>>(
    exec: &Path,
    wanted: impl Fn(u32) -> bool,
    mut each: impl FnMut(u32, Content) -> Result<(), E>,
) -> Result<(), E> {
    let tables = Tables::open(exec)?;
    for &part in tables.parts() {
        for batch in tables.stored(part, &CONTENT, None)? {
            read_contents(&batch?.1, &wanted, &mut each)?;
        }
    }
    Ok(())
}

fn read_contents<E: From<LineageError>>(
    batch: &RecordBatch,
    wanted: &impl Fn(u32) -> bool,
    each: &mut impl FnMut(u32, Content) -> Result<(), E>,
) -> Result<(), E> {
    let order = columns::long(batch, "order")?;
    let text = |name| columns::text(batch, name);
    let (id, from, to, type_) = (text("msg_id")?, text("from")?, text("to")?, text("type")?);
    let (payload, fields, state) = (text("payload")?, text("fields")?, text("state")?);
    let (time, source, reason) = (text("time")?, text("source")?, text("reason")?);
    let (external, offset) = (columns::flag(batch, "external")?, columns::long(batch, "offset")?);
    for row in 0..batch.num_rows() {
        let Some(e) = order.value(row).checked_sub(1).and_then(|n| u32::try_from(n).ok()) else {
            continue;
        };
        if !wanted(e) {
            continue;
        }
        let owned = |column| at(column, row).map(Box::from);
        let content = Content {
            msg_id: owned(id),
            from: owned(from),
            to: owned(to),
            type_: owned(type_),
            payload: owned(payload),
            fields: owned(fields),
            state: owned(state),
            time: owned(time),
            reason: owned(reason),
            external: external.is_valid(row) && external.value(row),
            source: owned(source),
            offset: offset.is_valid(row).then(|| offset.value(row).unsigned_abs()),
        };
        each(e, content)?;
    }
    Ok(())
}

//! Reading an execution: its order from the order index, what its events are and say from its tables.

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
    let query = Query::open(exec, false)?;
    let ranked = Ranked::read(&query)?;
    let index = query.index();
    let actors = &index.header().actors;
    let mut builder = Builder::default();
    let numbers: Vec<u32> = actors.iter().map(|actor| builder.actor(&actor.name)).collect();
    // Names come run by run, events by their place in the order.
    let mut names: Vec<(u32, u64)> = Vec::with_capacity(ranked.kinds.len());
    for actor in 0..actors.len() {
        for (incarnation, from, to) in index.runs_of_log(actor)? {
            names.extend((from..=to).map(|seq| (incarnation, seq)));
        }
    }
    if names.len() != ranked.kinds.len() {
        return Err(index.broken(format!("{} events have {} names", ranked.kinds.len(), names.len())));
    }
    for &event in &ranked.sequence {
        let e = event as usize;
        let info = index.info(event)?;
        let actor = numbers[index.actor_of(event)];
        let at = builder.push_at(actor, names[e], ranked.kinds[e], ranked.kept[e], info.is_alone());
        if index.mate(event)?.is_none() {
            builder.open(at, open(info.status()));
        }
    }
    for (event, rank) in (0..).zip(&ranked.ranks) {
        index.each_cause(event, index.info(event)?, |cause| {
            let from = ranked.ranks[cause.event as usize];
            if from >= *rank {
                let (cause, effect) = (index.name(cause.event)?, index.name(event)?);
                return Err(index.broken(format!("{cause} is a cause of {effect} and stands behind it")));
            }
            builder.join(from, *rank, joint(cause.reason), cause.certain);
            Ok(())
        })?;
    }
    Ok(builder.finish())
}

/// Events by their place in the order, and what they are.
struct Ranked {
    /// By event: its rank, from 0.
    ranks: Vec<u32>,
    /// By rank: the event.
    sequence: Vec<u32>,
    kinds: Vec<Kind>,
    kept: Vec<bool>,
}

impl Ranked {
    fn read(query: &Query) -> Result<Ranked, LineageError> {
        let index = query.index();
        let events = index.header().events;
        let mut ranks = Vec::with_capacity(events as usize);
        let mut sequence = vec![u32::MAX; events as usize];
        for event in 0..events {
            let rank = index.order(event)?.wrapping_sub(1);
            match sequence.get_mut(rank as usize) {
                Some(place) if *place == u32::MAX => *place = event,
                _ => return Err(index.broken("the order does not number the events from 1".into())),
            }
            ranks.push(rank);
        }
        let (mut kinds, mut kept) = (vec![Kind::Start; events as usize], vec![false; events as usize]);
        let (mut rows, tables, rows_of) = (0, Tables::open(&query.folder)?, query.rows());
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
        match rows == events as usize {
            true => Ok(Ranked { ranks, sequence, kinds, kept }),
            false => Err(index.broken(format!("{events} events, but {rows} in the table"))),
        }
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
    let names = [
        "kind", "msg_id", "from", "to", "type", "payload", "external", "fields", "state", "time", "source",
        "offset", "reason", "order",
    ];
    let tables = Tables::open(exec)?;
    for &part in tables.parts() {
        for batch in tables.stored(part, &names, None)? {
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

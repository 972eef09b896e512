//! Reading an execution's tables: the order first, and what the events say for those that are wanted.

use std::path::Path;

use arrow_array::{Array, RecordBatch};
use demi_schemas::event::ENVIRONMENT;
use demi_schemas::{EventId, Kind, Via};

use super::content::Content;
use super::skeleton::{Builder, Joint, NONE, Skeleton};
use crate::error::LineageError;
use crate::execution::Tables;
use crate::read::columns::{self, at};
use crate::read::{Role, role};

/// Reads the order of the execution in `exec`.
///
/// # Errors
/// When a table is missing or not what a build writes.
pub fn skeleton(exec: &Path) -> Result<Skeleton, LineageError> {
    let bad = LineageError::table(exec);
    let tables = Tables::open(exec)?;
    let wanted = ["actor", "incarnation", "seq", "kind", "via", "kept", "order"];
    let mut rows: Vec<(u32, Row)> = Vec::new();
    let mut builder = Builder::default();
    let mut reason = None;
    for batch in tables.events(&wanted)? {
        read_rows(&batch?, &mut builder, &mut rows, &mut reason)?;
    }
    rows.sort_unstable_by_key(|(order, _)| *order);
    let whole = rows.iter().enumerate().all(|(i, (order, _))| *order as usize == i + 1);
    if !whole {
        reason = Some("column 'order' does not number the events from 1".to_owned());
    }
    if let Some(reason) = reason {
        return Err(bad(reason));
    }
    for (_, row) in rows {
        builder.push_at(row.actor, (row.incarnation, row.seq), row.kind, row.kept, row.loose);
    }
    let mut skeleton = builder.finish();
    join(&tables, &mut skeleton)?;
    Ok(skeleton)
}

struct Row {
    actor: u32,
    incarnation: u32,
    seq: u64,
    kind: Kind,
    kept: bool,
    loose: bool,
}

fn read_rows(
    batch: &RecordBatch,
    builder: &mut Builder,
    rows: &mut Vec<(u32, Row)>,
    bad: &mut Option<String>,
) -> Result<(), LineageError> {
    let (actor, kind) = (columns::text(batch, "actor")?, columns::text(batch, "kind")?);
    let (incarnation, seq) = (columns::int(batch, "incarnation")?, columns::long(batch, "seq")?);
    let (via, kept) = (columns::text(batch, "via")?, columns::flag(batch, "kept")?);
    let order = columns::long(batch, "order")?;
    for row in 0..batch.num_rows() {
        let name = actor.value(row);
        let Some(what) = Kind::from_name(kind.value(row)) else {
            bad.get_or_insert_with(|| format!("unknown kind '{}'", kind.value(row)));
            continue;
        };
        let via = at(via, row).and_then(Via::from_name);
        let number = |n: i64| u32::try_from(n).unwrap_or(NONE);
        rows.push((
            number(order.value(row)),
            Row {
                actor: builder.actor(name),
                incarnation: incarnation.value(row).unsigned_abs(),
                seq: seq.value(row).unsigned_abs(),
                kind: what,
                kept: kept.value(row),
                loose: role(what, via, name == ENVIRONMENT) == Role::Alone,
            },
        ));
    }
    Ok(())
}

/// Joins sends and receives as `messages.parquet` says.
fn join(tables: &Tables, skeleton: &mut Skeleton) -> Result<(), LineageError> {
    let mut wanted = vec!["status", "reason"];
    let names = ["actor", "incarnation", "seq"].map(|n| (format!("send_{n}"), format!("receive_{n}")));
    wanted.extend(names.iter().flat_map(|(s, r)| [s.as_str(), r.as_str()]));
    for batch in tables.messages(&wanted)? {
        let batch = batch?;
        let side = |name: &str| -> Result<Vec<Option<u32>>, LineageError> {
            let actor = columns::text(&batch, &format!("{name}_actor"))?;
            let incarnation = columns::int(&batch, &format!("{name}_incarnation"))?;
            let seq = columns::long(&batch, &format!("{name}_seq"))?;
            let find = |row: usize| {
                skeleton.find(&EventId {
                    actor: at(actor, row)?.to_owned(),
                    incarnation: incarnation.value(row).unsigned_abs(),
                    seq: seq.value(row).unsigned_abs(),
                })
            };
            Ok((0..batch.num_rows()).map(find).collect())
        };
        let (sends, receives) = (side("send")?, side("receive")?);
        let (status, reason) = (columns::text(&batch, "status")?, columns::text(&batch, "reason")?);
        for row in 0..batch.num_rows() {
            let word = |text: &str| Joint::from_name(text).unwrap_or_default();
            match (sends[row], receives[row]) {
                (Some(send), Some(receive)) => skeleton.join(send, receive, word(reason.value(row))),
                (Some(e), None) | (None, Some(e)) => skeleton.joint[e as usize] = word(status.value(row)),
                (None, None) => {}
            }
        }
    }
    Ok(())
}

/// Calls `each` with the rank in the order and what the event says, for each wanted event, in the order of the
/// table.
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
    for batch in tables.events(&names)? {
        let batch = batch?;
        let order = columns::long(&batch, "order")?;
        let text = |name| columns::text(&batch, name);
        let (id, from, to, type_) = (text("msg_id")?, text("from")?, text("to")?, text("type")?);
        let (payload, fields, state) = (text("payload")?, text("fields")?, text("state")?);
        let (time, source, reason) = (text("time")?, text("source")?, text("reason")?);
        let (external, offset) = (columns::flag(&batch, "external")?, columns::long(&batch, "offset")?);
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
    }
    Ok(())
}

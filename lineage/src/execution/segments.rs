//! The tables of an execution: those it was built with, and behind them those of what was added.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use demi_schemas::tables;

use super::names::{EVENTS, EVENTS_ADDED, MESSAGES, MESSAGES_ADDED};
use crate::error::LineageError;
use crate::read::{Source, columns, columns_of};

/// The parts of a table that there are.
fn parts(exec: &Path, names: [&str; 2]) -> Vec<PathBuf> {
    let [built, added] = names.map(|name| exec.join(name));
    if added.is_file() { vec![built, added] } else { vec![built] }
}

/// Rows of all events, with the named columns.
pub(crate) fn events(
    exec: &Path,
    names: &[&str],
) -> Result<impl Iterator<Item = Result<RecordBatch, LineageError>>, LineageError> {
    let wanted = columns_of(&tables::execution_events(), names);
    let sources: Result<Vec<Source>, _> =
        parts(exec, [EVENTS, EVENTS_ADDED]).iter().map(|path| Source::of_execution(path, &wanted)).collect();
    Ok(sources?.into_iter().flatten())
}

/// Rows of all messages, with the named columns.
///
/// A send without a receiver among what was built stands once more among what was added, with what became of it, and is left out
/// before.
pub(crate) fn messages(
    exec: &Path,
    names: &[&str],
) -> Result<impl Iterator<Item = Result<RecordBatch, LineageError>>, LineageError> {
    let paths = parts(exec, [MESSAGES, MESSAGES_ADDED]);
    let all = tables::execution_messages();
    let wanted = columns_of(&all, names);
    let grown = paths.len() > 1;
    let read = match grown {
        true => columns_of(&all, &[names, &["send_actor", "receive_actor"]].concat()),
        false => wanted.clone(),
    };
    let sources: Result<Vec<Source>, _> =
        paths.iter().map(|path| Source::of_execution(path, &read)).collect();
    Ok(sources?.into_iter().enumerate().flat_map(move |(part, source)| {
        let wanted = wanted.clone();
        source.map(move |batch| match (grown, part) {
            (false, _) => batch,
            (true, 0) => batch.and_then(|b| project(&without_open(&b)?, &wanted)),
            (true, _) => batch.and_then(|b| project(&b, &wanted)),
        })
    }))
}

fn without_open(batch: &RecordBatch) -> Result<RecordBatch, LineageError> {
    let (send, receive) = (columns::text(batch, "send_actor")?, columns::text(batch, "receive_actor")?);
    let keep: BooleanArray =
        (0..batch.num_rows()).map(|row| Some(receive.is_valid(row) || send.is_null(row))).collect();
    Ok(filter_record_batch(batch, &keep)?)
}

fn project(batch: &RecordBatch, wanted: &SchemaRef) -> Result<RecordBatch, LineageError> {
    let indices: Result<Vec<usize>, _> =
        wanted.fields().iter().map(|f| batch.schema().index_of(f.name())).collect();
    let batch = batch.project(&indices?)?;
    Ok(RecordBatch::try_new(Arc::new(Schema::clone(wanted)), batch.columns().to_vec())?)
}

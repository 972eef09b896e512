//! Passes over one or two columns of the store's files.

use arrow_array::Array;
use demi_common::sealed::SealedFile;
use demi_schemas::Kind;

use super::columns::{self, at};
use super::source::{BATCH_ROWS, always_null, batches, columns_of, record_schema};
use crate::error::LineageError;

/// The rows that have text in a column, files one after the other.
pub(crate) fn has_value(files: &[SealedFile], column: &str) -> Result<Vec<u32>, LineageError> {
    let wanted = columns_of(&record_schema(), &[column]);
    if always_null(files, &wanted)? == [true] {
        return Ok(Vec::new());
    }
    let (mut found, mut first) = (Vec::new(), 0);
    for batch in batches(files, &wanted, BATCH_ROWS) {
        let (_, batch) = batch?;
        let texts = columns::text(&batch, column)?;
        found.extend((0..texts.len()).filter(|&row| texts.is_valid(row)).map(|row| first + row as u32));
        first += texts.len() as u32;
    }
    Ok(found)
}

/// Whether some text in a column fits.
pub(crate) fn any_value(
    files: &[SealedFile],
    column: &str,
    fits: impl Fn(&str) -> bool,
) -> Result<bool, LineageError> {
    let wanted = columns_of(&record_schema(), &[column]);
    if always_null(files, &wanted)? == [true] {
        return Ok(false);
    }
    for batch in batches(files, &wanted, BATCH_ROWS) {
        let (_, batch) = batch?;
        if columns::text(&batch, column)?.iter().flatten().any(&fits) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Calls `f` with what each record of a timer that was set says of the timer, and with its type.
pub(crate) fn timers_set(
    files: &[SealedFile],
    f: &mut dyn FnMut(Option<&str>, Option<&str>),
) -> Result<(), LineageError> {
    let wanted = columns_of(&record_schema(), &["kind", "timer", "type"]);
    for batch in batches(files, &wanted, BATCH_ROWS) {
        let (_, batch) = batch?;
        let kind = columns::text(&batch, "kind")?;
        let (timer, type_) = (columns::text(&batch, "timer")?, columns::text(&batch, "type")?);
        for row in (0..kind.len()).filter(|&row| kind.value(row) == Kind::TimerSet.as_str()) {
            f(at(timer, row), at(type_, row));
        }
    }
    Ok(())
}

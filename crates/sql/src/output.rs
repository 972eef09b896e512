//! Answers as text and files.

use std::io::Write;

use polars::prelude::*;

use demi_lineage::LineageError;

use crate::{io, refused};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Columns for people, one row a line.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object a line.
    JsonLines,
    /// Parquet, compressed by zstd.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

/// Widest column of a table, in characters; longer values are written whole and push the rest of their line.
const WIDEST: usize = 60;

/// Writes an answer.
///
/// # Errors
/// When it cannot be written.
pub fn write(frame: &mut DataFrame, format: OutputFormat, mut out: impl Write) -> Result<(), LineageError> {
    match format {
        OutputFormat::Table => {
            let text = table(frame)?;
            out.write_all(text.as_bytes()).map_err(|error| io("output".as_ref(), error))?;
            Ok(())
        }
        OutputFormat::Csv => CsvWriter::new(&mut out).finish(frame).map_err(refused),
        OutputFormat::JsonLines => {
            JsonWriter::new(&mut out).with_json_format(JsonFormat::JsonLines).finish(frame).map_err(refused)
        }
        OutputFormat::Parquet => ParquetWriter::new(&mut out)
            .with_compression(ParquetCompression::Zstd(None))
            .finish(frame)
            .map(|_| ())
            .map_err(refused),
        OutputFormat::Arrow => IpcWriter::new(&mut out).finish(frame).map_err(refused),
    }
}

/// One value a cell, on one line.
fn cell(value: &AnyValue<'_>) -> String {
    let text = match value {
        AnyValue::Null => String::new(),
        AnyValue::String(s) => (*s).to_owned(),
        AnyValue::StringOwned(s) => s.to_string(),
        other => other.to_string(),
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn table(frame: &DataFrame) -> Result<String, LineageError> {
    let mut columns: Vec<(bool, Vec<String>)> = Vec::new();
    for column in frame.columns() {
        let mut cells = vec![column.name().to_string()];
        for row in 0..frame.height() {
            cells.push(cell(&column.get(row).map_err(refused)?));
        }
        columns.push((column.dtype().is_primitive_numeric(), cells));
    }
    let widths: Vec<usize> = columns
        .iter()
        .map(|(_, cells)| cells.iter().map(|c| c.chars().count()).filter(|&n| n <= WIDEST).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in 0..=frame.height() {
        let mut line = String::new();
        for ((number, cells), &width) in columns.iter().zip(&widths) {
            let value = &cells[row];
            match number {
                true => line.push_str(&format!("{value:>width$}  ")),
                false => line.push_str(&format!("{value:<width$}  ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Ok(text)
}

//! The digests of stored records: what the column holds, or what is worked out from the row.
//!
//! A digest takes eight bytes that nothing compresses, and is asked for where a sequence number comes a second time. So it is kept only
//! where the row does not tell it.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BooleanArray, RecordBatch, StringArray};
use arrow_schema::DataType;
use demi_formats::digest::{Content, Digester, FOUND};
use demi_formats::structured::Values;
use demi_schemas::event::VectorClock;
use parquet::errors::ParquetError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::StoreError;

/// What stands in the column where the row tells the digest.
pub(crate) const TOLD: u64 = 0;

/// The columns that digests are made of, the digest itself, and where the record was found.
pub(crate) const COLUMNS: [(&str, DataType); 21] = [
    ("actor", DataType::Utf8),
    ("incarnation", DataType::Int32),
    ("seq", DataType::Int64),
    ("kind", DataType::Utf8),
    ("msg_id", DataType::Utf8),
    ("from", DataType::Utf8),
    ("to", DataType::Utf8),
    ("type", DataType::Utf8),
    ("payload", DataType::Utf8),
    ("fingerprint", DataType::Utf8),
    ("via", DataType::Utf8),
    ("external", DataType::Boolean),
    ("timer", DataType::Utf8),
    ("fields", DataType::Utf8),
    ("state", DataType::Utf8),
    ("time", DataType::Utf8),
    ("vector_clock", DataType::Utf8),
    ("attrs", DataType::Utf8),
    ("digest", DataType::Int64),
    ("source", DataType::Utf8),
    ("offset", DataType::Int64),
];

/// The digests of a batch with [`COLUMNS`].
pub(crate) struct RowDigests<'a> {
    batch: &'a RecordBatch,
    external: &'a BooleanArray,
}

impl<'a> RowDigests<'a> {
    /// Of a batch.
    pub(crate) fn new(batch: &'a RecordBatch) -> Self {
        RowDigests { batch, external: batch.column(11).as_boolean() }
    }

    /// Who did what a row tells, and in which incarnation.
    pub(crate) fn key(&self, row: usize) -> (&'a str, u32) {
        (self.texts(0).value(row), self.batch.column(1).as_primitive::<Int32Type>().value(row) as u32)
    }

    /// Its sequence number.
    pub(crate) fn seq(&self, row: usize) -> u64 {
        self.batch.column(2).as_primitive::<Int64Type>().value(row) as u64
    }

    /// Where it was found.
    pub(crate) fn place(&self, row: usize) -> (&'a str, u64) {
        (self.texts(19).value(row), self.batch.column(20).as_primitive::<Int64Type>().value(row) as u64)
    }

    fn texts(&self, column: usize) -> &'a StringArray {
        self.batch.column(column).as_string()
    }

    fn text(&self, column: usize, row: usize) -> Option<&'a str> {
        let texts = self.texts(column);
        texts.is_valid(row).then(|| texts.value(row))
    }

    /// A value that stands as JSON text.
    fn json<T: DeserializeOwned>(&self, column: usize, row: usize) -> Result<Option<T>, serde_json::Error> {
        self.text(column, row).map(serde_json::from_str).transpose()
    }

    /// The digest of a row of the file at `path`.
    pub(crate) fn of(&self, row: usize, digester: &mut Digester, path: &Path) -> Result<u64, StoreError> {
        match self.batch.column(18).as_primitive::<Int64Type>().value(row) as u64 {
            TOLD => self.told(row, digester).map_err(|error| {
                let source = ParquetError::External(Box::new(error));
                StoreError::DataFile { path: path.to_owned(), source: Box::new(source) }
            }),
            kept => Ok(kept),
        }
    }

    fn told(&self, row: usize, digester: &mut Digester) -> Result<u64, serde_json::Error> {
        let (actor, incarnation) = self.key(row);
        let mut values = Values::default();
        let timer: Option<Value> = self.json(12, row)?;
        let mut value = |column| self.text(column, row).map(|json| values.read(json)).transpose();
        let (fields, state) = (value(13)?, value(14)?);
        // What is no JSON was a text.
        let time = self.text(15, row);
        let time = time.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
        let vector_clock: Option<VectorClock> = self.json(16, row)?;
        let attrs = self.text(17, row).map(|json| values.read_entries(json)).transpose()?.unwrap_or_default();
        let part = |value| values.part(value);
        let attrs = attrs.iter().map(|(name, attr)| (name.as_str(), part(attr)));
        let attrs: Vec<_> = attrs.filter(|(name, _)| !FOUND.contains(name)).collect();
        Ok(digester.content(&Content {
            actor,
            incarnation,
            seq: self.seq(row),
            kind: self.texts(3).value(row),
            texts: std::array::from_fn(|n| self.text(4 + n, row)),
            via: self.text(10, row),
            external: self.external.is_valid(row).then(|| self.external.value(row)),
            timer: timer.as_ref(),
            fields: fields.as_ref().map(part),
            state: state.as_ref().map(part),
            time: time.as_ref(),
            vector_clock: vector_clock.as_ref(),
            attrs: &attrs,
        }))
    }
}

#[cfg(test)]
mod tests;

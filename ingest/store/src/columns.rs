//! Records and quarantined lines as columns.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Date32Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use demi_formats::read::plain::{LineTexts, PlainRow};
use demi_schemas::{EventRecord, tables};
use serde::Serialize;
use serde_json::Value;

use crate::StoreError;

/// What takes rows of one table.
pub trait Sink {
    /// Takes a batch.
    fn write(&mut self, batch: RecordBatch) -> Result<(), StoreError>;
}

/// Where a record came from, and what it is to the store.
pub struct EventRow<'a> {
    pub system: &'a str,
    pub date: Option<i32>,
    pub source: &'a str,
    pub offset: u64,
    pub digest: u64,
}

/// Texts of a column. Missing ones are counted, and added when one comes that is not: most columns have none.
#[derive(Default)]
struct Texts {
    there: StringBuilder,
    missing: usize,
    /// Room for a JSON text.
    json: Vec<u8>,
}

impl Texts {
    fn append_value(&mut self, text: &str) {
        if self.missing > 0 {
            self.there.append_nulls(std::mem::take(&mut self.missing));
        }
        self.there.append_value(text);
    }

    fn append_option(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.append_value(text),
            None => self.missing += 1,
        }
    }

    /// Adds a value as JSON text. Values that came from JSON can always be written as JSON, and JSON is always UTF-8.
    fn append_json<T: Serialize>(&mut self, value: Option<&T>) {
        let mut json = std::mem::take(&mut self.json);
        json.clear();
        let written = value.and_then(|value| serde_json::to_writer(&mut json, value).ok());
        self.append_option(written.and_then(|()| std::str::from_utf8(&json).ok()));
        self.json = json;
    }

    fn finish(&mut self) -> StringArray {
        self.there.append_nulls(std::mem::take(&mut self.missing));
        // The next batch is about as large.
        let next = StringBuilder::with_capacity(self.there.len(), self.there.values_slice().len());
        std::mem::replace(&mut self.there, next).finish()
    }
}

/// Rows gathered until a batch is full, in the columns of a table, which are listed in its order.
macro_rules! columns {
    ($(#[$doc:meta])* $name:ident of $schema:path { $($column:ident: $builder:ty,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub struct $name {
            $($column: $builder,)*
            rows: usize,
            bytes: usize,
        }

        impl $name {
            /// Rows gathered.
            pub fn rows(&self) -> usize {
                self.rows
            }

            /// The rows gathered, as a batch; the columns are empty again.
            pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
                (self.rows, self.bytes) = (0, 0);
                let columns: Vec<ArrayRef> = vec![$(Arc::new(self.$column.finish()),)*];
                RecordBatch::try_new($schema(), columns)
            }
        }
    };
}

columns! {
    /// Events gathered until a batch is full.
    EventColumns of tables::store_events {
        system: Texts,
        date: Date32Builder,
        actor: Texts,
        incarnation: Int32Builder,
        seq: Int64Builder,
        kind: Texts,
        msg_id: Texts,
        from: Texts,
        to: Texts,
        via: Texts,
        timer: Texts,
        type_: Texts,
        payload: Texts,
        fingerprint: Texts,
        external: BooleanBuilder,
        fields: Texts,
        state: Texts,
        time: Texts,
        source: Texts,
        offset: Int64Builder,
        line: Int64Builder,
        vector_clock: Texts,
        attrs: Texts,
        digest: Int64Builder,
    }
}

columns! {
    /// Quarantined lines gathered until a batch is full.
    QuarantineColumns of tables::store_quarantine {
        system: StringBuilder,
        source: StringBuilder,
        offset: Int64Builder,
        line: Int64Builder,
        raw_length: Int64Builder,
        raw: BinaryBuilder,
        code: StringBuilder,
        reason: StringBuilder,
        digest: Int64Builder,
    }
}

impl EventColumns {
    /// Adds a record. `incarnation` and `seq` were checked to fit.
    pub fn push(&mut self, record: &EventRecord, row: &EventRow<'_>) {
        self.system.append_value(row.system);
        self.date.append_option(row.date);
        self.actor.append_value(&record.actor);
        self.incarnation.append_value(record.incarnation as i32);
        self.seq.append_value(record.seq as i64);
        self.kind.append_value(record.kind.as_str());
        self.msg_id.append_option(record.msg_id.as_deref());
        self.from.append_option(record.from.as_deref());
        self.to.append_option(record.to.as_deref());
        self.via.append_option(record.via.map(|v| v.as_str()));
        self.timer.append_json(record.timer.as_ref());
        self.type_.append_option(record.type_.as_deref());
        self.payload.append_option(record.payload.as_deref());
        self.fingerprint.append_option(record.fingerprint.as_deref());
        self.external.append_option(record.external);
        self.fields.append_json(record.fields.as_ref());
        self.state.append_json(record.state.as_ref());
        match &record.time {
            Some(Value::String(text)) => self.time.append_value(text),
            other => self.time.append_json(other.as_ref()),
        }
        self.source.append_value(row.source);
        self.offset.append_value(row.offset as i64);
        self.line.append_option(record.line.and_then(|l| i64::try_from(l).ok()));
        self.vector_clock.append_json(record.vector_clock.as_ref());
        self.attrs.append_json(Some(&record.attrs).filter(|attrs| !attrs.is_empty()));
        self.digest.append_value(row.digest as i64);
        self.rows += 1;
    }
}

impl EventColumns {
    /// Adds a plain record under a sequence number.
    pub fn push_plain(&mut self, plain: &PlainRow, seq: u64, texts: &LineTexts, row: &EventRow<'_>) {
        let [msg_id, from, to, type_, payload, fingerprint] = plain.texts.map(|text| texts.get(text));
        self.system.append_value(row.system);
        self.date.append_option(row.date);
        self.actor.append_value(texts.get(plain.actor).unwrap_or_default());
        self.incarnation.append_value(plain.incarnation as i32);
        self.seq.append_value(seq as i64);
        self.kind.append_value(plain.kind.as_str());
        self.msg_id.append_option(msg_id);
        self.from.append_option(from);
        self.to.append_option(to);
        self.via.append_option(plain.via.map(|v| v.as_str()));
        self.type_.append_option(type_);
        self.payload.append_option(payload);
        self.fingerprint.append_option(fingerprint);
        self.external.append_option(plain.external);
        self.time.append_option(texts.get(plain.time));
        let values = plain.values.as_ref().map(|values| (**values).map(|text| texts.get(text)));
        let [timer, fields, state, vector_clock, attrs] = values.unwrap_or_default();
        self.timer.append_option(timer);
        self.fields.append_option(fields);
        self.state.append_option(state);
        self.vector_clock.append_option(vector_clock);
        self.attrs.append_option(attrs);
        self.source.append_value(row.source);
        self.offset.append_value(row.offset as i64);
        self.line.append_option(i64::try_from(plain.number).ok().filter(|number| *number > 0));
        self.digest.append_value(row.digest as i64);
        self.rows += 1;
    }
}

/// Quarantined lines of a batch, and the bytes of them after which it has fewer.
const QUARANTINE_ROWS: usize = 4096;
const QUARANTINE_BYTES: usize = 8 << 20;

/// A line for the quarantine.
pub struct QuarantineRow<'a> {
    pub system: &'a str,
    pub source: &'a str,
    pub offset: u64,
    pub line: u64,
    pub raw_length: u64,
    pub raw: &'a [u8],
    pub code: &'a str,
    pub reason: &'a str,
    pub digest: u64,
}

impl QuarantineColumns {
    /// Whether they are enough for a batch.
    pub fn is_full(&self) -> bool {
        self.rows >= QUARANTINE_ROWS || self.bytes >= QUARANTINE_BYTES
    }

    /// Adds a line.
    pub fn push(&mut self, row: &QuarantineRow<'_>) {
        self.system.append_value(row.system);
        self.source.append_value(row.source);
        self.offset.append_value(row.offset as i64);
        self.line.append_value(row.line as i64);
        self.raw_length.append_value(row.raw_length as i64);
        self.raw.append_value(row.raw);
        self.code.append_value(row.code);
        self.reason.append_value(row.reason);
        self.digest.append_value(row.digest as i64);
        self.rows += 1;
        self.bytes += row.raw.len();
    }
}

#[cfg(test)]
mod tests;

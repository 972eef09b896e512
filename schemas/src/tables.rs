//! Arrow schemas of every table, and the names of their columns' values.
//!
//! Structured values (`timer`, `fields`, `state`, `vector_clock`, `attrs`) are JSON text: they differ from record to record, and
//! a flat table scans fast. Delta has no unsigned integers, so sequence numbers are `Int64`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// Version of the table schemas, in the metadata of each file as `demi.schema`.
pub const TABLES_VERSION: &str = "demi-tables/3";
/// The version before, in which each row of the events has its digest. Such tables are read and added to as they are.
pub const TABLES_WITH_DIGESTS: &str = "demi-tables/2";

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn long(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Int64, nullable)
}

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

/// The columns of an event record as logged, shared by the store and by an execution's `events.parquet`.
fn record_fields() -> Vec<Field> {
    vec![
        text("actor", false),
        Field::new("incarnation", DataType::Int32, false),
        long("seq", false),
        text("kind", false),
        text("msg_id", true),
        text("from", true),
        text("to", true),
        text("via", true),
        text("timer", true),
        text("type", true),
        text("payload", true),
        text("fingerprint", true),
        Field::new("external", DataType::Boolean, true),
        text("fields", true),
        text("state", true),
        text("time", true),
        text("source", true),
        long("offset", true),
        long("line", true),
        text("vector_clock", true),
        text("attrs", true),
    ]
}

/// The `events` table of the store, partitioned by `system` and `date` (of `time`; null without one).
///
/// `digest` is xxh3-64 of the record's content without system, source and offset: equal keys with unequal
/// digests are a conflict. It is 0 where the row tells it, that is nearly always.
#[must_use]
pub fn store_events() -> SchemaRef {
    let mut fields = vec![text("system", false), Field::new("date", DataType::Date32, true)];
    fields.extend(record_fields());
    fields.push(long("digest", false));
    schema(fields)
}

/// The `quarantine` table of the store: lines that are no event records, and conflicting duplicates.
///
/// `code` is a short stable word, `reason` a sentence, `raw` the bytes as they came (cut at `raw_length` > limit).
#[must_use]
pub fn store_quarantine() -> SchemaRef {
    schema(vec![
        text("system", false),
        text("source", false),
        long("offset", false),
        long("line", false),
        long("raw_length", false),
        Field::new("raw", DataType::Binary, false),
        text("code", false),
        text("reason", false),
        long("digest", false),
    ])
}

/// The `completeness` table of the store, kept by the daemon: what is complete, one row an incarnation of an actor.
///
/// `gaps` is JSON text: the missing sequence numbers between 1 and `last_seq` as inclusive ranges, at most 100. `missing`
/// counts them all. `duplicates` and `conflicts` count records that came again with equal and with other content.
/// `last_time` is the wall-clock time of the event that came last, as logged.
#[must_use]
pub fn store_completeness() -> SchemaRef {
    schema(vec![
        text("system", false),
        text("actor", false),
        Field::new("incarnation", DataType::Int32, false),
        long("first_seq", false),
        long("last_seq", false),
        long("events", false),
        long("missing", false),
        text("gaps", false),
        long("duplicates", false),
        long("conflicts", false),
        text("last_time", true),
    ])
}

/// The `deleted` table of the store: sequence numbers of events that were deleted on purpose, as inclusive ranges. They
/// do not count as missing, and a log that is read again does not bring them back.
#[must_use]
pub fn store_deleted() -> SchemaRef {
    schema(vec![
        text("system", false),
        text("actor", false),
        Field::new("incarnation", DataType::Int32, false),
        long("first_seq", false),
        long("last_seq", false),
    ])
}

/// The `lineage_actors` table of the store: a number for each actor of all systems, and for each event outside its log's order that has causes
/// of its own, which counts as a log with one event (`alone`; `incarnation` and `seq` name it).
///
/// `last_ord` is the position of the log's last event, `block` the size of its system's blocks. `outside` counts the log's events outside its order, and
/// `by_name` says whether its positions are in the order of incarnations and sequence numbers. `messages` and `digest` tell whether what was written
/// of the log still holds.
#[must_use]
pub fn store_lineage_actors() -> SchemaRef {
    schema(vec![
        text("system", false),
        long("number", false),
        text("actor", false),
        Field::new("alone", DataType::Boolean, false),
        Field::new("incarnation", DataType::Int32, false),
        long("seq", false),
        long("last_ord", false),
        long("block", false),
        long("outside", false),
        Field::new("by_name", DataType::Boolean, false),
        long("bucket", false),
        long("messages", false),
        long("digest", false),
    ])
}

/// The `lineage_runs` table of the store: the positions `ord` to `ord + n - 1` of the log `number` are the events `seq` to `seq + n - 1` of an
/// incarnation.
#[must_use]
pub fn store_lineage_runs() -> SchemaRef {
    schema(vec![
        text("system", false),
        long("bucket", false),
        long("number", false),
        long("ord", false),
        Field::new("incarnation", DataType::Int32, false),
        long("seq", false),
        long("n", false),
    ])
}

/// The `lineage_messages` table of the store: position `sp` of log `sa` happens before position `rp` of log `ra`. `key` is `ra * 2^32 + rp / block`, by which
/// the rows are sorted.
///
/// `alone` says that the earlier event stands outside its log's order, so that nothing else of that log is before the later one. `certain` says that no other match is
/// possible, and `message` is false where clocks, parents or links tell the edge.
#[must_use]
pub fn store_lineage_messages() -> SchemaRef {
    schema(vec![
        text("system", false),
        long("bucket", false),
        long("key", false),
        long("ra", false),
        long("rp", false),
        long("sa", false),
        long("sp", false),
        Field::new("alone", DataType::Boolean, false),
        Field::new("certain", DataType::Boolean, false),
        Field::new("message", DataType::Boolean, false),
    ])
}

/// The `lineage_checkpoints` table of the store: before the block of `key`, the log `ra` has heard of the position `sp` of log `sa` and of none behind it, by
/// edges of its own.
#[must_use]
pub fn store_lineage_checkpoints() -> SchemaRef {
    schema(vec![
        text("system", false),
        long("bucket", false),
        long("key", false),
        long("ra", false),
        long("sa", false),
        long("sp", false),
    ])
}

/// `events.parquet` of an execution: every event, whether it was kept and why, and its happens-before depth
/// (length of the longest chain of events that ends in it, from 1). `order` is its rank in the linear extension
/// over all events, from 1. `reason` says why an event was kept (`affected`, `past`, `handler`, `violation`) or left
/// out (`concurrent`, `after`; `affected` under the strict rule, for an affected actor's last delivery).
#[must_use]
pub fn execution_events() -> SchemaRef {
    let mut fields = record_fields();
    fields.push(Field::new("kept", DataType::Boolean, false));
    fields.push(text("reason", false));
    fields.push(long("depth", false));
    fields.push(long("order", false));
    schema(fields)
}

/// `messages.parquet` of an execution: one row a message or timer, with either side missing where it was not found;
/// a fired timer whose setting nobody logged is a local event and has no row.
///
/// A message that several actors received has a row for each, and so has an order that only vector clocks tell; both ends of
/// the latter may be events of any kind.
///
/// `status` is `matched`, `in_flight`, `lost`, `sender_missing`, `duplicate` or `external`; `reason` of a match is `message_id`,
/// `timer`, `channel_order`, `inferred`, `clock` or `parent`, and `none` without one.
#[must_use]
pub fn execution_messages() -> SchemaRef {
    schema(vec![
        text("msg_id", true),
        text("from", true),
        text("to", true),
        text("type", true),
        text("send_actor", true),
        Field::new("send_incarnation", DataType::Int32, true),
        long("send_seq", true),
        text("receive_actor", true),
        Field::new("receive_incarnation", DataType::Int32, true),
        long("receive_seq", true),
        text("status", false),
        text("reason", false),
        Field::new("certain", DataType::Boolean, false),
    ])
}

/// The timestamp type used where a time is parsed.
#[must_use]
pub fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execution_events_has_the_promised_columns() {
        let schema = execution_events();
        for name in [
            "actor",
            "incarnation",
            "seq",
            "kind",
            "msg_id",
            "from",
            "to",
            "type",
            "payload",
            "external",
            "kept",
            "reason",
            "depth",
            "order",
        ] {
            assert!(schema.field_with_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn the_store_holds_every_field_of_a_record() {
        let store = store_events();
        let record = serde_json::to_value(schemars::schema_for!(crate::EventRecord)).unwrap();
        for name in record["properties"].as_object().unwrap().keys() {
            assert!(store.field_with_name(name).is_ok(), "{name}");
        }
    }
}

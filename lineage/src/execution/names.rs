//! Names of the files in an execution's folder.

/// Name of the table of events in an execution's folder, where that holds a copy of them.
pub const EVENTS: &str = "events.parquet";
/// Name of the table of messages.
pub const MESSAGES: &str = "messages.parquet";
/// Name of the schedule of what was kept.
pub const SCHEDULE: &str = "schedule.jsonl";
/// Name of the summary.
pub const SUMMARY: &str = "summary.json";

/// Name of the folder of tables that are made when they are first asked for.
pub(crate) const TABLES: &str = "tables";
/// Name of the folder with what is kept of the base.
pub(crate) const BASE_FOLDER: &str = "base";
/// The delta's events, in the columns of the execution's.
pub(crate) const EVENTS_ADDED: &str = "events-added.parquet";
/// The delta's messages, and those of the base that had no receiver there.
pub(crate) const MESSAGES_ADDED: &str = "messages-added.parquet";

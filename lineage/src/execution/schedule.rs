//! Reading the schedule of an execution: what was kept, or everything that was recorded.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use demi_schemas::schedule::{SCHEDULE_SCHEMA, ScheduleHeader, StepKind};
use demi_schemas::summary::BuildSummary;
use demi_schemas::{Kind, Schedule, Via};
use rustc_hash::FxHashMap;

use super::lines::Lines;
use super::names::{EVENTS, SCHEDULE};
use super::steps::{Composer, StepContext, StepSink};
use super::summary::load_summary;
use super::tables::{Part, Tables};
use crate::error::LineageError;
use crate::read::beside;
use crate::read::columns::{self, at};

/// Reads the schedule of an execution: what was kept (`schedule.jsonl`, or composed from the tables where it is too long for people),
/// or everything that was recorded, composed from `events.parquet` and `messages.parquet`.
///
/// # Errors
/// When a file is missing or not what a build writes.
pub fn load_schedule(exec_dir: &Path, kept_only: bool) -> Result<Schedule, LineageError> {
    let path = exec_dir.join(SCHEDULE);
    if kept_only && path.is_file() {
        let text = beside(&path)?.read_to_string().map_err(LineageError::io(&path))?;
        return Schedule::parse(&text).map_err(|source| LineageError::Schedule { path, source });
    }
    let mut lines = Vec::new();
    let timers = compose(exec_dir, kept_only, &mut |order: u64, _: bool, line: &[u8]| {
        lines.push((order, String::from_utf8_lossy(line).into_owned()));
        Ok(())
    })?;
    lines.sort_unstable();
    let header = header(&load_summary(exec_dir)?, timers);
    let mut text = serde_json::to_string(&header).map_err(LineageError::table(&path))?;
    text.push('\n');
    for (_, line) in lines {
        text.push_str(&line);
    }
    let path = exec_dir.join(EVENTS);
    let schedule = Schedule::parse(&text).map_err(|source| LineageError::Schedule { path, source })?;
    let deliveries = schedule.steps.iter().filter(|s| StepKind::is_delivery(s.kind)).count() as u64;
    let header = ScheduleHeader { deliveries: Some(deliveries), ..schedule.header };
    Ok(Schedule { header, ..schedule })
}

/// Writes the schedule of what was kept as text, in bounded memory; temporary files go into a folder in `scratch`, and `path` is for messages.
///
/// # Errors
/// When a file is missing or not what a build writes, or cannot be written.
pub fn write_schedule(
    exec_dir: &Path,
    scratch: &Path,
    out: &mut impl Write,
    path: &Path,
) -> Result<(), LineageError> {
    let summary = load_summary(exec_dir)?;
    let scratch = tempfile::tempdir_in(scratch).map_err(LineageError::io(scratch))?;
    let mut lines = Lines::new(scratch.path(), summary.events);
    let timers = compose(exec_dir, true, &mut |order: u64, _: bool, line: &[u8]| lines.add(order, line))?;
    write_lines(&header(&summary, timers), lines, out, path)
}

/// The header of a schedule of what was kept.
pub(crate) fn header(summary: &BuildSummary, timers_recorded: BTreeSet<String>) -> ScheduleHeader {
    ScheduleHeader {
        schema: SCHEDULE_SCHEMA.into(),
        system: Some(summary.system.clone()),
        violation: summary.violation.clone(),
        affected: summary.affected.clone(),
        deliveries: Some(summary.kept_deliveries),
        conformance: true,
        timers_recorded: timers_recorded.into_iter().collect(),
        ..ScheduleHeader::default()
    }
}

/// Writes a schedule as text; `path` is for messages.
pub(crate) fn write_lines(
    header: &ScheduleHeader,
    lines: Lines,
    out: &mut impl Write,
    path: &Path,
) -> Result<(), LineageError> {
    serde_json::to_writer(&mut *out, header).map_err(LineageError::table(path))?;
    out.write_all(b"\n").map_err(LineageError::io(path))?;
    lines.write(out, path)
}

/// The key of an event: actor, incarnation and sequence number.
type EventKey = (String, i32, i64);
/// The actor that receives a message, and the message's id.
type MessageKey = (String, String);

/// How many times actors received messages again; where only what was kept counts, in events that were. What has no id is not told.
fn repeats(tables: &Tables, kept_only: bool) -> Result<FxHashMap<MessageKey, u32>, LineageError> {
    let mut again: FxHashMap<EventKey, MessageKey> = FxHashMap::default();
    let names = ["msg_id", "receive_actor", "receive_incarnation", "receive_seq", "status"];
    for batch in tables.messages(&names)? {
        let batch = batch?;
        let (id, status) = (columns::text(&batch, "msg_id")?, columns::text(&batch, "status")?);
        let actor = columns::text(&batch, "receive_actor")?;
        let incarnation = columns::int(&batch, "receive_incarnation")?;
        let seq = columns::long(&batch, "receive_seq")?;
        for row in 0..batch.num_rows() {
            if let (Some("duplicate"), Some(actor), Some(id)) = (at(status, row), at(actor, row), at(id, row))
            {
                let event = (actor.to_owned(), incarnation.value(row), seq.value(row));
                again.insert(event, (actor.to_owned(), id.to_owned()));
            }
        }
    }
    let mut counts = FxHashMap::default();
    if !kept_only {
        again.into_values().for_each(|key| *counts.entry(key).or_default() += 1);
        return Ok(counts);
    }
    if again.is_empty() {
        return Ok(counts);
    }
    for batch in tables.stored(Part::Built, &["actor", "incarnation", "seq", "kept"], None)? {
        let (_, batch) = batch?;
        let (actor, incarnation) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, kept) = (columns::long(&batch, "seq")?, columns::flag(&batch, "kept")?);
        for row in (0..batch.num_rows()).filter(|row| kept.value(*row)) {
            let event = (actor.value(row).to_owned(), incarnation.value(row), seq.value(row));
            if let Some(key) = again.remove(&event) {
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    Ok(counts)
}

/// How each received message was sent, where that is special and only its send says so.
fn sent_via(tables: &Tables) -> Result<FxHashMap<EventKey, Via>, LineageError> {
    let mut via = FxHashMap::default();
    for batch in tables.stored(Part::Built, &["actor", "incarnation", "seq", "via"], None)? {
        let (_, batch) = batch?;
        let (actor, incarnation) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, how) = (columns::long(&batch, "seq")?, columns::text(&batch, "via")?);
        for row in 0..batch.num_rows() {
            if let Some(how) = at(how, row).and_then(Via::from_name) {
                via.insert((actor.value(row).to_owned(), incarnation.value(row), seq.value(row)), how);
            }
        }
    }
    let mut received = FxHashMap::default();
    if via.is_empty() {
        return Ok(received);
    }
    let names = ["actor", "incarnation", "seq"].map(|n| (format!("send_{n}"), format!("receive_{n}")));
    let wanted: Vec<&str> = names.iter().flat_map(|(s, r)| [s.as_str(), r.as_str()]).collect();
    for batch in tables.messages(&wanted)? {
        let batch = batch?;
        let key = |side: &str, row: usize| -> Result<Option<EventKey>, LineageError> {
            let actor = at(columns::text(&batch, &format!("{side}_actor"))?, row);
            let incarnation = columns::int(&batch, &format!("{side}_incarnation"))?.value(row);
            let seq = columns::long(&batch, &format!("{side}_seq"))?.value(row);
            Ok(actor.map(|a| (a.to_owned(), incarnation, seq)))
        };
        for row in 0..batch.num_rows() {
            if let (Some(send), Some(receive)) = (key("send", row)?, key("receive", row)?)
                && let Some(how) = via.get(&send)
            {
                received.insert(receive, *how);
            }
        }
    }
    Ok(received)
}

/// Composes the steps from the tables, in no order; the names of the timers that some log says were set.
fn compose(
    exec_dir: &Path,
    kept_only: bool,
    sink: &mut StepSink<'_>,
) -> Result<BTreeSet<String>, LineageError> {
    let tables = Tables::open(exec_dir)?;
    let via = sent_via(&tables)?;
    let mut repeated = repeats(&tables, kept_only)?;
    let mut composer = Composer::default();
    let mut sink = |order: u64, kept: bool, line: &[u8]| if kept { sink(order, kept, line) } else { Ok(()) };
    let all = demi_schemas::tables::execution_events();
    let all: Vec<&str> = all.fields().iter().map(|field| field.name().as_str()).collect();
    for batch in tables.part(Part::Built, &all)? {
        let batch = batch?;
        let (actor, incarnation) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, order) = (columns::long(&batch, "seq")?, columns::long(&batch, "order")?);
        let (kind, id) = (columns::text(&batch, "kind")?, columns::text(&batch, "msg_id")?);
        let kept = columns::flag(&batch, "kept")?;
        let mut again: FxHashMap<usize, u32> = FxHashMap::default();
        for row in (0..batch.num_rows()).filter(|&row| at(kind, row) == Some(Kind::Receive.as_str())) {
            let Some(id) = at(id, row).filter(|_| !repeated.is_empty()) else { continue };
            // The first receive takes the count with it.
            let count = repeated.remove(&(actor.value(row).to_owned(), id.to_owned()));
            again.extend(count.map(|count| (row, count)));
        }
        let placed = |row: usize| {
            let key = (actor.value(row).to_owned(), incarnation.value(row), seq.value(row));
            let again = again.get(&row).copied().unwrap_or(0);
            let kept = !kept_only || kept.value(row);
            StepContext::new(order.value(row) as u64, kept, via.get(&key).copied(), again)
        };
        composer.add(&batch, placed, &mut sink)?;
    }
    composer.close(&mut sink)?;
    Ok(composer.timers_recorded)
}

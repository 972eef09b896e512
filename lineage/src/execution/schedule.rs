//! Reading the schedule of an execution: what was kept, or everything that was recorded.

use std::path::Path;

use demi_schemas::schedule::{ScheduleHeader, StepKind};
use demi_schemas::{Kind, Schedule, Via, tables};
use rustc_hash::FxHashMap;

use super::names::{EVENTS, MESSAGES, SCHEDULE};
use super::steps::{Composer, Placed};
use crate::error::LineageError;
use crate::read::columns::{self, at};
use crate::read::{Source, beside, columns_of};

/// Reads the schedule of an execution: what was kept (`schedule.jsonl`), or everything that was recorded, composed from
/// `events.parquet` and `messages.parquet`.
///
/// # Errors
/// When a file is missing or not what a build writes.
pub fn load_schedule(exec_dir: &Path, kept_only: bool) -> Result<Schedule, LineageError> {
    let path = exec_dir.join(SCHEDULE);
    let broken = |source| LineageError::Schedule { path: path.clone(), source };
    let text = beside(&path)?.read_to_string().map_err(LineageError::io(&path))?;
    if kept_only {
        return Schedule::parse(&text).map_err(broken);
    }
    let header = Schedule::parse(text.lines().next().unwrap_or("")).map_err(broken)?.header;
    let mut lines = all_lines(exec_dir)?;
    lines.sort_unstable();
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

type EventKey = (String, i32, i64);
/// The actor that receives a message, and the message's id.
type MessageKey = (String, String);

/// How many times actors received messages again. What has no id is not told.
fn repeats(exec_dir: &Path) -> Result<FxHashMap<MessageKey, u32>, LineageError> {
    let mut counts = FxHashMap::default();
    let wanted = columns_of(&tables::execution_messages(), &["msg_id", "receive_actor", "status"]);
    for batch in Source::of_execution(&exec_dir.join(MESSAGES), &wanted)? {
        let batch = batch?;
        let (id, status) = (columns::text(&batch, "msg_id")?, columns::text(&batch, "status")?);
        let actor = columns::text(&batch, "receive_actor")?;
        for row in 0..batch.num_rows() {
            if let (Some("duplicate"), Some(actor), Some(id)) = (at(status, row), at(actor, row), at(id, row))
            {
                *counts.entry((actor.to_owned(), id.to_owned())).or_default() += 1;
            }
        }
    }
    Ok(counts)
}

/// How each received message was sent, where that is special and only its send says so.
fn sent_via(exec_dir: &Path) -> Result<FxHashMap<EventKey, Via>, LineageError> {
    let wanted = columns_of(&tables::execution_events(), &["actor", "incarnation", "seq", "via"]);
    let mut via = FxHashMap::default();
    for batch in Source::of_execution(&exec_dir.join(EVENTS), &wanted)? {
        let batch = batch?;
        let (actor, incarnation) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, how) = (columns::long(&batch, "seq")?, columns::text(&batch, "via")?);
        for row in 0..batch.num_rows() {
            if let Some(how) = at(how, row).and_then(Via::from_name) {
                via.insert((actor.value(row).to_owned(), incarnation.value(row), seq.value(row)), how);
            }
        }
    }
    let mut received = FxHashMap::default();
    let names = ["actor", "incarnation", "seq"].map(|n| (format!("send_{n}"), format!("receive_{n}")));
    let wanted: Vec<&str> = names.iter().flat_map(|(s, r)| [s.as_str(), r.as_str()]).collect();
    let wanted = columns_of(&tables::execution_messages(), &wanted);
    for batch in Source::of_execution(&exec_dir.join(MESSAGES), &wanted)? {
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

fn all_lines(exec_dir: &Path) -> Result<Vec<(u64, String)>, LineageError> {
    let via = sent_via(exec_dir)?;
    let mut repeated = repeats(exec_dir)?;
    let mut composer = Composer::default();
    let mut lines = Vec::new();
    let mut sink = |order: u64, _: bool, line: &[u8]| {
        lines.push((order, String::from_utf8_lossy(line).into_owned()));
        Ok(())
    };
    for batch in Source::of_execution(&exec_dir.join(EVENTS), &tables::execution_events())? {
        let batch = batch?;
        let (actor, incarnation) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, order) = (columns::long(&batch, "seq")?, columns::long(&batch, "order")?);
        let (kind, id) = (columns::text(&batch, "kind")?, columns::text(&batch, "msg_id")?);
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
            Placed { order: order.value(row) as u64, kept: true, sent_via: via.get(&key).copied(), again }
        };
        composer.add(&batch, placed, &mut sink)?;
    }
    composer.close(&mut sink)?;
    Ok(lines)
}

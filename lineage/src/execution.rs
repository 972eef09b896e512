//! The folder of an execution: how it appears, and how a schedule is read from it.

use std::path::{Path, PathBuf};

use demi_schemas::schedule::{ScheduleHeader, StepKind};
use demi_schemas::summary::BuildSummary;
use demi_schemas::{Schedule, Via, tables};
use rustc_hash::FxHashMap;

use crate::columns::{self, at};
use crate::error::LineageError;
use crate::source::{Source, columns_of};
use crate::steps::{Composer, Placed};

/// Name of the table of events in an execution's folder.
pub const EVENTS: &str = "events.parquet";
/// Name of the table of messages.
pub const MESSAGES: &str = "messages.parquet";
/// Name of the schedule of what was kept.
pub const SCHEDULE: &str = "schedule.jsonl";
/// Name of the summary.
pub const SUMMARY: &str = "summary.json";

/// A folder that takes the place of `out` when it is complete, and never before.
pub(crate) struct Folder {
    out: PathBuf,
    new: tempfile::TempDir,
}

impl Folder {
    /// Prepares to write `out`: absent, empty, or an execution written before.
    pub(crate) fn begin(out: &Path) -> Result<Folder, LineageError> {
        if !replaceable(out)? {
            return Err(LineageError::Foreign(out.to_owned()));
        }
        let parent = match out.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent).map_err(LineageError::io(parent))?;
        let new = tempfile::Builder::new().prefix(".demi-build-").tempdir_in(parent);
        Ok(Folder { out: out.to_owned(), new: new.map_err(LineageError::io(parent))? })
    }

    /// Where to write a file of the execution.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.new.path().join("execution").join(name)
    }

    /// The folder of the order index.
    pub(crate) fn index(&self) -> PathBuf {
        self.path(crate::index::INDEX_FOLDER)
    }

    /// The folder of what an execution is grown from.
    pub(crate) fn base(&self) -> PathBuf {
        self.path(crate::grow::BASE_FOLDER)
    }

    /// Where temporary files go.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.new.path().join("scratch")
    }

    /// Makes the folders.
    pub(crate) fn make(&self) -> Result<(), LineageError> {
        for path in [self.path(""), self.scratch(), self.index()] {
            std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
        }
        Ok(())
    }

    /// Puts the complete folder in its place.
    pub(crate) fn finish(self) -> Result<(), LineageError> {
        let out = &self.out;
        if out.exists() {
            let old = self.new.path().join("old");
            std::fs::rename(out, old).map_err(LineageError::io(out))?;
        }
        std::fs::rename(self.path(""), out).map_err(LineageError::io(out))
    }
}

fn replaceable(out: &Path) -> Result<bool, LineageError> {
    if !out.exists() {
        return Ok(true);
    }
    if !out.is_dir() {
        return Ok(false);
    }
    let mut entries = std::fs::read_dir(out).map_err(LineageError::io(out))?;
    Ok(entries.next().is_none() || load_summary(out).is_ok())
}

/// Reads the summary of an execution.
///
/// # Errors
/// When the file is missing or is no summary of a build.
pub fn load_summary(exec_dir: &Path) -> Result<BuildSummary, LineageError> {
    let path = exec_dir.join(SUMMARY);
    let text = std::fs::read(&path).map_err(LineageError::io(&path))?;
    serde_json::from_slice(&text).map_err(LineageError::table(&path))
}

/// Reads the schedule of an execution: what was kept (`schedule.jsonl`), or everything that was recorded, composed from
/// `events.parquet` and `messages.parquet`.
///
/// # Errors
/// When a file is missing or not what a build writes.
pub fn load_schedule(exec_dir: &Path, kept_only: bool) -> Result<Schedule, LineageError> {
    let path = exec_dir.join(SCHEDULE);
    let broken = |source| LineageError::Schedule { path: path.clone(), source };
    let text = std::fs::read_to_string(&path).map_err(LineageError::io(&path))?;
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

/// How each received message was sent, where that is special and only its send says so.
fn sent_via(exec_dir: &Path) -> Result<FxHashMap<EventKey, Via>, LineageError> {
    let wanted = columns_of(&tables::execution_events(), &["actor", "incarnation", "seq", "via"]);
    let mut via = FxHashMap::default();
    for batch in Source::open(&exec_dir.join(EVENTS), &wanted)? {
        let batch = batch?;
        let (actor, life) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, how) = (columns::long(&batch, "seq")?, columns::text(&batch, "via")?);
        for row in 0..batch.num_rows() {
            if let Some(how) = at(how, row).and_then(Via::from_name) {
                via.insert((actor.value(row).to_owned(), life.value(row), seq.value(row)), how);
            }
        }
    }
    let mut received = FxHashMap::default();
    let names = ["actor", "incarnation", "seq"].map(|n| (format!("send_{n}"), format!("receive_{n}")));
    let wanted: Vec<&str> = names.iter().flat_map(|(s, r)| [s.as_str(), r.as_str()]).collect();
    let wanted = columns_of(&tables::execution_messages(), &wanted);
    for batch in Source::open(&exec_dir.join(MESSAGES), &wanted)? {
        let batch = batch?;
        let key = |side: &str, row: usize| -> Result<Option<EventKey>, LineageError> {
            let actor = at(columns::text(&batch, &format!("{side}_actor"))?, row);
            let life = columns::int(&batch, &format!("{side}_incarnation"))?.value(row);
            let seq = columns::long(&batch, &format!("{side}_seq"))?.value(row);
            Ok(actor.map(|a| (a.to_owned(), life, seq)))
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
    let mut composer = Composer::default();
    let mut lines = Vec::new();
    let mut sink = |order: u64, _: bool, line: &[u8]| {
        lines.push((order, String::from_utf8_lossy(line).into_owned()));
        Ok(())
    };
    for batch in Source::open(&exec_dir.join(EVENTS), &tables::execution_events())? {
        let batch = batch?;
        let (actor, life) = (columns::text(&batch, "actor")?, columns::int(&batch, "incarnation")?);
        let (seq, order) = (columns::long(&batch, "seq")?, columns::long(&batch, "order")?);
        let placed = |row: usize| {
            let key = (actor.value(row).to_owned(), life.value(row), seq.value(row));
            Placed { order: order.value(row) as u64, kept: true, sent_via: via.get(&key).copied() }
        };
        composer.add(&batch, placed, &mut sink)?;
    }
    composer.close(&mut sink)?;
    Ok(lines)
}

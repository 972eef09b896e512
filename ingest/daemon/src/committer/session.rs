//! One stretch of committing, from opened tables to the end of the spool or the first failure.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use demi_schemas::summary::BackwardStamps;
use rustc_hash::FxHashMap;

use super::completeness::Completeness;
use super::parse::Chunk;
use super::progress::{application, source_application};
use super::system::System;
use super::{CommitError, Settings};
use crate::metrics::Metrics;
use crate::positions::Positions;
use crate::tasks::Tasks;
use demi_formats::Fate;
use demi_formats::read::block::ParsedLine;
use demi_formats::read::lines::Line;
use demi_formats::read::parse::Row;
use demi_formats::read::plain::PlainRow;
use demi_store::Store;
use demi_store::admit::{Admitted, Found, Rows, Slots};
use demi_store::noted_stamps::note_news;
use demi_store::writing::{Events, Quarantine, Writing};

/// Partitions written at the same time: each has an open file.
const MOST_PARTITIONS: usize = 16;
/// Rows that make a file that is worth its commit: it is not waited for more when nothing comes.
const LARGE: u64 = 64 * 1024;

/// Rows of the completeness that are many to write at once.
const MANY_ROWS: usize = 200_000;
/// Letters of an actor's name in the reason why it is refused.
const MOST_NAMED: usize = 100;
/// Incarnations of which something is noted after which a commit is made.
const MOST_NOTES: usize = 1 << 18;

/// What was taken since the last commit.
#[derive(Default)]
struct Window {
    rows: u64,
    bytes: u64,
    /// Lines, whatever became of them: nothing to commit without any.
    lines: u64,
    partitions: Vec<(usize, Option<i32>)>,
    /// Last frame of each source.
    sources: BTreeMap<String, u64>,
    since: Option<Instant>,
}

pub(super) struct Session<'a> {
    settings: &'a Settings,
    pub(super) metrics: &'a Metrics,
    tasks: &'a Tasks,
    store: Store,
    /// The tables of events and of quarantined lines.
    pub(super) writing: Writing,
    pub(super) completeness: Completeness,
    pub(super) systems: Vec<System>,
    numbers: FxHashMap<Arc<str>, usize>,
    rows: Rows,
    window: Window,
    /// What the completeness cost the last time, where that was much.
    costs: Duration,
    /// Last frame taken whole.
    pub(super) last: u64,
    pub positions: Positions,
}

impl<'a> Session<'a> {
    /// Opens the tables, finds how far they are, and reads what they hold of the systems.
    pub(super) fn open(
        settings: &'a Settings,
        metrics: &'a Metrics,
        tasks: &'a Tasks,
        mut positions: Positions,
    ) -> Result<(Self, u64), CommitError> {
        let store = Store::create_on(&settings.store, settings.files.clone())?;
        let dir = store.dir().to_owned();
        let name = application(settings.spool);
        let mut writing = Writing::begin(&store)?;
        let done = writing.events()?.progress(&name)?.unwrap_or(0);
        if positions.committed > done {
            let store = dir.display().to_string();
            return Err(CommitError::OtherStore { store, committed: done, released: positions.committed });
        }
        let own = store.identity()?;
        if let Some(other) = positions.other_store(&own) {
            tracing::warn!(
                store = %dir.display(),
                "the frames of the spool went to another store ({other}), which is not here: this is a new one. If that one was lost, stop the daemon and \
                 restore it: `ingest restore --instead`"
            );
        }
        positions.goes_to(own);
        let mut completeness = store.completeness_writer()?;
        // The completeness is committed before the events. If only it was, the one before counts.
        let mut ahead = completeness.progress(&name)?.unwrap_or(0) > done;
        let (is_ahead, mut files) = (ahead, completeness.files()?);
        let now = completeness.table.clone();
        while ahead && let Some(before) = completeness.table.version().and_then(|v| v.checked_sub(1)) {
            completeness
                .runtime()
                .clone()
                .block_on(completeness.table.load_version(before))
                .map_err(completeness.error("read the completeness"))?;
            files = completeness.files()?;
            ahead = completeness.progress(&name)?.unwrap_or(0) > done;
        }
        completeness.table = now;
        let completeness = Completeness::new(completeness, is_ahead, files)?;
        let mut session = Session {
            settings,
            metrics,
            tasks,
            store,
            writing,
            completeness,
            systems: Vec::new(),
            numbers: FxHashMap::default(),
            rows: Rows::default(),
            window: Window::default(),
            costs: Duration::ZERO,
            last: done,
            positions,
        };
        for name in &settings.systems {
            session.system(name)?;
        }
        session.gauges();
        metrics.took(Some(done), 0);
        Ok((session, done))
    }

    fn system(&mut self, name: &Arc<str>) -> Result<usize, CommitError> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let scratch: PathBuf = self.settings.scratch.clone();
        let mut system = System::open(&self.store, name, scratch)?;
        self.completeness.compare(&mut system)?;
        self.systems.push(system);
        self.numbers.insert(name.clone(), self.systems.len() - 1);
        Ok(self.systems.len() - 1)
    }

    /// Takes the rows of a chunk, and at the end of a frame its number and positions.
    pub(super) fn take(&mut self, chunk: &mut Chunk) -> Result<(), CommitError> {
        self.metrics.took(chunk.end.then_some(chunk.lsn), chunk.block.bytes().len());
        let mut entries = chunk.block.take_entries();
        if !entries.is_empty() {
            let system = self.system(&chunk.origin.system)?;
            let source = self.systems[system].known.seen.source(&chunk.stream);
            self.window.since.get_or_insert_with(Instant::now);
            self.window.lines += entries.len() as u64;
            let mut slots = Slots::of(&chunk.block);
            for entry in &mut entries {
                match entry {
                    ParsedLine::Plain(row, actor) => {
                        self.window.bytes += u64::from(row.length);
                        self.plain(chunk, row, (*actor, &mut slots), (system, source))?;
                    }
                    ParsedLine::Other { line, raw, fate } => {
                        self.window.bytes += raw.len() as u64;
                        self.line(chunk, (line, raw.clone()), fate, (system, source))?;
                    }
                }
            }
        }
        if chunk.end {
            self.last = self.last.max(chunk.lsn);
            self.positions.apply(chunk.lsn, &chunk.origin.source, &chunk.positions);
            let source = chunk.origin.source.to_string();
            self.window.sources.insert(source, chunk.lsn);
        }
        Ok(())
    }

    fn plain(
        &mut self,
        chunk: &Chunk,
        row: &PlainRow,
        (actor, slots): (u32, &mut Slots),
        (system, source): (usize, u32),
    ) -> Result<(), CommitError> {
        let texts = chunk.block.texts();
        let name = texts.get(row.actor).unwrap_or_default();
        if slots.get(actor, row.incarnation).is_none()
            && let Some(mut why) = self.one_too_many(chunk, system, (name, row.incarnation))
        {
            let start = row.start as usize;
            let length = u64::from(row.length);
            let line = Line { length, ..Line::empty(row.offset, row.number) };
            let raw = start..start + row.length as usize;
            return self.line(chunk, (&line, raw), &mut why, (system, source));
        }
        let slot = slots.find(&mut self.systems[system].known.seen, actor, (name, row.incarnation));
        let state = &mut self.systems[system];
        let (rows, quarantine) = (&mut self.rows, self.writing.quarantine());
        let source = (&*chunk.stream, source);
        match state.known.admit_plain(source, slot, row, texts, rows, quarantine)? {
            Admitted::Duplicate | Admitted::Deleted => state.counts.duplicates += 1,
            Admitted::Added => {
                if let Some(stamp) = &row.stamp {
                    state.stamps.take_stamp(
                        (name, row.incarnation, row.seq),
                        **stamp,
                        &chunk.stream,
                        row.number,
                    );
                }
                state.added_plain(row, texts);
                self.added(system, row.date)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes note of a new row of a day.
    fn added(&mut self, system: usize, date: Option<i32>) -> Result<(), CommitError> {
        self.window.rows += 1;
        if !self.window.partitions.contains(&(system, date)) {
            self.window.partitions.push((system, date));
        }
        if self.rows.are_full() { self.flush() } else { Ok(()) }
    }

    fn line(
        &mut self,
        chunk: &Chunk,
        (line, raw): (&Line, Range<usize>),
        fate: &mut Fate<Row>,
        (system, source): (usize, u32),
    ) -> Result<(), CommitError> {
        if let Fate::Row(Row { record, .. }) = &*fate
            && let Some(why) = self.one_too_many(chunk, system, (&record.actor, record.incarnation))
        {
            *fate = why;
        }
        let found = Found::new(&chunk.stream, source, line, chunk.block.bytes(), raw);
        let state = &mut self.systems[system];
        let admitted = state.known.admit(&found, fate, &mut self.rows, self.writing.quarantine())?;
        match (admitted, fate) {
            (Admitted::Duplicate | Admitted::Deleted, _) => state.counts.duplicates += 1,
            (Admitted::Added, Fate::Row(Row { record, date, .. })) => {
                state.stamps.take(record, &chunk.stream, line.number);
                state.added(record);
                self.added(system, *date)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), CommitError> {
        if let Some(batch) = self.rows.take()? {
            let tasks = self.tasks.clone();
            self.writing.write(batch, move || tasks.may_break("events"))?;
        }
        Ok(())
    }

    /// How long until what was taken must be committed; `None` if nothing was.
    pub(super) fn due_in(&self) -> Option<Duration> {
        let window = &self.window;
        let since = window.since?;
        if window.rows >= self.settings.seal_rows
            || window.bytes >= self.settings.reserve.most_bytes(self.settings.seal_bytes)
            || window.partitions.len() > MOST_PARTITIONS
            || self.systems.iter().map(|system| system.known.seen.notes()).sum::<usize>() >= MOST_NOTES
        {
            return Some(Duration::ZERO);
        }
        Some(self.settings.seal_after.max(4 * self.costs).saturating_sub(since.elapsed()))
    }

    /// Whether what was taken is worth a commit before it must be made.
    pub(super) fn is_large(&self) -> bool {
        self.window.rows >= LARGE
    }

    /// The frame up to which everything is in the store, if nothing waits.
    pub(super) fn settled(&self) -> Option<u64> {
        (self.window.lines == 0).then_some(self.last)
    }

    /// Commits what was taken, in [the order of all commits](demi_store::writing). After a crash in between, the same frames are
    /// read again, and of the completeness the version before counts.
    pub(super) fn commit(&mut self) -> Result<(), CommitError> {
        if self.window.lines == 0 {
            return Ok(());
        }
        let begin = Instant::now();
        let window = std::mem::take(&mut self.window);
        self.flush()?;
        for system in &mut self.systems {
            system.known.quarantine.flush(self.writing.quarantine())?;
        }
        let spool = self.settings.spool;
        let all = (application(spool), self.last);
        let changed: Vec<Vec<u32>> = self.systems.iter().map(|system| system.known.seen.changes()).collect();
        let mut progress = vec![all.clone()];
        progress.extend(window.sources.into_iter().map(|(s, lsn)| (source_application(spool, &s), lsn)));
        let (systems, table, costs) = (&self.systems, &mut self.completeness, &mut self.costs);
        self.writing.commit(
            Quarantine::Added(std::slice::from_ref(&all)),
            || {
                *costs = write_completeness(table, systems, &changed, &all)?;
                Ok::<_, CommitError>(())
            },
            (Events::Always, &progress),
        )?;
        self.completeness.is_ahead = false;
        for (system, changed) in self.systems.iter_mut().zip(changed) {
            changed.into_iter().for_each(|slot| system.measure(slot));
            system.known.seen.settle();
        }
        self.positions.committed = self.last;
        self.backwards();
        self.count(begin);
        self.gauges();
        Ok(())
    }

    /// Names the actors whose stamps ran backwards since the last commit, and notes it beside the store, as a load does. The events are committed: what
    /// cannot be noted is told alone.
    fn backwards(&mut self) {
        for state in &mut self.systems {
            let (found, events) = state.stamps.news();
            if events == 0 {
                continue;
            }
            let system = state.known.system.as_str();
            state.counts.backward_stamps += events;
            for BackwardStamps { actor, incarnation, events, most, source, line, time, before } in &found {
                tracing::warn!(
                    system,
                    actor,
                    incarnation,
                    events,
                    most,
                    source,
                    line,
                    time,
                    before,
                    "the stamps of an actor run backwards through its log"
                );
            }
            if let Err(error) = note_news(&self.store, system, &found) {
                tracing::warn!(%error, system, "cannot note whose stamps run backwards");
            }
        }
    }

    /// What becomes of a record of an actor that is one too many for its source; nothing if it is not.
    fn one_too_many(
        &self,
        chunk: &Chunk,
        system: usize,
        (actor, incarnation): (&str, u32),
    ) -> Option<Fate<Row>> {
        let seen = &self.systems[system].known.seen;
        let (source, system) = (&chunk.origin.source, &chunk.origin.system);
        let most = self.settings.most_actors.of(source);
        if seen.weight() < most || chunk.origin.is_daemon() || seen.knows(actor, incarnation) {
            return None;
        }
        let name: String = actor.chars().take(MOST_NAMED).collect();
        let of = if incarnation > 0 { format!(" (incarnation {incarnation})") } else { String::new() };
        let reason = format!(
            "actor '{name}'{of} is one too many: source '{source}' brings new ones only while system '{system}' has fewer than {most} (actors)"
        );
        Some(Fate::rejected("too_many_actors", reason))
    }
}

/// Commits what changed of the completeness: by system, of which incarnations. How long it took, where that was much.
fn write_completeness(
    table: &mut Completeness,
    systems: &[System],
    changed: &[Vec<u32>],
    progress: &(String, u64),
) -> Result<Duration, CommitError> {
    let begin = Instant::now();
    let mut changes: Vec<(&System, &[u32])> = systems.iter().zip(changed.iter().map(Vec::as_slice)).collect();
    changes.sort_by(|a, b| a.0.known.system.cmp(&b.0.known.system));
    table.commit(&changes, std::slice::from_ref(progress))?;
    // Where many actors come at once this takes its time: commits are fewer then.
    Ok(if table.written() >= MANY_ROWS { begin.elapsed() } else { Duration::ZERO })
}

//! Windows of a system: the events between two consistent cuts, found by passes over few columns, so that what lies outside is never held.
//!
//! A time cuts each log by its own clock. Such a cut need not be consistent: where clocks differ, a message can be received before it and sent after
//! it. It is lowered to the largest consistent cut at or before it (F. Mattern, "Virtual Time and Global States of Distributed Systems", 1989,
//! section 5): a receive inside whose send is outside goes out, with what follows it in its log, until there is none. Memory is linear in the
//! events of the window, whatever the system has; where more ids lie outside a cut than are held at a time, they are taken in parts.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use demi_common::sealed::SealedFile;
use demi_schemas::event::ENVIRONMENT;
use demi_schemas::summary::{Beginning, WindowSummary};
use demi_schemas::{EventId, Kind, Via};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::LineageError;
use crate::execution::writer;
use crate::query::instant;
use crate::read::intern::Interner;
use crate::read::source::{always_null, batches, columns_of};
use crate::read::{
    BATCH_ROWS, IdHash, RowRanges, any_value, beside, chosen_batches, columns, record_schema, runs,
};

/// Ids that are held at a time.
const HELD: usize = 1 << 24;
/// Events of a window around an event, where no number is given.
const AROUND: u64 = 1_000_000;

/// The events of a system that are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// What happened at this time or later.
    pub since: Option<String>,
    /// What happened at this time or earlier.
    pub until: Option<String>,
    /// So many events: the last ones, or the nearest to `around`.
    pub last: Option<u64>,
    /// As many events before this one as after it: the first of these names that there is.
    pub around: Vec<EventId>,
}

impl Window {
    /// Whether all events are asked for.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Window::default()
    }

    /// What was asked for, for people.
    fn in_words(&self) -> String {
        let parts = [
            self.last.map(|n| format!("last {n}")),
            self.around.first().map(|event| format!("around {event}")),
            self.since.as_ref().map(|time| format!("since {time}")),
            self.until.as_ref().map(|time| format!("until {time}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The events of a window, in a file of their own.
#[derive(Clone, Debug)]
pub struct Windowed {
    /// The file, in the columns of the store.
    pub file: SealedFile,
    /// What the window is.
    pub summary: WindowSummary,
}

/// Writes the events of a window to a file in the folder `dir`, with the sends of the messages that were on their way at its beginning and the last
/// state that each actor told before it. `progress` is told what is being done.
///
/// # Errors
/// When a file cannot be read or written; when a time cannot be read, no event lies in the window, or the event that it is around does not; when not
/// every message of the window has an id, or vector clocks or spans order it: then more than the ids of messages is needed to find a consistent cut.
pub fn cut(
    files: &[SealedFile],
    system: &str,
    window: &Window,
    dir: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Windowed, LineageError> {
    let mut log = Log::new(files)?;
    progress("looking for the window");
    let limits = Limits::of(window, &mut log)?;
    let mut end = Cut::default();
    if let Some(until) = limits.until {
        end = log.cut(|time| time > until)?;
        progress("lowering its end to a consistent cut");
        log.lower(&mut end, &Cut::default())?;
        if let Some(around) = &limits.around {
            log.raise(&mut end, around)?;
        }
    }
    let mut begin = Cut::nothing();
    if let Some(since) = limits.since {
        begin = log.cut(|time| time >= since)?;
        progress("lowering its beginning to a consistent cut");
        log.lower(&mut begin, &end)?;
    }
    progress("reading the window");
    let chosen = log.choose(&limits, &begin, &end)?;
    if chosen.events == 0 {
        let why = format!("no event of system '{system}' lies in the window ({})", window.in_words());
        return Err(LineageError::Question(why));
    }
    if let Some(around) = &limits.around
        && !chosen.around
    {
        return Err(LineageError::Question(format!(
            "{around} was received before the window begins; a larger one holds it (--last)"
        )));
    }
    let file = write(files, chosen.rows, &dir.join("window.parquet"))?;
    let begins = match (chosen.before, chosen.in_flight) {
        (0, _) => Beginning::Start,
        (_, 0) => Beginning::Ground,
        _ => Beginning::Cut,
    };
    let summary = WindowSummary {
        asked: window.in_words(),
        begins,
        before: chosen.before,
        after: chosen.after,
        in_flight: chosen.in_flight,
        states: chosen.states,
        untimed: log.untimed,
        // No model begins at a state that was recorded.
        replayable: begins == Beginning::Start,
    };
    Ok(Windowed { file, summary })
}

/// The times between which events lie that are asked for, both included.
#[derive(Debug)]
struct Limits {
    since: Option<i64>,
    until: Option<i64>,
    around: Option<EventId>,
}

impl Limits {
    fn of(window: &Window, log: &mut Log<'_>) -> Result<Limits, LineageError> {
        let read = |time: &Option<String>| match time {
            None => Ok(None),
            Some(text) => instant(text).map(Some).ok_or_else(|| {
                LineageError::Question(format!(
                    "'{text}' is no time: expected one such as 2026-01-31T10:00:00Z, or seconds since 1970"
                ))
            }),
        };
        let mut limits = Limits { since: read(&window.since)?, until: read(&window.until)?, around: None };
        if let (Some(since), Some(until)) = (limits.since, limits.until)
            && since > until
        {
            return Err(LineageError::Question("the window ends before it begins".to_owned()));
        }
        if !window.around.is_empty() {
            let (around, time) = log.time_of(&window.around)?;
            limits.around = Some(around);
            let many = window.last.unwrap_or(AROUND).max(2);
            let (mut before, mut after) = (Greatest::new(many / 2), Greatest::new(many - many / 2));
            log.each_time(|_, now| if now <= time { before.add(now) } else { after.add(-now) })?;
            (limits.since, limits.until) = (before.least(), after.least().map(|now| -now).or(Some(time)));
            // Where fewer are there than asked for, all are taken.
            limits.since = limits.since.filter(|_| before.is_full());
            limits.until = limits.until.filter(|_| after.is_full());
        } else if let Some(last) = window.last {
            let mut greatest = Greatest::new(last.max(1));
            let until = limits.until.unwrap_or(i64::MAX);
            log.each_time(|_, now| {
                if now <= until {
                    greatest.add(now)
                }
            })?;
            limits.since = greatest.least().filter(|_| greatest.is_full());
        }
        Ok(limits)
    }
}

/// The greatest of many numbers.
struct Greatest {
    many: usize,
    numbers: Vec<i64>,
}

impl Greatest {
    fn new(many: u64) -> Greatest {
        Greatest { many: usize::try_from(many).unwrap_or(usize::MAX), numbers: Vec::new() }
    }

    fn add(&mut self, number: i64) {
        self.numbers.push(number);
        if self.numbers.len() >= self.many.saturating_mul(2).max(1024) {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.numbers.len() > self.many {
            self.numbers.select_nth_unstable_by(self.many - 1, |a, b| b.cmp(a));
            self.numbers.truncate(self.many);
        }
    }

    /// Whether there were as many as are wanted.
    fn is_full(&self) -> bool {
        self.numbers.len() >= self.many
    }

    /// The least of the greatest.
    fn least(&mut self) -> Option<i64> {
        self.shrink();
        self.numbers.iter().min().copied()
    }
}

/// Incarnation and sequence number of an event in its log.
type Place = (u32, u64);

/// A cut of all logs: the first place of each that is outside.
#[derive(Clone, Debug, Default)]
struct Cut {
    /// By actor; nothing where all of its log is inside, as it is for actors beyond the end.
    outside: Vec<Option<Place>>,
    /// Whether nothing is inside.
    empty: bool,
}

impl Cut {
    fn nothing() -> Cut {
        Cut { empty: true, ..Cut::default() }
    }

    fn holds(&self, actor: u32, place: Place) -> bool {
        let outside = self.outside.get(actor as usize).copied().flatten();
        !self.empty && outside.is_none_or(|outside| place < outside)
    }

    /// Takes an event and what is before it in its log in.
    fn raise(&mut self, actor: u32, (incarnation, seq): Place) {
        if let Some(Some(outside)) = self.outside.get_mut(actor as usize) {
            *outside = (*outside).max((incarnation, seq.saturating_add(1)));
        }
    }

    fn lower(&mut self, actor: u32, place: Place) {
        let actor = actor as usize;
        if self.outside.len() <= actor {
            self.outside.resize(actor + 1, None);
        }
        let outside = &mut self.outside[actor];
        *outside = Some(outside.map_or(place, |known| known.min(place)));
    }
}

/// What a pass sees of a record.
struct Record {
    actor: u32,
    place: Place,
    kind: Kind,
    id: Option<IdHash>,
    /// Whether it is outside the order of its log: what the environment did, and sends of threads.
    alone: bool,
    time: Option<i64>,
    external: bool,
}

impl Record {
    fn is_cause(&self) -> bool {
        matches!(self.kind, Kind::Send | Kind::TimerSet)
    }
}

/// Which columns a pass reads.
#[derive(Clone, Copy)]
struct Columns {
    times: bool,
    messages: bool,
}

/// The rows of a window.
#[derive(Default)]
struct Chosen {
    rows: Vec<RowRanges>,
    events: u64,
    before: u64,
    after: u64,
    in_flight: u64,
    states: u64,
    around: bool,
}

/// The records of all files.
struct Log<'a> {
    files: &'a [SealedFile],
    actors: Interner,
    environment: u32,
    /// Events without a time that can be read, once times were looked at.
    untimed: u64,
    /// Ids that are held at a time.
    held: usize,
}

impl<'a> Log<'a> {
    fn new(files: &'a [SealedFile]) -> Result<Log<'a>, LineageError> {
        if any_value(files, "vector_clock", |_| true)? {
            return Err(unfit("events have vector clocks"));
        }
        if any_value(files, "attrs", |text| text.contains("\"span_id\""))? {
            return Err(unfit("events are of spans"));
        }
        let mut actors = Interner::default();
        let environment = actors.intern(ENVIRONMENT);
        Ok(Log { files, actors, environment, untimed: 0, held: HELD })
    }

    /// Calls `f` with each record, its file and its row.
    fn each(&mut self, what: Columns, f: &mut dyn FnMut(usize, u32, &Record)) -> Result<(), LineageError> {
        let mut names = vec!["actor", "incarnation", "seq"];
        names.extend(what.times.then_some("time"));
        names.extend(if what.messages { &["kind", "msg_id", "via", "external"][..] } else { &[] });
        let wanted = columns_of(&record_schema(), &names);
        let (mut open, mut row) = (None, 0);
        for batch in batches(self.files, &wanted, BATCH_ROWS) {
            let (file, batch) = batch?;
            if open != Some(file) {
                (open, row) = (Some(file), 0);
            }
            self.of_batch(&batch, what, &mut |record| {
                f(file, row, record);
                row += 1;
            })
            .map_err(|error| match error {
                LineageError::Arrow(e) => LineageError::table(self.files[file].path())(e),
                other => other,
            })?;
        }
        Ok(())
    }

    fn of_batch(
        &mut self,
        batch: &RecordBatch,
        what: Columns,
        f: &mut dyn FnMut(&Record),
    ) -> Result<(), LineageError> {
        let actor = columns::text(batch, "actor")?;
        let incarnation = columns::int(batch, "incarnation")?;
        let seq = columns::long(batch, "seq")?;
        let time = what.times.then(|| columns::text(batch, "time")).transpose()?;
        let message = match what.messages {
            true => Some((
                columns::text(batch, "kind")?,
                columns::text(batch, "msg_id")?,
                columns::text(batch, "via")?,
                columns::flag(batch, "external")?,
            )),
            false => None,
        };
        let mut last: Option<(&str, u32)> = None;
        for row in 0..batch.num_rows() {
            let name = actor.value(row);
            let number = match last {
                Some((known, number)) if known == name => number,
                _ => self.actors.intern(name),
            };
            last = Some((name, number));
            let place = (
                u32::try_from(incarnation.value(row)).unwrap_or(0),
                u64::try_from(seq.value(row)).unwrap_or(0),
            );
            let mut record = Record {
                actor: number,
                place,
                kind: Kind::Local,
                id: None,
                alone: number == self.environment,
                time: time.and_then(|time| columns::at(time, row)).and_then(instant),
                external: false,
            };
            if let Some((kind, id, via, external)) = &message {
                record.kind = Kind::from_name(kind.value(row)).unwrap_or(Kind::Local);
                record.id = columns::at(id, row).map(IdHash::of);
                record.external = external.is_valid(row) && external.value(row);
                let thread = columns::at(via, row).and_then(Via::from_name) == Some(Via::Thread);
                record.alone |= record.is_cause() && thread;
            }
            f(&record);
        }
        Ok(())
    }

    /// Calls `f` with each event that has a time. That there is none is an error.
    fn each_time(&mut self, mut f: impl FnMut(&Record, i64)) -> Result<(), LineageError> {
        let (mut timed, mut untimed) = (0, 0);
        self.each(Columns { times: true, messages: false }, &mut |_, _, record| match record.time {
            Some(time) => {
                timed += 1;
                f(record, time);
            }
            None => untimed += 1,
        })?;
        self.untimed = untimed;
        if timed == 0 {
            return Err(LineageError::Question(
                "no event has a time that can be read, so that nothing says which of them the window holds"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// The first of these events that there is, and its time or that of the last one before it in its log that has one.
    fn time_of(&mut self, readings: &[EventId]) -> Result<(EventId, i64), LineageError> {
        let wanted: Vec<(u32, Place)> = readings
            .iter()
            .map(|event| (self.actors.intern(&event.actor), (event.incarnation, event.seq)))
            .collect();
        let mut known = vec![(false, None); wanted.len()];
        self.each(Columns { times: true, messages: false }, &mut |_, _, record| {
            for ((actor, place), (known, best)) in wanted.iter().zip(&mut known) {
                if record.actor == *actor && record.place <= *place {
                    *known |= record.place == *place;
                    *best = (*best).max(record.time.map(|time| (record.place, time)));
                }
            }
        })?;
        let found = readings.iter().zip(known).find(|(_, (known, _))| *known);
        match found {
            Some((event, (_, Some((_, time))))) => Ok((event.clone(), time)),
            Some((event, _)) => Err(LineageError::Question(format!(
                "{event} has no time, and nothing before it in its log has one"
            ))),
            None => {
                let name = readings.last().map_or_else(String::new, ToString::to_string);
                Err(LineageError::Question(format!("there is no event {name}")))
            }
        }
    }

    /// The cut before all events that are `later` by their own clocks. Of a log the first one that is later has all the others after it.
    fn cut(&mut self, later: impl Fn(i64) -> bool) -> Result<Cut, LineageError> {
        let mut cut = Cut::default();
        self.each_time(|record, time| {
            if !record.alone && later(time) {
                cut.lower(record.actor, record.place);
            }
        })?;
        Ok(cut)
    }

    /// Lowers a cut to the largest consistent one inside it. Everything is inside `all`, which is consistent.
    fn lower(&mut self, cut: &mut Cut, all: &Cut) -> Result<(), LineageError> {
        let (messages, held) = (Columns { times: false, messages: true }, self.held);
        loop {
            let (mut parts, mut part, mut lowered) = (1_u64, 0, false);
            while part < parts {
                // What was sent outside, or what of that is held at a time.
                let mut sent: FxHashSet<IdHash> = FxHashSet::default();
                self.each(messages, &mut |_, _, record| {
                    let outside =
                        all.holds(record.actor, record.place) && !cut.holds(record.actor, record.place);
                    let Some(id) = record.id.filter(|_| record.is_cause() && !record.alone && outside) else {
                        return;
                    };
                    if id.short() % parts == part {
                        sent.insert(id);
                    }
                    while part == 0 && sent.len() > held {
                        parts *= 2;
                        sent.retain(|id| id.short() % parts == 0);
                    }
                })?;
                self.each(messages, &mut |_, _, record| {
                    let received = record.kind.is_delivery() && !record.alone;
                    if received
                        && cut.holds(record.actor, record.place)
                        && record.id.is_some_and(|id| sent.contains(&id))
                    {
                        cut.lower(record.actor, record.place);
                        lowered = true;
                    }
                })?;
                part += 1;
            }
            if !lowered {
                return Ok(());
            }
        }
    }

    /// Raises a consistent cut to the smallest one that holds an event too: what was received in it was sent in it.
    fn raise(&mut self, cut: &mut Cut, event: &EventId) -> Result<(), LineageError> {
        let actor = self.actors.intern(&event.actor);
        if actor == self.environment {
            return Ok(());
        }
        let mut before = cut.clone();
        cut.raise(actor, (event.incarnation, event.seq));
        let messages = Columns { times: false, messages: true };
        while before.outside != cut.outside {
            let mut received: FxHashSet<IdHash> = FxHashSet::default();
            self.each(messages, &mut |_, _, record| {
                let added =
                    cut.holds(record.actor, record.place) && !before.holds(record.actor, record.place);
                received.extend(record.id.filter(|_| added && record.kind.is_delivery()));
            })?;
            before.outside.clone_from(&cut.outside);
            self.each(messages, &mut |_, _, record| {
                let sent = record.is_cause() && !record.alone;
                if sent && record.id.is_some_and(|id| received.contains(&id)) {
                    cut.raise(record.actor, record.place);
                }
            })?;
        }
        Ok(())
    }

    /// The rows of what lies between two consistent cuts, and of what is brought along.
    fn choose(&mut self, limits: &Limits, begin: &Cut, end: &Cut) -> Result<Chosen, LineageError> {
        let inside = |record: &Record| {
            end.holds(record.actor, record.place) && !begin.holds(record.actor, record.place)
        };
        let timely = |time: Option<i64>| match time {
            Some(time) => {
                limits.since.is_none_or(|since| time >= since)
                    && limits.until.is_none_or(|until| time <= until)
            }
            // Nothing says that it was before.
            None => begin.empty,
        };
        let (mut received, mut from_outside) = (FxHashSet::default(), FxHashSet::default());
        let mut unnamed = [0_u64; 2];
        self.each(Columns { times: true, messages: true }, &mut |_, _, record| match record.id {
            Some(id) if record.alone && record.is_cause() && timely(record.time) => {
                from_outside.insert(id);
            }
            _ if record.alone || !inside(record) => {}
            Some(id) if record.kind.is_delivery() => {
                received.insert(id);
            }
            None if record.kind == Kind::Send => unnamed[0] += 1,
            None if record.kind == Kind::Receive && !record.external => unnamed[1] += 1,
            _ => {}
        })?;
        if unnamed.iter().all(|&many| many > 0) {
            return Err(unfit(&format!("{} sends and {} receives have no msg_id", unnamed[0], unnamed[1])));
        }
        // What was received before the beginning was sent before it, whatever the clock of the environment says.
        let mut earlier = FxHashSet::default();
        if !(begin.empty || from_outside.is_empty() && received.is_empty()) {
            self.each(Columns { times: false, messages: true }, &mut |_, _, record| {
                let Some(id) = record.id.filter(|_| record.kind.is_delivery() && !record.alone) else {
                    return;
                };
                if begin.holds(record.actor, record.place)
                    && (from_outside.contains(&id) || received.contains(&id))
                {
                    earlier.insert(id);
                }
            })?;
        }
        drop(from_outside);
        let around = limits
            .around
            .as_ref()
            .map(|event| (self.actors.intern(&event.actor), (event.incarnation, event.seq)));
        let mut rows: Vec<Vec<Range<u32>>> = vec![Vec::new(); self.files.len()];
        let mut take = |file: usize, row: u32| match rows[file].last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => rows[file].push(row..row + 1),
        };
        let mut chosen = Chosen::default();
        self.each(Columns { times: true, messages: true }, &mut |file, row, record| {
            let cause = record.id.filter(|_| record.is_cause());
            let wanted = cause.is_some_and(|id| received.contains(&id));
            // What is outside the order of its log is where its time says, if no message says more.
            let (before, here) = match record.alone {
                true if cause.is_some_and(|id| earlier.contains(&id)) => (true, false),
                true => {
                    let long_ago = record.time.zip(limits.since).is_some_and(|(time, since)| time < since);
                    (long_ago, wanted || timely(record.time))
                }
                false => (begin.holds(record.actor, record.place), inside(record)),
            };
            if here {
                chosen.events += 1;
                chosen.around |= around == Some((record.actor, record.place));
                take(file, row);
            } else if before {
                chosen.before += 1;
                if wanted {
                    chosen.in_flight += 1;
                    take(file, row);
                }
            } else {
                chosen.after += 1;
            }
        })?;
        chosen.rows = rows.into_iter().map(Some).collect();
        if chosen.before > 0 {
            self.add_states(begin, &mut chosen)?;
        }
        Ok(chosen)
    }

    /// Adds the last record before the beginning in which each actor tells its state.
    fn add_states(&mut self, begin: &Cut, chosen: &mut Chosen) -> Result<(), LineageError> {
        let wanted = columns_of(&record_schema(), &["actor", "incarnation", "seq", "state"]);
        let state = columns_of(&record_schema(), &["state"]);
        if always_null(self.files, &state)? == [true] {
            return Ok(());
        }
        let mut last: FxHashMap<u32, (Place, usize, u32)> = FxHashMap::default();
        let (mut open, mut first) = (None, 0);
        for batch in batches(self.files, &wanted, BATCH_ROWS) {
            let (file, batch) = batch?;
            if open != Some(file) {
                (open, first) = (Some(file), 0);
            }
            let told = columns::text(&batch, "state")?;
            let mut row = 0;
            self.of_batch(&batch, Columns { times: false, messages: false }, &mut |record| {
                if told.is_valid(row) && !record.alone && begin.holds(record.actor, record.place) {
                    let here = (record.place, file, first + row as u32);
                    last.entry(record.actor).and_modify(|known| *known = here.max(*known)).or_insert(here);
                }
                row += 1;
            })?;
            first += row as u32;
        }
        for (_, file, row) in last.into_values() {
            let Some(Some(ranges)) = chosen.rows.get_mut(file) else { continue };
            chosen.states += 1;
            let at = ranges.partition_point(|range| range.end <= row);
            if ranges.get(at).is_none_or(|range| row < range.start) {
                ranges.insert(at, row..row + 1);
            }
        }
        for ranges in chosen.rows.iter_mut().flatten() {
            *ranges = runs(std::mem::take(ranges).into_iter().flatten());
        }
        Ok(())
    }
}

fn unfit(what: &str) -> LineageError {
    LineageError::Question(format!(
        "a window begins and ends at consistent cuts, which the ids of messages tell; here {what}: build all of it, without a window"
    ))
}

/// Writes these rows of the files to a file of their own.
fn write(files: &[SealedFile], rows: Vec<RowRanges>, path: &Path) -> Result<SealedFile, LineageError> {
    let schema = writer::versioned(&with_digest());
    let mut table = writer::table(path, &schema, &["msg_id", "seq", "offset", "digest"])?;
    let sources = files.iter().cloned().zip(rows).collect();
    for batch in chosen_batches(sources, &schema, BATCH_ROWS) {
        table.write(&batch?.1).map_err(LineageError::table(path))?;
    }
    writer::close(table, path)?;
    beside(path)
}

/// The columns of a record, and the digest where the store keeps one.
fn with_digest() -> SchemaRef {
    let mut fields = record_schema().fields().to_vec();
    fields.push(Arc::new(Field::new("digest", DataType::Int64, true)));
    Arc::new(Schema::new(fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::write_store_file;
    use demi_schemas::EventRecord;

    #[test]
    fn ids_are_taken_in_parts_where_there_are_many() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.parquet");
        let mut lines = Vec::new();
        // Each message is received before the cut, and sent after it.
        for message in 0..50 {
            let (send, receive) = (1_700_000_100 + message, 1_700_000_050 - message);
            lines.push(format!(
                r#"{{"actor":"a","seq":{},"kind":"send","from":"a","to":"b{message}","msg_id":"{message}","time":"{send}"}}"#,
                message + 1
            ));
            lines.push(format!(
                r#"{{"actor":"b{message}","seq":1,"kind":"receive","from":"a","to":"b{message}","msg_id":"{message}","time":"{receive}"}}"#
            ));
        }
        write_store_file(&path, lines.iter().map(|line| EventRecord::parse(line.as_bytes()).unwrap()))
            .unwrap();
        let files = [path.into()];
        let lowered = |held: usize| {
            let mut log = Log { held, ..Log::new(&files).unwrap() };
            let mut cut = log.cut(|time| time >= 1_700_000_120_000_000_000).unwrap();
            log.lower(&mut cut, &Cut::default()).unwrap();
            cut.outside.iter().flatten().count()
        };
        assert_eq!(
            (lowered(HELD), lowered(3)),
            (31, 31),
            "the receivers of thirty messages and their sender"
        );
    }
}

//! Reading the store's files into compact columns, in each actor's order.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::{Array, RecordBatch};
use demi_common::sealed::SealedFile;
use demi_schemas::event::{COUNTED_AFTER_LOSS_ID, COUNTED_ID, EARLIEST_ID};
use demi_schemas::{Kind, Via};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::columns;
use super::contents::{contents_of, each_chosen};
use super::events::{COUNTED, EARLIEST, EXTERNAL, Events, HAS_ID, INTERNAL, IdHash, NameRuns, via_bits};
use super::intern::{Interner, NONE};
use super::parents::{self, Logs, SpanEdge, SpanOrder, Spans, TraceIds};
use super::placement::Placement;
use super::sorted;
use super::source::{BATCH_ROWS, batches, columns_of, record_schema};
use crate::error::LineageError;

/// The columns that matching, order and provenance need.
pub(super) const NEEDED: [&str; 7] = ["kind", "msg_id", "from", "to", "via", "external", "vector_clock"];
/// The columns that name an event.
pub(super) const KEYS: [&str; 3] = ["actor", "incarnation", "seq"];
/// Those that decide between rows of one name besides.
const DECIDING: [&str; 3] = ["type", "payload", "fingerprint"];

/// The events, and where each row of the files went.
pub(crate) struct Loaded {
    /// The events.
    pub(crate) events: Events,
    /// Where each row of the files went.
    pub(crate) placement: Placement,
    /// Whether any event has a vector clock.
    pub(crate) clocked: bool,
    /// Whether any event is of a span.
    pub(crate) has_spans: bool,
    /// What spans of different logs tell of their order.
    pub(crate) spans: Vec<SpanEdge>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// Reads all files; rows may come in any order.
///
/// Once where the files say that their rows are in order. Else twice: the names of events first, which say where each row goes; then the rest, each row to its place. Nothing is held
/// twice, and names are held as runs.
pub(crate) fn read(files: &[SealedFile], system: &str) -> Result<Loaded, LineageError> {
    if let Some(mut loaded) = sorted::read(files)? {
        read_violations(files, &mut loaded)?;
        return Ok(loaded);
    }
    let mut keys = Keys::default();
    let mut file_rows = Vec::with_capacity(files.len());
    let wanted = columns_of(&record_schema(), &KEYS);
    for batch in batches(files, &wanted, BATCH_ROWS) {
        let (file, batch) = batch?;
        file_rows.resize(file + 1, keys.actor.len() as u32);
        keys.add(&batch).map_err(in_file(files[file].path()))?;
        if keys.actor.len() >= NONE as usize {
            return Err(LineageError::TooMany(keys.actor.len() as u64));
        }
    }
    // Files without rows at the end.
    file_rows.resize(files.len(), keys.actor.len() as u32);
    if keys.actor.is_empty() {
        return Err(LineageError::Empty(system.to_owned()));
    }
    let spans = parents::read(files, &keys.seq)?;
    let PlacedEvents { mut loaded, repeated, traces, requests } = keys.place(file_rows, spans);
    let deciding: &[&str] = if repeated.is_empty() { &[] } else { &DECIDING };
    let wanted = columns_of(&record_schema(), &[&NEEDED, deciding].concat());
    let mut rest = ColumnFiller::new(&mut loaded, repeated, traces);
    for batch in batches(files, &wanted, BATCH_ROWS) {
        let (file, batch) = batch?;
        rest.add(&batch).map_err(in_file(files[file].path()))?;
    }
    rest.finish()?;
    for (event, id) in requests {
        let event = event as usize;
        loaded.events.id[event] = id;
        loaded.events.flags[event] = (loaded.events.flags[event] & !EXTERNAL) | HAS_ID;
    }
    read_violations(files, &mut loaded)?;
    Ok(loaded)
}

/// Reads what violation records tell.
fn read_violations(files: &[SealedFile], loaded: &mut Loaded) -> Result<(), LineageError> {
    let events = &mut loaded.events;
    if !events.kind.contains(&Kind::Violation) {
        return Ok(());
    }
    let wanted: Vec<bool> = events.kind.iter().map(|kind| *kind == Kind::Violation).collect();
    let mut found = Vec::new();
    let schema = columns_of(&record_schema(), &["fields"]);
    each_chosen(files, &loaded.placement, &wanted, &schema, &mut |batch, events| {
        let fields = columns::text(batch, "fields")?;
        let told = events.iter().enumerate().filter(|(_, event)| **event != NONE && wanted[**event as usize]);
        found.extend(told.map(|(row, &event)| (event, columns::at(fields, row).map(str::to_owned))));
        Ok(())
    })?;
    found.sort_unstable();
    events.violations = found;
    Ok(())
}

pub(super) fn in_file(path: &Path) -> impl FnOnce(LineageError) -> LineageError + '_ {
    move |e| match e {
        LineageError::Arrow(e) => LineageError::table(path)(e),
        other => other,
    }
}

fn bad(text: String) -> LineageError {
    LineageError::Arrow(arrow_schema::ArrowError::ParseError(text))
}

/// Names of events, by row.
#[derive(Default)]
struct Keys {
    names: Interner,
    actor: Vec<u32>,
    incarnation: Vec<u32>,
    seq: Vec<u64>,
}

impl Keys {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), LineageError> {
        let actor = columns::text(batch, "actor")?;
        let incarnation = columns::int(batch, "incarnation")?;
        let seq = columns::long(batch, "seq")?;
        for row in 0..batch.num_rows() {
            let (Ok(incarnations), Ok(number)) =
                (u32::try_from(incarnation.value(row)), u64::try_from(seq.value(row)))
            else {
                return Err(bad(format!("negative incarnation or seq at {}", actor.value(row))));
            };
            self.actor.push(self.names.intern(actor.value(row)));
            self.incarnation.push(incarnations);
            self.seq.push(number);
        }
        Ok(())
    }

    /// Finds each row's place: a counting sort by actor, then by incarnation and sequence number where a log is not yet in order. Rows of
    /// one name get one place.
    fn place(self, file_rows: Vec<u32>, spans: Spans) -> PlacedEvents {
        let Keys { names, actor, incarnation, seq } = self;
        let mut owner = vec![false; names.len()];
        actor.iter().for_each(|&a| owner[a as usize] = true);
        let mut actors: Vec<u32> = (0..names.len() as u32).filter(|&n| owner[n as usize]).collect();
        actors.sort_by(|&a, &b| names.text(a).cmp(names.text(b)));
        let mut number = vec![NONE; names.len()];
        actors.iter().enumerate().for_each(|(i, &name)| number[name as usize] = i as u32);

        let mut bounds = vec![0_u32; actors.len() + 1];
        actor.iter().for_each(|&a| bounds[number[a as usize] as usize + 1] += 1);
        (1..bounds.len()).for_each(|i| bounds[i] += bounds[i - 1]);
        let mut next = bounds.clone();
        let mut row_of = vec![0_u32; actor.len()];
        for (row, &name) in actor.iter().enumerate() {
            let slot = &mut next[number[name as usize] as usize];
            row_of[*slot as usize] = row as u32;
            *slot += 1;
        }
        drop(actor);
        let place = |row: u32| (incarnation[row as usize], seq[row as usize]);
        let mut events = Events { names, actors, actor_of_name: number, ..Events::default() };
        let repeats: Vec<bool> = logs_of(&mut row_of, &bounds)
            .into_par_iter()
            .map(|log| {
                if log.windows(2).all(|w| place(w[0]) < place(w[1])) {
                    return false;
                }
                log.sort_unstable_by_key(|&row| (place(row), row));
                log.windows(2).any(|w| place(w[0]) == place(w[1]))
            })
            .collect();
        // Rows of one name must stay side by side; a store that has such is damaged, and keeps the order of its stamps.
        let told = match repeats.contains(&true) {
            true => spans.without_order(),
            false => spans.settle(&mut Logs::new(&mut row_of, &bounds, &seq)),
        };
        // Each log by itself, in numbers that begin anew: where its runs begin, how many events it has, and which of them have several rows.
        let event_of_row: Vec<AtomicU32> = (0..row_of.len()).map(|_| AtomicU32::new(NONE)).collect();
        let number = |log: &[u32]| {
            let mut of_log = NumberedLog::default();
            let mut before = None;
            for &row in log {
                let here = place(row);
                if before == Some(here) {
                    of_log.repeated.push(of_log.events - 1);
                } else {
                    of_log.places.push(of_log.events, here, before.is_none());
                    of_log.events += 1;
                    before = Some(here);
                }
                event_of_row[row as usize].store(of_log.events - 1, Ordering::Relaxed);
            }
            of_log
        };
        let numbered: Vec<NumberedLog> =
            logs_of(&mut row_of, &bounds).into_par_iter().map(|log| number(log)).collect();
        let (mut repeated, mut rows_repeated) = (FxHashSet::default(), 0);
        let mut count = 0;
        for (a, of_log) in (0_u32..).zip(numbered) {
            events.first.push(count);
            events.places.append(of_log.places, count);
            rows_repeated += of_log.repeated.len();
            repeated.extend(of_log.repeated.into_iter().map(|event| count + event));
            count += of_log.events;
            events.actor.resize(count as usize, a);
        }
        events.first.push(count);
        logs_of(&mut row_of, &bounds).into_par_iter().zip(&events.first[..bounds.len() - 1]).for_each(
            |(log, first)| {
                log.iter()
                    .for_each(|&row| _ = event_of_row[row as usize].fetch_add(*first, Ordering::Relaxed));
            },
        );
        let event_of_row: Vec<u32> = event_of_row.into_iter().map(AtomicU32::into_inner).collect();
        let mut warnings = Vec::new();
        if rows_repeated > 0 {
            warnings.push(format!(
                "{rows_repeated} rows repeat the actor, incarnation and seq of another; one of each was kept"
            ));
        }
        let event = |row: u32| event_of_row[row as usize];
        let SpanOrder { any: has_spans, traces, edges, requests, odd } = told;
        let odd =
            odd.into_iter().map(|(odd, count, row)| odd.text(count, &events.name(event(row)).to_string()));
        warnings.extend(odd);
        let spans = edges.into_iter().map(|edge| edge.of_events(event)).collect();
        let requests = requests.into_iter().map(|(row, id)| (event(row), id)).collect();
        let placement = Placement::new(event_of_row, file_rows, events.actor.len());
        let loaded = Loaded { events, placement, clocked: false, has_spans, spans, warnings };
        PlacedEvents { loaded, repeated, traces, requests }
    }
}

/// The rows of each log, side by side.
fn logs_of<'a>(mut rows: &'a mut [u32], bounds: &[u32]) -> Vec<&'a mut [u32]> {
    let mut logs = Vec::with_capacity(bounds.len());
    for bound in bounds.windows(2) {
        let (log, rest) = rows.split_at_mut((bound[1] - bound[0]) as usize);
        logs.push(log);
        rows = rest;
    }
    logs
}

/// The events of one log, numbered from 0.
#[derive(Default)]
struct NumberedLog {
    events: u32,
    places: NameRuns,
    /// Events that one more row tells, once for each.
    repeated: Vec<u32>,
}

/// Events that have their places.
struct PlacedEvents {
    loaded: Loaded,
    /// The places that several rows share.
    repeated: FxHashSet<u32>,
    /// How trace ids are told apart.
    traces: TraceIds,
    /// Receives of what their spans' clients sent, with the id of that.
    requests: Vec<(u32, IdHash)>,
}

/// The rank of a row among rows of one name: the least is kept.
type Rank = (Kind, IdHash, u64, u8);

/// Filling in the rest of the columns.
pub(super) struct ColumnFiller<'a> {
    loaded: &'a mut Loaded,
    row: usize,
    traces: TraceIds,
    repeated: FxHashSet<u32>,
    /// By repeated event: the row that has its place, and its rank.
    kept: FxHashMap<u32, (Rank, usize)>,
}

impl<'a> ColumnFiller<'a> {
    fn new(loaded: &'a mut Loaded, repeated: FxHashSet<u32>, traces: TraceIds) -> Self {
        ColumnFiller { repeated, traces, ..ColumnFiller::next(loaded, 0) }
    }

    /// For the next rows of events that come in order, which have their places; the first is `row`.
    pub(super) fn next(loaded: &'a mut Loaded, row: usize) -> Self {
        let events = &mut loaded.events;
        let n = events.actor.len();
        events.kind.resize(n, Kind::Start);
        events.flags.resize(n, 0);
        events.from.resize(n, NONE);
        events.to.resize(n, NONE);
        events.id.resize(n, IdHash::default());
        let (traces, repeated, kept) = Default::default();
        ColumnFiller { loaded, row, traces, repeated, kept }
    }

    /// Fills in the rest of the next rows.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<(), LineageError> {
        let kind = columns::text(batch, "kind")?;
        let id = columns::text(batch, "msg_id")?;
        let from = columns::text(batch, "from")?;
        let to = columns::text(batch, "to")?;
        let via = columns::text(batch, "via")?;
        let external = columns::flag(batch, "external")?;
        let clocks = columns::text(batch, "vector_clock")?;
        self.loaded.clocked |= clocks.null_count() < clocks.len();
        let content = if self.repeated.is_empty() { None } else { Some(contents_of(batch, true)?) };
        for row in 0..batch.num_rows() {
            let what = Kind::from_name(kind.value(row))
                .ok_or_else(|| bad(format!("unknown kind '{}'", kind.value(row))))?;
            let mut flags = via_bits(columns::at(via, row).and_then(Via::from_name));
            if external.is_valid(row) {
                flags |= if external.value(row) { EXTERNAL } else { INTERNAL };
            }
            let id = columns::at(id, row).map(|text| {
                flags |= HAS_ID;
                flags |= if text.starts_with(COUNTED_ID) { COUNTED } else { 0 };
                flags |= if text.starts_with(EARLIEST_ID) { EARLIEST } else { 0 };
                flags |= if text.starts_with(COUNTED_AFTER_LOSS_ID) { COUNTED | EARLIEST } else { 0 };
                self.traces.hash(text)
            });
            let id = id.unwrap_or_default();
            let content = content.as_ref().map_or(0, |content| content(row));
            let Some(e) = self.take_place((what, id, content, flags))? else { continue };
            let events = &mut self.loaded.events;
            let mut name = |c| columns::at(c, row).map_or(NONE, |t| events.names.intern(t));
            (events.from[e], events.to[e]) = (name(from), name(to));
            (events.kind[e], events.flags[e]) = (what, flags);
            events.id[e] = match what {
                Kind::TimerSet | Kind::TimerFire if flags & HAS_ID != 0 => {
                    id.of_timer(events.actor_name(events.actor[e]))
                }
                _ => id,
            };
        }
        Ok(())
    }

    /// The place of the next row, unless a row of the same name has it.
    fn take_place(&mut self, rank: Rank) -> Result<Option<usize>, LineageError> {
        let row = self.row;
        self.row += 1;
        let changed = || bad("the file has other rows than when it was first read".into());
        let event = *self.loaded.placement.event_of_row.get(row).ok_or_else(changed)?;
        if self.repeated.contains(&event) {
            if let Some(held) = self.kept.get(&event) {
                let loser = if held.0 <= rank { row } else { held.1 };
                self.loaded.placement.event_of_row[loser] = NONE;
                if loser == row {
                    return Ok(None);
                }
            }
            self.kept.insert(event, (rank, row));
        }
        Ok(Some(event as usize))
    }

    fn finish(self) -> Result<(), LineageError> {
        if self.row != self.loaded.placement.event_of_row.len() {
            return Err(bad("a file has other rows than when it was first read".into()));
        }
        let events = &mut self.loaded.events;
        events.actor_of_name.resize(events.names.len(), NONE);
        events.find_environment();
        Ok(())
    }
}

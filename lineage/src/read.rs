//! Reading the store's files into compact columns, in each actor's order.

use std::path::PathBuf;

use arrow_array::{Array, RecordBatch};
use demi_schemas::event::ENVIRONMENT;
use demi_schemas::{Kind, Via};
use xxhash_rust::xxh3::xxh3_128;

use crate::columns;
use crate::error::LineageError;
use crate::events::{EXTERNAL, Events, HAS_ID, INTERNAL, via_bits};
use crate::intern::NONE;
use crate::source::{Source, columns_of, record_schema};

/// The columns that matching, order and provenance need.
const NEEDED: [&str; 14] = [
    "actor",
    "incarnation",
    "seq",
    "kind",
    "msg_id",
    "from",
    "to",
    "via",
    "type",
    "payload",
    "fingerprint",
    "external",
    "fields",
    "vector_clock",
];

/// The events, and where each row of the files went.
pub(crate) struct Loaded {
    /// The events.
    pub(crate) events: Events,
    /// By row, files in the order given: the event, or [`NONE`] for a repeated row.
    pub(crate) event_of_row: Vec<u32>,
    /// First row of each file.
    pub(crate) file_rows: Vec<u32>,
    /// Whether any event has a vector clock.
    pub(crate) clocked: bool,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// Reads all files; rows may come in any order.
pub(crate) fn read(files: &[PathBuf], system: &str) -> Result<Loaded, LineageError> {
    let wanted = columns_of(&record_schema(), &NEEDED);
    let mut rows = Events::default();
    let mut file_rows = Vec::with_capacity(files.len());
    let mut clocked = false;
    for path in files {
        file_rows.push(rows.len() as u32);
        for batch in Source::open(path, &wanted)? {
            let batch = batch?;
            let clocks = columns::text(&batch, "vector_clock")?;
            clocked |= clocks.null_count() < clocks.len();
            add(&mut rows, &batch).map_err(|e| match e {
                LineageError::Arrow(e) => LineageError::table(path)(e),
                other => other,
            })?;
            if rows.len() >= NONE as usize {
                return Err(LineageError::TooMany(rows.len() as u64));
            }
        }
    }
    if rows.len() == 0 {
        return Err(LineageError::Empty(system.to_owned()));
    }
    Ok(Loaded { clocked, ..sort(rows, file_rows) })
}

fn add(rows: &mut Events, batch: &RecordBatch) -> Result<(), LineageError> {
    let actor = columns::text(batch, "actor")?;
    let life = columns::int(batch, "incarnation")?;
    let seq = columns::long(batch, "seq")?;
    let kind = columns::text(batch, "kind")?;
    let id = columns::text(batch, "msg_id")?;
    let from = columns::text(batch, "from")?;
    let to = columns::text(batch, "to")?;
    let via = columns::text(batch, "via")?;
    let type_ = columns::text(batch, "type")?;
    let payload = columns::text(batch, "payload")?;
    let fingerprint = columns::text(batch, "fingerprint")?;
    let external = columns::flag(batch, "external")?;
    let fields = columns::text(batch, "fields")?;
    let bad = |text: String| LineageError::Arrow(arrow_schema::ArrowError::ParseError(text));
    for row in 0..batch.num_rows() {
        let name =
            |c, names: &mut crate::intern::Interner| columns::at(c, row).map_or(NONE, |t| names.intern(t));
        let what = Kind::from_name(kind.value(row))
            .ok_or_else(|| bad(format!("unknown kind '{}'", kind.value(row))))?;
        let (Ok(lives), Ok(position)) = (u32::try_from(life.value(row)), u64::try_from(seq.value(row)))
        else {
            return Err(bad(format!("negative incarnation or seq at {}", actor.value(row))));
        };
        if what == Kind::Violation {
            rows.violations.push((rows.len() as u32, columns::at(fields, row).map(str::to_owned)));
        }
        rows.actor.push(rows.names.intern(actor.value(row)));
        rows.life.push(lives);
        rows.seq.push(position);
        rows.kind.push(what);
        rows.from.push(name(from, &mut rows.names));
        rows.to.push(name(to, &mut rows.names));
        rows.type_.push(name(type_, &mut rows.names));
        let mut flags = via_bits(columns::at(via, row).and_then(Via::from_name));
        if external.is_valid(row) {
            flags |= if external.value(row) { EXTERNAL } else { INTERNAL };
        }
        rows.id.push(match columns::at(id, row) {
            Some(text) => {
                flags |= HAS_ID;
                xxh3_128(text.as_bytes())
            }
            None => 0,
        });
        let content = columns::at(fingerprint, row).or(columns::at(payload, row)).unwrap_or("");
        rows.content.push(xxh3_128(content.as_bytes()));
        rows.flags.push(flags);
    }
    Ok(())
}

/// Brings rows into each actor's order: a counting sort by actor, then by life and position where a log is not yet
/// in order.
fn sort(mut rows: Events, file_rows: Vec<u32>) -> Loaded {
    let mut owner = vec![false; rows.names.len()];
    rows.actor.iter().for_each(|&a| owner[a as usize] = true);
    let mut actors: Vec<u32> = (0..rows.names.len() as u32).filter(|&n| owner[n as usize]).collect();
    actors.sort_by(|&a, &b| rows.names.text(a).cmp(rows.names.text(b)));
    let mut number = vec![NONE; rows.names.len()];
    actors.iter().enumerate().for_each(|(i, &name)| number[name as usize] = i as u32);

    let mut first = vec![0_u32; actors.len() + 1];
    rows.actor.iter().for_each(|&a| first[number[a as usize] as usize + 1] += 1);
    (1..first.len()).for_each(|i| first[i] += first[i - 1]);
    let mut next = first.clone();
    let mut row_of = vec![0_u32; rows.len()];
    for (row, &name) in rows.actor.iter().enumerate() {
        let slot = &mut next[number[name as usize] as usize];
        row_of[*slot as usize] = row as u32;
        *slot += 1;
    }
    for range in first.windows(2) {
        let part = &mut row_of[range[0] as usize..range[1] as usize];
        let place = |row: u32| (rows.life[row as usize], rows.seq[row as usize]);
        if !part.windows(2).all(|w| place(w[0]) < place(w[1])) {
            part.sort_by_key(|&row| {
                let r = row as usize;
                (place(row), rows.kind[r], rows.id[r], rows.content[r], rows.flags[r])
            });
        }
    }
    let warnings = drop_repeated(&rows, &mut row_of, &mut first);

    let mut event_of_row = vec![NONE; rows.len()];
    row_of.iter().enumerate().for_each(|(event, &row)| event_of_row[row as usize] = event as u32);
    gather(&mut rows.actor, &row_of);
    rows.actor.iter_mut().for_each(|a| *a = number[*a as usize]);
    gather(&mut rows.life, &row_of);
    gather(&mut rows.seq, &row_of);
    gather(&mut rows.kind, &row_of);
    gather(&mut rows.flags, &row_of);
    gather(&mut rows.from, &row_of);
    gather(&mut rows.to, &row_of);
    gather(&mut rows.type_, &row_of);
    gather(&mut rows.id, &row_of);
    gather(&mut rows.content, &row_of);
    rows.violations.iter_mut().for_each(|v| v.0 = event_of_row[v.0 as usize]);
    rows.violations.retain(|v| v.0 != NONE);
    rows.violations.sort_unstable();
    rows.environment = rows.names.find(ENVIRONMENT).map_or(NONE, |name| number[name as usize]);
    (rows.actors, rows.first, rows.actor_of_name) = (actors, first, number);
    Loaded { events: rows, event_of_row, file_rows, clocked: false, warnings }
}

/// Of rows with one name the first stays.
fn drop_repeated(rows: &Events, row_of: &mut Vec<u32>, first: &mut [u32]) -> Vec<String> {
    let key = |row: u32| (rows.actor[row as usize], rows.life[row as usize], rows.seq[row as usize]);
    let before = row_of.len();
    let mut lost = vec![0_u32; first.len()];
    let mut actor = 0;
    let mut write = 0;
    for read in 0..before {
        while read as u32 >= first[actor + 1] {
            actor += 1;
        }
        if write > 0 && key(row_of[write - 1]) == key(row_of[read]) {
            lost[actor + 1] += 1;
        } else {
            row_of[write] = row_of[read];
            write += 1;
        }
    }
    row_of.truncate(write);
    (1..lost.len()).for_each(|i| lost[i] += lost[i - 1]);
    first.iter_mut().zip(&lost).for_each(|(f, l)| *f -= l);
    match before - write {
        0 => Vec::new(),
        n => vec![format!("{n} rows repeat the actor, incarnation and seq of another; one of each was kept")],
    }
}

fn gather<T: Copy>(column: &mut Vec<T>, row_of: &[u32]) {
    let sorted = row_of.iter().map(|&row| column[row as usize]).collect();
    *column = sorted;
}

//! Keeping the tables of lineage: they are made of the order index, which knows of messages what no SQL does — clocks, spans, matches by content, and ids
//! that several sends have.
//!
//! A log keeps its number for good. What was written of it stays as long as the digest of its first positions is what it was; then only rows
//! behind its last position are added. Logs stand in buckets, and a bucket in which a log changed is written anew, as is one of many files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, RecordBatch};
use demi_lineage::query::Query;
use demi_schemas::EventId;
use demi_store::delta::{Gone, TableWriter};
use demi_store::{LineageTable, Store, made_from};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::error::PlanError;
use crate::sql::KEY;

/// Rows of a bucket with which it takes no further log.
const BUCKET_ROWS: i64 = 1 << 18;
/// Files of a bucket with which it is written anew.
const BUCKET_FILES: usize = 8;
/// Rows of a page: who looks for a block reads little more than it.
const PAGE_ROWS: usize = 1024;
/// Rows that are handed to a table at once.
const BATCH: usize = 1 << 16;

/// A log: of an actor, or of one event outside its actor's order that has causes of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its number among the logs of all systems.
    pub number: i64,
    /// The system.
    pub system: String,
    /// The actor.
    pub actor: String,
    /// The event that it consists of, if it is no actor's.
    pub alone: Option<(i32, i64)>,
    /// The position of its last event.
    pub last_ord: i64,
    /// Positions of a block.
    pub block: i64,
    /// Events outside its order.
    pub outside: i64,
    /// Whether its positions are in the order of incarnations and sequence numbers.
    pub by_name: bool,
    /// The partition that it stands in.
    pub bucket: i64,
    /// Rows of messages into it.
    pub messages: i64,
    /// The digest of what was written of it.
    pub digest: i64,
}

/// What a refresh did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refreshed {
    /// The system.
    pub system: String,
    /// The version of the events that the tables are of now.
    pub events_version: u64,
    /// Logs of the system, events with causes of their own included.
    pub logs: u64,
    /// Rows of messages that the tables have of the system.
    pub messages: u64,
    /// Rows of checkpoints that were written.
    pub checkpoints_written: u64,
    /// Rows of messages that were written.
    pub messages_written: u64,
    /// Logs whose rows were written anew because something came before what was known.
    pub changed: u64,
    /// Buckets that were added to.
    pub added: u64,
    /// Buckets that were written anew.
    pub rewritten: u64,
}

/// Reads the logs of a system from the table of actors, by number.
///
/// # Errors
/// When a file cannot be read.
pub fn logs(store: &Store, system: &str) -> Result<Vec<Log>, PlanError> {
    let mut logs = Vec::new();
    for file in store.lineage_files(LineageTable::Actors, system)? {
        let path = file.path();
        let opened = File::open(path).map_err(PlanError::io(path))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(opened).map_err(PlanError::table(path))?;
        for batch in builder.build().map_err(PlanError::table(path))? {
            let batch = batch?;
            let missing =
                |name: &str| PlanError::Broken(format!("{} has no column '{name}'", path.display()));
            let column = |name: &str| batch.column_by_name(name).ok_or_else(|| missing(name));
            let long = |name: &str| {
                column(name)?.as_primitive_opt::<Int64Type>().ok_or_else(|| missing(name)).cloned()
            };
            let flag = |name: &str| column(name)?.as_boolean_opt().ok_or_else(|| missing(name)).cloned();
            let actor = column("actor")?.as_string_opt::<i32>().ok_or_else(|| missing("actor"))?;
            let incarnation = column("incarnation")?.as_primitive_opt::<Int32Type>();
            let incarnation = incarnation.ok_or_else(|| missing("incarnation"))?;
            let (number, seq, last_ord) = (long("number")?, long("seq")?, long("last_ord")?);
            let (block, outside, bucket) = (long("block")?, long("outside")?, long("bucket")?);
            let (messages, digest) = (long("messages")?, long("digest")?);
            let (alone, by_name) = (flag("alone")?, flag("by_name")?);
            logs.extend((0..batch.num_rows()).map(|row| Log {
                number: number.value(row),
                system: system.to_owned(),
                actor: actor.value(row).to_owned(),
                alone: alone.value(row).then(|| (incarnation.value(row), seq.value(row))),
                last_ord: last_ord.value(row),
                block: block.value(row),
                outside: outside.value(row),
                by_name: by_name.value(row),
                bucket: bucket.value(row),
                messages: messages.value(row),
                digest: digest.value(row),
            }));
        }
    }
    logs.sort_by_key(|log| log.number);
    Ok(logs)
}

/// The version of the events that all tables of lineage of a system were made from; `None` where they were not made, or not to the end.
///
/// # Errors
/// When a table cannot be read.
pub fn version(store: &Store, system: &str) -> Result<Option<u64>, PlanError> {
    let mut versions = BTreeSet::new();
    for table in LineageTable::ALL {
        versions.insert(store.lineage_version(table, system)?);
    }
    Ok(match (versions.len(), versions.pop_first()) {
        (1, Some(version)) => version,
        _ => None,
    })
}

/// A row of messages, without its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    rp: i64,
    sa: i64,
    sp: i64,
    alone: bool,
    certain: bool,
    message: bool,
}

/// A run of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    ord: i64,
    incarnation: i32,
    seq: i64,
    n: i64,
}

/// What a log's rows are made of.
struct Rows {
    messages: Vec<Row>,
    runs: Vec<Run>,
}

impl Rows {
    /// The digest of what is known up to a position.
    fn digest(&self, until: i64) -> i64 {
        let mut hash = Xxh3::new();
        for row in self.messages.iter().take_while(|row| row.rp <= until) {
            for number in [row.rp, row.sa, row.sp] {
                hash.update(&number.to_le_bytes());
            }
            hash.update(&[u8::from(row.alone) | u8::from(row.certain) << 1 | u8::from(row.message) << 2]);
        }
        for run in self.runs.iter().take_while(|run| run.ord <= until) {
            hash.update(&run.incarnation.to_le_bytes());
            hash.update(&run.seq.to_le_bytes());
            // A run that has grown since is what it was, up to there.
            hash.update(&run.n.min(until - run.ord + 1).to_le_bytes());
        }
        hash.digest() as i64
    }
}

/// The logs of a system, as its order index has them.
struct System<'a> {
    query: &'a Query,
    /// By actor of the index: its log's number.
    numbers: Vec<i64>,
    /// By event outside its order that has causes: its number.
    alone: FxHashMap<u32, i64>,
}

impl System<'_> {
    fn ord(&self, actor: usize, event: u32) -> i64 {
        i64::from(event - self.query.index().events_of(actor).start) + 1
    }

    /// The rows of messages into an actor's log and into the events outside its order: by number.
    fn edges_into(&self, actor: usize) -> Result<Vec<(i64, Row)>, PlanError> {
        let index = self.query.index();
        let mut rows = Vec::new();
        self.query.each_edge_into(actor, |edge| -> Result<(), PlanError> {
            let (receiver, rp) = match self.alone.get(&edge.effect()) {
                Some(&number) => (number, 1),
                None => (self.numbers[actor], self.ord(actor, edge.effect())),
            };
            let sender = index.actor_of(edge.cause());
            let (sa, sp, alone) = match self.alone.get(&edge.cause()) {
                Some(&number) => (number, 1, false),
                None => {
                    let alone = self.query.stands_alone(edge.cause())?;
                    (self.numbers[sender], self.ord(sender, edge.cause()), alone)
                }
            };
            if sa != receiver || alone {
                let (certain, message) = (edge.is_certain(), edge.is_message());
                rows.push((receiver, Row { rp, sa, sp, alone, certain, message }));
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// The power of two next to eight times the median number of senders that a log hears of, within bounds.
fn block_size(mut senders: Vec<usize>) -> i64 {
    senders.retain(|&n| n > 0);
    senders.sort_unstable();
    let median = senders.get(senders.len() / 2).copied().unwrap_or(0) as i64;
    let wanted = (8 * median).clamp(256, 65_536);
    let above = 1_i64 << (63 - (wanted.max(1) - 1).leading_zeros() as i64 + 1).clamp(0, 62);
    let below = above / 2;
    let size = if wanted - below < above - wanted { below } else { above };
    size.clamp(256, 65_536)
}

/// Whether the runs of a log are in the order of names.
fn in_order(runs: &[Run]) -> bool {
    runs.windows(2).all(|w| (w[0].incarnation, w[0].seq) < (w[1].incarnation, w[1].seq))
}

fn runs_of(query: &Query, actor: usize) -> Result<Vec<Run>, PlanError> {
    let mut ord = 1;
    let mut runs = Vec::new();
    for run in query.runs_of_log(actor)? {
        let n = (run.last() - run.first()) as i64 + 1;
        runs.push(Run { ord, incarnation: run.incarnation() as i32, seq: run.first() as i64, n });
        ord += n;
    }
    if in_order(&runs) {
        return Ok(runs);
    }
    // Joined by equality: a row an event.
    let single =
        |run: Run| (0..run.n).map(move |at| Run { ord: run.ord + at, seq: run.seq + at, n: 1, ..run });
    Ok(runs.into_iter().flat_map(single).collect())
}

/// Brings the tables of lineage of a system up to date with its order, which is of the events at `version`. With `rebuild` all is written anew.
///
/// # Errors
/// When the order or the tables cannot be read or written, or another process makes them.
pub fn refresh(
    store: &Store,
    system: &str,
    query: &Query,
    version: u64,
    rebuild: bool,
) -> Result<Refreshed, PlanError> {
    let lock = store.lock_lineage()?;
    let whole = self::version(store, system)?;
    // Numbers are kept whatever is written anew.
    let known = logs(store, system)?;
    let anew = rebuild || whole.is_none();
    if whole == Some(version) && !anew {
        let messages = known.iter().map(|log| log.messages as u64).sum();
        let (system, logs) = (system.to_owned(), known.len() as u64);
        return Ok(Refreshed { system, events_version: version, logs, messages, ..Refreshed::default() });
    }
    let mut next = 1;
    for other in store.lineage_systems(LineageTable::Actors)? {
        next = logs(store, &other)?.iter().map(|log| log.number + 1).fold(next, i64::max);
    }
    let mut making = Making::new(query, system, known, next, anew)?;
    making.write(store, version)?;
    drop(lock);
    Ok(making.done)
}

/// Tables that are being made.
struct Making<'a> {
    system: System<'a>,
    name: String,
    /// By number: what was written before.
    before: FxHashMap<i64, Log>,
    /// All logs as they are now, by number; their bucket, count and digest are filled in as they are written.
    now: BTreeMap<i64, Log>,
    /// By bucket and actor of the index: what is written of it.
    buckets: BTreeMap<i64, Vec<usize>>,
    /// Whether all is written anew.
    anew: bool,
    done: Refreshed,
}

impl<'a> Making<'a> {
    fn new(
        query: &'a Query,
        name: &str,
        known: Vec<Log>,
        mut next: i64,
        anew: bool,
    ) -> Result<Making<'a>, PlanError> {
        let index = query.index();
        let actors = &index.header().actors;
        let mut by_name: FxHashMap<(String, Option<(i32, i64)>), i64> = FxHashMap::default();
        known.iter().for_each(|log| {
            by_name.insert((log.actor.clone(), log.alone), log.number);
        });
        let mut number = |key: (String, Option<(i32, i64)>)| {
            *by_name.entry(key).or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        let numbers: Vec<i64> = actors.iter().map(|actor| number((actor.name.clone(), None))).collect();
        let mut system = System { query, numbers, alone: FxHashMap::default() };
        let mut alone_of: Vec<Vec<(u32, EventId)>> = vec![Vec::new(); actors.len()];
        let mut outside = vec![0_i64; actors.len()];
        if index.header().alone > 0 {
            for actor in 0..actors.len() {
                for event in index.events_of(actor) {
                    outside[actor] += i64::from(query.stands_alone(event)?);
                }
                let mut found = BTreeSet::new();
                query.each_edge_into(actor, |edge| -> Result<(), PlanError> {
                    if query.stands_alone(edge.effect())? {
                        found.insert(edge.effect());
                    }
                    Ok(())
                })?;
                for event in found {
                    let id = index.name(event)?;
                    let place = (id.incarnation as i32, id.seq as i64);
                    system.alone.insert(event, number((id.actor.clone(), Some(place))));
                    alone_of[actor].push((event, id));
                }
            }
        }
        let known = if anew { Vec::new() } else { known };
        let before: FxHashMap<i64, Log> = known.into_iter().map(|log| (log.number, log)).collect();
        let mut counts = vec![0_i64; actors.len()];
        let mut senders = Vec::new();
        for (actor, count) in counts.iter_mut().enumerate() {
            let mut heard: FxHashSet<i64> = FxHashSet::default();
            let rows = system.edges_into(actor)?;
            *count = rows.len() as i64;
            heard.extend(rows.iter().filter(|(_, row)| !row.alone).map(|(_, row)| row.sa));
            senders.push(heard.len());
        }
        let block = before.values().next().map_or_else(|| block_size(senders), |log| log.block);
        // Logs keep their bucket; new ones fill the last.
        let mut size: BTreeMap<i64, i64> = BTreeMap::new();
        for (actor, number) in system.numbers.iter().enumerate() {
            if let Some(log) = before.get(number) {
                *size.entry(log.bucket).or_default() += counts[actor];
            }
        }
        let mut now = BTreeMap::new();
        let mut buckets: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for actor in 0..actors.len() {
            let number = system.numbers[actor];
            let bucket = before.get(&number).map(|log| log.bucket).unwrap_or_else(|| {
                let (bucket, rows) = size.last_key_value().map_or((0, 0), |(&bucket, &rows)| (bucket, rows));
                let bucket = if rows >= BUCKET_ROWS { bucket + 1 } else { bucket };
                *size.entry(bucket).or_default() += counts[actor];
                bucket
            });
            buckets.entry(bucket).or_default().push(actor);
            let log = Log {
                number,
                system: name.to_owned(),
                actor: actors[actor].name.clone(),
                alone: None,
                last_ord: index.events_of(actor).len() as i64,
                block,
                outside: outside[actor],
                by_name: true,
                bucket,
                messages: 0,
                digest: 0,
            };
            for (event, id) in &alone_of[actor] {
                let alone = Some((id.incarnation as i32, id.seq as i64));
                let number = system.alone[event];
                now.insert(number, Log { number, alone, last_ord: 1, outside: 0, ..log.clone() });
            }
            now.insert(number, log);
        }
        let done = Refreshed { system: name.to_owned(), ..Refreshed::default() };
        Ok(Making { system, name: name.to_owned(), before, now, buckets, anew, done })
    }

    /// The rows of all logs of an actor: its own, and of its events outside the order.
    fn rows(&self, actor: usize) -> Result<BTreeMap<i64, Rows>, PlanError> {
        let own = self.system.numbers[actor];
        let mut all: BTreeMap<i64, Rows> = BTreeMap::new();
        let runs = runs_of(self.system.query, actor)?;
        for event in self.system.query.index().events_of(actor) {
            if self.system.alone.is_empty() {
                break;
            }
            if let Some(&number) = self.system.alone.get(&event) {
                let id = self.system.query.index().name(event)?;
                let run = Run { ord: 1, incarnation: id.incarnation as i32, seq: id.seq as i64, n: 1 };
                all.insert(number, Rows { messages: Vec::new(), runs: vec![run] });
            }
        }
        all.insert(own, Rows { messages: Vec::new(), runs });
        for (number, row) in self.system.edges_into(actor)? {
            if let Some(rows) = all.get_mut(&number) {
                rows.messages.push(row);
            }
        }
        Ok(all)
    }

    fn write(&mut self, store: &Store, version: u64) -> Result<(), PlanError> {
        let paged = |table| store.lineage_writer(table)?.with_page_rows(PAGE_ROWS);
        let mut messages = Out::new(paged(LineageTable::Messages)?, LineageTable::Messages, &self.name);
        let mut checkpoints =
            Out::new(paged(LineageTable::Checkpoints)?, LineageTable::Checkpoints, &self.name);
        let mut runs = Out::new(paged(LineageTable::Runs)?, LineageTable::Runs, &self.name);
        let mut gone = [messages.begin()?, checkpoints.begin()?, runs.begin()?];
        let fresh = self.anew;
        for (bucket, actors) in std::mem::take(&mut self.buckets) {
            let mut all: BTreeMap<i64, Rows> = BTreeMap::new();
            for actor in actors {
                all.append(&mut self.rows(actor)?);
            }
            let changed = all.iter().filter(|(number, rows)| {
                let log = self.before.get(number);
                log.is_some_and(|log| {
                    rows.digest(log.last_ord) != log.digest || in_order(&rows.runs) != log.by_name
                })
            });
            let changed = changed.count() as u64;
            // A log that is gone takes its bucket's rows with it.
            let lost =
                self.before.values().any(|log| log.bucket == bucket && !self.now.contains_key(&log.number));
            let many = gone[0].get(&bucket).is_some_and(|files| files.len() >= BUCKET_FILES);
            let anew = fresh || changed > 0 || lost || many;
            self.done.changed += changed;
            let mut written = false;
            for (&number, rows) in &all {
                let from = match self.before.get(&number) {
                    Some(log) if !anew => log.last_ord,
                    _ => 0,
                };
                let Some(log) = self.now.get_mut(&number) else { continue };
                log.messages = rows.messages.len() as i64;
                log.digest = rows.digest(log.last_ord);
                log.by_name = in_order(&rows.runs);
                written |= write_log(log, rows, from, &mut messages, &mut checkpoints, &mut runs)?;
                self.done.messages += rows.messages.len() as u64;
            }
            if anew {
                self.done.rewritten += u64::from(!fresh);
            } else {
                gone.iter_mut().for_each(|files| {
                    files.remove(&bucket);
                });
                self.done.added += u64::from(written);
            }
        }
        self.done.logs = self.now.len() as u64;
        self.done.events_version = version;
        let [gone_messages, gone_checkpoints, gone_runs] = gone;
        self.done.messages_written = messages.end(gone_messages, version)?;
        self.done.checkpoints_written = checkpoints.end(gone_checkpoints, version)?;
        runs.end(gone_runs, version)?;
        let mut writer = store.lineage_writer(LineageTable::Actors)?;
        writer.write(self.actors()?)?;
        let gone = writer.files_of(&self.name)?;
        writer.commit(&[made_from(&self.name, version)], Gone::Files(gone))?;
        Ok(())
    }

    fn actors(&self) -> Result<RecordBatch, PlanError> {
        let rows: Vec<&Log> = self.now.values().collect();
        let long = |f: fn(&Log) -> i64| -> ArrayRef {
            let mut column = Int64Builder::new();
            rows.iter().for_each(|log| column.append_value(f(log)));
            Arc::new(column.finish())
        };
        let flag = |f: fn(&Log) -> bool| -> ArrayRef {
            let mut column = BooleanBuilder::new();
            rows.iter().for_each(|log| column.append_value(f(log)));
            Arc::new(column.finish())
        };
        let text = |f: fn(&Log) -> &str| -> ArrayRef {
            let mut column = StringBuilder::new();
            rows.iter().for_each(|log| column.append_value(f(log)));
            Arc::new(column.finish())
        };
        let mut incarnation = Int32Builder::new();
        rows.iter()
            .for_each(|log| incarnation.append_value(log.alone.map_or(0, |(incarnation, _)| incarnation)));
        let columns = vec![
            text(|log| &log.system),
            long(|log| log.number),
            text(|log| &log.actor),
            flag(|log| log.alone.is_some()),
            Arc::new(incarnation.finish()),
            long(|log| log.alone.map_or(0, |(_, seq)| seq)),
            long(|log| log.last_ord),
            long(|log| log.block),
            long(|log| log.outside),
            flag(|log| log.by_name),
            long(|log| log.bucket),
            long(|log| log.messages),
            long(|log| log.digest),
        ];
        Ok(RecordBatch::try_new(LineageTable::Actors.schema(), columns)?)
    }
}

/// Writes what of a log stands behind a position. Whether there was something.
fn write_log(
    log: &Log,
    rows: &Rows,
    from: i64,
    messages: &mut Out,
    checkpoints: &mut Out,
    runs: &mut Out,
) -> Result<bool, PlanError> {
    let (ra, block) = (log.number, log.block);
    let mut heard: BTreeMap<i64, i64> = BTreeMap::new();
    let mut at = 0;
    for b in 1..=log.last_ord / block {
        while let Some(row) = rows.messages.get(at).filter(|row| row.rp / block < b) {
            if !row.alone {
                let known = heard.entry(row.sa).or_default();
                *known = row.sp.max(*known);
            }
            at += 1;
        }
        if b > from / block || from == 0 {
            for (&sa, &sp) in &heard {
                checkpoints.add(log.bucket, &[ra * KEY + b, ra, sa, sp], &[])?;
            }
        }
    }
    let new = rows.messages.partition_point(|row| row.rp <= from);
    for row in &rows.messages[new..] {
        let numbers = [ra * KEY + row.rp / block, ra, row.rp, row.sa, row.sp];
        messages.add(log.bucket, &numbers, &[row.alone, row.certain, row.message])?;
    }
    for run in rows.runs.iter().filter(|run| run.ord + run.n > from + 1) {
        let skipped = (from + 1 - run.ord).max(0);
        let numbers = [ra, run.ord + skipped, i64::from(run.incarnation), run.seq + skipped, run.n - skipped];
        runs.add(log.bucket, &numbers, &[])?;
    }
    Ok(log.last_ord > from)
}

/// Rows on their way into a table: numbers, then flags, after the columns of the partition.
struct Out {
    writer: TableWriter,
    table: LineageTable,
    system: String,
    bucket: i64,
    numbers: Vec<Vec<i64>>,
    flags: Vec<Vec<bool>>,
    written: u64,
}

type FilesByBucket = BTreeMap<i64, Vec<demi_store::delta::Removed>>;

impl Out {
    fn new(writer: TableWriter, table: LineageTable, system: &str) -> Out {
        let (numbers, flags) = match table {
            LineageTable::Messages => (5, 3),
            LineageTable::Checkpoints => (4, 0),
            LineageTable::Runs | LineageTable::Actors => (5, 0),
        };
        Out {
            writer,
            table,
            system: system.to_owned(),
            bucket: 0,
            numbers: vec![Vec::new(); numbers],
            flags: vec![Vec::new(); flags],
            written: 0,
        }
    }

    /// The files that are there, by bucket.
    fn begin(&self) -> Result<FilesByBucket, PlanError> {
        let mut files = FilesByBucket::new();
        for file in self.writer.data_files(&self.system)? {
            let bucket = file.partition.iter().find(|(name, _)| name == "bucket");
            let bucket = bucket.and_then(|(_, value)| value.as_ref()?.parse().ok()).unwrap_or(0);
            files.entry(bucket).or_default().push(file.remove);
        }
        Ok(files)
    }

    fn add(&mut self, bucket: i64, numbers: &[i64], flags: &[bool]) -> Result<(), PlanError> {
        if bucket != self.bucket || self.numbers[0].len() >= BATCH {
            self.flush()?;
            self.bucket = bucket;
        }
        self.numbers.iter_mut().zip(numbers).for_each(|(column, number)| column.push(*number));
        self.flags.iter_mut().zip(flags).for_each(|(column, flag)| column.push(*flag));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), PlanError> {
        let n = self.numbers[0].len();
        if n == 0 {
            return Ok(());
        }
        let mut system = StringBuilder::new();
        let mut bucket = Int64Builder::new();
        for _ in 0..n {
            system.append_value(&self.system);
            bucket.append_value(self.bucket);
        }
        let mut columns: Vec<ArrayRef> = vec![Arc::new(system.finish()), Arc::new(bucket.finish())];
        for (at, numbers) in self.numbers.iter_mut().enumerate() {
            let numbers = std::mem::take(numbers);
            columns.push(match (self.table, at) {
                (LineageTable::Runs, 2) => {
                    let narrow = numbers.into_iter().map(|number| number as i32);
                    Arc::new(arrow_array::Int32Array::from_iter_values(narrow))
                }
                _ => Arc::new(arrow_array::Int64Array::from(numbers)),
            });
        }
        for flags in &mut self.flags {
            columns.push(Arc::new(arrow_array::BooleanArray::from(std::mem::take(flags))));
        }
        self.writer.write(RecordBatch::try_new(self.table.schema(), columns)?)?;
        self.written += n as u64;
        Ok(())
    }

    fn end(mut self, gone: FilesByBucket, version: u64) -> Result<u64, PlanError> {
        self.flush()?;
        let gone = gone.into_values().flatten().collect();
        self.writer.commit(&[made_from(&self.system, version)], Gone::Files(gone))?;
        Ok(self.written)
    }
}

//! Logs of random message-passing systems, of any size, with the truth about them: for measurements and tests.
//!
//! A system is simulated event by event in one global order, which the logs do not tell. Equal settings give equal events.

mod traces;

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use demi_schemas::event::{ANYONE, DEAD_LETTERS, ENVIRONMENT, FIRST_CLOCK_SEQ, MONITOR, VectorClock};
use demi_schemas::{EventRecord, Kind, TimerInfo, Via};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::SortingColumn;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::LineageError;
use crate::execution::writer;
use crate::read::record_schema;

pub use traces::{Traces, traces};

/// The composition of a generated system; shares are probabilities from 0 to 1.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Seed of all choices.
    pub seed: u64,
    /// How many actors there are.
    pub actors: u32,
    /// How many events there are, the closing violation left out.
    pub events: u64,
    /// Share of messages with a `msg_id`, at the send; receives drop it with the same share.
    pub ids: f64,
    /// Share of messages lost.
    pub loss: f64,
    /// Share of deliveries made twice.
    pub duplicate: f64,
    /// Share of steps at which an actor fails and begins a new incarnation.
    pub restart: f64,
    /// Share of deliveries that are put back into the actor's own inbox.
    pub forward: f64,
    /// Share of deliveries that set a timer.
    pub timer: f64,
    /// Share of steps at which something is sent from outside.
    pub environment: f64,
    /// Share of steps at which a thread of an actor sends something.
    pub thread: f64,
    /// Whether channels deliver in order.
    pub in_order: bool,
    /// How many different contents there are; 0 for as many as messages.
    pub contents: u32,
    /// Whether records have vector clocks. What a thread or the environment sends has none.
    pub clocks: bool,
    /// Share of messages that no log tells, where records have clocks: these do. Below 1.
    pub hidden: f64,
    /// Share of messages that are sent to anyone and reach several actors. They have ids at both ends.
    pub multicast: f64,
    /// Share of steps at which a span begins. Where there are spans, sequence numbers come from a clock.
    pub spans: f64,
    /// Share of spans that have a parent.
    pub parents: f64,
    /// Share of spans that link to another span.
    pub links: f64,
}

impl Default for Mix {
    /// Ten actors that only send and receive, in order, with ids.
    fn default() -> Self {
        Mix {
            seed: 0,
            actors: 10,
            events: 1000,
            ids: 1.0,
            loss: 0.0,
            duplicate: 0.0,
            restart: 0.0,
            forward: 0.0,
            timer: 0.0,
            environment: 0.0,
            thread: 0.0,
            in_order: true,
            contents: 0,
            clocks: false,
            hidden: 0.0,
            multicast: 0.0,
            spans: 0.0,
            parents: 0.5,
            links: 0.2,
        }
    }
}

/// An event, and what its record may not tell.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The record.
    pub record: EventRecord,
    /// For deliveries: the place of the send in the global order, from 0.
    pub cause: Option<u64>,
    /// For spans: the places of their parent and of the span that they link to.
    pub spans: Vec<u64>,
    /// The place of the span that it links to, if it does: one of those in `spans`.
    pub link: Option<u64>,
}

impl Generated {
    fn new(record: EventRecord) -> Self {
        Generated { record, cause: None, spans: Vec::new(), link: None }
    }
}

/// A message on its way.
#[derive(Clone)]
struct Message {
    sent: u64,
    from: u32,
    to: u32,
    via: Option<Via>,
    timer: bool,
    content: u64,
    id: Option<u64>,
    /// Whether no log tells it.
    hidden: bool,
    /// Whether it is sent to anyone.
    multicast: bool,
    /// What the sender knew.
    clock: Option<VectorClock>,
}

/// A span that began.
struct OpenSpan {
    place: u64,
    clock: Option<VectorClock>,
}

/// Who the sender is where no actor is.
const NOBODY: u32 = u32::MAX;
/// What is added to the sender of messages without order.
const THREAD: u64 = 1 << 32;

/// Generates a system's events in the global order.
pub struct Generator {
    mix: Mix,
    random: ChaCha8Rng,
    made: u64,
    incarnations: Vec<(u32, u64)>,
    outside: u64,
    channels: FxHashMap<(u64, u32), VecDeque<Message>>,
    busy: Vec<(u64, u32)>,
    pending: usize,
    /// By actor: its clock, where records have clocks.
    clocks: Vec<VectorClock>,
    spans: Vec<OpenSpan>,
    out: VecDeque<Generated>,
}

impl Generator {
    /// A generator of that kind of system.
    #[must_use]
    pub fn new(mix: &Mix) -> Self {
        Generator {
            random: ChaCha8Rng::seed_from_u64(mix.seed),
            made: 0,
            incarnations: vec![(0, 0); mix.actors as usize],
            outside: 0,
            channels: FxHashMap::default(),
            busy: Vec::new(),
            pending: 0,
            clocks: vec![VectorClock::new(); mix.actors as usize],
            spans: Vec::new(),
            out: VecDeque::new(),
            mix: mix.clone(),
        }
    }

    fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.random_bool(share)
    }

    fn name(actor: u32) -> String {
        if actor == NOBODY { DEAD_LETTERS.into() } else { format!("actor-{actor:05}") }
    }

    fn record(&mut self, actor: u32, kind: Kind) -> EventRecord {
        self.made += 1;
        if actor == NOBODY {
            self.outside += 1;
            return EventRecord::new(ENVIRONMENT, self.outside, kind);
        }
        let incarnation = &mut self.incarnations[actor as usize];
        incarnation.1 += 1;
        let seq = if self.mix.spans > 0.0 { FIRST_CLOCK_SEQ + 1000 * self.made } else { incarnation.1 };
        let mut record = EventRecord::new(Self::name(actor), seq, kind);
        record.incarnation = incarnation.0;
        record.source = Some(format!("logs/{}.jsonl", record.actor));
        record.offset = Some(incarnation.1 * 200);
        record
    }

    /// Counts an event in its actor's clock, after what the actor has heard of.
    fn tick(&mut self, actor: u32, record: &mut EventRecord, heard: Option<&VectorClock>) {
        if !self.mix.clocks {
            return;
        }
        self.hear(actor, heard);
        let clock = &mut self.clocks[actor as usize];
        *clock.entry(Self::name(actor)).or_default() += 1;
        record.vector_clock = Some(clock.clone());
    }

    /// An actor hears of what another knew.
    fn hear(&mut self, actor: u32, heard: Option<&VectorClock>) {
        let clock = &mut self.clocks[actor as usize];
        for (name, count) in heard.into_iter().flatten() {
            let known = clock.entry(name.clone()).or_default();
            *known = (*known).max(*count);
        }
    }

    /// Something that the actor does by itself.
    fn by_itself(&mut self, actor: u32, kind: Kind) -> EventRecord {
        let mut record = self.record(actor, kind);
        self.tick(actor, &mut record, None);
        record
    }

    /// A span begins.
    fn span(&mut self, actor: u32) {
        let place = self.made;
        let mut record = self.record(actor, Kind::Local);
        let mut other = |share: f64| {
            let any = !self.spans.is_empty() && self.random.random_bool(share);
            any.then(|| self.random.random_range(0..self.spans.len()))
        };
        let (parent, link) = (other(self.mix.parents), other(self.mix.links));
        let (trace, id) =
            (format!("{:032x}", self.mix.seed | 1 << 60), |place: u64| format!("{:016x}", place + 1));
        let mut put = |name: &str, value: serde_json::Value| record.attrs.insert(name.to_owned(), value);
        put("key", format!("{trace}:{}", id(place)).into());
        put("trace_id", trace.clone().into());
        put("span_id", id(place).into());
        if let Some(parent) = parent {
            put("parent_span_id", id(self.spans[parent].place).into());
        }
        if let Some(link) = link {
            let link = serde_json::json!({"trace_id": trace, "span_id": id(self.spans[link].place)});
            put("links", serde_json::json!([link]));
        }
        let causes: Vec<usize> = [parent, link].into_iter().flatten().collect();
        let mut heard = VectorClock::new();
        for (name, count) in causes.iter().filter_map(|&cause| self.spans[cause].clock.as_ref()).flatten() {
            let known = heard.entry(name.clone()).or_default();
            *known = (*known).max(*count);
        }
        self.tick(actor, &mut record, Some(&heard));
        let link = link.map(|link| self.spans[link].place);
        let spans = causes.into_iter().map(|cause| self.spans[cause].place).collect();
        self.spans.push(OpenSpan { place, clock: record.vector_clock.clone() });
        self.out.push_back(Generated { spans, link, ..Generated::new(record) });
    }

    fn dress(&mut self, record: &mut EventRecord, message: &Message, id: bool) {
        let names = ["Heartbeat", "AppendEntries", "RequestVote", "Reply"];
        record.type_ = Some(names[(message.content % 4) as usize].into());
        let term = message.content / 7;
        record.payload = Some(format!(
            "{}(term:Term({term}),prevLog:(Term({}),{}),entries:List())",
            names[(message.content % 4) as usize],
            term % 100,
            message.content
        ));
        record.from = Some(Self::name(message.from));
        record.to = Some(Self::name(message.to));
        record.msg_id = message.id.filter(|_| id).map(|id| id.to_string());
        record.external = Some(message.from == NOBODY);
        if message.timer {
            let name = format!("timer-{}", message.content % 4);
            record.timer = Some(TimerInfo { name: Some(name), ..TimerInfo::default() });
        }
    }

    fn send(&mut self, owner: u32, from: u32, to: u32, via: Option<Via>, timer: bool) {
        let content = match self.mix.contents {
            0 => self.made,
            n => u64::from(self.random.random_range(0..n)),
        };
        let plain = owner != NOBODY && via.is_none() && !timer;
        if plain && self.mix.clocks && self.chance(self.mix.hidden) {
            let clock = Some(self.clocks[owner as usize].clone());
            let id = None;
            self.queue(Message {
                sent: self.made,
                from,
                to,
                via,
                timer,
                content,
                id,
                hidden: true,
                multicast: false,
                clock,
            });
            return;
        }
        let multicast = owner != NOBODY && via.is_none() && !timer && self.chance(self.mix.multicast);
        let id = (multicast || self.chance(self.mix.ids)).then_some(self.made);
        let sent = self.made;
        let mut record = self.record(owner, if timer { Kind::TimerSet } else { Kind::Send });
        if owner != NOBODY && via != Some(Via::Thread) {
            self.tick(owner, &mut record, None);
        }
        let clock = record.vector_clock.clone();
        let message = Message { sent, from, to, via, timer, content, id, hidden: false, multicast, clock };
        self.dress(&mut record, &message, true);
        record.via = via;
        if multicast {
            record.to = Some(ANYONE.into());
        }
        self.out.push_back(Generated::new(record));
        let receivers = if multicast { self.random.random_range(1..=self.mix.actors.min(3)) } else { 1 };
        for further in 0..receivers {
            if !self.chance(self.mix.loss) {
                self.queue(Message { to: (to + further) % self.mix.actors, ..message.clone() });
            }
        }
    }

    fn queue(&mut self, message: Message) {
        let loose = message.via == Some(Via::Thread) || message.timer || message.from == NOBODY;
        let key = (u64::from(message.from) + if loose { THREAD } else { 0 }, message.to);
        let queue = self.channels.entry(key).or_default();
        if queue.is_empty() {
            self.busy.push(key);
        }
        queue.push_back(message);
        self.pending += 1;
    }

    fn deliver(&mut self) {
        let channel = self.random.random_range(0..self.busy.len());
        let key = self.busy[channel];
        let ordered = self.mix.in_order && key.0 < THREAD;
        let Some(queue) = self.channels.get_mut(&key) else { return };
        let at = if ordered { 0 } else { self.random.random_range(0..queue.len()) };
        let Some(message) = queue.remove(at) else { return };
        self.pending -= 1;
        if queue.is_empty() {
            self.busy.swap_remove(channel);
        }
        self.receive(&message);
        if !message.timer && self.chance(self.mix.duplicate) {
            self.receive(&message);
        }
    }

    fn receive(&mut self, message: &Message) {
        let actor = message.to;
        if message.hidden {
            self.hear(actor, message.clock.as_ref());
            return;
        }
        let mut record = self.record(actor, if message.timer { Kind::TimerFire } else { Kind::Receive });
        let id = self.mix.ids >= 1.0 || message.multicast || self.chance(self.mix.ids);
        self.dress(&mut record, message, id);
        self.tick(actor, &mut record, message.clock.as_ref());
        self.out.push_back(Generated { cause: Some(message.sent), ..Generated::new(record) });
        if message.from != NOBODY && !message.timer && self.chance(self.mix.forward) {
            self.send(actor, message.from, actor, Some(Via::Forward), false);
        }
        if self.chance(self.mix.timer) {
            self.send(actor, actor, actor, None, true);
        }
        let few = self.pending < 4 * self.incarnations.len();
        let sends = if few { self.random.random_range(1..=2) } else { self.random.random_range(0..=1) };
        for _ in 0..sends {
            let to = self.random.random_range(0..self.mix.actors);
            self.send(actor, actor, to, None, false);
        }
    }

    fn step(&mut self) {
        let actor = self.random.random_range(0..self.mix.actors);
        if self.incarnations[actor as usize] == (0, 0) {
            let mut record = self.by_itself(actor, Kind::Start);
            record.external = Some(true);
            self.out.push_back(Generated::new(record));
        }
        if self.chance(self.mix.restart) {
            let crash = self.by_itself(actor, Kind::Crash);
            self.incarnations[actor as usize].0 += 1;
            self.incarnations[actor as usize].1 = 0;
            let restart = self.by_itself(actor, Kind::Restart);
            self.out.extend([crash, restart].map(Generated::new));
        }
        if self.chance(self.mix.spans) {
            self.span(actor);
        }
        let to = self.random.random_range(0..self.mix.actors);
        if self.chance(self.mix.environment) {
            self.send(NOBODY, NOBODY, to, None, false);
        }
        if self.chance(self.mix.thread) {
            self.send(actor, actor, to, Some(Via::Thread), false);
        }
        if self.busy.is_empty() {
            self.send(actor, actor, to, None, false);
        } else {
            self.deliver();
        }
    }
}

impl Iterator for Generator {
    type Item = Generated;

    fn next(&mut self) -> Option<Generated> {
        loop {
            if let Some(event) = self.out.pop_front() {
                return Some(event);
            }
            match self.made.cmp(&self.mix.events) {
                std::cmp::Ordering::Less => self.step(),
                _ if self.made == u64::MAX => return None,
                _ => {
                    self.made = u64::MAX;
                    let mut record = EventRecord::new(MONITOR, 1, Kind::Violation);
                    let actors: Vec<String> = (0..self.mix.actors.min(2)).map(Self::name).collect();
                    let known =
                        actors.iter().zip(&self.incarnations).filter(|(_, l)| **l != (0, 0)).map(|(a, _)| a);
                    let affected: Vec<&String> = known.collect();
                    record.fields =
                        Some(serde_json::json!({"fingerprints": ["Broken"], "affected": affected}));
                    return Some(Generated::new(record));
                }
            }
        }
    }
}

/// Writes records as a file of the store: its columns without the partition columns, in the order given.
///
/// # Errors
/// When the file cannot be written.
pub fn write_store_file(
    path: &Path,
    records: impl IntoIterator<Item = EventRecord>,
) -> Result<(), LineageError> {
    write_file(path, records, None)
}

/// Writes records that are in the order of their names to a file that says so, as a store merges files.
///
/// # Errors
/// As [`write_store_file`].
pub fn write_sorted_file(
    path: &Path,
    records: impl IntoIterator<Item = EventRecord>,
) -> Result<(), LineageError> {
    let place = |name| record_schema().index_of(name).unwrap_or_default() as i32;
    let by = |name| SortingColumn { column_idx: place(name), descending: false, nulls_first: false };
    write_file(path, records, Some(["actor", "incarnation", "seq"].map(by).to_vec()))
}

fn write_file(
    path: &Path,
    records: impl IntoIterator<Item = EventRecord>,
    in_order: Option<Vec<SortingColumn>>,
) -> Result<(), LineageError> {
    let schema = stored_schema();
    let file = File::create(path).map_err(LineageError::io(path))?;
    let properties = writer::properties(&["msg_id", "payload"]).set_sorting_columns(in_order).build();
    let mut writer =
        ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(LineageError::table(path))?;
    let mut records = records.into_iter().peekable();
    while records.peek().is_some() {
        let rows: Vec<EventRecord> = records.by_ref().take(16 * 1024).collect();
        writer.write(&batch(&rows)?).map_err(LineageError::table(path))?;
    }
    writer.close().map_err(LineageError::table(path))?;
    Ok(())
}

/// The columns of a record, and the digest of its content.
fn stored_schema() -> SchemaRef {
    let mut fields: Vec<_> = record_schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("digest", DataType::Int64, false)));
    Arc::new(Schema::new(fields))
}

fn json<T: serde::Serialize>(value: Option<&T>) -> Option<String> {
    value.and_then(|v| serde_json::to_string(v).ok())
}

fn batch(rows: &[EventRecord]) -> Result<RecordBatch, LineageError> {
    let text = |f: &dyn Fn(&EventRecord) -> Option<String>| -> ArrayRef {
        let mut column = StringBuilder::new();
        rows.iter().for_each(|r| column.append_option(f(r)));
        Arc::new(column.finish())
    };
    let mut incarnation = Int32Builder::new();
    let mut seq = Int64Builder::new();
    let mut offset = Int64Builder::new();
    let mut line = Int64Builder::new();
    let mut external = BooleanBuilder::new();
    let mut digest = Int64Builder::new();
    for row in rows {
        digest.append_value(xxh3_64(json(Some(row)).unwrap_or_default().as_bytes()) as i64);
        incarnation.append_value(row.incarnation as i32);
        seq.append_value(row.seq as i64);
        offset.append_option(row.offset.map(|o| o as i64));
        line.append_option(row.line.map(|l| l as i64));
        external.append_option(row.external);
    }
    let columns: Vec<ArrayRef> = vec![
        text(&|r| Some(r.actor.clone())),
        Arc::new(incarnation.finish()),
        Arc::new(seq.finish()),
        text(&|r| Some(r.kind.as_str().to_owned())),
        text(&|r| r.msg_id.clone()),
        text(&|r| r.from.clone()),
        text(&|r| r.to.clone()),
        text(&|r| r.via.map(|v| v.as_str().to_owned())),
        text(&|r| json(r.timer.as_ref())),
        text(&|r| r.type_.clone()),
        text(&|r| r.payload.clone()),
        text(&|r| r.fingerprint.clone()),
        Arc::new(external.finish()),
        text(&|r| json(r.fields.as_ref())),
        text(&|r| json(r.state.as_ref())),
        // A time is stored as it was logged, as the store does it.
        text(&|r| match &r.time {
            Some(serde_json::Value::String(text)) => Some(text.clone()),
            other => json(other.as_ref()),
        }),
        text(&|r| r.source.clone()),
        Arc::new(offset.finish()),
        Arc::new(line.finish()),
        text(&|r| json(r.vector_clock.as_ref())),
        text(&|r| (!r.attrs.is_empty()).then(|| json(Some(&r.attrs))).flatten()),
        Arc::new(digest.finish()),
    ];
    Ok(RecordBatch::try_new(stored_schema(), columns)?)
}

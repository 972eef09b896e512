//! The parent relation of spans, and what they link to.
//!
//! Spans have no sequence numbers: their events are numbered by the clock of their service, and two events of one service may carry stamps
//! that are the wrong way round. A parent's start comes before the starts of its children, whatever their stamps say, and a message is
//! sent before it is received. Where stamps within a service contradict these, events change places in its log, as few as can be: those of
//! a knot, which is a strongly connected component of the graph of parents, messages and stamps (R. E. Tarjan, SIAM J. Comput. 1972).
//! Between services the relation is an edge of its own.
//!
//! A child may outlive its parent, so ends say nothing; an answer that was recorded (`#end`) is a message like others.
//!
//! **Ids that several spans have.** One client and one server that share an id are the two ends of a request (B3), whether or not the record
//! says `shared`. Any other spans with the same id are a fault of who recorded them, and which of them a child means is a guess: the last that is
//! stamped no later than the child. Such an edge is uncertain, and so is what a link tells, because a link may be added after the start.
//!
//! **Short trace ids.** Some libraries keep the lower 64 bits of a trace id alone. A trace id of 64 bits is that of 128 bits with the same lower
//! half, where there is exactly one such.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::path::Path;

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use demi_schemas::Kind;
use demi_schemas::event::is_clock_seq;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::Value;

use super::columns;
use super::events::IdHash;
use super::intern::NONE;
use super::source::{Source, columns_of, record_schema};
use crate::error::LineageError;

/// The fields of a record that identify its span.
#[derive(Deserialize)]
struct SpanFields {
    key: String,
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
    // Others than spans may have fields of these names.
    #[serde(default)]
    span_kind: Value,
    #[serde(default)]
    links: Value,
}

/// What an event tells of the span that it is of.
pub(crate) struct SpanEvent {
    /// The id of its span, with that of its trace.
    pub(crate) span: String,
    /// Whether it is the span's start.
    pub(crate) starts: bool,
    /// The span whose start comes before it: the parent of a start, and its own span of what comes later.
    pub(crate) after: Option<String>,
}

impl SpanEvent {
    /// Reads the attributes of an event; nothing where they are not those of a span.
    pub(crate) fn read(attrs: &str) -> Option<SpanEvent> {
        let named: SpanFields = serde_json::from_str(attrs).ok()?;
        let id = |span: &str| format!("{}:{span}", named.trace_id);
        let span = id(&named.span_id);
        let starts = matches!(named.key.strip_prefix(&span)?, "" | "#shared");
        let after = if starts { named.parent_span_id.as_deref().map(id) } else { Some(span.clone()) };
        Some(SpanEvent { span, starts, after })
    }
}

/// Trace ids, as far as some are the lower halves of others.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceIds {
    /// Lower halves of ids of 128 bits that stand for the whole; nothing where there are no spans.
    halves: Option<FxHashSet<u64>>,
}

impl TraceIds {
    /// The id of a span or message, `TRACE:SPAN` and what may follow, with the short form of its trace.
    pub(crate) fn short<'a>(&self, id: &'a str) -> &'a str {
        let Some(halves) = &self.halves else { return id };
        if id.as_bytes().get(32) != Some(&b':') {
            return id;
        }
        match trace(&id[..32]) {
            Some((0, _)) => &id[16..],
            Some((_, low)) if halves.contains(&low) => &id[16..],
            _ => id,
        }
    }

    /// The hash of an id.
    pub(crate) fn hash(&self, id: &str) -> IdHash {
        IdHash::of(self.short(id))
    }

    fn span(&self, trace: &str, span: &str) -> IdHash {
        self.hash(&format!("{trace}:{span}"))
    }
}

/// The upper and lower half of a trace id; nothing where it is no number of 64 or 128 bits.
fn trace(text: &str) -> Option<(u64, u64)> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    match text.len() {
        16 => Some((0, number(text)?)),
        32 => Some((number(&text[..16])?, number(&text[16..])?)),
        _ => None,
    }
}

/// The side of a request on which a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
    /// Neither, or unknown.
    Other,
}

/// An event that is the start of a span.
#[derive(Clone, Copy, Debug)]
struct Start {
    row: u32,
    side: Side,
    /// Whether it says that it shares the client's id.
    shared: bool,
}

/// The two ends of a request that share their id: the client's start and the server's.
fn pair(starts: &[Start]) -> Option<(Start, Start)> {
    match *starts {
        [a, b] if a.side == Side::Client && b.side == Side::Server => Some((a, b)),
        [a, b] if a.side == Side::Server && b.side == Side::Client => Some((b, a)),
        // Which kind the other has may be unknown, but one says that it shares.
        [a, b] if b.shared && !a.shared => Some((a, b)),
        [a, b] if a.shared && !b.shared => Some((b, a)),
        _ => None,
    }
}

/// A relation of a span to another one.
struct SpanRelation {
    /// Its start.
    row: u32,
    /// The other span.
    other: IdHash,
    /// Whether the other has its own id.
    own: bool,
}

/// The spans of the files; events are rows of the files.
#[derive(Default)]
pub(super) struct Spans {
    traces: TraceIds,
    /// By id the start that was read first, and all of them where there are several.
    starts: FxHashMap<IdHash, Start>,
    several: FxHashMap<IdHash, Vec<Start>>,
    parents: Vec<SpanRelation>,
    links: Vec<SpanRelation>,
    /// Answers at the end of a span.
    ends: Vec<(u32, IdHash)>,
    /// By message: the send, or [`NONE`] where there are several.
    sends: FxHashMap<IdHash, u32>,
    receives: Vec<(u32, IdHash)>,
    /// Lower halves of trace ids: of those that have no more, and of those with an upper half, which is there unless there are several.
    halves: FxHashSet<u64>,
    wholes: FxHashMap<u64, Option<u64>>,
}

/// Edges between events that spans give; events are known by their rows.
#[derive(Default)]
pub(super) struct SpanOrder {
    /// Whether there are spans.
    pub(super) any: bool,
    /// How trace ids are told apart.
    pub(super) traces: TraceIds,
    /// What comes before what in another log.
    pub(super) edges: Vec<SpanEdge>,
    /// Receives of what their spans' clients sent, with the id of that.
    pub(super) requests: Vec<(u32, IdHash)>,
    /// What is odd, with an event for an example.
    pub(super) odd: Vec<(SpanAnomaly, u64, u32)>,
}

/// An edge between spans of different logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpanEdge {
    cause: u32,
    effect: u32,
    /// Whether it is what a link tells, and no parent.
    link: bool,
    certain: bool,
}

impl SpanEdge {
    /// The earlier end.
    pub(crate) fn cause(&self) -> u32 {
        self.cause
    }

    /// The later end.
    pub(crate) fn effect(&self) -> u32 {
        self.effect
    }

    /// The edge between the events of its rows.
    pub(super) fn of_events(self, event: impl Fn(u32) -> u32) -> SpanEdge {
        SpanEdge { cause: event(self.cause), effect: event(self.effect), ..self }
    }

    /// Whether a link of a span gives it.
    pub(crate) fn is_link(&self) -> bool {
        self.link
    }

    /// Whether no other span could be meant.
    pub(crate) fn is_certain(&self) -> bool {
        self.certain
    }
}

/// An anomaly of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanAnomaly {
    /// Several spans may be the parent.
    Ambiguous,
    /// Parents are in a circle.
    Circle,
    /// A link leads to a span that is in no log, or to a later one of the same log.
    Unused,
}

impl SpanAnomaly {
    /// A sentence about `count` of them, the first of which is `first`.
    pub(super) fn text(self, count: u64, first: &str) -> String {
        match self {
            SpanAnomaly::Ambiguous => format!(
                "the parents of {count} spans have ids that several spans have (first {first}): which of them is meant is a guess, and its edge \
                 is uncertain"
            ),
            SpanAnomaly::Circle => {
                format!(
                    "{count} spans are among their own ancestors (first {first}); the edge that closes the circle was dropped"
                )
            }
            SpanAnomaly::Unused => format!(
                "{count} links give no order (first {first}): the spans that they name are in no log, or are later ones of the same log"
            ),
        }
    }
}

/// Reads what spans tell, where there may be some: some event is numbered by a clock.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn read(files: &[SealedFile], seq: &[u64]) -> Result<Spans, LineageError> {
    if !seq.iter().any(|&seq| is_clock_seq(seq)) {
        return Ok(Spans::default());
    }
    let traces = TraceIds { halves: Some(FxHashSet::default()) };
    let mut spans = read_with(files, seq, traces)?;
    let whole = |half: &u64| matches!(spans.wholes.get(half), Some(Some(_)));
    let halves: FxHashSet<u64> = spans.halves.iter().filter(|half| whole(half)).copied().collect();
    if !halves.is_empty() {
        spans = read_with(files, seq, TraceIds { halves: Some(halves) })?;
    }
    Ok(spans)
}

fn read_with(files: &[SealedFile], seq: &[u64], traces: TraceIds) -> Result<Spans, LineageError> {
    let wanted = columns_of(&record_schema(), &["kind", "msg_id", "attrs"]);
    let (mut spans, mut row) = (Spans { traces, ..Spans::default() }, 0);
    for path in files {
        for batch in Source::open(path, &wanted)? {
            spans.add(&batch?, &mut row, seq).map_err(in_file(path.path()))?;
        }
    }
    Ok(spans)
}

fn in_file(path: &Path) -> impl FnOnce(LineageError) -> LineageError + '_ {
    move |e| match e {
        LineageError::Arrow(e) => LineageError::table(path)(e),
        other => other,
    }
}

impl Spans {
    fn add(&mut self, batch: &RecordBatch, row: &mut u32, seq: &[u64]) -> Result<(), LineageError> {
        let kind = columns::text(batch, "kind")?;
        let message = columns::text(batch, "msg_id")?;
        let attrs = columns::text(batch, "attrs")?;
        for i in 0..batch.num_rows() {
            let here = *row;
            *row += 1;
            if !seq.get(here as usize).is_some_and(|&seq| is_clock_seq(seq)) {
                continue;
            }
            let named = columns::at(attrs, i).and_then(|text| serde_json::from_str::<SpanFields>(text).ok());
            let Some(named) = named else { continue };
            let own = format!("{}:{}", named.trace_id, named.span_id);
            let Some(part) = named.key.strip_prefix(&own) else { continue };
            self.note(&named.trace_id);
            let own = self.traces.hash(&own);
            let message = columns::at(message, i).map(|id| self.traces.hash(id));
            let receives = kind.value(i) == Kind::Receive.as_str();
            if let Some(message) = message {
                if receives {
                    self.receives.push((here, message));
                } else {
                    self.sends.entry(message).and_modify(|send| *send = NONE).or_insert(here);
                }
            }
            if part == "#end" {
                self.ends.push((here, own));
                continue;
            }
            if part.is_empty() || part == "#shared" {
                let shared = part == "#shared";
                let side = match named.span_kind.as_str() {
                    Some("client") if !receives => Side::Client,
                    Some("server") if receives => Side::Server,
                    _ => Side::Other,
                };
                let start = Start { row: here, side, shared };
                match self.starts.entry(own) {
                    Entry::Vacant(entry) => {
                        entry.insert(start);
                    }
                    Entry::Occupied(first) => {
                        self.several.entry(own).or_insert_with(|| vec![*first.get()]).push(start);
                    }
                }
            }
            if let Some(parent) = &named.parent_span_id {
                let other = self.traces.span(&named.trace_id, parent);
                self.parents.push(SpanRelation { row: here, other, own: other == own });
            }
            for link in named.links.as_array().into_iter().flatten() {
                let text = |name| link.get(name).and_then(Value::as_str);
                let (Some(trace), Some(span)) = (text("trace_id"), text("span_id")) else { continue };
                let other = self.traces.span(trace, span);
                self.links.push(SpanRelation { row: here, other, own: other == own });
            }
        }
        Ok(())
    }

    /// The starts of spans with an id.
    fn starts(&self, id: &IdHash) -> &[Start] {
        match self.several.get(id) {
            Some(several) => several,
            None => self.starts.get(id).map_or(&[], std::slice::from_ref),
        }
    }

    /// Takes note of a trace id.
    fn note(&mut self, id: &str) {
        match trace(id) {
            Some((0, low)) => {
                self.halves.insert(low);
            }
            Some((high, low)) => {
                let whole = self.wholes.entry(low).or_insert(Some(high));
                if *whole != Some(high) {
                    *whole = None;
                }
            }
            None => {}
        }
    }

    /// That there are spans, and nothing of what they tell.
    pub(super) fn without_order(self) -> SpanOrder {
        SpanOrder { any: !self.starts.is_empty(), traces: self.traces, ..SpanOrder::default() }
    }

    /// Resolves the relations, and changes places within logs where stamps contradict parents and messages.
    pub(super) fn settle(self, logs: &mut Logs<'_>) -> SpanOrder {
        if self.starts.is_empty() {
            return self.without_order();
        }
        let mut place = vec![0_u32; logs.rows.len()];
        logs.rows.iter().enumerate().for_each(|(at, &row)| place[row as usize] = at as u32);
        let mut found = Resolver::new(&self, logs, &place);
        found.requests();
        found.parents();
        found.links();
        found.messages();
        let (mut told, mut strong) = (found.told, found.strong);
        strong.sort_unstable();
        strong.dedup();
        let dropped = settle(strong, logs);
        if !dropped.is_empty() {
            // Events are still known by the places that they had.
            let is_dropped =
                |cause: u32, effect: u32| dropped.contains(&(place[cause as usize], place[effect as usize]));
            told.edges.retain(|edge| edge.link || !is_dropped(edge.cause, edge.effect));
            let mut found = Resolver::new(&self, logs, &place);
            let closing = |relation: &&SpanRelation| match found.meant(relation) {
                Resolution::One(parent) => is_dropped(parent, relation.row),
                _ => false,
            };
            let circles = self.parents.iter().filter(closing).map(|relation| relation.row).collect();
            found.note(SpanAnomaly::Circle, circles);
            told.odd.append(&mut found.told.odd);
        }
        // The same edge may be told by a parent and by a link.
        told.edges.sort_unstable_by_key(|edge| (edge.cause, edge.effect, !edge.certain, edge.link));
        told.edges.dedup_by_key(|edge| (edge.cause, edge.effect));
        told
    }
}

/// Resolves relations from ids to events.
struct Resolver<'a> {
    spans: &'a Spans,
    /// By row: its place in the order of the stamps, and the log of each place.
    place: &'a [u32],
    bounds: &'a [u32],
    seq: &'a [u64],
    told: SpanOrder,
    /// Cause and effect by places: parents and messages that are certain, within a log and between logs.
    strong: Vec<(u32, u32)>,
}

/// The rows that an id leads to.
enum Resolution {
    Nothing,
    /// This row.
    One(u32),
    /// One of several rows; the likeliest, if one is not stamped later.
    Guess(Option<u32>),
}

impl<'a> Resolver<'a> {
    fn new(spans: &'a Spans, logs: &Logs<'a>, place: &'a [u32]) -> Self {
        let told = SpanOrder { any: true, traces: spans.traces.clone(), ..SpanOrder::default() };
        Resolver { spans, place, bounds: logs.bounds, seq: logs.seq, told, strong: Vec::new() }
    }

    fn log(&self, row: u32) -> usize {
        self.bounds.partition_point(|&first| first <= self.place[row as usize])
    }

    /// The start that an event means with an id.
    fn meant(&self, relation: &SpanRelation) -> Resolution {
        let (row, starts) = (relation.row, self.spans.starts(&relation.other));
        let here = || self.log(row);
        if let Some((client, server)) = pair(starts) {
            let here = here();
            // Of the two the one in the same log is meant, else the client, which is the first of them.
            let own = |start: Start| self.log(start.row) == here;
            let found = if own(server) && !own(client) { server } else { client };
            return match found.row == row {
                false => Resolution::One(found.row),
                true if row == server.row => Resolution::One(client.row),
                true => Resolution::Nothing,
            };
        }
        let others: Vec<u32> = starts.iter().map(|start| start.row).filter(|&other| other != row).collect();
        match others[..] {
            [] => Resolution::Nothing,
            [only] if !relation.own => Resolution::One(only),
            _ => {
                let key = |row: &u32| (self.seq[*row as usize], self.place[*row as usize]);
                let earlier = others.iter().copied().filter(|other| key(other) < key(&row));
                // One in the same log is likelier than any other.
                Resolution::Guess(earlier.max_by_key(|other| (self.log(*other) == here(), key(other))))
            }
        }
    }

    /// A server takes what the client that shares its id sent.
    fn requests(&mut self) {
        let mut requests = Vec::new();
        for (&id, starts) in &self.spans.several {
            if let Some((client, server)) = pair(starts)
                && client.side == Side::Client
                && server.side == Side::Server
                && !server.shared
            {
                requests.push((server.row, id));
                self.strong.push((self.place[client.row as usize], self.place[server.row as usize]));
            }
        }
        requests.sort_unstable();
        self.told.requests = requests;
    }

    fn parents(&mut self) {
        let mut guessed = Vec::new();
        for relation in &self.spans.parents {
            let (parent, certain) = match self.meant(relation) {
                Resolution::Nothing => continue,
                Resolution::One(parent) => (parent, true),
                Resolution::Guess(parent) => {
                    guessed.push(relation.row);
                    let Some(parent) = parent else { continue };
                    (parent, false)
                }
            };
            if certain {
                self.strong.push((self.place[parent as usize], self.place[relation.row as usize]));
            }
            if self.log(parent) != self.log(relation.row) {
                self.told.edges.push(SpanEdge { cause: parent, effect: relation.row, link: false, certain });
            }
        }
        self.note(SpanAnomaly::Ambiguous, guessed);
    }

    fn links(&mut self) {
        let mut unused = Vec::new();
        for relation in &self.spans.links {
            let row = relation.row;
            match self.meant(relation) {
                Resolution::One(other) | Resolution::Guess(Some(other))
                    if self.log(other) != self.log(row) =>
                {
                    self.told.edges.push(SpanEdge { cause: other, effect: row, link: true, certain: false });
                }
                // The log has it.
                Resolution::One(other) | Resolution::Guess(Some(other))
                    if self.place[other as usize] < self.place[row as usize] => {}
                _ => unused.push(row),
            }
        }
        self.note(SpanAnomaly::Unused, unused);
    }

    fn note(&mut self, odd: SpanAnomaly, mut rows: Vec<u32>) {
        rows.sort_unstable_by_key(|&row| self.place[row as usize]);
        if let Some(&first) = rows.first() {
            self.told.odd.push((odd, rows.len() as u64, first));
        }
    }

    fn messages(&mut self) {
        let spans = self.spans;
        for (row, span) in &spans.ends {
            let relation = SpanRelation { row: *row, other: *span, own: false };
            // An answer stands in the log of its span.
            if let Resolution::One(start) = self.meant(&relation)
                && self.log(start) == self.log(*row)
            {
                self.strong.push((self.place[start as usize], self.place[*row as usize]));
            }
        }
        for (row, message) in &spans.receives {
            match spans.sends.get(message) {
                Some(&send) if send != NONE => {
                    self.strong.push((self.place[send as usize], self.place[*row as usize]));
                }
                _ => {}
            }
        }
    }
}

/// Changes places within logs where stamps contradict what must be so, which is given by places. Gives what was dropped, because it closed a
/// circle.
fn settle(strong: Vec<(u32, u32)>, logs: &mut Logs<'_>) -> FxHashSet<(u32, u32)> {
    let mut dropped = FxHashSet::default();
    if strong.is_empty() {
        return dropped;
    }
    let graph = RequiredEdges { edges: strong, begins: logs.begins() };
    let left = graph.unsorted(logs.rows.len());
    if !left.is_empty() {
        for knot in graph.knots(&left) {
            graph.untie(&knot, logs, &mut dropped);
        }
    }
    dropped
}

/// Rows in the order of the logs that they are in.
pub(super) struct Logs<'a> {
    /// By place: the row.
    rows: &'a mut [u32],
    /// First place of each log; one more entry closes the last.
    bounds: &'a [u32],
    /// By row: the sequence number.
    seq: &'a [u64],
}

impl<'a> Logs<'a> {
    /// Rows by place, the first place of each log and one more, and sequence numbers by row.
    pub(super) fn new(rows: &'a mut [u32], bounds: &'a [u32], seq: &'a [u64]) -> Logs<'a> {
        Logs { rows, bounds, seq }
    }
}

impl Logs<'_> {
    /// By place: whether a log begins there.
    fn begins(&self) -> Vec<bool> {
        let mut begins = vec![false; self.rows.len()];
        for &first in self.bounds {
            if let Some(begins) = begins.get_mut(first as usize) {
                *begins = true;
            }
        }
        begins
    }
}

/// Edges that must hold, by places, sorted by their causes.
struct RequiredEdges {
    edges: Vec<(u32, u32)>,
    /// By place: whether a log begins there.
    begins: Vec<bool>,
}

impl RequiredEdges {
    fn effects(&self, cause: u32) -> impl Iterator<Item = u32> + '_ {
        let from = self.edges.partition_point(|&(c, _)| c < cause);
        self.edges[from..].iter().take_while(move |(c, _)| *c == cause).map(|(_, effect)| *effect)
    }

    /// The place behind, in the same log.
    fn next(&self, place: u32) -> Option<u32> {
        let next = place + 1;
        self.begins.get(next as usize).is_some_and(|begins| !begins).then_some(next)
    }

    /// The places in or behind a cycle: what is left when everything is taken whose causes are taken (A. B. Kahn, CACM 1962).
    fn unsorted(&self, places: usize) -> Vec<u32> {
        let mut open: Vec<u32> = self.begins.iter().map(|begins| u32::from(!begins)).collect();
        self.edges.iter().for_each(|(_, effect)| open[*effect as usize] += 1);
        let mut ready: Vec<u32> = (0..places as u32).filter(|&p| open[p as usize] == 0).collect();
        while let Some(place) = ready.pop() {
            for effect in self.effects(place).chain(self.next(place)) {
                let open = &mut open[effect as usize];
                *open -= 1;
                if *open == 0 {
                    ready.push(effect);
                }
            }
        }
        (0..places as u32).filter(|&p| open[p as usize] > 0).collect()
    }

    /// The places of each knot, sorted.
    fn knots(&self, left: &[u32]) -> Vec<Vec<u32>> {
        let mut graph: DiGraph<u32, ()> = DiGraph::with_capacity(left.len(), 2 * left.len());
        let nodes: FxHashMap<u32, NodeIndex> = left.iter().map(|&p| (p, graph.add_node(p))).collect();
        for &place in left {
            for effect in self.effects(place).chain(self.next(place)) {
                if let Some(&effect) = nodes.get(&effect) {
                    graph.add_edge(nodes[&place], effect, ());
                }
            }
        }
        let knots = tarjan_scc(&graph).into_iter().filter(|knot| knot.len() > 1);
        let mut knots: Vec<Vec<u32>> =
            knots.map(|knot| knot.into_iter().map(|node| graph[node]).collect()).collect();
        knots.iter_mut().for_each(|knot| knot.sort_unstable());
        knots.sort_unstable();
        knots
    }

    /// Orders the events of a knot: the earliest stamp first among those all of whose causes are there, and where there is none, among
    /// those of which only stamps say that they are later. Parents in a circle lose an edge, which goes to `dropped`.
    fn untie(&self, knot: &[u32], logs: &mut Logs<'_>, dropped: &mut FxHashSet<(u32, u32)>) {
        let at = |place: u32| knot.binary_search(&place).ok();
        let (mut strong, mut weak) = (vec![0_u32; knot.len()], vec![0_u32; knot.len()]);
        for &place in knot {
            self.effects(place).filter_map(at).for_each(|i| strong[i] += 1);
            if let Some(i) = self.next(place).and_then(at) {
                weak[i] += 1;
            }
        }
        let key = |i: usize| (logs.seq[logs.rows[knot[i] as usize] as usize], i);
        let mut left: BTreeSet<_> = (0..knot.len()).map(key).collect();
        let mut free: BTreeSet<_> = left.iter().copied().filter(|&(_, i)| strong[i] == 0).collect();
        let mut ready: BTreeSet<_> = free.iter().copied().filter(|&(_, i)| weak[i] == 0).collect();
        let mut order = Vec::with_capacity(knot.len());
        while let Some(&next) = ready.first().or(free.first()).or(left.first()) {
            if strong[next.1] > 0 {
                let causes = left.iter().map(|&(_, i)| knot[i]);
                let mine = |cause: &u32| self.effects(*cause).any(|effect| effect == knot[next.1]);
                dropped.extend(causes.filter(mine).map(|cause| (cause, knot[next.1])));
            }
            for set in [&mut left, &mut free, &mut ready] {
                set.remove(&next);
            }
            order.push(next.1);
            for i in self.effects(knot[next.1]).filter_map(at) {
                strong[i] = strong[i].saturating_sub(1);
                if strong[i] == 0 && left.contains(&key(i)) {
                    free.insert(key(i));
                }
            }
            if let Some(i) = self.next(knot[next.1]).and_then(at) {
                weak[i] = 0;
            }
            let now_ready = self.effects(knot[next.1]).chain(self.next(knot[next.1])).filter_map(at);
            ready.extend(now_ready.map(key).filter(|k| weak[k.1] == 0 && free.contains(k)));
        }
        // The places of a log that are in a knot stand side by side.
        let mut runs: Vec<usize> = Vec::with_capacity(knot.len());
        for (i, &place) in knot.iter().enumerate() {
            let begins = i == 0 || self.next(knot[i - 1]) != Some(place);
            runs.push(if begins { i } else { runs[i - 1] });
        }
        let rows: Vec<u32> = knot.iter().map(|&place| logs.rows[place as usize]).collect();
        let mut filled = vec![0; knot.len()];
        for i in order {
            let run = runs[i];
            logs.rows[knot[run + filled[run]] as usize] = rows[i];
            filled[run] += 1;
        }
    }
}

#[cfg(test)]
#[path = "parents_tests.rs"]
mod tests;

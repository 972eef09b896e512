//! The parent relation of spans.
//!
//! Spans have no sequence numbers: their events are numbered by the clock of their service, and two events of one service may carry stamps
//! that are the wrong way round. A parent's start comes before the starts of its children, whatever their stamps say, and a message is
//! sent before it is received. Where stamps within a service contradict these, events change places in its log, as few as can be: those of
//! a knot, which is a strongly connected component of the graph of parents, messages and stamps (R. E. Tarjan, SIAM J. Comput. 1972).
//! Between services the relation is an edge of its own.
//!
//! A child may outlive its parent, so ends say nothing; an answer that was recorded (`#end`) is a message like others.

use std::collections::BTreeSet;
use std::path::Path;

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use demi_schemas::Kind;
use demi_schemas::event::is_clock_seq;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use super::columns;
use super::events::IdHash;
use super::intern::NONE;
use super::source::{Source, columns_of, record_schema};
use crate::error::LineageError;

/// What a record says of its span.
#[derive(Deserialize)]
struct Named {
    key: String,
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
}

/// Events by the span that they are the start of.
#[derive(Clone, Copy)]
struct Starts {
    plain: u32,
    /// That of the server, which shares the client's id in Zipkin.
    shared: u32,
}

/// What is read of spans; events are rows of the files.
#[derive(Default)]
struct Spans {
    starts: FxHashMap<IdHash, Starts>,
    /// A child, its parent's id, and whether it received a message from the parent.
    children: Vec<(u32, IdHash, bool)>,
    /// Answers at the end of a span.
    ends: Vec<(u32, IdHash)>,
    /// By message: the send, or [`NONE`] where there are several.
    sends: FxHashMap<IdHash, u32>,
    receives: Vec<(u32, IdHash)>,
}

/// What must come before what; events are rows of the files.
#[derive(Default)]
pub(super) struct Parents {
    /// Cause and effect.
    edges: Vec<(u32, u32)>,
    /// Those of them that are a parent and a child, and no message tells it.
    told_by_parents: Vec<(u32, u32)>,
    /// Whether a record names a parent.
    pub(super) any: bool,
}

/// Reads the relation, where there may be one: some event is numbered by a clock.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn read(files: &[SealedFile], actor: &[u32], seq: &[u64]) -> Result<Parents, LineageError> {
    if !seq.iter().any(|&seq| is_clock_seq(seq)) {
        return Ok(Parents::default());
    }
    let wanted = columns_of(&record_schema(), &["kind", "msg_id", "attrs"]);
    let (mut spans, mut row) = (Spans::default(), 0);
    for path in files {
        for batch in Source::open(path, &wanted)? {
            spans.add(&batch?, &mut row, seq).map_err(in_file(path.path()))?;
        }
    }
    Ok(spans.parents(actor))
}

fn in_file(path: &Path) -> impl FnOnce(LineageError) -> LineageError + '_ {
    move |e| match e {
        LineageError::Arrow(e) => LineageError::table(path)(e),
        other => other,
    }
}

fn id(trace: &str, span: &str) -> IdHash {
    IdHash::of(&format!("{trace}:{span}"))
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
            let named = columns::at(attrs, i).and_then(|text| serde_json::from_str::<Named>(text).ok());
            let Some(named) = named else { continue };
            let own = format!("{}:{}", named.trace_id, named.span_id);
            let Some(part) = named.key.strip_prefix(&own) else { continue };
            let own = IdHash::of(&own);
            let message = columns::at(message, i).map(IdHash::of);
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
                let starts = self.starts.entry(own).or_insert(Starts { plain: NONE, shared: NONE });
                *(if part.is_empty() { &mut starts.plain } else { &mut starts.shared }) = here;
            }
            if let Some(parent) = &named.parent_span_id {
                let parent = id(&named.trace_id, parent);
                self.children.push((here, parent, receives && message == Some(parent)));
            }
        }
        Ok(())
    }

    fn parents(self, actor: &[u32]) -> Parents {
        let mut parents = Parents { any: !self.children.is_empty(), ..Parents::default() };
        // Of the two that share an id the one in the same log is meant, else the client, which is the first of them.
        let start = |span: &IdHash, row: u32| {
            let Starts { plain, shared } = *self.starts.get(span)?;
            let own = |other: u32| other != NONE && actor[other as usize] == actor[row as usize];
            let found = if plain == NONE || own(shared) && !own(plain) { shared } else { plain };
            (found != row).then_some(found)
        };
        for &(child, ref span, by_message) in &self.children {
            if let Some(parent) = start(span, child) {
                parents.edges.push((parent, child));
                if !by_message && actor[parent as usize] != actor[child as usize] {
                    parents.told_by_parents.push((parent, child));
                }
            }
        }
        parents.edges.extend(self.ends.iter().filter_map(|(row, span)| Some((start(span, *row)?, *row))));
        let sent = |(row, message): &(u32, IdHash)| {
            let send = *self.sends.get(message)?;
            (send != NONE).then_some((send, *row))
        };
        parents.edges.extend(self.receives.iter().filter_map(sent));
        parents.edges.sort_unstable();
        parents.edges.dedup();
        parents
    }
}

/// Rows in the order of the logs that they are in.
pub(super) struct Logs<'a> {
    /// By place: the row.
    pub(super) rows: &'a mut [u32],
    /// First place of each log; one more entry closes the last.
    pub(super) bounds: &'a [u32],
    /// By row: the sequence number.
    pub(super) seq: &'a [u64],
}

impl Parents {
    /// Changes places within logs where stamps contradict the relation. Gives the edges between logs that no message tells, as rows.
    pub(super) fn settle(self, logs: &mut Logs<'_>) -> Vec<(u32, u32)> {
        let Parents { edges, told_by_parents, .. } = self;
        if edges.is_empty() {
            return told_by_parents;
        }
        let mut place = vec![0_u32; logs.rows.len()];
        logs.rows.iter().enumerate().for_each(|(at, &row)| place[row as usize] = at as u32);
        let mut edges: Vec<(u32, u32)> =
            edges.into_iter().map(|(a, b)| (place[a as usize], place[b as usize])).collect();
        edges.sort_unstable();
        let graph = Strong { edges, begins: logs.begins() };
        let left = graph.unsorted(logs.rows.len());
        if left.is_empty() {
            return told_by_parents;
        }
        let mut dropped = FxHashSet::default();
        for knot in graph.knots(&left) {
            graph.untie(&knot, logs, &mut dropped);
        }
        let kept = |(a, b): &(u32, u32)| !dropped.contains(&(place[*a as usize], place[*b as usize]));
        told_by_parents.into_iter().filter(kept).collect()
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

/// What must be so, by places: edges sorted by their causes.
struct Strong {
    edges: Vec<(u32, u32)>,
    /// By place: whether a log begins there.
    begins: Vec<bool>,
}

impl Strong {
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

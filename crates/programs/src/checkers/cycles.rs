//! Transactions: what of Adya's phenomena their history shows.
//!
//! As Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020): values that are written once, and
//! reads of whole lists, tell in which order versions came. Transactions then depend on each other (Adya, "Weak Consistency", 1999):
//! one overwrites what another wrote (ww), reads it (wr), or overwrites what another read (rw). A circle of dependencies names the anomaly.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::anomaly::{Anomaly, canonical};
use crate::history::{Done, Fate};

/// What transactions are promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consistency {
    /// Writes of two transactions come in one order.
    ReadUncommitted,
    /// Only what was committed is read.
    ReadCommitted,
    /// Every transaction reads one snapshot, and of two at once that write the same only one commits.
    SnapshotIsolation,
    /// As if one came after the other.
    Serializable,
    /// The same, and nobody comes before one that had ended when it began.
    StrictSerializable,
}

impl Consistency {
    /// Names, the weakest first.
    pub const NAMES: [&str; 5] =
        ["read-uncommitted", "read-committed", "snapshot-isolation", "serializable", "strict-serializable"];

    /// That of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Consistency> {
        use Consistency::{
            ReadCommitted, ReadUncommitted, Serializable, SnapshotIsolation, StrictSerializable,
        };
        let all = [ReadUncommitted, ReadCommitted, SnapshotIsolation, Serializable, StrictSerializable];
        let place = Consistency::NAMES.iter().position(|known| *known == name)?;
        all.get(place).copied()
    }
}

/// How one transaction depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Ww,
    Wr,
    Rw,
    /// It began after the other had ended.
    Time,
}

/// What a transaction does, in its order.
enum Op {
    /// Nothing where nobody knows what it read.
    Read(String, Option<Value>),
    Write(String, Value),
}

struct Txn<'a> {
    done: &'a Done,
    ops: Vec<Op>,
}

impl Txn<'_> {
    fn committed(&self) -> bool {
        matches!(self.done.fate, Fate::Done(_))
    }

    fn aborted(&self) -> bool {
        matches!(self.done.fate, Fate::Refused(_))
    }
}

/// Where a value comes from.
#[derive(Clone, Copy)]
struct Writer {
    txn: usize,
    /// Whether its transaction wrote nothing to the key after it.
    last: bool,
}

type Writers = FxHashMap<(String, String), Writer>;

/// Transactions of a history: `write` is what writing is called.
fn transactions<'a>(operations: &'a [Done], write: &str) -> Vec<Txn<'a>> {
    let txns = operations.iter().map(|done| {
        let (value, read) = match &done.fate {
            Fate::Done(value) => (value, true),
            _ => (&done.value, false),
        };
        let ops = value.as_array().into_iter().flatten().filter_map(|op| {
            let [f, key, value] = op.as_array()?.as_slice() else { return None };
            let (f, key) = (f.as_str()?, canonical(key));
            match f {
                "r" => Some(Op::Read(key, read.then(|| value.clone()))),
                _ if f == write => Some(Op::Write(key, value.clone())),
                _ => None,
            }
        });
        Txn { done, ops: ops.collect() }
    });
    txns.collect()
}

/// Who wrote each value; those that were written twice are of no use, and are named.
fn writers(txns: &[Txn<'_>], found: &mut Vec<Anomaly>) -> Writers {
    let mut all = Writers::default();
    let mut twice: BTreeSet<(String, String)> = BTreeSet::new();
    for (txn, one) in txns.iter().enumerate() {
        let mut last: FxHashMap<&str, &Value> = FxHashMap::default();
        for op in &one.ops {
            if let Op::Write(key, value) = op {
                if let Some(before) = last.insert(key, value)
                    && let Some(writer) = all.get_mut(&(key.clone(), canonical(before)))
                {
                    writer.last = false;
                }
                if all.insert((key.clone(), canonical(value)), Writer { txn, last: true }).is_some() {
                    twice.insert((key.clone(), canonical(value)));
                }
            }
        }
    }
    for of in twice {
        found.push(Anomaly::new("duplicate writes", format!("{} of {} is written twice", of.1, of.0)));
        all.remove(&of);
    }
    all
}

/// Who depends on whom.
struct Graph {
    count: usize,
    edges: BTreeSet<(usize, usize, Edge)>,
}

impl Graph {
    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to {
            self.edges.insert((from, to, edge));
        }
    }
}

/// Judges transactions that append to lists and read whole lists.
#[must_use]
pub fn list_append(operations: &[Done], promised: Consistency) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let txns = transactions(operations, "append");
    let writers = writers(&txns, &mut found);
    let committed = || txns.iter().enumerate().filter(|(_, txn)| txn.committed());
    // The longest list of each key is the order of its versions.
    let mut orders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut read: Vec<(usize, &str, Vec<String>, bool)> = Vec::new();
    for (at, txn) in committed() {
        let mut own: FxHashSet<&str> = FxHashSet::default();
        for op in &txn.ops {
            match op {
                Op::Write(key, _) => {
                    own.insert(key);
                }
                Op::Read(key, Some(value @ (Value::Null | Value::Array(_)))) => {
                    let list: Vec<String> = value.as_array().into_iter().flatten().map(canonical).collect();
                    let mut seen = FxHashSet::default();
                    if let Some(twice) = list.iter().find(|element| !seen.insert(element.as_str())) {
                        let told = format!("{} reads {twice} twice in {key}", txn.done.told());
                        found.push(Anomaly::new("duplicate elements", told));
                        continue;
                    }
                    let order = orders.entry(key).or_default();
                    if list.len() > order.len() {
                        order.clone_from(&list);
                    }
                    read.push((at, key, list, own.contains(key.as_str())));
                }
                Op::Read(key, value) => {
                    if let Some(value) = value {
                        let told = format!("{} reads {value} in {key}", txn.done.told());
                        found.push(Anomaly::new("a read that is no list", told));
                    }
                }
            }
        }
        if let Some(told) = internal_lists(txn)
            && promised >= Consistency::SnapshotIsolation
        {
            found.push(Anomaly::new("internal", told));
        }
    }
    let mut graph = Graph { count: txns.len(), edges: BTreeSet::new() };
    let writer = |key: &str, element: &str| writers.get(&(key.to_owned(), element.to_owned())).copied();
    for (at, key, list, own) in &read {
        let reader = &txns[*at];
        for element in list {
            match writer(key, element) {
                None => {
                    let told =
                        format!("{} reads {element} in {key}, which nobody appended", reader.done.told());
                    found.push(Anomaly::new("garbage read", told));
                }
                Some(from) if txns[from.txn].aborted() && promised >= Consistency::ReadCommitted => {
                    let told =
                        format!("{} reads {element} in {key}, whose transaction failed", reader.done.told());
                    found.push(Anomaly::new("G1a", told));
                }
                Some(_) => {}
            }
        }
        if let Some(from) = list.last().and_then(|element| writer(key, element))
            && from.txn != *at
            && !from.last
            && promised >= Consistency::ReadCommitted
        {
            let told = format!(
                "{} reads {} in {key}, which is not all that its transaction appended",
                reader.done.told(),
                listed(list)
            );
            found.push(Anomaly::new("G1b", told));
        }
        let order = &orders[key];
        if !order.starts_with(list) {
            let (list, order) = (listed(list), listed(order));
            let told = format!("{} reads {list} in {key}, and another reads {order}", reader.done.told());
            found.push(Anomaly::new("incompatible order", told));
            continue;
        }
        if *own {
            continue;
        }
        if let Some(from) = list.last().and_then(|element| writer(key, element)) {
            graph.add(from.txn, *at, Edge::Wr);
        }
        if let Some(next) = order.get(list.len()).and_then(|element| writer(key, element)) {
            graph.add(*at, next.txn, Edge::Rw);
        }
    }
    for (key, order) in &orders {
        for pair in order.windows(2) {
            if let (Some(one), Some(next)) = (writer(key, &pair[0]), writer(key, &pair[1])) {
                graph.add(one.txn, next.txn, Edge::Ww);
            }
        }
    }
    // What nobody read comes after everything that somebody read.
    for (at, txn) in committed() {
        for op in &txn.ops {
            let Op::Write(key, value) = op else { continue };
            let element = canonical(value);
            let order = orders.get(key.as_str()).map_or(&[][..], Vec::as_slice);
            if order.contains(&element) || writer(key, &element).is_none() {
                continue;
            }
            if let Some(last) = order.last().and_then(|last| writer(key, last)) {
                graph.add(last.txn, at, Edge::Ww);
            }
            let whole =
                read.iter().filter(|(_, of, list, own)| of == key && list.len() == order.len() && !own);
            whole.for_each(|(reader, ..)| graph.add(*reader, at, Edge::Rw));
        }
    }
    circles(&txns, graph, promised, &mut found);
    found
}

/// Elements as the program wrote them.
fn listed(elements: &[String]) -> String {
    format!("[{}]", elements.join(", "))
}

/// What does not fit within one transaction.
fn internal_lists(txn: &Txn<'_>) -> Option<String> {
    // What is known of a key: all of it, or how it ends.
    let mut known: FxHashMap<&str, (bool, Vec<String>)> = FxHashMap::default();
    for op in &txn.ops {
        match op {
            Op::Write(key, value) => {
                known.entry(key).or_default().1.push(canonical(value));
            }
            Op::Read(key, Some(value)) => {
                let list: Vec<String> = value.as_array().into_iter().flatten().map(canonical).collect();
                let (whole, end) = known.entry(key).or_default();
                let fits = if *whole { *end == list } else { list.ends_with(end) };
                if !fits {
                    let (list, end) = (listed(&list), listed(end));
                    return Some(format!("{} reads {list} in {key} after {end}", txn.done.told()));
                }
                (*whole, *end) = (true, list);
            }
            Op::Read(_, None) => {}
        }
    }
    None
}

/// Judges transactions that write and read registers. Their order of versions is known only where a transaction reads a key and then
/// writes it, and from the beginning, when there is nothing.
#[must_use]
pub fn rw_register(operations: &[Done], promised: Consistency) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let txns = transactions(operations, "w");
    let writers = writers(&txns, &mut found);
    let writer = |key: &str, value: &str| writers.get(&(key.to_owned(), value.to_owned())).copied();
    let nothing = canonical(&Value::Null);
    let mut graph = Graph { count: txns.len(), edges: BTreeSet::new() };
    // Which version of a key comes before which, and who read each.
    let mut later: BTreeSet<(&str, String, String)> = BTreeSet::new();
    let mut readers: BTreeSet<(&str, String, usize)> = BTreeSet::new();
    // By version, who read it and wrote the next: of two, one did not see the other.
    let mut updates: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (at, txn) in txns.iter().enumerate().filter(|(_, txn)| !txn.aborted()) {
        let mut now: FxHashMap<&str, String> = FxHashMap::default();
        let mut first: BTreeMap<&str, String> = BTreeMap::new();
        let mut last: BTreeMap<&str, String> = BTreeMap::new();
        for op in &txn.ops {
            match op {
                Op::Read(key, Some(value)) => {
                    let value = canonical(value);
                    let before = now.insert(key, value.clone());
                    if before.as_ref().is_some_and(|before| *before != value)
                        && promised >= Consistency::SnapshotIsolation
                    {
                        let before = before.as_deref().unwrap_or("nothing");
                        let told = format!("{} reads {value} in {key} after {before}", txn.done.told());
                        found.push(Anomaly::new("internal", told));
                    }
                    if before.is_some() {
                        continue;
                    }
                    first.insert(key, value.clone());
                    readers.insert((key, value.clone(), at));
                    match writer(key, &value) {
                        None if value == nothing => {}
                        None => {
                            if !operations.is_empty() && !is_written(&txns, key, &value) {
                                let told =
                                    format!("{} reads {value} in {key}, which nobody wrote", txn.done.told());
                                found.push(Anomaly::new("garbage read", told));
                            }
                        }
                        Some(from) if txns[from.txn].aborted() => {
                            if promised >= Consistency::ReadCommitted {
                                let told = format!(
                                    "{} reads {value} in {key}, whose transaction failed",
                                    txn.done.told()
                                );
                                found.push(Anomaly::new("G1a", told));
                            }
                        }
                        Some(from) => {
                            if from.txn != at && !from.last && promised >= Consistency::ReadCommitted {
                                let told = format!(
                                    "{} reads {value} in {key}, which its transaction overwrote",
                                    txn.done.told()
                                );
                                found.push(Anomaly::new("G1b", told));
                            }
                            graph.add(from.txn, at, Edge::Wr);
                        }
                    }
                }
                Op::Read(_, None) => {}
                Op::Write(key, value) => {
                    now.insert(key, canonical(value));
                    last.insert(key, canonical(value));
                }
            }
        }
        for (key, version) in last {
            let seen = readers.iter().any(|(of, value, _)| *of == key && *value == version);
            if txn.committed() || seen || is_read(&txns, key, &version) {
                later.insert((key, nothing.clone(), version.clone()));
            }
            if let Some(before) = first.get(key) {
                if txn.committed() {
                    updates.entry((key, before.clone())).or_default().push(at);
                }
                later.insert((key, before.clone(), version));
            }
        }
    }
    for ((key, version), all) in updates {
        if let [one, other, ..] = all[..]
            && promised >= Consistency::SnapshotIsolation
        {
            let (one, other) = (txns[one].done.told(), txns[other].done.told());
            let told = format!("{one} and {other} both overwrite {version} of {key}");
            found.push(Anomaly::new("lost update", told));
        }
    }
    for (key, before, after) in &later {
        let Some(next) = writer(key, after) else { continue };
        if let Some(one) = writer(key, before) {
            graph.add(one.txn, next.txn, Edge::Ww);
        }
        let all = readers.iter().filter(|(of, value, _)| of == key && value == before);
        all.for_each(|(_, _, reader)| graph.add(*reader, next.txn, Edge::Rw));
    }
    if let Some(told) = turning(&later) {
        found.push(Anomaly::new("cyclic versions", told));
    }
    circles(&txns, graph, promised, &mut found);
    found
}

fn is_written(txns: &[Txn<'_>], key: &str, value: &str) -> bool {
    let mut ops = txns.iter().flat_map(|txn| &txn.ops);
    ops.any(|op| matches!(op, Op::Write(of, written) if of == key && canonical(written) == value))
}

fn is_read(txns: &[Txn<'_>], key: &str, value: &str) -> bool {
    let mut ops = txns.iter().flat_map(|txn| &txn.ops);
    ops.any(|op| matches!(op, Op::Read(of, Some(read)) if of == key && canonical(read) == value))
}

/// Versions of a key that come before themselves.
fn turning(later: &BTreeSet<(&str, String, String)>) -> Option<String> {
    let mut places: FxHashMap<(&str, &str), NodeIndex> = FxHashMap::default();
    let mut graph: DiGraph<(&str, &str), ()> = DiGraph::new();
    for (key, before, after) in later {
        let place = |version: (&'_ str, &'_ str)| -> Option<NodeIndex> { places.get(&version).copied() };
        let known = (place((key, before)), place((key, after)));
        let one = known.0.unwrap_or_else(|| graph.add_node((key, before)));
        let next = match known.1 {
            Some(next) => next,
            None if before == after => one,
            None => graph.add_node((key, after)),
        };
        places.insert((key, before), one);
        places.insert((key, after), next);
        graph.add_edge(one, next, ());
    }
    let round = tarjan_scc(&graph).into_iter().find(|group| group.len() > 1)?;
    let names: Vec<&str> = round.iter().map(|&place| graph[place].1).collect();
    Some(format!("versions {} of {} come before each other", names.join(", "), graph[round[0]].0))
}

/// Who began after whom had ended, without what follows from the rest.
fn in_time(txns: &[Txn<'_>], graph: &mut Graph) {
    let mut points: Vec<(usize, bool, usize)> = Vec::new();
    for (at, txn) in txns.iter().enumerate().filter(|(_, txn)| !txn.aborted()) {
        points.push((txn.done.begin, true, at));
        if let (Some(end), true) = (txn.done.end, txn.committed()) {
            points.push((end, false, at));
        }
    }
    points.sort_unstable();
    let mut last: Vec<usize> = Vec::new();
    let mut before: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (_, begins, at) in points {
        if begins {
            last.iter().for_each(|&one| graph.add(one, at, Edge::Time));
            before.insert(at, last.clone());
        } else {
            let gone = before.remove(&at).unwrap_or_default();
            last.retain(|one| !gone.contains(one));
            last.push(at);
        }
    }
}

/// Which edges a circle may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    G0,
    G1c,
    Single,
    Nonadjacent,
    G2,
}

/// Names circles of dependencies, as far as they break what is promised.
fn circles(txns: &[Txn<'_>], mut graph: Graph, promised: Consistency, found: &mut Vec<Anomaly>) {
    let classes = [
        (Class::G0, Consistency::ReadUncommitted, "G0", "G0-realtime"),
        (Class::G1c, Consistency::ReadCommitted, "G1c", "G1c-realtime"),
        (Class::Single, Consistency::SnapshotIsolation, "G-single", "G-single-realtime"),
        (Class::Nonadjacent, Consistency::SnapshotIsolation, "G-nonadjacent", "G-nonadjacent-realtime"),
        (Class::G2, Consistency::Serializable, "G2", "G2-realtime"),
    ];
    let mut any =
        named(txns, &graph, promised, classes.map(|(class, from, name, _)| (class, from, name)), found);
    if promised == Consistency::StrictSerializable && !any {
        in_time(txns, &mut graph);
        any = named(txns, &graph, promised, classes.map(|(class, from, _, name)| (class, from, name)), found);
    }
    let _ = any;
}

fn named(
    txns: &[Txn<'_>],
    graph: &Graph,
    promised: Consistency,
    classes: [(Class, Consistency, &'static str); 5],
    found: &mut Vec<Anomaly>,
) -> bool {
    let mut any = false;
    for group in groups(graph) {
        let inside: FxHashSet<usize> = group.iter().copied().collect();
        let mut next: FxHashMap<usize, Vec<(usize, Edge)>> = FxHashMap::default();
        for &(from, to, edge) in &graph.edges {
            if inside.contains(&from) && inside.contains(&to) {
                next.entry(from).or_default().push((to, edge));
            }
        }
        let mut worse = false;
        for (class, from, name) in classes {
            // What holds a weaker class shows nothing new of a stronger one.
            if promised < from || class == Class::G2 && worse {
                continue;
            }
            if let Some(path) = circle(&group, &next, class) {
                let told: Vec<String> = path
                    .iter()
                    .map(|(at, edge)| format!("{} -{}->", txns[*at].done.told(), edge_name(*edge)))
                    .collect();
                let told = format!(
                    "{} {}",
                    told.join(" "),
                    path.first().map_or(String::new(), |(at, _)| txns[*at].done.told())
                );
                found.push(Anomaly::new(name, told));
                (any, worse) = (true, true);
            }
        }
    }
    any
}

fn edge_name(edge: Edge) -> &'static str {
    match edge {
        Edge::Ww => "ww",
        Edge::Wr => "wr",
        Edge::Rw => "rw",
        Edge::Time => "time",
    }
}

/// Groups of transactions that depend on each other, in order.
fn groups(graph: &Graph) -> Vec<Vec<usize>> {
    let mut drawn: DiGraph<(), ()> = DiGraph::new();
    let nodes: Vec<NodeIndex> = (0..graph.count).map(|_| drawn.add_node(())).collect();
    for (from, to, _) in &graph.edges {
        drawn.add_edge(nodes[*from], nodes[*to], ());
    }
    let mut groups: Vec<Vec<usize>> = tarjan_scc(&drawn)
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| {
            let mut group: Vec<usize> = group.into_iter().map(NodeIndex::index).collect();
            group.sort_unstable();
            group
        })
        .collect();
    groups.sort_unstable();
    groups
}

/// A shortest circle of a class: each transaction with how the next depends on it.
fn circle(
    group: &[usize],
    next: &FxHashMap<usize, Vec<(usize, Edge)>>,
    class: Class,
) -> Option<Vec<(usize, Edge)>> {
    let first = |edge: Edge| match class {
        Class::G0 => matches!(edge, Edge::Ww | Edge::Time),
        Class::G1c => edge == Edge::Wr,
        Class::Single | Class::Nonadjacent | Class::G2 => edge == Edge::Rw,
    };
    let mut best: Option<Vec<(usize, Edge)>> = None;
    for &from in group {
        for &(to, edge) in next.get(&from).into_iter().flatten().filter(|(_, edge)| first(*edge)) {
            if let Some(way) = way(to, from, next, class) {
                let mut path = vec![(from, edge)];
                path.extend(way);
                let rw = path.iter().filter(|(_, edge)| *edge == Edge::Rw).count();
                // With one such edge it has another name.
                let fits = !matches!(class, Class::Nonadjacent) || rw > 1;
                if fits && best.as_ref().is_none_or(|best| path.len() < best.len()) {
                    best = Some(path);
                }
            }
        }
    }
    best
}

/// A shortest way back; for circles without two rw in a row, whether the last edge was one is part of the place.
fn way(
    start: usize,
    goal: usize,
    next: &FxHashMap<usize, Vec<(usize, Edge)>>,
    class: Class,
) -> Option<Vec<(usize, Edge)>> {
    let apart = class == Class::Nonadjacent;
    let begin = (start, apart);
    let mut from: FxHashMap<(usize, bool), ((usize, bool), Edge)> = FxHashMap::default();
    let mut queue = VecDeque::from([begin]);
    let mut seen: FxHashSet<(usize, bool)> = FxHashSet::from_iter([begin]);
    while let Some(place) = queue.pop_front() {
        // The first edge of the circle is rw, so the last is not.
        if place.0 == goal && !(apart && place.1) {
            let (mut path, mut at) = (Vec::new(), place);
            while at != begin {
                let (before, edge) = from[&at];
                path.push((before.0, edge));
                at = before;
            }
            path.reverse();
            return Some(path);
        }
        for &(to, edge) in next.get(&place.0).into_iter().flatten() {
            let allowed = match class {
                Class::G0 => matches!(edge, Edge::Ww | Edge::Time),
                Class::G1c | Class::Single => edge != Edge::Rw,
                Class::Nonadjacent => edge != Edge::Rw || !place.1,
                Class::G2 => true,
            };
            let after = (to, apart && edge == Edge::Rw);
            if allowed && seen.insert(after) {
                from.insert(after, (place, edge));
                queue.push_back(after);
            }
        }
    }
    None
}

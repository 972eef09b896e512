//! The order of a built execution by plain means: a clock per event, from the tables alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Events by number, in the order of the linear extension.
#[allow(dead_code, reason = "each test uses a part of it")]
pub struct Order {
    /// By host: its events, first to last.
    pub hosts: BTreeMap<String, Vec<usize>>,
    /// By event: its clock, in the order of hosts.
    pub clocks: Vec<Vec<u32>>,
    /// By event: number of its host.
    pub host: Vec<usize>,
    /// By event: line of its record.
    pub line: Vec<Option<i64>>,
    /// By event: its state, if it has one.
    pub state: Vec<Option<String>>,
    /// By event: its type.
    pub kind: Vec<String>,
    /// Edges between hosts.
    pub edges: Vec<(usize, usize)>,
    positions: Vec<usize>,
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

#[allow(dead_code, reason = "each test uses a part of it")]
impl Order {
    pub fn read(exec: &Path) -> Order {
        let mut rows = Vec::new();
        for batch in batches(&exec.join("events.parquet")) {
            let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
            let long = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
            let (actor, state, kind) = (text("actor"), text("state"), text("type"));
            let (seq, order, line) = (long("seq"), long("order"), long("line"));
            for row in 0..batch.num_rows() {
                let state = state.is_valid(row).then(|| state.value(row).to_owned());
                let line = line.is_valid(row).then(|| line.value(row));
                let kind = kind.value(row).to_owned();
                rows.push((order.value(row), actor.value(row).to_owned(), seq.value(row), line, state, kind));
            }
        }
        rows.sort();
        let mut number = HashMap::new();
        let mut hosts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, (_, actor, seq, ..)) in rows.iter().enumerate() {
            number.insert((actor.clone(), *seq), i);
            hosts.entry(actor.clone()).or_default().push(i);
        }
        let index: HashMap<&String, usize> = hosts.keys().enumerate().map(|(i, h)| (h, i)).collect();
        let host: Vec<usize> = rows.iter().map(|r| index[&r.1]).collect();
        let mut positions = vec![0; rows.len()];
        for events in hosts.values() {
            // An actor's own order is that of its positions, and the linear extension keeps it.
            assert!(events.windows(2).all(|w| rows[w[0]].2 < rows[w[1]].2));
            events.iter().enumerate().for_each(|(n, &e)| positions[e] = n + 1);
        }
        let mut edges = Vec::new();
        for batch in batches(&exec.join("messages.parquet")) {
            let text = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
            let long = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
            let (from, to) = (text("send_actor"), text("receive_actor"));
            let (sent, received) = (long("send_seq"), long("receive_seq"));
            for row in 0..batch.num_rows() {
                if from.is_valid(row) && to.is_valid(row) {
                    let cause = number[&(from.value(row).to_owned(), sent.value(row))];
                    let effect = number[&(to.value(row).to_owned(), received.value(row))];
                    assert!(cause < effect, "the linear extension breaks an edge");
                    edges.push((cause, effect));
                }
            }
        }
        edges.sort_by_key(|e| e.1);
        let mut clocks: Vec<Vec<u32>> = Vec::with_capacity(rows.len());
        let mut into = edges.iter().peekable();
        for e in 0..rows.len() {
            let mut clock = match positions[e] {
                1 => vec![0; hosts.len()],
                n => clocks[hosts.values().nth(host[e]).unwrap()[n - 2]].clone(),
            };
            while let Some((cause, _)) = into.next_if(|(_, effect)| *effect == e) {
                clock.iter_mut().zip(&clocks[*cause]).for_each(|(a, b)| *a = (*b).max(*a));
            }
            clock[host[e]] = positions[e] as u32;
            clocks.push(clock);
        }
        edges.retain(|(a, b)| host[*a] != host[*b]);
        let kind = rows.iter().map(|r| r.5.clone()).collect();
        let (line, state) = rows.into_iter().map(|r| (r.3, r.4)).unzip();
        Order { hosts, clocks, host, line, state, kind, edges, positions }
    }

    pub fn find(&self, (host, n): &(String, u64)) -> usize {
        self.hosts[host][*n as usize - 1]
    }

    pub fn before(&self, a: usize, b: usize) -> bool {
        a != b && self.clocks[b][self.host[a]] >= self.positions[a] as u32
    }

    /// Pairs of which one is before the other.
    pub fn ordered(&self) -> u64 {
        self.clocks.iter().map(|c| c.iter().map(|&n| u64::from(n)).sum::<u64>() - 1).sum()
    }

    /// Edges between hosts that follow from no others: an immediate predecessor in another host.
    pub fn covering(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut edges = self.edges.clone();
        edges.sort_unstable();
        edges.dedup();
        for &(a, b) in &edges {
            let own = match self.positions[b] {
                1 => None,
                n => Some(self.hosts.values().nth(self.host[b]).unwrap()[n - 2]),
            };
            let others = edges.iter().filter(|(c, e)| *e == b && *c != a).map(|(c, _)| *c);
            if !own.into_iter().chain(others).any(|c| self.before(a, c)) {
                found.push((a, b));
            }
        }
        found
    }

    /// Whether a cut, counts in the order of hosts, holds the past of all in it.
    pub fn consistent(&self, cut: &[u32]) -> bool {
        self.hosts.values().zip(cut).all(|(events, &n)| match n {
            0 => true,
            n => self.clocks[events[n as usize - 1]].iter().zip(cut).all(|(a, b)| a <= b),
        })
    }

    pub fn cut(&self, counts: &BTreeMap<String, u64>) -> Vec<u32> {
        self.hosts.keys().map(|h| counts.get(h).copied().unwrap_or(0) as u32).collect()
    }

    fn is_ground(&self, cut: &[u32], edges: &[(usize, usize)]) -> bool {
        let inside = |e: usize| self.positions[e] as u32 <= cut[self.host[e]];
        !edges.iter().any(|&(a, b)| inside(a) && !inside(b))
    }

    /// All consistent cuts, and how many of them have no message in flight; the search ends at `most`.
    pub fn lattice(&self, edges: &[(usize, usize)], most: usize) -> (HashSet<Vec<u32>>, usize) {
        let mut seen = HashSet::new();
        let mut work = vec![vec![0; self.hosts.len()]];
        seen.insert(work[0].clone());
        let mut ground = 0;
        while let Some(cut) = work.pop() {
            ground += usize::from(self.is_ground(&cut, edges));
            for (h, events) in self.hosts.values().enumerate() {
                if (cut[h] as usize) < events.len() && seen.len() <= most {
                    let mut next = cut.clone();
                    next[h] += 1;
                    let clock = &self.clocks[events[cut[h] as usize]];
                    if clock.iter().zip(&next).all(|(a, b)| a <= b) && seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
            }
        }
        (seen, ground)
    }
}

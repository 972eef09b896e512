//! Canonical forms of small graphs with coloured vertices and labelled edges.

use std::collections::BTreeMap;

use crate::id::{digest_of, hex_of};

/// Most orders of the vertices that are tried.
const MOST_LEAVES: usize = 10_000;
/// Most vertices of a graph that is brought into its canonical form.
const MOST_VERTICES: usize = 4_000;

/// A colour: a hash of all that is known of a vertex, so that isomorphic graphs have the same colours.
type Colour = u128;

/// A directed graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    colours: Vec<Colour>,
    /// By vertex: the label, whether the edge leads away from it, and the other end.
    edges: Vec<Vec<(u64, bool, usize)>>,
}

fn hash(parts: &[&[u8]]) -> Colour {
    Colour::from_le_bytes(digest_of(parts))
}

impl Graph {
    pub(super) fn vertex(&mut self, colour: &str) -> usize {
        self.colours.push(hash(&[colour.as_bytes()]));
        self.edges.push(Vec::new());
        self.colours.len() - 1
    }

    pub(super) fn edge(&mut self, from: usize, to: usize, label: &str) {
        let label = hash(&[label.as_bytes()]) as u64;
        self.edges[from].push((label, true, to));
        self.edges[to].push((label, false, from));
    }

    /// The digest of the canonical form, and whether it is one: else it is that of the refined colours, which isomorphic graphs share too.
    pub(super) fn canonical(&self) -> (String, bool) {
        let refined = self.refine(self.colours.clone());
        if self.colours.len() <= MOST_VERTICES {
            let mut search = Search { graph: self, leaves: 0 };
            if let Some(best) = search.best(refined.clone()) {
                return (hex_of(&[&best.certificate.to_le_bytes()]), true);
            }
        }
        let mut colours = refined;
        colours.sort_unstable();
        let bytes: Vec<[u8; 16]> = colours.iter().map(|colour| colour.to_le_bytes()).collect();
        (hex_of(&bytes), false)
    }

    /// Refines colours by those of neighbours until no cell falls apart any more.
    fn refine(&self, mut colours: Vec<Colour>) -> Vec<Colour> {
        let mut cells = count(&colours);
        loop {
            let next: Vec<Colour> = (0..colours.len())
                .map(|v| {
                    let mut around: Vec<(u64, bool, Colour)> = self.edges[v]
                        .iter()
                        .map(|(label, away, other)| (*label, *away, colours[*other]))
                        .collect();
                    around.sort_unstable();
                    let mut bytes = colours[v].to_le_bytes().to_vec();
                    for (label, away, colour) in around {
                        bytes.extend(label.to_le_bytes());
                        bytes.push(u8::from(away));
                        bytes.extend(colour.to_le_bytes());
                    }
                    hash(&[&bytes])
                })
                .collect();
            let now = count(&next);
            colours = next;
            // A last round is of use to nobody, but all graphs have it.
            if now == cells {
                return colours;
            }
            cells = now;
        }
    }

    /// The first smallest cell with more than one vertex.
    fn cell(colours: &[Colour]) -> Option<Vec<usize>> {
        let mut cells: BTreeMap<Colour, Vec<usize>> = BTreeMap::new();
        for (vertex, colour) in colours.iter().enumerate() {
            cells.entry(*colour).or_default().push(vertex);
        }
        let several = cells.into_iter().filter(|(_, vertices)| vertices.len() > 1);
        several.min_by_key(|(colour, vertices)| (vertices.len(), *colour)).map(|(_, vertices)| vertices)
    }

    fn individualized(&self, colours: &[Colour], vertex: usize) -> Vec<Colour> {
        let mut colours = colours.to_vec();
        colours[vertex] = hash(&[&colours[vertex].to_le_bytes(), b"this one"]);
        self.refine(colours)
    }

    /// The certificate of an order in which no two vertices share a colour.
    fn leaf(&self, colours: &[Colour]) -> Leaf {
        let mut order: Vec<usize> = (0..colours.len()).collect();
        order.sort_unstable_by_key(|vertex| colours[*vertex]);
        let mut place = vec![0_usize; order.len()];
        for (at, vertex) in order.iter().enumerate() {
            place[*vertex] = at;
        }
        let mut bytes = Vec::new();
        for vertex in &order {
            bytes.extend(self.colours[*vertex].to_le_bytes());
            let mut edges: Vec<(u64, usize)> = self.edges[*vertex]
                .iter()
                .filter(|(_, away, _)| *away)
                .map(|(label, _, other)| (*label, place[*other]))
                .collect();
            edges.sort_unstable();
            bytes.extend((edges.len() as u64).to_le_bytes());
            for (label, other) in edges {
                bytes.extend(label.to_le_bytes());
                bytes.extend((other as u64).to_le_bytes());
            }
        }
        Leaf { certificate: hash(&[&bytes]), order }
    }
}

fn count(colours: &[Colour]) -> usize {
    let mut colours = colours.to_vec();
    colours.sort_unstable();
    colours.dedup();
    colours.len()
}

/// An order of all vertices.
#[derive(Clone, Debug)]
struct Leaf {
    certificate: Colour,
    order: Vec<usize>,
}

struct Search<'g> {
    graph: &'g Graph,
    leaves: usize,
}

impl Search<'_> {
    /// The leaf with the least certificate below this colouring; nothing where there are too many.
    fn best(&mut self, colours: Vec<Colour>) -> Option<Leaf> {
        let Some(cell) = Graph::cell(&colours) else {
            self.leaves += 1;
            return (self.leaves <= MOST_LEAVES).then(|| self.graph.leaf(&colours));
        };
        let mut best: Option<Leaf> = None;
        // Leaves below this node, one of each subtree that was searched.
        let mut known: Vec<Leaf> = Vec::new();
        // By vertex of the cell: what an automorphism takes it to.
        let mut orbits: BTreeMap<usize, usize> = cell.iter().map(|vertex| (*vertex, *vertex)).collect();
        for vertex in &cell {
            if root(&orbits, *vertex) != *vertex {
                continue;
            }
            let below = self.graph.individualized(&colours, *vertex);
            let any = self.any(below.clone())?;
            // Equal certificates are an automorphism, which keeps all that was individualized above this node.
            if let Some(same) = known.iter().find(|leaf| leaf.certificate == any.certificate) {
                for (from, to) in same.order.iter().zip(&any.order) {
                    if orbits.contains_key(from) && orbits.contains_key(to) {
                        let (a, b) = (root(&orbits, *from), root(&orbits, *to));
                        orbits.insert(a.max(b), a.min(b));
                    }
                }
                continue;
            }
            let found = self.best(below)?;
            known.push(any);
            known.push(found.clone());
            if best.as_ref().is_none_or(|best| found.certificate < best.certificate) {
                best = Some(found);
            }
        }
        best
    }

    /// Any leaf below this colouring.
    fn any(&mut self, mut colours: Vec<Colour>) -> Option<Leaf> {
        while let Some(cell) = Graph::cell(&colours) {
            colours = self.graph.individualized(&colours, cell[0]);
        }
        self.leaves += 1;
        (self.leaves <= MOST_LEAVES).then(|| self.graph.leaf(&colours))
    }
}

fn root(orbits: &BTreeMap<usize, usize>, mut vertex: usize) -> usize {
    while let Some(next) = orbits.get(&vertex).filter(|next| **next != vertex) {
        vertex = *next;
    }
    vertex
}

//! Ground states: cuts in which no message is on its way.
//!
//! Program order, and each message in both directions, make components of handlers; a message that nobody received is left out. Whatever
//! order the components are taken in that keeps theirs, each beginning is a ground state (S. Grant, H. Cech and I. Beschastnikh, "Inferring
//! and asserting distributed system invariants", ICSE 2018, section 4.1).

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::Query;
use super::check::StateHistory;
use super::units::ExecutionUnits;
use crate::error::LineageError;

/// The states of an execution, one ground state after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// How many ground states the order passes, the first, in which nothing has happened, among them.
    pub states: usize,
    /// Numbers of the records with a state, in their order.
    pub order: Vec<usize>,
    /// For each of these, with which ground state it is there.
    pub moments: Vec<u32>,
}

impl Query {
    /// A chain of ground states. Time and memory are linear in handlers and messages.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn ground(&self, told: &StateHistory) -> Result<Ground, LineageError> {
        let causes = self.causes()?;
        let units = ExecutionUnits::new(self, &causes)?;
        let mut graph: DiGraph<(), ()> = DiGraph::with_capacity(units.len(), units.len() + 2 * causes.len());
        for _ in 0..units.len() {
            graph.add_node(());
        }
        let node = NodeIndex::new;
        for unit in 1..units.len() {
            if self.index.actor_of(units.head(unit)) == self.index.actor_of(units.head(unit - 1)) {
                graph.add_edge(node(unit - 1), node(unit), ());
            }
        }
        for (receive, send) in causes {
            let (to, from) = (units.of(receive), units.of(send));
            graph.add_edge(node(from), node(to), ());
            graph.add_edge(node(to), node(from), ());
        }
        // They come in reverse of an order that keeps all edges.
        let components = kosaraju_scc(&graph);
        let mut moment_of = vec![0_u32; units.len()];
        for (number, component) in components.iter().rev().enumerate() {
            component.iter().for_each(|unit| moment_of[unit.index()] = number as u32);
        }
        let moment = |record: usize| moment_of[units.of(told.records()[record].event)];
        let mut order: Vec<usize> = (0..told.records().len()).collect();
        order.sort_by_key(|record| moment(*record));
        let moments = order.iter().map(|record| moment(*record)).collect();
        Ok(Ground { states: components.len() + 1, order, moments })
    }
}

//! The passes that cost more than a sweep, each once: what runs them, what tells of them and what leaves one out reads this.

use demi_replay::Model;

use super::passes::{
    backtrack, endings, joint, late_starts, lattice, orders, several, structure, subjects, subsets, window,
};
use super::reducer::Reducer;
use crate::oracle::matcher::Policy;
use crate::plan;

/// A pass over a witness that the sweeps make no smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All steps of one actor.
    Actors,
    /// A step with all that it brought about.
    Cones,
    /// Several steps at different actors, each with all that it brought about.
    Joint,
    /// All steps about one request, slot or key, or about all others.
    Subjects,
    /// All steps of one term, ballot or job.
    Epochs,
    /// All that one actor sends another, or all of one type.
    Channels,
    /// What happened between two moments at which all states were the same.
    Cycles,
    /// The consistent cuts of the witness's happens-before order.
    Lattice,
    /// Two steps at once.
    Pairs,
    /// Starts at later places.
    LateStarts,
    /// Prioritized backtracking into ambiguous matches.
    Backtracks,
    /// Every way to spend fewer deliveries in a window.
    Windows,
    /// Three steps at once.
    Triples,
    /// Other orders of the steps without one, by optimal partial-order reduction.
    Orders,
    /// The shortest way to the violation from a place on the witness.
    Endings,
}

/// The registry: passes that cost alike come in this order.
pub const PASSES: [Pass; 15] = [
    Pass::Actors,
    Pass::Cones,
    Pass::Joint,
    Pass::Subjects,
    Pass::Epochs,
    Pass::Channels,
    Pass::Cycles,
    Pass::Lattice,
    Pass::Pairs,
    Pass::LateStarts,
    Pass::Backtracks,
    Pass::Windows,
    Pass::Triples,
    Pass::Orders,
    Pass::Endings,
];

impl Pass {
    /// The name in the table of yields.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pass::Actors => "actors",
            Pass::Cones => "cones",
            Pass::Joint => "joint cones",
            Pass::Subjects => "subjects",
            Pass::Epochs => "epochs",
            Pass::Channels => "channels",
            Pass::Cycles => "cycles",
            Pass::Lattice => "trace lattice",
            Pass::Pairs => "pairs",
            Pass::LateStarts => "late starts",
            Pass::Backtracks => "backtracks",
            Pass::Windows => "windows",
            Pass::Triples => "triples",
            Pass::Orders => "orders",
            Pass::Endings => "endings",
        }
    }

    /// Runs the pass until it gains nothing more.
    pub fn step<M: Model>(self, reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
        let few = &policies[..policies.len().min(plan::FEW_POLICIES)];
        match self {
            Pass::Actors => subsets::without_actor(reducer, policies),
            Pass::Cones => structure::cones(reducer, policies),
            Pass::Joint => joint::cones(reducer, policies),
            Pass::Subjects => subjects::slices(reducer, policies),
            Pass::Epochs => structure::epochs(reducer, policies),
            Pass::Channels => structure::channels(reducer, policies),
            Pass::Cycles => structure::cycles(reducer, policies),
            Pass::Lattice => lattice::search(reducer, plan::LATTICE_WORLDS),
            Pass::Pairs => several::pairs(reducer, few),
            Pass::LateStarts => late_starts::starts(reducer, few),
            Pass::Backtracks => backtrack::remove(reducer, plan::BRANCHES),
            Pass::Windows => window::search(reducer, plan::WINDOW, few),
            Pass::Triples => several::triples(reducer, &policies[..1]),
            Pass::Orders => orders::remove(reducer, plan::ORDERS),
            Pass::Endings => endings::search(reducer, plan::ENDING, 1),
        }
    }
}

/// The passes of the registry without those that are left out by name.
#[must_use]
pub fn used(left_out: &[String]) -> Vec<Pass> {
    PASSES.into_iter().filter(|pass| !left_out.iter().any(|name| name == pass.name())).collect()
}

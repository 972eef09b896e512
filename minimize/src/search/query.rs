//! One question to the search: from where, over which external events, how far, and in which order.

use std::sync::Arc;

use demi_replay::model::DistanceOf;
use demi_replay::script::Act;
use demi_replay::{Model, World};
use demi_schemas::NetworkRule;

use demi_space::{Alike, End, Ended, Faults, Kinds, Layers, Lead, Limits, Move, Unsearchable, symmetry};

use super::root::{Beginning, Root};
use crate::oracle::engine::Engine;
use crate::oracle::matcher::EXACT;
use crate::oracle::witness::Shared;

/// What a search came to.
#[derive(Debug)]
pub struct Searched<M: Model> {
    /// A violating execution, if one was found within the limits and the acts before it are known. Without a beam it is a shortest.
    pub found: Option<Shared<M>>,
    /// The deliveries of the way that was found, from the root.
    pub length: Option<usize>,
    /// No violating execution that was asked for has fewer deliveries.
    pub at_least: usize,
    /// Whether the search ended by itself: then what was found is optimal, or there is nothing within the limits.
    pub complete: bool,
    /// Configurations visited.
    pub states: u64,
    /// Why it ended otherwise.
    pub stopped: Option<&'static str>,
}

impl<M: Model> Searched<M> {
    /// Whether it is certain that there is nothing within the limits.
    #[must_use]
    pub fn nothing(&self) -> bool {
        self.complete && self.length.is_none()
    }
}

/// A question to the search: is there a violating execution, beginning at a [`Root`], over the external events of some acts? Each
/// message from outside may be taken, and each fault may happen, at any time, at most once. What comes out depends on nothing
/// but the question.
#[must_use]
pub struct Query<'q, M: Model> {
    root: Root<'q, M>,
    acts: &'q [Act],
    bound: Option<&'q Arc<DistanceOf<M>>>,
    limits: Limits,
    kinds: Kinds,
    in_any_order: bool,
    threads: usize,
}

impl<M: Model> Clone for Query<'_, M> {
    fn clone(&self) -> Self {
        Query { kinds: self.kinds.clone(), ..*self }
    }
}

impl<'q, M: Model> Query<'q, M> {
    /// A search from a root, over no external events, without limits, on one thread.
    pub fn from(root: Root<'q, M>) -> Self {
        let limits = Limits { deliveries: usize::MAX, states: u64::MAX, width: None, outside: None };
        Query {
            root,
            acts: &[],
            bound: None,
            limits,
            kinds: Kinds::default(),
            in_any_order: false,
            threads: 1,
        }
    }

    /// Over the external events of some acts, which need not violate. [`Root::Before`] and [`Root::World`] have their own.
    pub fn over(self, acts: &'q [Act]) -> Self {
        Query { acts, ..self }
    }

    /// With at most so many deliveries from the root on.
    pub fn deliveries(self, most: usize) -> Self {
        Query { limits: Limits { deliveries: most, ..self.limits }, ..self }
    }

    /// With at most so many configurations, and not many more.
    pub fn states(self, most: u64) -> Self {
        Query { limits: Limits { states: most, ..self.limits }, ..self }
    }

    /// Leaves what a lower bound says is too far from the violation. Bounds are about executions without faults: where there are
    /// any, only searches that prove nothing go by it: beams and suffix searches.
    pub fn bound(self, bound: Option<&'q Arc<DistanceOf<M>>>) -> Self {
        Query { bound, ..self }
    }

    /// By beam search: with so many deliveries in each layer, not many more, from the configurations that come first. Nothing is
    /// proven where nothing is found, unless no layer was left before its end: then a wider beam finds nothing either,
    /// whatever leads it.
    pub fn beam(self, width: u64, lead: Lead) -> Self {
        Query { limits: Limits { width: Some((width, lead)), ..self.limits }, ..self }
    }

    /// With at most so many messages from outside, if it is the search's choice which.
    pub fn choosing(self, outside: Option<usize>) -> Self {
        Query { limits: Limits { outside, ..self.limits }, ..self }
    }

    /// With no kind of delivery more often than some acts have it, but for so many `beyond`.
    pub fn kinds(self, acts: &[Act], alike: Alike, beyond: u8) -> Self {
        Query { kinds: Kinds::of(acts, alike, beyond), ..self }
    }

    /// With the deliveries of some acts in their order, of which any may be passed over, and so many others between them.
    pub fn in_order(self, acts: &[Act], alike: Alike, beyond: u8) -> Self {
        Query { kinds: Kinds::in_order(acts, alike, beyond), ..self }
    }

    /// With messages in any order, whatever the network rule is. What is found need not be possible under the rule: only its length is
    /// told.
    ///
    /// If there is nothing from [`Root::Started`] or [`Root::Only`], then neither is there under any network rule where these actors
    /// start at any time: whatever is sent to who has not started yet may as well never be delivered.
    pub fn in_any_order(self) -> Self {
        Query { in_any_order: true, ..self }
    }

    /// On so many threads, which change nothing in the result.
    pub fn threads(self, threads: usize) -> Self {
        Query { threads, ..self }
    }

    /// Searches.
    ///
    /// # Errors
    /// If there are other external events than a search knows: starts of different actors, messages and few faults, and after a place
    /// on a witness no starts. Then nothing was looked for.
    pub fn run(self, engine: &mut Engine<M>) -> Result<Searched<M>, Unsearchable> {
        let Beginning { world, acts, faults } = self.root.begin(engine, self.acts)?;
        let proves = self.limits.width.is_none() && !self.root.is_suffix();
        let bound = self.bound.filter(|_| faults.all() == 0 || !proves);
        let rule = engine.rule;
        if self.in_any_order {
            engine.rule = NetworkRule::Unordered;
        }
        let mut ended = layered(engine, (&world, &faults, &self.kinds), bound, self.limits, self.threads);
        engine.rule = rule;
        engine.settle(ended.bill.take());
        engine.meter.executed += ended.states + ended.paid;
        let (found, length, at_least, states) = (None, None, 0, ended.states);
        let mut searched = Searched { found, length, at_least, complete: false, states, stopped: None };
        match ended.end {
            End::Found(path) => {
                searched.at_least = deliveries(&path);
                searched.length = Some(searched.at_least);
                let told = acts.filter(|_| !self.in_any_order);
                let known = told.is_some();
                searched.found = told.and_then(|acts| along(engine, world, (acts, &faults), &path));
                searched.complete = !ended.cut && (searched.found.is_some() || !known);
            }
            End::Nothing if ended.cut => {}
            End::Nothing => {
                (searched.at_least, searched.complete) = (self.limits.deliveries.saturating_add(1), true);
            }
            End::Stopped(depth, why) => (searched.at_least, searched.stopped) = (depth, Some(why)),
        }
        Ok(searched)
    }

    /// What the bound says of the root; 1 without one.
    pub(super) fn lower_bound(&self, engine: &mut Engine<M>) -> Result<usize, Unsearchable> {
        let beginning = self.root.begin(engine, self.acts)?;
        Ok(self.bound.map_or(1, |bound| engine.sim.lower_bound(&beginning.world, bound).max(1)))
    }

    /// Whether a bound leaves anything out.
    pub(super) fn is_bounded(&self) -> bool {
        self.bound.is_some()
    }

    /// Most deliveries and most configurations.
    pub(super) fn limits(&self) -> (usize, u64) {
        (self.limits.deliveries, self.limits.states)
    }
}

/// Searches from a configuration, layer by layer, with interchangeable actors taken for one where the model allows it.
fn layered<M: Model>(
    engine: &mut Engine<M>,
    (root, faults, kinds): (&World<M>, &Faults, &Kinds),
    bound: Option<&Arc<DistanceOf<M>>>,
    limits: Limits,
    threads: usize,
) -> Ended {
    if engine.sim.stuck_counts() {
        // Who cannot go on is seen with what is pending, and searches ask invariants about states alone.
        let end = End::Stopped(0, "deadlock");
        return Ended { end, states: 0, unequal: false, cut: true, bill: engine.account(), paid: 0 };
    }
    let (wanted, unbounded) = (limits.states, bound.is_none());
    let limits = Limits { states: wanted.min(engine.meter.left()), ..limits };
    let account = engine.account();
    let search = |renamings, bill| {
        let (sim, target) = (engine.sim.clone(), engine.problem.target.clone());
        let apart = (renamings, faults.clone(), kinds.clone());
        Layers::new(sim, root, engine.rule, target, bound.cloned(), apart, threads)
            .within(engine.room())
            .paying(bill)
            .search(limits, &engine.meter)
    };
    let alike = match faults.repeat() {
        true => Vec::new(),
        false => symmetry::renamings(&engine.sim, root, &engine.problem.target, &faults.actors()),
    };
    let mut ended = search(alike, account);
    if ended.unequal {
        let again = search(Vec::new(), ended.bill.take());
        ended = Ended { states: ended.states + again.states, paid: ended.paid + again.paid, ..again };
    }
    if let End::Stopped(_, why @ "states") = &mut ended.end {
        *why = match (limits.states < wanted, unbounded) {
            (true, _) => "budget",
            (false, true) => "no bound",
            (false, false) => "states",
        };
    }
    ended
}

/// How many steps of a way are deliveries.
fn deliveries(path: &[Move]) -> usize {
    path.iter().filter(|step| matches!(step, Move::Deliver(_))).count()
}

/// Follows a way from a world, which some acts lead to, and has the whole verified.
fn along<M: Model>(
    engine: &mut Engine<M>,
    mut world: World<M>,
    (mut acts, faults): (Vec<Act>, &Faults),
    path: &[Move],
) -> Option<Shared<M>> {
    for step in path {
        match *step {
            Move::Deliver(index) if index < world.pending().len() => {
                engine.deliver(&mut world, index, &mut acts);
            }
            Move::Deliver(_) => return None,
            Move::Fail(number) => {
                world = faults.perform(number, &mut engine.sim, &world, engine.rule)?;
                acts.push(*faults.get(number)?);
            }
        }
    }
    engine.first_witness(&acts, EXACT)
}

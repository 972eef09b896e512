//! A delta put in order behind its base.

use std::path::Path;

use arrow_array::UInt32Array;
use demi_schemas::Kind;
use demi_schemas::summary::{BuildSummary, ProvenanceRule};

use super::base::{BaseFacts, joined_by_ids};
use super::delta::Delta;
use super::{RebuildReason, depths, ids};
use crate::error::LineageError;
use crate::index::{Index, Logs};
use crate::matching::{Channels, LastDeliveries, Matching, Status, by_id, channels, content, unmatched};
use crate::order::{Graph, Order};
use crate::read::{Contents, Events, HAS_ID, NONE, Units, is_send};

/// A delta in order.
pub(crate) struct Ordered {
    delta: Delta,
    matching: Matching,
    units: Units,
    /// Ranks and depths as they are in the whole.
    pub(crate) order: Order,
    in_order: bool,
}

impl Ordered {
    /// The events that were added.
    pub(crate) fn delta(&self) -> &Delta {
        &self.delta
    }

    /// The edges between sends and receives.
    pub(crate) fn matching(&self) -> &Matching {
        &self.matching
    }

    /// The units of the events.
    pub(crate) fn units(&self) -> &Units {
        &self.units
    }
}

/// Puts the delta in order.
pub(crate) fn order(
    mut delta: Delta,
    base: &Index,
    facts: &BaseFacts,
    base_folder: &Path,
) -> Result<Result<Ordered, RebuildReason>, LineageError> {
    let events = &mut delta.loaded.events;
    let mut matching = Matching::none(events.len());
    let shared = by_id::join(events, &mut matching);
    let wanted = content::wanted(events, &matching, &shared);
    let contents = Contents::read(&delta.files, &delta.loaded.placement, &wanted)?;
    by_id::tell_apart(events, &mut matching, &contents, &shared);
    if by_id::hang_on_names(events, &matching) {
        return Ok(Err(RebuildReason::NotById));
    }
    // Whether what came again says the same as before, only all logs tell.
    if !matching.again.is_empty() {
        return Ok(Err(RebuildReason::NotById));
    }
    if let Some(why) = look_up(events, &mut matching, &delta.in_base, base_folder)? {
        return Ok(Err(why));
    }
    content::timers(events, &mut matching, &contents);
    if !matching.extra().is_empty() || !joined_by_ids(events, &matching) {
        return Ok(Err(RebuildReason::NotById));
    }
    let observed = Channels::observe(events, &matching, latest(events, facts), facts.in_order());
    if observed.in_order() != facts.in_order() {
        return Ok(Err(RebuildReason::OutOfOrder));
    }
    unmatched::explain(events, &mut matching, &contents, &observed);
    still_lost(events, &mut matching, &delta.in_base, base)?;
    events.id = Vec::new();
    let units = Units::new(events, &[]);
    let (mut preferences, broken) = observed.preferences(events, &matching, &units);
    preferences.extend(channels::log_order(events, &units));
    let warned = matching.warnings.len();
    let mut order = Graph::new(events, &units, preferences).order(&mut matching);
    if !broken.0.is_empty() || !order.warnings.is_empty() || matching.warnings.len() > warned {
        return Ok(Err(RebuildReason::Cycle));
    }
    place(&delta, &matching, &units, &mut order, base, base_folder)?;
    Ok(Ok(Ordered { delta, matching, units, order, in_order: facts.in_order() }))
}

/// A receiver that has nothing in the delta is not known there, nor what it took in the base: what was overtaken on the way to
/// it stays so.
fn still_lost(
    events: &Events,
    matching: &mut Matching,
    in_base: &[Option<u32>],
    base: &Index,
) -> Result<(), LineageError> {
    for (e, number) in in_base.iter().enumerate() {
        let Some(number) = *number else { continue };
        let open = matching.status[e] == Status::InFlight && events.kind[e] == Kind::Send;
        if open && events.receiver(e as u32) == NONE && base.info(number)?.never_received().1 {
            matching.status[e] = Status::Lost;
        }
    }
    Ok(())
}

/// What only the base's ids tell: an id that is used again, and a further receive.
fn look_up(
    events: &Events,
    matching: &mut Matching,
    in_base: &[Option<u32>],
    base_folder: &Path,
) -> Result<Option<RebuildReason>, LineageError> {
    let named = (0..events.len() as u32).filter(|&e| in_base[e as usize].is_none() && events.has(e, HAS_ID));
    let open = |e: &u32| {
        let i = *e as usize;
        is_send(events.kind[i]) || (events.kind[i].is_delivery() && matching.mates()[i] == NONE)
    };
    let asked: Vec<u32> = named.filter(open).collect();
    let hashes: Vec<_> = asked.iter().map(|&e| events.id[e as usize]).collect();
    if ids::known(base_folder, ids::RECEIVED, &hashes)?.contains(&true) {
        return Ok(Some(RebuildReason::IdAgain));
    }
    for (&e, known) in asked.iter().zip(ids::known(base_folder, ids::SENT, &hashes)?) {
        if known && is_send(events.kind[e as usize]) {
            return Ok(Some(RebuildReason::IdAgain));
        }
        if known && !events.id[e as usize].is_wide() {
            // It may be another message, and only its content tells.
            return Ok(Some(RebuildReason::IdAgain));
        }
        if known {
            matching.status[e as usize] = Status::Duplicate;
        }
    }
    Ok(None)
}

/// The base's latest deliveries by channel, as the first event behind the send in its log.
fn latest(events: &Events, facts: &BaseFacts) -> LastDeliveries {
    let mut seen = LastDeliveries::default();
    for (from, to, incarnation, seq) in facts.latest() {
        let (Some(from), Some(to)) = (events.find_actor(from), events.find_actor(to)) else { continue };
        let behind = events.first_not(from, |place| place <= (*incarnation, *seq));
        seen.insert((from, to), (behind, true));
    }
    seen
}

/// Gives the delta the places behind the base's, and depths from those of the base.
fn place(
    delta: &Delta,
    matching: &Matching,
    units: &Units,
    order: &mut Order,
    base: &Index,
    base_folder: &Path,
) -> Result<(), LineageError> {
    let events = &delta.loaded.events;
    // The base's depths that count: of open sends, and of each log's last event that stands in its order.
    let mut tails = Vec::new();
    for actor in 0..events.actors.len() as u32 {
        let Some(a) = base.find_actor(events.actor_name(actor)) else { continue };
        let end = base.chain_end(a, base.events_of(a).end)?;
        if end > base.events_of(a).start {
            tails.push((end - 1, actor));
        }
    }
    let depths = depths::read(base_folder)?;
    let depth_of = |e: u32| {
        let unknown = || base.broken(format!("the depth of event {e} is not known"));
        depths.get(&e).copied().ok_or_else(unknown)
    };
    let mut last = vec![0; events.actors.len()];
    for (e, actor) in tails {
        last[actor as usize] = depth_of(e)?;
    }
    let mut rank = base.header().events;
    let sequence = std::mem::take(&mut order.sequence);
    for &unit in &sequence {
        for e in units.events(events, unit) {
            let i = e as usize;
            if let Some(old) = delta.in_base[i] {
                (order.rank[i], order.depth[i]) = (base.order(old)?, depth_of(old)?);
                continue;
            }
            rank += 1;
            order.rank[i] = rank;
            order.depth[i] = 1;
            if !units.is_alone(unit) {
                let mate = matching.mates()[i];
                let cause = match mate {
                    NONE => 0,
                    _ if is_send(events.kind[i]) => 0,
                    _ => order.depth[mate as usize],
                };
                let last = &mut last[events.actor[i] as usize];
                order.depth[i] = 1 + cause.max(*last);
                *last = order.depth[i];
            }
        }
    }
    order.sequence = sequence;
    Ok(())
}

impl Ordered {
    /// The events.
    pub(crate) fn events(&self) -> &Events {
        &self.delta.loaded.events
    }

    /// Whether the event was added.
    pub(crate) fn is_added(&self, e: u32) -> bool {
        self.delta.in_base[e as usize].is_none()
    }

    /// The rows of a batch that were added, of which the first is the event `first`.
    pub(crate) fn added_rows(&self, first: u32, rows: usize) -> UInt32Array {
        (0..rows as u32).filter(|row| self.is_added(first + row)).collect::<Vec<_>>().into()
    }

    /// The summary of the whole.
    pub(crate) fn summary(&self, base: &BuildSummary) -> BuildSummary {
        let events = self.events();
        let added = (0..events.len() as u32).filter(|&e| self.is_added(e));
        let (mut more, mut deliveries, mut deepest) = (0, 0, base.depth);
        for e in added {
            more += 1;
            deliveries += u64::from(Kind::is_delivery(events.kind[e as usize]));
            deepest = deepest.max(u64::from(self.order.depth[e as usize]));
        }
        let (matched, mut unmatched) = unmatched::count(events, &self.matching);
        unmatched.sender_missing += base.unmatched.sender_missing;
        unmatched.duplicate += base.unmatched.duplicate;
        unmatched.external += base.unmatched.external;
        let mut warnings = base.warnings.clone();
        warnings.extend(self.delta.loaded.warnings.iter().cloned());
        warnings.extend(self.matching.warnings.iter().cloned());
        let notes = unmatched::notes(events, &self.matching);
        warnings.extend(notes.into_iter().map(|note| format!("among {more} events added: {note}")));
        BuildSummary {
            system: base.system.clone(),
            events: base.events + more,
            kept: base.kept + more,
            pruned: 0,
            deliveries: base.deliveries + deliveries,
            kept_deliveries: base.kept_deliveries + deliveries,
            matched: base.matched + matched,
            clock_edges: 0,
            span_edges: 0,
            operation_edges: 0,
            stamps: None,
            unmatched,
            affected: Vec::new(),
            violation: Vec::new(),
            rule: ProvenanceRule::default(),
            backwards: base.backwards.clone(),
            channels_in_order: self.in_order,
            depth: deepest,
            plan: None,
            warnings,
            window: None,
        }
    }
}

//! What is found out about the events: who was joined with whom, in which order, and what is kept.

use std::sync::Arc;

use demi_common::sealed::SealedFile;
use demi_schemas::summary::{BuildSummary, StampCheck};

use super::options::{Artifact, BuildOptions};
use crate::error::LineageError;
use crate::execution::Folder;
use crate::grow::BaseFacts;
use crate::matching::{
    Channels, LastDeliveries, LoggedClocks, Matching, Reason, by_id, channels, clocks, content, unmatched,
};
use crate::order::{Graph, Order, Provenance, Target, ViolationSpec, against, provenance};
use crate::read::{Contents, Events, Loaded, Placement, Units, operations};

/// All results of the analysis of the events.
pub(super) struct Lineage {
    matching: Matching,
    order: Order,
    target: Target,
    units: Units,
    channels_in_order: bool,
    base: Option<BaseFacts>,
    stamps: Option<StampCheck>,
}

impl Lineage {
    /// The edges between sends and receives.
    pub(super) fn matching(&self) -> &Matching {
        &self.matching
    }

    /// The linear extension.
    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    /// The units of all events.
    pub(super) fn units(&self) -> &Units {
        &self.units
    }

    /// The facts that a later build can grow from, where they are wanted.
    pub(super) fn base(&self) -> &Option<BaseFacts> {
        &self.base
    }
}

/// Matches messages, orders events and takes the causal past of the violation.
pub(super) fn analyse(
    files: &[SealedFile],
    loaded: &mut Loaded,
    placement: Arc<Placement>,
    target: Target,
    folder: &Folder,
    extra: Artifact,
) -> Result<Lineage, LineageError> {
    let clocks = match loaded.clocked {
        true => Some(LoggedClocks::read(files, &loaded.events, &placement, &folder.scratch())?),
        false => None,
    };
    let events = &mut loaded.events;
    let mut matching = Matching::none(events.len());
    let shared = by_id::join(events, &mut matching);
    let contents = Contents::read(files, &placement, &content::wanted(events, &matching, &shared))?;
    by_id::tell_apart(events, &mut matching, &contents, &shared);
    by_id::doubt(events, &mut matching, files, &placement)?;
    content::timers(events, &mut matching, &contents);
    content::messages(events, &mut matching, &contents);
    content::unaddressed(events, &mut matching, &contents);
    if let Some(clocks) = clocks {
        match clocks.join(events, &mut matching) {
            Ok(warnings) => matching.warnings.extend(warnings),
            Err(problems) => {
                return Err(clocks::refuse(files, events, &placement, &folder.scratch(), problems));
            }
        }
    }
    for edge in &loaded.spans {
        // A message that the span took may say the same.
        let known = matching.mate(edge.effect()) == edge.cause();
        if !known || edge.is_certain() && !matching.certain[edge.effect() as usize] {
            let reason = if edge.is_link() { Reason::Link } else { Reason::Parent };
            matching.add_extra(edge.cause(), edge.effect(), reason, edge.is_certain());
        }
    }
    let operations = operations::read(files, events, &placement)?;
    for edge in &operations.edges {
        matching.add_extra(edge.cause, edge.effect, Reason::Operation, edge.certain);
    }
    matching.warnings.extend(operations.warnings);
    matching.sort_extra();
    let observed = Channels::observe(events, &matching, LastDeliveries::default(), true);
    unmatched::explain(events, &mut matching, &contents, &observed);
    drop(contents);
    matching.warnings.extend(unmatched::differ_in_type(events, &matching, files, &placement)?);
    let base = match extra {
        Artifact::Base => {
            let clocked = loaded.clocked || loaded.has_spans || operations.any;
            Some(BaseFacts::of(events, &matching, &observed, clocked, &folder.base())?)
        }
        Artifact::Schedule => None,
    };
    events.id = Vec::new();
    let stamps = match extra {
        Artifact::Schedule => against::compare(files, &placement, events, &matching)?,
        Artifact::Base => None,
    };
    // Memory is needed for the order from here on.
    drop(placement);
    let units = Units::new(events, matching.extra());
    let (mut preferences, broken) = observed.preferences(events, &matching, &units);
    preferences.extend(channels::log_order(events, &units));
    events.to = Vec::new();
    let mut order = Graph::new(events, &units, preferences).order(&mut matching);
    let mut broken: Vec<String> = broken.0.iter().map(|c| channels::note(events, *c)).collect();
    broken.sort_unstable();
    let channels_in_order = observed.in_order() && broken.is_empty() && !order.channel_dropped();
    order.warnings.extend(broken);
    Ok(Lineage { matching, order, target, units, channels_in_order, base, stamps })
}

/// What is kept of the events, and why.
pub(super) fn keep(events: &Events, lineage: &Lineage, options: &BuildOptions) -> Provenance {
    let Lineage { matching, order, target, units, .. } = lineage;
    match options.violation {
        ViolationSpec::None => Provenance::all(events),
        _ => provenance::causal_past(events, units, matching, &order.sequence, target, options.rule),
    }
}

/// The figures of what was found, for `summary.json`.
pub(super) fn summarize(
    loaded: &Loaded,
    lineage: &Lineage,
    provenance: &Provenance,
    options: &BuildOptions,
) -> BuildSummary {
    let events = &loaded.events;
    let kept = |e: &usize| provenance.kept()[*e];
    let delivery = |e: &usize| events.kind[*e].is_delivery();
    let (matched, unmatched) = unmatched::count(events, &lineage.matching);
    let further = |such: fn(Reason) -> bool| {
        lineage.matching.extra_evidence().iter().filter(|how| such(how.reason)).count() as u64
    };
    let n_kept = (0..events.len()).filter(kept).count();
    let mut warnings = loaded.warnings.to_vec();
    warnings.extend(lineage.target.warnings().iter().cloned());
    warnings.extend(lineage.matching.warnings.iter().cloned());
    warnings.extend(lineage.order.warnings.iter().cloned());
    warnings.extend(unmatched::notes(events, &lineage.matching));
    BuildSummary {
        system: options.system.clone(),
        events: events.len() as u64,
        kept: n_kept as u64,
        pruned: (events.len() - n_kept) as u64,
        deliveries: (0..events.len()).filter(delivery).count() as u64,
        kept_deliveries: (0..events.len()).filter(kept).filter(delivery).count() as u64,
        matched,
        clock_edges: further(|reason| reason == Reason::Clock),
        span_edges: further(|reason| matches!(reason, Reason::Parent | Reason::Link)),
        operation_edges: further(|reason| reason == Reason::Operation),
        stamps: lineage.stamps.clone(),
        unmatched,
        affected: lineage.target.affected().to_vec(),
        violation: lineage.target.fingerprints().to_vec(),
        rule: options.rule,
        backwards: options.backwards.clone(),
        channels_in_order: lineage.channels_in_order,
        depth: u64::from(lineage.order.depth.iter().copied().max().unwrap_or(0)),
        plan: options.plan.clone(),
        warnings,
        window: options.window.clone(),
    }
}

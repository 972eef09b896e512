//! The causal past of the violation: a cut, one place in each log, found by a fixpoint over prefixes.

use demi_schemas::Kind;
use demi_schemas::summary::ProvenanceRule;

use super::violation::Target;
use crate::matching::Matching;
use crate::read::{Events, NONE, Units, is_send};

/// The reason to keep an event or to leave it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepReason {
    /// At the same time as far as causes go: left out.
    Concurrent,
    /// After what the violation is about: left out.
    After,
    /// What the violation is about: an affected actor's last event, or under the strict rule its last delivery.
    Affected,
    /// Before it.
    Past,
    /// In the handler of a delivery that was kept.
    Handler,
    /// A record of the violation.
    Violation,
    /// Everything is kept.
    All,
}

impl KeepReason {
    /// All of them; a place in this list is what is stored.
    const EACH: [KeepReason; 7] = [
        KeepReason::Concurrent,
        KeepReason::After,
        KeepReason::Affected,
        KeepReason::Past,
        KeepReason::Handler,
        KeepReason::Violation,
        KeepReason::All,
    ];

    /// From what is stored, the bits of [`KeepReason::code`].
    pub(crate) fn from_code(code: u8) -> Option<KeepReason> {
        KeepReason::EACH.get(code as usize).copied()
    }

    /// What is stored.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The word written in tables.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            KeepReason::Concurrent => "concurrent",
            KeepReason::After => "after",
            KeepReason::Affected => "affected",
            KeepReason::Past => "past",
            KeepReason::Handler => "handler",
            KeepReason::Violation => "violation",
            KeepReason::All => "all",
        }
    }
}

/// The reasons by event.
pub(crate) struct Provenance {
    /// By event.
    kept: Vec<bool>,
    /// By event.
    why: Vec<KeepReason>,
}

impl Provenance {
    /// By event.
    pub(crate) fn kept(&self) -> &[bool] {
        &self.kept
    }

    /// By event.
    pub(crate) fn why(&self) -> &[KeepReason] {
        &self.why
    }
}

/// Prefixes of logs, grown until they hold the causes of everything in them. Work is linear in what is kept.
struct ConsistentCut<'a> {
    events: &'a Events,
    units: &'a Units,
    matching: &'a Matching,
    /// By actor: end of its prefix.
    end: Vec<u32>,
    /// Units alone whose message is received in the cut.
    alone: Vec<u32>,
    work: Vec<(u32, u32)>,
}

impl Provenance {
    /// Everything is kept, because nothing in particular is asked for.
    pub(crate) fn all(events: &Events) -> Provenance {
        Provenance { kept: vec![true; events.len()], why: vec![KeepReason::All; events.len()] }
    }
}

impl ConsistentCut<'_> {
    /// The end of the unit that holds `e`: a handler is kept whole.
    fn unit_end(&self, e: u32) -> u32 {
        match self.units.next(self.units.unit_of(e)) {
            NONE => self.events.of_actor(self.events.actor[e as usize]).end,
            next => self.units.first(next),
        }
    }

    fn add(&mut self, e: u32) {
        if self.units.is_alone(self.units.unit_of(e)) {
            self.alone.push(e);
        } else {
            self.work.push((self.events.actor[e as usize], self.unit_end(e)));
        }
    }

    fn add_cause(&mut self, e: u32) {
        let cause = self.matching.mate(e);
        if cause != NONE && !is_send(self.events.kind[e as usize]) {
            self.add(cause);
        }
        let matching = self.matching;
        matching.extra_into(e).for_each(|(cause, _)| self.add(cause));
    }

    fn close(&mut self) {
        while let Some((actor, end)) = self.work.pop() {
            let from = self.end[actor as usize];
            if end > from {
                self.end[actor as usize] = end;
                (from..end).for_each(|e| self.add_cause(e));
            }
        }
    }
}

/// The last delivery of the actor of `e`, at or before it.
fn last_delivery(events: &Events, e: u32) -> Option<u32> {
    let start = events.of_actor(events.actor[e as usize]).start;
    (start..=e).rev().find(|&e| events.kind[e as usize].is_delivery())
}

/// Keeps the causal past of the target's events by `rule`.
///
/// Strict is DEMi's rule (Scott et al., NSDI 2016): of the deliveries, those strictly before at least one affected actor's last.
/// A message sent outside any handler has no cause, and is kept when its delivery is; so are the environment's. Code
/// that ran outside the actors is always kept, because logs do not say what it caused.
pub(crate) fn causal_past(
    events: &Events,
    units: &Units,
    matching: &Matching,
    sequence: &[u32],
    target: &Target,
    rule: ProvenanceRule,
) -> Provenance {
    let end = (0..events.actors.len() as u32).map(|a| events.of_actor(a).start).collect();
    let mut cut = ConsistentCut { events, units, matching, end, alone: Vec::new(), work: Vec::new() };
    let aims: Vec<u32> = match rule {
        ProvenanceRule::Inclusive => target.events().to_vec(),
        ProvenanceRule::Strict => target.events().iter().filter_map(|&e| last_delivery(events, e)).collect(),
    };
    for &aim in &aims {
        match rule {
            ProvenanceRule::Inclusive => cut.add(aim),
            ProvenanceRule::Strict => {
                cut.work.push((events.actor[aim as usize], units.first(units.unit_of(aim))));
                cut.add_cause(aim);
            }
        }
    }
    cut.close();

    let mut why = vec![KeepReason::Concurrent; events.len()];
    let mut kept = vec![false; events.len()];
    mark_after(events, units, matching, sequence, &aims, &mut why);
    for actor in 0..events.actors.len() as u32 {
        for e in events.of_actor(actor).start..cut.end[actor as usize] {
            let unit = units.unit_of(e) as usize;
            if !units.is_alone(unit as u32) {
                kept[e as usize] = true;
                let in_handler = units.first(unit as u32) != e
                    && events.kind[units.first(unit as u32) as usize].is_delivery();
                why[e as usize] = if in_handler { KeepReason::Handler } else { KeepReason::Past };
            }
        }
    }
    for &e in &cut.alone {
        (kept[e as usize], why[e as usize]) = (true, KeepReason::Past);
    }
    for e in 0..events.len() {
        if events.kind[e] == Kind::Action && events.in_environment(e as u32) {
            (kept[e], why[e]) = (true, KeepReason::Past);
        }
    }
    for &e in &aims {
        // Under the strict rule an affected actor's last delivery stays out unless it precedes another's.
        if rule == ProvenanceRule::Inclusive || !kept[e as usize] {
            why[e as usize] = KeepReason::Affected;
        }
    }
    for &e in target.records() {
        (kept[e as usize], why[e as usize]) = (true, KeepReason::Violation);
    }
    Provenance { kept, why }
}

/// Marks what comes after the aims, going once through the order.
fn mark_after(
    events: &Events,
    units: &Units,
    matching: &Matching,
    sequence: &[u32],
    aims: &[u32],
    why: &mut [KeepReason],
) {
    let mut actor_after = vec![false; events.actors.len()];
    let mut aims = aims.to_vec();
    aims.sort_unstable();
    for &unit in sequence {
        let alone = units.is_alone(unit);
        for e in units.events(events, unit) {
            let i = e as usize;
            let actor = &mut actor_after[events.actor[i] as usize];
            let mate = matching.mates()[i];
            let mut after = *actor && !alone;
            if mate != NONE && !is_send(events.kind[i]) {
                let cause = why[mate as usize] == KeepReason::After || aims.binary_search(&mate).is_ok();
                after |= cause;
            }
            after |= matching
                .extra_into(e)
                .any(|(c, _)| why[c as usize] == KeepReason::After || aims.binary_search(&c).is_ok());
            if after {
                why[i] = KeepReason::After;
            }
            if !alone {
                *actor = after || aims.binary_search(&e).is_ok();
            }
        }
    }
}

//! The order that was found, compared with the stamps of the logs.
//!
//! Clocks of two hosts may differ, so an edge between logs may run against the stamps of its ends and be right. What can be said is how many
//! do, and whether a constant difference of the two clocks explains all messages between two actors: from one to the other, no message takes
//! less than the difference; back, none takes less than its negative. Where the least of both directions together is below zero, no constant
//! difference fits. Then a clock was set in between, or events were joined or ordered wrongly. In a log, stamps that run backwards say
//! the same.
//!
//! A stamp is as fine as it is written: within that nothing runs against it.

use std::collections::BTreeMap;

use demi_common::sealed::SealedFile;
use demi_schemas::summary::{AgainstStamps, Contradiction, StampCheck};

use crate::error::LineageError;
use crate::matching::Matching;
use crate::read::{Events, NONE, Placement, Stamps, is_send};

/// The tightest edge: the most nanoseconds that may be between its ends, and both ends.
type TightestEdge = (i128, u32, u32);

/// A tally of edges or steps that run against stamps.
#[derive(Default)]
struct StampTally {
    all: u64,
    against: u64,
    /// Cause and effect of the first, in the order of names, and of the one that runs against them most.
    first: Option<(u32, u32)>,
    most: Option<(u64, u32, u32)>,
}

impl StampTally {
    fn add(&mut self, stamps: &Stamps, cause: u32, effect: u32) {
        let (Some(earlier), Some(later)) = (stamps.of(cause), stamps.of(effect)) else { return };
        self.all += 1;
        if let Some(nanos) = later.before(earlier) {
            self.against += 1;
            self.first = self.first.or(Some((cause, effect)));
            if self.most.is_none_or(|(most, ..)| nanos > most) {
                self.most = Some((nanos, cause, effect));
            }
        }
    }

    fn told(&self, events: &Events) -> AgainstStamps {
        let names = |pair: Option<(u32, u32)>| {
            pair.map(|(a, b)| [events.name(a).to_string(), events.name(b).to_string()]).unwrap_or_default()
        };
        AgainstStamps {
            compared: self.all,
            against: self.against,
            first: names(self.first),
            most: names(self.most.map(|(_, a, b)| (a, b))),
            most_nanos: self.most.map_or(0, |(nanos, ..)| nanos),
        }
    }
}

/// Compares certain edges between logs and the order of each log with the stamps; nothing where no event has one.
pub(crate) fn compare(
    files: &[SealedFile],
    placement: &Placement,
    events: &Events,
    matching: &Matching,
) -> Result<Option<StampCheck>, LineageError> {
    let Some(stamps) = Stamps::read(files, placement)? else { return Ok(None) };
    let (mut edges, mut steps) = (StampTally::default(), StampTally::default());
    let mut least: BTreeMap<(u32, u32), TightestEdge> = BTreeMap::new();
    let mut actors_back = 0;
    for actor in 0..events.actors.len() as u32 {
        let (mut before, back) = (None, steps.against);
        for effect in events.of_actor(actor) {
            let i = effect as usize;
            let mate = Some(matching.mates()[i]).filter(|&mate| {
                mate != NONE
                    && matching.certain[i]
                    && !is_send(events.kind[i])
                    && events.actor[mate as usize] != actor
            });
            let further = matching.extra_into(effect).filter(|(_, how)| how.certain).map(|(cause, _)| cause);
            for cause in mate.into_iter().chain(further) {
                edges.add(&stamps, cause, effect);
                let (Some(earlier), Some(later)) = (stamps.of(cause), stamps.of(effect)) else { continue };
                let pair = (events.actor[cause as usize], actor);
                let here = (later.after_at_most(earlier), cause, effect);
                let known = least.entry(pair).or_insert(here);
                *known = here.min(*known);
            }
            // What stands outside the order of its log says nothing.
            let alone = events.in_environment(effect) || is_thread(events, effect);
            if !alone
                && stamps.of(effect).is_some()
                && let Some(before) = before.replace(effect)
            {
                steps.add(&stamps, before, effect);
            }
        }
        actors_back += u64::from(steps.against > back);
    }
    let mut contradictions = Vec::new();
    for (&(a, b), &(there, ..)) in least.iter().filter(|((a, b), _)| a < b) {
        if let Some(&(back, ..)) = least.get(&(b, a))
            && there + back < 0
        {
            let edge = |pair| {
                least.get(&pair).map(|&(_, x, y)| [events.name(x).to_string(), events.name(y).to_string()])
            };
            contradictions.push(Contradiction {
                there: edge((a, b)).unwrap_or_default(),
                back: edge((b, a)).unwrap_or_default(),
                nanos: u64::try_from(-(there + back)).unwrap_or(u64::MAX),
            });
        }
    }
    Ok(Some(StampCheck {
        stamped: (0..events.len() as u32).filter(|&event| stamps.of(event).is_some()).count() as u64,
        edges: edges.told(events),
        logs: steps.told(events),
        logs_back: actors_back,
        contradictions,
    }))
}

fn is_thread(events: &Events, event: u32) -> bool {
    is_send(events.kind[event as usize]) && events.via(event) == Some(demi_schemas::Via::Thread)
}

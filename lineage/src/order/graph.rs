//! The graph of units whose linear extension is the order of events.

use rustc_hash::FxHashSet;

use crate::matching::{Evidence, Matching, Preference};
use crate::read::{Events, NONE, Units, is_send};

/// An edge between units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The order of an actor's log.
    Log,
    /// A message, named by its receive.
    Message(u32),
    /// A preference of a channel, by its number.
    Preference(u32),
    /// What vector clocks tell, or a span's parent or link; named by the later event, with whether it is certain.
    Clock(u32, bool),
}

/// The graph of units: an actor's next unit, the units its messages reach, and preferences.
pub(crate) struct Graph<'a> {
    events: &'a Events,
    units: &'a Units,
    /// Sorted by the earlier unit.
    preferences: Vec<Preference>,
    /// By unit: whether a preference begins there, because a search for each would cost more than all else.
    preferring: Vec<bool>,
    /// Further edges, sorted by the earlier event.
    pub(super) extra: Vec<(u32, u32, Evidence)>,
    pub(super) dropped: FxHashSet<Group>,
}

impl<'a> Graph<'a> {
    /// The events.
    pub(crate) fn events(&self) -> &'a Events {
        self.events
    }

    /// The units of the events.
    pub(crate) fn units(&self) -> &'a Units {
        self.units
    }

    /// Sorted by the earlier unit.
    pub(super) fn preferences(&self) -> &[Preference] {
        &self.preferences
    }
}

/// Preferences that are dropped together.
pub(super) type Group = ((u32, u32), bool);

pub(super) fn group(preference: &Preference) -> Group {
    (preference.channel(), preference.undelivered())
}

impl<'a> Graph<'a> {
    /// The graph with all preferences.
    pub(crate) fn new(events: &'a Events, units: &'a Units, mut preferences: Vec<Preference>) -> Self {
        preferences.sort_unstable();
        preferences.dedup_by_key(|w| (w.before(), w.after()));
        let mut preferring = vec![false; units.len()];
        preferences.iter().for_each(|w| preferring[w.before() as usize] = true);
        Graph { events, units, preferences, preferring, extra: Vec::new(), dropped: FxHashSet::default() }
    }

    /// Calls `f` with each edge out of `unit`.
    pub(crate) fn each_edge(&self, matching: &Matching, unit: u32, mut f: impl FnMut(u32, Edge)) {
        if self.units.next(unit) != NONE {
            f(self.units.next(unit), Edge::Log);
        }
        for e in self.units.events(self.events, unit) {
            let receive = matching.mate(e);
            if receive != NONE && is_send(self.events.kind[e as usize]) {
                f(self.units.unit_of(receive), Edge::Message(receive));
            }
            if !self.extra.is_empty() {
                let from = self.extra.partition_point(|x| x.0 < e);
                for &(_, effect, how) in self.extra[from..].iter().take_while(|x| x.0 == e) {
                    let edge = match how.reason.is_no_message() {
                        true => Edge::Clock(effect, how.certain),
                        false => Edge::Message(effect),
                    };
                    f(self.units.unit_of(effect), edge);
                }
            }
        }
        if !self.preferring[unit as usize] {
            return;
        }
        let from = self.preferences.partition_point(|w| w.before() < unit);
        for (i, preference) in
            self.preferences[from..].iter().enumerate().take_while(|(_, w)| w.before() == unit)
        {
            if self.dropped.is_empty() || !self.dropped.contains(&group(preference)) {
                f(preference.after(), Edge::Preference((from + i) as u32));
            }
        }
    }

    /// Whether a preference is about a message that was never delivered.
    pub(crate) fn is_guess(&self, preference: u32) -> bool {
        self.preferences[preference as usize].undelivered()
    }
}

//! What is to be done next, from what the journal says and what is seen. Nothing here reads a clock or a file.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;

use crate::event::{Event, News, Outcome, Parked, Reason, Stage};
use crate::fold::{Incident, MOST_LOST, MOST_TRIES, State, Status, Work};
use crate::group::group;
use crate::id::IncidentId;

/// How many incidents of a kind are looked at in a day before the others wait.
pub const EXAMINED: usize = 5;
/// A day, in milliseconds.
const DAY: i64 = 24 * 3600 * 1000;
/// Most incidents that one decision is about.
const AT_A_TIME: usize = 500;
/// Pauses before an incident is tried again by itself.
const PAUSES: [u64; 2] = [60_000, 300_000];

/// What somebody has seen, by its own clock. Clocks of two machines are never compared.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    now: u64,
    /// By incident and attempt: the last beat, and since when it has been the last.
    beats: BTreeMap<(IncidentId, u32), (u64, u64)>,
    /// Since when an incident has been known, or known as failed.
    known: BTreeMap<IncidentId, u64>,
    failed: BTreeMap<(IncidentId, u32, u32), u64>,
}

impl Seen {
    /// Looks around, `now` in milliseconds of a clock that never runs backwards. `beat` says how often the holder of an attempt has given a sign of life.
    pub fn look(&mut self, state: &State, now: u64, beat: impl Fn(IncidentId, u32) -> u64) {
        self.now = now.max(self.now);
        let now = self.now;
        let active = || state.active().iter().filter_map(|id| Some((*id, state.incidents().get(id)?)));
        for (id, incident) in active() {
            self.known.entry(id).or_insert(now);
            match incident.work() {
                Work::Held { .. } => {
                    let count = beat(id, incident.attempt());
                    let last = self.beats.entry((id, incident.attempt())).or_insert((count, now));
                    if last.0 != count {
                        *last = (count, now);
                    }
                }
                Work::Failed { .. } => {
                    self.failed.entry((id, incident.attempt(), incident.tries())).or_insert(now);
                }
                _ => {}
            }
        }
        // What is over is forgotten.
        self.known.retain(|id, _| state.active().contains(id));
        let current = |id: &IncidentId, attempt: u32| {
            state.active().contains(id)
                && state.incidents().get(id).is_some_and(|incident| incident.attempt() == attempt)
        };
        self.beats.retain(|(id, attempt), _| current(id, *attempt));
        self.failed.retain(|(id, attempt, _), _| current(id, *attempt));
    }

    /// For how long nothing was seen of the attempt that holds an incident.
    fn silent(&self, id: IncidentId, attempt: u32) -> u64 {
        self.beats.get(&(id, attempt)).map_or(0, |(_, since)| self.now - since)
    }

    fn known_for(&self, id: IncidentId) -> u64 {
        self.known.get(&id).map_or(0, |since| self.now - since)
    }
}

/// What a worker is and may do.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// After how many milliseconds without a sign of life an attempt is taken for lost.
    pub lease: u64,
    /// How many milliseconds a record from the store has to be known before its past is taken for complete.
    pub settle: u64,
}

/// Takes the most important incident that can be worked on: the events that say so, and which it is. `can` says whether this worker can.
#[must_use]
pub fn claim(
    state: &State,
    seen: &Seen,
    worker: &Worker,
    can: impl Fn(&Incident) -> bool,
) -> Option<(IncidentId, Vec<Event>)> {
    let mut examined: BTreeMap<IncidentId, bool> = BTreeMap::new();
    let mut rank = |id: &IncidentId| -> Option<(u32, u64, IncidentId)> {
        let incident = state.incidents().get(id)?;
        let ready = match incident.work() {
            Work::Waiting => {
                let from_store = matches!(incident.opened().source, crate::event::Source::Record { .. });
                !from_store || seen.known_for(*id) >= worker.settle
            }
            Work::Held { .. } => seen.silent(*id, incident.attempt()) >= worker.lease,
            _ => false,
        };
        if !ready || !can(incident) {
            return None;
        }
        let kind = state.of_kind(incident.opened());
        let first = kind.first().copied().unwrap_or(*id);
        // Once for all of a kind, which may be thousands.
        let examined = *examined.entry(first).or_insert_with(|| is_examined(state, kind));
        Some((importance(incident, examined), incident.entry(), *id))
    };
    let (_, _, id) = state.active().iter().filter_map(&mut rank).min()?;
    let incident = state.incidents().get(&id)?;
    let held = matches!(incident.work(), Work::Held { .. });
    if held && incident.lost() + 1 >= MOST_LOST {
        let said = format!("its worker was lost {MOST_LOST} times, last {}", incident.worker());
        let failed = Event::Failed { id, attempt: incident.attempt(), reason: Reason::LeaseLost, said };
        return Some((id, vec![failed]));
    }
    let attempt = incident.attempt() + 1;
    Some((id, vec![Event::Claimed { id, attempt, worker: worker.name.clone() }]))
}

/// Whether somebody has looked at one of a kind.
fn is_examined(state: &State, kind: &[IncidentId]) -> bool {
    kind.iter()
        .any(|id| state.incidents().get(id).is_some_and(|other| matches!(other.work(), Work::Done { .. })))
}

/// What comes first has the lowest number: what somebody made urgent, a kind that nobody has looked at, further ones.
fn importance(incident: &Incident, examined: bool) -> u32 {
    let urgent = incident.opened().severity.as_deref().is_some_and(|s| ["critical", "urgent"].contains(&s));
    match (urgent, examined) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

/// Incidents that failed for a reason that may go, and are due.
#[must_use]
pub fn retries(state: &State, seen: &Seen) -> Vec<Event> {
    let due = |((id, attempt, tries), since): (&(IncidentId, u32, u32), &u64)| {
        let incident = state.incidents().get(id)?;
        let Work::Failed { reason } = incident.work() else { return None };
        let pause = PAUSES.get((*tries as usize).saturating_sub(1))?;
        let again = reason.is_transient() && incident.attempt() == *attempt && *tries < MOST_TRIES;
        (again && seen.now - since >= *pause).then(|| Event::Retry { id: *id, by: String::new() })
    };
    seen.failed.iter().filter_map(due).take(AT_A_TIME).collect()
}

/// Incidents that wait though enough of their kind were opened in the day before: one in 2^k is still looked at, so that another bug behind the same
/// invariant is found.
#[must_use]
pub fn bursts(state: &State) -> Vec<Event> {
    let waits = |id: &IncidentId| {
        let incident = state.incidents().get(id);
        incident.is_some_and(|incident| incident.work() == Work::Waiting && incident.attempt() == 0)
    };
    let mut kinds: BTreeMap<IncidentId, &[IncidentId]> = BTreeMap::new();
    for id in state.active().iter().filter(|id| waits(id)) {
        if let Some(incident) = state.incidents().get(id) {
            let kind = state.of_kind(incident.opened());
            kinds.entry(kind.first().copied().unwrap_or(*id)).or_insert(kind);
        }
    }
    let mut ids = Vec::new();
    for kind in kinds.into_values() {
        let places = places(state, kind);
        let rest = kind.iter().zip(places).filter(|(_, at)| *at >= EXAMINED && !(at + 1).is_power_of_two());
        ids.extend(rest.map(|(id, _)| *id).filter(waits).take(AT_A_TIME - ids.len().min(AT_A_TIME)));
    }
    if ids.is_empty() { Vec::new() } else { vec![Event::Parked { ids, reason: Parked::Burst }] }
}

/// How many of a kind were opened in the day before each, by the clocks of those who opened them.
fn places(state: &State, kind: &[IncidentId]) -> Vec<usize> {
    let time = |id: &IncidentId| {
        let opened_at = state.incidents().get(id).map(Incident::opened_at).unwrap_or_default();
        DateTime::parse_from_rfc3339(opened_at).map_or(0, |at| at.timestamp_millis())
    };
    let times: Vec<i64> = kind.iter().map(time).collect();
    let mut from = 0;
    let mut places = Vec::with_capacity(times.len());
    for (at, now) in times.iter().enumerate() {
        while from < at && times[from] < now.saturating_sub(DAY) {
            from += 1;
        }
        places.push(at - from);
    }
    places
}

/// Bugs of incidents that are done.
#[must_use]
pub fn groupings(state: &State) -> Vec<Event> {
    // One at a time: what the first founds, the second belongs to.
    let next = state.ungrouped().iter().filter_map(|id| state.incidents().get(id)).min_by_key(|incident| {
        // In the order in which they happened.
        (incident.entry(), incident.opened().id)
    });
    next.map(|incident| group(state, incident)).unwrap_or_default()
}

/// A receiver of news, as far as decisions need it.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Its name.
    pub name: String,
    /// What it wants to know.
    pub news: BTreeSet<News>,
    /// Globs of systems; all where there is none.
    pub systems: Vec<String>,
}

/// News that nobody has queued yet.
#[must_use]
pub fn deliveries(state: &State, receivers: &[Receiver]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut tell = |subject: &str, news: News, id: IncidentId, system: &str| {
        for receiver in receivers {
            let wanted = receiver.news.contains(&news)
                && (receiver.systems.is_empty()
                    || receiver.systems.iter().any(|pattern| crate::models::glob(pattern, system)));
            let key = format!("{subject}.{}.{}", news.word(), receiver.name);
            if wanted && events.len() < AT_A_TIME && !state.deliveries().contains_key(&key) {
                let receiver = receiver.name.clone();
                events.push(Event::Queued { key, receiver, news, id });
            }
        }
    };
    // The first of a kind is told at once: nobody knows yet whether its bug is known.
    for kind in state.kinds() {
        let first = kind.first().and_then(|id| Some((*id, state.incidents().get(id)?)));
        if let Some((id, incident)) = first {
            tell(&id.to_string(), News::Seen, id, &incident.opened().system);
        }
    }
    // The first of a kind speaks for all that fail for the same reason.
    let mut failing: BTreeMap<(IncidentId, Reason), (u64, IncidentId)> = BTreeMap::new();
    for id in state.active() {
        let Some(incident) = state.incidents().get(id) else { continue };
        if let Work::Failed { reason } = incident.work()
            && (!reason.is_transient() || incident.tries() >= MOST_TRIES)
        {
            let kind = state.of_kind(incident.opened()).first().copied().unwrap_or(*id);
            let own = (incident.entry(), *id);
            let first = failing.entry((kind, reason)).or_insert(own);
            *first = own.min(*first);
        }
    }
    for (_, id) in failing.into_values() {
        let Some(incident) = state.incidents().get(&id) else { continue };
        tell(&format!("{id}.{}", incident.attempt()), News::Failed, id, &incident.opened().system);
    }
    for (number, bug) in state.bugs() {
        if bug.muted() || matches!(bug.status(), Status::Merged { .. }) {
            continue;
        }
        let id = bug.representative();
        let subject = format!("B-{number}");
        if state.incidents().get(&id).is_some_and(|i| i.work() == Work::Done { outcome: Outcome::Minimized })
        {
            tell(&format!("{subject}.1"), News::Ready, id, bug.system());
        }
        if bug.regressions() > 0 {
            tell(&format!("{subject}.{}", bug.regressions()), News::Regressed, id, bug.system());
        }
        if matches!(bug.status(), Status::Resolved { .. }) {
            tell(&format!("{subject}.{}", bug.regressions() + 1), News::Resolved, id, bug.system());
        }
        let occurrences = bug.incidents().len();
        for milestone in [10, 100, 1000].into_iter().filter(|milestone| occurrences >= *milestone) {
            tell(&format!("{subject}.{milestone}"), News::Milestone, id, bug.system());
        }
    }
    events
}

/// Everything that anybody who looks may decide.
#[must_use]
pub fn housekeeping(state: &State, seen: &Seen, receivers: &[Receiver]) -> Vec<Event> {
    let mut events = retries(state, seen);
    events.extend(bursts(state));
    events.extend(groupings(state));
    if events.is_empty() {
        events = deliveries(state, receivers);
    }
    events
}

/// Up to where the journal was found to leave nothing to decide. Until it goes on, only what waits for a time can be due, and thousands of incidents need
/// not be looked through again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calm(Option<u64>);

impl Calm {
    /// As [`housekeeping`].
    #[must_use]
    pub fn housekeeping(&mut self, state: &State, seen: &Seen, receivers: &[Receiver]) -> Vec<Event> {
        if self.0 == Some(state.last()) {
            return retries(state, seen);
        }
        let events = housekeeping(state, seen, receivers);
        self.0 = events.is_empty().then(|| state.last());
        events
    }
}

/// The next stage of an attempt, with what the one before took and made.
#[must_use]
pub fn stage(id: IncidentId, attempt: u32, stage: Stage, seconds: f64) -> Event {
    Event::Stage { id, attempt, stage, seconds, outputs: Vec::new(), findings: None }
}

//! Which bug an incident is an occurrence of. The first rule that speaks decides, and says why.
//!
//! An incident has two schedules, what happened, reduced, and the shortest way. Two of one bug need not be equal: the shortest way is not always
//! found, and there may be several. So keys of both count, and an incident that has keys of two bugs makes them one.

use std::collections::BTreeSet;

use crate::event::{Event, Findings, Opened, Outcome};
use crate::fold::{Bug, Incident, State, Status, Work};

/// How much of two schedules has to be the same for their incidents to be of one bug, where no key is. Chosen on executions of six defects of Raft
/// with small budgets, and measured on others: docs/incidents.md has the figures.
const ALIKE: f64 = 0.85;
/// How many schedules of a bug a new one is compared with.
const COMPARED: usize = 32;

/// The events that say which bug an incident belongs to.
#[must_use]
pub fn group(state: &State, incident: &Incident) -> Vec<Event> {
    let id = incident.opened().id;
    if incident.work() != (Work::Done { outcome: Outcome::Minimized }) || incident.findings().keys.is_none() {
        return match incident.bug() {
            Some(bug) => {
                let nearest = incident.nearest();
                let why = incident.why().to_owned();
                vec![Event::Grouped { id, bug: Some(bug), keys: Vec::new(), why, nearest }]
            }
            None => vec![by_symptom(state, incident)],
        };
    }
    let one = One::of(incident.opened(), incident.findings());
    let own = incident.bug().and_then(|bug| state.bug(bug)).map(|(number, _)| number);
    let (bug, why) = match own {
        Some(own) => (Some(own), incident.why().to_owned()),
        None => match known(state, &one) {
            Some((number, why)) => (Some(number), why),
            None => (None, String::new()),
        },
    };
    let nearest = one.nearest(state, bug);
    let why = match (bug, nearest) {
        (Some(_), _) => why,
        (None, Some((number, overlap))) => {
            format!("no bug has its profile; the nearest is B-{number}, {:.0} % alike", overlap * 100.0)
        }
        (None, None) => "no bug has its profile".to_owned(),
    };
    let mut events = vec![Event::Grouped { id, bug, keys: one.texts(), why, nearest }];
    if let Some(bug) = bug {
        events.extend(one.joins(state, bug));
    }
    events
}

/// Whether an incident with these findings is of a bug that is known.
#[must_use]
pub fn is_known(state: &State, opened: &Opened, findings: &Findings) -> bool {
    known(state, &One::of(opened, findings)).is_some()
}

/// The keys by which an incident is known again.
#[must_use]
pub fn keys_of(incident: &Incident) -> Vec<String> {
    One::of(incident.opened(), incident.findings()).texts()
}

/// Where the switches of a scenario that a violation needs are told.
fn cause_text(model: &str, cause: &BTreeSet<String>) -> String {
    let names: Vec<&str> = cause.iter().map(String::as_str).collect();
    format!("cause:{model}:{}", names.join(","))
}

/// The causes of a bug.
fn causes_of(bug: &Bug) -> impl Iterator<Item = BTreeSet<&str>> {
    bug.keys().iter().filter_map(|key| {
        let names = key.strip_prefix("cause:")?.strip_prefix(bug.model())?.strip_prefix(':')?;
        Some(names.split(',').collect())
    })
}

/// An incident with what it is judged by.
struct One<'a> {
    findings: &'a Findings,
    /// The invariant that it breaks, without actors.
    invariant: String,
}

impl<'a> One<'a> {
    fn of(opened: &Opened, findings: &'a Findings) -> Self {
        let named = match findings.violation.first() {
            Some(found) if opened.invariant.is_empty() => found,
            _ => &opened.invariant,
        };
        One { findings, invariant: invariant_of(named).to_owned() }
    }

    /// Keys from exact to coarse, those of the shortest schedule first, and the cause.
    fn texts(&self) -> Vec<String> {
        let of = [self.findings.model.as_str(), self.invariant.as_str()];
        let both = [&self.findings.keys, &self.findings.reduced_keys];
        let all: Vec<Vec<String>> = both.into_iter().flatten().map(|keys| keys.texts(&of)).collect();
        let mut texts: Vec<String> = Vec::new();
        for kind in 0..3 {
            for keys in &all {
                texts.extend(keys.get(kind).filter(|key| !texts.contains(key)).cloned());
            }
        }
        if !self.findings.cause.is_empty() {
            texts.push(cause_text(&self.findings.model, &self.findings.cause));
        }
        texts
    }

    /// Whether a bug is of the same model and invariant.
    fn is_kind_of(&self, bug: &Bug) -> bool {
        bug.model() == self.findings.model && invariant_of(bug.invariant()) == self.invariant
    }

    /// Whether one repair ends the bug and this: all that one of them needs the other needs as well. A part that both need is not enough, since a
    /// model has defects that make many others possible.
    fn has_cause_of(&self, bug: &Bug) -> bool {
        let own: BTreeSet<&str> = self.findings.cause.iter().map(String::as_str).collect();
        !own.is_empty()
            && bug.model() == self.findings.model
            && causes_of(bug).any(|theirs| own.is_subset(&theirs) || theirs.is_subset(&own))
    }

    /// Whether the bug needs other switches than this: one repair does not end both.
    fn contradicts(&self, bug: &Bug) -> bool {
        let own: BTreeSet<&str> = self.findings.cause.iter().map(String::as_str).collect();
        let mut theirs = causes_of(bug).peekable();
        !own.is_empty() && theirs.peek().is_some() && theirs.all(|theirs| own.is_disjoint(&theirs))
    }

    /// How near the bug is, from 0 to 1.
    fn overlap(&self, state: &State, bug: &Bug) -> f64 {
        let Some(keys) = &self.findings.keys else { return 0.0 };
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut most = 0.0_f64;
        let representative = std::iter::once(bug.representative());
        for id in representative.chain(bug.incidents().iter().copied()) {
            if seen.len() >= COMPARED {
                break;
            }
            let theirs = state.incidents().get(&id).and_then(|other| other.findings().keys.as_ref());
            if let Some(theirs) = theirs.filter(|keys| seen.insert(&keys.shape)) {
                most = most.max(keys.overlap(theirs));
            }
        }
        most
    }

    /// The bug of the same model and invariant whose schedules are most like this one, but for its own.
    fn nearest(&self, state: &State, own: Option<u32>) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        for (number, bug) in state.bugs() {
            if Some(*number) == own || matches!(bug.status(), Status::Merged { .. }) || !self.is_kind_of(bug)
            {
                continue;
            }
            let overlap = self.overlap(state, bug);
            if overlap > best.map_or(0.0, |(_, most)| most) {
                best = Some((*number, overlap));
            }
        }
        best
    }

    /// Which rule of equality makes this an occurrence of a bug, if one does.
    fn same(&self, state: &State, number: u32, bug: &Bug, texts: &[String]) -> Option<String> {
        let owned = |kind: &str| {
            let mut keys = texts.iter().filter(|key| key.starts_with(kind));
            keys.any(|key| state.owner(key).and_then(|n| state.bug(n)).is_some_and(|(n, _)| n == number))
        };
        if self.is_kind_of(bug) && owned("exact:") {
            return Some("same execution".to_owned());
        }
        if self.has_cause_of(bug) {
            let names: Vec<&str> = self.findings.cause.iter().map(String::as_str).collect();
            return Some(format!("same repair: it needs {}", names.join(", ")));
        }
        if !self.is_kind_of(bug) || self.contradicts(bug) {
            return None;
        }
        [("shape:", "same shape"), ("profile:", "same profile")]
            .into_iter()
            .find(|(kind, _)| owned(kind))
            .map(|(_, why)| why.to_owned())
    }

    /// Other bugs that turn out to be the one that this is of. What people have split stays apart, and so does what they say is repaired. A bug by
    /// symptom has incidents of which nobody knows a schedule.
    fn joins(&self, state: &State, own: u32) -> Vec<Event> {
        let texts = self.texts();
        let by_symptom = |bug: &Bug| bug.keys().iter().any(|key| key.starts_with("symptom:"));
        let may = |bug: &Bug| bug.status().is_open() && !bug.is_apart() && !by_symptom(bug);
        if !state.bug(own).is_some_and(|(_, bug)| may(bug)) {
            return Vec::new();
        }
        let mut same: Vec<u32> = state
            .bugs()
            .iter()
            .filter(|(number, bug)| {
                **number != own && may(bug) && self.same(state, **number, bug, &texts).is_some()
            })
            .map(|(number, _)| *number)
            .collect();
        same.push(own);
        same.sort_unstable();
        let (into, ended) = same.split_first().map_or((own, &[][..]), |(first, rest)| (*first, rest));
        ended.iter().map(|bug| Event::Merged { bug: *bug, into, by: String::new() }).collect()
    }
}

/// The bug that an incident is an occurrence of, and why.
fn known(state: &State, one: &One<'_>) -> Option<(u32, String)> {
    one.findings.keys.as_ref()?;
    let texts = one.texts();
    let bugs = || state.bugs().iter().filter(|(_, bug)| !matches!(bug.status(), Status::Merged { .. }));
    // By the strength of what they have in common; of several, the oldest, and one of the same invariant before others.
    let rank = |bug: &Bug, why: &str| {
        let strength = ["same execution", "same repair", "same shape", "same profile"];
        (strength.iter().position(|word| why.starts_with(word)), !one.is_kind_of(bug))
    };
    let same = bugs()
        .filter_map(|(number, bug)| {
            let why = one.same(state, *number, bug, &texts)?;
            Some((rank(bug, &why), *number, why))
        })
        .min();
    if let Some((_, number, why)) = same {
        return Some((number, why));
    }
    let mut alike: Option<(u32, f64)> = None;
    for (number, bug) in bugs().filter(|(_, bug)| one.is_kind_of(bug) && !one.contradicts(bug)) {
        let overlap = one.overlap(state, bug);
        if overlap >= ALIKE && alike.is_none_or(|(_, most)| overlap > most) {
            alike = Some((*number, overlap));
        }
    }
    alike.map(|(number, overlap)| (number, format!("alike: {:.0} % of the steps", overlap * 100.0)))
}

/// An incident without a schedule is grouped by what was seen: model, invariant and what was refused.
fn by_symptom(state: &State, incident: &Incident) -> Event {
    let opened = incident.opened();
    let symptom = &incident.findings().symptom;
    let outcome = incident.work().words().1;
    let parts = [&incident.findings().model, &opened.system, &opened.invariant, outcome, symptom];
    let key = format!("symptom:{}", crate::id::hex_of(&parts));
    let bug = state.owner(&key);
    let why = if bug.is_some() { "same symptom" } else { "by symptom: there is no schedule to compare" };
    Event::Grouped { id: opened.id, bug, keys: vec![key], why: why.to_owned(), nearest: None }
}

/// An invariant's name without actors, as in `OneLeader:a:b`.
fn invariant_of(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

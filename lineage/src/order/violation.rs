//! Which actors, and up to which of their events, the violation is about.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::str::FromStr;

use demi_common::nearest;
use demi_schemas::EventId;
use demi_schemas::event::ViolationFields;

use crate::error::ViolationError;
use crate::read::Events;

/// A violation as it is named by the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ViolationSpec {
    /// By the `violation` records of the logs; of several, all affected actors and fingerprints together.
    #[default]
    Recorded,
    /// The event at which the invariant was seen broken, as `ACTOR/SEQ` or `ACTOR/INCARNATION/SEQ`; several of different actors with
    /// commas between them.
    Event(String),
    /// The affected actors, each at its last event.
    Actors(Vec<String>),
    /// The `violation` record of this name, alone: its affected actors and fingerprints.
    Record(String),
    /// There is none: only the order is asked for, and everything is kept.
    None,
    /// A text that is none of these.
    Unknown(String),
}

impl FromStr for ViolationSpec {
    type Err = Infallible;

    /// Reads `event:ACTOR/SEQ`, `record:ACTOR/SEQ`, `actors:A,B` or `none`; what is none of these is refused when it is looked up, where the message
    /// can list what there is.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once(':') {
            Some(("event", name)) => ViolationSpec::Event(name.to_owned()),
            Some(("record", name)) => ViolationSpec::Record(name.to_owned()),
            Some(("actors", names)) => ViolationSpec::Actors(
                names.split(',').map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect(),
            ),
            None if text == "none" => ViolationSpec::None,
            _ => ViolationSpec::Unknown(text.to_owned()),
        })
    }
}

/// The events whose causal past is taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Affected actors, each with the last of its events that counts; sorted by actor, no actor twice.
    events: Vec<u32>,
    /// Names of the affected actors, in the order in which they were given.
    affected: Vec<String>,
    /// Fingerprints of the violation, where records say them.
    fingerprints: Vec<String>,
    /// The records that say so.
    records: Vec<u32>,
    /// By affected actor, the last of its events that counts, where a record says it.
    ends: BTreeMap<String, u32>,
    /// What is odd.
    warnings: Vec<String>,
}

impl Target {
    /// Affected actors, each with the last of its events that counts; sorted by actor, no actor twice.
    pub(crate) fn events(&self) -> &[u32] {
        &self.events
    }

    /// Names of the affected actors, in the order in which they were given.
    pub(crate) fn affected(&self) -> &[String] {
        &self.affected
    }

    /// Fingerprints of the violation, where records say them.
    pub(crate) fn fingerprints(&self) -> &[String] {
        &self.fingerprints
    }

    /// The records that say so.
    pub(crate) fn records(&self) -> &[u32] {
        &self.records
    }

    /// What is odd.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Target {
    /// Takes in at which events a record says that its execution ends.
    fn ends_of(&mut self, events: &Events, record: u32, fields: &ViolationFields) {
        let mut told: BTreeMap<String, u32> = BTreeMap::new();
        for name in &fields.told_at {
            match find_event(events, name) {
                Ok(event) => {
                    let end = told.entry(events.name(event).actor).or_insert(event);
                    *end = event.max(*end);
                }
                Err(_) => self.warnings.push(format!(
                    "the violation was told at '{name}', which is in no log: the execution ends at the last event of the actor"
                )),
            }
        }
        let own = events.name(record).actor;
        for name in &fields.affected {
            let end = told.get(name).copied().or_else(|| (*name == own).then_some(record));
            // Of several records the last end counts.
            let known = self.ends.entry(name.clone()).or_insert(0);
            *known = end.unwrap_or(u32::MAX).max(*known);
        }
        let further = told.into_iter().filter(|(name, _)| !fields.affected.contains(name));
        for (name, end) in further {
            self.affected.push(name.clone());
            let known = self.ends.entry(name).or_insert(0);
            *known = end.max(*known);
        }
    }
}

/// Finds the actors and events that `spec` names.
pub(crate) fn resolve(events: &Events, spec: &ViolationSpec) -> Result<Target, ViolationError> {
    let mut target = Target::default();
    match spec {
        ViolationSpec::None => return Ok(target),
        ViolationSpec::Unknown(text) => return Err(ViolationError::Unknown(text.clone())),
        ViolationSpec::Event(text) => {
            // A name may have commas of its own.
            let found = match find_event(events, text) {
                Ok(event) => vec![event],
                Err(error) if !text.contains(',') => return Err(error),
                Err(_) => {
                    text.split(',').map(|one| find_event(events, one.trim())).collect::<Result<_, _>>()?
                }
            };
            for event in found {
                let actor = events.name(event).actor;
                match target.affected.iter().position(|known| *known == actor) {
                    // Of one actor the last counts.
                    Some(known) => target.events[known] = target.events[known].max(event),
                    None => {
                        target.affected.push(actor);
                        target.events.push(event);
                    }
                }
            }
            target.events.sort_unstable();
        }
        ViolationSpec::Actors(names) => {
            if names.is_empty() {
                return Err(ViolationError::Unknown("actors:".into()));
            }
            target.affected.clone_from(names);
        }
        ViolationSpec::Recorded => read_records(events, None, &mut target)?,
        ViolationSpec::Record(name) => {
            let record = find_event(events, name)?;
            read_records(events, Some(record), &mut target)?;
        }
    }
    if target.events.is_empty() {
        let mut seen = BTreeSet::new();
        target.affected.retain(|name| seen.insert(name.clone()));
        for name in &target.affected {
            match events.find_actor(name) {
                Some(actor) => {
                    let last = events.of_actor(actor).end - 1;
                    target.events.push(target.ends.get(name).map_or(last, |end| *end.min(&last)));
                }
                // A monitor may name whom it could not hear from: that log is missing, like others may be.
                None if !target.records.is_empty() => target.warnings.push(format!(
                    "the violation names '{name}', of which there is no log: its past is not looked for"
                )),
                None => return Err(no_actor(events, name)),
            }
        }
        if let (true, Some(name)) = (target.events.is_empty(), target.affected.first()) {
            return Err(no_actor(events, name));
        }
        target.events.sort_unstable();
    }
    Ok(target)
}

/// Takes in what violation records say: all of them, or the one that is named.
fn read_records(events: &Events, only: Option<u32>, target: &mut Target) -> Result<(), ViolationError> {
    for (event, fields) in
        events.violations.iter().filter(|(event, _)| only.is_none_or(|only| only == *event))
    {
        let name = events.name(*event).to_string();
        let fields = match fields {
            Some(text) => serde_json::from_str(text)
                .map_err(|e| ViolationError::BadFields { event: name.clone(), reason: e.to_string() })?,
            None => ViolationFields::default(),
        };
        target.records.push(*event);
        target.affected.extend(fields.affected.iter().cloned());
        target.ends_of(events, *event, &fields);
        for fingerprint in fields.fingerprints {
            if !target.fingerprints.contains(&fingerprint) {
                target.fingerprints.push(fingerprint);
            }
        }
    }
    let Some(first) = target.records.first() else {
        return Err(match only {
            Some(event) => ViolationError::NotARecord(events.name(event).to_string()),
            None => ViolationError::NoRecord(list(events)),
        });
    };
    if target.affected.is_empty() {
        return Err(ViolationError::NamesNobody {
            event: events.name(*first).to_string(),
            actors: list(events),
        });
    }
    if target.records.len() > 1 {
        let n = target.records.len();
        target.warnings.push(format!("{n} violation records: all their affected actors are taken together"));
    }
    Ok(())
}

fn find_event(events: &Events, text: &str) -> Result<u32, ViolationError> {
    let readings = EventId::readings(text)?;
    if let Some(found) = readings.iter().find_map(|id| events.find(id)) {
        return Ok(found);
    }
    let Some(known) = readings.iter().find(|id| events.find_actor(&id.actor).is_some()) else {
        let name = readings.last().map_or(text, |id| &id.actor);
        return Err(no_actor(events, name));
    };
    let actor = events.find_actor(&known.actor).unwrap_or_default();
    let range = events.of_actor(actor);
    let has = format!(
        "the log of '{}' goes from {} to {}",
        known.actor,
        events.name(range.start),
        events.name(range.end - 1)
    );
    Err(ViolationError::NoEvent { name: text.to_owned(), has })
}

fn no_actor(events: &Events, name: &str) -> ViolationError {
    ViolationError::NoActor {
        name: name.to_owned(),
        nearest: nearest(name, events.ordinary_actors()).map(str::to_owned),
        actors: list(events),
    }
}

/// The actors there are, at most twenty by name.
fn list(events: &Events) -> String {
    let names: Vec<&str> = events.ordinary_actors().collect();
    let mut text = names.iter().take(20).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 20 {
        text.push_str(&format!(" and {} more", names.len() - 20));
    }
    text
}

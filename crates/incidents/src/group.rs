//! Which bug an incident is an occurrence of. The first rule that speaks decides, and says why.

use crate::event::{Event, Outcome};
use crate::fold::{Incident, State, Status, Work};

/// The event that says which bug an incident belongs to.
#[must_use]
pub fn group(state: &State, incident: &Incident) -> Event {
    let id = incident.opened().id;
    let findings = incident.findings();
    let minimized = incident.work() == Work::Done { outcome: Outcome::Minimized };
    let Some(keys) = findings.keys.as_ref().filter(|_| minimized) else {
        return by_symptom(state, incident);
    };
    let texts = keys.texts();
    let same_kind = |number: u32| {
        state.bug(number).is_some_and(|(_, bug)| {
            (bug.model(), invariant_of(bug.invariant())) == (&*findings.model, invariant(incident))
        })
    };
    let nearest = nearest(state, incident, None);
    for (text, why) in texts.iter().zip(["same execution", "same shape", "same profile"]) {
        if let Some(number) = state.owner(text).filter(|number| same_kind(*number)) {
            let nearest = self::nearest(state, incident, Some(number));
            return Event::Grouped { id, bug: Some(number), keys: texts, why: why.to_owned(), nearest };
        }
    }
    let why = match nearest {
        Some((number, overlap)) => {
            format!("no bug has its profile; the nearest is B-{number}, {:.0} % alike", overlap * 100.0)
        }
        None => "no bug has its profile".to_owned(),
    };
    Event::Grouped { id, bug: None, keys: texts, why, nearest }
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

fn invariant(incident: &Incident) -> &str {
    invariant_of(incident.invariant())
}

/// The bug of the same model and invariant whose schedules are most like this one.
fn nearest(state: &State, incident: &Incident, own: Option<u32>) -> Option<(u32, f64)> {
    let keys = incident.findings().keys.as_ref()?;
    let own = own.and_then(|number| state.bug(number)).map(|(number, _)| number);
    let mut best: Option<(u32, f64)> = None;
    for (number, bug) in state.bugs() {
        if Some(*number) == own || matches!(bug.status(), Status::Merged { .. }) {
            continue;
        }
        let Some(other) = state.incidents().get(&bug.representative()) else { continue };
        if other.findings().model != incident.findings().model || invariant(other) != invariant(incident) {
            continue;
        }
        let Some(theirs) = &other.findings().keys else { continue };
        let overlap = keys.overlap(theirs);
        if best.is_none_or(|(_, most)| overlap > most) {
            best = Some((*number, overlap));
        }
    }
    best
}

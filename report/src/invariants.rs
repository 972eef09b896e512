//! The invariants of a file, as they stand in an execution.

use std::path::Path;

use demi_order::export::Skeleton;
use demi_order::query::{CheckAnswer, Predicate, Query, Told};
use demi_schemas::{EventId, InvariantEntry, InvariantsFile, Standing};
use glob::Pattern;

use crate::data::{Invariant, NOTHING};
use crate::error::ReportError;

/// Checks each invariant that is not muted. Events are those of the skeleton; one that it does not show is named only.
pub(crate) fn invariants(
    exec: &Path,
    file: &InvariantsFile,
    skeleton: &Skeleton,
) -> Result<Vec<Invariant>, ReportError> {
    let query = Query::open(exec, false)?;
    let told = query.told()?;
    let watched = file.invariants.iter().filter(|entry| entry.status != Standing::Muted);
    let mut all = watched
        .map(|entry| {
            let answer = check(&query, &told, entry)
                .map_err(|reason| ReportError::Invariant { holds: entry.holds.clone(), reason })?;
            Ok(row(entry, &answer, skeleton))
        })
        .collect::<Result<Vec<_>, ReportError>>()?;
    // What fails comes first, and then what speaks most for itself.
    all.sort_by(|a, b| {
        let bits = |i: &Invariant| i.bits.unwrap_or(f64::MAX);
        (a.found != "fails").cmp(&(b.found != "fails")).then(bits(b).total_cmp(&bits(a)))
    });
    Ok(all)
}

fn check(query: &Query, told: &Told, entry: &InvariantEntry) -> Result<CheckAnswer, String> {
    let predicate = Predicate::parse(&entry.holds).map_err(|e| e.to_string())?;
    let places = entry.class.as_deref().map_or(Ok(Vec::new()), classes).map_err(|e| format!("class: {e}"))?;
    let among =
        |actor: &str, place: usize| places.get(place).or(places.last()).is_none_or(|p| p.matches(actor));
    let answer = query.check_told(told, &predicate, &among).map_err(|e| e.to_string())?;
    if answer.holds && answer.absent.is_none() && predicate.is_of_cuts() {
        // One order of the events may not show it.
        return query.check_pairs(told, &predicate, &among).map_err(|e| e.to_string());
    }
    Ok(answer)
}

/// The patterns of the actors at each place of a class: one, or several with arrows between them.
fn classes(text: &str) -> Result<Vec<Pattern>, glob::PatternError> {
    text.split(" -> ").map(Pattern::new).collect()
}

fn row(entry: &InvariantEntry, answer: &CheckAnswer, skeleton: &Skeleton) -> Invariant {
    let failure = answer.failures.first();
    let event = failure.map_or("", |failure| &failure.from);
    let found = EventId::readings(event).ok();
    let at = found.and_then(|readings| readings.iter().find_map(|id| skeleton.find(id)));
    Invariant {
        holds: entry.holds.clone(),
        name: entry.name.clone(),
        class: entry.class.clone(),
        bits: entry.bits,
        episodes: entry.episodes,
        checked: answer.checked,
        found: match (answer.holds, &answer.absent) {
            (false, _) => "fails",
            (true, Some(_)) => "nothing told",
            (true, None) => "holds",
        },
        of: failure.map_or(String::new(), |failure| failure.of.clone()),
        event: event.to_owned(),
        at: at.map_or(NOTHING, i64::from),
    }
}

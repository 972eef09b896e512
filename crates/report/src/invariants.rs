//! The invariants of a file, as they stand in an execution.

use std::path::Path;

use demi_lineage::export::Skeleton;
use demi_lineage::query::{CheckAnswer, ClassPredicate, Query, StateSelection};
use demi_schemas::{EventId, InvariantEntry, InvariantsFile, Standing};

use crate::data::{Invariant, NOTHING};
use crate::error::ReportError;

/// Checks each invariant that is not muted. Events are those of the skeleton; one that it does not show is named only.
pub(crate) fn invariants(
    exec: &Path,
    file: &InvariantsFile,
    skeleton: &Skeleton,
) -> Result<Vec<Invariant>, ReportError> {
    let query = Query::open(exec, false)?;
    let told = query.state_history()?;
    let watched = file.invariants.iter().filter(|entry| entry.status != Standing::Muted);
    let entries: Vec<&InvariantEntry> = watched.collect();
    let refused =
        |entry: &InvariantEntry, reason| ReportError::Invariant { holds: entry.holds.clone(), reason };
    let asked =
        entries.iter().map(|entry| ClassPredicate::of(entry).map_err(|e| refused(entry, e.to_string())));
    let asked = asked.collect::<Result<Vec<_>, _>>()?;
    let answers = query.check_many(&told, &asked, StateSelection::All, &|_| {});
    let mut all = Vec::with_capacity(entries.len());
    for (entry, answer) in entries.into_iter().zip(answers) {
        all.push(row(entry, &answer.map_err(|e| refused(entry, e.to_string()))?, skeleton));
    }
    // What fails comes first, and then what speaks most for itself.
    all.sort_by(|a, b| {
        let bits = |i: &Invariant| i.bits.unwrap_or(f64::MAX);
        (a.found != "fails").cmp(&(b.found != "fails")).then(bits(b).total_cmp(&bits(a)))
    });
    Ok(all)
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

//! What is wrong with the logs that an order is made of: gaps, conflicts, quarantined lines, stamps that run backwards.

use std::error::Error;

use demi_lineage::query::Query;
use demi_schemas::summary::{ActorCompleteness, BackwardStamps};
use demi_store::Quarantined;
#[cfg(feature = "store")]
use demi_store::Store;

use demi_commands::ui::Ui;

/// Most actors and reasons that are named.
const NAMED: usize = 5;

/// The parts that are missing of the logs of a system.
#[derive(Default)]
pub struct Incomplete {
    /// Actors with how many sequence numbers are missing in their logs.
    gaps: Vec<(String, u64)>,
    /// What stands in quarantine.
    quarantined: Vec<Quarantined>,
    /// Whose stamps run backwards.
    backwards: Vec<BackwardStamps>,
}

impl Incomplete {
    /// What is missing in the store.
    #[cfg(feature = "store")]
    pub fn of_store(store: &Store, system: &str) -> Result<Incomplete, Box<dyn Error>> {
        let rows = demi_store::status(store, Some(system))?;
        let gaps = gaps(rows.into_iter().map(|row| (row.counts.actor, row.counts.missing)));
        let quarantined = demi_store::quarantined(store, Some(system))?;
        Ok(Incomplete { gaps, quarantined, backwards: demi_store::backward_stamps(store, system)? })
    }

    /// What is missing in logs that were read.
    pub fn of_logs(
        actors: &[ActorCompleteness],
        quarantined: Vec<Quarantined>,
        backwards: Vec<BackwardStamps>,
    ) -> Incomplete {
        let gaps = gaps(actors.iter().map(|counts| (counts.actor.clone(), counts.missing)));
        Incomplete { gaps, quarantined, backwards }
    }

    /// What is missing in an execution, and whose stamps run backwards.
    pub fn of_order(query: &Query, backwards: Vec<BackwardStamps>) -> Result<Incomplete, Box<dyn Error>> {
        let gaps = gaps(query.runs()?.into_iter().map(|run| (run.actor, run.missing_before)));
        Ok(Incomplete { gaps, quarantined: Vec::new(), backwards })
    }

    /// Says what is missing.
    pub fn warn(&self, ui: &Ui) {
        for warning in self.warnings() {
            ui.note(&format!("warning: {warning}"));
        }
    }

    /// Goes no further where something is missing.
    ///
    /// # Errors
    /// When something is missing; the error says what.
    pub fn refuse(&self) -> Result<(), Box<dyn Error>> {
        let warnings = self.warnings();
        match warnings.is_empty() {
            true => Ok(()),
            false if self.gaps.is_empty() && self.quarantined.is_empty() => {
                Err(format!("the order of the logs is in doubt: {}", warnings.join("; ")).into())
            }
            false => Err(format!("the logs are not complete: {}", warnings.join("; ")).into()),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.gaps.is_empty() {
            let missing: u64 = self.gaps.iter().map(|(_, n)| n).sum();
            let named = self.gaps.iter().map(|(actor, n)| format!("{}: {n}", actor.escape_debug()));
            all.push(format!("{missing} sequence numbers are missing ({})", first_of(named)));
        }
        for found in self.quarantined.iter().take(NAMED) {
            let (source, line) = (found.source.escape_debug(), found.line);
            let what = match (found.code.as_str(), found.rows) {
                ("conflict", 1) => "1 record contradicts a stored one".to_owned(),
                ("conflict", n) => {
                    format!("{n} records contradict stored ones; two processes may share a name")
                }
                (code, 1) => format!("1 line is in quarantine ({code})"),
                (code, n) => format!("{n} lines are in quarantine ({code})"),
            };
            all.push(format!("{what}; first {source}:{line}: {}", found.reason.escape_debug()));
        }
        let more: u64 = self.quarantined.iter().skip(NAMED).map(|found| found.rows).sum();
        if more > 0 {
            all.push(format!("{more} more lines are in quarantine for other reasons"));
        }
        all.append(&mut BackwardStamps::told(&self.backwards));
        all
    }
}

/// Sums of what is missing, by actor, those with most first.
fn gaps(missing: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (actor, n) in missing.filter(|(_, n)| *n > 0) {
        match sums.last_mut() {
            Some((last, sum)) if *last == actor => *sum += n,
            _ => sums.push((actor, n)),
        }
    }
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums
}

/// The first few, and how many more there are.
fn first_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut text = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more actors"));
    }
    text
}

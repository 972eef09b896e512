//! Runs of sequence numbers without a gap, and what is missing between them.

use super::Query;
use crate::error::LineageError;

/// A run of sequence numbers without a gap in the log of one incarnation of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Name of the actor.
    pub actor: String,
    /// How often it had restarted.
    pub incarnation: u32,
    /// First sequence number of the run.
    pub from: u64,
    /// Last sequence number of the run.
    pub to: u64,
    /// How many sequence numbers are missing before it; 0 where they come from a clock and say nothing of gaps.
    pub missing_before: u64,
}

impl Query {
    /// All runs, in the order of actors, incarnations and sequence numbers.
    ///
    /// # Errors
    /// When the order index cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, LineageError> {
        let mut runs: Vec<Run> = Vec::new();
        for (a, actor) in self.index.header().actors.iter().enumerate() {
            let mut last: Option<(u32, u64)> = None;
            for (incarnation, from, to) in self.index.runs_of_log(a)? {
                let expected = match last {
                    Some((before, seq)) if before == incarnation => seq + 1,
                    _ => 1,
                };
                let counted = !demi_schemas::event::is_clock_seq(from);
                let missing_before = if counted { from.saturating_sub(expected) } else { 0 };
                runs.push(Run { actor: actor.name.clone(), incarnation, from, to, missing_before });
                last = Some((incarnation, to));
            }
        }
        Ok(runs)
    }
}

//! Sequence numbers that are counted, because the log does not write them.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

type ByName<V> = HashMap<String, V, FxBuildHasher>;

/// The last number given out, by execution, actor and incarnation. Names are copied only when they are new.
#[derive(Default)]
pub(crate) struct Counted(ByName<ByName<Vec<(u32, u64)>>>);

impl Counted {
    /// The last number given out in a log; 0 where none was.
    pub(crate) fn of(&mut self, execution: &str, actor: &str, incarnation: u32) -> &mut u64 {
        let incarnations = self.0.entry_ref(execution).or_default().entry_ref(actor).or_default();
        let at = match incarnations.iter().rposition(|(i, _)| *i == incarnation) {
            Some(at) => at,
            None => {
                incarnations.push((incarnation, 0));
                incarnations.len() - 1
            }
        };
        &mut incarnations[at].1
    }

    /// Execution, actor, incarnation, last number; sorted.
    pub(crate) fn positions(&self) -> Vec<(String, String, u32, u64)> {
        let mut all = Vec::new();
        for (execution, actors) in &self.0 {
            for (actor, incarnations) in actors {
                let each = incarnations.iter().map(|&(i, seq)| (execution.clone(), actor.clone(), i, seq));
                all.extend(each);
            }
        }
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_incarnation_counts_by_itself() {
        let mut counted = Counted::default();
        for (actor, incarnation) in [("a", 0), ("a", 1), ("b", 0), ("a", 0)] {
            *counted.of("x", actor, incarnation) += 1;
        }
        let row = |actor: &str, i, seq| ("x".to_owned(), actor.to_owned(), i, seq);
        assert_eq!(counted.positions(), [row("a", 0, 2), row("a", 1, 1), row("b", 0, 1)]);
    }
}

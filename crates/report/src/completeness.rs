//! What is complete of each log, by the sequence numbers that are there.

use demi_lineage::query::Run;

use crate::data::Completeness;

/// How many gaps of one log are listed.
const LISTED: usize = 20;

/// By actor and incarnation: which sequence numbers from 1 on are there, from the runs of an execution.
pub(crate) fn completeness(runs: &[Run]) -> Vec<Completeness> {
    let mut all = Vec::new();
    for log in runs.chunk_by(|a, b| (&a.actor, a.incarnation) == (&b.actor, b.incarnation)) {
        let Some(first) = log.first() else { continue };
        let gaps = log.iter().filter(|run| run.missing_before > 0);
        all.push(Completeness {
            actor: first.actor.clone(),
            incarnation: first.incarnation,
            events: log.iter().map(|run| run.to - run.from + 1).sum(),
            // Spans may stand in the order of their parents instead of that of their stamps.
            first: log.iter().map(|run| run.from).min().unwrap_or(0),
            last: log.iter().map(|run| run.to).max().unwrap_or(0),
            missing: log.iter().map(|run| run.missing_before).sum(),
            gaps: gaps.take(LISTED).map(|run| (run.from - run.missing_before, run.from - 1)).collect(),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_by_life() {
        let run = |incarnation, from, to, missing_before| Run {
            actor: "a".into(),
            incarnation,
            from,
            to,
            missing_before,
        };
        let clock = 1 << 60;
        let runs = [
            run(0, 2, 3, 1),
            run(0, 7, 7, 3),
            run(1, 1, 1, 0),
            run(2, clock + 9, clock + 9, 0),
            run(2, clock + 5, clock + 5, 0),
        ];
        let found = completeness(&runs);
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].first, found[0].last, found[0].missing, found[0].events), (2, 7, 4, 3));
        assert_eq!(found[0].gaps, [(1, 1), (4, 6)]);
        assert_eq!((found[1].incarnation, found[1].missing), (1, 0));
        assert_eq!((found[2].first, found[2].last, found[2].missing), (clock + 5, clock + 9, 0));
    }
}

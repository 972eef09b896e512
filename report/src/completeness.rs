//! What is complete of each log, by the sequence numbers that are there.

use demi_order::export::Skeleton;

use crate::data::Completeness;

/// How many gaps of one log are listed.
const LISTED: usize = 20;

/// By actor and incarnation: which sequence numbers from 1 on are there.
pub(crate) fn completeness(skeleton: &Skeleton) -> Vec<Completeness> {
    let mut all = Vec::new();
    for (actor, name) in skeleton.actors.iter().enumerate() {
        let mut places: Vec<(u32, u64)> = skeleton.chain[actor]
            .iter()
            .chain(&skeleton.loose[actor])
            .map(|&e| (skeleton.incarnation[e as usize], skeleton.seq[e as usize]))
            .collect();
        places.sort_unstable();
        for incarnation in places.chunk_by(|a, b| a.0 == b.0) {
            let mut found = Completeness {
                actor: name.clone(),
                incarnation: incarnation.first().map_or(0, |p| p.0),
                first: incarnation.first().map_or(0, |p| p.1),
                last: incarnation.last().map_or(0, |p| p.1),
                events: incarnation.len() as u64,
                ..Completeness::default()
            };
            let mut next = 1;
            for &(_, seq) in incarnation {
                if seq > next {
                    found.missing += seq - next;
                    if found.gaps.len() < LISTED {
                        found.gaps.push((next, seq - 1));
                    }
                }
                next = next.max(seq.saturating_add(1));
            }
            all.push(found);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use demi_order::export::Builder;
    use demi_schemas::{EventId, Kind};

    use super::*;

    #[test]
    fn gaps_are_counted_by_life() {
        let mut builder = Builder::default();
        for (incarnation, seq) in [(0, 2), (0, 3), (0, 7), (1, 1)] {
            let id = EventId { actor: "a".into(), incarnation, seq };
            builder.push(&id, Kind::Action, true, false);
        }
        let found = completeness(&builder.finish());
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].first, found[0].last, found[0].missing), (2, 7, 4));
        assert_eq!(found[0].gaps, [(1, 1), (4, 6)]);
        assert_eq!((found[1].incarnation, found[1].missing), (1, 0));
    }
}

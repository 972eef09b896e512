//! Real-time order of operations as vector clocks.

use demi_schemas::event::VectorClock;
use rustc_hash::FxHashMap;

/// What an event is to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Begins,
    Ends,
    Neither,
}

/// The operations of one execution that have ended.
#[derive(Default)]
pub(crate) struct RealTime {
    /// By process: sequence number of the end of its last operation.
    ended: VectorClock,
    /// By process: its clock.
    clocks: FxHashMap<String, VectorClock>,
}

impl RealTime {
    /// What is remembered, to be written down.
    pub(crate) fn parts(&self, execution: &str) -> (String, VectorClock, Vec<(String, VectorClock)>) {
        let mut clocks: Vec<_> = self.clocks.iter().map(|(p, c)| (p.clone(), c.clone())).collect();
        clocks.sort();
        (execution.to_owned(), self.ended.clone(), clocks)
    }

    /// From what was written down.
    pub(crate) fn from_parts(ended: VectorClock, clocks: Vec<(String, VectorClock)>) -> RealTime {
        RealTime { ended, clocks: clocks.into_iter().collect() }
    }

    /// The clock of an event of `process` with sequence number `seq`.
    pub(crate) fn clock(&mut self, process: &str, seq: u64, phase: Phase) -> VectorClock {
        let clock = self.clocks.entry(process.to_owned()).or_default();
        if phase == Phase::Begins {
            for (other, end) in &self.ended {
                let known = clock.entry(other.clone()).or_insert(0);
                *known = (*known).max(*end);
            }
        }
        clock.insert(process.to_owned(), seq);
        if phase == Phase::Ends {
            self.ended.insert(process.to_owned(), seq);
        }
        clock.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_concurrent() {
        let mut order = RealTime::default();
        let shown =
            |c: VectorClock| c.into_iter().map(|(p, n)| format!("{p}{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(order.clock("a", 1, Phase::Begins)), "a1");
        assert_eq!(shown(order.clock("b", 1, Phase::Begins)), "b1");
        assert_eq!(shown(order.clock("a", 2, Phase::Ends)), "a2");
        assert_eq!(shown(order.clock("b", 2, Phase::Ends)), "b2");
        assert_eq!(shown(order.clock("c", 1, Phase::Begins)), "a2 b2 c1");
        assert_eq!(shown(order.clock("c", 2, Phase::Neither)), "a2 b2 c2");
        assert_eq!(shown(order.clock("a", 3, Phase::Begins)), "a3 b2");
    }
}

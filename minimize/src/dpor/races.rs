//! Races of an executed schedule: pairs of steps whose order could have been the other.

use super::step::Step;

/// Which steps happen before which, for the steps of one schedule.
pub struct Order {
    /// For each step the set of those before it, as bits.
    before: Vec<Vec<u64>>,
}

impl Order {
    /// The happens-before order of a schedule: what depends on each other keeps its order, and so does what follows
    /// from that.
    #[must_use]
    pub fn of(steps: &[Step]) -> Order {
        let words = steps.len().div_ceil(64);
        let mut before: Vec<Vec<u64>> = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let mut set = vec![0_u64; words];
            for earlier in (0..at).rev() {
                if !contains(&set, earlier) && steps[earlier].depends(step) {
                    set.iter_mut().zip(&before[earlier]).for_each(|(a, b)| *a |= b);
                    set[earlier / 64] |= 1 << (earlier % 64);
                }
            }
            before.push(set);
        }
        Order { before }
    }

    /// Whether a step happens before another.
    #[must_use]
    pub fn is_before(&self, earlier: usize, later: usize) -> bool {
        contains(&self.before[later], earlier)
    }

    /// The steps that are in conflict with `later` with nothing in between, so that their order could be reversed if
    /// `later` is possible without them; the latest first.
    pub fn races(&self, steps: &[Step], later: usize) -> Vec<usize> {
        let step = &steps[later];
        let mut covered = vec![0_u64; self.before[later].len()];
        let mut races = Vec::new();
        for earlier in (0..later).rev() {
            if contains(&covered, earlier) || !self.is_before(earlier, later) {
                continue;
            }
            covered.iter_mut().zip(&self.before[earlier]).for_each(|(a, b)| *a |= b);
            if step.creator != steps[earlier].proc && step.conflicts(&steps[earlier]) {
                races.push(earlier);
            }
        }
        races
    }

    /// What does not happen after a step, of all that comes later, without another.
    #[must_use]
    pub fn apart(&self, steps: &[Step], from: usize, without: usize) -> Vec<Step> {
        let later = from + 1..steps.len();
        later.filter(|&at| at != without && !self.is_before(from, at)).map(|at| steps[at]).collect()
    }
}

fn contains(set: &[u64], at: usize) -> bool {
    set[at / 64] & 1 << (at % 64) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(proc: u64, creator: u64, place: u16) -> Step {
        Step { proc, creator, place, visible: false, global: false }
    }

    #[test]
    fn only_neighbours_race_and_what_was_sent_does_not() {
        // 1 and 2 at one place, 3 sent by 2 to another, where 4 is.
        let steps = [step(1, 0, 1), step(2, 0, 1), step(3, 2, 2), step(4, 0, 2), step(5, 1, 1)];
        let order = Order::of(&steps);
        assert!(order.is_before(0, 3) && !order.is_before(3, 4));
        assert_eq!(order.races(&steps, 1), [0]);
        assert!(order.races(&steps, 2).is_empty());
        assert_eq!(order.races(&steps, 3), [2]);
        assert_eq!(order.races(&steps, 4), [1]);
        assert_eq!(order.apart(&steps, 2, 4), []);
        assert_eq!(order.apart(&steps, 2, 3), [steps[4]]);
    }
}

//! Pauses between attempts that grow while nothing but failures comes.

use std::time::Duration;

/// Pauses that double up to a longest one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` to `longest`.
    pub(crate) fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest, next: first }
    }

    /// The pause after a failure of what had gone well for `well`: the first one again where that was longer than the longest pause.
    pub(crate) fn after(&mut self, well: Duration) -> Duration {
        if well > self.longest {
            self.next = self.first;
        }
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_when_all_was_well() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(2), seconds(7));
        let pauses = [0, 0, 7, 0, 8, 0].map(|well| backoff.after(seconds(well)).as_secs());
        assert_eq!(pauses, [2, 4, 7, 7, 2, 4]);
    }
}

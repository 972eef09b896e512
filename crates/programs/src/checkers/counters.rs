//! Counters: every read is the sum of a part of what was added; in the end of everything that was acknowledged, and of any part of what may have
//! happened.

use serde_json::Value;

use super::anomaly::Anomaly;
use crate::history::{Done, Fate};

/// Ranges of sums that are kept apart; more are taken together, which only allows more.
const RANGES: usize = 4096;

/// Sums that are possible: ranges in order, apart from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums(Vec<(i128, i128)>);

impl Sums {
    /// Whether a sum is possible.
    #[must_use]
    pub fn has(&self, sum: i128) -> bool {
        self.0.iter().any(|(low, high)| (*low..=*high).contains(&sum))
    }

    fn told(&self) -> String {
        let all = self
            .0
            .iter()
            .take(8)
            .map(|(low, high)| if low == high { low.to_string() } else { format!("{low} to {high}") });
        all.collect::<Vec<_>>().join(", ")
    }
}

/// The sums of everything that is certain, with any part of what is not.
#[must_use]
pub fn sums(certain: &[i128], maybe: &[i128]) -> Sums {
    let sum = certain.iter().fold(0_i128, |sum, one| sum.saturating_add(*one));
    let mut ranges = vec![(sum, sum)];
    for one in maybe {
        let moved: Vec<(i128, i128)> =
            ranges.iter().map(|(low, high)| (low.saturating_add(*one), high.saturating_add(*one))).collect();
        ranges.extend(moved);
        ranges.sort_unstable();
        let mut joined: Vec<(i128, i128)> = Vec::new();
        for (low, high) in ranges {
            match joined.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => joined.push((low, high)),
            }
        }
        if joined.len() > RANGES {
            let (low, high) = (joined[0].0, joined[joined.len() - 1].1);
            joined = vec![(low, high)];
        }
        ranges = joined;
    }
    Sums(ranges)
}

fn number(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)).or_else(|| {
        let float = value.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i128)
    })
}

/// Checks the reads of a counter.
pub(crate) fn counter(operations: &[Done]) -> Vec<Anomaly> {
    let mut found = Vec::new();
    for read in operations.iter().filter(|one| one.f == "read") {
        let Fate::Done(value) = &read.fate else { continue };
        let Some(sum) = number(value) else {
            found.push(Anomaly::new(
                "a read that is no whole number",
                format!("{} reads {value}", read.told()),
            ));
            continue;
        };
        let (mut certain, mut maybe) = (Vec::new(), Vec::new());
        for one in operations.iter().filter(|one| one.f == "add") {
            let Some(delta) = number(&one.value) else { continue };
            match one.fate {
                Fate::Done(_) if read.is_final && one.end.is_some_and(|end| end < read.begin) => {
                    certain.push(delta)
                }
                Fate::Done(_) | Fate::Unknown(_) if one.begin < read.end.unwrap_or(usize::MAX) => {
                    maybe.push(delta)
                }
                _ => {}
            }
        }
        let possible = sums(&certain, &maybe);
        if !possible.has(sum) {
            let told = format!("{} reads {sum}, and possible are {}", read.told(), possible.told());
            found.push(Anomaly::new("a sum of nothing that was added", told));
        }
    }
    found
}

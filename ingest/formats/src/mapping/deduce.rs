//! Whose event it is, from vector clocks in which the host is not written.
//!
//! The k-th event of host i has k in entry i, and every other event with k there has it in its past; so it is the one with the least
//! clock of those.

use rustc_hash::FxHashMap;

/// The host of each clock, or why it cannot be told.
pub(crate) fn hosts(clocks: &[&[u64]]) -> Vec<Result<usize, String>> {
    // By entry and value: the clock with the smallest sum, how many have that sum.
    let mut least: FxHashMap<(usize, u64), (u128, usize, u32)> = FxHashMap::default();
    let sums: Vec<u128> = clocks.iter().map(|c| c.iter().map(|&n| u128::from(n)).sum()).collect();
    for (event, clock) in clocks.iter().enumerate() {
        for (i, &k) in clock.iter().enumerate().filter(|(_, k)| **k > 0) {
            let entry = least.entry((i, k)).or_insert((u128::MAX, 0, 0));
            match sums[event].cmp(&entry.0) {
                std::cmp::Ordering::Less => *entry = (sums[event], event, 1),
                std::cmp::Ordering::Equal => entry.2 += 1,
                std::cmp::Ordering::Greater => {}
            }
        }
    }
    let host = |(event, clock): (usize, &&[u64])| {
        let first = |i: &usize| {
            let k = clock[*i];
            k > 0 && least.get(&(*i, k)).is_some_and(|(sum, _, _)| *sum == sums[event])
        };
        let candidates: Vec<usize> = (0..clock.len()).filter(first).collect();
        match candidates.as_slice() {
            [host] => match least.get(&(*host, clock[*host])) {
                Some((_, _, 1)) => Ok(*host),
                _ => Err(format!("another event has the same clock, {}", shown(clock))),
            },
            [] => Err(format!(
                "no host has its own event in {}: an event is missing or a clock wrong",
                shown(clock)
            )),
            several => Err(format!(
                "the clock {} may be of the hosts {several:?}: an event is missing or a clock wrong",
                shown(clock)
            )),
        }
    };
    clocks.iter().enumerate().map(host).collect()
}

fn shown(clock: &[u64]) -> String {
    let entries: Vec<String> = clock.iter().take(12).map(u64::to_string).collect();
    format!("[{}{}]", entries.join(","), if clock.len() > 12 { ",…" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_there_and_back() {
        let clocks: [&[u64]; 5] = [&[1, 0], &[2, 0], &[3, 2], &[2, 1], &[2, 2]];
        let found: Vec<usize> = hosts(&clocks).into_iter().map(Result::unwrap).collect();
        assert_eq!(found, [0, 0, 0, 1, 1]);
    }

    #[test]
    fn doubtful_ones_are_not_guessed() {
        assert!(hosts(&[&[1, 1]])[0].as_ref().unwrap_err().contains("may be of"));
        assert!(hosts(&[&[1, 0], &[1, 0]])[1].as_ref().unwrap_err().contains("same clock"));
        assert!(hosts(&[&[0, 0]])[0].as_ref().unwrap_err().contains("no host"));
    }

    proptest! {
        /// Random executions of up to five hosts: every event ticks, some take over the clock of an earlier one.
        #[test]
        fn finds_the_host_in_any_execution(
            n in 1usize..6, steps in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<bool>()), 1..60),
            shift in any::<usize>(),
        ) {
            let mut now = vec![vec![0_u64; n]; n];
            let mut log: Vec<(usize, Vec<u64>)> = Vec::new();
            for (host, from, receives) in steps {
                let host = host % n;
                if receives && !log.is_empty() {
                    let clock = log[from % log.len()].1.clone();
                    now[host].iter_mut().zip(clock).for_each(|(a, b)| *a = b.max(*a));
                }
                now[host][host] += 1;
                log.push((host, now[host].clone()));
            }
            let by = shift % log.len();
            log.rotate_left(by);
            let clocks: Vec<&[u64]> = log.iter().map(|(_, c)| c.as_slice()).collect();
            for (found, (host, _)) in hosts(&clocks).into_iter().zip(&log) {
                prop_assert_eq!(found, Ok(*host));
            }
        }
    }
}

//! Which steps must come back so that what was kept can be followed.

use std::collections::BTreeMap;

/// Brings back what sent the message of a step, with the log before it and what that needs in turn.
fn bring_back(at: usize, lanes: &[u16], causes: &[Option<usize>], keep: &mut [bool]) {
    let mut work = vec![at];
    while let Some(at) = work.pop() {
        let Some(cause) = causes[at] else { continue };
        for step in (0..=cause).filter(|&step| lanes[step] == lanes[cause]) {
            if !std::mem::replace(&mut keep[step], true) {
                work.push(step);
            }
        }
    }
}

/// Brings back steps that were left out until `diverges`, which gives the first step that can't be followed among those up
/// to its second argument, finds none, or nothing that stands before that step is left out. `lanes` tells each step's log, `causes` which step sent what it
/// delivers, as far as that is known. Gives how many came back.
pub(super) fn add_needed(
    lanes: &[u16],
    causes: &[Option<usize>],
    keep: &mut [bool],
    mut diverges: impl FnMut(&[bool], usize) -> Option<usize>,
) -> u64 {
    let before = keep.to_vec();
    let last = keep.len();
    while let Some(at) = diverges(keep, last) {
        let mut caused = keep.to_vec();
        bring_back(at, lanes, causes, &mut caused);
        if caused != keep && diverges(&caused, at).is_none() {
            keep.copy_from_slice(&caused);
            continue;
        }
        let mut left_out: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        (0..at)
            .filter(|&step| !keep[step])
            .for_each(|step| left_out.entry(lanes[step]).or_default().push(step));
        let mut left_out: Vec<Vec<usize>> = left_out.into_values().collect();
        // First the logs of which the most is left out: most of all is saved where these are not needed.
        left_out.sort_by_key(|steps| std::cmp::Reverse(steps.len()));
        let mut takes: Vec<usize> = left_out.iter().map(Vec::len).collect();
        let with = |keep: &[bool], takes: &[usize]| {
            let mut keep = keep.to_vec();
            let back = left_out.iter().zip(takes).flat_map(|(steps, &take)| &steps[..take]);
            back.for_each(|&step| keep[step] = true);
            keep
        };
        let mut passes = |takes: &[usize]| diverges(&with(keep, takes), at).is_none();
        if takes.is_empty() || !passes(&takes) {
            break;
        }
        loop {
            let before = takes.clone();
            for log in 0..takes.len() {
                // The shortest prefix that is enough, taking for granted that a longer one than one that is enough is,
                // too.
                let (mut least, mut enough, mut middle) = (0, takes[log], 0);
                while least < enough {
                    takes[log] = middle;
                    if passes(&takes) {
                        enough = middle;
                    } else {
                        least = middle + 1;
                    }
                    middle = usize::midpoint(least, enough);
                }
                takes[log] = enough;
            }
            // What one log no longer needs another may not need any more either.
            if takes == before {
                break;
            }
        }
        let enough = with(keep, &takes);
        keep.copy_from_slice(&enough);
    }
    keep.iter().zip(before).filter(|(after, before)| **after != *before).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps of three logs, what each needs, which are kept, and one that never can be followed.
    fn executions() -> impl Strategy<Value = (Vec<u16>, Vec<Vec<usize>>, Vec<bool>, Option<usize>)> {
        let step =
            (0_u16..3, proptest::collection::vec(any::<proptest::sample::Index>(), 0..3), any::<bool>());
        let steps = proptest::collection::vec(step, 1..25);
        (steps, proptest::option::of(0_usize..25)).prop_map(|(steps, wrong)| {
            let lanes: Vec<u16> = steps.iter().map(|(lane, _, _)| *lane).collect();
            let needs = steps.iter().enumerate().map(|(at, (_, needs, _))| {
                let earlier = needs.iter().filter(|_| at > 0);
                earlier.map(|index| index.index(at)).collect()
            });
            let needs = needs.collect();
            // Of each log a prefix is kept.
            let mut open = [true; 3];
            let kept = steps.iter().map(|(lane, _, kept)| {
                open[usize::from(*lane)] &= kept;
                open[usize::from(*lane)]
            });
            (lanes, needs, kept.collect(), wrong)
        })
    }

    /// The least set with all of `keep` in which each step has what it needs and each log is a prefix.
    fn least(lanes: &[u16], needs: &[Vec<usize>], keep: &[bool]) -> Vec<bool> {
        let mut all = keep.to_vec();
        loop {
            let before = all.clone();
            for at in 0..all.len() {
                if all[at] {
                    needs[at].iter().for_each(|&need| all[need] = true);
                    (0..at).filter(|&other| lanes[other] == lanes[at]).for_each(|other| all[other] = true);
                }
            }
            if all == before {
                return all;
            }
        }
    }

    proptest! {
        #[test]
        fn what_comes_back_is_enough_and_a_prefix_of_each_log(
            (lanes, needs, kept, wrong) in executions()
        ) {
            let diverges = |keep: &[bool], last: usize| (0..keep.len().min(last + 1))
                .find(|&at| keep[at] && (Some(at) == wrong || needs[at].iter().any(|&need| !keep[need])));
            let mut keep = kept.clone();
            // Of some steps it is known what sent their message.
            let sent = needs.iter().enumerate().map(|(at, needs)| needs.first().copied().filter(|_| at % 2 == 0));
            let causes: Vec<Option<usize>> = sent.collect();
            let added = add_needed(&lanes, &causes, &mut keep, diverges);
            prop_assert!(kept.iter().zip(&keep).all(|(before, after)| !before || *after));
            let count = |keep: &[bool]| keep.iter().filter(|k| **k).count();
            prop_assert_eq!(added as usize, count(&keep) - count(&kept));
            for at in 0..keep.len() {
                prop_assert!(!keep[at] || (0..at).all(|other| lanes[other] != lanes[at] || keep[other]));
            }
            let least = least(&lanes, &needs, &kept);
            // Where the whole can't be followed nothing is promised.
            if wrong.is_none_or(|wrong| wrong >= lanes.len()) {
                prop_assert_eq!(diverges(&keep, keep.len()), None);
                prop_assert!(least.iter().zip(&keep).all(|(needed, there)| !needed || *there));
                // Nothing comes back where nothing is missing.
                prop_assert!(least != kept || keep == kept);
            }
        }
    }
}

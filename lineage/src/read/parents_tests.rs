use proptest::prelude::*;

use super::*;

/// Whether one place leads to another, by the edges and along the logs.
fn reach(edges: &[(u32, u32)], logs: &[Vec<u32>], places: u32) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; places as usize]; places as usize];
    edges.iter().for_each(|&(a, b)| reach[a as usize][b as usize] = true);
    logs.iter().flat_map(|log| log.windows(2)).for_each(|w| reach[w[0] as usize][w[1] as usize] = true);
    for k in 0..places as usize {
        for i in 0..places as usize {
            for j in 0..places as usize {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
        }
    }
    reach
}

/// Settles logs of these lengths, in which row and stamp of an event are its place. Gives the logs, and the edges that stay.
fn settled(lengths: &[u32], edges: &[(u32, u32)]) -> (Vec<Vec<u32>>, Vec<(u32, u32)>) {
    let mut bounds = vec![0];
    lengths.iter().for_each(|n| bounds.push(bounds.last().unwrap() + n));
    let mut rows: Vec<u32> = (0..*bounds.last().unwrap()).collect();
    let seq: Vec<u64> = rows.iter().map(|row| u64::from(*row)).collect();
    let mut sorted = edges.to_vec();
    sorted.sort_unstable();
    let dropped = settle(sorted, &mut Logs { rows: &mut rows, bounds: &bounds, seq: &seq });
    let kept = edges.iter().copied().filter(|edge| !dropped.contains(edge)).collect();
    (bounds.windows(2).map(|b| rows[b[0] as usize..b[1] as usize].to_vec()).collect(), kept)
}

#[test]
fn a_parent_that_is_stamped_later_comes_first_and_others_stay() {
    // A child, something else, its parent.
    assert_eq!(settled(&[4], &[(2, 0)]).0, [vec![1, 2, 0, 3]]);
    // A message received before it was sent.
    assert_eq!(settled(&[2], &[(1, 0)]).0, [vec![1, 0]]);
    // The event between them waits for the child, by a message there and back: the parent must come before both.
    assert_eq!(settled(&[3, 1], &[(2, 0), (0, 3), (3, 1)]).0, [vec![2, 0, 1], vec![3]]);
    // A clock that is behind that of another log is no contradiction.
    assert_eq!(settled(&[2, 2], &[(3, 0)]).0, [vec![0, 1], vec![2, 3]]);
}

#[test]
fn parents_in_a_circle_lose_an_edge() {
    let (logs, kept) = settled(&[1, 1, 2], &[(0, 1), (1, 2), (2, 0)]);
    assert_eq!((logs, kept.len()), (vec![vec![0], vec![1], vec![2, 3]], 2));
}

proptest! {
    #[test]
    fn logs_keep_their_stamps_except_in_knots(
        lengths in proptest::collection::vec(1_u32..5, 1..4),
        edges in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..8),
        circles in any::<bool>(), shuffle in any::<u64>(),
    ) {
        let places: u32 = lengths.iter().sum();
        // Edges that go up in some order of all places are no circle.
        let rank = |p: u32| (u64::from(p) + 1).wrapping_mul(shuffle | 1).rotate_left(17);
        let edges: BTreeSet<(u32, u32)> = edges
            .iter()
            .map(|(a, b)| (a.index(places as usize) as u32, b.index(places as usize) as u32))
            .filter(|(a, b)| a != b)
            .map(|(a, b)| if circles || rank(a) < rank(b) { (a, b) } else { (b, a) })
            .collect();
        let edges: Vec<_> = edges.into_iter().collect();
        let mut next = 0;
        let stamped: Vec<Vec<u32>> = lengths.iter().map(|n| { next += n; (next - n..next).collect() }).collect();
        let before = reach(&edges, &stamped, places);
        let (logs, kept) = settled(&lengths, &edges);
        let after = reach(&kept, &logs, places);
        prop_assert!((0..places as usize).all(|p| !after[p][p]), "{:?} {:?}", logs, kept);
        prop_assert!(circles || kept.len() == edges.len());
        for (log, was) in logs.iter().zip(&stamped) {
            prop_assert_eq!(&{ let mut sorted = log.clone(); sorted.sort_unstable(); sorted }, was);
            for (i, &a) in log.iter().enumerate() {
                for &b in &log[i + 1..] {
                    let knotted = before[a as usize][b as usize] && before[b as usize][a as usize];
                    prop_assert!(a < b || knotted, "{} and {} changed places", a, b);
                }
            }
        }
    }
}

//! Aligning what was received on a channel with what was sent on it, by content.

use rustc_hash::FxHashMap;

/// Pairs that the longest common subsequence may look at; beyond it a cheaper rule is used.
const PAIR_LIMIT: usize = 4_000_000;

/// The send found for one receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Position among the sends.
    send: usize,
    /// Whether it is the k-th of its content on both sides, or keeps the channel's order without doubt about it.
    in_order: bool,
    /// Whether no other match is possible: nothing else on the channel has its content.
    certain: bool,
}

impl Hit {
    /// Position among the sends.
    pub(crate) fn send(&self) -> usize {
        self.send
    }

    /// Whether it is the k-th of its content on both sides, or keeps the channel's order without doubt about it.
    pub(crate) fn in_order(&self) -> bool {
        self.in_order
    }

    /// Whether no other match is possible: nothing else on the channel has its content.
    pub(crate) fn certain(&self) -> bool {
        self.certain
    }
}

/// Positions by key, in order.
type Positions = FxHashMap<u128, Vec<usize>>;

fn places(keys: &[u128]) -> Positions {
    let mut places = Positions::default();
    keys.iter().enumerate().for_each(|(i, &k)| places.entry(k).or_default().push(i));
    places
}

/// Aligns the contents of receives with those of sends, both in order; `ordered` says that the channel keeps order.
///
/// First the k-th receive of a content is its k-th send, where all counts agree. Otherwise, on an ordered channel,
/// receives are embedded in the sends in order: the leftmost embedding is taken. Nothing says that a channel loses, repeats and overtakes nothing, so only what is
/// there once is certain. Where there is no embedding (repeated or unknown messages) a longest common subsequence is taken
/// (J. W. Hunt and T. G. Szymanski, CACM 20(5), 1977), and the rest by content alone.
pub(crate) fn align(sends: &[u128], receives: &[u128], ordered: bool) -> Vec<Option<Hit>> {
    let of_send = places(sends);
    let of_receive = places(receives);
    let same_counts = of_receive.iter().all(|(k, r)| of_send.get(k).is_some_and(|s| s.len() == r.len()));
    // Of two alike one may have been lost and the other received twice.
    let is_single = |key: &u128| of_send[key].len() == 1 && of_receive[key].len() == 1;
    let mut hits = vec![None; receives.len()];
    if same_counts || !ordered {
        by_count(&of_send, receives, &mut hits, &mut vec![false; sends.len()], ordered);
        for (hit, key) in hits.iter_mut().zip(receives) {
            if let Some(hit) = hit {
                hit.certain = same_counts && is_single(key);
            }
        }
        return hits;
    }
    if let Some(left) = leftmost(&of_send, receives) {
        for (i, send) in left.into_iter().enumerate() {
            hits[i] = Some(Hit { send, in_order: true, certain: is_single(&receives[i]) });
        }
        return hits;
    }
    let mut used = vec![false; sends.len()];
    for (r, s) in subsequence(&of_send, &of_receive, receives) {
        hits[r] = Some(Hit { send: s, in_order: false, certain: false });
        used[s] = true;
    }
    by_count(&of_send, receives, &mut hits, &mut used, false);
    hits
}

/// The k-th open receive of a content is the k-th unused send of it.
fn by_count(
    of_send: &Positions,
    receives: &[u128],
    hits: &mut [Option<Hit>],
    used: &mut [bool],
    in_order: bool,
) {
    let mut next: FxHashMap<u128, usize> = FxHashMap::default();
    for (i, key) in receives.iter().enumerate().filter(|(i, _)| hits[*i].is_none()).collect::<Vec<_>>() {
        let Some(list) = of_send.get(key) else { continue };
        let k = next.entry(*key).or_default();
        while *k < list.len() && used[list[*k]] {
            *k += 1;
        }
        if let Some(&send) = list.get(*k) {
            used[send] = true;
            hits[i] = Some(Hit { send, in_order, certain: false });
        }
    }
}

/// The embedding that takes each send as early as possible.
fn leftmost(of_send: &Positions, receives: &[u128]) -> Option<Vec<usize>> {
    let mut from = 0;
    receives
        .iter()
        .map(|key| {
            let list = of_send.get(key)?;
            let send = *list.get(list.partition_point(|&p| p < from))?;
            from = send + 1;
            Some(send)
        })
        .collect()
}

/// Pairs (receive, send) of a longest common subsequence, or of a greedy one where that would cost too much.
fn subsequence(of_send: &Positions, of_receive: &Positions, receives: &[u128]) -> Vec<(usize, usize)> {
    let pairs: usize = of_receive.iter().map(|(k, r)| of_send.get(k).map_or(0, |s| s.len() * r.len())).sum();
    if pairs > PAIR_LIMIT {
        let mut from = 0;
        let mut found = Vec::new();
        for (r, key) in receives.iter().enumerate() {
            let Some(list) = of_send.get(key) else { continue };
            if let Some(&s) = list.get(list.partition_point(|&p| p < from)) {
                found.push((r, s));
                from = s + 1;
            }
        }
        return found;
    }
    // tails[k]: the chain of k+1 pairs that ends in the smallest send; each link knows the one before it.
    let mut links: Vec<(usize, usize, usize)> = Vec::new();
    let mut tails: Vec<usize> = Vec::new();
    for (r, key) in receives.iter().enumerate() {
        for &s in of_send.get(key).into_iter().flatten().rev() {
            let k = tails.partition_point(|&t| links[t].1 < s);
            let before = k.checked_sub(1).map_or(usize::MAX, |k| tails[k]);
            links.push((r, s, before));
            if k == tails.len() {
                tails.push(links.len() - 1);
            } else {
                tails[k] = links.len() - 1;
            }
        }
    }
    let mut found = Vec::new();
    let mut at = tails.last().copied().unwrap_or(usize::MAX);
    while let Some(&(r, s, before)) = links.get(at) {
        found.push((r, s));
        at = before;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(sent: &str, received: &str, ordered: bool) -> Vec<Option<usize>> {
        let keys = |t: &str| t.bytes().map(u128::from).collect::<Vec<_>>();
        align(&keys(sent), &keys(received), ordered).into_iter().map(|h| h.map(|h| h.send)).collect()
    }

    #[test]
    fn order_is_kept_where_messages_were_lost() {
        assert_eq!(sends("aba", "ba", true), [Some(1), Some(2)]);
        assert_eq!(sends("abab", "ab", true), [Some(0), Some(1)]);
        assert_eq!(sends("ab", "ba", false), [Some(1), Some(0)]);
    }

    #[test]
    fn a_repeated_message_is_left_over() {
        assert_eq!(sends("abc", "abbc", true).iter().flatten().count(), 3);
        assert_eq!(sends("abc", "axc", true), [Some(0), None, Some(2)]);
    }

    #[test]
    fn what_could_be_another_is_not_certain() {
        let keys = |t: &str| t.bytes().map(u128::from).collect::<Vec<_>>();
        let certain: Vec<bool> =
            align(&keys("aab"), &keys("ab"), true).into_iter().map(|h| h.unwrap().certain).collect();
        assert_eq!(certain, [false, true]);
    }
}

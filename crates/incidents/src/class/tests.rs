//! Keys do not change under what does not count, and change under what does.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, SeedableRng as _};

use super::*;

fn cases() -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

/// A random run of some nodes and a client that send to each other.
fn run(seed: u64, nodes: usize, length: usize) -> Vec<Point> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut actors: Vec<String> = (1..=nodes).map(|n| format!("node-{n}")).collect();
    actors.push("client".to_owned());
    let mut points: Vec<Point> = actors
        .iter()
        .map(|actor| Point { kind: "start".into(), external: true, actor: actor.clone(), ..Point::default() })
        .collect();
    for _ in 0..length {
        let cause = random.random_range(0..points.len());
        let to = actors.choose(&mut random).unwrap().clone();
        let sender = points[cause].actor.clone();
        let type_ = ["Vote", "Append", "Beat"].choose(&mut random).unwrap().to_string();
        let content = format!(
            "{type_}(term {}, from {sender}, entry e{})",
            random.random_range(1..4),
            random.random_range(0..3)
        );
        let causes = if sender == to { Vec::new() } else { vec![cause] };
        points.push(Point {
            kind: "deliver".into(),
            type_,
            external: false,
            actor: to,
            content,
            causes,
            effects: Vec::new(),
        });
    }
    points
}

/// The same run with other names of the nodes.
fn renamed(points: &[Point], seed: u64, nodes: usize) -> Vec<Point> {
    let mut numbers: Vec<usize> = (1..=nodes * 3).collect();
    numbers.shuffle(&mut StdRng::seed_from_u64(seed));
    let names: BTreeMap<String, String> =
        (1..=nodes).map(|n| (format!("node-{n}"), format!("node-{}", numbers[n]))).collect();
    let rename = |text: &str| {
        // From the longest name on, through marks that no name has.
        let mut text = text.to_owned();
        for (at, old) in names.keys().rev().enumerate() {
            text = text.replace(&format!("{old},"), &format!("<{at}>,"));
        }
        for (at, new) in names.values().rev().enumerate() {
            text = text.replace(&format!("<{at}>"), new);
        }
        text
    };
    let mut points = points.to_vec();
    for point in &mut points {
        if let Some(name) = names.get(&point.actor) {
            point.actor.clone_from(name);
        }
        point.content = rename(&point.content);
    }
    points
}

/// The same run with its steps in another order that keeps what happens before what.
fn reordered(points: &[Point], seed: u64) -> Vec<Point> {
    let mut random = StdRng::seed_from_u64(seed);
    let before = |at: usize| {
        let own = (0..at).rev().find(|b| points[*b].actor == points[at].actor);
        points[at].causes.iter().copied().chain(own).collect::<Vec<_>>()
    };
    let mut place: BTreeMap<usize, usize> = BTreeMap::new();
    let mut out: Vec<Point> = Vec::new();
    while out.len() < points.len() {
        let ready: Vec<usize> = (0..points.len())
            .filter(|at| !place.contains_key(at) && before(*at).iter().all(|b| place.contains_key(b)))
            .collect();
        let at = *ready.choose(&mut random).unwrap();
        place.insert(at, out.len());
        let mut point = points[at].clone();
        point.causes = point.causes.iter().map(|cause| place[cause]).collect();
        out.push(point);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn names_and_the_order_of_concurrent_steps_do_not_count(
        seed in any::<u64>(), other in any::<u64>(), nodes in 2_usize..6, length in 0_usize..24,
    ) {
        let points = run(seed, nodes, length);
        let first = keys(&points);
        prop_assert!(!first.approximate);
        let mut second = keys(&renamed(&reordered(&points, other), other, nodes));
        // What comes after what at an actor is the same too.
        prop_assert_eq!(&first.bag, &second.bag);
        second.bag.clone_from(&first.bag);
        prop_assert_eq!(&first, &second);
        prop_assert!((first.overlap(&second) - 1.0).abs() < 1e-9);
    }

    /// A step less is another class by every key.
    #[test]
    fn a_missing_step_counts(seed in any::<u64>(), nodes in 2_usize..6, length in 1_usize..20) {
        let points = run(seed, nodes, length);
        let (whole, less) = (keys(&points), keys(&points[..points.len() - 1]));
        prop_assert_ne!(&whole.profile, &less.profile);
        prop_assert_ne!(&whole.shape, &less.shape);
        prop_assert_ne!(&whole.exact, &less.exact);
        let overlap = whole.overlap(&less);
        prop_assert!((0.0..1.0).contains(&overlap));
    }

    /// Equal by a finer key is equal by each coarser one.
    #[test]
    fn coarser_keys_join_more(a in any::<u64>(), b in any::<u64>(), length in 0_usize..4) {
        let (a, b) = (keys(&run(a, 2, length)), keys(&run(b, 2, length)));
        prop_assert!(a.exact != b.exact || a.shape == b.shape);
        prop_assert!(a.shape != b.shape || a.profile == b.profile);
    }
}

#[test]
fn values_count_by_rank_and_only_for_the_exact_key() {
    let step = |content: &str| Point {
        kind: "deliver".into(),
        type_: "Vote".into(),
        actor: "a".into(),
        content: content.into(),
        ..Point::default()
    };
    let of = |contents: &[&str]| keys(&contents.iter().map(|content| step(content)).collect::<Vec<_>>());
    assert_eq!(of(&["Vote(3)", "Vote(7)"]), of(&["Vote(10)", "Vote(200)"]));
    assert_ne!(of(&["Vote(3)", "Vote(7)"]).exact, of(&["Vote(7)", "Vote(3)"]).exact);
    assert_eq!(of(&["Vote(3)", "Vote(7)"]).shape, of(&["Vote(7)", "Vote(3)"]).shape);
    assert_ne!(of(&["Vote(x1)", "Vote(x1)"]).exact, of(&["Vote(x1)", "Vote(x2)"]).exact);
    assert_eq!(of(&["Vote(x1)", "Vote(x2)"]).exact, of(&["Vote(y7)", "Vote(b9)"]).exact);
    assert_ne!(of(&["Vote(yes)"]).exact, of(&["Vote(no)"]).exact);
}

/// Actors that only start are interchangeable: their orders are not tried one by one.
#[test]
fn symmetry_is_no_work() {
    let mut points: Vec<Point> = (0..16)
        .map(|n| Point { kind: "start".into(), actor: format!("node-{n}"), ..Point::default() })
        .collect();
    let first = keys(&points);
    assert!(!first.approximate);
    points.reverse();
    assert_eq!(keys(&points), first);
    // Two rings of three and one ring of six look alike to refinement alone.
    let ring = |sizes: &[usize]| {
        let mut points: Vec<Point> = Vec::new();
        let all: usize = sizes.iter().sum();
        let mut from = 0;
        for size in sizes {
            for n in 0..*size {
                let next = from + (n + 1) % size;
                let content = format!("node-{next}");
                points.push(Point {
                    kind: "start".into(),
                    actor: format!("node-{}", from + n),
                    content,
                    ..Point::default()
                });
            }
            from += size;
        }
        assert_eq!(points.len(), all);
        keys(&points)
    };
    assert_ne!(ring(&[3, 3]).shape, ring(&[6]).shape);
    assert_eq!(ring(&[3, 3]).profile, ring(&[6]).profile);
}

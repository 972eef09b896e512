//! The hash of a configuration against what tells configurations apart, written down at length.

use std::collections::BTreeMap;
use std::sync::Arc;

use demi_replay::{ActorId, MsgId, OUTSIDE, Pending, PendingKind, Status, World, network};
use demi_schemas::event::Via;
use proptest::prelude::*;

use crate::token_ring::Ring;

/// Entries that are often alike but for one thing.
fn entry() -> impl Strategy<Value = Pending> {
    let actor = || (0..3_u16).prop_map(ActorId);
    let kinds = [PendingKind::Message, PendingKind::External, PendingKind::Timer, PendingKind::Repeating];
    let vias = vec![None, Some(Via::Forward), Some(Via::Scheduler)];
    let timer = (prop::sample::select(kinds.to_vec()), 0..3_u16, any::<bool>());
    (actor(), actor(), actor(), 0..2_u32, timer, prop::sample::select(vias)).prop_map(
        |(from, to, channel, msg, (kind, timer, survives), via)| Pending {
            from,
            to,
            channel,
            msg: MsgId(msg),
            kind,
            timer,
            survives,
            via,
        },
    )
}

/// The entries of each channel in their order, and how many there are of each of the others.
fn told(pending: &[Pending], ordered: bool) -> (BTreeMap<String, Vec<String>>, BTreeMap<String, usize>) {
    let (mut channels, mut free) = (BTreeMap::<_, Vec<String>>::new(), BTreeMap::new());
    for entry in pending {
        if ordered && network::ordered(entry) {
            let channel = format!("{:?} {:?}", entry.channel, entry.to);
            channels.entry(channel).or_default().push(format!("{entry:?}"));
        } else {
            *free.entry(format!("{entry:?}")).or_default() += 1;
        }
    }
    (channels, free)
}

type Parts = (Vec<Option<bool>>, Vec<bool>, Vec<Pending>);

fn world((cells, runs, pending): &Parts) -> World<Ring> {
    let cells = cells.iter().map(|cell| cell.map(Arc::new)).collect();
    let status = runs.iter().map(|runs| if *runs { Status::Running } else { Status::Crashed }).collect();
    World::assemble(cells, status, pending.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// One thing is changed, or two neighbours change places.
    #[test]
    fn equal_configurations_alone_have_equal_hashes(
        cells in prop::collection::vec(prop::option::of(any::<bool>()), 3),
        runs in prop::collection::vec(any::<bool>(), 3),
        pending in prop::collection::vec(entry(), 1..6),
        (at, other, what) in (any::<prop::sample::Index>(), entry(), 0..11),
        ordered in any::<bool>(),
    ) {
        let at = at.index(pending.len());
        let one = (cells, runs, pending);
        let mut two = one.clone();
        let changed = &mut two.2[at];
        match what {
            0 => changed.from = other.from,
            1 => changed.to = other.to,
            2 => changed.channel = other.channel,
            3 => changed.msg = other.msg,
            4 => changed.kind = other.kind,
            5 => changed.timer = other.timer,
            6 => changed.survives = other.survives,
            7 => changed.via = other.via,
            8 => two.0[at % 3] = two.0[at % 3].map(|state| !state),
            9 => two.1[at % 3] = !two.1[at % 3],
            _ if at > 0 => two.2.swap(at, at - 1),
            _ => {}
        }
        let alike = (&one.0, &one.1, told(&one.2, ordered)) == (&two.0, &two.1, told(&two.2, ordered));
        let hash = |parts| world(parts).configuration_hash(ordered, |entry| entry.msg.0.into());
        prop_assert_eq!(alike, hash(&one) == hash(&two), "{:?} {:?}", one, two);
        prop_assert!(OUTSIDE == ActorId(0));
    }
}

//! A node that is rebuilt before every call does what one does that lives on.

use std::collections::{BTreeMap, BTreeSet};

use demi_schemas::Scenario;
use raft::RawNode;
use slog::{Discard, Logger, o};

use super::{begin, rebuild, taken};
use crate::calls;
use crate::message::{Msg, Wire};
use crate::ready::Work;
use crate::settings::Settings;
use crate::stored::{Stored, Syncing};

const NODES: u64 = 4;
const STEPS: usize = 3_000;

struct Cluster {
    settings: Settings,
    logger: Logger,
    living: Vec<Work>,
    pending: Vec<(u64, Msg)>,
    random: u64,
}

fn work(raw: RawNode<Stored>, settings: &Settings) -> Work {
    let syncing = Syncing::new(None, settings.switches);
    let (writes, reads) = (BTreeSet::new(), BTreeMap::new());
    Work { raw, syncing, writes, reads, sent: Vec::new(), replies: Vec::new() }
}

impl Cluster {
    fn new(rest: &str, seed: u64) -> Cluster {
        let text = format!("model = 'tikv-raft'\nnetwork = 'unordered'\n[settings]\nspares = 1\n{rest}");
        let settings = Settings::new(&Scenario::parse(&text).unwrap()).unwrap();
        let logger = Logger::root(Discard, o!());
        let stored = |id| if id < NODES { Stored::founded(NODES - 1) } else { Stored::default() };
        let living = (1..=NODES).map(|id| begin(&settings, id, stored(id), &logger).unwrap());
        let living = living.map(|raw| work(raw, &settings)).collect();
        Cluster { settings, logger, living, pending: Vec::new(), random: seed }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % limit
    }

    /// What is delivered next, and to whom.
    fn next(&mut self, n: usize) -> (u64, Msg) {
        let to = self.below(NODES as usize) as u64 + 1;
        let other = self.below(NODES as usize) as u64 + 1;
        match self.below(60) {
            0 => (to, Msg::Election),
            1..6 => (to, Msg::Heartbeat),
            6..12 => (to, Msg::Write(n as u64)),
            12..15 => (to, Msg::Ask(n as u64)),
            15 => (to, Msg::AddNode(other)),
            // A leader that removes itself would make the library panic.
            16 if other == NODES => (to, Msg::RemoveNode(other)),
            17 => (to, Msg::Compact),
            18 => (to, Msg::SnapshotLost(other)),
            _ if self.pending.is_empty() => (to, Msg::Heartbeat),
            _ => {
                let at = self.below(self.pending.len());
                self.pending.swap_remove(at)
            }
        }
    }

    fn step(&mut self, n: usize) {
        let (to, msg) = self.next(n);
        let Cluster { settings, logger, living, .. } = self;
        let living = &mut living[to as usize - 1];
        let (stored, volatile) = (living.raw.store().clone(), taken(&living.raw));
        if stored.application.members().voters.contains(&NODES) && to == NODES && volatile.leads() {
            return;
        }
        let mut rebuilt = work(rebuild(settings, to, (stored, &volatile), logger).unwrap(), settings);
        assert_eq!(taken(&rebuilt.raw), volatile, "step {n}: before {msg:?}");
        (rebuilt.writes, rebuilt.reads) = (living.writes.clone(), living.reads.clone());
        for one in [&mut *living, &mut rebuilt] {
            calls::make(one, &msg, settings.switches);
            one.finish().unwrap();
        }
        assert_eq!(taken(&rebuilt.raw), taken(&living.raw), "step {n}: after {msg:?}");
        assert_eq!(rebuilt.raw.store(), living.raw.store(), "step {n}: after {msg:?}");
        let sent = |work: &mut Work| {
            let mut sent: Vec<_> =
                work.sent.drain(..).map(|message| (message.to, Msg::Raft(Wire::from(message)))).collect();
            // A living node may send to its peers in another order: its tables were filled in another.
            sent.sort_by_key(|(to, _)| *to);
            sent
        };
        let out = sent(living);
        assert_eq!(sent(&mut rebuilt), out, "step {n}: after {msg:?}");
        assert_eq!(rebuilt.replies, living.replies, "step {n}: after {msg:?}");
        living.replies.clear();
        self.pending.extend(out);
    }
}

#[test]
fn a_rebuilt_node_does_what_a_living_one_does() {
    for (seed, rest) in [(1_u64, ""), (2, "pre_vote = true"), (3, "check_quorum = true"), (4, "")] {
        let mut cluster = Cluster::new(rest, 0x9e37_79b9_7f4a_7c15 ^ seed);
        (0..STEPS).for_each(|n| cluster.step(n));
        let applied = cluster.living.iter().map(|work| work.raw.store().application.index());
        assert!(applied.max().unwrap() > 50, "{rest}");
    }
}

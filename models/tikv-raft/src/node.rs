//! A node: its state, and what it does with what is delivered to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::calls;
use crate::error::Corrupt;
use crate::message::{Msg, Wire};
use crate::ready::Work;
use crate::rebuild::{begin, rebuild, taken};
use crate::stored::{Disk, Syncing};
use crate::system::TikvRaft;
use crate::volatile::Volatile;
use demi_replay::{Ctx, Timer, guard};

/// The timers' names.
const ELECTION: &str = "election";
const HEARTBEAT: &str = "heartbeat";
const SYNC: &str = "sync";
const SNAPSHOT: &str = "snapshot";

/// The state of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its number.
    pub id: u64,
    /// What it wrote.
    pub disk: Disk,
    /// What the library has in memory; `None` until the node starts.
    pub volatile: Option<Volatile>,
    /// Writes of clients that wait until they are applied.
    pub writes: BTreeSet<u64>,
    /// Reads of clients, with the index that must be applied first, once that is known.
    pub reads: BTreeMap<u64, Option<u64>>,
    /// Why it can do nothing any more: the library panicked, or what it handed out makes no sense.
    pub died: Option<Arc<str>>,
}

impl Node {
    /// What is left of it after a crash.
    pub(crate) fn recovered(&self) -> Node {
        let disk = Disk { written: self.disk.after_crash(), synced: None };
        Node { id: self.id, disk, died: self.died.clone(), ..Node::default() }
    }

    /// Whether it has applied its own removal.
    #[must_use]
    pub fn removed(&self) -> bool {
        let application = &self.disk.written.application;
        application.index() > 0 && !application.members().voters.contains(&self.id)
    }

    /// Whether it leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.volatile.as_ref().is_some_and(Volatile::leads)
    }
}

impl TikvRaft {
    /// A node starts, with what is on its disk.
    pub(crate) fn begin(&self, node: &mut Node, ctx: &mut Ctx<'_, Msg>) {
        if node.volatile.is_none() {
            self.work(node, None, ctx);
        }
    }

    /// A node takes a message, or a timer of it fires.
    pub(crate) fn handle(&self, node: &mut Node, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        self.work(node, Some(msg), ctx);
    }

    /// Calls the library and takes care of what it hands out.
    fn work(&self, node: &mut Node, msg: Option<&Msg>, ctx: &mut Ctx<'_, Msg>) {
        let ends = node.removed() && !self.settings.switches.removed_goes_on;
        if node.died.is_some() || (ends && !matches!(msg, None | Some(Msg::Sync))) {
            return;
        }
        let Node { id, disk, volatile: before, writes, reads, .. } = std::mem::take(node);
        let unsynced = disk.synced.is_some();
        let outcome = guard::guarded(|| {
            let Disk { written, synced } = disk;
            let raw = match &before {
                Some(volatile) => rebuild(&self.settings, id, (written, volatile), &self.logger),
                None => begin(&self.settings, id, written, &self.logger),
            };
            let raw = raw.map_err(|why| Corrupt::Disk(why.to_string()))?;
            let syncing = Syncing::new(synced, self.settings.switches);
            let mut work = Work { raw, syncing, writes, reads, sent: Vec::new(), replies: Vec::new() };
            if let Some(msg) = msg {
                calls::make(&mut work, msg, self.settings.switches);
            }
            work.finish()?;
            Ok::<Work, Corrupt>(work)
        });
        node.id = id;
        let mut work = match outcome {
            Ok(Ok(work)) => work,
            Ok(Err(corrupt)) => return die(node, &corrupt.to_string(), ctx),
            Err(panic) => return die(node, &short(&panic), ctx),
        };
        let after = taken(&work.raw);
        for message in work.sent {
            self.send(message, ctx);
        }
        work.replies.into_iter().for_each(|reply| ctx.send(self.client(), reply));
        node.disk = work.syncing.disk(std::mem::take(work.raw.mut_store()));
        (node.writes, node.reads) = (work.writes, work.reads);
        timers(before.as_ref(), &after, msg, ctx);
        if self.settings.switches.syncs_late() && node.disk.synced.is_some() && !unsynced {
            ctx.set_timer(SYNC, Msg::Sync);
        }
        node.volatile = Some(after);
    }

    fn send(&self, message: raft::eraftpb::Message, ctx: &mut Ctx<'_, Msg>) {
        if let Some(to) = self.node(message.to) {
            ctx.send(to, Msg::Raft(Wire::from(message)));
        }
    }
}

/// A node does nothing from now on. Invariants are checked after deliveries: its timer makes sure that there can be one.
fn die(node: &mut Node, why: &str, ctx: &mut Ctx<'_, Msg>) {
    node.died = Some(why.into());
    ctx.set_timer(ELECTION, Msg::Election);
}

/// What a panic said, and where: the file's name without the folder, which differs from machine to machine.
fn short(panic: &str) -> String {
    match panic.rsplit_once(" (") {
        Some((said, place)) => {
            let file = place.rsplit(['/', '\\']).next().unwrap_or(place);
            format!("{said} ({file}")
        }
        None => panic.to_owned(),
    }
}

/// Arms and ends timers. `msg` is what was handled: a timer that fired is not live any more.
fn timers(before: Option<&Volatile>, after: &Volatile, msg: Option<&Msg>, ctx: &mut Ctx<'_, Msg>) {
    let led = before.map(Volatile::leads);
    let fired = matches!(msg, Some(Msg::Election | Msg::Heartbeat));
    if led != Some(after.leads()) {
        let (ends, begins, carries) = match after.leads() {
            true => (ELECTION, HEARTBEAT, Msg::Heartbeat),
            false => (HEARTBEAT, ELECTION, Msg::Election),
        };
        ctx.cancel_timer(ends);
        ctx.set_timer(begins, carries);
    } else if fired {
        match after.leads() {
            true => ctx.set_timer(HEARTBEAT, Msg::Heartbeat),
            false => ctx.set_timer(ELECTION, Msg::Election),
        }
    }
    let waited: BTreeSet<u64> = before.into_iter().flat_map(Volatile::awaiting_snapshot).collect();
    let waits: BTreeSet<u64> = after.awaiting_snapshot().collect();
    let lost = |peer| matches!(msg, Some(Msg::SnapshotLost(p)) if *p == peer);
    for &peer in waited.difference(&waits) {
        ctx.cancel_timer(Timer::named(SNAPSHOT).keyed(peer));
    }
    for &peer in waits.iter().filter(|peer| !waited.contains(peer) || lost(**peer)) {
        ctx.set_timer(Timer::named(SNAPSHOT).keyed(peer), Msg::SnapshotLost(peer));
    }
}

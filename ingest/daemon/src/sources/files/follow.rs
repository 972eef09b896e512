//! The files of one source: what is known of each, which is read next, and handing over what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;

use super::Config;
use super::mapped::{Mapped, SHARED};
use super::packed::Unpacked;
use super::read::Ready;
use super::state::State;
use crate::batch::{Content, PositionUpdate, Refusal};
use crate::metrics::SourceLabel;
use crate::sources::Context;

/// How long a batch may take that is on its way when the daemon stops.
const GRACE: Duration = Duration::from_millis(500);

/// A file that is or was followed.
pub(super) struct Known {
    /// Key of its position.
    pub key: String,
    pub state: State,
    pub file: Option<File>,
    /// Size and time of change when it was closed at its end.
    pub closed_at: Option<(u64, Option<SystemTime>)>,
    /// Time of change when it was last found read to its end.
    pub modified: Option<SystemTime>,
    /// Its length when it was last looked at, and since when it has that length.
    pub grown: (u64, Instant),
    /// Its length when nothing could be made of the lines that are left.
    pub tried: Option<u64>,
    /// Whether the last scan found it.
    pub present: bool,
    /// When something was last read, or it was opened.
    pub active: Instant,
    /// The unpacked stream at `state.offset`, for packed files.
    pub unpacked: Option<Unpacked>,
}

impl Known {
    fn new(key: String, state: State, present: bool) -> Self {
        Known {
            key,
            state,
            file: None,
            closed_at: None,
            modified: None,
            grown: (0, Instant::now()),
            tried: None,
            present,
            active: Instant::now(),
            unpacked: None,
        }
    }

    pub(super) fn reopen(&mut self, file: File) {
        self.file = Some(file);
        self.closed_at = None;
        self.unpacked = None;
        self.tried = None;
        self.modified = None;
        self.active = Instant::now();
    }

    /// Whether it is open and was read to its end.
    pub(super) fn is_done(&self) -> bool {
        self.file.is_some()
            && self.unpacked.is_none()
            && self.modified.is_some()
            && self.grown.0 == self.state.offset
    }

    pub(super) fn close(&mut self) {
        if let Some(file) = self.file.take() {
            self.closed_at = file.metadata().ok().map(|meta| (meta.len(), meta.modified().ok()));
        }
        self.unpacked = None;
    }
}

/// Since when a file (device, inode) may be a copy in the making.
pub(super) type Waiting = BTreeMap<(u64, u64), Instant>;

/// Follows the files of one source.
pub(super) struct Follower {
    pub config: Config,
    pub context: Context,
    handle: Handle,
    /// What the lines become, if they are of another format.
    pub mapped: Option<Mapped>,
    pub known: Vec<Known>,
    next_key: u64,
    pub complained: BTreeSet<String>,
    /// Files that are left alone for now.
    pub waiting: Waiting,
    /// Whether files must be looked for before anything more is read.
    pub rescan: bool,
    /// Whether the last look left files out because too many are open.
    pub left_out: bool,
}

impl Follower {
    pub(super) fn new(config: Config, mut mapped: Option<Mapped>, context: Context, handle: Handle) -> Self {
        let mut saved = context.intake.positions(&context.origin.source);
        let shared = saved.remove(SHARED);
        if let (Some(mapped), Some(shared)) = (&mut mapped, shared) {
            mapped.go_on(shared);
        }
        let mut next_key = 0;
        let mut known = Vec::new();
        for (key, value) in saved {
            next_key = next_key.max(key.parse().map_or(0, |n: u64| n + 1));
            match serde_json::from_value(value) {
                Ok(state) => known.push(Known::new(key, state, false)),
                Err(error) => {
                    tracing::error!(key, %error, "a saved position cannot be read; its file is read again")
                }
            }
        }
        Follower {
            config,
            context,
            handle,
            mapped,
            known,
            next_key,
            complained: BTreeSet::new(),
            waiting: BTreeMap::new(),
            rescan: false,
            left_out: false,
        }
    }

    /// Looks for files and reads them, until the daemon stops.
    pub(super) fn follow(mut self) {
        let scan_every = Duration::from_millis(self.config.scan_millis.max(10));
        let mut next_scan = Instant::now();
        while !self.context.shutdown.is_thrown() {
            self.context.tasks.may_break(&self.context.origin.source);
            if Instant::now() >= next_scan || self.rescan {
                self.scan();
                next_scan = Instant::now() + scan_every;
            }
            if !self.read() {
                self.pause(Duration::from_millis(self.config.poll_millis.max(5)));
            }
        }
    }

    /// Adds a file; gives back its number.
    pub(super) fn add(&mut self, state: State) -> usize {
        let key = self.next_key.to_string();
        self.next_key += 1;
        self.known.push(Known::new(key, state, true));
        self.known.len() - 1
    }

    /// Says once what is wrong with a file.
    pub(super) fn complain(&mut self, path: &str, what: &str, why: &str) {
        if self.complained.len() < 10_000 && self.complained.insert(format!("{path}\n{what}")) {
            tracing::warn!(source = %self.context.origin.source, path, why, "the file {what}");
            self.context.metrics.count_refused(&self.context.origin.source, "unreadable_file");
        }
    }

    /// Waits, or less if the daemon stops.
    pub(super) fn pause(&self, time: Duration) {
        let _ = self.handle.block_on(tokio::time::timeout(time, self.context.shutdown.wait()));
    }

    /// Reads some of what is there; says whether there was anything.
    pub(super) fn read(&mut self) -> bool {
        let ordered = self.mapped.as_ref().is_some_and(|mapped| mapped.ordered);
        let any = if ordered { self.read_oldest() } else { self.read_each() };
        // What was open is read to its end: those that were left out take the places.
        self.rescan |= self.left_out && !any;
        let open = self.known.iter().filter(|k| k.file.is_some()).count();
        let label = SourceLabel { source: self.context.origin.source.to_string() };
        self.context.metrics.files.get_or_create(&label).set(open as i64);
        any
    }

    /// Reads a chunk of every open file.
    fn read_each(&mut self) -> bool {
        let mut any = false;
        for number in 0..self.known.len() {
            if self.context.shutdown.is_thrown() {
                return true;
            }
            any |= self.read_one(number);
        }
        any
    }

    /// Reads a chunk of a file; says whether there was anything.
    pub(super) fn read_one(&mut self, number: usize) -> bool {
        let known = &self.known[number];
        if known.file.is_none() {
            return false;
        }
        let read = if known.state.packed { self.read_packed(number) } else { self.read_plain(number) };
        match read {
            Ok(more) => {
                if more {
                    self.known[number].active = Instant::now();
                }
                more
            }
            Err(error) => {
                let path = self.known[number].state.path.clone();
                self.complain(&path, "cannot be read on", &error.to_string());
                self.known[number].close();
                false
            }
        }
    }

    /// Hands over, waits until it is durable, and moves on; says whether it was taken.
    pub(super) fn submit(&mut self, number: usize, ready: Ready) -> bool {
        let Ready { content, next, shared } = ready;
        let known = &self.known[number];
        let update = PositionUpdate { key: known.key.clone(), value: serde_json::to_value(&next).ok() };
        // What the mapping remembers is durable with the lines that it remembers, or not at all.
        let remembered =
            shared.as_ref().map(|value| PositionUpdate { key: SHARED.into(), value: Some(value.clone()) });
        let positions = std::iter::once(update).chain(remembered).collect();
        let batch = self.context.batch(&Arc::from(next.path.as_str()), content, positions);
        let handing_over = async {
            self.context.rate.take(batch.content.len()).await;
            self.context.intake.submit(batch, Duration::MAX).await
        };
        // There may be no room for long. What is not known to be durable is read again at the next start, from the position that is.
        let stopping = async {
            self.context.shutdown.wait().await;
            tokio::time::sleep(GRACE).await;
            Err(Refusal::Closed)
        };
        let submitted = self.handle.block_on(async {
            tokio::select! {
                submitted = handing_over => submitted,
                stopped = stopping => stopped,
            }
        });
        if let (Some(mapped), Some(shared)) = (&mut self.mapped, shared) {
            mapped.settle(submitted.is_ok().then_some(shared));
        }
        match submitted {
            Ok(_) => {
                self.known[number].state = next;
                self.known[number].tried = None;
                true
            }
            Err(Refusal::Closed) => {
                self.pause(Duration::from_millis(100));
                false
            }
            Err(error) => {
                tracing::error!(path = next.path, %error, "a chunk was refused");
                self.pause(Duration::from_secs(1));
                false
            }
        }
    }

    /// Forgets files that have been gone for long.
    pub(super) fn forget(&mut self, now: u64) {
        let keep = self.config.forget_hours.saturating_mul(3600);
        let old = |k: &Known| k.file.is_none() && !k.present && k.state.seen.saturating_add(keep) < now;
        let mut updates: Vec<PositionUpdate> = self
            .known
            .iter()
            .filter(|k| old(k))
            .map(|k| PositionUpdate { key: k.key.clone(), value: None })
            .collect();
        if updates.is_empty() {
            return;
        }
        updates.dedup_by(|a, b| a.key == b.key);
        let batch = self.context.batch(&Arc::from(""), Content::Nothing, updates);
        if self.handle.block_on(self.context.intake.submit(batch, Duration::from_secs(1))).is_ok() {
            self.known.retain(|k| !old(k));
        }
    }
}

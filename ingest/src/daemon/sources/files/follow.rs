//! Reading the open files, and handing over what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use demi_schemas::EventRecord;
use tokio::runtime::Handle;

use super::packed::Unpacked;
use super::plan::{plan, whole};
use super::state::{State, bytes_before};
use super::{CHUNK, Config};
use crate::daemon::intake::{Batch, Content, Item, Outcome, PositionUpdate, Refusal};
use crate::daemon::metrics::SourceLabel;
use crate::daemon::sources::Context;

/// How long a last line without newline waits before it is taken if it is a whole record.
const UNFINISHED: Duration = Duration::from_secs(5);
/// How long a packed file that is cut off may still be written.
const PACKING: Duration = Duration::from_secs(5);
/// Files that are kept open while nothing happens to them.
const MOST_OPEN: usize = 256;

/// A file that is or was followed.
pub(super) struct Known {
    /// Key of its position.
    pub key: String,
    pub state: State,
    pub file: Option<File>,
    /// Size and time of change when it was closed at its end.
    pub closed_at: Option<(u64, Option<SystemTime>)>,
    /// Time of change when it was last found read to its end.
    modified: Option<SystemTime>,
    /// Whether the last scan found it.
    pub present: bool,
    /// When something was last read, or it was opened.
    active: Instant,
    /// The unpacked stream at `state.offset`, for packed files.
    unpacked: Option<Unpacked>,
}

impl Known {
    pub(super) fn reopen(&mut self, file: File) {
        self.file = Some(file);
        self.closed_at = None;
        self.unpacked = None;
        self.active = Instant::now();
    }

    fn close(&mut self) {
        if let Some(file) = self.file.take() {
            self.closed_at = file.metadata().ok().map(|meta| (meta.len(), meta.modified().ok()));
        }
        self.unpacked = None;
    }
}

/// Follows the files of one source.
pub(super) struct Follower {
    pub config: Config,
    context: Context,
    handle: Handle,
    pub known: Vec<Known>,
    next_key: u64,
    complained: BTreeSet<String>,
    /// Since when a file (device, inode) may be a copy in the making.
    pub waiting: BTreeMap<(u64, u64), Instant>,
}

impl Follower {
    pub(super) fn new(config: Config, context: Context, handle: Handle) -> Self {
        let saved = context.intake.positions(&context.origin.source);
        let mut next_key = 0;
        let mut known = Vec::new();
        for (key, value) in saved {
            next_key = next_key.max(key.parse().map_or(0, |n: u64| n + 1));
            match serde_json::from_value(value) {
                Ok(state) => known.push(Known {
                    key,
                    state,
                    file: None,
                    closed_at: None,
                    modified: None,
                    present: false,
                    active: Instant::now(),
                    unpacked: None,
                }),
                Err(error) => {
                    tracing::error!(key, %error, "a saved position cannot be read; its file is read again")
                }
            }
        }
        Follower {
            config,
            context,
            handle,
            known,
            next_key,
            complained: BTreeSet::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Adds a file; gives back its number.
    pub(super) fn add(&mut self, state: State) -> usize {
        let key = self.next_key.to_string();
        self.next_key += 1;
        self.known.push(Known {
            key,
            state,
            file: None,
            closed_at: None,
            modified: None,
            present: true,
            active: Instant::now(),
            unpacked: None,
        });
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

    /// Reads a chunk of every open file; says whether there was anything.
    pub(super) fn read(&mut self) -> bool {
        let mut any = false;
        for number in 0..self.known.len() {
            if self.context.shutdown.is_thrown() {
                return true;
            }
            if self.known[number].file.is_none() {
                continue;
            }
            let read = if self.known[number].state.packed {
                self.read_packed(number)
            } else {
                self.read_plain(number)
            };
            match read {
                Ok(more) => {
                    if more {
                        self.known[number].active = Instant::now();
                    }
                    any |= more;
                }
                Err(error) => {
                    let path = self.known[number].state.path.clone();
                    self.complain(&path, "cannot be read on", &error.to_string());
                    self.known[number].close();
                }
            }
        }
        let open = self.known.iter().filter(|k| k.file.is_some()).count();
        let label = SourceLabel { source: self.context.origin.source.to_string() };
        self.context.metrics.files.get_or_create(&label).set(open as i64);
        any
    }

    fn read_plain(&mut self, number: usize) -> std::io::Result<bool> {
        let known = &self.known[number];
        let Some(file) = &known.file else { return Ok(false) };
        let meta = file.metadata()?;
        let (len, modified) = (meta.len(), meta.modified().ok());
        // Of the same length and changed: it may have been cut and filled to the same place.
        if len == known.state.offset && modified == known.modified {
            return self.at_end(number, Bytes::new());
        }
        let continues = known.state.continues(file)?;
        if continues && len == known.state.offset {
            self.known[number].modified = modified;
            return self.at_end(number, Bytes::new());
        }
        if !continues {
            // Truncated, and perhaps written to since. The old state stays, for a copy of the old content.
            let meta = file.metadata()?;
            tracing::info!(
                path = known.state.path,
                offset = known.state.offset,
                "truncated; read from its beginning"
            );
            let state = State { seen: known.state.seen, ..State::new(&known.state.path, &meta, false) };
            let file = self.known[number].file.take();
            self.known[number].state.inode = 0; // no longer this file
            let fresh = self.add(state);
            if let Some(file) = file {
                self.known[fresh].reopen(file);
            }
            return Ok(true);
        }
        let before = bytes_before(file, known.state.offset)?;
        let mut bytes = vec![0; CHUNK.min(usize::try_from(len - known.state.offset).unwrap_or(CHUNK))];
        let got = read_at(file, &mut bytes, known.state.offset)?;
        bytes.truncate(got);
        self.hand_over(number, &before, bytes, got == CHUNK)
    }

    /// Hands over what can be of `bytes`, which follow `before` in the file.
    fn hand_over(
        &mut self,
        number: usize,
        before: &[u8],
        bytes: Vec<u8>,
        full: bool,
    ) -> std::io::Result<bool> {
        let bytes = Bytes::from(bytes);
        match plan(&self.known[number].state, before, &bytes, full, self.context.limits.line_bytes) {
            Some((content, next)) => Ok(self.submit(number, content, next)),
            None => self.at_end(number, bytes),
        }
    }

    /// Nothing more to read than `rest`, a line without newline.
    fn at_end(&mut self, number: usize, rest: Bytes) -> std::io::Result<bool> {
        let known = &self.known[number];
        let idle = known.active.elapsed();
        let gone = !known.present && idle >= Duration::from_secs(self.config.gone_secs);
        if !rest.is_empty() && (gone || idle >= UNFINISHED && EventRecord::parse(&rest).is_ok()) {
            let state = known.state.clone();
            let Some(file) = &known.file else { return Ok(false) };
            let before = bytes_before(file, state.offset)?;
            let next = state.after(&before, &rest, 1);
            let content = Content::Lines { offset: state.offset, line: state.line, bytes: rest };
            return Ok(self.submit(number, content, next));
        }
        // Opened again when the next scan finds it changed.
        let spare = rest.is_empty() && idle > Duration::from_secs(60) && self.known.len() > MOST_OPEN;
        if gone || spare {
            self.known[number].close();
        }
        Ok(false)
    }

    fn read_packed(&mut self, number: usize) -> std::io::Result<bool> {
        let limit = self.context.limits.line_bytes;
        let known = &mut self.known[number];
        let mut unpacked = match known.unpacked.take() {
            Some(unpacked) => unpacked,
            None => match Unpacked::open(Path::new(&known.state.path), known.state.offset) {
                Ok(unpacked) => unpacked,
                Err(error) => return self.cut_off(number, &error.to_string()),
            },
        };
        let filled = unpacked.fill(CHUNK);
        let bytes = Bytes::from(std::mem::take(&mut unpacked.ready));
        let full = bytes.len() >= CHUNK;
        let planned = plan(&known.state, &unpacked.before, &bytes, full, limit).or_else(|| {
            // The end of the file ends its last line.
            let last = unpacked.ended && !bytes.is_empty();
            last.then(|| whole(&known.state, &unpacked.before, &bytes))
        });
        let state = known.state.clone();
        let (content, next) = match (planned, filled) {
            (Some(planned), _) => planned,
            (None, Err(error)) => return self.cut_off(number, &error.to_string()),
            (None, Ok(())) => {
                let done_size = std::fs::metadata(&state.path).ok().map(|m| m.len());
                let taken = self.submit(number, Content::Nothing, State { done_size, ..state });
                if taken {
                    self.known[number].close();
                }
                return Ok(taken);
            }
        };
        let consumed = usize::try_from(next.offset - state.offset).unwrap_or(bytes.len());
        unpacked.ready = bytes.to_vec();
        let taken = self.submit(number, content, next);
        if taken {
            unpacked.consume(consumed);
        }
        self.known[number].unpacked = Some(unpacked);
        Ok(taken)
    }

    /// The packed data ends early. It may still be written; after a while it is told in quarantine.
    fn cut_off(&mut self, number: usize, why: &str) -> std::io::Result<bool> {
        let known = &mut self.known[number];
        known.unpacked = None;
        if known.active.elapsed() < PACKING {
            return Ok(false);
        }
        let state = known.state.clone();
        let reason =
            format!("the packed data is damaged or cut off after {} unpacked bytes: {why}", state.offset);
        let outcome = Outcome::Rejected { raw: Bytes::new(), code: "truncated".into(), reason };
        let item = Item { offset: state.offset, line: state.line, outcome };
        let len = std::fs::metadata(&state.path).ok().map(|m| m.len());
        let next = State { done_size: len, ..state };
        let more = self.submit(number, Content::Items(vec![item]), next);
        self.known[number].close();
        Ok(more)
    }

    /// Hands over, waits until it is durable, and moves on; says whether it was taken.
    fn submit(&mut self, number: usize, content: Content, next: State) -> bool {
        let known = &self.known[number];
        let update = PositionUpdate { key: known.key.clone(), value: serde_json::to_value(&next).ok() };
        let batch = Batch {
            origin: self.context.origin.clone(),
            stream: Arc::from(next.path.as_str()),
            content,
            positions: vec![update],
        };
        let submitted = self.handle.block_on(async {
            self.context.rate.take(batch.content.len()).await;
            self.context.intake.submit(batch, Duration::MAX).await
        });
        match submitted {
            Ok(_) => {
                self.known[number].state = next;
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
        let batch = Batch {
            origin: self.context.origin.clone(),
            stream: Arc::from(""),
            content: Content::Nothing,
            positions: updates,
        };
        if self.handle.block_on(self.context.intake.submit(batch, Duration::from_secs(1))).is_ok() {
            self.known.retain(|k| !old(k));
        }
    }
}

/// Reads as much as there is, up to the buffer's length.
fn read_at(file: &File, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

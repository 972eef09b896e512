//! Reading one file on from where it was left.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use demi_schemas::EventRecord;
use serde_json::Value;

use super::follow::Follower;
use super::mapped::Stretch;
use super::nuls::{self, Here};
use super::packed::Unpacked;
use super::plan::{plan, whole};
use super::state::{State, bytes_before};
use crate::batch::{Content, Item};
use demi_formats::Rejection;

/// How long a last line without newline, or a record that may have more lines, waits before it is taken as it is.
pub(super) const UNFINISHED: Duration = Duration::from_secs(5);
/// How long a packed file that is cut off may still be written.
const PACKING: Duration = Duration::from_secs(5);
/// Files that are kept open while nothing happens to them.
const MOST_OPEN: usize = 256;
/// Bytes read and handed over at a time.
pub(crate) const CHUNK: usize = 4 << 20;
/// The same where lines are mapped: what they become is larger.
const MAPPED_CHUNK: usize = 1 << 20;

/// What can be handed over, and where the file is then.
pub(super) struct Ready {
    pub content: Content,
    pub next: State,
    /// What the mapping remembers then, if the lines were mapped.
    pub shared: Option<Value>,
}

impl Ready {
    fn plain((content, next): (Content, State)) -> Self {
        Ready { content, next, shared: None }
    }
}

/// What comes after the bytes at hand.
#[derive(Clone, Copy)]
struct After {
    /// There is more in the file.
    more: bool,
    /// Nothing will come any more.
    nothing: bool,
    /// For how long nothing came.
    quiet: Duration,
}

impl Follower {
    fn chunk(&self) -> usize {
        let usual = if self.mapped.is_some() { MAPPED_CHUNK } else { CHUNK };
        usual.max(self.context.limits.line_bytes.saturating_add(1))
    }

    pub(super) fn read_plain(&mut self, number: usize) -> std::io::Result<bool> {
        let chunk = self.chunk();
        let known = &mut self.known[number];
        let Some(file) = &known.file else { return Ok(false) };
        let meta = file.metadata()?;
        let (len, modified) = (meta.len(), meta.modified().ok());
        if known.grown.0 != len {
            known.grown = (len, Instant::now());
        }
        let quiet = known.grown.1.elapsed();
        // Of the same length and changed: it may have been cut and filled to the same place.
        let unchanged = modified == known.modified;
        if len == known.state.offset && unchanged {
            return self.at_end(number, Bytes::new());
        }
        if known.tried == Some(len) && unchanged && quiet < UNFINISHED {
            return Ok(false);
        }
        let continues = known.state.continues(file)?;
        if continues && len == known.state.offset {
            known.modified = modified;
            return self.at_end(number, Bytes::new());
        }
        if !continues {
            return self.truncated(number);
        }
        if self.mapped.is_some() {
            self.catch_up(number)?;
        }
        let known = &self.known[number];
        let Some(file) = &known.file else { return Ok(false) };
        match nuls::here(file, known.state.offset, len)? {
            Here::Bytes => {}
            Here::NulsUpTo(to) => return self.pass_nuls(number, to),
            Here::Nuls => {
                let known = &mut self.known[number];
                (known.tried, known.modified) = (Some(len), modified);
                return self.at_end(number, Bytes::new());
            }
        }
        let known = &self.known[number];
        let Some(file) = &known.file else { return Ok(false) };
        let before = bytes_before(file, known.state.offset)?;
        let left = usize::try_from(len.saturating_sub(known.state.offset)).unwrap_or(chunk);
        let mut bytes = vec![0; chunk.min(left)];
        let got = read_at(file, &mut bytes, known.state.offset)?;
        bytes.truncate(got);
        let bytes = Bytes::from(bytes);
        // Cut between the look at it and the reading, it has other bytes at that place.
        if !known.state.continues(file)? {
            return self.truncated(number);
        }
        if known.state.offset == 0 && !self.comes_first(number) {
            return Ok(true);
        }
        let known = &self.known[number];
        let nothing = !known.present && known.active.elapsed() >= self.gone();
        match self.prepare(number, &before, &bytes, After { more: got == chunk, nothing, quiet }) {
            Some(ready) => Ok(self.submit(number, ready)),
            None => {
                let known = &mut self.known[number];
                (known.tried, known.modified) = (Some(len), modified);
                self.at_end(number, bytes)
            }
        }
    }

    /// Goes on behind NULs, which are told once.
    fn pass_nuls(&mut self, number: usize, to: u64) -> std::io::Result<bool> {
        let known = &self.known[number];
        let Some(file) = &known.file else { return Ok(false) };
        let next = known.state.behind_nuls(file, to)?;
        // Within a line that is too long, which was told, they are part of it.
        let content = match known.state.skipping {
            true => Content::Nothing,
            false => Content::Items(vec![nuls::told(&known.state, to)]),
        };
        Ok(self.submit(number, Ready { content, next, shared: None }))
    }

    fn gone(&self) -> Duration {
        Duration::from_secs(self.config.gone_secs)
    }

    /// Cut, and perhaps written to since. The old state stays, for a copy of the old content.
    fn truncated(&mut self, number: usize) -> std::io::Result<bool> {
        let known = &mut self.known[number];
        let Some(file) = known.file.take() else { return Ok(false) };
        let (path, offset) = (known.state.place(), known.state.offset);
        tracing::info!(path = known.state.path, offset, "truncated; read from its beginning");
        let state = State { seen: known.state.seen, ..State::new(path, &file.metadata()?, false) };
        known.state.inode = 0; // no longer this file
        let fresh = self.add(state);
        self.known[fresh].reopen(file);
        // A copy of the old content, if there is one, is to be found before the new content is read.
        self.rescan = true;
        Ok(true)
    }

    /// What of `bytes`, which follow `before` in the file, can be handed over.
    fn prepare(&mut self, number: usize, before: &[u8], bytes: &Bytes, after: After) -> Option<Ready> {
        let limit = self.context.limits.line_bytes;
        let state = &self.known[number].state;
        let planned = plan(state, before, bytes, after.more, limit);
        let Some(mapped) = &mut self.mapped else { return planned.map(Ready::plain) };
        match planned {
            Some((Content::Lines { .. }, _)) | None => {}
            Some(other) => return Some(Ready::plain(other)),
        }
        // What is not whole is taken as it is only at the end of the file.
        let over = after.nothing && !after.more;
        let newline = || memchr::memrchr(b'\n', bytes).map(|n| n + 1);
        let end = if over { Some(bytes.len()) } else { newline() };
        let bytes = bytes.get(..end?)?;
        if bytes.is_empty() {
            return None;
        }
        let system = &self.context.origin.system;
        let stretch = Stretch { state, before, bytes, limit, system, quiet: after.quiet };
        let finish = over || !after.more && after.quiet >= UNFINISHED;
        let made = mapped.map(&stretch, finish);
        // A record that does not end in so many bytes is taken as it is.
        let made = if made.is_none() && after.more { mapped.map(&stretch, true) } else { made };
        match made? {
            Ok((items, next, shared)) => {
                let content = if items.is_empty() { Content::Nothing } else { Content::Items(items) };
                Some(Ready { content, next, shared: Some(shared) })
            }
            Err(reason) => {
                let path = state.path.clone();
                self.complain(&path, "cannot be mapped on", &reason);
                None
            }
        }
    }

    /// Nothing more to read than `rest`, which is not finished.
    fn at_end(&mut self, number: usize, rest: Bytes) -> std::io::Result<bool> {
        let known = &self.known[number];
        let idle = known.active.elapsed();
        let gone = !known.present && idle >= self.gone();
        let whole = || self.mapped.is_none() && idle >= UNFINISHED && EventRecord::parse(&rest).is_ok();
        if !rest.is_empty() && (gone && self.mapped.is_none() || whole()) {
            let state = known.state.clone();
            let Some(file) = &known.file else { return Ok(false) };
            let before = bytes_before(file, state.offset)?;
            let next = state.after(&before, &rest, 1);
            let content = Content::Lines { offset: state.offset, line: state.line, bytes: rest };
            return Ok(self.submit(number, Ready::plain((content, next))));
        }
        // Opened again when the next scan finds it changed.
        let spare = rest.is_empty() && idle > Duration::from_secs(60) && self.known.len() > MOST_OPEN;
        if gone || spare {
            self.known[number].close();
        }
        Ok(false)
    }

    pub(super) fn read_packed(&mut self, number: usize) -> std::io::Result<bool> {
        let chunk = self.chunk();
        let mut unpacked = match self.known[number].unpacked.take() {
            Some(unpacked) => unpacked,
            None => {
                if self.mapped.is_some() {
                    self.catch_up_packed(number)?;
                }
                let state = &self.known[number].state;
                match Unpacked::open(state.place(), state.offset, &self.context.shutdown) {
                    Ok(unpacked) => unpacked,
                    Err(error) => return self.cut_off(number, &error.to_string()),
                }
            }
        };
        let filled = unpacked.fill(chunk);
        // What was not unpacked is not missing.
        if filled.is_err() && self.context.shutdown.is_thrown() {
            return Ok(false);
        }
        let bytes = Bytes::from(std::mem::take(&mut unpacked.ready));
        let last = unpacked.ended && filled.is_ok();
        let after = After { more: bytes.len() >= chunk, nothing: last, quiet: Duration::ZERO };
        let ready = self.prepare(number, &unpacked.before, &bytes, after).or_else(|| {
            // The end of the file ends its last line.
            let rest = last && !bytes.is_empty() && self.mapped.is_none();
            rest.then(|| Ready::plain(whole(&self.known[number].state, &unpacked.before, &bytes)))
        });
        let state = self.known[number].state.clone();
        let ready = match (ready, filled) {
            (Some(ready), _) => ready,
            (None, Err(error)) => return self.cut_off(number, &error.to_string()),
            (None, Ok(())) => {
                let done_size = std::fs::metadata(state.place()).ok().map(|m| m.len());
                let done = (Content::Nothing, State { done_size, ..state });
                let taken = self.submit(number, Ready::plain(done));
                if taken {
                    self.known[number].close();
                }
                return Ok(taken);
            }
        };
        let consumed = usize::try_from(ready.next.offset - state.offset).unwrap_or(bytes.len());
        unpacked.ready = bytes.to_vec();
        let taken = self.submit(number, ready);
        if taken {
            unpacked.consume(consumed);
        }
        self.known[number].unpacked = Some(unpacked);
        Ok(taken)
    }

    /// The packed data ends early. It may still be written; after a while it is told in quarantine.
    fn cut_off(&mut self, number: usize, why: &str) -> std::io::Result<bool> {
        if self.context.shutdown.is_thrown() {
            return Ok(false);
        }
        let known = &mut self.known[number];
        known.unpacked = None;
        if known.active.elapsed() < PACKING {
            return Ok(false);
        }
        let state = known.state.clone();
        let reason =
            format!("the packed data is damaged or cut off after {} unpacked bytes: {why}", state.offset);
        let rejected = Some(Rejection::new("truncated", reason));
        let item = Item { offset: state.offset, line: state.line, bytes: Bytes::new(), rejected };
        let len = std::fs::metadata(state.place()).ok().map(|m| m.len());
        let next = State { done_size: len, ..state };
        let more = self.submit(number, Ready::plain((Content::Items(vec![item]), next)));
        self.known[number].close();
        Ok(more)
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

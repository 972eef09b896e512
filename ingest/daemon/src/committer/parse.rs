//! The reading side of the committer: durable frames to parsed rows, on threads of their own.
//!
//! One thread reads frames and cuts them into chunks; several parse chunks at the same time. Chunks are handed over in
//! the order of the spool whatever order they are parsed in: what is sent for each is a place where it will appear.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::CommitError;
use crate::batch::{Batch, Content, Item, Origin, PositionUpdate};
use crate::codec::decode;
use crate::monitors::{Cut, Feeds};
use crate::spool::{Disk, Reader};
use crate::tasks::Tasks;
use demi_formats::Fate;
use demi_formats::read::block::{ParsedBlock, ParsedLine};
use demi_formats::read::lines::{Block, Line};
use demi_formats::read::parse::Parser;
use demi_store::quarantine::{self, RUN};

/// Items handed over together.
const CHUNK_ITEMS: usize = 1024;
/// Memory that an item takes besides its content.
const ITEM: usize = 512;
/// Bytes of lines handed over together; the last line is whole.
const CHUNK_BYTES: usize = 256 << 10;
/// Lines handed over together: short ones take far more room parsed than their bytes.
const CHUNK_LINES: usize = 4096;
/// Memory of what is parsed and waits to be taken, about.
const MOST_MEMORY: usize = 24 << 20;
/// The same of one chunk, unless it is a single line.
const CHUNK_MEMORY: usize = 8 << 20;
/// Most threads that parse.
const MOST_PARSERS: usize = 4;
/// How long to wait for a frame before looking whether anybody still listens.
const PATIENCE: Duration = Duration::from_millis(200);

/// Consecutive rows of one frame.
pub(super) struct Chunk {
    pub lsn: u64,
    pub origin: Origin,
    pub stream: Arc<str>,
    /// Its lines or items, and what becomes of each. Many refused lines in a row are one entry, which has the bytes of all of them.
    pub block: ParsedBlock,
    /// What a monitor is told of the rows.
    pub cut: Option<Cut>,
    /// Whether the rows are in the store, so that only a monitor is told of them.
    known: bool,
    /// Whether the frame ends here; then its positions are in `positions`.
    pub end: bool,
    pub positions: Vec<PositionUpdate>,
    /// Its share of the memory that there may be, until it is taken.
    _weight: Weight,
}

/// How much memory is taken by what is on its way.
#[derive(Default)]
struct OnTheWay {
    bytes: Mutex<usize>,
    fewer: Condvar,
}

impl OnTheWay {
    /// Waits until so many more may be on their way; more than there may be go alone. `None` when nobody listens any more.
    fn take(self: &Arc<Self>, bytes: usize, stop: &AtomicBool) -> Option<Weight> {
        let mut now = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *now > 0 && *now + bytes > MOST_MEMORY {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            (now, _) = self.fewer.wait_timeout(now, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        }
        *now += bytes;
        Some(Weight { bytes, of: self.clone() })
    }
}

/// Bytes on their way.
struct Weight {
    bytes: usize,
    of: Arc<OnTheWay>,
}

impl Drop for Weight {
    fn drop(&mut self) {
        *self.of.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.of.fewer.notify_one();
    }
}

/// Where the next chunk will appear, or why there is none.
pub(super) type Message = Result<Receiver<Chunk>, CommitError>;

struct Job {
    /// The chunk, without rows.
    chunk: Chunk,
    content: Content,
    to: SyncSender<Chunk>,
}

/// What is to be made of frames.
#[derive(Clone, Copy)]
pub(super) struct Frames<'a> {
    /// Of frames up to here only positions are told, and monitors of what they do not know.
    pub done: u64,
    /// Longest line, in bytes.
    pub limit: usize,
    pub feeds: &'a Feeds,
    pub tasks: &'a Tasks,
}

/// Reads frames until the spool is closed or nobody listens.
pub(super) fn read_frames<D: Disk>(
    mut reader: Reader<D>,
    frames: &Frames<'_>,
    to: &SyncSender<Message>,
    stop: &AtomicBool,
) {
    let parsers = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_PARSERS);
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    let way = Arc::new(OnTheWay::default());
    thread::scope(|scope| {
        for _ in 0..parsers {
            scope.spawn(|| parse_jobs(&queue, frames, stop));
        }
        // When it ends, `jobs` is dropped and the parsers end too.
        let jobs = jobs;
        while !reader.is_done() && !stop.load(Ordering::Relaxed) {
            frames.tasks.may_break("reader");
            if !reader.wait(PATIENCE) {
                continue;
            }
            let frame = match reader.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => continue,
                Err(error) => {
                    let _ = to.send(Err(error.into()));
                    return;
                }
            };
            let sent = match decode(frame.body) {
                Ok(decoded) => cut(frame.lsn, decoded, frames, &Out { jobs: &jobs, to, way: &way, stop }),
                Err(source) => to.send(Err(CommitError::Frame { lsn: frame.lsn, source })).is_ok(),
            };
            if !sent {
                return;
            }
        }
    });
}

/// Items that come first and are handed over together, if more come after them.
fn first_items(items: &[Item]) -> Option<usize> {
    let mut sum = 0;
    let together = items.iter().take(CHUNK_ITEMS).take_while(|item| {
        sum += memory(&item.bytes) + ITEM;
        sum <= CHUNK_MEMORY
    });
    let end = together.count().max(1);
    (end < items.len()).then_some(end)
}

/// Where chunks are handed out.
struct Out<'a> {
    jobs: &'a Sender<Job>,
    to: &'a SyncSender<Message>,
    way: &'a Arc<OnTheWay>,
    stop: &'a AtomicBool,
}

/// Memory that lines of JSON take while they are parsed, about: their bytes as they came, a copy, and the record; much more where there is little but
/// brackets and commas in them.
fn memory(bytes: &[u8]) -> usize {
    let nested = memchr::memchr2_iter(b'[', b'{', bytes).count();
    let elements = memchr::memchr_iter(b',', bytes).count();
    3 * bytes.len() + 320 * nested + 80 * elements
}

/// Bytes and lines that come first and are handed over together, if more come after them.
fn first_chunk(bytes: &[u8]) -> Option<usize> {
    let some = &bytes[..bytes.len().min(CHUNK_BYTES)];
    let mut end = match memchr::memchr_iter(b'\n', some).nth(CHUNK_LINES - 1) {
        Some(newline) => newline + 1,
        // The last line is whole.
        None => memchr::memchr(b'\n', &bytes[some.len()..]).map_or(bytes.len(), |n| some.len() + n + 1),
    };
    while memory(&bytes[..end]) > CHUNK_MEMORY
        && let Some(newline) = memchr::memrchr(b'\n', &bytes[..end / 2])
    {
        end = newline + 1;
    }
    (end < bytes.len()).then_some(end)
}

/// Cuts a frame into chunks and hands them out; says whether anybody still listens.
fn cut(lsn: u64, frame: Batch, frames: &Frames<'_>, out: &Out<'_>) -> bool {
    let Batch { origin, stream, positions, content } = frame;
    let known = lsn <= frames.done;
    let skip = known && frames.feeds.get(&origin.system).is_none_or(|feed| lsn <= feed.safe());
    let hand_out = |content: Content, last: Option<Vec<PositionUpdate>>| {
        let bytes = match &content {
            Content::Nothing => 0,
            Content::Lines { bytes, .. } => memory(bytes),
            Content::Items(items) => items.iter().map(|item| memory(&item.bytes) + ITEM).sum(),
        };
        let Some(weight) = out.way.take(bytes, out.stop) else { return false };
        let chunk = Chunk {
            lsn,
            origin: origin.clone(),
            stream: stream.clone(),
            block: ParsedBlock::default(),
            cut: None,
            known,
            end: last.is_some(),
            positions: last.unwrap_or_default(),
            _weight: weight,
        };
        let (done, place) = sync_channel(1);
        out.to.send(Ok(place)).is_ok() && out.jobs.send(Job { chunk, content, to: done }).is_ok()
    };
    match content {
        _ if skip => {}
        Content::Nothing => {}
        Content::Lines { mut offset, line: mut number, mut bytes } => {
            while let Some(end) = first_chunk(&bytes) {
                let some = bytes.split_to(end);
                let (begin, first) = (offset, number);
                offset += some.len() as u64;
                if number > 0 {
                    number += memchr::memchr_iter(b'\n', &some).count() as u64;
                }
                if !hand_out(Content::Lines { offset: begin, line: first, bytes: some }, None) {
                    return false;
                }
            }
            return hand_out(Content::Lines { offset, line: number, bytes }, Some(positions));
        }
        Content::Items(mut items) => {
            while let Some(end) = first_items(&items) {
                let rest = items.split_off(end);
                if !hand_out(Content::Items(std::mem::replace(&mut items, rest)), None) {
                    return false;
                }
            }
            return hand_out(Content::Items(items), Some(positions));
        }
    }
    hand_out(Content::Nothing, Some(positions))
}

/// Parses chunks until no more come, or nobody listens.
fn parse_jobs(queue: &Mutex<Receiver<Job>>, frames: &Frames<'_>, stop: &AtomicBool) {
    let limit = frames.limit;
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { mut chunk, content, to }) = job else { return };
        // What is parsed now would be taken by nobody.
        if stop.load(Ordering::Relaxed) {
            return;
        }
        frames.tasks.may_break("parser");
        let mut parser = Parser::new(&chunk.origin.system).of_daemon(chunk.origin.is_daemon());
        let feed = frames.feeds.get(&chunk.origin.system);
        match content {
            Content::Nothing => {}
            Content::Lines { offset, line, bytes } => {
                let lines = Block { bytes: bytes.into(), offset, number: line };
                chunk.block = in_runs(ParsedBlock::read(lines, feed.is_none(), &mut parser, limit));
            }
            Content::Items(items) => chunk.block = item_rows(&mut parser, &items),
        }
        if let Some(feed) = feed {
            let fates = chunk.block.entries().iter().filter_map(|entry| match entry {
                ParsedLine::Plain(..) => None,
                ParsedLine::Other { fate, .. } => Some(fate),
            });
            chunk.cut = Some(feed.cut(chunk.lsn, fates, chunk.end));
        }
        if chunk.known {
            chunk.block.take_entries();
        }
        // Nobody listens any more when the stretch of committing failed.
        let _ = to.send(chunk);
    }
}

/// Puts many refused lines in a row together: one entry, which has the bytes of all of them and says how many they are.
fn in_runs(mut block: ParsedBlock) -> ParsedBlock {
    // Of a line that is too long not all bytes are there.
    let refused = |entry: &ParsedLine| matches!(entry, ParsedLine::Other { line, fate: Fate::Quarantined(_), .. } if line.overlong.is_none());
    if block.entries().windows(RUN).all(|some| !some.iter().all(refused)) {
        return block;
    }
    let mut rest = block.take_entries().into_iter().peekable();
    let mut entries = Vec::new();
    while let Some(first) = rest.next() {
        let (begin, is_refused) = (entries.len(), refused(&first));
        entries.push(first);
        while let Some(next) = rest.next_if(|next| is_refused && refused(next)) {
            entries.push(next);
        }
        let lines = entries.len() - begin;
        let Some(ParsedLine::Other { line, raw, .. }) = entries.last().filter(|_| lines >= RUN) else {
            continue;
        };
        let (last, end) = ((line.number, line.offset), raw.end);
        entries.truncate(begin + 1);
        if let Some(ParsedLine::Other { line, raw, fate: Fate::Quarantined(why) }) = entries.last_mut() {
            raw.end = end;
            line.length = raw.len() as u64;
            *why = why.clone().reworded(|reason| quarantine::of_run(reason, lines as u64, last));
        }
    }
    block.with_entries(entries)
}

/// Items as rows over one stretch of bytes.
fn item_rows(parser: &mut Parser, items: &[Item]) -> ParsedBlock {
    let mut raw = Vec::with_capacity(items.iter().map(|i| i.bytes.len()).sum());
    let mut rows = Vec::with_capacity(items.len());
    for item in items {
        let at = raw.len();
        raw.extend_from_slice(&item.bytes);
        let line = Line {
            offset: item.offset,
            number: item.line,
            length: item.bytes.len() as u64,
            terminated: true,
            overlong: None,
        };
        let fate = match &item.rejected {
            Some(why) => Fate::Quarantined(why.clone()),
            None => parser.line(&item.bytes, &line),
        };
        rows.push(ParsedLine::Other { line, raw: at..raw.len(), fate });
    }
    ParsedBlock::of(raw, rows)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the lines are: each stands in one row, in order, and a long run of refused ones in one row together.
        #[test]
        fn each_line_stands_in_one_row(
            lines in prop::collection::vec((0usize..4, 1usize..40), 0..12), offset in 0u64..100,
        ) {
            let kinds = ["{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}", "x", "{}", ""];
            let all: Vec<&str> = lines.iter().flat_map(|(kind, n)| std::iter::repeat_n(kinds[*kind], *n)).collect();
            let text: String = all.iter().map(|line| format!("{line}\n")).collect();
            let bytes = Bytes::from(text);
            for plain in [false, true] {
                let lines = Block { bytes: bytes.to_vec(), offset, number: 7 };
                let block = in_runs(ParsedBlock::read(lines, plain, &mut Parser::new("s"), 100));
                let mut told: Vec<&str> = Vec::new();
                for entry in block.entries() {
                    let (raw, of_line) = match entry {
                        ParsedLine::Plain(row, actor) => {
                            prop_assert_eq!(*actor, 0);
                            let start = row.start as usize;
                            (start..start + row.length as usize, (row.offset, row.length as usize))
                        }
                        ParsedLine::Other { line, raw, .. } => (raw.clone(), (line.offset, line.length as usize)),
                    };
                    prop_assert_eq!(((of_line.0 - offset) as usize, of_line.1), (raw.start, raw.len()));
                    let raw = std::str::from_utf8(&bytes[raw]).unwrap();
                    let some: Vec<&str> = raw.split('\n').filter(|line| !line.is_empty()).collect();
                    match entry {
                        ParsedLine::Plain(..) => prop_assert!(plain && some == [kinds[0]]),
                        ParsedLine::Other { fate: Fate::Quarantined(why), .. } => {
                            let lines = quarantine::lines_of(why.reason());
                            prop_assert_eq!(lines as usize, some.len(), "{:?}", why);
                            prop_assert!(lines == 1 || lines >= RUN as u64);
                        }
                        ParsedLine::Other { fate: Fate::Row(_), .. } => prop_assert!(!plain && some == [kinds[0]]),
                        ParsedLine::Other { fate: Fate::LeftOut(why), .. } => prop_assert!(false, "{}", why),
                    }
                    told.extend(some);
                }
                let not_empty: Vec<&str> = all.iter().copied().filter(|line| !line.is_empty()).collect();
                prop_assert_eq!(told, not_empty);
                // A run that long is one row: there are never so many refused rows in a row.
                let refused = |entry: &ParsedLine| matches!(entry, ParsedLine::Other { fate: Fate::Quarantined(_), .. });
                prop_assert!(block.entries().windows(RUN).all(|rows| !rows.iter().all(refused)));
            }
        }

        #[test]
        fn chunks_are_bounded_in_bytes_and_lines(text in "[a\n]{0,300}", times in 1usize..3000) {
            let mut bytes = Bytes::from(text.repeat(times));
            let whole = bytes.clone();
            let mut got = Vec::new();
            while let Some(end) = first_chunk(&bytes) {
                let some = bytes.split_to(end);
                prop_assert!(some.ends_with(b"\n"));
                prop_assert!(memchr::memchr_iter(b'\n', &some).count() <= CHUNK_LINES);
                got.extend_from_slice(&some);
            }
            prop_assert!(memchr::memchr_iter(b'\n', &bytes).count() <= CHUNK_LINES + 1);
            got.extend_from_slice(&bytes);
            prop_assert_eq!(got, whole);
        }
    }
}

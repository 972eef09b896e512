//! The reading side of the committer: durable frames to parsed rows, on threads of their own.
//!
//! One thread reads frames and cuts them into chunks; several parse chunks at the same time. Chunks are handed over in
//! the order of the spool whatever order they are parsed in: what is sent for each is a place where it will appear.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::CommitError;
use crate::daemon::batch::{Origin, PositionUpdate};
use crate::daemon::codec::{Decoded, DecodedContent, DecodedItem, decode};
use crate::daemon::monitors::{Cut, Feeds};
use crate::daemon::tasks::Tasks;
use crate::read::lines::{Line, Lines};
use crate::read::parse::{Parser, What};
use crate::spool::{Disk, Reader};

/// Items handed over together.
const CHUNK_ITEMS: usize = 1024;
/// Bytes of lines handed over together; the last line is whole.
const CHUNK_BYTES: usize = 256 << 10;
/// Most threads that parse.
const MOST_PARSERS: usize = 4;
/// How long to wait for a frame before looking whether anybody still listens.
const PATIENCE: Duration = Duration::from_millis(200);

/// A line or item that is not empty.
pub(super) struct Row {
    pub line: Line,
    /// Where its bytes are in the chunk.
    pub raw: Range<usize>,
    pub what: What,
}

/// Consecutive rows of one frame.
pub(super) struct Chunk {
    pub lsn: u64,
    pub origin: Origin,
    pub stream: String,
    pub raw: Bytes,
    pub rows: Vec<Row>,
    /// What a monitor is told of the rows.
    pub cut: Option<Cut>,
    /// Whether the rows are in the store, so that only a monitor is told of them.
    known: bool,
    /// Whether the frame ends here; then its positions are in `positions`.
    pub end: bool,
    pub positions: Vec<PositionUpdate>,
}

/// Where the next chunk will appear, or why there is none.
pub(super) type Message = Result<Receiver<Chunk>, CommitError>;

/// What a chunk is made of.
enum Work {
    Nothing,
    Lines {
        /// Offset in the stream of the first byte.
        offset: u64,
        /// Number of the first line; 0 where nobody counts.
        number: u64,
        bytes: Bytes,
    },
    Items(Vec<DecodedItem>),
}

struct Job {
    /// The chunk, without rows.
    chunk: Chunk,
    work: Work,
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
    thread::scope(|scope| {
        for _ in 0..parsers {
            scope.spawn(|| parse_jobs(&queue, frames));
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
                Ok(decoded) => cut(frame.lsn, decoded, frames, &jobs, to),
                Err(source) => to.send(Err(CommitError::Frame { lsn: frame.lsn, source })).is_ok(),
            };
            if !sent {
                return;
            }
        }
    });
}

/// Cuts a frame into chunks and hands them out; says whether anybody still listens.
fn cut(lsn: u64, frame: Decoded, frames: &Frames<'_>, jobs: &Sender<Job>, to: &SyncSender<Message>) -> bool {
    let Decoded { origin, stream, positions, content } = frame;
    let known = lsn <= frames.done;
    let skip = known && frames.feeds.get(&origin.system).is_none_or(|feed| lsn <= feed.safe());
    let hand_out = |work: Work, last: Option<Vec<PositionUpdate>>| {
        let chunk = Chunk {
            lsn,
            origin: origin.clone(),
            stream: stream.clone(),
            raw: Bytes::new(),
            rows: Vec::new(),
            cut: None,
            known,
            end: last.is_some(),
            positions: last.unwrap_or_default(),
        };
        let (done, place) = sync_channel(1);
        to.send(Ok(place)).is_ok() && jobs.send(Job { chunk, work, to: done }).is_ok()
    };
    match content {
        _ if skip => {}
        DecodedContent::Nothing => {}
        DecodedContent::Lines { mut offset, line: mut number, mut bytes } => {
            while bytes.len() > CHUNK_BYTES {
                let Some(newline) = memchr::memchr(b'\n', &bytes[CHUNK_BYTES..]) else { break };
                let some = bytes.split_to(CHUNK_BYTES + newline + 1);
                let (begin, first) = (offset, number);
                offset += some.len() as u64;
                if number > 0 {
                    number += memchr::memchr_iter(b'\n', &some).count() as u64;
                }
                if !hand_out(Work::Lines { offset: begin, number: first, bytes: some }, None) {
                    return false;
                }
            }
            return hand_out(Work::Lines { offset, number, bytes }, Some(positions));
        }
        DecodedContent::Items(mut items) => {
            while items.len() > CHUNK_ITEMS {
                let rest = items.split_off(CHUNK_ITEMS);
                if !hand_out(Work::Items(std::mem::replace(&mut items, rest)), None) {
                    return false;
                }
            }
            return hand_out(Work::Items(items), Some(positions));
        }
    }
    hand_out(Work::Nothing, Some(positions))
}

/// Parses chunks until no more come.
fn parse_jobs(queue: &Mutex<Receiver<Job>>, frames: &Frames<'_>) {
    let limit = frames.limit;
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { mut chunk, work, to }) = job else { return };
        frames.tasks.may_break("parser");
        let mut parser = Parser::new(&chunk.origin.system, limit).of_daemon(chunk.origin.is_daemon());
        (chunk.raw, chunk.rows) = match work {
            Work::Nothing => (Bytes::new(), Vec::new()),
            Work::Lines { offset, number, bytes } => {
                let rows = line_rows(&mut parser, &bytes, offset, number, limit);
                (bytes, rows)
            }
            Work::Items(items) => item_rows(&mut parser, &items),
        };
        if let Some(feed) = frames.feeds.get(&chunk.origin.system) {
            chunk.cut = Some(feed.cut(chunk.lsn, chunk.rows.iter().map(|row| &row.what), chunk.end));
        }
        if chunk.known {
            chunk.rows.clear();
        }
        // Nobody listens any more when the stretch of committing failed.
        let _ = to.send(chunk);
    }
}

/// Lines as rows, unless they are empty.
fn line_rows(parser: &mut Parser<'_>, bytes: &Bytes, offset: u64, number: u64, limit: usize) -> Vec<Row> {
    let mut rows = Vec::with_capacity(bytes.len() / 128);
    for (line, raw) in Lines::new(bytes, offset, number, limit) {
        let text = &bytes[raw.clone()];
        let what = if line.overlong.is_some() {
            What::Bad { code: "too_long".into(), reason: line.too_long(limit, raw.len()) }
        } else if text.trim_ascii().is_empty() {
            continue;
        } else {
            parser.parse(text, &line)
        };
        rows.push(Row { line, raw, what });
    }
    rows
}

/// Items as rows over one stretch of bytes.
fn item_rows(parser: &mut Parser<'_>, items: &[DecodedItem]) -> (Bytes, Vec<Row>) {
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
        let what = match &item.rejected {
            Some((code, reason)) => What::Bad { code: code.clone().into(), reason: reason.clone() },
            None => parser.parse(&item.bytes, &line),
        };
        rows.push(Row { line, raw: at..raw.len(), what });
    }
    (raw.into(), rows)
}

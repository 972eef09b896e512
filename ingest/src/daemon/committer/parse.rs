//! The reading side of the committer: durable frames to parsed rows, in order, on a thread of its own.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use bytes::Bytes;
use demi_schemas::EventRecord;
use xxhash_rust::xxh3::xxh3_64;

use super::CommitError;
use crate::daemon::codec::{Decoded, DecodedContent, DecodedItem, decode};
use crate::daemon::intake::{Origin, PositionUpdate};
use crate::lines::Line;
use crate::parse::{KEPT_OF_OVERLONG, Parser, What};
use crate::spool::{Disk, Reader};

/// Rows handed over together.
const CHUNK_ROWS: usize = 2048;
/// How long to wait for a frame before looking whether anybody still listens.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a line or item became.
pub(super) enum Fate {
    Event { record: Box<EventRecord>, digest: u64, date: Option<i32> },
    Bad { code: Cow<'static, str>, reason: String },
}

/// A line or item that is not empty.
pub(super) struct Row {
    pub line: Line,
    /// Where its bytes are in the chunk.
    pub raw: Range<usize>,
    pub fate: Fate,
}

/// Consecutive rows of one frame.
pub(super) struct Chunk {
    pub lsn: u64,
    pub origin: Origin,
    pub stream: String,
    pub raw: Bytes,
    pub rows: Vec<Row>,
    /// Whether the frame ends here; then its positions are in `positions`.
    pub end: bool,
    pub positions: Vec<PositionUpdate>,
}

pub(super) type Message = Result<Chunk, CommitError>;

/// Reads frames until the spool is closed or nobody listens. Of frames up to `done` only positions are told.
pub(super) fn read_frames<D: Disk>(
    mut reader: Reader<D>,
    done: u64,
    limit: usize,
    to: &SyncSender<Message>,
    stop: &AtomicBool,
) {
    while !reader.is_done() && !stop.load(Ordering::Relaxed) {
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
            Ok(decoded) => parse(frame.lsn, decoded, frame.lsn <= done, limit, to),
            Err(source) => to.send(Err(CommitError::Frame { lsn: frame.lsn, source })).is_ok(),
        };
        if !sent {
            return;
        }
    }
}

/// Parses a frame and sends its chunks; says whether anybody still listens.
fn parse(lsn: u64, frame: Decoded, skip: bool, limit: usize, to: &SyncSender<Message>) -> bool {
    let Decoded { origin, stream, positions, content } = frame;
    let chunk = |raw: &Bytes, rows| Chunk {
        lsn,
        origin: origin.clone(),
        stream: stream.clone(),
        raw: raw.clone(),
        rows,
        end: false,
        positions: Vec::new(),
    };
    let mut last = chunk(&Bytes::new(), Vec::new());
    let mut parser = Parser::new(&origin.system, limit);
    match content {
        _ if skip => {}
        DecodedContent::Nothing => {}
        DecodedContent::Lines { offset, line, bytes } => {
            let mut rows = Vec::with_capacity(CHUNK_ROWS);
            let mut start = 0;
            let mut number = line;
            while start < bytes.len() {
                let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n);
                rows.extend(row(&mut parser, &bytes, start..end, offset, number, limit));
                number += u64::from(line > 0);
                start = end + 1;
                if rows.len() >= CHUNK_ROWS {
                    let full = std::mem::replace(&mut rows, Vec::with_capacity(CHUNK_ROWS));
                    if to.send(Ok(chunk(&bytes, full))).is_err() {
                        return false;
                    }
                }
            }
            last = chunk(&bytes, rows);
        }
        DecodedContent::Items(items) => {
            for some in items.chunks(CHUNK_ROWS) {
                let (raw, rows) = item_rows(&mut parser, some);
                if to.send(Ok(chunk(&raw, rows))).is_err() {
                    return false;
                }
            }
        }
    }
    last.end = true;
    last.positions = positions;
    to.send(Ok(last)).is_ok()
}

/// A line as a row, unless it is empty.
fn row(
    parser: &mut Parser<'_>,
    bytes: &Bytes,
    at: Range<usize>,
    offset: u64,
    number: u64,
    limit: usize,
) -> Option<Row> {
    let whole = &bytes[at.clone()];
    let mut line = Line {
        offset: offset + at.start as u64,
        number,
        length: whole.len() as u64,
        terminated: at.end < bytes.len(),
        overlong: None,
    };
    if whole.len() > limit {
        line.overlong = Some(xxh3_64(whole));
        let reason = format!(
            "the line is {} bytes long, more than the limit of {limit}; its first {KEPT_OF_OVERLONG} bytes are kept",
            whole.len()
        );
        let raw = at.start..at.start + KEPT_OF_OVERLONG.min(whole.len());
        return Some(Row { line, raw, fate: Fate::Bad { code: "too_long".into(), reason } });
    }
    if whole.trim_ascii().is_empty() {
        return None;
    }
    let fate = fate(parser.parse(whole, &line));
    Some(Row { line, raw: at, fate })
}

fn fate(what: What) -> Fate {
    match what {
        What::Event { record, digest, date } => Fate::Event { record, digest, date },
        What::Bad { code, reason } => Fate::Bad { code: code.into(), reason },
    }
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
        let fate = match &item.rejected {
            Some((code, reason)) => Fate::Bad { code: code.clone().into(), reason: reason.clone() },
            None => fate(parser.parse(&item.bytes, &line)),
        };
        rows.push(Row { line, raw: at..raw.len(), fate });
    }
    (raw.into(), rows)
}

//! Opening the segments that a process left behind, however it ended.

use std::collections::VecDeque;

use super::frame::{FrameError, HEADER, Head, SegmentHead, next_magic};
use super::read::Segment;
use super::{Disk, SpoolError};

/// Bytes looked through at a time for the next frame after a damaged one.
const WINDOW: usize = 1 << 20;

/// A part of the spool that cannot be read, other than a torn end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The segment.
    pub segment: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
    /// First and last number of the frames that are lost, if any are.
    pub lost: Option<(u64, u64)>,
}

/// What was found when a spool was opened.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Identity of the spool.
    pub id: u64,
    /// The segments with their whole frames, in order.
    pub(super) segments: VecDeque<Segment>,
    /// Last frame there is, or was before all were removed.
    pub last_lsn: u64,
    /// Whole frames.
    pub frames: u64,
    /// Bytes after the last whole frame, never acknowledged.
    pub torn_bytes: u64,
    /// Frames that a segment holds beyond what was acknowledged when it was given up.
    pub void_frames: u64,
    /// What cannot be read.
    pub damage: Vec<Damage>,
}

pub(super) fn segment_name(number: u64) -> String {
    format!("segment-{number:016x}.spool")
}

fn segment_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("segment-")?.strip_suffix(".spool")?, 16).ok()
}

/// A stretch of whole frames with numbers that follow one another.
struct Run {
    start: u64,
    end: u64,
    first: u64,
    count: u64,
    /// Last frame known to be acknowledged by the frames in it.
    acked: u64,
}

/// Looks through a spool without changing it. `None` where there is no segment.
///
/// # Errors
/// When the folder cannot be read.
pub fn inspect<D: Disk + ?Sized>(disk: &D, id: u64) -> Result<Recovered, SpoolError> {
    let mut names: Vec<(u64, String)> = disk
        .list()
        .map_err(SpoolError::io(".", "list this folder"))?
        .into_iter()
        .filter_map(|name| Some((segment_number(&name)?, name)))
        .collect();
    names.sort_unstable();
    let mut found = Recovered { id, ..Recovered::default() };
    let mut heads = Vec::new();
    for (number, name) in names {
        let mut header = [0; HEADER];
        let len = disk.len(&name).map_err(SpoolError::io(&name, "read this file"))?;
        let got = disk.read_at(&name, 0, &mut header).map_err(SpoolError::io(&name, "read this file"))?;
        match SegmentHead::read(&header[..got]).filter(|head| head.spool == id) {
            Some(head) => heads.push((number, name, len, head)),
            // Made just before the end: nothing in it was acknowledged. Elsewhere it is damage.
            None if len <= HEADER as u64 => found.torn_bytes += len,
            None => found.damage.push(Damage {
                segment: name,
                offset: 0,
                reason: "the segment's header is damaged or of another spool; it is left alone".into(),
                lost: None,
            }),
        }
    }
    for at in 0..heads.len() {
        let next_after = heads.get(at + 1).map(|next| next.3.after);
        let (_, name, len, head) = &heads[at];
        if at == 0 {
            found.last_lsn = head.after;
        } else if head.after > found.last_lsn {
            let lost = Some((found.last_lsn + 1, head.after));
            let (segment, offset) = (heads[at - 1].1.clone(), heads[at - 1].2);
            found.damage.push(Damage { segment, offset, reason: "frames are missing".into(), lost });
            found.last_lsn = head.after;
        }
        let runs = runs(disk, name, *len)?;
        let mut segment =
            Segment { name: name.clone(), after: head.after, parts: Vec::new(), len: HEADER as u64 };
        for (i, run) in runs.iter().enumerate() {
            let keep = next_after.map_or(run.count, |to| to.saturating_sub(run.first - 1).min(run.count));
            found.void_frames += run.count - keep;
            if keep == 0 {
                continue;
            }
            let damage =
                |reason: String, lost| Damage { segment: name.clone(), offset: run.start, reason, lost };
            if run.first <= found.last_lsn {
                let reason = format!("frames from {} on are there twice; the first ones count", run.first);
                found.damage.push(damage(reason, None));
                continue;
            }
            if run.first > found.last_lsn + 1 {
                let acked = runs[i..].iter().map(|r| r.acked).max().max(next_after).unwrap_or(0);
                if acked <= found.last_lsn {
                    break; // the rest of a group that was never acknowledged
                }
                let lost = Some((found.last_lsn + 1, acked.min(run.first - 1)));
                found.damage.push(damage("frames are damaged before this place".into(), lost));
            }
            segment.parts.push((run.start, run.first, keep));
            segment.len = run.end;
            found.last_lsn = run.first + keep - 1;
            found.frames += keep;
        }
        if next_after.is_none() {
            found.torn_bytes += len.saturating_sub(segment.len);
        }
        found.segments.push_back(segment);
    }
    Ok(found)
}

/// The whole frames of a segment.
fn runs<D: Disk + ?Sized>(disk: &D, name: &str, len: u64) -> Result<Vec<Run>, SpoolError> {
    let mut runs: Vec<Run> = Vec::new();
    let mut at = HEADER as u64;
    let mut body = Vec::new();
    while at < len {
        let Ok(head) = frame_at(disk, name, at, len, &mut body)? else {
            at = resync(disk, name, at, len)?;
            continue;
        };
        let end = at + (HEADER + head.len) as u64;
        match runs.last_mut() {
            Some(run) if run.end == at && run.first + run.count == head.lsn => {
                run.count += 1;
                run.end = end;
                run.acked = run.acked.max(head.acked);
            }
            _ => runs.push(Run { start: at, end, first: head.lsn, count: 1, acked: head.acked }),
        }
        at = end;
    }
    Ok(runs)
}

fn frame_at<D: Disk + ?Sized>(
    disk: &D,
    name: &str,
    at: u64,
    len: u64,
    body: &mut Vec<u8>,
) -> Result<Result<Head, FrameError>, SpoolError> {
    let mut header = [0; HEADER];
    let got = disk.read_at(name, at, &mut header).map_err(SpoolError::io(name, "read this file"))?;
    let head = match Head::read(&header[..got]) {
        Ok(head) => head,
        Err(error) => return Ok(Err(error)),
    };
    if at + (HEADER + head.len) as u64 > len {
        return Ok(Err(FrameError::Short));
    }
    body.resize(head.len, 0);
    let got = disk.read_at(name, at + HEADER as u64, body).map_err(SpoolError::io(name, "read this file"))?;
    Ok(head.check(&body[..got]).map(|()| head))
}

/// The next place after `at` where a frame could begin, or the end.
fn resync<D: Disk + ?Sized>(disk: &D, name: &str, mut at: u64, len: u64) -> Result<u64, SpoolError> {
    let mut window = vec![0; WINDOW];
    while at < len {
        let got = disk.read_at(name, at, &mut window).map_err(SpoolError::io(name, "read this file"))?;
        if let Some(skip) = next_magic(&window[..got]) {
            return Ok(at + skip as u64);
        }
        if got < WINDOW {
            return Ok(len);
        }
        // The magic may lie across the windows.
        at += (got - 4) as u64;
    }
    Ok(len)
}

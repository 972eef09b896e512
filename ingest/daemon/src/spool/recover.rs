//! Opening the segments that a process left behind, however it ended.

use std::collections::VecDeque;

use super::frame::{FrameError, HEADER, Head, SegmentHead, next_magic};
use super::read::Segment;
use super::{Disk, SpoolError, mark};

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

/// Bytes of a segment that were acknowledged and are no frames any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub segment: String,
    pub offset: u64,
    pub len: u64,
    /// First and last number of the frames that stood there, as far as that is known.
    pub lost: (u64, u64),
}

/// A file with bytes that were acknowledged and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Its name in the spool's folder.
    pub name: String,
    /// First and last number of the frames that stood there.
    pub lost: (u64, u64),
    /// Whether it was found damaged now, and not earlier.
    pub is_new: bool,
}

/// What was found when a spool was opened.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Identity of the spool.
    pub id: u64,
    /// The segments with their whole frames, in order.
    pub(super) segments: VecDeque<Segment>,
    /// Last frame before the first that there is: those up to here were removed, because they are in the store, or are lost.
    pub begins_after: u64,
    /// Last frame there is, or was before all were removed.
    pub last_lsn: u64,
    /// Whole frames.
    pub frames: u64,
    /// Bytes after the last whole frame of which nothing says that they were acknowledged.
    pub torn_bytes: u64,
    /// Frames that a segment holds beyond what was acknowledged when it was given up.
    pub void_frames: u64,
    /// What cannot be read.
    pub damage: Vec<Damage>,
    /// Where it is.
    pub(super) unreadable: Vec<Unreadable>,
    /// Files with what could not be read, of now and of earlier times.
    pub aside: Vec<Aside>,
}

impl Recovered {
    /// How many frames were acknowledged and cannot be read now.
    #[must_use]
    pub fn lost_frames(&self) -> u64 {
        let lost = self.damage.iter().filter_map(|damage| damage.lost);
        lost.fold(0, |sum: u64, (first, last)| {
            sum.saturating_add(last.saturating_sub(first).saturating_add(1))
        })
    }
}

const ASIDE: &str = "unreadable-";

impl Aside {
    fn of(part: &Unreadable) -> Aside {
        let (first, last) = part.lost;
        let segment = part.segment.trim_end_matches(".spool");
        Aside {
            name: format!("{ASIDE}{first}-{last}-{segment}-{}.bin", part.offset),
            lost: part.lost,
            is_new: true,
        }
    }

    fn read(name: &str) -> Option<Aside> {
        let mut parts = name.strip_prefix(ASIDE)?.strip_suffix(".bin")?.split('-');
        let lost = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Aside { name: name.to_owned(), lost, is_new: false })
    }

    /// Those in a folder, in the order of their frames.
    pub(super) fn all<D: Disk + ?Sized>(disk: &D) -> Result<Vec<Aside>, SpoolError> {
        let names = disk.list().map_err(SpoolError::io(".", "list this folder"))?;
        let mut all: Vec<Aside> = names.iter().filter_map(|name| Aside::read(name)).collect();
        all.sort_unstable_by(|a, b| (a.lost, &a.name).cmp(&(b.lost, &b.name)));
        Ok(all)
    }

    /// Keeps the bytes of a part in a file of their own, before they are cut off or released.
    pub(super) fn keep<D: Disk + ?Sized>(disk: &D, part: &Unreadable) -> Result<Aside, SpoolError> {
        let aside = Aside::of(part);
        let mut bytes = vec![0; part.len as usize];
        // Of what is gone as a whole only the name of the file tells.
        let got = match part.len {
            0 => 0,
            _ => disk
                .read_at(&part.segment, part.offset, &mut bytes)
                .map_err(SpoolError::io(&part.segment, "read this file"))?,
        };
        disk.replace(&aside.name, &bytes[..got]).map_err(SpoolError::io(&aside.name, "write this file"))?;
        Ok(aside)
    }
}

pub(super) fn segment_name(number: u64) -> String {
    format!("segment-{number:016x}.spool")
}

pub(super) fn segment_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("segment-")?.strip_suffix(".spool")?, 16).ok()
}

/// A segment whose header is known, or told by its first frame.
struct Headed {
    /// Where its first frame can be.
    start: u64,
    name: String,
    len: u64,
    head: SegmentHead,
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
    let acknowledged = mark::acknowledged(disk, id)?;
    let mut found = Recovered { id, aside: Aside::all(disk)?, ..Recovered::default() };
    let mut heads: Vec<Headed> = Vec::new();
    // The last segment of which nothing can be read.
    let mut broken: Option<(String, u64)> = None;
    for (_, name) in names {
        let mut header = [0; HEADER];
        let len = disk.len(&name).map_err(SpoolError::io(&name, "read this file"))?;
        let got = disk.read_at(&name, 0, &mut header).map_err(SpoolError::io(&name, "read this file"))?;
        let damage =
            |reason: &str| Damage { segment: name.clone(), offset: 0, reason: reason.into(), lost: None };
        match SegmentHead::read(&header[..got]) {
            Some(head) if head.spool == id => heads.push(Headed { start: HEADER as u64, name, len, head }),
            Some(_) => found.damage.push(damage("the segment is of another spool; it is left alone")),
            // Made just before the end: nothing in it was acknowledged. Elsewhere it is damage.
            None if len <= HEADER as u64 => found.torn_bytes += len,
            None => match runs(disk, &name, len)?.first() {
                // Each frame says itself which it is.
                Some(run) => {
                    found
                        .damage
                        .push(damage("the segment's header is damaged; its frames are read all the same"));
                    let head = SegmentHead { spool: id, after: run.first.saturating_sub(1) };
                    heads.push(Headed { start: run.start, name, len, head });
                }
                None => {
                    found.damage.push(damage("the segment's header is damaged, and it has no whole frame"));
                    broken = Some((name, len));
                }
            },
        }
    }
    for at in 0..heads.len() {
        let next_after = heads.get(at + 1).map(|next| next.head.after);
        let Headed { start, name, len, head } = &heads[at];
        // Whether something stands in front of its first frame that is none, where the header should tell what.
        let headless = *start > HEADER as u64;
        if at == 0 {
            (found.begins_after, found.last_lsn) = (head.after, head.after);
            let lost = (head.after, head.after);
            if let Some((segment, len)) = broken.take_if(|(broken, _)| *broken < *name && head.after > 0) {
                found.unreadable.push(Unreadable { segment, offset: 0, len, lost });
            } else if headless && head.after > 0 {
                found.unreadable.push(Unreadable { segment: name.clone(), offset: 0, len: *start, lost });
            }
        } else if head.after > found.last_lsn {
            let lost = (found.last_lsn + 1, head.after);
            let end = found.segments.back().map_or(0, |segment| segment.len);
            let (segment, offset, len) = match headless {
                true => (name.clone(), 0, *start),
                false => (heads[at - 1].name.clone(), end, heads[at - 1].len.saturating_sub(end)),
            };
            found.unreadable.push(Unreadable { segment: segment.clone(), offset, len, lost });
            found.damage.push(Damage {
                segment,
                offset,
                reason: "frames are missing".into(),
                lost: Some(lost),
            });
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
                let acked =
                    runs[i..].iter().map(|r| r.acked).max().max(next_after).unwrap_or(0).max(acknowledged);
                if acked <= found.last_lsn {
                    break; // the rest of a group that was never acknowledged
                }
                let lost = (found.last_lsn + 1, acked.min(run.first - 1));
                let (offset, segment) = (segment.len, name.clone());
                found.unreadable.push(Unreadable { segment, offset, len: run.start - offset, lost });
                found.damage.push(damage("frames are damaged before this place".into(), Some(lost)));
            }
            segment.parts.push((run.start, run.first, keep));
            segment.len = run.end;
            found.last_lsn = run.first + keep - 1;
            found.frames += keep;
        }
        if next_after.is_none() {
            let rest = len.saturating_sub(segment.len);
            match acknowledged > found.last_lsn {
                true => {
                    let lost = (found.last_lsn + 1, acknowledged);
                    let (mut offset, mut name, mut rest) = (segment.len, name.clone(), rest);
                    if let Some((broken, len)) = broken.take().filter(|(broken, _)| *broken > name) {
                        (offset, name, rest) = (0, broken, len);
                    }
                    found.unreadable.push(Unreadable { segment: name.clone(), offset, len: rest, lost });
                    let reason = "frames at the end are damaged or missing".into();
                    found.damage.push(Damage { segment: name, offset, reason, lost: Some(lost) });
                    found.last_lsn = acknowledged;
                }
                false => found.torn_bytes += rest,
            }
        }
        found.segments.push_back(segment);
    }
    if acknowledged > 0 && heads.is_empty() {
        let lost = (acknowledged, acknowledged);
        let (segment, len) = broken.unwrap_or((".".to_owned(), 0));
        found.unreadable.push(Unreadable { segment, offset: 0, len, lost });
        (found.begins_after, found.last_lsn) = (acknowledged, acknowledged);
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

//! Reading frames back, in order, while others are written.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::frame::{HEADER, Head};
use super::{Disk, SpoolError};

/// A segment and the whole frames in it.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub name: String,
    /// Last frame before this segment.
    pub after: u64,
    /// Stretches of frames: where they begin, number of the first, how many.
    pub parts: Vec<(u64, u64, u64)>,
    /// Bytes up to the end of the last whole frame.
    pub len: u64,
}

impl Segment {
    /// Number of the last frame, or of the one before if there is none.
    pub(super) fn last(&self) -> u64 {
        self.parts.last().map_or(self.after, |(_, first, count)| first + count - 1)
    }
}

/// What writer and readers share.
#[derive(Debug, Default)]
pub(super) struct State {
    pub segments: VecDeque<Segment>,
    /// Last frame that is durable.
    pub durable: u64,
    pub closed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Shared { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The state. No holder leaves it half changed, so a holder that panicked does no harm.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }
}

/// A frame read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number.
    pub lsn: u64,
    /// Its body.
    pub body: Vec<u8>,
}

/// Reads the durable frames of a spool in order.
pub struct Reader<D> {
    disk: Arc<D>,
    shared: Arc<Shared>,
    /// The last frame read.
    last: u64,
    /// Segment and place where the next frame is, if the last one was read from there.
    place: Option<(String, u64)>,
}

impl<D: Disk> Reader<D> {
    pub(super) fn new(disk: Arc<D>, shared: Arc<Shared>, after: u64) -> Self {
        Reader { disk, shared, last: after, place: None }
    }

    /// Number of the last frame read.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Goes on after the frame `lsn`.
    pub fn seek(&mut self, lsn: u64) {
        self.last = lsn;
        self.place = None;
    }

    /// Waits until there is a frame to read, the spool is closed, or the time is over; says whether there is one.
    pub fn wait(&self, timeout: Duration) -> bool {
        let state = self.shared.lock();
        let waited =
            self.shared.changed.wait_timeout_while(state, timeout, |s| s.durable <= self.last && !s.closed);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.durable > self.last
    }

    /// Whether the spool was closed and everything was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let state = self.shared.lock();
        state.closed && state.durable <= self.last
    }

    /// The next frame, if one is durable. Frames that are lost (see [`super::Damage`]) are passed over.
    ///
    /// # Errors
    /// When a frame that was durable cannot be read back; it can be asked for again.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SpoolError> {
        let Some((name, offset, lsn)) = self.locate()? else { return Ok(None) };
        let mut header = [0; HEADER];
        let unreadable = |reason: String| SpoolError::Unreadable { name: name.clone(), lsn, reason };
        let got =
            self.disk.read_at(&name, offset, &mut header).map_err(SpoolError::io(&name, "read this file"))?;
        let head = Head::read(&header[..got]).map_err(|e| unreadable(e.to_string()))?;
        if head.lsn != lsn {
            return Err(unreadable(format!("frame {} is in its place", head.lsn)));
        }
        let mut body = vec![0; head.len];
        let start = offset + HEADER as u64;
        let got =
            self.disk.read_at(&name, start, &mut body).map_err(SpoolError::io(&name, "read this file"))?;
        head.check(&body[..got]).map_err(|e| unreadable(e.to_string()))?;
        self.last = lsn;
        self.place = Some((name, start + head.len as u64));
        Ok(Some(Frame { lsn, body }))
    }

    /// Segment, place and number of the next frame.
    fn locate(&mut self) -> Result<Option<(String, u64, u64)>, SpoolError> {
        let state = self.shared.lock();
        if state.durable <= self.last {
            return Ok(None);
        }
        for segment in &state.segments {
            if segment.last() <= self.last {
                continue;
            }
            let ends = |(_, first, count): &&(u64, u64, u64)| first + count > self.last + 1;
            let Some(&(start, first, _)) = segment.parts.iter().find(ends) else { continue };
            if first > self.last {
                return Ok(Some((segment.name.clone(), start, first)));
            }
            if let Some((name, offset)) = &self.place
                && *name == segment.name
            {
                return Ok(Some((name.clone(), *offset, self.last + 1)));
            }
            let name = segment.name.clone();
            drop(state);
            return self.walk(name, start, first).map(Some);
        }
        Ok(None)
    }

    /// Finds the frame after the last one read, from the beginning of its stretch.
    fn walk(&self, name: String, mut offset: u64, mut lsn: u64) -> Result<(String, u64, u64), SpoolError> {
        while lsn <= self.last {
            let mut header = [0; HEADER];
            let got = self
                .disk
                .read_at(&name, offset, &mut header)
                .map_err(SpoolError::io(&name, "read this file"))?;
            let head = Head::read(&header[..got]).map_err(|e| SpoolError::Unreadable {
                name: name.clone(),
                lsn,
                reason: e.to_string(),
            })?;
            offset += (HEADER + head.len) as u64;
            lsn += 1;
        }
        Ok((name, offset, lsn))
    }
}

//! Writing frames, and removing segments that are in the store.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::frame::{Body, HEADER, Head, SegmentHead};
use super::mark::Marks;
use super::read::{Reader, Segment, Shared, State};
use super::recover::{Aside, Recovered, Unreadable, inspect, segment_name, segment_number};
use super::{Disk, SpoolError};
use demi_store::fs::OpenFile;

/// The file that holds the spool's identity.
const IDENTITY: &str = "spool.json";

/// Sizes of a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes after which a new segment begins.
    pub segment_bytes: u64,
    /// Most bytes of all segments together.
    pub max_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { segment_bytes: 64 << 20, max_bytes: 4 << 30 }
    }
}

/// Frames that became durable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of the first.
    pub first_lsn: u64,
    /// Number of the last.
    pub last_lsn: u64,
}

struct Active {
    file: Box<dyn OpenFile>,
}

/// The writing end of a spool. There is one; readers are given out by [`Spool::reader`].
pub struct Spool<D> {
    disk: Arc<D>,
    shared: Arc<Shared>,
    options: Options,
    id: u64,
    next_segment: u64,
    active: Option<Active>,
    buffer: Vec<u8>,
    marks: Marks,
}

/// Identity of the spool on the disk, if there is one. Where its file is damaged or gone, the segments know it.
///
/// # Errors
/// When the file cannot be read, or is none and there are no segments either.
pub(crate) fn identity<D: Disk + ?Sized>(disk: &D) -> Result<Option<u64>, SpoolError> {
    let names = disk.list().map_err(SpoolError::io(".", "list this folder"))?;
    let mut id = None;
    if names.iter().any(|name| name == IDENTITY) {
        let mut bytes = vec![0; 4096];
        let got =
            disk.read_at(IDENTITY, 0, &mut bytes).map_err(SpoolError::io(IDENTITY, "read this file"))?;
        let value: serde_json::Value = serde_json::from_slice(&bytes[..got]).unwrap_or_default();
        let number = |key: &str| value[key].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        id = number("spool");
        if id.is_some() && number("check") == id.map(check_of) {
            return Ok(id);
        }
    }
    let mut of_segments = std::collections::BTreeSet::new();
    for name in names.iter().filter(|name| segment_number(name).is_some()) {
        let mut header = [0; HEADER];
        let got = disk.read_at(name, 0, &mut header).map_err(SpoolError::io(name, "read this file"))?;
        of_segments.extend(SegmentHead::read(&header[..got]).map(|head| head.spool));
    }
    let told = of_segments.first().copied().filter(|_| of_segments.len() == 1);
    match (told.or(id), names.iter().any(|name| name == IDENTITY)) {
        (None, true) => Err(SpoolError::NoSpool {
            name: IDENTITY.to_owned(),
            reason: "this does not name a spool of this version".to_owned(),
        }),
        (id, _) => Ok(id),
    }
}

/// The check of an identity: a digit that changed is not taken for another spool.
fn check_of(id: u64) -> u64 {
    xxh3_64(&id.to_le_bytes())
}

/// Writes the file with the identity.
fn write_identity<D: Disk + ?Sized>(disk: &D, id: u64) -> Result<(), SpoolError> {
    let check = check_of(id);
    let text =
        format!("{{\"format\":\"demi-spool/1\",\"spool\":\"{id:016x}\",\"check\":\"{check:016x}\"}}\n");
    let mut known = vec![0; 2 * text.len()];
    if disk.read_at(IDENTITY, 0, &mut known).is_ok_and(|got| known[..got] == *text.as_bytes()) {
        return Ok(());
    }
    disk.replace(IDENTITY, text.as_bytes()).map_err(SpoolError::io(IDENTITY, "write this file"))
}

impl<D: Disk> Spool<D> {
    /// Opens the spool on `disk`, or makes one. A torn end is cut off, void frames are dropped; what else is wrong
    /// is in the second part.
    ///
    /// # Errors
    /// When the disk cannot be read or written.
    pub fn open(disk: D, options: Options) -> Result<(Self, Recovered), SpoolError> {
        let known = identity(&disk)?;
        // Only has to differ from that of a spool that was here before.
        let other = || RandomState::new().hash_one((std::time::SystemTime::now(), std::process::id()));
        let id = known.unwrap_or_else(other);
        write_identity(&disk, id)?;
        let mut found = inspect(&disk, id)?;
        for part in &found.unreadable {
            // What was kept earlier stays as it was: the bytes may be gone from the segment since.
            if found.aside.iter().all(|known| known.lost != part.lost) {
                found.aside.push(Aside::keep(&disk, part)?);
            }
        }
        for segment in &found.segments {
            let len = disk.len(&segment.name).map_err(SpoolError::io(&segment.name, "read this file"))?;
            if len > segment.len {
                disk.truncate(&segment.name, segment.len)
                    .map_err(SpoolError::io(&segment.name, "cut the torn end off this file"))?;
            }
        }
        let names = disk.list().map_err(SpoolError::io(".", "list this folder"))?;
        let next_segment = names.iter().filter_map(|name| segment_number(name)).max().map_or(0, |n| n + 1);
        let state = State { segments: found.segments.clone(), durable: found.last_lsn, closed: false };
        let shared = Arc::new(Shared::new(state));
        let spool = Spool {
            disk: Arc::new(disk),
            shared,
            options,
            id,
            next_segment,
            active: None,
            buffer: Vec::new(),
            marks: Marks::new(id),
        };
        Ok((spool, found))
    }

    /// A spool that was [inspected](super::inspect), for reading: the disk is not changed.
    pub(crate) fn offline(disk: D, options: Options, found: Recovered) -> Self {
        let id = found.id;
        let state = State { segments: found.segments, durable: found.last_lsn, closed: true };
        Spool {
            disk: Arc::new(disk),
            shared: Arc::new(Shared::new(state)),
            options,
            id,
            next_segment: u64::MAX,
            active: None,
            buffer: Vec::new(),
            marks: Marks::new(id),
        }
    }

    /// Identity of the spool: another after its folder was emptied.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Number of the last durable frame.
    #[must_use]
    pub fn last_lsn(&self) -> u64 {
        self.shared.lock().durable
    }

    /// Bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared.lock().segments.iter().map(|s| s.len).sum()
    }

    /// Most bytes there may be.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.options.max_bytes
    }

    /// Makes the numbers of new frames begin after `lsn`, if they do not yet: the store may know more frames than a
    /// disk that lost some.
    pub fn skip_to(&mut self, lsn: u64) {
        let mut state = self.shared.lock();
        if state.durable < lsn {
            state.durable = lsn;
            self.active = None;
        }
    }

    /// A reader of the frames after `lsn`.
    #[must_use]
    pub fn reader(&self, after: u64) -> Reader<D> {
        Reader::new(self.disk.clone(), self.shared.clone(), after)
    }

    /// Gives out readers without holding the spool.
    #[must_use]
    pub fn readers(&self) -> Readers<D> {
        Readers { disk: self.disk.clone(), shared: self.shared.clone() }
    }

    /// A hand on the spool for the one who removes what is in the store.
    #[must_use]
    pub fn releaser(&self) -> Releaser<D> {
        Releaser { disk: self.disk.clone(), shared: self.shared.clone() }
    }

    /// Writes frames and returns when they are durable; none of them is if it fails.
    ///
    /// # Errors
    /// [`SpoolError::Full`] when there is no room until something is released, or what the disk says. Both may pass.
    pub fn write(&mut self, bodies: &[Body]) -> Result<Written, SpoolError> {
        let first_lsn = self.last_lsn() + 1;
        let adds: u64 = bodies.iter().map(Body::frame_len).sum();
        let (bytes, limit) = (self.bytes(), self.options.max_bytes);
        if bytes + adds + HEADER as u64 > limit {
            return Err(SpoolError::Full { bytes, limit });
        }
        self.buffer.clear();
        self.buffer.reserve(adds as usize);
        for (group, body) in (0..).zip(bodies) {
            self.buffer.extend_from_slice(&body.header(first_lsn + u64::from(group), group));
            self.buffer.extend_from_slice(body.bytes());
        }
        if self.active_len().is_none_or(|len| len >= self.options.segment_bytes) {
            self.begin_segment()?;
        }
        let written = match self.append_and_sync() {
            Ok(()) => Ok(()),
            // What the segment holds now is not known. A fresh one is tried once; the disk may be well again.
            Err(Failure::Sync(_)) => {
                self.begin_segment()?;
                self.append_and_sync().map_err(Failure::error)
            }
            Err(failure) => Err(failure.error()),
        };
        written?;
        let last_lsn = first_lsn + bodies.len() as u64 - 1;
        let mut state = self.shared.lock();
        if let Some(segment) = state.segments.back_mut() {
            match segment.parts.last_mut() {
                Some((_, first, count)) if *first + *count == first_lsn => *count += bodies.len() as u64,
                _ => segment.parts.push((segment.len, first_lsn, bodies.len() as u64)),
            }
            segment.len += adds;
        }
        state.durable = last_lsn;
        drop(state);
        self.shared.notify();
        self.marks.note(&*self.disk, last_lsn);
        // A large group is seldom; its room is given back.
        self.buffer.shrink_to(8 << 20);
        Ok(Written { first_lsn, last_lsn })
    }

    /// Leaves the segment at hand, where nobody knows what it holds behind its last frame. The next one makes that void.
    pub fn leave_segment(&mut self) {
        self.active = None;
    }

    fn active_len(&self) -> Option<u64> {
        self.active.as_ref()?;
        self.shared.lock().segments.back().map(|s| s.len)
    }

    /// Appends the buffer to the active segment and syncs it; cuts it off again if it does not fit.
    fn append_and_sync(&mut self) -> Result<(), Failure> {
        let (len, name) = match self.shared.lock().segments.back() {
            Some(segment) => (segment.len, segment.name.clone()),
            None => (0, String::new()),
        };
        let Some(active) = &mut self.active else {
            return Err(Failure::Append(SpoolError::NoSpool { name, reason: "no segment is open".into() }));
        };
        if let Err(error) = active.file.append(&self.buffer) {
            if active.file.cut(len).is_err() {
                self.active = None;
            }
            return Err(Failure::Append(SpoolError::io(&name, "write to this file")(error)));
        }
        if let Err(error) = active.file.sync() {
            // Best effort; the header of the next segment makes void what stays.
            let _ = active.file.cut(len);
            self.active = None;
            return Err(Failure::Sync(SpoolError::io(&name, "sync this file")(error)));
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<(), SpoolError> {
        self.active = None;
        let number = self.next_segment;
        let name = segment_name(number);
        let after = self.last_lsn();
        self.next_segment += 1;
        let head = SegmentHead { spool: self.id, after };
        let made = self.disk.create(&name).and_then(|mut file| {
            file.append(&head.bytes())?;
            file.sync()?;
            self.disk.sync_names()?;
            Ok(file)
        });
        let file = match made {
            Ok(file) => file,
            Err(error) => {
                let _ = self.disk.remove(&name);
                return Err(SpoolError::io(&name, "make this file")(error));
            }
        };
        self.active = Some(Active { file });
        let segment = Segment { name, after, parts: Vec::new(), len: HEADER as u64 };
        self.shared.lock().segments.push_back(segment);
        Ok(())
    }

    /// Notes that frames are lost of which nothing is left: a file without content, which is named after them.
    ///
    /// # Errors
    /// What the disk says.
    pub fn note_lost(&self, first: u64, last: u64) -> Result<(), SpoolError> {
        let part = Unreadable { segment: ".".into(), offset: 0, len: 0, lost: (first, last) };
        Aside::keep(&*self.disk, &part).map(|_| ())
    }

    /// Replaces the bodies of frames by what `body` makes of them; what it makes nothing of stays. Numbers and acknowledgements stay as
    /// they are, and each segment is replaced at once. What could not be read of a segment that is replaced is gone with it.
    ///
    /// # Errors
    /// What the disk says; the segments before are replaced then.
    pub fn rewrite(&mut self, body: &mut dyn FnMut(&[u8]) -> Option<Body>) -> Result<(), SpoolError> {
        self.active = None;
        let segments: Vec<Segment> = self.shared.lock().segments.iter().cloned().collect();
        for (place, segment) in segments.into_iter().enumerate() {
            let name = &segment.name;
            let io = || SpoolError::io(name, "read this file");
            let mut whole = vec![0; segment.len as usize];
            let got = self.disk.read_at(name, 0, &mut whole).map_err(io())?;
            whole.truncate(got);
            let head = SegmentHead { spool: self.id, after: segment.after };
            let (mut out, mut parts, mut changed) = (head.bytes().to_vec(), Vec::new(), false);
            for (start, first, count) in &segment.parts {
                parts.push((out.len() as u64, *first, *count));
                let mut rest = whole.get(*start as usize..).unwrap_or_default();
                for lsn in *first..first + count {
                    let unreadable =
                        |reason: String| SpoolError::Unreadable { name: name.clone(), lsn, reason };
                    let head = Head::read(rest).map_err(|error| unreadable(error.to_string()))?;
                    let end = HEADER + head.len;
                    let old = rest.get(HEADER..end).ok_or_else(|| unreadable("it is cut off".into()))?;
                    match body(old) {
                        Some(new) => {
                            changed = true;
                            let group = lsn.saturating_sub(head.acked + 1);
                            out.extend_from_slice(&new.header(lsn, u32::try_from(group).unwrap_or(u32::MAX)));
                            out.extend_from_slice(new.bytes());
                        }
                        None => out.extend_from_slice(&rest[..end]),
                    }
                    rest = &rest[end..];
                }
            }
            if !changed {
                continue;
            }
            self.disk.replace(name, &out).map_err(SpoolError::io(name, "write this file"))?;
            let len = out.len() as u64;
            if let Some(known) = self.shared.lock().segments.get_mut(place) {
                (known.parts, known.len) = (parts, len);
            }
        }
        Ok(())
    }

    /// Nothing was written for a moment: writes down durably up to where frames are acknowledged.
    pub fn rest(&mut self) {
        self.marks.rest(&*self.disk);
    }

    /// No more frames come; readers end when they have read what there is.
    pub fn close(&mut self) {
        self.rest();
        self.active = None;
        self.shared.lock().closed = true;
        self.shared.notify();
    }
}

enum Failure {
    Append(SpoolError),
    Sync(SpoolError),
}

impl Failure {
    fn error(self) -> SpoolError {
        match self {
            Failure::Append(error) | Failure::Sync(error) => error,
        }
    }
}

/// Gives out readers.
pub struct Readers<D> {
    disk: Arc<D>,
    shared: Arc<Shared>,
}

impl<D: Disk> Readers<D> {
    /// A reader of the frames after `lsn`.
    #[must_use]
    pub fn reader(&self, after: u64) -> Reader<D> {
        Reader::new(self.disk.clone(), self.shared.clone(), after)
    }
}

/// Removes segments that are no longer needed.
pub struct Releaser<D> {
    disk: Arc<D>,
    shared: Arc<Shared>,
}

impl<D: Disk> Releaser<D> {
    /// The folder of the spool.
    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    /// Whether [`release`](Self::release) would remove anything.
    #[must_use]
    pub fn would_release(&self, lsn: u64) -> bool {
        let state = self.shared.lock();
        state.segments.len() > 1 && state.segments.front().is_some_and(|s| s.last() <= lsn)
    }

    /// Removes the segments all of whose frames are at or before `lsn`, except the newest.
    ///
    /// # Errors
    /// What the disk says; it can be called again.
    pub fn release(&self, lsn: u64) -> Result<(), SpoolError> {
        loop {
            let mut state = self.shared.lock();
            if state.segments.len() < 2 || state.segments.front().is_none_or(|s| s.last() > lsn) {
                return Ok(());
            }
            let Some(segment) = state.segments.pop_front() else { return Ok(()) };
            drop(state);
            if let Err(error) = self.disk.remove(&segment.name) {
                let result = SpoolError::io(&segment.name, "remove this file")(error);
                self.shared.lock().segments.push_front(segment);
                return Err(result);
            }
            // One by one: after a power cut, a segment that came back alone would look like the edge of a hole.
            self.disk.sync_names().map_err(SpoolError::io(".", "sync this folder"))?;
        }
    }

    /// Bytes of all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared.lock().segments.iter().map(|s| s.len).sum()
    }

    /// Number of the last durable frame.
    #[must_use]
    pub fn durable(&self) -> u64 {
        self.shared.lock().durable
    }
}

//! Headers of segments and frames.

use xxhash_rust::xxh3::xxh3_64;

/// Most bytes of a frame's body.
pub const MAX_BODY: usize = 1 << 28;
/// Bytes of either header.
pub(super) const HEADER: usize = 32;
const FRAME_MAGIC: &[u8; 4] = b"DmFr";
const SEGMENT_MAGIC: &[u8; 8] = b"DEMISPL1";

/// Content of a frame with its check, which is computed by whoever makes it. The default is an empty place holder
/// whose check does not fit.
#[derive(Clone, Debug, Default)]
pub struct Body {
    bytes: Vec<u8>,
    check: u64,
}

impl Body {
    /// A body.
    ///
    /// # Errors
    /// When there are more bytes than [`MAX_BODY`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, FrameError> {
        if bytes.len() > MAX_BODY {
            return Err(FrameError::Length(bytes.len()));
        }
        let check = xxh3_64(&bytes);
        Ok(Body { bytes, check })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that the frame takes in a segment.
    #[must_use]
    pub fn frame_len(&self) -> u64 {
        (HEADER + self.bytes.len()) as u64
    }

    /// The header of the frame `lsn`, which `group` frames precede in the group it is written with.
    pub(super) fn header(&self, lsn: u64, group: u32) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(FRAME_MAGIC);
        header[4..8].copy_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        header[8..16].copy_from_slice(&lsn.to_le_bytes());
        header[16..24].copy_from_slice(&self.check.to_le_bytes());
        header[24..28].copy_from_slice(&group.to_le_bytes());
        let check = xxh3_64(&header[..28]) as u32;
        header[28..].copy_from_slice(&check.to_le_bytes());
        header
    }
}

/// Why bytes are no frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// They do not begin like one.
    #[error("no frame begins here")]
    Magic,
    /// The header's check does not fit.
    #[error("the frame's header is damaged")]
    Header,
    /// The body's check does not fit.
    #[error("the frame's body is damaged")]
    Body,
    /// The length is beyond [`MAX_BODY`].
    #[error("a frame of {0} bytes is too long")]
    Length(usize),
    /// They end before the frame does.
    #[error("the frame is cut off")]
    Short,
}

/// A frame's header that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub lsn: u64,
    pub len: usize,
    /// Last frame that was acknowledged when this one was written.
    pub acked: u64,
    check: u64,
}

fn long(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

impl Head {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, FrameError> {
        if !bytes.starts_with(FRAME_MAGIC) {
            let short = bytes.len() < 4 && FRAME_MAGIC.starts_with(bytes);
            return Err(if short { FrameError::Short } else { FrameError::Magic });
        }
        let header = bytes.get(..HEADER).ok_or(FrameError::Short)?;
        if long(&header[28..]) != u64::from(xxh3_64(&header[..28]) as u32) {
            return Err(FrameError::Header);
        }
        let len = long(&header[4..8]) as usize;
        if len > MAX_BODY {
            return Err(FrameError::Length(len));
        }
        let lsn = long(&header[8..16]);
        let acked = lsn.saturating_sub(long(&header[24..28]) + 1);
        Ok(Head { lsn, len, acked, check: long(&header[16..24]) })
    }

    pub(super) fn check(&self, body: &[u8]) -> Result<(), FrameError> {
        match body.len() == self.len && xxh3_64(body) == self.check {
            true => Ok(()),
            false => Err(FrameError::Body),
        }
    }
}

/// Where the next frame could begin in `bytes`, after the first of them.
pub(super) fn next_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(FRAME_MAGIC.len()).skip(1).position(|w| w == FRAME_MAGIC).map(|at| at + 1)
}

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    /// Which spool it is of.
    pub spool: u64,
    /// Last frame that was acknowledged when the segment was made.
    pub after: u64,
}

impl SegmentHead {
    pub(super) fn bytes(self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(SEGMENT_MAGIC);
        header[8..16].copy_from_slice(&self.spool.to_le_bytes());
        header[16..24].copy_from_slice(&self.after.to_le_bytes());
        let check = xxh3_64(&header[..24]);
        header[24..].copy_from_slice(&check.to_le_bytes());
        header
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER)?;
        let fits = header.starts_with(SEGMENT_MAGIC) && long(&header[24..]) == xxh3_64(&header[..24]);
        fits.then(|| SegmentHead { spool: long(&header[8..16]), after: long(&header[16..24]) })
    }
}

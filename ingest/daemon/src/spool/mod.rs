//! The spool: what was acknowledged, on disk, until it is in the store.
//!
//! A folder of segment files. Each begins with a header and holds frames, one a batch, numbered by `lsn` without
//! holes:
//!
//! ```text
//! segment  "DEMISPL1" | spool id | lsn before the first frame | check       (32 bytes)
//! frame    "DmFr" | body length | lsn | check of body | place in group | check of header   (32 bytes) | body
//! ```
//!
//! Numbers are little-endian, checks are xxh3-64. Rules:
//!
//! - A frame is acknowledged after its segment was synced (`fdatasync`), and the folder after a segment was made.
//!   Whatever waits is written and synced together (group commit).
//! - After an append that failed, the segment is cut back to its last acknowledged frame. If that fails too, or a
//!   sync failed (after which nobody knows what the disk holds), the segment is given up and a new one begins, whose
//!   header says after which frame: what the old one holds beyond that was never acknowledged and is void.
//! - Opening the spool cuts the last segment to its last whole frame. The place in the group tells which frames were
//!   acknowledged before, and a mark beside the segments tells of the last group (`mark.rs`). Damage to those is
//!   reported with their numbers, what cannot be read is kept in a file of its own, and the spool opens all the same.
//! - A segment is removed when all of it is in the store. The size of all of them together is bounded.

mod disk;
mod frame;
mod mark;
mod read;
mod recover;
#[cfg(test)]
mod tests;
mod write;

pub use disk::{Disk, Folder};
pub use frame::{Body, FrameError, MAX_BODY};
pub use read::{Frame, Reader};
pub use recover::{Aside, Damage, Recovered, inspect};
pub(crate) use write::identity;
pub use write::{Options, Readers, Releaser, Spool, Written};

/// Why a spool cannot be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// The disk refused.
    #[error("{name}: cannot {action}")]
    Io {
        /// The file in the spool's folder.
        name: String,
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The segments would be larger together than they may be.
    #[error("the spool is full: {bytes} bytes of {limit}")]
    Full {
        /// Bytes used.
        bytes: u64,
        /// Most there may be.
        limit: u64,
    },
    /// A frame that was acknowledged cannot be read back.
    #[error("{name}: frame {lsn} cannot be read back: {reason}")]
    Unreadable {
        /// The segment.
        name: String,
        /// The frame.
        lsn: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder is no spool, or of another version.
    #[error("{name}: {reason}")]
    NoSpool {
        /// The file that tells.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl SpoolError {
    pub(crate) fn io(name: &str, action: &'static str) -> impl FnOnce(std::io::Error) -> SpoolError {
        let name = name.to_owned();
        move |source| SpoolError::Io { name, action, source }
    }
}

//! What a monitor knows, beside the spool.

use demi_monitor::{Saved, Violation};
use serde::{Deserialize, Serialize};

use crate::spool::{Disk, SpoolError};

const FORMAT: &str = "demi-monitor/1";

/// What is kept of a monitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    format: String,
    /// The frames up to here are in it.
    pub(crate) lsn: u64,
    /// Sequence number of the last violation record.
    pub(crate) last_seq: u64,
    /// Alerts that were not delivered, with what is left to do, the oldest first.
    pub(crate) alerts: Vec<Alert>,
    pub(crate) saved: Saved,
}

/// A violation that is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alert {
    /// Sequence number of its record.
    pub(crate) seq: u64,
    /// The violation.
    pub(crate) violation: Told,
    /// What was done.
    #[serde(default)]
    pub(crate) done: Done,
}

/// A violation as it is kept and posted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) system: String,
    pub(crate) monitor: String,
    pub(crate) invariant: String,
    pub(crate) name: String,
    pub(crate) holds: String,
    pub(crate) of: String,
    pub(crate) event: String,
    pub(crate) affected: Vec<String>,
    pub(crate) told_at: Vec<String>,
    pub(crate) fingerprint: String,
    pub(crate) states: serde_json::Map<String, serde_json::Value>,
}

/// What was done about a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The frame with its record.
    pub(crate) recorded: Option<u64>,
    pub(crate) posted: bool,
    pub(crate) built: bool,
}

/// A step of what is done about a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Recorded(u64),
    Posted,
    Built,
}

impl Done {
    pub(crate) fn is_all(self) -> bool {
        self.recorded.is_some() && self.posted && self.built
    }

    pub(crate) fn set(&mut self, stage: Stage) {
        match stage {
            Stage::Recorded(lsn) => self.recorded = Some(lsn),
            Stage::Posted => self.posted = true,
            Stage::Built => self.built = true,
        }
    }
}

impl Told {
    pub(crate) fn new(violation: Violation, system: &str, monitor: &str) -> Told {
        Told {
            fingerprint: violation.fingerprint(),
            system: system.to_owned(),
            monitor: monitor.to_owned(),
            id: violation.id,
            invariant: violation.invariant,
            name: violation.name,
            holds: violation.holds,
            of: violation.of,
            event: violation.event,
            affected: violation.affected,
            told_at: violation.told_at,
            states: violation.states,
        }
    }
}

fn file(name: &str) -> String {
    format!("monitor-{}.json.zst", demi_common::path_name(name))
}

impl Checkpoint {
    pub(crate) fn new(lsn: u64) -> Checkpoint {
        Checkpoint { format: FORMAT.to_owned(), lsn, ..Checkpoint::default() }
    }

    /// Reads a monitor's checkpoint; none is there before its first start.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(crate) fn read<D: Disk + ?Sized>(disk: &D, name: &str) -> Result<Option<Checkpoint>, SpoolError> {
        let file = file(name);
        let io = |source| SpoolError::Io { name: file.clone(), action: "read this file", source };
        if !disk.list().map_err(io)?.contains(&file) {
            return Ok(None);
        }
        let mut bytes = vec![0; disk.len(&file).map_err(io)? as usize];
        let got = disk.read_at(&file, 0, &mut bytes).map_err(io)?;
        let damaged = |reason: String| SpoolError::NoSpool { name: file.clone(), reason };
        let text = zstd::decode_all(&bytes[..got]).map_err(|e| damaged(format!("it is damaged: {e}")))?;
        let read: Checkpoint =
            serde_json::from_slice(&text).map_err(|e| damaged(format!("it is damaged: {e}")))?;
        match read.format == FORMAT {
            true => Ok(Some(read)),
            false => Err(damaged(format!("it is '{}', this version reads '{FORMAT}'", read.format))),
        }
    }

    /// Replaces it, durably.
    ///
    /// # Errors
    /// What the disk says; the old one stays.
    pub(crate) fn write<D: Disk + ?Sized>(&self, disk: &D, name: &str) -> Result<(), SpoolError> {
        let file = file(name);
        // Keys are text and values are JSON: this can always be written.
        let text = serde_json::to_vec(self).unwrap_or_default();
        let io = |source| SpoolError::Io { name: file.clone(), action: "write this file", source };
        let bytes = zstd::encode_all(text.as_slice(), 1).map_err(io)?;
        disk.replace(&file, &bytes).map_err(io)
    }
}

//! What a monitor knows, beside the spool.

use std::collections::BTreeMap;
use std::io::Write as _;

use demi_monitor::{MonitorState, Violation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spool::{Disk, SpoolError};

const FORMAT: &str = "demi-monitor/2";
/// The incarnation of the first that writes violations into a store; logs that tell violations of their own have those before it.
pub(crate) const FIRST_INCARNATION: u32 = 1;
/// Longest text of a checkpoint, in bytes.
const LONGEST: u64 = 4 << 30;

/// What is kept of a monitor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    format: String,
    /// The system that is watched.
    pub(crate) system: String,
    /// The frames up to here are in it.
    pub(crate) lsn: u64,
    /// The incarnation under which violations are recorded, and the sequence number of the last.
    pub(crate) incarnation: u32,
    pub(crate) last_seq: u64,
    /// Violations that wait to be told with others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<Told>,
    /// Alerts that were not delivered, with what is left to do, the oldest first.
    pub(crate) alerts: Vec<Alert>,
    /// By invariant: when it was last told, in seconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) last_told: BTreeMap<String, u64>,
    pub(crate) saved: MonitorState,
}

/// Violations of one invariant that are told together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Alert {
    /// Incarnation and sequence number of its record.
    pub(crate) incarnation: u32,
    pub(crate) seq: u64,
    /// The violations.
    pub(crate) violation: Told,
    /// What was done.
    #[serde(default)]
    pub(crate) done: Done,
}

/// Violations of one invariant as they are kept and posted: the first, and more that came with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// The id of the first violation.
    pub(crate) id: String,
    pub(crate) system: String,
    pub(crate) monitor: String,
    pub(crate) invariant: String,
    pub(crate) name: String,
    pub(crate) holds: String,
    #[serde(flatten)]
    pub(crate) first: Group,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) more: Vec<Group>,
}

/// A row or group that fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) of: String,
    pub(crate) event: String,
    pub(crate) affected: Vec<String>,
    pub(crate) told_at: Vec<String>,
    pub(crate) fingerprint: String,
    pub(crate) states: Map<String, Value>,
}

/// What was done about an alert.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The frame with its record.
    pub(crate) recorded: Option<u64>,
    pub(crate) posted: bool,
    /// Whether the execution is built, or was given up.
    pub(crate) built: bool,
    /// How often that failed, and why the last time.
    #[serde(default)]
    pub(crate) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// A step of what is done about an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Recorded(u64),
    Posted,
    /// An execution could not be built, for this reason.
    BuildFailed(String),
    Built,
}

impl Alert {
    /// By what its record is known.
    pub(crate) fn place(&self) -> (u32, u64) {
        (self.incarnation, self.seq)
    }
}

impl Done {
    pub(crate) fn is_all(&self) -> bool {
        self.recorded.is_some() && self.posted && self.built
    }

    pub(crate) fn set(&mut self, stage: &Stage) {
        match stage {
            Stage::Recorded(lsn) => self.recorded = Some(*lsn),
            Stage::Posted => self.posted = true,
            Stage::BuildFailed(reason) => {
                self.attempts = self.attempts.saturating_add(1);
                self.reason = Some(reason.clone());
            }
            Stage::Built => self.built = true,
        }
    }
}

impl Told {
    pub(crate) fn new(violation: Violation, system: &str, monitor: &str) -> Told {
        Told {
            system: system.to_owned(),
            monitor: monitor.to_owned(),
            first: Group {
                fingerprint: violation.fingerprint(),
                of: violation.of,
                event: violation.event,
                affected: violation.affected,
                told_at: violation.told_at,
                states: violation.states,
            },
            id: violation.id,
            invariant: violation.invariant,
            name: violation.name,
            holds: violation.holds,
            more: Vec::new(),
        }
    }

    /// Takes out the rows and groups of actors; whether any are left.
    fn forget(&mut self, whose: &dyn Fn(&str) -> bool) -> bool {
        let goes = |group: &Group| group.affected.iter().any(|actor| whose(actor));
        self.more.retain(|group| !goes(group));
        if !goes(&self.first) {
            return true;
        }
        match self.more.is_empty() {
            true => false,
            false => {
                self.first = self.more.remove(0);
                true
            }
        }
    }

    /// The rows and groups that it tells of.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

/// With what the names of checkpoints, and of those that were set aside, begin.
const PREFIX: &str = "monitor-";

fn file(name: &str) -> String {
    format!("{PREFIX}{}.json.zst", demi_common::path_name(name))
}

/// Whether bytes are what a monitor keeps beside the spool, or why not. For tests of what reads foreign bytes.
///
/// # Errors
/// Why they are not.
pub fn is_checkpoint(bytes: &[u8]) -> Result<(), String> {
    Checkpoint::parse(bytes).map(|_| ())
}

/// What is there of a monitor.
pub(crate) enum Known {
    /// It never began.
    Nothing,
    Checkpoint(Box<Checkpoint>),
    /// What is there cannot be read: why.
    Damaged(String),
}

impl Checkpoint {
    /// That of a monitor that begins behind a frame.
    pub(crate) fn new(system: &str, lsn: u64, incarnation: u32) -> Checkpoint {
        let (format, system) = (FORMAT.to_owned(), system.to_owned());
        Checkpoint { format, system, lsn, incarnation, ..Checkpoint::default() }
    }

    /// Takes out what actors told, and what is to be told of them.
    fn forget(&mut self, whose: &dyn Fn(&str) -> bool) {
        self.waiting.retain_mut(|told| told.forget(whose));
        self.alerts.retain_mut(|alert| alert.violation.forget(whose));
        self.saved.forget(whose);
    }

    /// Takes what actors of a system told out of the checkpoints in a folder that no daemon uses. The files that cannot be read, and may
    /// hold it.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn forget_all<D: Disk + ?Sized>(
        disk: &D,
        system: &str,
        whose: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, SpoolError> {
        let io = |source| SpoolError::Io { name: ".".into(), action: "list this folder", source };
        let mut unread = Vec::new();
        let names = disk.list().map_err(io)?;
        for file in names.into_iter().filter(|name| name.starts_with(PREFIX) && !name.ends_with(".new")) {
            let io = |source| SpoolError::Io { name: file.clone(), action: "read this file", source };
            let mut bytes = vec![0; disk.len(&file).map_err(io)? as usize];
            let got = disk.read_at(&file, 0, &mut bytes).map_err(io)?;
            match Checkpoint::parse(&bytes[..got]) {
                Ok(mut known) if known.system == system => {
                    known.forget(whose);
                    known.write_as(disk, &file)?;
                }
                Ok(_) => {}
                Err(_) => unread.push(file),
            }
        }
        unread.sort_unstable();
        Ok(unread)
    }

    /// Reads a monitor's checkpoint.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn read<D: Disk + ?Sized>(disk: &D, name: &str) -> Result<Known, SpoolError> {
        let file = file(name);
        let io = |source| SpoolError::Io { name: file.clone(), action: "read this file", source };
        if !disk.list().map_err(io)?.contains(&file) {
            return Ok(Known::Nothing);
        }
        let mut bytes = vec![0; disk.len(&file).map_err(io)? as usize];
        let got = disk.read_at(&file, 0, &mut bytes).map_err(io)?;
        Ok(match Checkpoint::parse(&bytes[..got]) {
            Ok(read) => Known::Checkpoint(Box::new(read)),
            Err(reason) => Known::Damaged(reason),
        })
    }

    /// Reads the bytes of a checkpoint.
    ///
    /// # Errors
    /// Why they are none.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Checkpoint, String> {
        let damaged = |error: &dyn std::fmt::Display| format!("it is damaged: {error}");
        let decoder = zstd::Decoder::new(bytes).map_err(|e| damaged(&e))?;
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(decoder, LONGEST), &mut text)
            .map_err(|e| damaged(&e))?;
        let format = |text: &[u8]| {
            let value: Value = serde_json::from_slice(text).ok()?;
            value.get("format").and_then(Value::as_str).filter(|format| *format != FORMAT).map(str::to_owned)
        };
        match serde_json::from_slice::<Checkpoint>(&text) {
            Ok(read) if read.format == FORMAT => Ok(read),
            Ok(read) => Err(format!("it is '{}', this version reads '{FORMAT}'", read.format)),
            Err(error) => Err(match format(&text) {
                Some(other) => format!("it is '{other}', this version reads '{FORMAT}'"),
                None => damaged(&error),
            }),
        }
    }

    /// Keeps a file that cannot be read beside a new one; its new name.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn set_aside<D: Disk + ?Sized>(disk: &D, name: &str) -> Result<String, SpoolError> {
        let file = file(name);
        let io = |source| SpoolError::Io { name: file.clone(), action: "set aside this file", source };
        let names = disk.list().map_err(io)?;
        let aside = (1_u64..).map(|n| format!("{file}.damaged-{n}")).find(|aside| !names.contains(aside));
        let aside = aside.unwrap_or_default();
        let mut bytes = vec![0; disk.len(&file).map_err(io)? as usize];
        let got = disk.read_at(&file, 0, &mut bytes).map_err(io)?;
        disk.replace(&aside, &bytes[..got]).map_err(io)?;
        disk.remove(&file).map_err(io)?;
        disk.sync_names().map_err(io)?;
        Ok(aside)
    }

    /// Replaces it, durably.
    ///
    /// # Errors
    /// What the disk says; the old one stays.
    pub(crate) fn write<D: Disk + ?Sized>(&self, disk: &D, name: &str) -> Result<(), SpoolError> {
        self.write_as(disk, &file(name))
    }

    fn write_as<D: Disk + ?Sized>(&self, disk: &D, file: &str) -> Result<(), SpoolError> {
        let io = |source| SpoolError::Io { name: file.to_owned(), action: "write this file", source };
        let mut packed = zstd::Encoder::new(Vec::new(), 1).map_err(io)?;
        // A bit that changed is not taken for another number.
        packed.include_checksum(true).map_err(io)?;
        // Piece by piece: the whole text would be large.
        let mut buffered = std::io::BufWriter::with_capacity(1 << 16, &mut packed);
        serde_json::to_writer(&mut buffered, self).map_err(|e| io(e.into()))?;
        buffered.flush().map_err(io)?;
        drop(buffered);
        let bytes = packed.finish().map_err(io)?;
        disk.replace(file, &bytes).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Folder;

    #[test]
    fn no_bit_changes_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::at(folder.path());
        let mut whole = Checkpoint::new("s", 7, 1);
        whole.last_told.insert("i1".into(), 1_700_000_000);
        whole.write(&disk, "m").unwrap();
        let bytes = std::fs::read(folder.path().join(file("m"))).unwrap();
        assert_eq!(Checkpoint::parse(&bytes).unwrap(), whole);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Checkpoint::parse(&flipped).map_or(true, |read| read == whole), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Checkpoint::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
        let earlier = zstd::encode_all(&br#"{"format":"demi-monitor/1","lsn":7}"#[..], 1).unwrap();
        assert!(Checkpoint::parse(&earlier).unwrap_err().contains("'demi-monitor/1'"));
    }

    #[test]
    fn what_is_forgotten_is_in_no_alert() {
        let group = |actor: &str| Group {
            of: format!("actor = '{actor}'"),
            event: format!("{actor}/1"),
            affected: vec![actor.to_owned()],
            told_at: Vec::new(),
            fingerprint: String::new(),
            states: Map::new(),
        };
        let told = |first: &str, more: &[&str]| Told {
            id: "1".into(),
            system: "s".into(),
            monitor: "m".into(),
            invariant: "i".into(),
            name: "i".into(),
            holds: "x > 0".into(),
            first: group(first),
            more: more.iter().map(|actor| group(actor)).collect(),
        };
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::at(folder.path());
        let mut known = Checkpoint::new("s", 7, 1);
        known.waiting = vec![told("ada", &[]), told("bob", &[])];
        for (seq, violation) in
            [(1, told("bob", &["ada"])), (2, told("ada", &["eve"])), (3, told("ada", &[]))]
        {
            known.alerts.push(Alert { incarnation: 1, seq, violation, done: Done::default() });
        }
        known.write(&disk, "m").unwrap();
        std::fs::write(folder.path().join("monitor-n.json.zst.damaged-1"), "ada").unwrap();
        let unread = Checkpoint::forget_all(&disk, "s", &|actor| actor == "ada").unwrap();
        assert_eq!(unread, ["monitor-n.json.zst.damaged-1"]);
        let Known::Checkpoint(left) = Checkpoint::read(&disk, "m").unwrap() else { panic!("it is gone") };
        assert_eq!(left.waiting, [told("bob", &[])]);
        let alerts: Vec<_> = left.alerts.iter().map(|alert| (alert.seq, alert.violation.clone())).collect();
        assert_eq!(alerts, [(1, told("bob", &[])), (2, told("eve", &[]))]);
        // Of another system nothing is forgotten.
        Checkpoint::forget_all(&disk, "t", &|_| true).unwrap();
        let Known::Checkpoint(again) = Checkpoint::read(&disk, "m").unwrap() else { panic!("it is gone") };
        assert_eq!(again, left);
    }
}

//! Sections of the configuration file that are the same for all sources.

use std::path::PathBuf;

use chrono::{Days, NaiveDate};
use demi_store::fs::PRIVATE;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Permissions of a folder: octal digits in quotation marks, such as `"0750"`. The owner always has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderMode(u32);

impl FolderMode {
    /// The bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl Default for FolderMode {
    fn default() -> Self {
        FolderMode(PRIVATE)
    }
}

impl<'de> Deserialize<'de> for FolderMode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bits = u32::from_str_radix(&text, 8).ok();
        bits.filter(|bits| bits & !0o777 == 0 && bits & PRIVATE == PRIVATE).map(FolderMode).ok_or_else(|| {
            D::Error::custom(format!("mode must be octal digits from \"0700\" to \"0777\", got '{text}'"))
        })
    }
}

/// How long events are kept: whole days, as `"30d"` or `"12w"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep(u32);

impl Keep {
    /// The first day (UTC) whose events are kept on a day.
    #[must_use]
    pub fn since(self, today: NaiveDate) -> NaiveDate {
        today.checked_sub_days(Days::new(u64::from(self.0))).unwrap_or(NaiveDate::MIN)
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (number, unit) = text.split_at(text.len() - usize::from(text.ends_with(['d', 'w'])));
        let days = match (number.parse::<u32>(), unit) {
            (Ok(days @ 1..), "d") => Some(days),
            (Ok(weeks @ 1..), "w") => weeks.checked_mul(7),
            _ => None,
        };
        let wrong = || format!("keep must be days or weeks, as \"30d\" or \"12w\", got '{text}'");
        days.map(Keep).ok_or_else(|| D::Error::custom(wrong()))
    }
}

/// `[systems.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SystemConfig {
    /// How long its events are kept. By default as `[store]` says.
    pub keep: Option<Keep>,
}

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// Directory of the event store, or its address on object storage; made if it is not there.
    pub dir: PathBuf,
    /// Permissions of the folder if it is made. Default `"0700"`: what was logged is nobody else's.
    #[serde(default)]
    pub mode: FolderMode,
    /// Events after which a commit is made. Default 1 000 000.
    #[serde(default = "seal_rows")]
    pub seal_rows: u64,
    /// Bytes of lines after which a commit is made. Default 128 MiB.
    #[serde(default = "seal_bytes")]
    pub seal_bytes: u64,
    /// Age of the oldest line after which a commit is made, in milliseconds. Default 5000.
    #[serde(default = "seal_millis")]
    pub seal_millis: u64,
    /// Small files of one partition after which they are merged. Default 12.
    #[serde(default = "compact_files")]
    pub compact_files: usize,
    /// Size below which a file is small, in bytes. Default 16 MiB.
    #[serde(default = "small_file_bytes")]
    pub small_file_bytes: u64,
    /// How long files that are no longer part of the tables are kept for readers, in hours. Default 168.
    #[serde(default = "keep_removed_hours")]
    pub keep_removed_hours: u64,
    /// How long events are kept, as `"30d"`: those of earlier days (UTC, by their own time) are deleted, once an hour. By default for ever. Events without a
    /// time stay.
    #[serde(default)]
    pub keep: Option<Keep>,
    /// Bytes that are held beside the tables for commits to a full disk; 0 holds none. Default 64 MiB.
    #[serde(default = "reserve_bytes")]
    pub reserve_bytes: u64,
}

fn reserve_bytes() -> u64 {
    64 << 20
}

fn seal_rows() -> u64 {
    1_000_000
}

fn seal_bytes() -> u64 {
    128 << 20
}

fn seal_millis() -> u64 {
    5000
}

fn compact_files() -> usize {
    12
}

fn small_file_bytes() -> u64 {
    16 << 20
}

fn keep_removed_hours() -> u64 {
    168
}

/// `[spool]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpoolConfig {
    /// Directory of the spool, on a disk that keeps what it was told to sync; made if it is not there.
    pub dir: PathBuf,
    /// Permissions of the folder if it is made. Default `"0700"`.
    #[serde(default)]
    pub mode: FolderMode,
    /// Most bytes it may take. When it is full, sources wait. Default 4 GiB; at least four times the largest batch
    /// (`body_bytes`, or 4 MiB of a file) and a segment.
    #[serde(default = "max_bytes")]
    pub max_bytes: u64,
    /// Bytes after which a new segment begins. Default 64 MiB, at most a quarter of `max_bytes`.
    #[serde(default = "segment_bytes")]
    pub segment_bytes: u64,
}

fn max_bytes() -> u64 {
    4 << 30
}

fn segment_bytes() -> u64 {
    64 << 20
}

/// `[daemon]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonConfig {
    /// How long a stop may take to bring what is spooled into the store, in seconds. What is not is taken at the next
    /// start. Default 20.
    pub drain_secs: u64,
    /// What is logged: `error`, `warn`, `info`, `debug` or `trace`, or rules a module
    /// (`info,demi_daemon=debug`). Default `info`.
    pub log: String,
    /// Log lines as JSON. Default true.
    pub log_json: bool,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        DaemonConfig { drain_secs: 20, log: "info".to_owned(), log_json: true }
    }
}

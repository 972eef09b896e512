//! Following files: found by patterns, read from where they were left, whatever happens to their names.
//!
//! - Rotation by renaming: the file is followed under its new name while it is open, and found again by its content
//!   after a restart. What is written to it after the renaming is read.
//! - Rotation by copying and truncating: a file that no longer holds what was read begins anew; the copy, if it
//!   matches the patterns, is known by its content and read from where the original was left.
//! - Packed files (gzip, zstd) are read too, from where their plain file was left if one is known.
//! - Whatever is in doubt is read from the beginning: records are known by key, so nothing is stored twice.
//!
//! Lines of another format are mapped before they are handed over ([`mapped`]). Where positions are counted, files are read
//! one after the other, the one that was changed longest ago first.
//!
//! A last line without newline waits until it is finished. If the file does not change for a while, it is taken if
//! it is a whole record; of a file that is gone it is taken as it is.

mod copies;
mod follow;
mod mapped;
mod nuls;
mod order;
mod packed;
mod plan;
mod read;
mod scan;
mod state;

use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::{Context, Running, Source, SourceError};
use demi_formats::mapping::Wrapper;
use demi_formats::read::names;
use follow::Follower;
use mapped::Mapped;
pub(crate) use read::CHUNK;

/// `[sources.NAME]` with `type = "files"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Patterns of the files: `*`, `?`, `[…]` and `**` for folders. Let them match rotated files too
    /// (`/var/log/app.log*`).
    paths: Vec<String>,
    /// Patterns of files that are left alone. Default: none.
    #[serde(default)]
    exclude: Vec<String>,
    /// Time between two looks at files that do not change, in milliseconds. Default 200.
    #[serde(default = "default_poll")]
    poll_millis: u64,
    /// Time between two looks for new files, in milliseconds. Default 1000.
    #[serde(default = "default_scan")]
    scan_millis: u64,
    /// How long the position of a file that is gone is kept, in hours: packed later, it is known again. Default 48.
    #[serde(default = "default_forget")]
    forget_hours: u64,
    /// Mapping of the lines, by name or file. Default: none, they are event records.
    #[serde(default)]
    mapping: Option<String>,
    /// What a container runtime or a system logger wrote around each line: `cri`, `docker`, `compose`, `kubectl`, `journal` or `syslog`. Default: what the
    /// mapping says.
    #[serde(default)]
    wrapper: Option<Wrapper>,
    /// How long a file that is gone is kept open after its last change, in seconds. Default 10.
    #[serde(default = "default_gone")]
    gone_secs: u64,
}

impl Source for Config {
    fn check(&self) -> Result<(), SourceError> {
        if self.paths.is_empty() {
            return Err(SourceError::setting("paths", "give at least one pattern"));
        }
        for (key, patterns) in [("paths", &self.paths), ("exclude", &self.exclude)] {
            for pattern in patterns {
                let refused = |e| SourceError::setting(key, format!("'{pattern}': {e}"));
                glob::Pattern::new(pattern).map_err(refused)?;
            }
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), SourceError> {
        Mapped::of(self.mapping.as_deref(), self.wrapper).map(drop)
    }

    fn would_read(&self, paths: &[PathBuf]) -> Option<PathBuf> {
        let here = std::env::current_dir().unwrap_or_default();
        let exclude: Vec<glob::Pattern> =
            self.exclude.iter().filter_map(|pattern| glob::Pattern::new(pattern).ok()).collect();
        let excluded = |path: &Path| exclude.iter().any(|pattern| names::matches(pattern, path));
        let is_read = |path: &Path| !excluded(path) && !path.strip_prefix(&here).is_ok_and(excluded);
        let meant = |path: &&PathBuf| {
            self.paths.iter().any(|pattern| names::would_find(pattern, &here, path)) && is_read(path)
        };
        paths.iter().find(meant).cloned().or_else(|| {
            let led = self.paths.iter().flat_map(|pattern| names::would_lead_to(pattern, paths));
            led.into_iter().find(|(found, _)| is_read(found)).map(|(_, path)| path)
        })
    }

    fn reads(&self) -> Vec<PathBuf> {
        scan::expand(self)
    }

    fn start(&self, context: Context) -> BoxFuture<'static, Result<Running, SourceError>> {
        let config = self.clone();
        Box::pin(async move {
            config.check()?;
            let mapped = Mapped::of(config.mapping.as_deref(), config.wrapper)?;
            let handle = Handle::current();
            // File systems block; a thread of its own reads, and waits for the spool as a task would.
            let task = spawn_blocking(move || Follower::new(config, mapped, context, handle).follow());
            Ok(Running { addresses: Vec::new(), task })
        })
    }
}

fn default_poll() -> u64 {
    200
}

fn default_scan() -> u64 {
    1000
}

fn default_forget() -> u64 {
    48
}

fn default_gone() -> u64 {
    10
}

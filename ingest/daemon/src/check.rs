//! What can be refused before the daemon starts.

use std::path::PathBuf;

use super::config::Config;
use super::monitors::MonitorError;
use super::own;
use super::run::log_filter;
use super::serve::ServeError;
use super::sources::SourceError;
use demi_store::Store;

/// Why a configuration that can be read cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The rules of the log cannot be read.
    #[error("{0}")]
    Log(String),
    /// A source would read what the daemon writes.
    #[error("[sources.{source_name}] paths: this matches {}, which the daemon writes itself: leave it out with exclude", .path.display())]
    Itself {
        /// The source.
        source_name: String,
        /// Something that it would read.
        path: PathBuf,
    },
    /// The disk of the store is too small.
    #[error(
        "[store] reserve_bytes: the disk of {} has {disk} bytes, fewer than the {reserve} that are held for commits: nothing would be taken in",
        .dir.display()
    )]
    SmallDisk {
        /// The store's folder.
        dir: PathBuf,
        /// Bytes of its disk.
        disk: u64,
        /// Bytes to be held.
        reserve: u64,
    },
    /// A source, or the admin listener.
    #[error(transparent)]
    Source(#[from] ServeError),
}

/// Refuses what serving would refuse, as far as it can be told without listening and without writing spool and store:
/// certificates, keys, tokens, addresses that are open to others, mappings, rules of the log, sources that would read what the daemon writes, a
/// disk that is too small.
///
/// # Errors
/// The first thing that cannot be used.
pub fn check(config: &Config) -> Result<(), CheckError> {
    log_filter(&config.daemon).map_err(CheckError::Log)?;
    let failed = |name: &str, source: SourceError| ServeError::Source { name: name.to_owned(), source };
    for (name, source) in &config.sources {
        source.kind.source().check_files().map_err(|source| failed(name, source))?;
    }
    for (name, monitor) in &config.monitors {
        let failed = |reason| ServeError::Monitor { name: name.clone(), source: MonitorError::File(reason) };
        monitor.check_files().map_err(failed)?;
    }
    if let Some((source_name, path)) = own::read_by(config, &[]) {
        return Err(CheckError::Itself { source_name, path });
    }
    Store::check_place(&config.store.dir).map_err(ServeError::from)?;
    let (dir, reserve) = (&config.store.dir, config.store.reserve_bytes);
    if let Some(disk) = own::disk_bytes(dir).filter(|disk| *disk < reserve) {
        return Err(CheckError::SmallDisk { dir: dir.clone(), disk, reserve });
    }
    if let Some(listen) = &config.admin {
        listen.check().map_err(|source| ServeError::Admin { source })?;
    }
    Ok(())
}

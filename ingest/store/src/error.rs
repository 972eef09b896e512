//! What can go wrong while reading logs and keeping the store.

use std::io;
use std::path::PathBuf;

use demi_formats::ReadError;

#[cfg(feature = "delta")]
use deltalake_core::DeltaTableError;

/// Why a store could not be opened, read or written, or a source could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A mapping cannot be used.
    #[error(transparent)]
    Mapping(#[from] demi_formats::mapping::MappingError),
    /// A source cannot be found or read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A mapping counts sequence numbers, and what it counted is stored already with other content.
    #[error(
        "{source_name}:{line}: the log tells no sequence numbers and they were counted from the first line of this load, but \
         event {event} of system '{system}' is stored already with other content; load all files of an execution in one \
         load and in order, into a system of its own, or let the mapping take 'seq' from the log"
    )]
    Counted {
        /// The file or stream.
        source_name: String,
        /// The record's line.
        line: u64,
        /// What it would have been called.
        event: String,
        /// The system loaded into.
        system: String,
    },
    /// A name that cannot be a system's.
    #[error("system name {name:?} cannot be used: {why}")]
    SystemName {
        /// The name.
        name: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// There is no store in a directory.
    #[error("{dir}: there is no event store here (make one with: demi-lineage ingest load --store {dir} …)")]
    NoStore {
        /// Where it was looked for.
        dir: String,
    },
    /// A backup cannot be made or read.
    #[error("{}: {reason}", path.display())]
    Backup {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An address of object storage cannot be used.
    #[error("{url}: {why}")]
    Address {
        /// The address.
        url: String,
        /// Why not.
        why: String,
    },
    /// Object storage did not do what was asked of it.
    #[cfg(feature = "delta")]
    #[error("{url}: cannot {action}")]
    Remote {
        /// The address of the store.
        url: String,
        /// What was attempted.
        action: &'static str,
        /// What it said.
        source: Box<object_store::Error>,
    },
    /// A file is where the store's folder should be.
    #[error("{dir} is a file, and a store is a folder: name another place, or move the file away")]
    NoFolder {
        /// The file.
        dir: String,
    },
    /// The store holds nothing of a system.
    #[error("{dir}: the store has no events of system '{system}'; it has {}", list(.known))]
    UnknownSystem {
        /// Where the store is.
        dir: String,
        /// The system asked for.
        system: String,
        /// The systems there are, sorted.
        known: Vec<String>,
    },
    /// The store's tables are of another version.
    #[error("{dir}: the tables are '{found}', this version reads and writes '{expected}'")]
    WrongVersion {
        /// Where the store is.
        dir: String,
        /// What the tables say they are.
        found: String,
        /// What they should be.
        expected: &'static str,
    },
    /// Another process is loading into the same system.
    #[error(
        "{dir}: another load or a daemon is writing system '{system}': try again when the load is done, or stop the daemon"
    )]
    Busy {
        /// Where the store is.
        dir: String,
        /// The system.
        system: String,
    },
    /// A table could not be opened, read or committed.
    #[cfg(feature = "delta")]
    #[error("{dir}: cannot {action}")]
    Table {
        /// Where the store is.
        dir: String,
        /// What was attempted.
        action: &'static str,
        /// What the table library said.
        source: Box<DeltaTableError>,
    },
    /// A commit of a table was cut off before it was on the disk.
    #[error(
        "{}: this commit of the store is empty or torn, as a power cut may leave it; what it added would be missing. \
         Put back a copy of the file, or move it and all later ones away and load again what they added", .path.display()
    )]
    TornCommit {
        /// The file.
        path: PathBuf,
    },
    /// A commit of a table is not as it was written.
    #[error("{}: {}; put back a copy of it, or move it and all later ones away and load again what they added", .path.display(), demi_common::sealed::DAMAGED)]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A file of the store could not be read.
    #[error("{}: cannot read this file of the store", .path.display())]
    DataFile {
        /// The file.
        path: PathBuf,
        /// What the Parquet library said.
        source: Box<parquet::errors::ParquetError>,
    },
    /// Columns could not be put together; a defect of this program or of a file in the store.
    #[error("columns do not fit together")]
    Columns(#[from] arrow_schema::ArrowError),
    /// A file beside the tables could not be used.
    #[error("{}: cannot {action}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The store says it has an event, and then does not.
    #[error(
        "{dir}: event {event} was there when the load began and is gone: did something rewrite the store?"
    )]
    Vanished {
        /// Where the store is.
        dir: String,
        /// The event's name.
        event: String,
    },
    /// The load was told to stop between two commits.
    #[error("stopped after {commits} commits; run the load again to finish it")]
    Stopped {
        /// Commits made.
        commits: u64,
    },
    /// The thread that reads the sources ended without saying why.
    #[error("the reader ended unexpectedly")]
    ReaderLost,
    /// The thread that writes a table ended without saying why.
    #[error("the writer ended unexpectedly")]
    WriterLost,
}

/// At most ten names, and how many more there are.
fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none yet".to_owned();
    }
    let mut text = names.iter().take(10).map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    if names.len() > 10 {
        text.push_str(&format!(" and {} more", names.len() - 10));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_system_lists_the_known_ones() {
        let known: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
        let error = StoreError::UnknownSystem { dir: "d".into(), system: "x".into(), known };
        let text = error.to_string();
        assert!(text.contains("'s0', 's1'") && text.contains("and 2 more"), "{text}");
        let error = StoreError::UnknownSystem { dir: "d".into(), system: "x".into(), known: vec![] };
        assert!(error.to_string().contains("none yet"));
    }
}

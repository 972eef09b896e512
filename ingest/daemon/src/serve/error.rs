//! Why the daemon cannot run.

use crate::incidents::ServiceError;
use crate::monitors::MonitorError;
use crate::net::security::SecurityError;
use crate::sources::SourceError;
use crate::spool::SpoolError;
use demi_store::StoreError;

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The spool cannot be opened.
    #[error("spool {dir}: {source}")]
    Spool {
        /// Its folder.
        dir: String,
        /// What is wrong.
        source: SpoolError,
    },
    /// The frames of the spool go to another store than one that was restored.
    #[error(
        "spool {dir}: its frames go to another store ({other}), and the restored one is {own}; if the daemon made that other store while this one was gone, \
         --instead gives it up for this one"
    )]
    OtherStore {
        /// The folder of the spool.
        dir: String,
        /// The identity of the store that they go to.
        other: String,
        /// That of the restored one.
        own: String,
    },
    /// A folder cannot be made or used.
    #[error("cannot make the folder {}", .path.display())]
    Folder {
        /// The folder.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another daemon uses the spool.
    #[error("spool {dir}: another daemon is using it")]
    Busy {
        /// Its folder.
        dir: String,
    },
    /// A source cannot start.
    #[error("[sources.{name}] {source}")]
    Source {
        /// Its name.
        name: String,
        /// What is wrong.
        source: SourceError,
    },
    /// A monitor cannot start.
    #[error("[monitors.{name}] {source}")]
    Monitor {
        /// Its name.
        name: String,
        /// Why.
        source: MonitorError,
    },
    /// The admin listener cannot start.
    #[error("[admin] {source}")]
    Admin {
        /// What is wrong.
        source: SecurityError,
    },
    /// The incident service cannot start.
    #[error("[incidents] {source}")]
    Incidents {
        /// What is wrong.
        source: ServiceError,
    },
    /// A source would read what the daemon writes.
    #[error("[sources.{name}] paths: this matches {}, which the daemon writes itself: leave it out with exclude", .path.display())]
    Itself {
        /// The source.
        name: String,
        /// Something that it would read.
        path: std::path::PathBuf,
    },
    /// A part of the daemon failed again and again.
    #[error("the task '{task}' failed {failures} times in a row: {reason}; what was acknowledged is on disk")]
    GivenUp {
        /// The task.
        task: String,
        /// How often.
        failures: u32,
        /// Why, the last time.
        reason: String,
    },
    /// The system refused a thread or a runtime.
    #[error("cannot start")]
    Start(#[from] std::io::Error),
}

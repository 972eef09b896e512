//! `demi-lineage ingest`: put logs into the event store.

use clap::Subcommand;

#[cfg(feature = "store")]
use super::ingest_backup::{self, BackupArgs, RestoreArgs};
#[cfg(feature = "daemon")]
use super::ingest_daemon;
#[cfg(feature = "store")]
use super::ingest_delete::{self, DeleteArgs};
#[cfg(feature = "store")]
use super::ingest_load::{self, LoadArgs};
#[cfg(feature = "store")]
use super::ingest_store::{self, RequeueArgs, StatusArgs};
#[cfg(not(feature = "daemon"))]
use super::ingest_without_daemon as ingest_daemon;
#[cfg(not(feature = "store"))]
use super::ingest_without_store::{
    self as ingest_backup, self as ingest_delete, self as ingest_load, self as ingest_store, BackupArgs,
    DeleteArgs, LoadArgs, RequeueArgs, RestoreArgs, StatusArgs,
};
use super::{Outcome, ingest_parse};
use demi_commands::ui::Ui;

/// What to do with logs.
#[derive(Subcommand)]
pub enum IngestCommand {
    /// Load event records from files, folders, patterns or standard input.
    ///
    /// Records are JSON objects, one per line; plain, gzip or zstd. Loading the same records again adds nothing. Lines that are not records go to the
    /// store's quarantine table with the reason; they do not stop the load. Logs of other formats are loaded through a mapping.
    Load(LoadArgs),
    /// Run the ingest daemon: accept events from files, connections and requests until it is stopped.
    ///
    /// When it is ready, it prints one line `NAME ADDRESS` for each listener and then `ready` to standard output; the log goes to standard error.
    /// SIGTERM stops it; SIGHUP makes it reload certificates, tokens and invariants.
    Serve(ingest_daemon::ConfigArgs),
    /// Check a configuration file of the daemon.
    Validate(ingest_daemon::ConfigArgs),
    /// Show how complete the logs are: events, gaps and duplicates of every actor in a store.
    Status(StatusArgs),
    /// Compare the spool, the saved positions and the store of a daemon that is not running: would a restart lose anything?
    ///
    /// Exit status 0 if nothing is lost, 1 if something is.
    Verify(ingest_daemon::VerifyArgs),
    /// Read quarantined lines again after the mapping was corrected, and move those that are events now.
    Requeue(RequeueArgs),
    /// Delete events for good: those of an actor, or those before a day.
    ///
    /// Deleted events do not count as missing, and reading the log again does not bring them back. No daemon may be writing to the system.
    Delete(DeleteArgs),
    /// Copy a store as it is at one moment; a daemon may be writing into it.
    ///
    /// The backup is a store of its own, and what is read of the store is compared with its digests. A later backup into the same folder copies what is new.
    Backup(BackupArgs),
    /// Make a store of a backup, and tell the spools of its daemons.
    ///
    /// A spool has removed what was in the store. Frames that it still has are taken again; where some are gone, files are read again from where they
    /// stood at the backup, and what came by a connection is named. What is in the store already is not added twice.
    Restore(RestoreArgs),
    /// Show what a mapping makes of each line of a log, and store nothing.
    Parse(ingest_parse::ParseArgs),
    /// List the mappings that come with the program, or print one.
    Mappings(ingest_parse::MappingsArgs),
}

/// Runs the command.
pub fn run(command: IngestCommand, ui: &Ui) -> Outcome {
    match command {
        IngestCommand::Load(args) => ingest_load::load(&args, ui),
        IngestCommand::Serve(args) => ingest_daemon::serve(&args, ui),
        IngestCommand::Validate(args) => ingest_daemon::validate(&args, ui),
        IngestCommand::Status(args) => ingest_store::status(&args, ui),
        IngestCommand::Verify(args) => ingest_daemon::verify(&args, ui),
        IngestCommand::Requeue(args) => ingest_store::requeue(&args, ui),
        IngestCommand::Delete(args) => ingest_delete::delete(&args, ui),
        IngestCommand::Backup(args) => ingest_backup::backup(&args, ui),
        IngestCommand::Restore(args) => ingest_backup::restore(&args, ui),
        IngestCommand::Parse(args) => ingest_parse::parse(&args, ui),
        IngestCommand::Mappings(args) => ingest_parse::mappings(&args, ui),
    }
}

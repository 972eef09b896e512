//! Upkeep of the tables between commits: small files merged, old ones removed.

use std::time::{Duration, Instant};

use super::session::Session;
use super::{CommitError, Settings};
use crate::metrics::Metrics;
use crate::reserve::is_full;
use demi_store::delta::{SmallFiles, merge, vacuum};

/// Time between two looks for files to remove.
const VACUUM_EVERY: Duration = Duration::from_secs(3600);

/// How long nothing is merged after the disk was too full for it.
const LATER: Duration = Duration::from_secs(60);

/// Dead bytes after which files are removed before that.
const DEAD_BYTES: u64 = 64 << 20;

/// What is done when.
pub(super) struct Upkeep<'a> {
    settings: &'a Settings,
    next_vacuum: Instant,
    /// Nothing is done before.
    later: Instant,
    /// Bytes of files that were merged since files were removed.
    dead: u64,
}

impl<'a> Upkeep<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        Upkeep {
            settings,
            next_vacuum: Instant::now() + Duration::from_secs(60),
            later: Instant::now(),
            dead: 0,
        }
    }

    /// Merges small files if a partition has many, and removes old ones from time to time. Where the disk is too full for it, it is left for later.
    /// Without `room` nothing is merged, and old files are looked for at once.
    pub(super) fn run(
        &mut self,
        session: &mut Session<'_>,
        metrics: &Metrics,
        room: bool,
    ) -> Result<(), CommitError> {
        if Instant::now() < self.later {
            return Ok(());
        }
        if !room {
            self.next_vacuum = Instant::now();
            self.later = Instant::now() + LATER;
        }
        match self.work(session, metrics, room) {
            Err(error) if is_full(&error) => {
                tracing::warn!(%error, "the disk is too full to merge small files");
                self.later = Instant::now() + LATER;
                Ok(())
            }
            done => done,
        }
    }

    fn work(&mut self, session: &mut Session<'_>, metrics: &Metrics, room: bool) -> Result<(), CommitError> {
        let few = SmallFiles { bytes: self.settings.small_file_bytes, count: self.settings.compact_files };
        for table in session.writing.tables()?.into_iter().filter(|_| room) {
            let merged = merge(table, few)?;
            metrics.compacted_files.inc_by(merged.files);
            self.dead += merged.bytes;
        }
        if Instant::now() >= self.next_vacuum || self.dead >= DEAD_BYTES {
            self.dead = 0;
            self.next_vacuum = Instant::now() + VACUUM_EVERY;
            for table in session.writing.tables()? {
                vacuum(table, self.settings.keep_removed)?;
            }
            // Each commit writes files of the completeness anew. While it is ahead of the events the version before it is needed.
            if !session.completeness.is_ahead {
                vacuum(&mut session.completeness.writer, self.settings.keep_removed)?;
            }
        }
        Ok(())
    }
}

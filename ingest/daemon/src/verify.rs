//! What a restart would lose or repeat, told from spool, positions and table while no daemon runs.

use std::path::Path;

use demi_common::regular;
use serde::Serialize;
use serde_json::Value;

use super::codec;
use super::committer::progress::{application, source_application};
use super::positions::Positions;
use super::serve::{LOCK, ServeError};
use crate::spool::{Folder, Options, Readers, Recovered, Spool, identity, inspect};
use demi_store::completeness::{completeness, find, status};
use demi_store::{Store, StoreError};

/// What [`verify`] found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verified {
    /// Last frame in the spool.
    pub spooled: u64,
    /// Last frame in the store.
    pub committed: u64,
    /// Frames that a restart takes into the store.
    pub pending_frames: u64,
    /// Lines and records in them.
    pub pending_lines: u64,
    /// Bytes at the end of the spool of which nothing says that they were acknowledged: they will be cut off.
    pub torn_bytes: u64,
    /// Sources with the last frame of each in the store.
    pub sources: Vec<SourceProgress>,
    /// Saved positions, with the files they are of.
    pub positions: Vec<FilePosition>,
    /// What is lost, one sentence each; empty if nothing is.
    pub losses: Vec<String>,
    /// What does not fit together though nothing is lost.
    pub warnings: Vec<String>,
}

/// How far a source is in the store.
#[derive(Clone, Debug, Serialize)]
pub struct SourceProgress {
    /// The source.
    pub source: String,
    /// Its last frame in the store.
    pub committed: u64,
}

/// A saved position.
#[derive(Clone, Debug, Serialize)]
pub struct FilePosition {
    /// The source.
    pub source: String,
    /// The file as it was last seen.
    pub path: String,
    /// Bytes that are durable.
    pub offset: u64,
    /// Bytes of the file that will be read, if it is still there and not packed.
    pub unread: Option<u64>,
}

/// Compares spool, positions and store. Changes nothing.
///
/// # Errors
/// When one of them cannot be read, or a daemon is using the spool.
pub fn verify(store: &Path, spool: &Path) -> Result<Verified, ServeError> {
    let dir = spool.display().to_string();
    let failed = |source| ServeError::Spool { dir: dir.clone(), source };
    let lock = spool.join(LOCK);
    if let Ok(lock) = regular::check(&lock).and_then(|()| std::fs::File::open(&lock))
        && matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock))
    {
        return Err(ServeError::Busy { dir });
    }
    let disk = Folder::at(spool);
    let id = identity(&disk).map_err(failed)?.ok_or_else(|| ServeError::Spool {
        dir: dir.clone(),
        source: crate::spool::SpoolError::NoSpool {
            name: ".".into(),
            reason: "there is no spool here".into(),
        },
    })?;
    let found = inspect(&disk, id).map_err(failed)?;
    let saved = Positions::read(&disk).map_err(failed)?;
    let opened = Store::open(store)?;
    let committed = opened.progress(&application(id))?.unwrap_or(0);
    let mut out =
        Verified { spooled: found.last_lsn, committed, torn_bytes: found.torn_bytes, ..Verified::default() };
    if found.begins_after > committed.max(saved.committed) {
        let first = committed.max(saved.committed) + 1;
        let last = found.begins_after;
        out.losses.push(format!("frames {first} to {last} are neither in the spool nor in the store"));
    }
    damage(&found, committed, &mut out);
    if saved.committed > committed {
        out.losses.push(format!(
            "frames up to {} were in the store, now it ends at {committed}: was it replaced by an older copy?",
            saved.committed
        ));
    }
    let mut live = saved;
    let mut sources: Vec<String> = live.all().keys().cloned().collect();
    let mut reader = Readers::of(disk, found).reader(live.lsn.min(committed));
    while let Some(frame) = reader.next_frame().map_err(failed)? {
        match codec::decode(frame.body) {
            Ok(batch) => {
                if frame.lsn > committed {
                    out.pending_frames += 1;
                    out.pending_lines += batch.content.count();
                }
                live.apply(frame.lsn, &batch.origin.source, &batch.positions);
                if !sources.contains(&batch.origin.source.to_string()) {
                    sources.push(batch.origin.source.to_string());
                }
            }
            Err(error) => out.losses.push(format!("frame {}: {error}", frame.lsn)),
        }
    }
    sources.sort();
    for source in sources {
        if let Some(committed) = opened.progress(&source_application(id, &source))? {
            out.sources.push(SourceProgress { source, committed });
        }
    }
    out.positions = positions(&live);
    check_completeness(&opened, &mut out)?;
    Ok(out)
}

fn damage(found: &Recovered, committed: u64, out: &mut Verified) {
    for damage in &found.damage {
        let text = format!("{} at byte {}: {}", damage.segment, damage.offset, damage.reason);
        match damage.lost {
            Some((first, last)) if last > committed => {
                out.losses.push(format!("{text}; frames {} to {last} are lost", first.max(committed + 1)));
            }
            // It is told with the file that keeps it.
            Some(lost) if found.aside.iter().any(|aside| aside.lost == lost) => {}
            _ => out.warnings.push(format!("{text}; nothing that is not in the store")),
        }
    }
    for aside in &found.aside {
        let (first, last) = aside.lost;
        if last <= committed || found.damage.iter().all(|damage| damage.lost != Some(aside.lost)) {
            out.losses.push(format!(
                "frames {first} to {last} were acknowledged and could not be read; what was there is kept in {}: remove it once that \
                 is settled",
                aside.name
            ));
        }
    }
    if committed > found.last_lsn {
        out.warnings.push(format!(
            "the store has frames up to {committed}, the spool ends at {}: the disk lost what was synced",
            found.last_lsn
        ));
    }
}

fn positions(live: &Positions) -> Vec<FilePosition> {
    let mut out = Vec::new();
    for (source, keys) in live.all() {
        for value in keys.values() {
            let (Some(path), Some(offset)) = (value["path"].as_str(), value["offset"].as_u64()) else {
                continue;
            };
            let packed = value["packed"] == Value::Bool(true);
            let len = std::fs::metadata(path).ok().map(|m| m.len()).filter(|_| !packed);
            out.push(FilePosition {
                source: source.clone(),
                path: path.to_owned(),
                offset,
                unread: len.map(|len| len.saturating_sub(offset)),
            });
        }
    }
    out.sort_by(|a, b| (&a.source, &a.path, a.offset).cmp(&(&b.source, &b.path, b.offset)));
    out
}

/// The table `completeness` must say what the events say.
fn check_completeness(store: &Store, out: &mut Verified) -> Result<(), StoreError> {
    let rows = completeness(store)?;
    let events = status(store, None)?;
    for row in &rows {
        let held = find(&events, &row.system, &row.counts);
        let held = held.map_or(0, |e| e.counts.events);
        if held < row.counts.events {
            out.warnings.push(format!(
                "the table completeness counts {} events of {} (system {}, incarnation {}), the table holds {held}",
                row.counts.events, row.counts.actor, row.system, row.counts.incarnation
            ));
        }
    }
    Ok(())
}

impl<D: crate::spool::Disk> Readers<D> {
    /// Readers of a spool that nobody writes.
    fn of(disk: D, found: Recovered) -> Self {
        Spool::offline(disk, Options::default(), found).readers()
    }
}

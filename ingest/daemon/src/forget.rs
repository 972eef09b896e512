//! Deleting what a daemon left of events beside a store: in the segments of its spool, and in what its monitors know.

use std::path::Path;

use bytes::Bytes;
use demi_schemas::EventRecord;

use super::batch::{Batch, Content};
use super::codec;
use super::committer::progress::application;
use super::monitors::Checkpoint;
use super::serve::{ServeError, take_lock};
use crate::spool::{Body, Folder, Spool, SpoolError, identity};
use demi_formats::lines::MARK;
use demi_store::delete::{Waiting, is_doomed_line};
use demi_store::{Doomed, Store};

/// A spool that no daemon uses, for as long as this lives.
pub struct Idle {
    dir: String,
    disk: Folder,
    _lock: std::fs::File,
}

/// What was deleted of a spool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Records and lines that are gone.
    pub records: u64,
    /// Files that cannot be read, and may hold what was to be deleted.
    pub unread: Vec<String>,
}

impl Idle {
    /// Takes a spool for itself.
    ///
    /// # Errors
    /// When a daemon uses it, or it is none.
    pub fn take(spool: &Path) -> Result<Idle, ServeError> {
        let dir = spool.display().to_string();
        let disk = Folder::at(spool);
        let failed = |source| ServeError::Spool { dir: dir.clone(), source };
        identity(&disk).map_err(failed)?.ok_or_else(|| {
            failed(SpoolError::NoSpool { name: ".".into(), reason: "there is no spool here".into() })
        })?;
        Ok(Idle { dir: dir.clone(), disk, _lock: take_lock(spool)? })
    }

    /// Where it is.
    pub(super) fn dir(&self) -> &str {
        &self.dir
    }

    /// Its disk.
    pub(super) fn disk(&self) -> &Folder {
        &self.disk
    }

    /// Adds the records that have to go and are not in the store yet.
    ///
    /// # Errors
    /// When spool or store cannot be read.
    pub fn waiting(
        &self,
        store: &Store,
        system: &str,
        doomed: &Doomed,
        into: &mut Waiting,
    ) -> Result<(), ServeError> {
        let failed = |source| ServeError::Spool { dir: self.dir.clone(), source };
        let (spool, _) = Spool::open(self.disk.clone(), crate::spool::Options::default()).map_err(failed)?;
        let committed = store.progress(&application(spool.id()))?.unwrap_or(0);
        let mut reader = spool.reader(committed);
        while let Some(frame) = reader.next_frame().map_err(failed)? {
            if let Ok(batch) = codec::decode(frame.body) {
                without(batch, system, doomed, &mut |record| into.add(record));
            }
        }
        Ok(())
    }

    /// Deletes records, and what monitors know of their actors. Each segment is replaced at once, so that this can be done again at any
    /// time.
    ///
    /// # Errors
    /// When the spool cannot be read or written.
    pub fn forget(&self, system: &str, doomed: &Doomed) -> Result<Forgotten, ServeError> {
        let failed = |source| ServeError::Spool { dir: self.dir.clone(), source };
        let (mut spool, found) =
            Spool::open(self.disk.clone(), crate::spool::Options::default()).map_err(failed)?;
        let mut forgotten = Forgotten::default();
        let mut unread: Vec<String> = found.aside.into_iter().map(|aside| aside.name).collect();
        spool
            .rewrite(&mut |body| {
                let Ok(batch) = codec::decode(body.to_vec()) else { return None };
                let (kept, gone) = without(batch, system, doomed, &mut |_| {});
                forgotten.records += gone;
                if gone > 0 { Body::new(codec::encode(&kept)).ok() } else { None }
            })
            .map_err(failed)?;
        let whose = |actor: &str| doomed.is_about(actor);
        unread.extend(Checkpoint::forget_all(&self.disk, system, &whose).map_err(failed)?);
        forgotten.unread = unread;
        Ok(forgotten)
    }
}

/// A batch without what has to go, which is told of, and how much that was. What stays keeps its place in the stream.
fn without(batch: Batch, system: &str, doomed: &Doomed, gone: &mut dyn FnMut(&EventRecord)) -> (Batch, u64) {
    let mut count = 0;
    let mut goes = |bytes: &[u8]| {
        let record = EventRecord::parse(bytes).ok().filter(|record| doomed.takes(record));
        record.iter().for_each(&mut *gone);
        let goes = record.is_some() || is_doomed_line(bytes, doomed);
        count += u64::from(goes);
        goes
    };
    let other = *batch.origin.system != *system;
    let content = match batch.content {
        Content::Nothing => Content::Nothing,
        Content::Lines { offset, line, bytes } => {
            let mut text = bytes.to_vec();
            let mut begin = if offset == 0 && text.starts_with(&MARK) { MARK.len() } else { 0 };
            while !other && begin < text.len() {
                let end = memchr::memchr(b'\n', &text[begin..]).map_or(text.len(), |at| begin + at);
                if goes(&text[begin..end]) {
                    // Empty lines are no records, and count as lines.
                    text[begin..end].fill(b' ');
                }
                begin = end + 1;
            }
            Content::Lines { offset, line, bytes: Bytes::from(text) }
        }
        Content::Items(items) => {
            Content::Items(items.into_iter().filter(|item| other || !goes(&item.bytes)).collect())
        }
    };
    (Batch { content, ..batch }, count)
}

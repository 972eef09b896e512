//! Copies of a store: a backup while others write into it, and a store that is restored of one.
//!
//! A backup is a store of its own, which can be queried where it lies. All tables are copied as they were at one moment: their versions are the same
//! before and after they are read. Data files never change, so a later backup into the same folder copies what is new. They are compared with
//! their digests as they are copied, and come before the log that names them: the folder is a whole store at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deltalake_core::DeltaTable;
use demi_common::durable::{replace, sync_folder, write};
use demi_common::regular;
use demi_common::sealed::SealedFile;
use demi_common::stays_inside;
use serde::{Deserialize, Serialize};

use super::beside::{COMPLETENESS, COMPLETENESS_BEFORE, DELETED};
use super::copies::FILE as COPIES;
use super::open::is_table;
use super::{EVENTS, QUARANTINE, Store, tags};
use crate::StoreError;
use crate::fs as files;

/// The file in a backup that says what it is of.
const MANIFEST: &str = "backup.json";
const FORMAT: &str = "demi-backup/1";
/// The file in a store that is being restored, as long as it is not whole.
pub(super) const HALF: &str = ".demi-restore";
/// What the names of files in the making begin with.
const IN_THE_MAKING: &[u8] = b".demi-";
const LOG: &str = "_delta_log";
const LAST_CHECKPOINT: &str = "_last_checkpoint";
/// Digits of a version in the names of a log.
const DIGITS: usize = 20;
/// All tables that a store may have.
const TABLES: [&str; 5] = [EVENTS, QUARANTINE, DELETED, COMPLETENESS, COMPLETENESS_BEFORE];
/// What is beside the tables and is no lock, room or index that is made anew.
const BESIDE: [&str; 3] = ["stamps", "incidents", "violations"];
/// How often it is tried to read all tables while none of them changes.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Files of the store.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Files that were there already, from an earlier backup.
    pub there: u64,
    /// Files of an earlier backup that the store has no more, which were removed.
    pub removed: u64,
    /// The version of each table.
    pub versions: BTreeMap<String, u64>,
}

/// The content of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: String,
    /// The identity of the table of events.
    store: String,
    versions: BTreeMap<String, u64>,
    files: BTreeSet<PathBuf>,
}

/// A table as it was at one moment.
struct Snapshot {
    name: &'static str,
    version: u64,
    files: Vec<SealedFile>,
}

/// Copies a store into a folder that is absent, empty, or an earlier backup of the same store.
///
/// # Errors
/// When the store cannot be read or is damaged, or the folder is something else or cannot be written. What was there of an earlier backup stays whole.
pub fn back_up(store: &Path, to: &Path) -> Result<Copied, StoreError> {
    let before = manifest(to)?;
    if before.is_none() && !is_free(to) {
        return Err(refuse(to, "it is neither empty nor a backup: name another folder".into()));
    }
    copy(store, to, before, true)
}

/// Makes a store of a backup, in a folder that is absent or empty.
///
/// # Errors
/// As [`back_up`].
pub fn restore(backup: &Path, to: &Path) -> Result<Copied, StoreError> {
    apart(backup, to)?;
    if to.join(HALF).is_file() {
        clear(to)?;
    }
    if !is_free(to) {
        return Err(refuse(to, "a store is restored into a folder that is absent or empty".into()));
    }
    // A store that is half there is not taken for a whole one. It may be the root of a disk, so it is not made elsewhere and moved.
    files::create_dirs(&*files::os(), to, files::PRIVATE).map_err(failed(to, "make this folder"))?;
    let half = to.join(HALF);
    write(&half, b"a store is restored here\n").map_err(failed(&half, "write this file"))?;
    let copied = copy(backup, to, None, false)?;
    fs::remove_file(&half).map_err(failed(&half, "remove this file"))?;
    sync_folder(to).map_err(failed(to, "sync this folder"))?;
    Ok(copied)
}

/// Refuses two folders that lie in each other.
fn apart(from: &Path, to: &Path) -> Result<(), StoreError> {
    let from = std::path::absolute(from).map_err(failed(from, "find this folder"))?;
    let from = from.canonicalize().unwrap_or(from);
    let whole = std::path::absolute(to).map_err(failed(to, "find this folder"))?;
    if whole.starts_with(&from) || from.starts_with(&whole) {
        return Err(refuse(to, format!("it and {} lie in each other", from.display())));
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, before: Option<Manifest>, is_backup: bool) -> Result<Copied, StoreError> {
    let (store, tables) = at_one_moment(from)?;
    let from = store.dir().to_owned();
    apart(&from, to)?;
    let id = store.identity()?;
    if let Some(other) = before.as_ref().filter(|before| before.store != id) {
        return Err(refuse(to, format!("it is a backup of another store ({})", other.store)));
    }
    files::create_dirs(&*files::os(), to, files::PRIVATE).map_err(failed(to, "make this folder"))?;
    let versions = tables.iter().map(|table| (table.name.to_owned(), table.version)).collect();
    let mut copying =
        Copying { from: &from, to, files: BTreeSet::new(), done: Copied { versions, ..Copied::default() } };
    if is_backup {
        // Who deletes events has to know of it, also of one that is half done.
        store.note_backup(to)?;
        if before.is_none() {
            // Who finds the folder half done knows whose it is.
            copying.manifest(&id)?;
        }
    }
    for table in &tables {
        for file in &table.files {
            copying.sealed(file)?;
        }
    }
    for table in &tables {
        copying.log(table)?;
    }
    for name in BESIDE {
        copying.tree(Path::new(name))?;
    }
    if is_backup {
        let old = before.map(|before| before.files).unwrap_or_default();
        for gone in old.difference(&copying.files).filter(|path| stays_inside(path)) {
            match fs::remove_file(to.join(gone)) {
                Ok(()) => copying.done.removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&to.join(gone), "remove this file")(error)),
            }
        }
        copying.manifest(&id)?;
    }
    // Places are kept as they are seen from the store, and the copy is elsewhere.
    let made = Store::open_with(to, files::os(), false)?;
    made.note_all(&store.copies()?)?;
    if !is_backup {
        made.note_backup(&from)?;
    }
    sync_folder(to).map_err(failed(to, "sync this folder"))?;
    Ok(copying.done)
}

/// Opens all tables while none of them changes.
fn at_one_moment(dir: &Path) -> Result<(Store, Vec<Snapshot>), StoreError> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let before = versions(dir);
        match snapshots(dir) {
            Ok((store, tables)) => {
                let read: Vec<_> = tables.iter().map(|table| (table.name, table.version)).collect();
                if before == read && versions(dir) == before {
                    return Ok((store, tables));
                }
            }
            // A file of the log may go while it is read.
            Err(error @ StoreError::NoStore { .. }) => return Err(error),
            Err(error) => last = Some(error),
        }
        std::thread::sleep(PAUSE);
    }
    Err(last.unwrap_or_else(|| {
        refuse(dir, "its tables change all the time: try again when less is written".into())
    }))
}

/// The last version of each table that is there, as the names in its log have it.
fn versions(dir: &Path) -> Vec<(&'static str, u64)> {
    let last = |name: &&'static str| {
        let names = fs::read_dir(dir.join(name).join(LOG)).ok()?;
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".json")).filter_map(|name| version_of(&name)).max()
    };
    TABLES.iter().filter_map(|name| Some((*name, last(name)?))).collect()
}

fn version_of(name: &str) -> Option<u64> {
    name.trim_start_matches('_').get(..DIGITS)?.parse().ok()
}

fn snapshots(dir: &Path) -> Result<(Store, Vec<Snapshot>), StoreError> {
    let store = Store::open(dir)?;
    let mut tables = Vec::new();
    for name in TABLES {
        let opened = match name {
            EVENTS => store.events.clone(),
            QUARANTINE => store.quarantine.clone(),
            _ if !is_table(&store.dir().join(name)) => continue,
            DELETED => store.open_deleted(false)?,
            _ => store.open_completeness(name, false)?,
        };
        tables.push(snapshot(&store, name, &opened)?);
    }
    Ok((store, tables))
}

fn snapshot(store: &Store, name: &'static str, table: &DeltaTable) -> Result<Snapshot, StoreError> {
    let error =
        |e| super::table_error(&store.dir().display().to_string(), "read the state of the store's tables", e);
    let state = table.snapshot().map_err(error)?;
    let folder = store.dir().join(name);
    let files: Vec<SealedFile> =
        state.log_data().into_iter().map(|file| tags::sealed(&folder, &file)).collect();
    super::remote::fetch(store.dir(), files.iter().map(SealedFile::path))?;
    Ok(Snapshot { name, version: table.version().unwrap_or(0), files })
}

/// One copy in the making.
struct Copying<'a> {
    from: &'a Path,
    to: &'a Path,
    files: BTreeSet<PathBuf>,
    done: Copied,
}

impl Copying<'_> {
    /// Copies a file that never changes, unless it is there, and compares it with its digests.
    fn sealed(&mut self, file: &SealedFile) -> Result<(), StoreError> {
        let path = file.path();
        let name = path.strip_prefix(self.from).map_err(|_| refuse(path, "it is not in the store".into()))?;
        let target = self.to.join(name);
        let length = fs::metadata(path).map_err(failed(path, "read this file"))?.len();
        if fs::metadata(&target).is_ok_and(|there| there.len() == length) {
            self.took(name, length, true);
            return Ok(());
        }
        let opened = file.open().map_err(failed(path, "read this file"))?;
        self.put(name, opened.from(0))?;
        self.took(name, length, false);
        Ok(())
    }

    /// Copies what of a table's log is not behind its version: checkpoints first, then commits in their order, then what names the last checkpoint.
    fn log(&mut self, table: &Snapshot) -> Result<(), StoreError> {
        let folder = Path::new(table.name).join(LOG);
        let listed = fs::read_dir(self.from.join(&folder)).map_err(failed(&folder, "list this folder"))?;
        let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| version_of(name).is_some_and(|version| version <= table.version)).collect();
        names.retain(|name| !name.contains('#'));
        names.sort_by_key(|name| (name.ends_with(".json"), name.clone()));
        for name in names {
            self.file(&folder.join(name), false)?;
        }
        let last = folder.join(LAST_CHECKPOINT);
        let text = regular::read(&self.from.join(&last)).unwrap_or_default();
        let said: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        if said["version"].as_u64().is_some_and(|version| version <= table.version) {
            self.put(&last, &text[..])?;
            self.took(&last, text.len() as u64, false);
        }
        Ok(())
    }

    /// Copies a folder or a file beside the tables, if it is there.
    fn tree(&mut self, name: &Path) -> Result<(), StoreError> {
        let path = self.from.join(name);
        let kind = match fs::symlink_metadata(&path) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&path, "read this file")(error)),
        };
        if kind.is_file() {
            return self.file(name, true);
        }
        if !kind.is_dir() {
            return Ok(());
        }
        let listed = fs::read_dir(&path).map_err(failed(&path, "list this folder"))?;
        let mut names: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort_unstable();
        // What is in the making is no part of it yet.
        let mut whole = names.into_iter().filter(|name| !name.to_string_lossy().starts_with(".demi-new-"));
        whole.try_for_each(|inner| self.tree(&name.join(inner)))
    }

    /// Copies a file, unless one of its length is there; one that `may_change` also if that is older.
    fn file(&mut self, name: &Path, may_change: bool) -> Result<(), StoreError> {
        let path = self.from.join(name);
        let opened = match regular::open(&path) {
            Ok(opened) => opened,
            // It was removed since its folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&path, "read this file")(error)),
        };
        let source = opened.metadata().map_err(failed(&path, "read this file"))?;
        let same = fs::metadata(self.to.join(name)).is_ok_and(|there| {
            let newer =
                matches!((there.modified(), source.modified()), (Ok(there), Ok(here)) if there > here);
            there.len() == source.len() && (!may_change || newer)
        });
        if !same {
            self.put(name, opened)?;
        }
        self.took(name, source.len(), same);
        Ok(())
    }

    fn put(&self, name: &Path, mut content: impl Read) -> Result<(), StoreError> {
        let target = self.to.join(name);
        replace(&target, |file| io::copy(&mut content, file).map(|_| ()))
            .map_err(failed(&target, "write this file"))
    }

    fn took(&mut self, name: &Path, bytes: u64, there: bool) {
        if self.files.insert(name.to_owned()) {
            self.done.files += 1;
            self.done.bytes += bytes;
            self.done.there += u64::from(there);
        }
    }

    fn manifest(&self, id: &str) -> Result<(), StoreError> {
        let (versions, files) = (self.done.versions.clone(), self.files.clone());
        let manifest = Manifest { format: FORMAT.to_owned(), store: id.to_owned(), versions, files };
        // Names that are not UTF-8 have no place in a store.
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        let path = self.to.join(MANIFEST);
        write(&path, &text).map_err(failed(&path, "write this file"))
    }
}

/// What a folder says of itself, if it is a backup.
fn manifest(folder: &Path) -> Result<Option<Manifest>, StoreError> {
    let path = folder.join(MANIFEST);
    let text = match regular::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&path, "read this file")(error)),
    };
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(manifest) if manifest.format == FORMAT => Ok(Some(manifest)),
        Ok(other) => Err(refuse(&path, format!("it is '{}', this version reads '{FORMAT}'", other.format))),
        Err(error) => Err(refuse(&path, format!("it is damaged: {error}"))),
    }
}

fn is_free(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        // Files in the making, of a process that was killed before it wrote anything else.
        Ok(entries) => entries.flatten().all(|entry| {
            entry.file_name().as_encoded_bytes().starts_with(IN_THE_MAKING)
                && entry.file_type().is_ok_and(|kind| kind.is_file())
        }),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes what a restore that was broken off left.
fn clear(to: &Path) -> Result<(), StoreError> {
    for name in TABLES.iter().chain(&BESIDE).chain(&[COPIES]) {
        let path = to.join(name);
        let removed = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
        removed.map_err(failed(&path, "remove what a restore left"))?;
    }
    Ok(())
}

fn refuse(path: &Path, reason: String) -> StoreError {
    StoreError::Backup { path: path.to_owned(), reason }
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { path, action, source }
}

//! The event store: two Delta tables in one directory, and others beside them.

mod backup;
mod beside;
mod check;
mod commit_sum;
mod compact;
mod copies;
mod data_files;
mod durable;
pub mod lineage;
mod open;
mod partition;
pub mod remote;
pub mod remote_objects;
mod table;
pub mod tags;
mod tiers;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_schema::SchemaRef;
use deltalake_core::DeltaTable;
use demi_common::sealed::SealedFile;
use demi_schemas::tables;
use tokio::runtime::Runtime;

use crate::admit::{Known, There};
use crate::deleted::deleted;
use crate::fs::{self as files, FileSystem};
use crate::quarantined::{Quarantined, counted};
use crate::{StoreError, check_system_name};
use open::{Place, check_version, is_table};
use remote::Remote;

pub use backup::{Copied, back_up, restore};
pub use compact::{SmallFiles, merge, vacuum};
pub use deltalake_core::kernel::Remove as Removed;
pub use table::{Gone, TableWriter, table_error};

const EVENTS: &str = "events";
const QUARANTINE: &str = "quarantine";
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// An event store: a directory with a Delta table `events`, partitioned by system and date, and one `quarantine`,
/// partitioned by system.
///
/// A value of this type is the state of the tables when it was opened, [loaded](crate::load) into, or
/// [refreshed](Store::refresh). Its calls block and must not be made on a thread of an async runtime; there, use
/// `spawn_blocking`.
pub struct Store {
    dir: PathBuf,
    runtime: Arc<Runtime>,
    files: Arc<dyn FileSystem>,
    events: DeltaTable,
    quarantine: DeltaTable,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("dir", &self.dir)
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// Refuses a store that is not wholly restored.
fn refuse_half(dir: &Path) -> Result<(), StoreError> {
    if !dir.join(backup::HALF).is_file() {
        return Ok(());
    }
    let reason = "it is being restored, or that was broken off: restore it again".to_owned();
    Err(StoreError::Backup { path: dir.to_owned(), reason })
}

impl Store {
    /// Opens a store that is there.
    ///
    /// # Errors
    /// When there is none in `dir`, its tables are of another version, or cannot be read.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        if let Some(remote) = Remote::of(dir)? {
            remote.pull(&tables())?;
        }
        let tables = [EVENTS, QUARANTINE].map(|name| dir.join(name));
        refuse_half(dir)?;
        if dir.is_file() {
            return Err(StoreError::NoFolder { dir: dir.display().to_string() });
        }
        if !tables.iter().all(|table| is_table(table)) {
            return Err(StoreError::NoStore { dir: dir.display().to_string() });
        }
        Self::open_with(dir, files::os(), false)
    }

    /// Refuses a folder in which no store can be opened or made. Nothing is written, and object storage is not asked.
    ///
    /// # Errors
    /// When it is a file, or its tables are of another version or cannot be read.
    pub fn check_place(dir: &Path) -> Result<(), StoreError> {
        if Remote::of(dir)?.is_some() {
            return Ok(());
        }
        match Self::open(dir) {
            Ok(_) | Err(StoreError::NoStore { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens the store in `dir`, after making it if it is not there.
    ///
    /// # Errors
    /// When the directory or the tables cannot be made, or a store that is there cannot be opened.
    pub fn create(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::create_on(dir.as_ref(), files::os())
    }

    /// As [`create`](Self::create), on a file system of the caller's choice.
    pub fn create_on(dir: &Path, files: Arc<dyn FileSystem>) -> Result<Self, StoreError> {
        refuse_half(dir)?;
        Self::open_with(dir, files, true)
    }

    fn open_with(dir: &Path, files: Arc<dyn FileSystem>, create: bool) -> Result<Self, StoreError> {
        let name = dir.display().to_string();
        let io = |action, source| StoreError::Io { path: dir.to_owned(), action, source };
        if dir.is_file() {
            return Err(StoreError::NoFolder { dir: name });
        }
        if create {
            files::create_dirs(&*files, dir, files::PRIVATE).map_err(|e| io("make this folder", e))?;
        }
        let dir = fs::canonicalize(dir).map_err(|e| io("open this folder", e))?;
        if let Some(remote) = Remote::of(&dir)?.filter(|_| create) {
            remote.probe()?;
            remote.pull(&tables())?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|e| io("start the threads that write here", e))?;
        let table = |table: &str, schema: SchemaRef, partitions: &[&str], stats: &str| {
            let place = Place { store: &dir, table, files: &files };
            place.open(&runtime, create, schema, partitions, stats)
        };
        let events =
            table(EVENTS, tables::store_events(), &["system", "date"], "actor,incarnation,seq,kind")?;
        let quarantine = table(QUARANTINE, tables::store_quarantine(), &["system"], "offset,line,code")?;
        for table in [&events, &quarantine] {
            check_version(&name, table)?;
        }
        Ok(Store { dir, runtime: Arc::new(runtime), files, events, quarantine })
    }

    /// What tells stores apart: backups and restored stores have that of their store.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub fn identity(&self) -> Result<String, StoreError> {
        let error =
            |e| table_error(&self.dir.display().to_string(), "read the state of the store's tables", e);
        Ok(self.events.snapshot().map_err(error)?.metadata().id().to_owned())
    }

    /// The directory, as an absolute path.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Version of the events table: the number of commits made to it since it was created.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.events.version().unwrap_or(0)
    }

    /// The systems that have events, sorted.
    ///
    /// # Errors
    /// When the table's state cannot be read.
    pub fn systems(&self) -> Result<Vec<String>, StoreError> {
        self.systems_of(&self.events, EVENTS)
    }

    /// The systems that have something in quarantine, sorted.
    pub fn quarantined_systems(&self) -> Result<Vec<String>, StoreError> {
        self.systems_of(&self.quarantine, QUARANTINE)
    }

    fn systems_of(&self, table: &DeltaTable, name: &str) -> Result<Vec<String>, StoreError> {
        let parts = self.parts(table, name)?;
        let names: BTreeSet<String> = parts.into_iter().filter_map(|part| part.system).collect();
        Ok(names.into_iter().collect())
    }

    /// The Parquet files, by absolute paths and with the digests of their content, that hold a system's events: the files of earlier commits first, those
    /// of one commit in the order of their dates. Within a file, rows are in the order in which they were read; one that was
    /// merged of others is in the order of actor, incarnation and sequence number.
    ///
    /// The columns are those of [`tables::store_events`] without `system` and `date`, which are in the paths.
    ///
    /// # Errors
    /// When the store has no events of that system; the error lists the systems it has.
    pub fn event_files(&self, system: &str) -> Result<Vec<SealedFile>, StoreError> {
        let files = self.files_of(&self.events, EVENTS, system)?;
        if files.is_empty() {
            let (dir, system) = (self.dir.display().to_string(), system.to_owned());
            return Err(StoreError::UnknownSystem { dir, system, known: self.systems()? });
        }
        Ok(files)
    }

    /// The Parquet files, by absolute paths and with the digests of their content, that hold a system's quarantine, in the order of their commits; none if
    /// nothing is there. The columns are those of [`tables::store_quarantine`] without `system`.
    ///
    /// # Errors
    /// When the table's state cannot be read.
    pub fn quarantine_files(&self, system: &str) -> Result<Vec<SealedFile>, StoreError> {
        self.files_of(&self.quarantine, QUARANTINE, system)
    }

    /// The directory of the quarantine table, for those who read it with other tools.
    #[must_use]
    pub fn quarantine_dir(&self) -> PathBuf {
        self.dir.join(QUARANTINE)
    }

    /// Takes in what others committed since.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        if let Some(remote) = Remote::of(&self.dir)? {
            remote.pull(&tables())?;
        }
        for (table, name) in [(&self.events, EVENTS), (&self.quarantine, QUARANTINE)] {
            check::check_commits(&self.dir.join(name), table.version())?;
        }
        let (events, quarantine) = (&mut self.events, &mut self.quarantine);
        let updated = self.runtime.block_on(async {
            events.update_state().await?;
            quarantine.update_state().await
        });
        updated.map_err(|e| table_error(&self.dir.display().to_string(), "read the store's tables", e))
    }

    /// The files of the events that are there, none for a system that is new.
    pub fn known_event_files(&self, system: &str) -> Result<Vec<SealedFile>, StoreError> {
        self.files_of(&self.events, EVENTS, system)
    }

    /// What is known of a system. Temporary data goes to `scratch`.
    pub fn known(&self, system: &str, scratch: PathBuf) -> Result<Known, StoreError> {
        let there = There {
            events: self.known_event_files(system)?,
            quarantine: self.quarantine_files(system)?,
            deleted: &deleted(&self.deleted_files(system)?)?,
            told: !open::has_digests(&self.events),
        };
        Known::read(system, there, self.dir.display().to_string(), scratch)
    }

    /// The number that commits to the events keep under an application's name.
    pub fn progress(&self, application: &str) -> Result<Option<u64>, StoreError> {
        let read = self.runtime.block_on(table::progress(&self.events, application));
        read.map_err(|e| table_error(&self.dir.display().to_string(), "read the table's progress", e))
    }

    /// A writer for the events.
    pub fn events_writer(&self) -> Result<TableWriter, StoreError> {
        self.writer(EVENTS, &self.events)
    }

    /// A writer for the quarantine.
    pub fn quarantine_writer(&self) -> Result<TableWriter, StoreError> {
        self.writer(QUARANTINE, &self.quarantine)
    }

    fn writer(&self, name: &str, table: &DeltaTable) -> Result<TableWriter, StoreError> {
        TableWriter::new(&self.dir, name, self.runtime.clone(), table.clone(), &*self.files)
    }

    /// Takes the tables as the writers left them.
    pub fn adopt(&mut self, events: TableWriter, quarantine: TableWriter) {
        self.events = events.table;
        self.quarantine = quarantine.table;
    }

    /// Keeps other processes from loading into the system as long as the file given back is open.
    pub fn lock(&self, system: &str) -> Result<File, StoreError> {
        check_system_name(system)?;
        let name = format!("{:016x}.lock", xxhash_rust::xxh3::xxh3_64(system.as_bytes()));
        self.lock_file(self.dir.join("locks").join(name), system)
    }

    /// Locks a file, and waits a moment for who has it.
    fn lock_file(&self, path: PathBuf, what: &str) -> Result<File, StoreError> {
        let folder = self.dir.join("locks");
        let file = fs::create_dir_all(&folder).and_then(|()| files::lock_file(&path));
        let file =
            file.map_err(|source| StoreError::Io { path: path.clone(), action: "make this file", source })?;
        // A process that was just killed holds its lock a moment longer.
        for attempt in 0..=LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::Error(source)) => {
                    return Err(StoreError::Io { path, action: "lock this file", source });
                }
                Err(fs::TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => thread::sleep(LOCK_PAUSE),
                Err(fs::TryLockError::WouldBlock) => {}
            }
        }
        Err(StoreError::Busy { dir: self.dir.display().to_string(), system: what.to_owned() })
    }

    fn files_of(&self, table: &DeltaTable, name: &str, system: &str) -> Result<Vec<SealedFile>, StoreError> {
        let mut parts = self.parts(table, name)?;
        parts.retain(|part| part.system.as_deref() == Some(system));
        parts.sort_by(|a, b| (a.time, &a.file).cmp(&(b.time, &b.file)));
        remote::fetch(&self.dir, parts.iter().map(|part| part.file.path()))?;
        Ok(parts.into_iter().map(|part| part.file).collect())
    }

    fn parts(&self, table: &DeltaTable, name: &str) -> Result<Vec<Part>, StoreError> {
        let snapshot = table.snapshot().map_err(|e| {
            table_error(&self.dir.display().to_string(), "read the state of the store's tables", e)
        })?;
        let folder = self.dir.join(name);
        Ok(snapshot
            .log_data()
            .into_iter()
            .map(|file| Part {
                file: tags::sealed(&folder, &file),
                time: file.modification_time(),
                system: file.partition_values_map().remove("system").flatten(),
            })
            .collect())
    }
}

/// The folders of all tables.
fn tables() -> Vec<&'static str> {
    let fixed = [EVENTS, QUARANTINE, beside::COMPLETENESS, beside::COMPLETENESS_BEFORE, beside::DELETED];
    fixed.into_iter().chain(lineage::LineageTable::ALL.map(lineage::LineageTable::name)).collect()
}

/// What stands in quarantine, of one system or of all, sorted by system; the commonest reasons of a system come first.
///
/// # Errors
/// When the store cannot be read.
pub fn quarantined(store: &Store, system: Option<&str>) -> Result<Vec<Quarantined>, StoreError> {
    let systems = match system {
        Some(system) => vec![system.to_owned()],
        None => store.quarantined_systems()?,
    };
    let mut all = Vec::new();
    for system in systems {
        all.append(&mut counted(&store.quarantine_files(&system)?, &system)?);
    }
    Ok(all)
}

/// A file of a table.
struct Part {
    file: SealedFile,
    time: i64,
    system: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::beside::{COMPLETENESS, COMPLETENESS_BEFORE};
    use super::*;

    #[test]
    fn a_new_store_is_empty_and_can_be_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a b").join("st%re");
        assert!(matches!(Store::open(&path), Err(StoreError::NoStore { .. })));
        assert!(!path.exists(), "opening makes nothing");
        let store = Store::create(&path).unwrap();
        assert_eq!((store.version(), store.systems().unwrap()), (0, vec![]));
        let error = Store::open(&path).unwrap().event_files("x").unwrap_err();
        assert!(matches!(error, StoreError::UnknownSystem { known, .. } if known.is_empty()));
        assert_eq!(Store::create(&path).unwrap().version(), 0);
    }

    #[test]
    fn a_file_where_the_store_should_be_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for error in [Store::open(file.path()).err(), Store::create(file.path()).err()] {
            assert!(error.unwrap().to_string().contains("is a file, and a store is a folder"));
        }
    }

    #[test]
    fn a_store_half_made_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        Store::create(dir.path()).unwrap();
        fs::remove_dir_all(dir.path().join(QUARANTINE)).unwrap();
        assert!(matches!(Store::open(dir.path()), Err(StoreError::NoStore { .. })));
        Store::create(dir.path()).unwrap();
        Store::open(dir.path()).unwrap();
    }

    #[test]
    fn a_table_of_completeness_keeps_the_name_it_was_made_with() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        store.completeness_writer().unwrap();
        fs::rename(dir.path().join(COMPLETENESS), dir.path().join(COMPLETENESS_BEFORE)).unwrap();
        let (folder, _) = store.completeness().unwrap().unwrap();
        assert_eq!(folder.file_name().unwrap(), COMPLETENESS_BEFORE);
        store.completeness_writer().unwrap();
        assert!(!dir.path().join(COMPLETENESS).exists());
    }

    #[test]
    fn a_table_whose_first_version_was_never_written_is_made() {
        let dir = tempfile::tempdir().unwrap();
        Store::create(dir.path()).unwrap().completeness_writer().unwrap();
        let first = |table: &str| dir.path().join(table).join("_delta_log/00000000000000000000.json");
        for table in [EVENTS, QUARANTINE, COMPLETENESS] {
            // Where a process is killed just before its file becomes the first version, and before it has a file.
            for left in [Some(first(table).with_extension("json#1")), None] {
                match left {
                    Some(left) => fs::rename(first(table), left).unwrap(),
                    None => fs::remove_file(first(table)).unwrap(),
                }
                let opened = Store::open(dir.path());
                match (table, opened) {
                    (COMPLETENESS, Ok(store)) => assert!(store.completeness().unwrap().is_none()),
                    (_, opened) => assert!(matches!(opened, Err(StoreError::NoStore { .. })), "{table}"),
                }
                let store = Store::create(dir.path()).unwrap();
                assert_eq!(store.completeness_writer().unwrap().table.version(), Some(0));
                assert_eq!(store.version(), 0);
                assert!(first(table).is_file(), "{table}");
            }
        }
    }

    #[test]
    fn a_torn_commit_is_named_and_a_first_one_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        Store::create(dir.path()).unwrap();
        let commit = |version: u64| dir.path().join(format!("{EVENTS}/_delta_log/{version:020}.json"));
        let whole = fs::read(commit(0)).unwrap();
        for torn in [&b""[..], &whole[..whole.len() - 9]] {
            fs::write(commit(0), torn).unwrap();
            let error = Store::open(dir.path()).unwrap_err();
            assert!(matches!(&error, StoreError::TornCommit { path } if *path == commit(0)), "{error}");
            // Nothing is in a table of one version.
            assert_eq!(Store::create(dir.path()).unwrap().version(), 0);
            let mut opened = Store::open(dir.path()).unwrap();
            fs::write(commit(1), torn).unwrap();
            let errors =
                [Store::open(dir.path()), Store::create(dir.path()), opened.refresh().map(|()| opened)];
            for error in errors.map(Result::unwrap_err) {
                assert!(matches!(&error, StoreError::TornCommit { path } if *path == commit(1)), "{error}");
            }
            fs::remove_file(commit(1)).unwrap();
        }
    }

    #[test]
    fn one_load_a_system_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path()).unwrap();
        let held = store.lock("s").unwrap();
        assert!(matches!(store.lock("s"), Err(StoreError::Busy { .. })));
        store.lock("t").unwrap();
        drop(held);
        store.lock("s").unwrap();
    }
}

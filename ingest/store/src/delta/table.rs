//! The one writer of a table: whole batches in atomic commits, with numbers that say how far their senders are.
//!
//! What a commit says is there is on the disk when [`TableWriter::commit`] returns: the storage below syncs each file
//! before it has its name, and its folders before it is told written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use chrono::NaiveDate;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Add, Remove, Transaction};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaResult, DeltaTable, DeltaTableError};
use demi_common::sealed::SealedFile;
use tokio::runtime::Runtime;

use super::check::sync_commits;
use super::data_files::DataFiles;
use super::partition::with_partition;
use super::tags;
use crate::StoreError;
use crate::data_file::properties;
use crate::fs::FileSystem;

/// The values of a partition, by column.
pub type Partition = Vec<(String, Option<String>)>;

/// A data file of a table.
pub struct DataFile {
    pub file: SealedFile,
    /// The day of its events, if they have one.
    pub date: Option<NaiveDate>,
    pub partition: Partition,
    /// What takes it out of the table.
    pub remove: Remove,
}

/// What a commit takes out of the table.
pub enum Gone {
    /// Nothing: it appends.
    Nothing,
    /// All that was there.
    Everything,
    /// These files.
    Files(Vec<Remove>),
}

/// One table, open for appending.
pub struct TableWriter {
    /// Where the store is, for messages.
    dir: String,
    folder: PathBuf,
    runtime: Arc<Runtime>,
    /// The table as it was at the last commit.
    pub table: DeltaTable,
    writer: DataFiles,
    /// Data files that are written and wait for the next commit.
    written: Vec<Add>,
    /// Time given to the newest file; every file gets a later one, which tells their order.
    newest: i64,
    pending: bool,
}

impl TableWriter {
    /// A writer of the table in the folder `name` of the store. What others committed to it is durable from here on.
    pub(super) fn new(
        store: &Path,
        name: &str,
        runtime: Arc<Runtime>,
        table: DeltaTable,
        files: &dyn FileSystem,
    ) -> Result<Self, StoreError> {
        let dir = store.display().to_string();
        let folder = store.join(name);
        sync_commits(files, &folder).map_err(|source| StoreError::Io {
            path: folder.clone(),
            action: "sync this table",
            source,
        })?;
        let failed = |e| table_error(&dir, "open the table", e);
        let snapshot = table.snapshot().map_err(failed)?;
        let newest = snapshot.log_data().into_iter().map(|f| f.modification_time()).max().unwrap_or(0);
        let properties = properties(None).map_err(|source| failed(DeltaTableError::Parquet { source }))?;
        let writer = DataFiles::new(&table, properties).map_err(failed)?;
        Ok(TableWriter { dir, folder, runtime, table, writer, written: Vec::new(), newest, pending: false })
    }

    /// Lets pages of columns have so many rows at most, so that who looks for few rows reads few.
    pub fn with_page_rows(mut self, rows: usize) -> Result<Self, StoreError> {
        let properties = properties(None);
        let properties = properties
            .map_err(|source| self.error("write to the table")(DeltaTableError::Parquet { source }))?;
        let properties =
            properties.into_builder().set_data_page_row_count_limit(rows).set_write_batch_size(rows).build();
        self.writer.set_properties(properties);
        Ok(self)
    }

    /// The number kept under an application's name.
    pub fn progress(&self, application: &str) -> Result<Option<u64>, StoreError> {
        let read = self.runtime.block_on(progress(&self.table, application));
        read.map_err(|e| table_error(&self.dir, "read the table's progress", e))
    }

    /// Whether something was written since the last commit.
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// The files of a system's partition.
    pub fn files_of(&self, system: &str) -> Result<Vec<Remove>, StoreError> {
        let snapshot = self.table.snapshot().map_err(self.error("read the table"))?;
        let is_of = |values: &std::collections::HashMap<String, Option<String>>| {
            values.get("system").and_then(Option::as_deref) == Some(system)
        };
        let files = snapshot.log_data().into_iter().filter(|file| is_of(&file.partition_values_map()));
        Ok(files.map(|file| file.remove_action(true)).collect())
    }

    /// The data files of a system's partitions, those of earlier commits first.
    pub fn data_files(&self, system: &str) -> Result<Vec<DataFile>, StoreError> {
        let snapshot = self.table.snapshot().map_err(self.error("read the table"))?;
        let mut files: Vec<(i64, DataFile)> = Vec::new();
        for file in snapshot.log_data() {
            let mut partition: Vec<_> = file.partition_values_map().into_iter().collect();
            partition.sort();
            let value = |wanted: &str| {
                let found = partition.iter().find(|(name, _)| name == wanted);
                found.and_then(|(_, value)| value.as_deref())
            };
            if value("system") == Some(system) {
                let date = value("date").and_then(|date| date.parse().ok());
                let remove = file.remove_action(true);
                let (time, file) = (file.modification_time(), tags::sealed(&self.folder, &file));
                files.push((time, DataFile { file, date, partition, remove }));
            }
        }
        files.sort_by(|a, b| (a.0, &a.1.file).cmp(&(b.0, &b.1.file)));
        self.fetch(files.iter().map(|(_, file)| &file.file))?;
        Ok(files.into_iter().map(|(_, file)| file).collect())
    }

    /// Adds a batch as a data file has it, without the columns of its partition, to what the next commit will hold.
    pub fn write_part(&mut self, batch: &RecordBatch, partition: &Partition) -> Result<(), StoreError> {
        let whole = with_partition(batch, self.writer.schema(), partition)?;
        self.write(whole)
    }

    /// Ends the data file at hand, of a table without partitions; its path in the table, if anything was written. What is written next
    /// stands in another file.
    pub fn cut(&mut self) -> Result<Option<String>, StoreError> {
        let adds = self.runtime.block_on(self.writer.finish());
        let adds = adds.map_err(|e| table_error(&self.dir, "write to the table", e))?;
        let path = adds.first().map(|add| add.path.clone());
        self.written.extend(adds);
        Ok(path)
    }

    /// The data files of a table without partitions, by path, with what takes each out of it.
    pub fn files(&self) -> Result<BTreeMap<String, (SealedFile, Remove)>, StoreError> {
        let snapshot = self.table.snapshot().map_err(self.error("read the table"))?;
        let of = |file: deltalake_core::kernel::LogicalFileView| {
            (file.path().to_string(), (tags::sealed(&self.folder, &file), file.remove_action(true)))
        };
        let files: BTreeMap<String, (SealedFile, Remove)> = snapshot.log_data().into_iter().map(of).collect();
        self.fetch(files.values().map(|(file, _)| file))?;
        Ok(files)
    }

    /// Brings the files that are not here, where the store is on object storage.
    pub(super) fn fetch<'a>(&self, files: impl Iterator<Item = &'a SealedFile>) -> Result<(), StoreError> {
        let store = self.folder.parent().unwrap_or(&self.folder);
        super::remote::fetch(store, files.map(SealedFile::path))
    }

    /// Makes what was written visible, all at once, together with the numbers in `progress`, and takes out what is
    /// `gone`. All of it is on the disk then.
    pub fn commit(&mut self, progress: &[(String, u64)], gone: Gone) -> Result<(), StoreError> {
        let runtime = self.runtime.clone();
        runtime
            .block_on(self.commit_pending(progress, gone))
            .map_err(|e| table_error(&self.dir, "commit to the table", e))?;
        self.pending = false;
        Ok(())
    }

    async fn commit_pending(&mut self, progress: &[(String, u64)], gone: Gone) -> DeltaResult<()> {
        let mut adds = std::mem::take(&mut self.written);
        adds.extend(self.writer.finish().await?);
        adds.sort_by(|a, b| a.path.cmp(&b.path));
        tags::seal(&self.folder, &mut adds)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        self.newest = self.newest.max(now);
        for add in &mut adds {
            self.newest += 1;
            add.modification_time = self.newest;
        }
        let snapshot = self.table.snapshot()?;
        let mut actions: Vec<Action> = adds.into_iter().map(Action::Add).collect();
        let mode = match gone {
            Gone::Nothing => SaveMode::Append,
            Gone::Everything => {
                let all =
                    snapshot.log_data().into_iter().map(|file| Action::Remove(file.remove_action(true)));
                actions.extend(all);
                SaveMode::Overwrite
            }
            Gone::Files(files) => {
                actions.extend(files.into_iter().map(Action::Remove));
                SaveMode::Overwrite
            }
        };
        let operation = DeltaOperation::Write {
            mode,
            partition_by: Some(snapshot.metadata().partition_columns().to_vec()),
            predicate: None,
        };
        commit(&mut self.table, actions, operation, progress).await
    }

    /// Replaces files by others of the same content.
    pub fn rewrite(&mut self, mut adds: Vec<Add>, mut gone: Vec<Remove>) -> Result<(), StoreError> {
        adds.iter_mut().for_each(|add| add.data_change = false);
        tags::seal(&self.folder, &mut adds).map_err(|source| StoreError::Io {
            path: self.folder.clone(),
            action: "read what was merged in",
            source,
        })?;
        gone.iter_mut().for_each(|file| file.data_change = false);
        let runtime = self.runtime.clone();
        let done = runtime.block_on(async {
            let actions =
                adds.into_iter().map(Action::Add).chain(gone.into_iter().map(Action::Remove)).collect();
            let operation = DeltaOperation::Optimize { predicate: None, target_size: 0 };
            commit(&mut self.table, actions, operation, &[]).await
        });
        done.map_err(|e| table_error(&self.dir, "merge small files", e))
    }

    /// Takes in what others committed.
    pub(super) fn update(&mut self) -> DeltaResult<()> {
        self.runtime.clone().block_on(self.table.update_state())
    }

    /// What runs the table's work.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The folder of the table.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes an error of what was attempted.
    pub fn error(&self, action: &'static str) -> impl FnOnce(DeltaTableError) -> StoreError {
        let dir = self.dir.clone();
        move |source| table_error(&dir, action, source)
    }

    /// Adds a batch to what the next commit will hold.
    pub fn write(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        self.pending = true;
        let written = self.runtime.block_on(self.writer.write(&batch));
        written.map_err(|e| table_error(&self.dir, "write to the table", e))
    }
}

/// The number kept under an application's name.
pub(super) async fn progress(table: &DeltaTable, application: &str) -> DeltaResult<Option<u64>> {
    let snapshot = table.snapshot()?;
    let number = snapshot.transaction_version(table.log_store().as_ref(), application).await?;
    Ok(number.map(|n| u64::try_from(n).unwrap_or(0)))
}

async fn commit(
    table: &mut DeltaTable,
    actions: Vec<Action>,
    operation: DeltaOperation,
    progress: &[(String, u64)],
) -> DeltaResult<()> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let marks = progress.iter().map(|(name, n)| Transaction::new(name, number(*n))).collect();
    let properties = CommitProperties::default().with_application_transactions(marks);
    let snapshot = table.snapshot()?;
    CommitBuilder::from(properties)
        .with_actions(actions)
        .build(Some(snapshot), table.log_store(), operation)
        .await?;
    table.update_state().await
}

/// The error of what was attempted in a store.
pub fn table_error(dir: &str, action: &'static str, source: DeltaTableError) -> StoreError {
    StoreError::Table { dir: dir.to_owned(), action, source: Box::new(source) }
}

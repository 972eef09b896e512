//! The tables as the committer writes them: whole batches, synced, with the numbers of the frames they hold.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Add, Remove, Transaction};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::writer::{DeltaWriter, RecordBatchWriter};
use deltalake_core::{DeltaResult, DeltaTable};
use tokio::runtime::Runtime;

use crate::IngestError;
use crate::quarantine::BatchSink;
use crate::writer::{properties, table_error};

/// Name of the application under which a spool's progress is kept in the tables.
pub(crate) fn application(spool: u64) -> String {
    format!("demi-spool/{spool:016x}")
}

/// The same for one source.
pub(crate) fn source_application(spool: u64, source: &str) -> String {
    format!("demi-spool/{spool:016x}/{source}")
}

/// What a commit takes out of the table.
pub(crate) enum Gone {
    /// Nothing: it appends.
    Nothing,
    /// All that was there.
    Everything,
    /// These files.
    Files(Vec<Remove>),
}

/// One table, open for appending.
pub(crate) struct Appender {
    /// Where the store is, for messages.
    dir: String,
    folder: PathBuf,
    runtime: Arc<Runtime>,
    pub table: DeltaTable,
    writer: RecordBatchWriter,
    /// Time given to the newest file; every file gets a later one, which tells their order.
    newest: i64,
    pending: bool,
}

impl Appender {
    pub(crate) fn new(
        store: &Path,
        name: &str,
        runtime: Arc<Runtime>,
        table: DeltaTable,
    ) -> Result<Self, IngestError> {
        let dir = store.display().to_string();
        let failed = |e| table_error(&dir, "open the table", e);
        let snapshot = table.snapshot().map_err(failed)?;
        let newest = snapshot.log_data().into_iter().map(|f| f.modification_time()).max().unwrap_or(0);
        let writer = RecordBatchWriter::for_table(&table).map_err(failed)?;
        let writer = writer.with_writer_properties(properties().map_err(failed)?);
        let folder = store.join(name);
        Ok(Appender { dir, folder, runtime, table, writer, newest, pending: false })
    }

    /// The number kept under an application's name.
    pub(crate) fn progress(&self, application: &str) -> Result<Option<u64>, IngestError> {
        let read = self.runtime.block_on(async {
            let snapshot = self.table.snapshot()?;
            snapshot.transaction_version(self.table.log_store().as_ref(), application).await
        });
        let number = read.map_err(|e| table_error(&self.dir, "read the table's progress", e))?;
        Ok(number.map(|n| u64::try_from(n).unwrap_or(0)))
    }

    /// Whether something was written since the last commit.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending
    }

    /// The files of a system's partition.
    pub(crate) fn files_of(&self, system: &str) -> Result<Vec<Remove>, IngestError> {
        let snapshot = self.table.snapshot().map_err(self.error("read the table"))?;
        let is_of = |values: &std::collections::HashMap<String, Option<String>>| {
            values.get("system").and_then(Option::as_deref) == Some(system)
        };
        let files = snapshot.log_data().into_iter().filter(|file| is_of(&file.partition_values_map()));
        Ok(files.map(|file| file.remove_action(true)).collect())
    }

    /// Makes what was written visible, all at once, together with the numbers in `progress`, and takes out what is
    /// `gone`. Data and log are synced to the disk.
    pub(crate) fn commit(&mut self, progress: &[(String, u64)], gone: Gone) -> Result<(), IngestError> {
        let runtime = self.runtime.clone();
        runtime
            .block_on(self.commit_pending(progress, gone))
            .map_err(|e| table_error(&self.dir, "commit to the table", e))?;
        self.pending = false;
        self.sync_log().map_err(|source| self.io(source))
    }

    async fn commit_pending(&mut self, progress: &[(String, u64)], gone: Gone) -> DeltaResult<()> {
        let mut adds = self.writer.flush().await?;
        adds.sort_by(|a, b| a.path.cmp(&b.path));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        self.newest = self.newest.max(now);
        for add in &mut adds {
            self.newest += 1;
            add.modification_time = self.newest;
        }
        sync_files(&self.folder, &adds)?;
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
    pub(crate) fn rewrite(&mut self, mut adds: Vec<Add>, mut gone: Vec<Remove>) -> Result<(), IngestError> {
        adds.iter_mut().for_each(|add| add.data_change = false);
        gone.iter_mut().for_each(|file| file.data_change = false);
        let runtime = self.runtime.clone();
        let done = runtime.block_on(async {
            sync_files(&self.folder, &adds)?;
            let actions =
                adds.into_iter().map(Action::Add).chain(gone.into_iter().map(Action::Remove)).collect();
            let operation = DeltaOperation::Optimize { predicate: None, target_size: 0 };
            commit(&mut self.table, actions, operation, &[]).await
        });
        done.map_err(|e| table_error(&self.dir, "merge small files", e))?;
        self.sync_log().map_err(|source| self.io(source))
    }

    /// Syncs the newest commits and the names of the log's folder.
    fn sync_log(&self) -> io::Result<()> {
        let log = self.folder.join("_delta_log");
        if let Some(version) = self.table.version() {
            File::open(log.join(format!("{version:020}.json")))?.sync_all()?;
        }
        File::open(log)?.sync_all()
    }

    /// Takes in what others committed.
    pub(super) fn update(&mut self) -> DeltaResult<()> {
        self.runtime.clone().block_on(self.table.update_state())
    }

    pub(super) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn error(
        &self,
        action: &'static str,
    ) -> impl FnOnce(deltalake_core::DeltaTableError) -> IngestError {
        let dir = self.dir.clone();
        move |source| table_error(&dir, action, source)
    }

    fn io(&self, source: io::Error) -> IngestError {
        IngestError::Io { path: self.folder.join("_delta_log"), action: "sync the table's log", source }
    }
}

impl BatchSink for Appender {
    fn write(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        self.pending = true;
        let written = self.runtime.block_on(self.writer.write(batch));
        written.map_err(|e| table_error(&self.dir, "write to the table", e))
    }
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

/// Syncs data files and the folders they are in. The library that writes them does not.
fn sync_files(folder: &Path, adds: &[Add]) -> io::Result<()> {
    let mut folders = std::collections::BTreeSet::new();
    for add in adds {
        let path = folder.join(&add.path);
        File::open(&path)?.sync_data()?;
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| dir.starts_with(folder)) {
            folders.insert(dir.to_owned());
            parent = dir.parent();
        }
    }
    folders.iter().try_for_each(|dir| File::open(dir)?.sync_all())
}

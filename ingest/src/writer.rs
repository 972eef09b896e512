//! Appending batches to one table of the store, in atomic commits.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Transaction};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::writer::{DeltaWriter, RecordBatchWriter};
use deltalake_core::{DeltaResult, DeltaTable, DeltaTableError};
use demi_schemas::tables::TABLES_VERSION;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tokio::runtime::Runtime;

use crate::IngestError;

/// Rows of a row group.
const ROW_GROUP: usize = 128 * 1024;
const ZSTD_LEVEL: i32 = 3;

/// Writes to one table under the name of one system.
///
/// Every commit carries an application transaction (`demi-ingest/SYSTEM`, a number that grows by one), so that two
/// loads into one system cannot both commit on what they read.
pub(crate) struct TableWriter {
    dir: String,
    runtime: Arc<Runtime>,
    table: DeltaTable,
    writer: RecordBatchWriter,
    application: String,
    version: i64,
    /// Time given to the newest file, in milliseconds; every file gets a later one, which tells their order.
    newest: i64,
    pending: bool,
}

impl TableWriter {
    pub(crate) fn new(
        dir: String,
        runtime: Arc<Runtime>,
        table: DeltaTable,
        system: &str,
    ) -> Result<Self, IngestError> {
        let application = format!("demi-ingest/{system}");
        let prepared = runtime.block_on(prepare(&table, &application));
        let (writer, version, newest) = prepared.map_err(|e| table_error(&dir, "open the table", e))?;
        Ok(TableWriter { dir, runtime, table, writer, application, version, newest, pending: false })
    }

    /// Adds a batch to what the next commit will hold.
    pub(crate) fn write(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        self.pending = true;
        let written = self.runtime.block_on(self.writer.write(batch));
        written.map_err(|e| table_error(&self.dir, "write to the table", e))
    }

    /// Makes what was written visible, all at once; says whether there was anything.
    pub(crate) fn commit(&mut self) -> Result<bool, IngestError> {
        if !self.pending {
            return Ok(false);
        }
        let runtime = self.runtime.clone();
        runtime
            .block_on(self.commit_pending())
            .map_err(|e| table_error(&self.dir, "commit to the table", e))?;
        self.pending = false;
        Ok(true)
    }

    async fn commit_pending(&mut self) -> DeltaResult<()> {
        let mut adds = self.writer.flush().await?;
        adds.sort_by(|a, b| a.path.cmp(&b.path));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        self.newest = self.newest.max(now);
        for add in &mut adds {
            self.newest += 1;
            add.modification_time = self.newest;
        }
        let snapshot = self.table.snapshot()?;
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: Some(snapshot.metadata().partition_columns().to_vec()),
            predicate: None,
        };
        let transaction = Transaction::new(&self.application, self.version + 1);
        let properties = CommitProperties::default().with_application_transaction(transaction);
        CommitBuilder::from(properties)
            .with_actions(adds.into_iter().map(Action::Add).collect())
            .build(Some(snapshot), self.table.log_store(), operation)
            .await?;
        self.version += 1;
        self.table.update_state().await
    }

    /// The table after the last commit.
    pub(crate) fn into_table(self) -> DeltaTable {
        self.table
    }
}

async fn prepare(table: &DeltaTable, application: &str) -> DeltaResult<(RecordBatchWriter, i64, i64)> {
    let snapshot = table.snapshot()?;
    let version = snapshot.transaction_version(table.log_store().as_ref(), application).await?;
    let newest = snapshot.log_data().into_iter().map(|f| f.modification_time()).max();
    let writer = RecordBatchWriter::for_table(table)?.with_writer_properties(properties()?);
    Ok((writer, version.unwrap_or(0), newest.unwrap_or(0)))
}

/// How files of the store's tables are written.
pub(crate) fn properties() -> DeltaResult<WriterProperties> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(|source| DeltaTableError::Parquet { source })?;
    let version = KeyValue::new("demi.schema".to_owned(), TABLES_VERSION.to_owned());
    Ok(WriterProperties::builder()
        .set_created_by(concat!("demi-lineage ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_key_value_metadata(Some(vec![version]))
        .build())
}

pub(crate) fn table_error(dir: &str, action: &'static str, source: DeltaTableError) -> IngestError {
    IngestError::Table { dir: dir.to_owned(), action, source: Box::new(source) }
}

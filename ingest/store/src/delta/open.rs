//! Opening a table of the store, and making it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use deltalake_core::kernel::StructType;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::{DeltaResult, DeltaTable, DeltaTableBuilder, DeltaTableError};
use demi_schemas::tables::{TABLES_VERSION, TABLES_WITH_DIGESTS};
use tokio::runtime::Runtime;

use super::remote::Remote;
use super::table::table_error;
use super::{check, durable};
use crate::StoreError;
use crate::fs::FileSystem;

/// Name of the table property that holds the version of the columns.
const VERSION_KEY: &str = "demi.schema";

/// Whether a Delta table is there: its log has a file of a version. A process killed while it made the table leaves
/// a log folder that is empty, or has only the file that was to become the first version.
pub(super) fn is_table(dir: &Path) -> bool {
    let Ok(log) = fs::read_dir(dir.join("_delta_log")) else { return false };
    log.flatten().any(|entry| {
        let name = entry.file_name();
        let path = Path::new(&name);
        let numbered = name.as_encoded_bytes().starts_with(b"0");
        numbered && path.extension().is_some_and(|ending| ending == "json" || ending == "parquet")
    })
}

/// Where a table is.
pub(super) struct Place<'a> {
    pub store: &'a Path,
    pub table: &'a str,
    pub files: &'a Arc<dyn FileSystem>,
}

impl Place<'_> {
    /// Opens the table, or makes it if it is not there and `create` is set.
    pub(super) fn open(
        &self,
        runtime: &Runtime,
        create: bool,
        schema: SchemaRef,
        partitions: &[&str],
        stats: &str,
    ) -> Result<DeltaTable, StoreError> {
        let dir = self.store.join(self.table);
        let create = create && {
            let torn = check::remove_torn_first(&**self.files, &dir);
            torn.map_err(|source| StoreError::Io { path: dir.clone(), action: "read this table", source })?;
            !is_table(&dir)
        };
        if !create {
            check::check_commits(&dir, None)?;
        }
        let opened = runtime.block_on(async {
            let builder = self.builder(&dir)?;
            if !create {
                return builder.load().await;
            }
            let columns: StructType = schema.as_ref().try_into_kernel()?;
            let configuration =
                [(VERSION_KEY, Some(TABLES_VERSION)), ("delta.dataSkippingStatsColumns", Some(stats))];
            CreateBuilder::new()
                .with_log_store(builder.build_storage()?)
                .with_columns(columns.fields().cloned())
                .with_partition_columns(partitions.iter().copied())
                .with_configuration(configuration)
                .with_raise_if_key_not_exists(false)
                .await
        });
        opened.map_err(|e| table_error(&self.store.display().to_string(), "open the store's tables", e))
    }

    /// Opens the table as it was at a version.
    pub(super) fn at_version(&self, runtime: &Runtime, version: u64) -> Result<DeltaTable, StoreError> {
        let dir = self.store.join(self.table);
        let opened = runtime.block_on(async { self.builder(&dir)?.with_version(version).load().await });
        opened.map_err(|e| {
            table_error(&self.store.display().to_string(), "open an earlier version of the events", e)
        })
    }

    fn builder(&self, dir: &Path) -> DeltaResult<DeltaTableBuilder> {
        let text = dir.to_str().ok_or_else(|| {
            DeltaTableError::InvalidTableLocation(format!("{} is not valid Unicode", dir.display()))
        })?;
        let url = url::Url::from_directory_path(dir)
            .map_err(|()| DeltaTableError::InvalidTableLocation(text.to_owned()))?;
        let remote = Remote::of(self.store).map_err(|error| DeltaTableError::Generic(error.to_string()))?;
        let storage = durable::Durable::new(self.store.to_owned(), self.files.clone(), remote);
        Ok(DeltaTableBuilder::from_url(url.clone())?.with_storage_backend(Arc::new(storage), url))
    }
}

fn version(table: &DeltaTable) -> DeltaResult<String> {
    Ok(table.snapshot()?.metadata().configuration().get(VERSION_KEY).cloned().unwrap_or_default())
}

/// Whether the table is of an earlier version, which has the digest of each row.
pub(super) fn has_digests(table: &DeltaTable) -> bool {
    version(table).is_ok_and(|version| version == TABLES_WITH_DIGESTS)
}

pub(super) fn check_version(dir: &str, table: &DeltaTable) -> Result<(), StoreError> {
    let found = version(table).map_err(|e| table_error(dir, "read the state of the store's tables", e))?;
    if found == TABLES_VERSION || found == TABLES_WITH_DIGESTS {
        return Ok(());
    }
    Err(StoreError::WrongVersion { dir: dir.to_owned(), found, expected: TABLES_VERSION })
}

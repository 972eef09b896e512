//! A few events as a table: their rows alone are read, page by page, and compared with the digests as they are read.

use std::any::Any;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType as ArrowType;
use demi_lineage::LineageError;
use demi_lineage::execution::{Part, Tables};
use demi_schemas::tables::execution_events;
use polars::prelude::*;

use crate::refused;

/// Up to so many events are read one by one. Polars reads whole columns, with all cores, which is the faster way above.
pub(crate) const FEW: u64 = 1 << 16;

/// The events of a part at these places, which are in order.
pub(crate) struct Few {
    folder: PathBuf,
    part: Part,
    places: Vec<Range<u32>>,
}

impl Few {
    /// The table of these events, in their order.
    pub(crate) fn table(
        folder: PathBuf,
        part: Part,
        places: Vec<Range<u32>>,
    ) -> Result<LazyFrame, LineageError> {
        let all = execution_events();
        let fields = all.fields().iter().map(|f| Field::new(f.name().into(), polars_type(f.data_type())));
        let schema: SchemaRef = Arc::new(fields.collect());
        let args = ScanArgsAnonymous { schema: Some(schema), name: "events", ..ScanArgsAnonymous::default() };
        LazyFrame::anonymous_scan(Arc::new(Few { folder, part, places }), args).map_err(refused)
    }

    fn read(&self, names: &[&str]) -> Result<DataFrame, LineageError> {
        let count = self.places.iter().map(Range::len).sum();
        if names.is_empty() {
            return Ok(DataFrame::empty_with_height(count));
        }
        let rows = Tables::open(&self.folder)?.rows(self.part, names, &self.places)?;
        let columns = names.iter().map(|name| column(&rows, name)).collect::<Result<_, _>>()?;
        DataFrame::new(rows.num_rows(), columns).map_err(refused)
    }
}

impl AnonymousScan for Few {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn scan(&self, asked: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let all = execution_events();
        let names: Vec<&str> = match &asked.with_columns {
            Some(columns) => columns.iter().map(PlSmallStr::as_str).collect(),
            None => all.fields().iter().map(|field| field.name().as_str()).collect(),
        };
        let frame = self.read(&names).map_err(|error| polars_err!(ComputeError: "{error}"))?;
        Ok(asked.n_rows.map_or_else(|| frame.clone(), |rows| frame.head(Some(rows))))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }
}

/// A column of rows.
fn column(rows: &RecordBatch, name: &str) -> Result<Column, LineageError> {
    let unknown = || LineageError::Question(format!("no column '{name}'"));
    let array = rows.column_by_name(name).ok_or_else(unknown)?;
    let name = PlSmallStr::from_str(name);
    Ok(match array.data_type() {
        ArrowType::Boolean => {
            BooleanChunked::from_iter_options(name, array.as_boolean().iter()).into_column()
        }
        ArrowType::Int32 => {
            Int32Chunked::from_iter_options(name, array.as_primitive::<Int32Type>().iter()).into_column()
        }
        ArrowType::Int64 => {
            Int64Chunked::from_iter_options(name, array.as_primitive::<Int64Type>().iter()).into_column()
        }
        _ => StringChunked::from_iter_options(name, array.as_string::<i32>().iter()).into_column(),
    })
}

/// The type of a column of events.
pub(crate) fn polars_type(dtype: &ArrowType) -> DataType {
    match dtype {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int32 => DataType::Int32,
        ArrowType::Int64 => DataType::Int64,
        _ => DataType::String,
    }
}

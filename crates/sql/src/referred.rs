//! The events that an execution refers to, as SQL sees them: scans of the store's files, with columns looked up by the number of the row.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use demi_lineage::LineageError;
use demi_lineage::execution::{ROWS, References, record_schema};
use demi_lineage::query::Query;
use demi_schemas::tables::execution_events;
use polars::io::RowIndex;
use polars::prelude::*;

use crate::few::polars_type;
use crate::reads::Reads;
use crate::refused;

/// Name of the column of row numbers, which nobody sees.
const ROW: &str = "row of the store";

/// What is known of events, by the rows of the store, for threads that scan these.
struct Lookup {
    folder: PathBuf,
    /// By row, its event; read when it is first needed.
    by_row: OnceLock<Vec<Option<u32>>>,
}

impl Lookup {
    /// A column of these rows.
    fn column(&self, name: &str, rows: &Column) -> Result<Column, LineageError> {
        let references = References::open(&self.folder)?;
        let mut events: Vec<u32> = rows.u32().map_err(refused)?.into_no_null_iter().collect();
        if !references.places().in_order() {
            if self.by_row.get().is_none() {
                let all = references.places().events_by_row()?;
                // Who comes second has made the same.
                let _ = self.by_row.set(all);
            }
            let by_row = self.by_row.get();
            let event = |row: &u32| by_row.and_then(|all| *all.get(*row as usize)?);
            // What is no event is left out by the filter, and any value will do.
            events.iter_mut().for_each(|row| *row = event(row).unwrap_or(0));
        }
        let found = references.found(name, &events)?;
        let name = PlSmallStr::from_str(name);
        Ok(match name.as_str() {
            "kept" => BooleanChunked::from_iter_options(name, found.as_boolean().iter()).into_column(),
            "reason" => StringChunked::from_iter_options(name, found.as_string::<i32>().iter()).into_column(),
            _ => {
                Int64Chunked::from_iter_options(name, found.as_primitive::<Int64Type>().iter()).into_column()
            }
        })
    }
}

/// Scans of files that an execution refers to.
pub(crate) struct Referred<'a> {
    references: &'a References,
    reads: &'a Reads,
    lookup: Arc<Lookup>,
}

impl<'a> Referred<'a> {
    /// What an execution refers to.
    pub(crate) fn new(query: &Query, references: &'a References, reads: &'a Reads) -> Referred<'a> {
        let folder = query.folder().join(ROWS);
        Referred { references, reads, lookup: Arc::new(Lookup { folder, by_row: OnceLock::new() }) }
    }

    /// All events, in the order of the rows.
    pub(crate) fn all(&self) -> Result<Vec<LazyFrame>, LineageError> {
        let repeats = self.references.places().rows() > self.references.places().events();
        let events = std::iter::once(0..self.references.places().events());
        let marks = if repeats { Some(Arc::new(Marks::new(self.references, events)?)) } else { None };
        (0..self.references.files().len())
            .map(|file| {
                let frame = self.file(file)?;
                Ok(self.finished(match &marks {
                    Some(marks) => frame.filter(marked(marks)),
                    None => frame,
                }))
            })
            .collect()
    }

    /// The events of these ranges, in the order of the rows.
    pub(crate) fn of(&self, events: &[Range<u32>]) -> Result<Vec<LazyFrame>, LineageError> {
        let marks = Arc::new(Marks::new(self.references, events.iter().cloned())?);
        (0..self.references.files().len())
            .map(|file| Ok(self.finished(self.file(file)?.filter(marked(&marks)))))
            .collect()
    }

    /// The rows of a file with their numbers.
    fn file(&self, file: usize) -> Result<LazyFrame, LineageError> {
        let row_index =
            Some(RowIndex { name: ROW.into(), offset: self.references.places().file_rows()[file] });
        let args = ScanArgsParquet { row_index, ..ScanArgsParquet::default() };
        self.reads.scan(&self.references.files()[file], args)
    }

    /// The columns of the table of events.
    fn finished(&self, mut frame: LazyFrame) -> LazyFrame {
        let there = frame.collect_schema().map(|schema| (*schema).clone()).unwrap_or_default();
        let recorded = record_schema();
        let all = execution_events();
        let column = |name: &str| match recorded.field_with_name(name) {
            Ok(_) if there.contains(name) => col(name),
            Ok(field) => lit(NULL).cast(polars_type(field.data_type())).alias(name),
            Err(_) => self.looked_up(name),
        };
        frame.select(all.fields().iter().map(|field| column(field.name())).collect::<Vec<_>>())
    }

    fn looked_up(&self, name: &str) -> Expr {
        let (lookup, wanted) = (self.lookup.clone(), name.to_owned());
        let dtype = match name {
            "kept" => DataType::Boolean,
            "reason" => DataType::String,
            _ => DataType::Int64,
        };
        let field = Field::new(name.into(), dtype);
        let find =
            move |rows: Column| lookup.column(&wanted, &rows).map_err(|e| polars_err!(ComputeError: "{e}"));
        col(ROW).map(find, move |_, _| Ok(field.clone())).alias(name)
    }
}

/// Rows that are marked, a bit each.
struct Marks(Vec<u64>);

impl Marks {
    fn new(references: &References, events: impl Iterator<Item = Range<u32>>) -> Result<Marks, LineageError> {
        let mut marks = vec![0_u64; references.places().rows().div_ceil(u64::BITS) as usize];
        for event in events.flatten() {
            let row = references.places().row_of(event)?;
            marks[(row / u64::BITS) as usize] |= 1 << (row % u64::BITS);
        }
        Ok(Marks(marks))
    }

    fn has(&self, row: u32) -> bool {
        self.0.get((row / u64::BITS) as usize).is_some_and(|bits| bits & 1 << (row % u64::BITS) != 0)
    }
}

/// Whether a row is marked.
fn marked(marks: &Arc<Marks>) -> Expr {
    let marks = marks.clone();
    let find = move |rows: Column| {
        let found = rows.u32()?.into_no_null_iter().map(|row| Some(marks.has(row)));
        Ok(BooleanChunked::from_iter_options(ROW.into(), found).into_column())
    };
    col(ROW).map(find, |_, _| Ok(Field::new(ROW.into(), DataType::Boolean)))
}

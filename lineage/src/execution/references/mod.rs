//! Rows that an execution refers to: the store's files under second names, and where in them the row of each event is.
//!
//! A data file of a store never changes. Its second name in the execution's folder keeps it when the store merges or deletes it, at no
//! cost where both are on one file system; elsewhere the file is copied. What was found out about an event is kept in flat files by
//! event, as in the order index.

mod places;

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use demi_common::sealed::SealedFile;

pub use self::places::Places;
pub(crate) use self::places::{LIST, write as write_places};
use super::folder::{link, link_sealed};
use crate::error::LineageError;
use crate::index::{ORDERS, Pages, with_file};
use crate::order::{KeepReason, Order, Provenance};
use crate::read::beside;

/// Name of the folder in an execution that refers to rows.
pub const ROWS: &str = "rows";
/// By event: its depth.
const DEPTHS: &str = "depths.bin";
/// By event, one byte: why it was kept or left out, and above that bit whether it was kept.
const KEPT: &str = "kept.bin";
/// Set where an event was kept.
const IS_KEPT: u8 = 1 << 7;

/// Rows of a store that an execution refers to, and what was found out about their events.
pub struct References {
    /// The files.
    pub(crate) files: Vec<SealedFile>,
    /// Where in them the row of each event is.
    pub(crate) places: Places,
    orders: Pages<u32>,
    depths: Pages<u32>,
    kept: Pages<u8>,
}

/// The name of a file in the folder, by its place among those it was built of.
pub(crate) fn name_of(file: usize) -> String {
    format!("{file}.parquet")
}

/// Gives the store's files second names in the folder, which is made. From here on they cannot get lost.
pub(crate) fn hold(folder: &Path, files: &[SealedFile]) -> Result<(), LineageError> {
    std::fs::create_dir(folder).map_err(LineageError::io(folder))?;
    for (number, file) in files.iter().enumerate() {
        let name = folder.join(name_of(number));
        link(file.path(), &name)?;
        file.write_sums(&name).map_err(LineageError::io(&name))?;
    }
    Ok(())
}

/// Writes what was found out about events that were put in order.
pub(crate) fn write(folder: &Path, provenance: &Provenance, order: &Order) -> Result<(), LineageError> {
    with_file(folder, DEPTHS, |out| out.put_numbers(&order.depth))?;
    with_file(folder, KEPT, |out| {
        let all = provenance.kept().iter().zip(provenance.why());
        let bytes: Vec<u8> = all.map(|(&kept, why)| why.code() | if kept { IS_KEPT } else { 0 }).collect();
        out.put(&bytes)
    })
}

/// Gives what the order index has of each event a second name in the folder: the index grows, what is referred to does not.
pub(crate) fn share(folder: &Path, index: &Path) -> Result<(), LineageError> {
    link_sealed(&index.join(ORDERS), &folder.join(ORDERS))
}

impl References {
    /// Opens the folder [`ROWS`] of an execution.
    ///
    /// # Errors
    /// When a file of it cannot be read or does not fit the others.
    pub fn open(folder: &Path) -> Result<References, LineageError> {
        let places = Places::open(folder)?;
        let files = (0..places.file_rows.len()).map(|number| beside(&folder.join(name_of(number))));
        let files: Vec<SealedFile> = files.collect::<Result<_, _>>()?;
        places.check_rows(&files)?;
        let events = places.events;
        Ok(References {
            files,
            places,
            orders: Pages::open(&folder.join(ORDERS), events, true)?,
            depths: Pages::open(&folder.join(DEPTHS), events, true)?,
            kept: Pages::open(&folder.join(KEPT), events, true)?,
        })
    }

    /// The store's files under their second names, in the order in which rows are numbered.
    #[must_use]
    pub fn files(&self) -> &[SealedFile] {
        &self.files
    }

    /// Where the row of each event is.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Rows of the table of events, with the columns of `wanted`: records of these events, and what was found out about them.
    pub(crate) fn complete(
        &self,
        wanted: &SchemaRef,
        events: &[u32],
        records: Option<&RecordBatch>,
    ) -> Result<RecordBatch, LineageError> {
        let column = |name: &str| match records.and_then(|batch| batch.column_by_name(name)) {
            Some(column) => Ok(column.clone()),
            None => self.found(name, events),
        };
        let columns = wanted.fields().iter().map(|field| column(field.name())).collect::<Result<_, _>>()?;
        Ok(RecordBatch::try_new(wanted.clone(), columns)?)
    }

    /// A column of what was found out about these events: `order`, `depth`, `kept` or `reason`.
    ///
    /// # Errors
    /// When there is no such column or event, or a file cannot be read.
    pub fn found(&self, name: &str, events: &[u32]) -> Result<ArrayRef, LineageError> {
        let long = |pages: &Pages<u32>| -> Result<ArrayRef, LineageError> {
            let numbers = events.iter().map(|&event| pages.get(event).map(i64::from));
            Ok(Arc::new(Int64Array::from(numbers.collect::<Result<Vec<_>, _>>()?)))
        };
        match name {
            "order" => long(&self.orders),
            "depth" => long(&self.depths),
            "kept" => {
                let kept = events.iter().map(|&event| Ok(self.kept.get(event)? & IS_KEPT != 0));
                Ok(Arc::new(BooleanArray::from(kept.collect::<Result<Vec<_>, LineageError>>()?)))
            }
            "reason" => {
                let why = events.iter().map(|&event| self.why(event).map(KeepReason::as_str));
                Ok(Arc::new(StringArray::from(why.collect::<Result<Vec<_>, _>>()?)))
            }
            other => Err(self.kept.broken(format!("no column '{other}'"))),
        }
    }

    fn why(&self, event: u32) -> Result<KeepReason, LineageError> {
        let code = self.kept.get(event)? & !IS_KEPT;
        KeepReason::from_code(code).ok_or_else(|| self.kept.broken(format!("event {event} has code {code}")))
    }
}

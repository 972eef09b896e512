//! Rows that an execution refers to: the store's files under second names, and where in them the row of each event is.
//!
//! A data file of a store never changes. Its second name in the execution's folder keeps it when the store merges or deletes it, at no
//! cost where both are on one file system; elsewhere the file is copied. What was found out about an event is kept in flat files by
//! event, as in the order index.

use std::ops::Range;
use std::path::Path;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use demi_common::sealed::{self, SealedFile};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::folder::{link, link_sealed};
use crate::error::LineageError;
use crate::index::{ORDERS, Pages, with_file};
use crate::order::{Order, Provenance, Why};
use crate::read::{NONE, Placement, beside};

/// Name of the folder.
pub(crate) const ROWS: &str = "rows";
/// Name of the list of files.
pub(crate) const LIST: &str = "files.json";
/// By event: its row, files one after the other. Not there where event and row have the same number.
const PLACES: &str = "places.bin";
/// By event: its depth.
const DEPTHS: &str = "depths.bin";
/// By event, one byte: why it was kept or left out, and above that bit whether it was kept.
const KEPT: &str = "kept.bin";
/// Set where an event was kept.
const IS_KEPT: u8 = 1 << 7;

const SCHEMA: &str = "demi-rows/1";

/// What stands in the list of files.
#[derive(Serialize, Deserialize)]
struct List {
    schema: String,
    events: u32,
    /// By file: its rows.
    rows: Vec<u32>,
    /// Whether the row of each event is its number.
    in_order: bool,
}

/// Rows that an execution refers to.
pub(crate) struct References {
    /// The files.
    pub(crate) files: Vec<SealedFile>,
    /// First row of each file.
    pub(crate) file_rows: Vec<u32>,
    /// How many rows there are; more than events where rows repeat others.
    pub(crate) rows: u32,
    /// How many events there are.
    pub(crate) events: u32,
    places: Option<Pages<u32>>,
    orders: Pages<u32>,
    depths: Pages<u32>,
    kept: Pages<u8>,
}

fn name_of(file: usize) -> String {
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

/// Writes where the rows are of events that were put in order, and what was found out about these.
pub(crate) fn write(
    folder: &Path,
    placement: &Placement,
    provenance: &Provenance,
    order: &Order,
) -> Result<(), LineageError> {
    let mut rows: Vec<u32> = placement.file_rows.clone();
    rows.push(placement.event_of_row.len() as u32);
    let in_order = placement.event_of_row.iter().zip(0..).all(|(&event, row)| event == row);
    let list = List {
        schema: SCHEMA.to_owned(),
        events: placement.events as u32,
        rows: rows.windows(2).map(|w| w[1] - w[0]).collect(),
        in_order,
    };
    let path = folder.join(LIST);
    let text = serde_json::to_vec(&list).map_err(LineageError::table(&path))?;
    sealed::write(&path, &text).map_err(LineageError::io(&path))?;
    if !in_order {
        let mut row_of = vec![NONE; placement.events];
        for (&event, row) in placement.event_of_row.iter().zip(0..) {
            if event != NONE {
                row_of[event as usize] = row;
            }
        }
        with_file(folder, PLACES, |out| out.put_numbers(&row_of))?;
    }
    with_file(folder, DEPTHS, |out| out.put_numbers(&order.depth))?;
    with_file(folder, KEPT, |out| {
        let all = provenance.kept.iter().zip(&provenance.why);
        let bytes: Vec<u8> = all.map(|(&kept, why)| why.code() | if kept { IS_KEPT } else { 0 }).collect();
        out.put(&bytes)
    })
}

/// Gives what the order index has of each event a second name in the folder: the index grows, what is referred to does not.
pub(crate) fn share(folder: &Path, index: &Path) -> Result<(), LineageError> {
    link_sealed(&index.join(ORDERS), &folder.join(ORDERS))
}

impl References {
    /// Opens the folder.
    pub(crate) fn open(folder: &Path) -> Result<References, LineageError> {
        let path = folder.join(LIST);
        let text = beside(&path)?.read_to_string().map_err(LineageError::io(&path))?;
        let broken = |reason: String| LineageError::Index { path: path.clone(), reason };
        let list: List = serde_json::from_str(&text).map_err(|e| broken(e.to_string()))?;
        if list.schema != SCHEMA {
            return Err(broken(format!("version '{}', expected '{SCHEMA}'", list.schema)));
        }
        let mut file_rows = Vec::with_capacity(list.rows.len());
        let mut rows = 0_u32;
        for &here in &list.rows {
            file_rows.push(rows);
            rows = rows.checked_add(here).ok_or_else(|| broken("more rows than can be numbered".into()))?;
        }
        if rows < list.events || (list.in_order && rows != list.events) {
            return Err(broken(format!("{} events of {rows} rows", list.events)));
        }
        let files = (0..list.rows.len()).map(|number| beside(&folder.join(name_of(number))));
        let events = list.events;
        Ok(References {
            files: files.collect::<Result<_, _>>()?,
            file_rows,
            rows,
            events,
            places: match list.in_order {
                true => None,
                false => Some(Pages::open(&folder.join(PLACES), events, true)?),
            },
            orders: Pages::open(&folder.join(ORDERS), events, true)?,
            depths: Pages::open(&folder.join(DEPTHS), events, true)?,
            kept: Pages::open(&folder.join(KEPT), events, true)?,
        })
    }

    /// Whether the row of each event is its number.
    pub(crate) fn in_order(&self) -> bool {
        self.places.is_none()
    }

    /// The row of an event.
    pub(crate) fn row_of(&self, event: u32) -> Result<u32, LineageError> {
        let Some(places) = &self.places else { return Ok(event) };
        match places.get(event)? {
            row if row < self.rows => Ok(row),
            row => Err(places.broken(format!("event {event} has row {row}, of {}", self.rows))),
        }
    }

    /// Where the rows of the events in these ranges go; the others are none.
    pub(crate) fn placement(
        &self,
        ranges: impl Iterator<Item = Range<u32>>,
    ) -> Result<Placement, LineageError> {
        let mut event_of_row = vec![NONE; self.rows as usize];
        for event in ranges.flatten() {
            event_of_row[self.row_of(event)? as usize] = event;
        }
        Ok(Placement { event_of_row, file_rows: self.file_rows.clone(), events: self.events as usize })
    }

    /// By row: the event, or [`NONE`].
    pub(crate) fn event_of_row(&self) -> Result<Vec<u32>, LineageError> {
        Ok(self.placement(std::iter::once(0..self.events))?.event_of_row)
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

    /// A column of what was found out about these events.
    pub(crate) fn found(&self, name: &str, events: &[u32]) -> Result<ArrayRef, LineageError> {
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
                let why = events.iter().map(|&event| self.why(event).map(Why::as_str));
                Ok(Arc::new(StringArray::from(why.collect::<Result<Vec<_>, _>>()?)))
            }
            other => Err(self.kept.broken(format!("no column '{other}'"))),
        }
    }

    fn why(&self, event: u32) -> Result<Why, LineageError> {
        let code = self.kept.get(event)? & !IS_KEPT;
        Why::from_code(code).ok_or_else(|| self.kept.broken(format!("event {event} has code {code}")))
    }
}

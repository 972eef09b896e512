//! Where the rows of events are in the files that an execution refers to.

use std::ops::Range;
use std::path::Path;

use demi_common::sealed::{self, SealedFile};
use serde::{Deserialize, Serialize};

use crate::error::LineageError;
use crate::index::{Pages, with_file};
use crate::read::{NONE, Placement, beside, rows_of};

/// Name of the list of files.
pub(crate) const LIST: &str = "files.json";
/// By event: its row, files one after the other. Not there where event and row have the same number.
const PLACES: &str = "places.bin";

const SCHEMA: &str = "demi-rows/1";

/// The content of the list of files.
#[derive(Serialize, Deserialize)]
struct List {
    schema: String,
    events: u32,
    /// By file: its rows.
    rows: Vec<u32>,
    /// Whether the row of each event is its number.
    in_order: bool,
}

/// The row of each event, over files whose rows are numbered one file after the other.
pub struct Places {
    /// First row of each file.
    pub(crate) file_rows: Vec<u32>,
    /// How many rows there are; more than events where rows repeat others.
    rows: u32,
    /// How many events there are.
    pub(crate) events: u32,
    /// Nothing where event and row have the same number.
    row_of: Option<Pages<u32>>,
}

/// Writes it to the folder.
pub(crate) fn write(folder: &Path, placement: &Placement) -> Result<(), LineageError> {
    let mut rows: Vec<u32> = placement.file_rows().to_vec();
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
    if in_order {
        return Ok(());
    }
    let mut row_of = vec![NONE; placement.events];
    for (&event, row) in placement.event_of_row.iter().zip(0..) {
        if event != NONE {
            row_of[event as usize] = row;
        }
    }
    with_file(folder, PLACES, |out| out.put_numbers(&row_of))
}

impl Places {
    /// Reads it from the folder.
    pub(crate) fn open(folder: &Path) -> Result<Places, LineageError> {
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
        if rows < list.events || (list.in_order && rows != list.events) || list.rows.is_empty() {
            return Err(broken(format!("{} events of {rows} rows", list.events)));
        }
        let row_of = match list.in_order {
            true => None,
            false => Some(Pages::open(&folder.join(PLACES), list.events, true)?),
        };
        Ok(Places { file_rows, rows, events: list.events, row_of })
    }

    /// The first row of each file.
    #[must_use]
    pub fn file_rows(&self) -> &[u32] {
        &self.file_rows
    }

    /// How many rows there are: more than events where rows repeat others.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> u32 {
        self.events
    }

    /// By row, its event; nothing in rows that are no event.
    ///
    /// # Errors
    /// When the list of places cannot be read.
    pub fn events_by_row(&self) -> Result<Vec<Option<u32>>, LineageError> {
        let by_row = self.placement()?.event_of_row;
        Ok(by_row.into_iter().map(|event| (event != NONE).then_some(event)).collect())
    }

    /// Compares the numbers of rows with those of the files: nobody's list says how much memory is taken.
    pub(super) fn check_rows(&self, files: &[SealedFile]) -> Result<(), LineageError> {
        let ends = self.file_rows.iter().skip(1).copied().chain([self.rows]);
        for ((file, first), end) in files.iter().zip(&self.file_rows).zip(ends) {
            let (said, rows) = (end - first, rows_of(file)?);
            if said != rows {
                let reason = format!("{LIST} says that it has {said} rows, and it has {rows}");
                return Err(LineageError::Index { path: file.path().to_owned(), reason });
            }
        }
        Ok(())
    }

    /// Whether the row of each event is its number.
    #[must_use]
    pub fn in_order(&self) -> bool {
        self.row_of.is_none()
    }

    /// The row of an event.
    ///
    /// # Errors
    /// When the list of places cannot be read, or names a row that is not there.
    pub fn row_of(&self, event: u32) -> Result<u32, LineageError> {
        let Some(places) = &self.row_of else { return Ok(event) };
        match places.get(event)? {
            row if row < self.rows => Ok(row),
            row => Err(places.broken(format!("event {event} has row {row}, of {}", self.rows))),
        }
    }

    /// Where the rows of all events go.
    pub(crate) fn placement(&self) -> Result<Placement, LineageError> {
        self.placement_of(std::iter::once(0..self.events))
    }

    /// Where the rows of the events in these ranges go; the others are none.
    pub(crate) fn placement_of(
        &self,
        ranges: impl Iterator<Item = Range<u32>>,
    ) -> Result<Placement, LineageError> {
        let mut event_of_row = vec![NONE; self.rows as usize];
        for event in ranges.flatten() {
            event_of_row[self.row_of(event)? as usize] = event;
        }
        Ok(Placement::new(event_of_row, self.file_rows.clone(), self.events as usize))
    }
}

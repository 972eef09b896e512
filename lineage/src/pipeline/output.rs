//! Writing an execution: its order index, what it refers to or a copy of that, its schedule and its summary.

use demi_common::sealed::SealedFile;
use demi_schemas::summary::BuildSummary;

use super::analysis::Lineage;
use super::copy;
use super::options::Extra;
use super::steps::Steps;
use crate::error::LineageError;
use crate::execution::references::{self, ROWS};
use crate::execution::{Folder, SUMMARY, write_summary};
use crate::grow::{self, OpenEnds};
use crate::index;
use crate::read::gather::{Gathering, chosen_in_order};
use crate::read::{Events, Placement, has_value};

/// What the store's rows are.
pub(super) struct Stored<'a> {
    pub(super) files: &'a [SealedFile],
    pub(super) placement: &'a Placement,
}

/// Writes an execution that holds a copy of all records: they are streamed from the store's files to tables and schedule.
pub(super) fn write_copy(
    gathered: Gathering,
    events: &Events,
    lineage: &Lineage,
    summary: &BuildSummary,
    readable: bool,
    folder: &Folder,
) -> Result<(), LineageError> {
    let mut steps = readable.then(|| Steps::new(events, lineage, &folder.scratch()));
    let parts = index::Parts::new(events, &lineage.matching, &lineage.units, &lineage.order);
    // The index needs the rows for nothing but their states.
    let (states, index) = std::thread::scope(|scope| {
        let index = scope.spawn(|| index::write(&folder.index(), &parts));
        let states = copy::write(gathered, events, lineage, steps.as_mut(), folder);
        (states, index.join().unwrap_or(Err(LineageError::WriterGone)))
    });
    index::add_states(&folder.index(), index?, &states?)?;
    if let Some(steps) = steps {
        steps.write(summary, folder)?;
    }
    write_summary(summary, &folder.path(SUMMARY))
}

/// Writes an execution that refers to the store's rows.
pub(super) fn write_references(
    stored: &Stored<'_>,
    events: &Events,
    lineage: &Lineage,
    summary: &BuildSummary,
    extra: Extra,
    readable: bool,
    folder: &Folder,
) -> Result<(), LineageError> {
    let Stored { files, placement } = *stored;
    let parts = index::Parts::new(events, &lineage.matching, &lineage.units, &lineage.order);
    let (states, index) = std::thread::scope(|scope| {
        let index = scope.spawn(|| index::write(&folder.index(), &parts));
        references::write(&folder.path(ROWS), placement, &lineage.provenance, &lineage.order)?;
        let states = has_value(files, "state").map(|rows| {
            let mut told: Vec<u32> = rows
                .into_iter()
                .filter_map(|row| placement.event_of_row.get(row as usize).copied())
                .filter(|&event| event != crate::read::NONE)
                .collect();
            told.sort_unstable();
            told
        });
        Ok::<_, LineageError>((states?, index.join().unwrap_or(Err(LineageError::WriterGone))?))
    })?;
    index::add_states(&folder.index(), index, &states)?;
    references::share(&folder.path(ROWS), &folder.index())?;
    match (extra, &lineage.base) {
        (Extra::Base, Some(facts)) => {
            let open = OpenEnds::begin(&folder.base())?;
            let is_open = |event| OpenEnds::is(event, events, &lineage.matching);
            let mut add = |_: u32, batch: &arrow_array::RecordBatch| open.add(batch);
            let added = chosen_in_order(files, placement, is_open, &folder.scratch(), &mut add);
            // An error of a writer is the cause of an error here.
            open.finish()?;
            added?;
            grow::depths::write(&folder.base(), events, &lineage.matching, &lineage.units, &lineage.order)?;
            facts.write(&folder.base())?;
            write_summary(summary, &folder.path(SUMMARY))?;
            grow::seal_base(folder)
        }
        _ => {
            if readable {
                let mut steps = Steps::new(events, lineage, &folder.scratch());
                steps.read(files, placement)?;
                steps.write(summary, folder)?;
            }
            write_summary(summary, &folder.path(SUMMARY))
        }
    }
}

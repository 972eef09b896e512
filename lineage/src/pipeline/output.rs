//! Writing an execution: its order index, what it refers to or a copy of that, its schedule and its summary.

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use demi_schemas::summary::BuildSummary;

use super::analysis::{self, Lineage};
use super::copy;
use super::options::{Artifact, BuildOptions};
use super::steps::Steps;
use crate::error::LineageError;
use crate::execution::references::{self, Places, ROWS};
use crate::execution::{Folder, SUMMARY, write_summary};
use crate::grow::{self, OpenEnds};
use crate::index;
use crate::read::gather::{Gathering, chosen_in_order};
use crate::read::{Loaded, NONE, Placement, has_value};

/// The output of a build.
pub(super) struct Output<'a> {
    files: &'a [SealedFile],
    loaded: &'a Loaded,
    lineage: &'a Lineage,
    extra: Artifact,
    options: &'a BuildOptions,
    folder: &'a Folder,
}

impl<'a> Output<'a> {
    /// The output of what was found out of these files.
    pub(super) fn new(
        files: &'a [SealedFile],
        loaded: &'a Loaded,
        lineage: &'a Lineage,
        extra: Artifact,
        options: &'a BuildOptions,
        folder: &'a Folder,
    ) -> Output<'a> {
        Output { files, loaded, lineage, extra, options, folder }
    }

    /// Writes an execution. `copied` are the rows on their way to a copy of all records; without them it refers to the rows of the files.
    pub(super) fn write(&self, copied: Option<Gathering>) -> Result<BuildSummary, LineageError> {
        let Output { loaded, lineage, folder, .. } = self;
        let parts = index::Parts::new(&loaded.events, lineage.matching(), lineage.units(), lineage.order());
        let refers = copied.is_none();
        let (written, index) = std::thread::scope(|scope| {
            // The index needs of the records nothing but which of them tell a state.
            let index = scope.spawn(|| index::write(&folder.index(), &parts));
            let written = self.write_rows(copied);
            (written, index.join().unwrap_or(Err(LineageError::WriterGone)))
        });
        let (summary, states) = written?;
        index::add_states(&folder.index(), index?, &states)?;
        if refers {
            references::share(&folder.path(ROWS), &folder.index())?;
        }
        write_summary(&summary, &folder.path(SUMMARY))?;
        if self.extra == Artifact::Base {
            grow::seal_base(folder)?;
        }
        Ok(summary)
    }

    /// Writes all but the order index, and says which events tell a state.
    fn write_rows(&self, copied: Option<Gathering>) -> Result<(BuildSummary, Vec<u32>), LineageError> {
        let Output { files, loaded, lineage, options, folder, .. } = self;
        let events = &loaded.events;
        let provenance = analysis::keep(events, lineage, options);
        let summary = analysis::summarize(loaded, lineage, &provenance, options);
        let readable = self.extra == Artifact::Schedule && summary.kept_deliveries <= options.readable;
        let mut steps = readable.then(|| Steps::new(events, lineage, &provenance, &folder.scratch()));
        let states = match copied {
            Some(rows) => copy::write(rows, events, lineage, &provenance, steps.as_mut(), folder)?,
            None => {
                references::write(&folder.path(ROWS), &provenance, lineage.order())?;
                // Kept on disk while memory was needed for the order.
                let placement = || Places::open(&folder.path(ROWS))?.placement();
                if let Some(steps) = &mut steps {
                    steps.read(files, &placement()?)?;
                }
                if self.extra == Artifact::Base {
                    self.write_base(&placement()?)?;
                }
                told(files, placement)?
            }
        };
        if let Some(steps) = steps {
            steps.write(&summary, folder)?;
        }
        Ok((summary, states))
    }

    /// Writes what the execution can be grown from.
    fn write_base(&self, placement: &Placement) -> Result<(), LineageError> {
        let Output { files, loaded, lineage, folder, .. } = self;
        let (events, matching) = (&loaded.events, lineage.matching());
        let open = OpenEnds::begin(&folder.base())?;
        let is_open = |event| OpenEnds::is(event, events, matching);
        let mut add = |_: u32, batch: &RecordBatch| open.add(batch);
        let added = chosen_in_order(files, placement, is_open, &folder.scratch(), &mut add);
        // An error of a writer is the cause of an error here.
        open.finish()?;
        added?;
        grow::depths::write(&folder.base(), events, matching, lineage.units(), lineage.order())?;
        lineage.base().as_ref().map_or(Ok(()), |facts| facts.write(&folder.base()))
    }
}

/// The events that tell a state, in order.
fn told(
    files: &[SealedFile],
    placement: impl Fn() -> Result<Placement, LineageError>,
) -> Result<Vec<u32>, LineageError> {
    let rows = has_value(files, "state")?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let placement = placement()?;
    let events = rows.into_iter().filter_map(|row| placement.event_of_row.get(row as usize).copied());
    let mut told: Vec<u32> = events.filter(|&event| event != NONE).collect();
    told.sort_unstable();
    Ok(told)
}

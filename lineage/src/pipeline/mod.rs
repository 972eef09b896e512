//! From the store's files to an execution.

mod analysis;
mod copy;
mod options;
mod output;
mod steps;

use std::path::Path;
use std::sync::Arc;

use demi_common::sealed::SealedFile;
use demi_schemas::summary::BuildSummary;

use self::options::Artifact;
pub use self::options::BuildOptions;
use self::output::Output;
use crate::error::LineageError;
use crate::execution::Folder;
use crate::execution::references::{self, ROWS};
use crate::order::{ViolationSpec, violation};
use crate::read::{gather, records};

/// Builds the execution of the events in `files` (Parquet, in the columns of [`tables::store_events`], the partition
/// columns left out) and writes it to the folder `out`, which appears complete or not at all. `progress` is told what is being
/// done.
///
/// The execution refers to the rows of these files, which get second names in `out`, or holds a copy of them. For a copy, the files' order
/// and that of their rows do not matter: the same events give the same bytes.
///
/// # Errors
/// When a file cannot be read, holds no event records, or cannot be written; when the violation names nothing that is
/// there; when `out` holds something else.
pub fn build(
    files: &[SealedFile],
    options: &BuildOptions,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<BuildSummary, LineageError> {
    build_with(files, options, Artifact::Schedule, out, progress, &mut |_| Ok(()))
}

/// Builds an execution of all events that can be grown: without a schedule, with what [`crate::grow`] needs. `seal` writes what
/// else belongs in the folder before it appears.
pub(crate) fn build_base(
    files: &[SealedFile],
    system: &str,
    out: &Path,
    progress: &mut dyn FnMut(&str),
    seal: &mut dyn FnMut(&Folder) -> Result<(), LineageError>,
) -> Result<BuildSummary, LineageError> {
    let options =
        BuildOptions { system: system.to_owned(), violation: ViolationSpec::None, ..BuildOptions::default() };
    build_with(files, &options, Artifact::Base, out, progress, seal)
}

fn build_with(
    files: &[SealedFile],
    options: &BuildOptions,
    extra: Artifact,
    out: &Path,
    progress: &mut dyn FnMut(&str),
    seal: &mut dyn FnMut(&Folder) -> Result<(), LineageError>,
) -> Result<BuildSummary, LineageError> {
    let folder = Folder::begin(out, files)?;
    if !options.copy {
        references::hold(&folder.path(ROWS), files)?;
    }
    progress("1 of 3: reading events");
    let mut loaded = records::read(files, &options.system)?;
    let events = loaded.events.len();
    progress(&format!("2 of 3: matching the messages of {events} events and ordering them"));
    folder.make()?;
    if extra == Artifact::Base {
        let path = folder.base();
        std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
    }
    let target = violation::resolve(&loaded.events, &options.violation)?;
    let placement = Arc::new(std::mem::take(&mut loaded.placement));
    // Where rows go is known before how events hang together.
    let (copied, lineage) = std::thread::scope(|scope| {
        let (placed, folder) = (placement.clone(), &folder);
        let beside = scope.spawn(move || match options.copy {
            true => gather::begin(files, &placed, &folder.scratch()).map(Some),
            false => references::write_places(&folder.path(ROWS), &placed).map(|()| None),
        });
        let lineage = analysis::analyse(files, &mut loaded, placement, target, folder, extra);
        (beside.join().unwrap_or(Err(LineageError::WriterGone)), lineage)
    });
    let (lineage, copied) = (lineage?, copied?);
    progress(&format!("3 of 3: writing the execution of {events} events"));
    let output = Output::new(files, &loaded, &lineage, extra, options, &folder);
    let summary = output.write(copied)?;
    seal(&folder)?;
    folder.finish()?;
    Ok(summary)
}

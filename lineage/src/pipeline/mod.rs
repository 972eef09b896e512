//! From the store's files to an execution.

mod analysis;
mod copy;
mod options;
mod output;
mod steps;

use std::path::Path;

use demi_common::sealed::SealedFile;
use demi_schemas::summary::BuildSummary;

pub use self::options::BuildOptions;
use self::options::Extra;
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
    build_with(files, options, Extra::Schedule, out, progress, &mut |_| Ok(()))
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
    build_with(files, &options, Extra::Base, out, progress, seal)
}

fn build_with(
    files: &[SealedFile],
    options: &BuildOptions,
    extra: Extra,
    out: &Path,
    progress: &mut dyn FnMut(&str),
    seal: &mut dyn FnMut(&Folder) -> Result<(), LineageError>,
) -> Result<BuildSummary, LineageError> {
    let folder = Folder::begin(out, files)?;
    if !options.copy {
        references::hold(&folder.path(ROWS), files)?;
    }
    progress("reading events");
    let mut loaded = records::read(files, &options.system)?;
    progress("matching messages and ordering events");
    folder.make()?;
    if extra == Extra::Base {
        let path = folder.base();
        std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
    }
    let target = violation::resolve(&loaded.events, &options.violation)?;
    let placement = std::mem::take(&mut loaded.placement);
    // Where rows go is known before how events hang together.
    let (copied, lineage) = std::thread::scope(|scope| {
        let begin = || gather::begin(files, &placement, &folder.scratch());
        let copied = options.copy.then(|| scope.spawn(begin));
        let lineage = analysis::analyse(files, &mut loaded, &placement, target, &folder, options, extra);
        (copied.map(|copied| copied.join().unwrap_or(Err(LineageError::WriterGone))), lineage)
    });
    let lineage = lineage?;
    let summary = analysis::summarize(&loaded, &lineage, options);
    progress("writing the execution");
    let readable = summary.kept_deliveries <= options.readable;
    let events = &loaded.events;
    match copied {
        Some(rows) => output::write_copy(rows?, events, &lineage, &summary, readable, &folder)?,
        None => {
            let stored = output::Stored { files, placement: &placement };
            output::write_references(&stored, events, &lineage, &summary, extra, readable, &folder)?;
        }
    }
    seal(&folder)?;
    folder.finish()?;
    Ok(summary)
}

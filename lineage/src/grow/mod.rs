//! Growing an execution: events that were added to a store are put into the order of those that were there.
//!
//! A base is built of all events once. Later events, its delta, are analysed with nothing of the base but its messages on their way,
//! by the code that builds an execution; then the order index of both is written, number by number, and the delta gets tables of its own
//! beside those of the base, which stay as they are. So the work is that of the delta, and a copy of the index.
//!
//! This gives what building everything gives only where no event of the base changes its causes and nothing found of the
//! delta depends on the content of the base. Where that cannot be known at a glance, [`grow`] says why, and all is built anew.

mod base;
mod delta;
pub(crate) mod depths;
mod ids;
mod merge;
mod open;
mod order;
mod tables;

use std::path::Path;

pub(crate) use self::base::{BaseFacts, seal_base};
use self::delta::Delta;
pub(crate) use self::delta::StoreFiles;
pub(crate) use self::open::OpenEnds;
use crate::error::LineageError;
use crate::execution::references::ROWS;
use crate::execution::{
    BASE_FOLDER, EVENTS, Folder, MESSAGES, SUMMARY, TABLES, link_files, link_folder, link_sealed,
    load_summary, write_summary,
};
use crate::index::{INDEX_FOLDER, Index};

/// Most events of a delta, as a share of its base: beyond it, it is time for a new base.
const LARGEST: f64 = 0.25;

/// The reason to build an execution of all events instead of growing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RebuildReason {
    /// There is no base.
    #[error("none that this version keeps was there")]
    NoBase,
    /// The base or the delta has vector clocks, spans, or operations of threads.
    #[error("records have vector clocks or spans, or are operations of threads")]
    Clocks,
    /// A message has no id or one that is a guess, or one for several receivers or for another than who took it.
    #[error("some messages have no ids, or were received by another actor than addressed")]
    NotById,
    /// Rows are gone that the base has.
    #[error("rows are gone from the store")]
    Gone,
    /// The store has other rows under the names of events of the base: it was restored, and went on another way.
    #[error("rows of the store have changed")]
    Changed,
    /// What is kept of the base cannot be used.
    #[error("the kept order is damaged or incomplete")]
    Damaged,
    /// An event is older than the last of its log in the base.
    #[error("events were added before others of their logs")]
    Older,
    /// An id of the base is used again, or what was received in the base is sent in the delta.
    #[error("an id was used again, or a message was sent that had been received")]
    IdAgain,
    /// A channel that kept order does no more.
    #[error("a channel no longer keeps its order")]
    OutOfOrder,
    /// The order has cycles.
    #[error("the order of the added events has a cycle or contradicts a channel")]
    Cycle,
    /// The delta is no longer small.
    #[error("many events were added")]
    Large,
}

/// The outcome of growing.
pub(crate) enum Grown {
    /// The execution is there.
    Done,
    /// It must be built of all events.
    Rebuild(RebuildReason),
}

/// Grows the execution in `out` to the events of the store's files. `seal` writes what else belongs in the folder before it takes the
/// place of `out`.
///
/// # Errors
/// When a file cannot be read or written.
pub(crate) fn grow(
    files: &StoreFiles<'_>,
    system: &str,
    out: &Path,
    progress: &mut dyn FnMut(&str),
    seal: &mut dyn FnMut(&Folder) -> Result<(), LineageError>,
) -> Result<Grown, LineageError> {
    let base_folder = out.join(BASE_FOLDER);
    let Some(facts) = BaseFacts::read(&base_folder)? else {
        return Ok(Grown::Rebuild(RebuildReason::NoBase));
    };
    if let Some(why) = facts.obstacle() {
        return Ok(Grown::Rebuild(why));
    }
    progress("reading added events");
    let base = Index::open(&base_folder.join(INDEX_FOLDER))?;
    let folder = Folder::begin(out, files.all())?;
    folder.make()?;
    let path = folder.base();
    std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
    let delta = match Delta::read(files, &base, &base_folder.join(open::OPEN), system, &folder.scratch())? {
        Ok(delta) => delta,
        Err(why) => return Ok(Grown::Rebuild(why)),
    };
    progress("ordering added events");
    let ordered = delta.map(|delta| order::order(delta, &base, &facts, &base_folder)).transpose()?;
    let order = match ordered.transpose() {
        Ok(order) => order,
        Err(why) => return Ok(Grown::Rebuild(why)),
    };
    progress("writing the execution");
    for name in [EVENTS, MESSAGES].iter().filter(|name| out.join(name).is_file()) {
        link_sealed(&out.join(name), &folder.path(name))?;
    }
    if out.join(ROWS).is_dir() {
        link_folder(&out.join(ROWS), &folder.path(ROWS))?;
    }
    let made = Path::new(TABLES).join(MESSAGES);
    if out.join(&made).is_file() {
        std::fs::create_dir(folder.path(TABLES)).map_err(LineageError::io(&folder.path(TABLES)))?;
        link_sealed(&out.join(&made), &folder.path("").join(&made))?;
    }
    base::link_all(&base_folder, &folder.base())?;
    let Some(order) = order else {
        // The store has the same rows in other files.
        link_files(&base_folder.join(INDEX_FOLDER), &folder.index())?;
        link_sealed(&base_folder.join(SUMMARY), &folder.path(SUMMARY))?;
        seal(&folder)?;
        folder.finish()?;
        return Ok(Grown::Done);
    };
    std::thread::scope(|scope| {
        let tables = scope.spawn(|| tables::write(&order, &folder));
        let states = || tables.join().unwrap_or(Err(LineageError::WriterGone));
        merge::write(&folder.index(), &base, &order, states)
    })?;
    let summary = order.summary(&load_summary(&base_folder)?);
    write_summary(&summary, &folder.path(SUMMARY))?;
    seal(&folder)?;
    folder.finish()?;
    Ok(Grown::Done)
}

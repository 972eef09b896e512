//! The order of a store's events, which is built once and grown when events were added.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use demi_common::sealed::{DAMAGED, SealedFile};
use demi_common::{FolderError, path_name};
use demi_lineage::query::{RebuildReason, Refreshed};
use demi_lineage::window::Window;
use demi_lineage::{BuildOptions, LineageError};
use demi_schemas::summary::{BackwardStamps, BuildSummary};
use demi_store::{Store, backward_stamps};
use tempfile::TempDir;

use super::incomplete::Incomplete;
use demi_commands::ui::Ui;

/// How often the files of a store are looked at anew.
const LOOKS: u32 = 5;

/// Whether a folder is an event store, or the mirror of one on object storage.
pub fn is_store(path: &Path) -> bool {
    demi_store::is_mirror(path) || path.join("events").join("_delta_log").is_dir()
}

/// The folder of a store: a path is itself, and an address on object storage has a mirror.
pub fn folder_of(place: &Path) -> Result<PathBuf, Box<dyn Error>> {
    Ok(demi_store::folder_of(place)?)
}

/// What reads the place of a store on the command line.
pub fn place() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|place| demi_store::folder_of(&place))
}

/// The system that is meant: the one that is named, or the only one of the store.
pub fn system(store: &Store, named: Option<&str>) -> Result<String, Box<dyn Error>> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    match store.systems()?.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err("the store holds no events".into()),
        many => {
            Err(format!("the store holds several systems; name one with --system: {}", many.join(", "))
                .into())
        }
    }
}

/// An order of events.
pub struct Order {
    /// Its folder.
    pub folder: PathBuf,
    /// What it was built from, where that is a store: the store and the system.
    pub store: Option<(Store, String)>,
    /// Where the folder is, if it is not kept: as long as this lives.
    pub temporary: Option<TempDir>,
}

/// The systems of a store.
pub fn systems(place: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    Ok(Store::open(place)?.systems()?)
}

/// An execution that was built of a store.
pub struct Built {
    pub summary: BuildSummary,
    /// What is missing in the store.
    pub incomplete: Incomplete,
    store: Store,
}

impl Built {
    /// Notes the folder of the execution beside the store: who deletes events is told of it. A store that cannot be written is built of all
    /// the same.
    pub fn note(&self, out: &Path) {
        let _ = self.store.note_execution(out);
    }
}

/// Builds an execution of a store.
pub fn build(
    place: &Path,
    named: Option<&str>,
    mut options: BuildOptions,
    window: &Window,
    refuse_incomplete: bool,
    out: &Path,
    ui: &Ui,
) -> Result<Built, Box<dyn Error>> {
    let mut store = Store::open(place)?;
    let system = system(&store, named)?;
    let incomplete = Incomplete::of_store(&store, &system)?;
    if refuse_incomplete {
        incomplete.refuse()?;
    }
    options.backwards = backward_stamps(&store, &system)?;
    options.system.clone_from(&system);
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let result = with_files(&mut store, &system, |files| {
        super::find::build_window(files, options.clone(), window, out, &mut say)
    });
    bar.finish_and_clear();
    Ok(Built { summary: result?, incomplete, store })
}

/// Builds an execution of files that hold a past of a system of a store.
pub fn build_of(
    place: &Path,
    files: Vec<SealedFile>,
    mut options: BuildOptions,
    refuse_incomplete: bool,
    out: &Path,
    ui: &Ui,
) -> Result<Built, Box<dyn Error>> {
    let store = Store::open(place)?;
    let incomplete = Incomplete::of_store(&store, &options.system)?;
    if refuse_incomplete {
        incomplete.refuse()?;
    }
    options.backwards = backward_stamps(&store, &options.system)?;
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let result = super::find::build(&files, &options, out, &mut say);
    bar.finish_and_clear();
    Ok(Built { summary: result?, incomplete, store })
}

/// Reads the files of a system. Who loses one of them to a daemon that merged it away and removed it looks again at what there is.
pub fn with_files<T>(
    store: &mut Store,
    system: &str,
    mut read: impl FnMut(&[SealedFile]) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let mut left = LOOKS;
    loop {
        let files = store.event_files(system)?;
        left -= 1;
        match read(&files) {
            Err(_) if left > 0 && files.iter().any(|file| !file.path().exists()) => store.refresh()?,
            done => return done,
        }
    }
}

/// The order of an execution's folder; that of a store is built when it is not there, and grown when events were added. Where it cannot
/// be kept in the store, it is built in a temporary folder.
pub fn order(target: &Path, named: Option<&str>, ui: &Ui) -> Result<Order, Box<dyn Error>> {
    if !is_store(target) {
        return Ok(Order { folder: target.to_owned(), store: None, temporary: None });
    }
    let mut store = Store::open(target)?;
    let system = system(&store, named)?;
    let mut folder = store.order_of(&system);
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let mut refresh = |store: &mut Store, folder: &Path| {
        with_files(store, &system, |files| {
            demi_lineage::query::refresh(files, &system, folder, &mut say).map_err(Into::into)
        })
    };
    let (mut built, mut temporary) = (refresh(&mut store, &folder), None);
    let reason = built.as_ref().err().and_then(|error| why_not_kept(error.as_ref(), store.dir()));
    if reason.is_some() {
        let place = tempfile::Builder::new().prefix(".demi-lineage-").tempdir()?;
        folder = place.path().join(path_name(&system));
        temporary = Some(place);
        built = refresh(&mut store, &folder);
    }
    bar.finish_and_clear();
    let built = built?;
    doubts(&folder, built == Refreshed::Current && reason.is_none(), ui);
    match (built, reason) {
        (_, Some(reason)) => {
            ui.note(&format!("{reason}, so the order was built in a temporary folder and is not kept"));
        }
        (Refreshed::Current, None) => {}
        (Refreshed::Grown, None) => ui.note(&format!("added new events to {}", folder.display())),
        (Refreshed::Built(why), None) => {
            ui.note(&format!("built {} of all events: {why}", folder.display()));
        }
    }
    Ok(Order { folder, store: Some((store, system)), temporary })
}

/// Says what is odd about an order: once each, where it was built just now, and otherwise that there is something. A summary that cannot be read is
/// no matter here: who answers from the order finds it, and mends it.
fn doubts(folder: &Path, is_known: bool, ui: &Ui) {
    let warnings =
        demi_lineage::execution::load_summary(folder).map_or_else(|_| Vec::new(), |read| read.warnings);
    match (warnings.len(), is_known) {
        (0, _) => {}
        (1, true) => ui.note("there is 1 doubt about the order: `query stats` says which"),
        (count, true) => {
            ui.note(&format!("there are {count} doubts about the order: `query stats` says which"))
        }
        (_, false) => warnings.iter().for_each(|warning| ui.note(&format!("warning: {warning}"))),
    }
}

impl Order {
    /// What is missing in the store; `None` where it was built of none. What was deleted there is not missing.
    pub fn incomplete(&self) -> Result<Option<Incomplete>, Box<dyn Error>> {
        let of = |(store, system): &(Store, String)| Incomplete::of_store(store, system);
        self.store.as_ref().map(of).transpose()
    }

    /// Actors whose stamps run backwards, as loads into the store found them; `None` where it was built of none.
    pub fn backward_stamps(&self) -> Result<Option<Vec<BackwardStamps>>, Box<dyn Error>> {
        Ok(match &self.store {
            Some((store, system)) => Some(backward_stamps(store, system)?),
            None => None,
        })
    }

    /// The files of the store's quarantine; `None` where it was built of none.
    pub fn quarantine_files(&self) -> Result<Option<Vec<SealedFile>>, Box<dyn Error>> {
        Ok(match &self.store {
            Some((store, system)) => Some(store.quarantine_files(system)?),
            None => None,
        })
    }

    /// Builds the order of a store anew where a question failed over what was kept of it, and gives whether it did.
    pub fn mend(&mut self, error: &(dyn Error + 'static), ui: &Ui) -> Result<bool, Box<dyn Error>> {
        let Some((store, system)) = &mut self.store else { return Ok(false) };
        if self.temporary.is_some() || !is_about(error, &self.folder) {
            return Ok(false);
        }
        let (system, folder) = (system.clone(), &self.folder);
        let bar = ui.progress();
        let mut say = |stage: &str| bar.set_message(stage.to_owned());
        with_files(store, &system, |files| {
            demi_lineage::query::rebuild(files, &system, folder, &mut say).map_err(Into::into)
        })?;
        bar.finish_and_clear();
        ui.note(&format!("built {} of all events: {}", folder.display(), RebuildReason::Damaged));
        Ok(true)
    }
}

/// Whether an error says that a file in the folder is not what was written.
fn is_about(error: &(dyn Error + 'static), folder: &Path) -> bool {
    match error.downcast_ref::<LineageError>() {
        Some(
            LineageError::Io { path, .. }
            | LineageError::Table { path, .. }
            | LineageError::Index { path, .. },
        ) => path.starts_with(folder),
        _ => error.to_string().contains(DAMAGED),
    }
}

/// Why an order cannot be kept in the store, if that is what an error says.
fn why_not_kept(error: &(dyn Error + 'static), store: &Path) -> Option<String> {
    if is_read_only(error) {
        return Some(format!("{} cannot be written", store.display()));
    }
    match error.downcast_ref::<LineageError>() {
        Some(LineageError::Folder(FolderError::Io { .. })) | None => None,
        Some(LineageError::Folder(error)) => Some(error.to_string()),
        Some(_) => None,
    }
}

/// Whether an error says that nothing may be written in that place.
fn is_read_only(error: &(dyn Error + 'static)) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(io.kind(), PermissionDenied | ReadOnlyFilesystem);
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use demi_formats::{Source, Sources};
    use demi_store::LoadOptions;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_store_that_cannot_be_written_is_asked_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("store")).unwrap();
        let log = b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n";
        let sources = Sources(vec![Source::stream("log", Box::new(&log[..]))]);
        demi_store::load(&mut store, sources, &LoadOptions::new("s"), |_| {}).unwrap();
        // Nobody makes folders there, whatever the permissions of who runs the test.
        std::os::unix::fs::symlink("/sys/kernel", store.dir().join("orders")).unwrap();
        let order = order(store.dir(), None, &Ui::silent()).unwrap();
        assert!(demi_lineage::execution::is_execution(&order.folder) && order.temporary.is_some());
        let place = order.folder.clone();
        drop(order);
        assert!(!place.exists(), "nothing stays");
        // What else goes wrong is still told.
        let other = std::io::Error::from(std::io::ErrorKind::StorageFull);
        assert!(!is_read_only(&other));
    }

    #[test]
    fn who_loses_a_file_looks_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("store")).unwrap();
        let log = b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n";
        let sources = Sources(vec![Source::stream("log", Box::new(&log[..]))]);
        demi_store::load(&mut store, sources, &LoadOptions::new("s"), |_| {}).unwrap();
        let mut looks = 0;
        let failed: Result<(), _> = with_files(&mut store, "s", |_| {
            looks += 1;
            Err("something else".into())
        });
        assert!(failed.is_err() && looks == 1, "{looks}");
        let (mut looks, mut away) = (0, None);
        let found = with_files(&mut store, "s", |files| {
            looks += 1;
            match looks {
                1 => {
                    std::fs::rename(&files[0], folder.path().join("away")).unwrap();
                    away = Some(files[0].clone());
                    Err("gone".into())
                }
                _ => {
                    std::fs::rename(folder.path().join("away"), away.as_ref().unwrap()).unwrap();
                    Ok(files.len())
                }
            }
        });
        assert_eq!((found.unwrap(), looks), (1, 2));
    }
}

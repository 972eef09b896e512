//! The order of a store's events, which is built once and grown when events were added.

use std::error::Error;
use std::path::{Path, PathBuf};

use demi_common::path_name;
use demi_ingest::Store;
use demi_order::query::Refreshed;

use demi_lineage::ui::Ui;

/// The folder of a store in which the orders of its systems are kept.
const ORDERS: &str = "orders";

/// Whether a folder is an event store.
pub fn is_store(path: &Path) -> bool {
    path.join("events").join("_delta_log").is_dir()
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

/// The folder of an execution; that of a store is built when it is not there, and grown when events were added.
pub fn folder(target: &Path, named: Option<&str>, ui: &Ui) -> Result<PathBuf, Box<dyn Error>> {
    Ok(order(target, named, ui)?.0)
}

/// The folder of an order, and what it was built from where that is a store.
type Order = (PathBuf, Option<(Store, String)>);

/// As [`folder`], with the store and the system where the target is a store.
pub fn order(target: &Path, named: Option<&str>, ui: &Ui) -> Result<Order, Box<dyn Error>> {
    if !is_store(target) {
        return Ok((target.to_owned(), None));
    }
    let store = Store::open(target)?;
    let system = system(&store, named)?;
    let files = store.event_files(&system)?;
    let folder = store.dir().join(ORDERS).join(path_name(&system));
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let built = demi_order::query::refresh(&files, &system, &folder, &mut say);
    bar.finish_and_clear();
    match built? {
        Refreshed::Current => {}
        Refreshed::Grown => ui.note(&format!("added new events to {}", folder.display())),
        Refreshed::Built(why) => ui.note(&format!("built {} of all events: {why}", folder.display())),
    }
    Ok((folder, Some((store, system))))
}

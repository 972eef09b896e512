//! The order of a store's events, which is built once and grown when events were added.

use std::error::Error;
use std::path::{Path, PathBuf};

use demi_common::durable::sync_folder;
use demi_common::owned::{Kind, check};
use demi_common::path_name;
use demi_ingest::Store;
use demi_order::query::Refreshed;

use demi_lineage::ui::Ui;

/// The folder of a store in which the orders of its systems are kept.
const ORDERS: &str = "orders";

/// How often the files of a store are looked at anew.
const LOOKS: u32 = 5;

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

/// Removes the order of a system of a store, which holds a copy of its events. The next question builds it anew.
pub fn forget(store: &Store, system: &str) -> Result<(), Box<dyn Error>> {
    let orders = store.dir().join(ORDERS);
    let folder = orders.join(path_name(system));
    if !folder.try_exists()? {
        return Ok(());
    }
    check(&folder, Kind::Execution, &[])?;
    std::fs::remove_dir_all(&folder)?;
    Ok(sync_folder(&orders)?)
}

/// The folder of an order, and what it was built from where that is a store.
type Order = (PathBuf, Option<(Store, String)>);

/// Reads the files of a system. Who loses one of them to a daemon that merged it away and removed it looks again at what there is.
pub fn with_files<T>(
    store: &mut Store,
    system: &str,
    mut read: impl FnMut(&[PathBuf]) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let mut left = LOOKS;
    loop {
        let files = store.event_files(system)?;
        left -= 1;
        match read(&files) {
            Err(_) if left > 0 && files.iter().any(|file| !file.exists()) => store.refresh()?,
            done => return done,
        }
    }
}

/// As [`folder`], with the store and the system where the target is a store.
pub fn order(target: &Path, named: Option<&str>, ui: &Ui) -> Result<Order, Box<dyn Error>> {
    if !is_store(target) {
        return Ok((target.to_owned(), None));
    }
    let mut store = Store::open(target)?;
    let system = system(&store, named)?;
    let folder = store.dir().join(ORDERS).join(path_name(&system));
    let bar = ui.progress();
    let mut say = |stage: &str| bar.set_message(stage.to_owned());
    let built = with_files(&mut store, &system, |files| {
        demi_order::query::refresh(files, &system, &folder, &mut say).map_err(Into::into)
    });
    bar.finish_and_clear();
    match built? {
        Refreshed::Current => {}
        Refreshed::Grown => ui.note(&format!("added new events to {}", folder.display())),
        Refreshed::Built(why) => ui.note(&format!("built {} of all events: {why}", folder.display())),
    }
    Ok((folder, Some((store, system))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use demi_ingest::{LoadOptions, Source, Sources};

    use super::*;

    #[test]
    fn who_loses_a_file_looks_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("store")).unwrap();
        let log = b"{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n";
        let sources = Sources(vec![Source::stream("log", Box::new(&log[..]))]);
        demi_ingest::load(&mut store, sources, &LoadOptions::new("s"), |_| {}).unwrap();
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

//! What loads found of stamps that run backwards, kept beside the store.

use std::collections::BTreeSet;
use std::path::PathBuf;

use demi_common::{durable, path_name};
use demi_schemas::summary::BackwardStamps;

use crate::delta::remote;
use crate::stamps::sort;
use crate::{Store, StoreError};

/// The folder of a store in which what was found is kept, a file a system.
const FOLDER: &str = "stamps";

/// Notes what was found of a system while its events came in.
///
/// # Errors
/// When the store cannot be read or written.
pub fn note_news(store: &Store, system: &str, found: &[BackwardStamps]) -> Result<(), StoreError> {
    note(store, system, found, &BTreeSet::new())
}

fn file(store: &Store, system: &str) -> PathBuf {
    store.dir().join(FOLDER).join(format!("{}.json", path_name(system)))
}

/// Actors whose stamps run backwards through their logs, as loads found them.
///
/// # Errors
/// When the store cannot be read.
pub fn backward_stamps(store: &Store, system: &str) -> Result<Vec<BackwardStamps>, StoreError> {
    let path = file(store, system);
    let io = |source| StoreError::Io { path: path.clone(), action: "read this file", source };
    remote::bring_beside(store.dir(), &path)?;
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| io(error.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io(error)),
    }
}

/// Adds what was found. What the same place of the same source said before is replaced, and all that was said of incarnations that were looked at
/// whole.
pub fn note(
    store: &Store,
    system: &str,
    found: &[BackwardStamps],
    whole: &BTreeSet<(String, u32)>,
) -> Result<(), StoreError> {
    let before = backward_stamps(store, system)?;
    let key = |f: &BackwardStamps| (f.actor.clone(), f.incarnation, f.source.clone(), f.line);
    let again: BTreeSet<_> = found.iter().map(key).collect();
    let stays =
        |f: &BackwardStamps| !again.contains(&key(f)) && !whole.contains(&(f.actor.clone(), f.incarnation));
    let mut all: Vec<BackwardStamps> = before.iter().filter(|f| stays(f)).chain(found).cloned().collect();
    sort(&mut all);
    write(store, system, &before, &all)
}

fn write(
    store: &Store,
    system: &str,
    before: &[BackwardStamps],
    all: &[BackwardStamps],
) -> Result<(), StoreError> {
    if before == all {
        return Ok(());
    }
    let path = file(store, system);
    let io = |source| StoreError::Io { path: path.clone(), action: "write this file", source };
    let bytes = serde_json::to_vec_pretty(all).map_err(|error| io(error.into()))?;
    remote::put_beside(store.dir(), &path, &bytes)?;
    durable::write(&path, &bytes).map_err(io)
}

/// Forgets what was found of actors whose events were all deleted; of all where none is named.
pub fn forget(store: &Store, system: &str, actors: &BTreeSet<String>) -> Result<(), StoreError> {
    let before = backward_stamps(store, system)?;
    let stays = |f: &&BackwardStamps| !actors.is_empty() && !actors.contains(&f.actor);
    let all: Vec<BackwardStamps> = before.iter().filter(stays).cloned().collect();
    write(store, system, &before, &all)
}

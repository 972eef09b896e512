//! Places outside a store that hold copies of its events: the spools of its daemons, and executions that were built of it.
//!
//! Who deletes events has to know of them. Paths are kept relative to the store, so that what is moved together stays together.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use demi_common::owned::{self, FolderError, Kind};
use demi_common::path_name;
use serde::{Deserialize, Serialize};

use super::Store;
use crate::StoreError;

pub(super) const FILE: &str = "copies.json";
const FORMAT: &str = "demi-copies/1";

/// Places that hold copies of a store's events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    format: String,
    /// Folders of spools.
    pub spools: BTreeSet<PathBuf>,
    /// Folders of executions.
    pub executions: BTreeSet<PathBuf>,
    /// Folders of backups.
    #[serde(default)]
    pub backups: BTreeSet<PathBuf>,
}

/// The folder of a store in which `query` keeps the orders of its systems.
const ORDERS: &str = "orders";

impl Store {
    /// Where the order of a system is kept.
    #[must_use]
    pub fn order_of(&self, system: &str) -> PathBuf {
        self.dir.join(ORDERS).join(path_name(system))
    }

    /// Removes the kept order of a system, which holds a copy of its events. The next question builds it anew.
    ///
    /// # Errors
    /// When something else is there, or it cannot be removed.
    pub fn forget_order(&self, system: &str) -> Result<(), FolderError> {
        owned::remove(&self.order_of(system), Kind::Execution)
    }

    /// The places that were noted, as paths from here.
    ///
    /// # Errors
    /// When the list is there and cannot be read.
    pub fn copies(&self) -> Result<Copies, StoreError> {
        let mut copies = self.noted()?;
        let own = whole(&self.dir);
        for paths in [&mut copies.spools, &mut copies.executions, &mut copies.backups] {
            *paths = std::mem::take(paths).into_iter().map(|path| tidy(&own.join(path))).collect();
        }
        Ok(copies)
    }

    /// Notes the spool of a daemon that writes into the store.
    ///
    /// # Errors
    /// When the list cannot be read or written.
    pub fn note_spool(&self, spool: &Path) -> Result<(), StoreError> {
        self.note(spool, |copies| &mut copies.spools)
    }

    /// Notes an execution that was built of the store. One inside the store is known by its place.
    ///
    /// # Errors
    /// When the list cannot be read or written.
    pub fn note_execution(&self, execution: &Path) -> Result<(), StoreError> {
        if whole(execution).starts_with(whole(&self.dir)) {
            return Ok(());
        }
        self.note(execution, |copies| &mut copies.executions)
    }

    /// Notes a backup of the store.
    ///
    /// # Errors
    /// When the list cannot be read or written.
    pub(super) fn note_backup(&self, backup: &Path) -> Result<(), StoreError> {
        self.note(backup, |copies| &mut copies.backups)
    }

    /// Notes what another store knows, of which this one is a copy. A copy is none of itself.
    ///
    /// # Errors
    /// When the list cannot be read or written.
    pub(super) fn note_all(&self, known: &Copies) -> Result<(), StoreError> {
        known.spools.iter().try_for_each(|spool| self.note_spool(spool))?;
        known.executions.iter().try_for_each(|execution| self.note_execution(execution))?;
        let own = whole(&self.dir);
        known.backups.iter().filter(|path| whole(path) != own).try_for_each(|path| self.note_backup(path))
    }

    fn noted(&self) -> Result<Copies, StoreError> {
        let path = self.dir.join(FILE);
        let io = |source| StoreError::Io { path: path.clone(), action: "read this file", source };
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| io(error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Copies { format: FORMAT.to_owned(), ..Copies::default() })
            }
            Err(error) => Err(io(error)),
        }
    }

    fn note(
        &self,
        place: &Path,
        of: impl Fn(&mut Copies) -> &mut BTreeSet<PathBuf>,
    ) -> Result<(), StoreError> {
        let mut copies = self.noted()?;
        // What is gone was removed by its owner.
        let own = whole(&self.dir);
        copies.executions.retain(|known| own.join(known).exists());
        copies.backups.retain(|known| own.join(known).exists());
        if !of(&mut copies).insert(seen_from(&own, &whole(place))) {
            return Ok(());
        }
        let path = self.dir.join(FILE);
        let io = |source| StoreError::Io { path: path.clone(), action: "write this file", source };
        let text = serde_json::to_vec_pretty(&copies).map_err(|error| io(error.into()))?;
        demi_common::durable::write(&path, &text).map_err(io)
    }
}

/// A path from the root, as far as it exists without links.
fn whole(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.canonicalize().unwrap_or(absolute)
}

/// A place as seen from a folder; as it is where they have nothing but the root in common.
fn seen_from(folder: &Path, place: &Path) -> PathBuf {
    let (a, b): (Vec<_>, Vec<_>) = (folder.components().collect(), place.components().collect());
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    if common < 2 {
        return place.to_owned();
    }
    let up = std::iter::repeat_n(Component::ParentDir, a.len() - common);
    up.chain(b.into_iter().skip(common)).collect()
}

/// A path without steps up.
fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_after_a_move() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["here/spool", "here/exec"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let store = Store::create(at("here/store")).unwrap();
        store.note_spool(&at("here/spool")).unwrap();
        store.note_spool(&at("here/spool")).unwrap();
        store.note_execution(&at("here/exec")).unwrap();
        store.note_execution(&at("here/store/violations/1/execution")).unwrap();
        drop(store);
        std::fs::rename(at("here"), at("there")).unwrap();
        let store = Store::open(at("there/store")).unwrap();
        let copies = store.copies().unwrap();
        let there = at("there").canonicalize().unwrap();
        assert_eq!(Vec::from_iter(copies.spools), [there.join("spool")]);
        assert_eq!(Vec::from_iter(copies.executions), [there.join("exec")]);
    }
}

//! Where everything of incidents lies.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use demi_common::durable::sync_folder;
use serde::{Deserialize, Serialize};

use crate::event::Stage;
use crate::far::{Far, is_far, said};
use crate::id::IncidentId;

/// The name of the folder.
pub(crate) const FOLDER: &str = "incidents";

/// The folder `incidents` of a store. Where the store is on object storage, it is that of its mirror: what is made goes there, and what is there comes
/// when it is needed.
#[derive(Clone, Debug)]
pub struct Place {
    store: PathBuf,
    root: PathBuf,
}

/// A sign of life of whoever works on an incident.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// How many there were.
    pub count: u64,
    /// The stage.
    #[serde(default)]
    pub stage: Option<Stage>,
    /// Seconds of the stage so far.
    #[serde(default)]
    pub seconds: f64,
}

impl Place {
    /// That of a store.
    #[must_use]
    pub fn of(store: &Path) -> Self {
        Place { store: store.to_owned(), root: store.join(FOLDER) }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The folder with the journal.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of what was made of an incident.
    #[must_use]
    pub fn data(&self, id: IncidentId) -> PathBuf {
        self.root.join("data").join(id.to_string())
    }

    /// The folder of logs or executions that somebody brought, by a name that this crate made.
    #[must_use]
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// The folder of a scenario that is kept with the incidents.
    #[must_use]
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Whether it is on object storage, where each look is a request.
    #[must_use]
    pub fn is_far(&self) -> bool {
        is_far(&self.store)
    }

    /// What is there of a path below the folder, with the path's name there.
    fn far(&self, path: &Path) -> io::Result<Option<(Far, String)>> {
        let Some(far) = Far::of(&self.store, FOLDER).map_err(said)? else { return Ok(None) };
        let within = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let name = within.ok_or_else(|| io::Error::other(format!("{} has no name there", path.display())))?;
        Ok(Some((far, name.to_owned())))
    }

    /// Lets others have a file or folder.
    ///
    /// # Errors
    /// When it cannot be read, or object storage fails.
    pub fn publish(&self, path: &Path) -> io::Result<()> {
        match self.far(path)? {
            Some((far, name)) => far.publish(&name).map_err(said),
            None => Ok(()),
        }
    }

    /// Brings a file or folder that others have, if there is one and it is not here.
    ///
    /// # Errors
    /// When object storage fails, or it cannot be written.
    pub fn bring(&self, path: &Path) -> io::Result<()> {
        match self.far(path)? {
            Some((far, name)) => far.bring(&name).map_err(said),
            None => Ok(()),
        }
    }

    /// Removes a folder, here and there. What is removed stays so after a power cut.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn remove(&self, folder: &Path) -> io::Result<()> {
        if let Some((far, name)) = self.far(folder)? {
            let names = far.list(&name).map_err(said)?.into_keys();
            let names: Vec<String> = names.map(|file| format!("{name}/{file}")).collect();
            far.remove_each(&names).map_err(said)?;
        }
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match folder.parent().filter(|parent| parent.is_dir()) {
            Some(parent) => sync_folder(parent),
            None => Ok(()),
        }
    }

    /// Bytes of what lies in a folder, by name; but for what is in the making.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn sizes(&self, folder: &Path) -> io::Result<BTreeMap<String, u64>> {
        let mut sizes = BTreeMap::new();
        if let Some((far, name)) = self.far(folder)? {
            for (file, bytes) in far.list(&name).map_err(said)? {
                let first = file.split('/').next().unwrap_or_default().to_owned();
                *sizes.entry(first).or_insert(0) += bytes;
            }
            return Ok(sizes);
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(sizes),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                sizes.insert(name, size_of(&entry.path())?);
            }
        }
        Ok(sizes)
    }

    /// The name of the object in which the holder of an attempt gives signs of life.
    #[must_use]
    pub fn lease(id: IncidentId, attempt: u32) -> String {
        format!("lease/{id}-{attempt}.json")
    }
}

/// Bytes of the files in a folder.
fn size_of(folder: &Path) -> io::Result<u64> {
    let (mut left, mut bytes) = (vec![folder.to_owned()], 0);
    while let Some(path) = left.pop() {
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // A child that ends removes what it does not need any more.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => left.push(entry.path()),
                Ok(meta) => bytes += meta.len(),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

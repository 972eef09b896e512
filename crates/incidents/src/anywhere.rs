//! Where a journal lies: in a folder, or on object storage where the store is there.

use std::io;

use crate::far::{Far, said};
use crate::journal::{Journal, JournalError, Rhythm};
use crate::objects::{LocalFolder, Objects};
use crate::place::{FOLDER, Place};

/// Entries of a journal on object storage after which somebody writes down what they come to: who begins reads few, for each is a request.
const FAR_SNAPSHOT: u64 = 100;

/// The objects of a place: a folder, or on object storage where the store is there.
#[derive(Clone, Debug)]
pub struct Anywhere(Where);

#[derive(Clone, Debug)]
enum Where {
    Here(LocalFolder),
    Far(Far),
}

impl Anywhere {
    /// Those of a place. What killed writers left there is in nobody's way, and goes.
    ///
    /// # Errors
    /// When object storage cannot be reached as the environment says.
    pub fn of(place: &Place) -> io::Result<Self> {
        if let Some(far) = Far::of(place.store(), FOLDER).map_err(said)? {
            return Ok(Anywhere(Where::Far(far)));
        }
        let folder = LocalFolder::new(place.root().to_owned());
        // Whoever cannot write only reads.
        let _ = ["journal", "pack"].iter().try_for_each(|name| folder.sweep(name));
        Ok(Anywhere(Where::Here(folder)))
    }

    /// The journal of a place. `by` is who writes.
    ///
    /// # Errors
    /// When it cannot be reached, or an entry cannot be read or is not understood.
    pub fn journal(place: &Place, by: impl Into<String>) -> Result<Journal<Self>, JournalError> {
        let objects = Self::of(place)?;
        let rhythm = match &objects.0 {
            Where::Here(_) => Rhythm::default(),
            Where::Far(_) => Rhythm { snapshot: FAR_SNAPSHOT, ..Rhythm::default() },
        };
        Journal::open_with(objects, by, rhythm)
    }
}

impl Objects for Anywhere {
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        match &self.0 {
            Where::Here(folder) => folder.create(name, bytes),
            Where::Far(far) => far.create(name, bytes).map_err(said),
        }
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match &self.0 {
            Where::Here(folder) => folder.read(name),
            Where::Far(far) => {
                let read = far.read_each(&[name.to_owned()]).map_err(said)?;
                Ok(read.into_iter().next().flatten())
            }
        }
    }

    fn read_each(&self, names: &[String]) -> io::Result<Vec<Option<Vec<u8>>>> {
        match &self.0 {
            Where::Here(folder) => folder.read_each(names),
            Where::Far(far) => far.read_each(names).map_err(said),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Where::Here(folder) => folder.replace(name, bytes),
            Where::Far(far) => far.replace(name, bytes).map_err(said),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match &self.0 {
            Where::Here(folder) => folder.remove(name),
            Where::Far(far) => far.remove_each(&[name.to_owned()]).map_err(said),
        }
    }

    fn remove_each(&self, names: &[String]) -> io::Result<()> {
        match &self.0 {
            Where::Here(folder) => folder.remove_each(names),
            Where::Far(far) => far.remove_each(names).map_err(said),
        }
    }

    fn sync(&self, folder: &str) -> io::Result<()> {
        match &self.0 {
            Where::Here(local) => local.sync(folder),
            Where::Far(_) => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        match &self.0 {
            Where::Here(local) => local.list(folder),
            Where::Far(far) => Ok(far.list(folder).map_err(said)?.into_keys().collect()),
        }
    }
}

//! The few things the spool asks of its folder, so that tests can put a failing disk in its place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use demi_common::regular;
use demi_store::fs::{FileSystem, OpenFile, PRIVATE, create_dirs, os};

/// A folder of files.
pub trait Disk: Send + Sync + 'static {
    /// Names of the files, in no order.
    ///
    /// # Errors
    /// What the system says, as for all of these.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// Also when it is there.
    fn create(&self, name: &str) -> io::Result<Box<dyn OpenFile>>;
    /// Length of a file.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self, name: &str) -> io::Result<u64>;
    /// Fills `into` from `offset` on; says how many bytes there were.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Cuts a file, durably.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&self, name: &str, len: u64) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the names of the folder durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_names(&self) -> io::Result<()>;
    /// Replaces a file by `bytes`, durably and all at once.
    ///
    /// # Errors
    /// What the system says.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
    files: Arc<dyn FileSystem>,
}

impl Folder {
    /// The folder, made durably if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(dir: impl Into<PathBuf>) -> io::Result<Self> {
        Self::create_on(dir, os())
    }

    /// As [`create`](Self::create), on a file system of the caller's choice.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create_on(dir: impl Into<PathBuf>, files: Arc<dyn FileSystem>) -> io::Result<Self> {
        let dir = dir.into();
        create_dirs(&*files, &dir, PRIVATE)?;
        Ok(Folder { dir, files })
    }

    /// A folder that is there.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Folder { dir: dir.into(), files: os() }
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Disk for Folder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        self.files.create(&self.dir.join(name))
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        let path = self.dir.join(name);
        regular::check(&path)?;
        Ok(fs::metadata(path)?.len())
    }

    fn read_at(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let path = self.dir.join(name);
        // A pipe would be opened only when somebody writes to it.
        regular::check(&path)?;
        let file = File::open(path)?;
        let mut got = 0;
        while got < into.len() {
            match file.read_at(&mut into[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(got)
    }

    fn truncate(&self, name: &str, len: u64) -> io::Result<()> {
        let mut file = self.files.open(&self.dir.join(name))?;
        file.cut(len)?;
        file.sync()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(&self.dir.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.files.sync_dir(&self.dir)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let fresh = self.dir.join(format!("{name}.new"));
        match self.files.remove(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = self.files.create(&fresh)?;
        file.append(bytes)?;
        file.sync()?;
        self.files.rename(&fresh, &self.dir.join(name))?;
        self.sync_names()
    }
}

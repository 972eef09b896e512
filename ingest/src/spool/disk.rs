//! The few things the spool asks of a disk, so that tests can put a failing one in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

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
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
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

/// A file that is written at its end.
pub trait DiskFile: Send {
    /// Appends all of `bytes`; after an error any part of them may be there.
    ///
    /// # Errors
    /// What the system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes what was appended durable.
    ///
    /// # Errors
    /// What the system says; nothing is known of what was appended since the last sync.
    fn sync(&mut self) -> io::Result<()>;
    /// Cuts the file; the next append goes there.
    ///
    /// # Errors
    /// What the system says.
    fn cut(&mut self, len: u64) -> io::Result<()>;
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    /// The folder, made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        fs::create_dir_all(&dir)?;
        Ok(Folder { dir })
    }

    /// A folder that is there.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Folder { dir: dir.into() }
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

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.dir.join(name);
        Ok(Box::new(Appender(OpenOptions::new().append(true).create_new(true).open(path)?)))
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.dir.join(name))?.len())
    }

    fn read_at(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let file = File::open(self.dir.join(name))?;
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
        let file = OpenOptions::new().write(true).open(self.dir.join(name))?;
        file.set_len(len)?;
        file.sync_all()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let fresh = self.dir.join(format!("{name}.new"));
        let mut file = File::create(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, self.dir.join(name))?;
        self.sync_names()
    }
}

struct Appender(File);

impl DiskFile for Appender {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

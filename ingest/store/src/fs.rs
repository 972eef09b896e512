//! The few calls that change files, behind a trait, so that tests can cut the power between any two of them.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use demi_common::regular;

/// What the store and the spool ask of a file system when they change something. Nothing is durable before the
/// matching sync: the content of a file before [`OpenFile::sync`], a name before [`sync_dir`](FileSystem::sync_dir)
/// of the folder it is in.
pub trait FileSystem: Debug + Send + Sync + 'static {
    /// Makes a folder, in one that is there.
    ///
    /// # Errors
    /// What the system says, as for all of these; also when it is there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// Also when it is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Opens a file that is there, to write at its end.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
    /// Gives a file a second name, which nothing has yet.
    ///
    /// # Errors
    /// Also when the name is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, in place of what has that name.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// A file that is written at its end.
pub trait OpenFile: Send + Debug {
    /// Appends all of `bytes`; after an error any part of them may be there.
    ///
    /// # Errors
    /// What the system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content durable.
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

/// Opens a file to be locked, and makes it where it is not there.
///
/// # Errors
/// What is there instead, or what the system says.
pub fn lock_file(path: &Path) -> io::Result<File> {
    match regular::check(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create(path),
    }
}

/// The file system of the machine.
#[must_use]
pub fn os() -> Arc<dyn FileSystem> {
    Arc::new(Os)
}

#[derive(Debug)]
struct Os;

impl FileSystem for Os {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(OpenOptions::new().append(true).open(path)?))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl OpenFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

/// Permissions of a folder that nobody but its owner looks into.
pub const PRIVATE: u32 = 0o700;

/// Makes a folder and the folders above it that are missing; all their names are durable afterwards. If it is made, it has these
/// permissions.
pub fn create_dirs(files: &dyn FileSystem, path: &Path, mode: u32) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut at = Some(path.as_path());
    while let Some(dir) = at
        && !dir.is_dir()
    {
        missing.push(dir);
        at = dir.parent();
    }
    if let Some(parent) = at.and_then(Path::parent) {
        // A process that was killed may have made this folder and not synced its name. Where the folder above is not
        // ours to read, it was not made by us either.
        let _ = files.sync_dir(parent);
    }
    let made = !missing.is_empty();
    missing.into_iter().rev().try_for_each(|dir| create_dir(files, dir))?;
    if made { fs::set_permissions(&path, fs::Permissions::from_mode(mode)) } else { Ok(()) }
}

/// Makes a folder, unless it is there, in one that is there; its name is durable afterwards.
pub fn create_dir(files: &dyn FileSystem, dir: &Path) -> io::Result<()> {
    match files.create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !dir.is_dir() => return Err(error),
        _ => {}
    }
    dir.parent().map_or(Ok(()), |parent| files.sync_dir(parent))
}

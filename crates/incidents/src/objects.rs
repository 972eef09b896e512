//! Where the journal lies: a folder, or what can create a name once.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use demi_common::durable;

/// What the names of files in the making begin with.
const STAGE: &str = ".demi-new-";
/// After what time a file in the making is taken for left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// Named objects, of which a name can be taken once. Names are paths with `/`, of parts that this crate makes.
///
/// A local folder has this as hard links, object stores as `If-None-Match: *`. Nothing else is asked of them.
pub trait Objects: Send + Sync {
    /// Takes a name with these bytes. `false` where somebody has taken it. When it returns, both are so after a power cut too.
    ///
    /// # Errors
    /// What the system says. Then nobody knows whether the name was taken.
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool>;

    /// The bytes of a name, if it is taken.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// The bytes of each of some names, if it is taken.
    ///
    /// # Errors
    /// What the system says.
    fn read_each(&self, names: &[String]) -> io::Result<Vec<Option<Vec<u8>>>> {
        names.iter().map(|name| self.read(name)).collect()
    }

    /// Gives a name these bytes, whatever it had. Only its one owner does so.
    ///
    /// # Errors
    /// What the system says.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Removes a name, if it is there.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Removes names, those that are there.
    ///
    /// # Errors
    /// What the system says.
    fn remove_each(&self, names: &[String]) -> io::Result<()> {
        names.iter().try_for_each(|name| self.remove(name))
    }

    /// What was removed from a folder stays so after a power cut.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&self, folder: &str) -> io::Result<()>;

    /// The names in a folder, without it, sorted.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
}

/// A folder on a local disk.
#[derive(Clone, Debug)]
pub struct LocalFolder {
    root: PathBuf,
}

impl LocalFolder {
    /// The folder `root`, which need not be there.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        LocalFolder { root }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a folder whose name outlives a power cut.
    fn make(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let parent = durable::folder_of(folder);
        self.make(parent)?;
        match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        durable::sync_folder(parent)
    }

    /// Writes a file beside `path` and syncs it.
    fn stage(&self, path: &Path, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        let folder = durable::folder_of(path);
        self.make(folder)?;
        let mut file = tempfile::Builder::new().prefix(STAGE).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Removes what writers that were killed left behind in a folder.
    ///
    /// # Errors
    /// What the system says.
    pub fn sweep(&self, folder: &str) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(self.root.join(folder)) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(STAGE) {
                continue;
            }
            let old = entry
                .metadata()
                .and_then(|meta| meta.modified())
                .is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > LEFT_BEHIND));
            if old {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }
}

impl Objects for LocalFolder {
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let path = self.root.join(name);
        let created = match path.exists() {
            true => false,
            false => {
                let file = self.stage(&path, bytes)?;
                // Unlike a rename it takes nobody's place.
                match fs::hard_link(file.path(), &path) {
                    Ok(()) => true,
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
                    Err(error) => return Err(error),
                }
            }
        };
        // Also where somebody else has taken it, who may not have come to this yet.
        durable::sync_folder(durable::folder_of(&path))?;
        Ok(created)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.root.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(name);
        self.make(durable::folder_of(&path))?;
        durable::write(&path, bytes)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn sync(&self, folder: &str) -> io::Result<()> {
        match self.root.join(folder) {
            folder if folder.is_dir() => durable::sync_folder(&folder),
            _ => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

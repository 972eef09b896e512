//! Named objects that somebody keeps with a store on object storage, beside its tables, and files of its mirror that are there too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use demi_common::stays_inside;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::{Error, ObjectStoreExt};

use super::remote::{AT_A_TIME, Remote};
use crate::StoreError;

/// What the names of files in the making begin with, which are nobody else's.
const STAGE: &str = ".demi-new-";
/// How often something is asked for that object storage could not answer, and the first pause, which doubles.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Objects below a folder of a store on object storage. Names are paths with `/` below that folder. Its calls block.
#[derive(Clone, Debug)]
pub struct RemoteObjects {
    remote: Arc<Remote>,
    folder: PathBuf,
}

impl RemoteObjects {
    /// Those below a folder of a store; nothing where the store is no mirror, but a folder by itself.
    ///
    /// # Errors
    /// When object storage cannot be reached as the environment says.
    pub fn of(store: &Path, folder: &str) -> Result<Option<Self>, StoreError> {
        let of = |remote: Arc<Remote>| RemoteObjects { folder: remote.base().join(folder), remote };
        Ok(Remote::of(store)?.map(of))
    }

    /// The folder of the mirror in which files of these names are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes a name with these bytes; `false` where somebody has taken it with others.
    ///
    /// # Errors
    /// When object storage gives a name twice, or fails. Then nobody knows whether the name was taken.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        self.remote.probe()?;
        let (path, bytes) = (self.folder.join(name), Bytes::copy_from_slice(bytes));
        let there = self.remote.wait("write to it", self.remote.put(&path, bytes, true))?;
        Ok(there.is_none())
    }

    /// The bytes of each of some names, if it is taken.
    ///
    /// # Errors
    /// When object storage fails.
    pub fn read_each(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.again("read a file of it", || async {
            let read = names.iter().map(|name| self.read_one(name));
            stream::iter(read).buffered(AT_A_TIME).try_collect().await
        })
    }

    /// Gives a name these bytes, whatever it had.
    ///
    /// # Errors
    /// When object storage fails.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let (path, bytes) = (self.folder.join(name), Bytes::copy_from_slice(bytes));
        self.again("write a file of it", || async {
            self.remote.put(&path, bytes.clone(), false).await.map(|_| ())
        })
    }

    /// Removes names, those that are there.
    ///
    /// # Errors
    /// When object storage fails.
    pub fn remove_each(&self, names: &[String]) -> Result<(), StoreError> {
        self.again("remove a file of it", || async {
            let remove = names.iter().map(|name| self.remove_one(name));
            stream::iter(remove).buffer_unordered(AT_A_TIME).try_collect().await
        })
    }

    /// The names below a folder, without it, with their bytes. A folder with nothing is none.
    ///
    /// # Errors
    /// When object storage fails.
    pub fn list(&self, folder: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        self.again("list its files", || async {
            let object = self.remote.object(&self.folder.join(folder))?;
            let mut names = BTreeMap::new();
            let mut listed = self.remote.objects.list(Some(&object));
            while let Some(meta) = listed.try_next().await? {
                let Some(parts) = meta.location.prefix_match(&object) else { continue };
                let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
                names.insert(parts.join("/"), meta.size);
            }
            Ok::<_, Error>(names)
        })
    }

    /// Writes a file of the mirror to object storage, or all files of a folder, those that are not there as they are here.
    ///
    /// # Errors
    /// When a file cannot be read, or object storage fails.
    pub fn publish(&self, name: &str) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        let io = |source| StoreError::Io { path: path.clone(), action: "read this file", source };
        let there = if path.is_dir() { self.list(name)? } else { BTreeMap::new() };
        let mut files = Vec::new();
        files_below(&path, &mut files).map_err(io)?;
        files.retain(|(file, bytes)| {
            let within = file.strip_prefix(&path).ok().and_then(Path::to_str).unwrap_or_default();
            there.get(within) != Some(bytes)
        });
        self.again("write a file of it", || async {
            let write = files.iter().map(|(file, _)| self.remote.put_file(file, file));
            stream::iter(write).buffer_unordered(AT_A_TIME).try_collect().await
        })
    }

    /// Brings a file, or all files below a folder, those that are not here as they are there. What is nowhere is not brought.
    ///
    /// # Errors
    /// When object storage fails, or a file cannot be written.
    pub fn bring(&self, name: &str) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        let mut names: Vec<PathBuf> = Vec::new();
        for (file, bytes) in self.list(name)? {
            let file = path.join(Some(file).filter(|file| stays_inside(Path::new(file))).unwrap_or_default());
            if fs::metadata(&file).map_or(true, |meta| meta.is_file() && meta.len() != bytes) {
                names.push(file);
            }
        }
        if names.is_empty() && !path.exists() {
            names.push(path);
        }
        self.again("read a file of it", || async {
            let bring = names.iter().map(|file| self.bring_one(file));
            stream::iter(bring).buffer_unordered(AT_A_TIME).try_collect().await
        })
    }

    async fn read_one(&self, name: &str) -> object_store::Result<Option<Vec<u8>>> {
        let object = self.remote.object(&self.folder.join(name))?;
        match self.remote.objects.get(&object).await {
            Ok(found) => Ok(Some(found.bytes().await?.to_vec())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn remove_one(&self, name: &str) -> object_store::Result<()> {
        self.remote.delete(&self.folder.join(name)).await
    }

    async fn bring_one(&self, file: &Path) -> object_store::Result<()> {
        match self.remote.bring(file).await {
            Err(Error::NotFound { .. }) => Ok(()),
            done => done,
        }
    }

    /// Does what can be done twice, some times, until it succeeds.
    fn again<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        action: &'static str,
        mut work: impl FnMut() -> F,
    ) -> Result<T, StoreError> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match self.remote.wait(action, work()) {
                Err(StoreError::Remote { .. }) => std::thread::sleep(pause),
                done => return done,
            }
            pause *= 2;
        }
        self.remote.wait(action, work())
    }
}

/// The files of a folder, or a file, with their bytes.
fn files_below(path: &Path, files: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    let meta = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        meta => meta?,
    };
    if meta.is_file() {
        files.push((path.to_owned(), meta.len()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(STAGE) {
            files_below(&entry.path(), files)?;
        }
    }
    Ok(())
}

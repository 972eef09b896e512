//! The storage under the tables: what it says is written is on the disk.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    RenameTargetMode, Result, UploadPart,
};

use super::commit_sum;
use super::remote::Remote;
use crate::fs::{FileSystem, OpenFile, create_dir};

/// Local files, written so that they outlive a power cut.
///
/// A file is written under another name and synced before it gets its own, so whoever finds the name finds all of the
/// file. The folder is synced before the call returns, and so are the names of the folders above it up to the store's. Everything
/// that the table library writes goes through here: data, commits, checkpoints and `_last_checkpoint`.
#[derive(Debug, Clone)]
pub(super) struct Durable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    local: LocalFileSystem,
    files: Arc<dyn FileSystem>,
    /// The store's folder, whose own name is durable.
    base: PathBuf,
    /// Object storage, where the folder mirrors it.
    remote: Option<Arc<Remote>>,
    /// Folders below whose names are.
    known: Mutex<HashSet<PathBuf>>,
}

impl Durable {
    /// The storage of the store in `base`, an absolute path, which may mirror object storage. Locations are paths from the root of the file system.
    pub(super) fn new(base: PathBuf, files: Arc<dyn FileSystem>, remote: Option<Arc<Remote>>) -> Self {
        let (local, known) = (LocalFileSystem::new(), Mutex::default());
        Durable(Arc::new(Inner { local, files, base, remote, known }))
    }

    /// Writes a file to object storage first. A new file whose name was taken there by another content takes on that content here: whoever wanted to
    /// write it then finds what others wrote.
    async fn put_mirrored(
        &self,
        remote: &Arc<Remote>,
        location: &Location,
        payload: PutPayload,
        create: bool,
    ) -> Result<()> {
        let path = self.0.local.path_to_filesystem(location)?;
        for (path, content, create) in contents(&path, &payload, create) {
            let (to, there) = (remote.clone(), path.clone());
            let bytes = content.clone();
            let other = remote.run(async move { to.put(&there, bytes, create).await }).await?;
            let (inner, at) = (self.0.clone(), path.clone());
            let mine = other.is_none();
            let content = other.unwrap_or(content);
            // What is there already was brought by who looked for what others wrote.
            let write = move || match inner.put_parts(&at, std::iter::once(&content[..]), create) {
                Err(error) if create && error.kind() == ErrorKind::AlreadyExists => Ok(()),
                done => done,
            };
            tokio::task::spawn_blocking(write).await?.map_err(|source| failed(&path, source))?;
            if !mine {
                return Err(failed(&path, ErrorKind::AlreadyExists.into()));
            }
        }
        Ok(())
    }

    /// Runs blocking work that changes files.
    async fn run<T: Send + 'static>(
        &self,
        location: &Location,
        work: impl FnOnce(&Inner, &Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.0.local.path_to_filesystem(location)?;
        let inner = self.0.clone();
        let (done, path) = tokio::task::spawn_blocking(move || (work(&inner, &path), path)).await?;
        done.map_err(|source| failed(&path, source))
    }
}

impl Inner {
    /// Makes the folder of a file, and sees that its name is durable.
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        if dir == self.base || !dir.starts_with(&self.base) || self.known().contains(dir) {
            return Ok(());
        }
        dir.parent().map_or(Ok(()), |parent| self.make_dir(parent))?;
        create_dir(&*self.files, dir)?;
        self.known().insert(dir.to_owned());
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file beside `path`, under a name that listings leave out.
    fn stage(&self, path: &Path) -> io::Result<(PathBuf, Box<dyn OpenFile>)> {
        let dir = path.parent().ok_or(ErrorKind::InvalidInput)?;
        self.make_dir(dir)?;
        let (mut number, mut again) = (1, true);
        loop {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("#{number}"));
            let staged = PathBuf::from(name);
            match self.files.create(&staged) {
                Ok(file) => return Ok((staged, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                // Somebody took the folder away.
                Err(error) if error.kind() == ErrorKind::NotFound && again => {
                    again = false;
                    self.known().clear();
                    self.make_dir(dir)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a staged file its name.
    fn publish(
        &self,
        mut file: Box<dyn OpenFile>,
        staged: &Path,
        path: &Path,
        create: bool,
    ) -> io::Result<()> {
        file.sync()?;
        drop(file);
        if create {
            self.files.link(staged, path)?;
            // What is left of it is in nobody's way.
            let _ = self.files.remove(staged);
        } else {
            self.files.rename(staged, path)?;
        }
        self.sync_dir_of(path)
    }

    fn sync_dir_of(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |dir| self.files.sync_dir(dir))
    }

    fn put(&self, path: &Path, payload: &PutPayload, create: bool) -> io::Result<()> {
        let parts = || payload.iter().map(|bytes| &bytes[..]);
        if is_commit(path) {
            return self.put_parts(path, std::iter::once(&sealed(payload)[..]), create);
        }
        if let Some(sums) = commit_sum::beside(path) {
            let content = commit_sum::of_checkpoint(parts());
            self.put_parts(&sums, std::iter::once(&content[..]), false)?;
        }
        self.put_parts(path, parts(), create)
    }

    fn put_parts<'a>(
        &self,
        path: &Path,
        mut parts: impl Iterator<Item = &'a [u8]>,
        create: bool,
    ) -> io::Result<()> {
        let (staged, mut file) = self.stage(path)?;
        let written = parts.try_for_each(|bytes| file.append(bytes));
        let done = written.and_then(|()| self.publish(file, &staged, path, create));
        if done.is_err() {
            let _ = self.files.remove(&staged);
        }
        done
    }
}

/// A commit as it is written.
fn sealed(payload: &PutPayload) -> Vec<u8> {
    commit_sum::sealed(&payload.iter().map(|bytes| &bytes[..]).collect::<Vec<_>>().concat())
}

/// The files that one file is written as, in their order, and whether each has to be new.
fn contents(path: &Path, payload: &PutPayload, create: bool) -> Vec<(PathBuf, Bytes, bool)> {
    if is_commit(path) {
        return vec![(path.to_owned(), sealed(payload).into(), create)];
    }
    let sums = commit_sum::beside(path).map(|sums| {
        let content = commit_sum::of_checkpoint(payload.iter().map(|bytes| &bytes[..]));
        (sums, content.into(), false)
    });
    sums.into_iter().chain([(path.to_owned(), Bytes::from(payload.clone()), create)]).collect()
}

/// Whether a file is a version of a table.
fn is_commit(path: &Path) -> bool {
    let in_log = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "_delta_log");
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_suffix(".json").unwrap_or_default();
    in_log && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn failed(path: &Path, source: io::Error) -> Error {
    let path = path.display().to_string();
    match source.kind() {
        ErrorKind::NotFound => Error::NotFound { path, source: source.into() },
        ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: source.into() },
        _ => Error::Generic { store: "local files", source: format!("{path}: {source}").into() },
    }
}

impl Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "durable files below {}", self.0.base.display())
    }
}

#[async_trait]
impl ObjectStore for Durable {
    async fn put_opts(
        &self,
        location: &Location,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let create = match opts.mode {
            PutMode::Create => true,
            PutMode::Overwrite => false,
            PutMode::Update(_) => {
                let operation = "replacing one version of a file".to_owned();
                return Err(Error::NotImplemented { operation, implementer: self.to_string() });
            }
        };
        match &self.0.remote {
            Some(remote) => self.put_mirrored(remote, location, payload, create).await?,
            None => self.run(location, move |inner, path| inner.put(path, &payload, create)).await?,
        }
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Location,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let staged = self.run(location, |inner, path| inner.stage(path)).await?;
        let path = self.0.local.path_to_filesystem(location)?;
        Ok(Box::new(Upload { store: self.clone(), location: location.clone(), path, staged: Some(staged) }))
    }

    async fn get_opts(&self, location: &Location, options: GetOptions) -> Result<GetResult> {
        self.0.local.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.0.local.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Location>>,
    ) -> BoxStream<'static, Result<Location>> {
        let store = self.clone();
        let remove = move |location: Result<Location>| {
            let store = store.clone();
            async move {
                let location = location?;
                if let Some(remote) = &store.0.remote {
                    let path = store.0.local.path_to_filesystem(&location)?;
                    let (from, sums) = (remote.clone(), commit_sum::beside(&path));
                    let gone = async move {
                        if let Some(sums) = sums {
                            from.delete(&sums).await?;
                        }
                        from.delete(&path).await
                    };
                    remote.run(gone).await?;
                }
                // Not synced: a file that comes back after a power cut is in nobody's way.
                let remove = |inner: &Inner, path: &Path| {
                    if let Some(sums) = commit_sum::beside(path) {
                        let _ = inner.files.remove(&sums);
                    }
                    match inner.files.remove(path) {
                        // Not everything that object storage has is here.
                        Err(error) if inner.remote.is_some() && error.kind() == ErrorKind::NotFound => Ok(()),
                        done => done,
                    }
                };
                store.run(&location, remove).await?;
                Ok(location)
            }
        };
        locations.map(remove).buffered(10).boxed()
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.local.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Location>,
        offset: &Location,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.local.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Location>) -> Result<ListResult> {
        self.0.local.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Location, to: &Location, options: CopyOptions) -> Result<()> {
        let bytes = self.0.local.get_opts(from, GetOptions::default()).await?.bytes().await?;
        let mode = match options.mode {
            CopyMode::Create => PutMode::Create,
            CopyMode::Overwrite => PutMode::Overwrite,
        };
        self.put_opts(to, bytes.into(), mode.into()).await.map(|_| ())
    }

    async fn rename_opts(&self, from: &Location, to: &Location, options: RenameOptions) -> Result<()> {
        if self.0.remote.is_some() {
            let operation = "giving an object another name".to_owned();
            return Err(Error::NotImplemented { operation, implementer: self.to_string() });
        }
        let from = self.0.local.path_to_filesystem(from)?;
        let create = matches!(options.target_mode, RenameTargetMode::Create);
        let work = move |inner: &Inner, to: &Path| {
            to.parent().map_or(Ok(()), |dir| inner.make_dir(dir))?;
            if create {
                inner.files.link(&from, to)?;
                inner.files.remove(&from)?;
            } else {
                inner.files.rename(&from, to)?;
            }
            inner.sync_dir_of(to)?;
            inner.sync_dir_of(&from)
        };
        self.run(to, work).await
    }
}

/// A file that comes in parts, which are appended as they come.
#[derive(Debug)]
struct Upload {
    store: Durable,
    location: Location,
    path: PathBuf,
    /// `None` once it has its name, or could not be written.
    staged: Option<(PathBuf, Box<dyn OpenFile>)>,
}

impl Upload {
    fn give_up(&mut self) {
        if let Some((staged, _)) = self.staged.take() {
            let _ = self.store.0.files.remove(&staged);
        }
    }

    fn is_over(&self) -> Error {
        failed(&self.path, io::Error::other("this file is written or given up"))
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let written = match &mut self.staged {
            Some((_, file)) => {
                data.iter().try_for_each(|bytes| file.append(bytes)).map_err(|e| failed(&self.path, e))
            }
            None => Err(self.is_over()),
        };
        if written.is_err() {
            self.give_up();
        }
        Box::pin(std::future::ready(written))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let (staged, mut file) = self.staged.take().ok_or_else(|| self.is_over())?;
        if let Some(remote) = &self.store.0.remote {
            let (to, from, path) = (remote.clone(), staged.clone(), self.path.clone());
            let put = match file.sync() {
                Ok(()) => remote.run(async move { to.put_file(&from, &path).await }).await,
                Err(source) => Err(failed(&self.path, source)),
            };
            if put.is_err() {
                let _ = self.store.0.files.remove(&staged);
            }
            put?;
        }
        let publish = move |inner: &Inner, path: &Path| {
            let done = inner.publish(file, &staged, path, false);
            if done.is_err() {
                let _ = inner.files.remove(&staged);
            }
            done
        };
        self.store.run(&self.location, publish).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        self.give_up();
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.give_up();
    }
}

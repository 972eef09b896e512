//! Stores on object storage: `s3://`, `gs://` and `az://`.
//!
//! A store on object storage has a *mirror* on this machine, a folder that is a store like any other and says in [`MARKER`] what it mirrors. Who writes
//! into it writes there first: a version of a table is there when object storage took it under a name that nothing had, and then it is here. Who opens or
//! refreshes it brings the versions that others wrote, and data files come when they are read. So whatever works on a folder works on object storage.
//! Nothing is there but the tables, what loads found of stamps, and [what others keep with a store](super::remote_objects): orders and locks are the machine's own.
//!
//! Object storage may do what was asked for and lose the answer. Asked again, it says that the name is taken: then what is there is compared with what
//! was to be written, and where both are equal it was written.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use bytes::Bytes;
use demi_common::durable;
use demi_common::path_name;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path as Location;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload, WriteMultipart};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use url::Url;

use crate::StoreError;

/// The file of a mirror that says what it mirrors.
const MARKER: &str = ".demi-mirror.json";
/// The schemes of addresses on object storage.
const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"];
/// What the names of environment variables begin with that say how object storage is reached.
const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];
/// How many files come at the same time.
pub(super) const AT_A_TIME: usize = 8;
/// Bytes of a part of a large file.
const PART: usize = 8 << 20;
/// The folder of a table with its versions.
const LOG: &str = "_delta_log";

/// The content of [`MARKER`].
#[derive(Serialize, Deserialize)]
struct Marker {
    url: String,
}

/// The folder in which a place is worked on: a path is itself, and an address on object storage has a mirror below `DEMI_MIRRORS`, or below the
/// user's cache. It is made, and nothing is asked of object storage.
///
/// # Errors
/// When the address cannot be understood, or the mirror cannot be made.
pub fn folder_of(place: &Path) -> Result<PathBuf, StoreError> {
    let Some((scheme, rest)) = place.to_str().and_then(|text| text.split_once("://")) else {
        return Ok(place.to_owned());
    };
    let no = |why: &str| StoreError::Address { url: place.display().to_string(), why: why.to_owned() };
    if scheme == "file" {
        let url = Url::parse(&format!("file://{rest}")).map_err(|error| no(&error.to_string()))?;
        return url.to_file_path().map_err(|()| no("it names no folder of this machine"));
    }
    if !is_known(scheme) {
        return Err(no("stores are folders, or at s3://, gs:// or az://"));
    }
    if !cfg!(feature = "clouds") {
        return Err(no(
            "this build reaches no object storage; one with the feature clouds, as releases are, does",
        ));
    }
    let url = Url::parse(&format!("{scheme}://{}", rest.trim_end_matches('/')))
        .map_err(|error| no(&error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(no("it may hold a secret: credentials come from the environment"));
    }
    let bucket =
        url.host_str().filter(|bucket| !bucket.is_empty()).ok_or_else(|| no("it names no bucket"))?;
    let name = format!("{}-{:016x}", path_name(bucket), xxhash_rust::xxh3::xxh3_64(url.as_str().as_bytes()));
    let dir = mirrors().ok_or_else(|| no("there is no place for its mirror: set DEMI_MIRRORS"))?.join(name);
    let io = |source| StoreError::Io { path: dir.clone(), action: "make this mirror", source };
    let text = serde_json::to_string(&Marker { url: url.to_string() }).map_err(|error| io(error.into()))?;
    match fs::read_to_string(dir.join(MARKER)) {
        Ok(there) if there == text => {}
        Ok(_) => return Err(no(&format!("its mirror {} is of another store", dir.display()))),
        Err(_) => {
            crate::fs::create_dirs(&*crate::fs::os(), &dir, crate::fs::PRIVATE).map_err(io)?;
            durable::write(&dir.join(MARKER), text.as_bytes()).map_err(io)?;
        }
    }
    Ok(dir)
}

/// Whether a folder is the mirror of a store on object storage.
#[must_use]
pub fn is_mirror(dir: &Path) -> bool {
    dir.join(MARKER).is_file()
}

fn is_known(scheme: &str) -> bool {
    SCHEMES.contains(&scheme) || (cfg!(test) && scheme == "memory")
}

fn mirrors() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    of("DEMI_MIRRORS").or_else(|| Some(cache()?.join("demi-lineage").join("mirrors")))
}

/// Those that this process has reached, by mirror.
static REACHED: LazyLock<Mutex<HashMap<PathBuf, Arc<Remote>>>> = LazyLock::new(Mutex::default);

/// Object storage, as the mirror of a store reaches it.
pub(super) struct Remote {
    url: String,
    /// The mirror.
    base: PathBuf,
    /// What stands before the names of all objects.
    prefix: Location,
    pub(super) objects: Arc<dyn ObjectStore>,
    /// Connections live as long as what they were made on.
    runtime: Runtime,
    /// Whether it is known that a name is given once.
    probed: AtomicBool,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Remote {
    /// What the folder mirrors; nothing where it is a store by itself.
    pub(super) fn of(base: &Path) -> Result<Option<Arc<Remote>>, StoreError> {
        if !is_mirror(base) {
            return Ok(None);
        }
        let io = |source| StoreError::Io { path: base.join(MARKER), action: "read this file", source };
        let base = fs::canonicalize(base).map_err(io)?;
        let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remote) = reached.get(&base) {
            return Ok(Some(remote.clone()));
        }
        let text = fs::read_to_string(base.join(MARKER)).map_err(io)?;
        let marker: Marker = serde_json::from_str(&text).map_err(|error| io(error.into()))?;
        let no = |why: String| StoreError::Address { url: marker.url.clone(), why };
        let url = Url::parse(&marker.url).map_err(|error| no(error.to_string()))?;
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| VARIABLES.iter().any(|known| name.starts_with(known)));
        let variables: Vec<(String, String)> = variables.collect();
        if variables.iter().any(|(name, value)| name == "AWS_CONDITIONAL_PUT" && value == "disabled") {
            return Err(no(
                "AWS_CONDITIONAL_PUT=disabled lets two writers lose each other's events".to_owned()
            ));
        }
        let (objects, prefix) = object_store::parse_url_opts(&url, variables)
            .map_err(|source| failed(&marker.url, "reach it", source))?;
        let remote = Arc::new(Remote::new(&base, &marker.url, Arc::from(objects), prefix).map_err(io)?);
        reached.insert(base, remote.clone());
        Ok(Some(remote))
    }

    fn new(
        base: &Path,
        url: &str,
        objects: Arc<dyn ObjectStore>,
        prefix: Location,
    ) -> std::io::Result<Remote> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (url, base) = (url.to_owned(), base.to_owned());
        Ok(Remote { url, base, prefix, objects, runtime, probed: AtomicBool::new(false) })
    }

    /// The mirror, as an absolute path.
    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// Does something with object storage, from any thread that waits.
    pub(super) fn wait<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreError> {
        self.runtime.block_on(work).map_err(|source| failed(&self.url, action, source))
    }

    /// Does something with object storage where its connections live.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> object_store::Result<T> {
        self.runtime.handle().spawn(work).await?
    }

    /// The object that a file of the mirror is.
    pub(super) fn object(&self, path: &Path) -> object_store::Result<Location> {
        let (whole, base) = (Location::from_absolute_path(path)?, Location::from_absolute_path(&self.base)?);
        let inside = whole.prefix_match(&base).ok_or_else(|| Error::Generic {
            store: "mirror",
            source: format!("{} is not in {}", path.display(), self.base.display()).into(),
        })?;
        Ok(self.prefix.parts().chain(inside).collect())
    }

    /// Writes an object. With `create`, only under a name that nothing has: else what is there is given back.
    pub(super) async fn put(
        &self,
        path: &Path,
        content: Bytes,
        create: bool,
    ) -> object_store::Result<Option<Bytes>> {
        let object = self.object(path)?;
        if !create {
            self.objects.put(&object, PutPayload::from_bytes(content)).await?;
            return Ok(None);
        }
        match self
            .objects
            .put_opts(&object, PutPayload::from_bytes(content.clone()), PutMode::Create.into())
            .await
        {
            Ok(_) => Ok(None),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                let there = self.objects.get(&object).await?.bytes().await?;
                // It was taken the first time, and the answer was lost.
                Ok(Some(there).filter(|there| *there != content))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a file of the mirror, which may be large.
    pub(super) async fn put_file(&self, from: &Path, path: &Path) -> object_store::Result<()> {
        let object = self.object(path)?;
        let unread = |source: std::io::Error| Error::Generic { store: "mirror", source: source.into() };
        let mut file = tokio::fs::File::open(from).await.map_err(unread)?;
        let length = file.metadata().await.map_err(unread)?.len();
        let mut upload = None;
        loop {
            let mut part = Vec::with_capacity(PART.min(usize::try_from(length).unwrap_or(PART)));
            let mut some = tokio::io::AsyncReadExt::take(&mut file, PART as u64);
            tokio::io::AsyncReadExt::read_to_end(&mut some, &mut part).await.map_err(unread)?;
            let last = part.len() < PART;
            let upload = match &mut upload {
                // One that is small is one request.
                None if last => return self.put(path, part.into(), false).await.map(|_| ()),
                None => upload.insert(WriteMultipart::new(self.objects.put_multipart(&object).await?)),
                Some(upload) => upload,
            };
            upload.wait_for_capacity(AT_A_TIME).await?;
            upload.put(part.into());
            if last {
                break;
            }
        }
        match upload {
            Some(upload) => upload.finish().await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Removes an object; one that is not there is removed.
    pub(super) async fn delete(&self, path: &Path) -> object_store::Result<()> {
        match self.objects.delete(&self.object(path)?).await {
            Err(Error::NotFound { .. }) => Ok(()),
            done => done,
        }
    }

    /// Refuses object storage that writes an object although its name is taken: two writers would lose each other's events.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        if self.probed.load(Ordering::Relaxed) {
            return Ok(());
        }
        // One that no other process comes to.
        let number = RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
        let path = self.base.join(format!("demi-probe-{number:016x}"));
        let text = |n: u8| Bytes::from(format!("{number:016x} {n}"));
        let holds = self.wait("write to it", async {
            self.put(&path, text(1), true).await?;
            let there = self.put(&path, text(2), true).await?;
            self.delete(&path).await?;
            Ok(there == Some(text(1)))
        })?;
        if holds {
            self.probed.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let why = "it writes an object although its name is taken, so that two writers would lose each other's events";
        Err(StoreError::Address { url: self.url.clone(), why: why.to_owned() })
    }

    /// Brings the versions of tables that others wrote.
    pub(super) fn pull(&self, tables: &[&str]) -> Result<(), StoreError> {
        let pulled =
            self.runtime.block_on(futures::future::join_all(tables.iter().map(|table| self.pull_one(table))));
        pulled.into_iter().collect()
    }

    async fn pull_one(&self, table: &str) -> Result<(), StoreError> {
        let log = self.base.join(table).join(LOG);
        let remote = |source| failed(&self.url, "read its tables", source);
        let object = self.object(&log).map_err(remote)?;
        let local = versions(&log);
        let newest = local.last_key_value().map(|(version, path)| (*version, path.clone()));
        let listed = match &newest {
            Some((version, _)) => {
                // This name comes just before those of the newest version that is here.
                let from = object.clone().join(format!("{version:020}"));
                self.objects.list_with_offset(Some(&object), &from)
            }
            None => self.objects.list(Some(&object)),
        };
        let listed: Vec<ObjectMeta> = listed.try_collect().await.map_err(remote)?;
        let mut wanted = Log::of(listed);
        match &newest {
            Some((version, path)) => {
                let gone = |why: &str| StoreError::Address {
                    url: self.url.clone(),
                    why: format!(
                        "{why}; its mirror {} has {}: remove the mirror if the store was restored or made anew",
                        self.base.display(),
                        path.display()
                    ),
                };
                match wanted.commits.remove(version) {
                    Some(there) => {
                        let there = self.objects.get(&there.location).await.map_err(remote)?;
                        let there = there.bytes().await.map_err(remote)?;
                        if fs::read(path).ok().as_deref() != Some(&there[..]) {
                            return Err(gone("it is another store than it was"));
                        }
                    }
                    // A checkpoint may have taken its place.
                    None if wanted.commits.range(version..).next().is_some()
                        || wanted.checkpoint >= Some(*version) => {}
                    None => return Err(gone("it lacks a version that it had")),
                }
                wanted.commits.retain(|there, _| there > version);
            }
            None => wanted.commits.retain(|version, _| wanted.checkpoint.is_none_or(|last| *version > last)),
        }
        // In their order, so that who reads meanwhile finds no version without those before it.
        let named = |meta: &ObjectMeta| log.join(meta.location.filename().unwrap_or_default());
        let order: Vec<ObjectMeta> = wanted
            .checkpoints
            .into_iter()
            .filter(|meta| newest.is_none() && !named(meta).exists())
            .chain(wanted.commits.into_values())
            .chain(wanted.last.filter(|_| newest.is_none()))
            .collect();
        let bring = order.into_iter().map(|meta| {
            let path = named(&meta);
            async move {
                let content = self.objects.get(&meta.location).await?.bytes().await?;
                object_store::Result::Ok((path, content))
            }
        });
        let mut brought = stream::iter(bring).buffered(AT_A_TIME);
        while let Some((path, content)) = brought.try_next().await.map_err(remote)? {
            let io = |source| StoreError::Io { path: path.clone(), action: "write this file", source };
            fs::create_dir_all(&log).map_err(io)?;
            durable::write(&path, &content).map_err(io)?;
        }
        Ok(())
    }

    /// Brings data files that are not here.
    fn fetch(&self, paths: &[PathBuf]) -> Result<(), StoreError> {
        let missing: Vec<&PathBuf> = paths.iter().filter(|path| !path.exists()).collect();
        self.wait("read a file of it", async {
            let bring = missing.into_iter().map(|path| self.bring(path));
            stream::iter(bring).buffer_unordered(AT_A_TIME).try_collect::<()>().await
        })
    }

    /// Brings a file. It has its name once all of it is here; that it is as it was written is seen by who reads it, from the digests in the table's log.
    pub(super) async fn bring(&self, path: &Path) -> object_store::Result<()> {
        let unwritten = |source: std::io::Error| Error::Generic {
            store: "mirror",
            source: format!("{}: {source}", path.display()).into(),
        };
        let folder = durable::folder_of(path);
        fs::create_dir_all(folder).map_err(unwritten)?;
        let found = self.objects.get(&self.object(path)?).await?;
        let length = found.meta.size;
        let (file, staged) = tempfile::Builder::new()
            .prefix(".demi-new-")
            .tempfile_in(folder)
            .map_err(unwritten)?
            .into_parts();
        let mut file = tokio::fs::File::from_std(file);
        let (mut stream, mut written) = (found.into_stream(), 0);
        while let Some(piece) = stream.try_next().await? {
            written += piece.len() as u64;
            tokio::io::AsyncWriteExt::write_all(&mut file, &piece).await.map_err(unwritten)?;
        }
        tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(unwritten)?;
        if written != length {
            return Err(unwritten(std::io::ErrorKind::UnexpectedEof.into()));
        }
        staged.persist(path).map_err(|error| unwritten(error.error))
    }
}

/// Brings data files of a store that are not here, where it is on object storage.
pub(crate) fn fetch<'a>(store: &Path, paths: impl IntoIterator<Item = &'a Path>) -> Result<(), StoreError> {
    let Some(remote) = Remote::of(store)? else { return Ok(()) };
    let paths: Vec<PathBuf> = paths.into_iter().map(Path::to_owned).collect();
    remote.fetch(&paths)
}

/// Brings a file beside the tables as it is on object storage, where the store is there.
pub(crate) fn bring_beside(store: &Path, path: &Path) -> Result<(), StoreError> {
    let Some(remote) = Remote::of(store)? else { return Ok(()) };
    remote.wait("read a file of it", async {
        match remote.bring(path).await {
            Err(Error::NotFound { .. }) => Ok(()),
            done => done,
        }
    })
}

/// Writes a file beside the tables to object storage, where the store is there.
pub(crate) fn put_beside(store: &Path, path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let Some(remote) = Remote::of(store)? else { return Ok(()) };
    let content = Bytes::copy_from_slice(content);
    remote.wait("write a file of it", async { remote.put(path, content, false).await.map(|_| ()) })
}

fn failed(url: &str, action: &'static str, source: Error) -> StoreError {
    StoreError::Remote { url: url.to_owned(), action, source: Box::new(source) }
}

fn commit(version: u64) -> String {
    format!("{version:020}.json")
}

fn version_of(name: &str) -> Option<u64> {
    name.get(..20)?.parse().ok()
}

/// The versions of a table that are in a folder.
fn versions(log: &Path) -> BTreeMap<u64, PathBuf> {
    let entries = fs::read_dir(log).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let version = version_of(&name).filter(|version| name == commit(*version))?;
        Some((version, entry.path()))
    };
    entries.filter_map(of).collect()
}

/// The log of a table on object storage, as it was listed.
#[derive(Default)]
struct Log {
    commits: BTreeMap<u64, ObjectMeta>,
    /// The version of the newest checkpoint, and its files.
    checkpoint: Option<u64>,
    checkpoints: Vec<ObjectMeta>,
    last: Option<ObjectMeta>,
}

impl Log {
    fn of(listed: Vec<ObjectMeta>) -> Log {
        let mut log = Log::default();
        let name = |meta: &ObjectMeta| meta.location.filename().unwrap_or_default().to_owned();
        let is_checkpoint = |name: &str| name.contains(".checkpoint.") && name.ends_with(".parquet");
        log.checkpoint =
            listed.iter().map(name).filter(|name| is_checkpoint(name)).filter_map(|n| version_of(&n)).max();
        for meta in listed {
            let name = name(&meta);
            if name == "_last_checkpoint" {
                log.last = Some(meta);
            } else if let Some(version) = version_of(&name).filter(|version| name == commit(*version)) {
                log.commits.insert(version, meta);
            } else if log.checkpoint.is_some() && version_of(name.trim_start_matches('_')) == log.checkpoint {
                // With its digests, which stand beside it.
                log.checkpoints.push(meta);
            }
        }
        log
    }
}

#[cfg(test)]
mod tests;

//! A file system that writes down every call that changes it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use demi_store::fs::{FileSystem, OpenFile, os};

/// A call, with paths below the disk's folder.
#[derive(Clone, Debug)]
pub(super) enum Op {
    CreateDir(PathBuf),
    /// A file, known by its number from here on.
    Create(PathBuf, usize),
    Append(usize, Vec<u8>),
    Cut(usize, u64),
    Sync(usize),
    Link(PathBuf, PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncDir(PathBuf),
    /// So many records were acknowledged.
    Acknowledged(u64),
}

/// Which syncs do nothing: that of files, that of folders.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deaf {
    pub files: bool,
    pub dirs: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Recorder {
    disk: PathBuf,
    deaf: Deaf,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    ops: Vec<Op>,
    /// Of each call, what kind it is.
    kinds: Vec<String>,
    numbers: HashMap<PathBuf, usize>,
    files: usize,
}

impl Recorder {
    pub(super) fn new(disk: &Path, deaf: Deaf) -> Self {
        Recorder { disk: disk.to_owned(), deaf, log: Arc::default() }
    }

    pub(super) fn acknowledge(&self, records: u64) {
        let mut log = self.log.lock().unwrap();
        log.ops.push(Op::Acknowledged(records));
        log.kinds.push("acknowledge".to_owned());
    }

    /// What happened, and of what kind each call was.
    pub(super) fn log(&self) -> (Vec<Op>, Vec<String>) {
        let log = self.log.lock().unwrap();
        (log.ops.clone(), log.kinds.clone())
    }

    /// Makes the call and writes it down. Nothing else happens meanwhile.
    fn call<T>(
        &self,
        name: &str,
        path: &Path,
        call: impl FnOnce() -> io::Result<T>,
        op: impl FnOnce(&mut Log, PathBuf) -> Option<Op>,
    ) -> io::Result<T> {
        let mut log = self.log.lock().unwrap();
        let done = call()?;
        let Ok(path) = path.strip_prefix(&self.disk) else { return Ok(done) };
        if let Some(op) = op(&mut log, path.to_owned()) {
            log.ops.push(op);
            log.kinds.push(format!("{name} {}", pattern(path)));
        }
        Ok(done)
    }

    fn inside(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.disk).unwrap_or(path).to_owned()
    }
}

/// The path with everything that numbers or names one of many taken out of it.
fn pattern(path: &Path) -> String {
    let text = path.to_string_lossy();
    let name = |part: &str| match part.split_once(['.', '=']) {
        Some((stem, end)) if stem.len() >= 20 => {
            format!("*.{}", end.trim_end_matches(|c: char| c.is_ascii_digit()))
        }
        Some(("date", _)) => "date=*".to_owned(),
        _ => part.to_owned(),
    };
    text.split('/').map(name).collect::<Vec<_>>().join("/")
}

impl FileSystem for Recorder {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.call("mkdir", path, || os().create_dir(path), |_, path| Some(Op::CreateDir(path)))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut number = 0;
        let file = self.call(
            "create",
            path,
            || os().create(path),
            |log, path| {
                number = log.files;
                log.files += 1;
                log.numbers.insert(path.clone(), number);
                Some(Op::Create(path, number))
            },
        )?;
        Ok(Box::new(Handle { file, number, path: path.to_owned(), recorder: self.clone() }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = os().open(path)?;
        let number = self.log.lock().unwrap().numbers[&self.inside(path)];
        Ok(Box::new(Handle { file, number, path: path.to_owned(), recorder: self.clone() }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.inside(from);
        self.call(
            "link",
            to,
            || os().link(from, to),
            |log, to| {
                let number = log.numbers[&source];
                log.numbers.insert(to.clone(), number);
                Some(Op::Link(source, to))
            },
        )
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.inside(from);
        self.call(
            "rename",
            to,
            || os().rename(from, to),
            |log, to| {
                let number = log.numbers.remove(&source).unwrap();
                log.numbers.insert(to.clone(), number);
                Some(Op::Rename(source, to))
            },
        )
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(
            "remove",
            path,
            || os().remove(path),
            |log, path| {
                log.numbers.remove(&path);
                Some(Op::Remove(path))
            },
        )
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.call("syncdir", path, || Ok(()), |_, path| (!self.deaf.dirs).then_some(Op::SyncDir(path)))
    }
}

#[derive(Debug)]
struct Handle {
    file: Box<dyn OpenFile>,
    number: usize,
    path: PathBuf,
    recorder: Recorder,
}

impl OpenFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let op = Op::Append(self.number, bytes.to_vec());
        self.recorder.call("append", &self.path, || self.file.append(bytes), |_, _| Some(op))
    }

    fn sync(&mut self) -> io::Result<()> {
        let op = (!self.recorder.deaf.files).then_some(Op::Sync(self.number));
        self.recorder.call("sync", &self.path, || Ok(()), |_, _| op)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let op = Op::Cut(self.number, len);
        self.recorder.call("cut", &self.path, || self.file.cut(len), |_, _| Some(op))
    }
}

/// The machine's file system without syncs: what is checked after a cut need not outlive another.
#[derive(Debug)]
pub(super) struct Fast;

#[derive(Debug)]
struct FastFile(Box<dyn OpenFile>);

impl FileSystem for Fast {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        os().create_dir(path)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(FastFile(os().create(path)?)))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(FastFile(os().open(path)?)))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        os().link(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        os().rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        os().remove(path)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl OpenFile for FastFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }
}

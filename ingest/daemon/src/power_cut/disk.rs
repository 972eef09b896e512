//! What is on a disk after its power was cut: all that was synced, and any part of the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::record::Op;

/// A small generator of random numbers (xorshift), so that a seed names a cut.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    File(usize),
    Dir,
}

/// A change of the names in a folder.
#[derive(Clone, Debug)]
enum Change {
    Add(String, Node),
    Remove(String),
    Rename(String, String, Node),
}

#[derive(Debug, Default)]
struct Dir {
    durable: BTreeMap<String, Node>,
    /// Changes since the last sync: after a cut any of them may be there.
    pending: Vec<Change>,
}

#[derive(Debug, Default)]
struct File {
    synced: Vec<u8>,
    current: Vec<u8>,
}

/// A disk while it runs.
#[derive(Debug, Default)]
pub(super) struct Disk {
    dirs: BTreeMap<PathBuf, Dir>,
    files: BTreeMap<usize, File>,
    names: BTreeMap<PathBuf, usize>,
    pub acknowledged: u64,
}

fn split(path: &Path) -> (PathBuf, String) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    (path.parent().unwrap().to_owned(), name)
}

fn apply(names: &mut BTreeMap<String, Node>, change: &Change) {
    match change {
        Change::Add(name, node) => {
            names.insert(name.clone(), node.clone());
        }
        Change::Remove(name) => {
            names.remove(name);
        }
        Change::Rename(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), node.clone());
        }
    }
}

impl Disk {
    /// The disk after these calls.
    pub(super) fn after(ops: &[Op]) -> Self {
        let mut disk = Disk::default();
        disk.dirs.insert(PathBuf::new(), Dir::default());
        ops.iter().for_each(|op| disk.take(op));
        disk
    }

    fn change(&mut self, path: &Path, make: impl FnOnce(String) -> Change) {
        let (dir, name) = split(path);
        self.dirs.get_mut(&dir).unwrap().pending.push(make(name));
    }

    fn take(&mut self, op: &Op) {
        match op {
            Op::CreateDir(path) => {
                self.change(path, |name| Change::Add(name, Node::Dir));
                self.dirs.insert(path.clone(), Dir::default());
            }
            Op::Create(path, number) => {
                self.files.insert(*number, File::default());
                self.names.insert(path.clone(), *number);
                self.change(path, |name| Change::Add(name, Node::File(*number)));
            }
            Op::Append(number, bytes) => self.files.get_mut(number).unwrap().current.extend(bytes),
            Op::Cut(number, len) => self.files.get_mut(number).unwrap().current.truncate(*len as usize),
            Op::Sync(number) => {
                let file = self.files.get_mut(number).unwrap();
                file.synced = file.current.clone();
            }
            Op::Link(from, to) => {
                let number = self.names[from];
                self.names.insert(to.clone(), number);
                self.change(to, |name| Change::Add(name, Node::File(number)));
            }
            Op::Rename(from, to) => {
                let number = self.names.remove(from).unwrap();
                self.names.insert(to.clone(), number);
                let (_, old) = split(from);
                self.change(to, |name| Change::Rename(old, name, Node::File(number)));
            }
            Op::Remove(path) => {
                self.names.remove(path);
                self.change(path, Change::Remove);
            }
            Op::SyncDir(path) => {
                let Dir { durable, pending } = self.dirs.get_mut(path).unwrap();
                pending.drain(..).for_each(|change| apply(durable, &change));
            }
            Op::Acknowledged(records) => self.acknowledged = *records,
        }
    }

    /// Writes what a cut may leave to a folder.
    pub(super) fn cut(&self, random: &mut Random, to: &Path) {
        self.cut_dir(Path::new(""), random, to);
    }

    fn cut_dir(&self, path: &Path, random: &mut Random, to: &Path) {
        fs::create_dir_all(to).unwrap();
        let Dir { durable, pending } = &self.dirs[path];
        let mut names = durable.clone();
        let odds = 1 + random.below(4);
        for change in pending {
            if random.below(4) >= odds {
                apply(&mut names, change);
            }
        }
        for (name, node) in names {
            match node {
                Node::Dir => self.cut_dir(&path.join(&name), random, &to.join(&name)),
                Node::File(number) => fs::write(to.join(&name), self.files[&number].cut(random)).unwrap(),
            }
        }
    }
}

impl File {
    /// What is left of the content.
    fn cut(&self, random: &mut Random) -> Vec<u8> {
        if self.synced == self.current {
            return self.synced.clone();
        }
        match random.below(4) {
            0 => self.synced.clone(),
            1 => self.current.clone(),
            kind => {
                let shorter = self.synced.len().min(self.current.len());
                let longer = self.synced.len().max(self.current.len());
                let longest = if self.current.len() == longer { &self.current } else { &self.synced };
                let end = shorter + random.below(longer - shorter + 1);
                let mut left = longest[..end].to_vec();
                if kind == 3 {
                    // The length got there, the blocks did not.
                    left.resize(longer, 0);
                }
                left
            }
        }
    }
}

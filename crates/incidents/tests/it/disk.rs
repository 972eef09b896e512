//! Objects in memory, which lose what was not synced when the power goes, and whose answers may get lost.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};

use demi_incidents::Objects;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

#[derive(Default)]
struct Inner {
    names: BTreeMap<String, Vec<u8>>,
    /// Names since the last sync of their folder: after a power cut any of them may be gone. The file itself was synced before.
    unsynced: Vec<String>,
    /// What was removed since the last sync of its folder: after a power cut any of it may be back.
    removed: Vec<(String, Vec<u8>)>,
    /// After so many calls the power goes.
    left: Option<u32>,
    /// Whether the answer of the next successful creation gets lost.
    lose_answer: bool,
}

/// What happens at some moment.
type Then = Box<dyn FnOnce() + Send>;

/// A disk that several writers share.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Inner>>, Arc<Mutex<Option<Then>>>);

impl Disk {
    /// Another disk with the same names.
    pub fn copy(&self) -> Disk {
        let disk = Disk::default();
        disk.0.lock().unwrap().names.clone_from(&self.0.lock().unwrap().names);
        disk
    }

    /// Something happens just before the next creation, whose writer sleeps meanwhile.
    pub fn before_creation(&self, then: impl FnOnce() + Send + 'static) {
        *self.1.lock().unwrap() = Some(Box::new(then));
    }

    /// All names, and what stands there.
    pub fn all(&self) -> BTreeMap<String, Vec<u8>> {
        self.0.lock().unwrap().names.clone()
    }

    /// The power goes after so many more calls.
    pub fn cut_after(&self, calls: u32) {
        self.0.lock().unwrap().left = Some(calls);
    }

    /// The next creation succeeds and says that it failed.
    pub fn lose_answer(&self) {
        self.0.lock().unwrap().lose_answer = true;
    }

    /// The power is back: names whose folder was not synced may be gone, from the last on.
    pub fn restart(&self, seed: u64) {
        let mut inner = self.0.lock().unwrap();
        inner.left = None;
        let unsynced = std::mem::take(&mut inner.unsynced);
        let mut random = StdRng::seed_from_u64(seed);
        let keep = random.random_range(0..=unsynced.len());
        for name in &unsynced[keep..] {
            inner.names.remove(name);
        }
        for (name, bytes) in std::mem::take(&mut inner.removed) {
            if random.random() {
                inner.names.entry(name).or_insert(bytes);
            }
        }
    }

    /// Writes over an object, as a defect of the disk does.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        change(self.0.lock().unwrap().names.get_mut(name).unwrap());
    }
}

impl Inner {
    fn step(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("the power is gone")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Objects for Disk {
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let then = self.1.lock().unwrap().take();
        if let Some(then) = then {
            then();
        }
        let mut inner = self.0.lock().unwrap();
        // Writing and syncing the file, its name, its folder: the power may go between any two.
        inner.step()?;
        if inner.names.contains_key(name) {
            return Ok(false);
        }
        inner.step()?;
        inner.names.insert(name.to_owned(), bytes.to_vec());
        inner.unsynced.push(name.to_owned());
        inner.step()?;
        inner.unsynced.clear();
        if std::mem::take(&mut inner.lose_answer) {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(true)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut inner = self.0.lock().unwrap();
        inner.step()?;
        Ok(inner.names.get(name).cloned())
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.step()?;
        inner.names.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.step()?;
        if let Some(bytes) = inner.names.remove(name) {
            inner.removed.push((name.to_owned(), bytes));
        }
        Ok(())
    }

    fn sync(&self, folder: &str) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.step()?;
        let within = format!("{folder}/");
        inner.removed.retain(|(name, _)| !name.starts_with(&within));
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut inner = self.0.lock().unwrap();
        inner.step()?;
        let within = |name: &String| name.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        Ok(inner.names.keys().filter_map(within).collect())
    }
}

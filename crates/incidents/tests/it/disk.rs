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
    /// After so many calls the power goes.
    left: Option<u32>,
    /// Whether the answer of the next successful creation gets lost.
    lose_answer: bool,
}

/// A disk that several writers share.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Disk {
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
        let keep = StdRng::seed_from_u64(seed).random_range(0..=unsynced.len());
        for name in &unsynced[keep..] {
            inner.names.remove(name);
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
        self.0.lock().unwrap().names.remove(name);
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let inner = self.0.lock().unwrap();
        let within = |name: &String| name.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        Ok(inner.names.keys().filter_map(within).collect())
    }
}

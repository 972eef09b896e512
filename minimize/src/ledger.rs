//! The ledger of attempts: an append-only file that makes a killed minimization continue where it was, and spares a
//! later one of the same input what was tried before.
//!
//! It holds two sorts of records. An attempt is one long test: its key is a digest of the candidate and of all that
//! its verdict depends on, in texts and not in numbers of one process; its value the verdict, the work it took and a
//! digest of what was executed. A start is one finished piece of work of many attempts, with its result as JSON.
//! Tests that cost less than looking them up are not written: they are made again.
//!
//! A record is its length, a sort, a key, the value and a checksum. What was being written when the process died fails
//! its checksum: reading ends there, and the file is cut at that place.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// First bytes of a ledger of this version.
const MAGIC: &[u8; 16] = b"demi-ledger/1\n\0\0";
/// Longest value that is believed.
const MAX_VALUE: u32 = 1 << 28;
/// Length, sort and key.
const HEAD: usize = 4 + 1 + 16;

/// What one test came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Whether the candidate violates.
    pub violates: bool,
    /// Deliveries executed for it.
    pub executed: u64,
    /// Digest of what was executed, 0 where nothing violates.
    pub digest: u128,
}

impl Attempt {
    fn bytes(self) -> [u8; 25] {
        let mut bytes = [0; 25];
        bytes[0] = u8::from(self.violates);
        bytes[1..9].copy_from_slice(&self.executed.to_le_bytes());
        bytes[9..].copy_from_slice(&self.digest.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Attempt> {
        let bytes: &[u8; 25] = bytes.try_into().ok()?;
        let (executed, digest) = (bytes[1..9].try_into().ok()?, bytes[9..].try_into().ok()?);
        Some(Attempt {
            violates: bytes[0] == 1,
            executed: u64::from_le_bytes(executed),
            digest: u128::from_le_bytes(digest),
        })
    }
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is something else, and is left alone.
    #[error("{} is no ledger of this version", .0.display())]
    NoLedger(PathBuf),
    /// Another process works with it.
    #[error("{} is in use by another minimization", .0.display())]
    Busy(PathBuf),
}

#[derive(Debug)]
struct Inner {
    file: Option<File>,
    attempts: FxHashMap<u128, Attempt>,
    starts: FxHashMap<u128, String>,
}

/// A number for this build of the running program: a hash of its file.
///
/// # Errors
/// When the file cannot be read.
pub fn build() -> std::io::Result<u128> {
    let mut file = File::open(std::env::current_exe()?)?;
    let (mut hasher, mut part) = (Xxh3::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hasher.digest128()),
            read => hasher.update(&part[..read]),
        }
    }
}

/// An open ledger. Threads share it.
#[derive(Debug)]
pub struct Ledger {
    identity: u128,
    inner: Mutex<Inner>,
    known: (usize, usize),
    /// Questions that were answered from what is kept.
    answered: AtomicU64,
}

impl Ledger {
    /// Opens or creates a ledger. `identity` stands for all that verdicts depend on and no key says: the model with
    /// its settings and the version of the program. Records of other identities are kept and never found.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is something else.
    pub fn open(path: &Path, identity: &[u8]) -> Result<Ledger, LedgerError> {
        let failed = |source| LedgerError::Io { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LedgerError::Busy(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut inner = Inner { file: None, attempts: FxHashMap::default(), starts: FxHashMap::default() };
        let length = file.metadata().map_err(failed)?.len();
        let end = if length < MAGIC.len() as u64 {
            let mut begun = Vec::new();
            file.read_to_end(&mut begun).map_err(failed)?;
            if !MAGIC.starts_with(&begun) {
                return Err(LedgerError::NoLedger(path.to_owned()));
            }
            file.seek(SeekFrom::Start(0)).map_err(failed)?;
            file.write_all(MAGIC).map_err(failed)?;
            MAGIC.len() as u64
        } else {
            let mut reader = BufReader::new(&mut file);
            let mut magic = [0; MAGIC.len()];
            reader.read_exact(&mut magic).map_err(failed)?;
            if magic != *MAGIC {
                return Err(LedgerError::NoLedger(path.to_owned()));
            }
            let mut end = MAGIC.len() as u64;
            while let Some(length) = read_record(&mut reader, &mut inner) {
                end += length;
            }
            end
        };
        file.set_len(end).map_err(failed)?;
        file.seek(SeekFrom::Start(end)).map_err(failed)?;
        inner.file = Some(file);
        let known = (inner.attempts.len(), inner.starts.len());
        let identity = xxhash_rust::xxh3::xxh3_128(identity);
        Ok(Ledger { identity, inner: Mutex::new(inner), known, answered: AtomicU64::new(0) })
    }

    /// How many attempts and starts there were when it was opened.
    #[must_use]
    pub fn known(&self) -> (usize, usize) {
        self.known
    }

    /// How many questions were answered so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// What an attempt came to, if it was made before.
    #[must_use]
    pub fn attempt(&self, key: u128) -> Option<Attempt> {
        let found = self.inner.lock().ok()?.attempts.get(&self.own(key)).copied();
        self.answered.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Notes an attempt. What cannot be written is forgotten, and so is everything after it.
    pub fn note_attempt(&self, key: u128, attempt: Attempt) {
        let key = self.own(key);
        if let Ok(mut inner) = self.inner.lock()
            && inner.attempts.insert(key, attempt).is_none()
        {
            inner.write(0, key, &attempt.bytes());
        }
    }

    /// What a start came to, if it was finished before.
    #[must_use]
    pub fn start(&self, key: u128) -> Option<String> {
        let found = self.inner.lock().ok()?.starts.get(&self.own(key)).cloned();
        self.answered.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Notes a finished start.
    pub fn note_start(&self, key: u128, value: &str) {
        let key = self.own(key);
        if let Ok(mut inner) = self.inner.lock()
            && inner.starts.insert(key, value.to_owned()).is_none()
        {
            inner.write(1, key, value.as_bytes());
        }
    }

    fn own(&self, key: u128) -> u128 {
        key ^ self.identity
    }
}

impl Inner {
    fn write(&mut self, sort: u8, key: u128, value: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let Ok(length) = u32::try_from(value.len()) else { return };
        let mut record = Vec::with_capacity(HEAD + value.len() + 8);
        record.extend_from_slice(&length.to_le_bytes());
        record.push(sort);
        record.extend_from_slice(&key.to_le_bytes());
        record.extend_from_slice(value);
        record.extend_from_slice(&xxh3_64(&record).to_le_bytes());
        // One call for one record. After a failure nothing more is written: what follows half a record is never read.
        if file.write_all(&record).is_err() {
            self.file = None;
        }
    }
}

/// Reads one record into the tables; gives its length, or nothing where the whole ones end.
fn read_record(reader: &mut impl Read, inner: &mut Inner) -> Option<u64> {
    let mut record = vec![0; HEAD];
    reader.read_exact(&mut record).ok()?;
    let length = u32::from_le_bytes(record[..4].try_into().ok()?);
    if length > MAX_VALUE {
        return None;
    }
    reader.take(u64::from(length) + 8).read_to_end(&mut record).ok()?;
    let body = HEAD + length as usize;
    if record.len() != body + 8 {
        return None;
    }
    if xxh3_64(&record[..body]).to_le_bytes() != record[body..] {
        return None;
    }
    let key = u128::from_le_bytes(record[5..HEAD].try_into().ok()?);
    let value = &record[HEAD..body];
    match record[4] {
        0 => {
            inner.attempts.insert(key, Attempt::read(value)?);
        }
        1 => {
            inner.starts.insert(key, String::from_utf8(value.to_vec()).ok()?);
        }
        _ => return None,
    }
    Some(record.len() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    fn file(name: &str) -> PathBuf {
        let file = std::env::temp_dir().join(format!("demi-ledger-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        file
    }

    const SOME: Attempt = Attempt { violates: true, executed: 7, digest: 9 };

    #[test]
    fn what_was_noted_is_found_again() {
        let path = file("again");
        let ledger = Ledger::open(&path, b"model").unwrap();
        ledger.note_attempt(1, SOME);
        ledger.note_start(2, "{}");
        drop(ledger);
        let ledger = Ledger::open(&path, b"model").unwrap();
        assert_eq!(ledger.known(), (1, 1));
        assert_eq!((ledger.attempt(1), ledger.attempt(2)), (Some(SOME), None));
        assert_eq!(ledger.start(2).as_deref(), Some("{}"));
        drop(ledger);
        // Of another model nothing is known.
        let ledger = Ledger::open(&path, b"mended model").unwrap();
        assert_eq!((ledger.attempt(1), ledger.start(2)), (None, None));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_torn_tail_is_cut_off_wherever_it_is_torn() {
        let path = file("torn");
        let ledger = Ledger::open(&path, b"").unwrap();
        for key in 0..3 {
            ledger.note_attempt(key, Attempt { executed: key as u64, ..SOME });
        }
        drop(ledger);
        let whole = std::fs::read(&path).unwrap();
        let record = (whole.len() - MAGIC.len()) / 3;
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let ledger = Ledger::open(&path, b"").unwrap();
            let left = cut.saturating_sub(MAGIC.len()) / record;
            assert_eq!(ledger.known().0, left, "cut at {cut}");
            // What is written after it is read again.
            ledger.note_attempt(9, SOME);
            drop(ledger);
            let ledger = Ledger::open(&path, b"").unwrap();
            assert_eq!((ledger.known().0, ledger.attempt(9)), (left + 1, Some(SOME)), "cut at {cut}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_flipped_bit_ends_it_before_the_record() {
        let path = file("flipped");
        let ledger = Ledger::open(&path, b"").unwrap();
        (0..3).for_each(|key| ledger.note_attempt(key, SOME));
        drop(ledger);
        let whole = std::fs::read(&path).unwrap();
        let record = (whole.len() - MAGIC.len()) / 3;
        for at in MAGIC.len()..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, &bytes).unwrap();
            let ledger = Ledger::open(&path, b"").unwrap();
            assert_eq!(ledger.known().0, (at - MAGIC.len()) / record, "flipped at {at}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn another_file_is_left_alone() {
        let path = file("other");
        for text in ["notes", "notes of somebody about something"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Ledger::open(&path, b""), Err(LedgerError::NoLedger(_))));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(path).unwrap();
    }
}

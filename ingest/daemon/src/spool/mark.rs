//! Up to where frames were acknowledged, written down where it costs no second sync.
//!
//! The place in its group tells of each frame which ones before it were acknowledged. Of the last group no later frame tells. So after
//! each group its last number is appended to a small file beside the segments, which is not synced then: it outlives the process, and a
//! power cut mostly. It is synced when the spool is at rest. A number in it means that the frame is on the disk: what is not there any
//! more was damaged, and is no torn end.
//!
//! ```text
//! file  "acknowledged-" and a number, counted up     mark  "DmAk" | 0 | spool id | lsn | check   (32 bytes)
//! ```

use xxhash_rust::xxh3::xxh3_64;

use super::{Disk, SpoolError};
use demi_store::fs::OpenFile;

const MAGIC: &[u8; 4] = b"DmAk";
const LEN: usize = 32;
const NAME: &str = "acknowledged-";
/// Bytes after which another file begins.
const MOST: u64 = 1 << 16;

/// The marks of a spool that is written.
#[derive(Debug)]
pub(super) struct Marks {
    spool: u64,
    /// The file that is written, and how many bytes it has.
    file: Option<(Box<dyn OpenFile>, u64)>,
    /// Its number.
    number: u64,
    /// Whether something in it is not synced.
    dirty: bool,
    /// Whether the files before it are gone.
    alone: bool,
}

/// The number of a file of marks.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// The last frame that is known to be acknowledged; 0 where none is. Marks that are damaged, or of another spool, count as absent.
pub(super) fn acknowledged<D: Disk + ?Sized>(disk: &D, spool: u64) -> Result<u64, SpoolError> {
    let names = disk.list().map_err(SpoolError::io(".", "list this folder"))?;
    let mut last = 0;
    for name in names.iter().filter(|name| number(name).is_some()) {
        let io = || SpoolError::io(name, "read this file");
        let mut bytes = vec![0; disk.len(name).map_err(io())?.min(2 * MOST) as usize];
        let got = disk.read_at(name, 0, &mut bytes).map_err(io())?;
        // What was torn off and written behind does not stand at a multiple of the length.
        let marks = bytes[..got].windows(LEN).filter(|mark| mark.starts_with(MAGIC));
        last = last.max(marks.filter_map(|mark| read(mark, spool)).max().unwrap_or(0));
    }
    Ok(last)
}

fn read(mark: &[u8], spool: u64) -> Option<u64> {
    let long = |at: usize| Some(u64::from_le_bytes(mark.get(at..at + 8)?.try_into().ok()?));
    let fits = long(24)? == xxh3_64(mark.get(..24)?) && long(8)? == spool;
    if fits { long(16) } else { None }
}

fn bytes(spool: u64, lsn: u64) -> [u8; LEN] {
    let mut mark = [0; LEN];
    mark[..4].copy_from_slice(MAGIC);
    mark[8..16].copy_from_slice(&spool.to_le_bytes());
    mark[16..24].copy_from_slice(&lsn.to_le_bytes());
    let check = xxh3_64(&mark[..24]);
    mark[24..].copy_from_slice(&check.to_le_bytes());
    mark
}

impl Marks {
    pub(super) fn new(spool: u64) -> Marks {
        Marks { spool, file: None, number: 0, dirty: false, alone: false }
    }

    /// Frames up to this one are acknowledged. What cannot be written here is told by the next frame.
    pub(super) fn note<D: Disk + ?Sized>(&mut self, disk: &D, lsn: u64) {
        if self.file.as_ref().is_none_or(|(_, len)| *len >= MOST) {
            self.file = self.begin(disk).ok();
        }
        let Some((file, len)) = &mut self.file else { return };
        match file.append(&bytes(self.spool, lsn)) {
            Ok(()) => *len += LEN as u64,
            Err(_) => self.file = None,
        }
        self.dirty = true;
    }

    fn begin<D: Disk + ?Sized>(&mut self, disk: &D) -> std::io::Result<(Box<dyn OpenFile>, u64)> {
        let last = disk.list()?.iter().filter_map(|name| number(name)).max();
        self.number = last.map_or(0, |last| last + 1);
        self.alone = false;
        Ok((disk.create(&format!("{NAME}{}", self.number))?, 0))
    }

    /// Makes durable what is noted. Called at rest, so that nobody waits for it.
    pub(super) fn rest<D: Disk + ?Sized>(&mut self, disk: &D) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let Some((file, _)) = &mut self.file else { return };
        if file.sync().is_err() {
            self.file = None;
            return;
        }
        if !self.alone && disk.sync_names().is_ok() {
            let names = disk.list().unwrap_or_default();
            let older = names.iter().filter(|name| number(name).is_some_and(|n| n < self.number));
            self.alone = older.map(|name| disk.remove(name)).filter(Result::is_err).count() == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_changed_is_none() {
        let whole = bytes(7, 41);
        assert_eq!((read(&whole, 7), read(&whole, 8)), (Some(41), None));
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped, 7).filter(|_| flipped.starts_with(MAGIC)), None, "{bit}");
        }
    }
}

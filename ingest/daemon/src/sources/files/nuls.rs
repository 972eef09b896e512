//! Stretches of files in which nothing was written: holes, and runs of NULs.
//!
//! A writer that goes on at its old place after its log was cut leaves them, and so do a crash and a file whose room was taken in advance. They
//! are passed over as soon as something stands behind them, and told once. Until then nothing is known: it may be written there yet.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;
use rustix::fs::{SeekFrom, seek};

use super::state::State;
use crate::batch::Item;
use demi_formats::Rejection;

/// NULs in a row that are no part of a line.
const RUN: usize = 16;
/// Bytes that are looked at at a time.
const STRETCH: usize = 1 << 20;

/// The first byte at or behind `from` that may be something else than a hole; `None` where there is only a hole.
fn behind_hole(file: &File, from: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(from)) {
        Ok(at) => Ok(Some(at)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        // A file system that knows no holes.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(Some(from)),
        Err(error) => Err(error.into()),
    }
}

/// The first byte at or behind `from` that is no NUL; `None` where there is none.
pub(super) fn first_byte(file: &File, mut from: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; STRETCH];
    while let Some(at) = behind_hole(file, from)? {
        let got = file.read_at(&mut buffer, at)?;
        if got == 0 {
            return Ok(None);
        }
        if let Some(n) = buffer[..got].iter().position(|byte| *byte != 0) {
            return Ok(Some(at + n as u64));
        }
        from = at + got as u64;
    }
    Ok(None)
}

/// What stands at a place of a file.
pub(super) enum Here {
    /// Something, or too few NULs to speak of.
    Bytes,
    /// NULs, and something behind them.
    NulsUpTo(u64),
    /// NULs up to the end.
    Nuls,
}

/// What stands at a place of a file of that length.
pub(super) fn here(file: &File, offset: u64, len: u64) -> io::Result<Here> {
    let mut begin = [1; RUN];
    let some = &mut begin[..RUN.min(usize::try_from(len.saturating_sub(offset)).unwrap_or(RUN))];
    if file.read_at(some, offset)? < some.len() || some.iter().any(|byte| *byte != 0) {
        return Ok(Here::Bytes);
    }
    Ok(first_byte(file, offset)?.map_or(Here::Nuls, Here::NulsUpTo))
}

/// NULs between two places, told once.
pub(super) fn told(state: &State, to: u64) -> Item {
    let reason = format!("{} bytes of NUL, up to byte {to}: nothing was written there", to - state.offset);
    let rejected = Some(Rejection::new("nuls", reason));
    Item { offset: state.offset, line: state.line, bytes: Bytes::new(), rejected }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    #[test]
    fn holes_and_nuls_are_passed_over_without_reading_them() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(first_byte(&file, 0).unwrap(), None);
        file.write_all_at(b"x", (1 << 39) + 7).unwrap();
        assert_eq!(first_byte(&file, 0).unwrap(), Some((1 << 39) + 7));
        assert_eq!(first_byte(&file, 1 << 39).unwrap(), Some((1 << 39) + 7));
        assert_eq!(first_byte(&file, (1 << 39) + 8).unwrap(), None);
        file.write_all_at(&vec![0; 3 << 20], 0).unwrap();
        file.write_all_at(b"y", (2 << 20) + 1).unwrap();
        assert_eq!(first_byte(&file, 0).unwrap(), Some((2 << 20) + 1));
    }
}

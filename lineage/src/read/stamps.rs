//! The time stamps of events, as far as they can be read. Order is never taken from them; what was found is compared with them.

use arrow_array::{Array, RecordBatch};
use demi_common::sealed::SealedFile;

use super::columns;
use super::placement::Placement;
use super::source::{BATCH_ROWS, always_null, batches, columns_of, record_schema};
use crate::error::LineageError;

const SECOND: u64 = 1_000_000_000;

/// A time stamp, in nanoseconds since 1970, and how fine it is: the event happened at or after it, and before `nanos + fine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    nanos: i64,
    fine: u64,
}

impl Stamp {
    /// The stamp that a text says: a date and time, or a number of seconds, milliseconds, microseconds or nanoseconds, which its size tells.
    pub(crate) fn read(text: &str) -> Option<Stamp> {
        let digits = |fraction: &str| fraction.bytes().take_while(u8::is_ascii_digit).count().min(9) as u32;
        if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let number: i64 = whole.parse().ok()?;
            let units = [(100_000_000_000, SECOND), (100_000_000_000_000, SECOND / 1000)];
            let units = units.into_iter().chain([(100_000_000_000_000_000, SECOND / 1_000_000)]);
            let unit = units.into_iter().find(|(below, _)| number < *below).map_or(1, |(_, unit)| unit);
            let parts_of_unit = 10_u64.pow(digits(fraction));
            let fine = (unit / parts_of_unit).max(1);
            let parts: u64 = fraction.get(..digits(fraction) as usize)?.parse().unwrap_or(0);
            let rest = i64::try_from(parts.checked_mul(unit)? / parts_of_unit).ok()?;
            return Some(Stamp { nanos: number.checked_mul(unit as i64)?.checked_add(rest)?, fine });
        }
        let (nanos, fine) = (demi_common::time::nanos(text)?, demi_common::time::open_nanos(text));
        Some(Stamp { nanos, fine })
    }

    /// When it begins, in nanoseconds since 1970.
    pub(crate) fn nanos(self) -> i64 {
        self.nanos
    }

    /// By how many nanoseconds it is before an earlier event's stamp at least; nothing where it may be at the same time or later.
    pub(crate) fn before(self, earlier: Stamp) -> Option<u64> {
        let gap = i128::from(earlier.nanos) - i128::from(self.nanos);
        (gap >= i128::from(self.fine)).then(|| u64::try_from(gap).unwrap_or(u64::MAX))
    }

    /// The longest time that may be between an earlier event's stamp and this one, in nanoseconds; below zero where it runs against it.
    pub(crate) fn after_at_most(self, earlier: Stamp) -> i128 {
        i128::from(self.nanos) + i128::from(self.fine) - i128::from(earlier.nanos)
    }
}

/// The stamps of all events.
pub(crate) struct Stamps {
    nanos: Vec<i64>,
    /// How fine each is, as an index to `fines` from 1; 0 where there is none.
    fine: Vec<u8>,
    fines: Vec<u64>,
}

impl Stamps {
    /// Reads them; nothing where no event has one.
    pub(crate) fn read(files: &[SealedFile], placement: &Placement) -> Result<Option<Stamps>, LineageError> {
        let wanted = columns_of(&record_schema(), &["time"]);
        if always_null(files, &wanted)?.iter().all(|null| *null) {
            return Ok(None);
        }
        let events = placement.events;
        let mut stamps = Stamps { nanos: vec![0; events], fine: vec![0; events], fines: Vec::new() };
        let (mut open, mut row) = (None, 0);
        for batch in batches(files, &wanted, BATCH_ROWS) {
            let (file, batch) = batch?;
            if open != Some(file) {
                (open, row) = (Some(file), 0);
            }
            let here = placement.of_file(file).get(row..row + batch.num_rows());
            let changed =
                || LineageError::table(files[file].path())("it has other rows than when it was first read");
            stamps.add(&batch, here.ok_or_else(changed)?)?;
            row += batch.num_rows();
        }
        Ok(Some(stamps))
    }

    fn add(&mut self, batch: &RecordBatch, events: &[u32]) -> Result<(), LineageError> {
        let times = columns::text(batch, "time")?;
        for (row, &event) in events.iter().enumerate().filter(|(row, _)| times.is_valid(*row)) {
            let event = event as usize;
            if event >= self.nanos.len() {
                continue;
            }
            let Some(stamp) = Stamp::read(times.value(row)) else { continue };
            let known = self.fines.iter().position(|fine| *fine == stamp.fine).unwrap_or_else(|| {
                self.fines.push(stamp.fine);
                self.fines.len() - 1
            });
            // There are no more than a score of them.
            self.fine[event] = u8::try_from(known + 1).unwrap_or(0);
            self.nanos[event] = stamp.nanos;
        }
        Ok(())
    }

    /// The stamp of an event, if it has one.
    pub(crate) fn of(&self, event: u32) -> Option<Stamp> {
        let fine = *self.fines.get(usize::from(*self.fine.get(event as usize)?).checked_sub(1)?)?;
        Some(Stamp { nanos: *self.nanos.get(event as usize)?, fine })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_as_fine_as_they_are_written() {
        let fine = |text: &str| Stamp::read(text).map(|stamp| stamp.fine);
        assert_eq!(fine("2024-05-01T10:00:05Z"), Some(SECOND));
        assert_eq!(fine("2024-05-01T10:00:05.25Z"), Some(SECOND / 100));
        assert_eq!(fine("2024-05-01T10:00:05.000000001+02:00"), Some(1));
        assert_eq!(fine("1714557605"), Some(SECOND));
        assert_eq!(fine("1714557605123"), Some(SECOND / 1000));
        assert_eq!(fine("1714557605.25"), Some(SECOND / 100));
        assert_eq!(fine("2024-05-01 10:00:05,250"), Some(SECOND / 1000));
        assert_eq!(fine("2024/05/01 10:00:05.25"), Some(SECOND / 100));
        assert_eq!(fine("01/May/2024:10:00:05 +0000"), Some(SECOND));
        assert_eq!(fine("2024-05-01"), Some(24 * 3600 * SECOND));
        assert_eq!(fine("soon"), None);
        let nanos = |text: &str| Stamp::read(text).map(|stamp| stamp.nanos);
        assert_eq!(nanos("1714557605.25"), Some(1_714_557_605_250_000_000));
        assert_eq!(nanos("2024-05-01T10:00:05.25Z"), nanos("1714557605.25"));
        assert_eq!(nanos("1714557605250"), nanos("1714557605.25"));
    }

    #[test]
    fn what_may_be_at_the_same_time_runs_against_nothing() {
        let stamp = |text: &str| Stamp::read(text).unwrap();
        let sent = stamp("2024-05-01T10:00:05.900Z");
        assert_eq!(stamp("2024-05-01T10:00:05Z").before(sent), None);
        assert_eq!(stamp("2024-05-01T10:00:05.900Z").before(sent), None);
        assert_eq!(stamp("2024-05-01T10:00:05.899Z").before(sent), Some(1_000_000));
        assert_eq!(stamp("2024-05-01T10:00:04Z").before(sent), Some(1_900_000_000));
    }
}

//! Times and the sequence numbers made of them.

use chrono::{DateTime, SecondsFormat};

/// The sequence number of an event of that time: the time itself, moved by a few nanoseconds so that of several things that
/// one coarse clock puts at the same time, what was received stands before what was sent.
pub(super) fn seq_at(nanos: u64, rank: u64) -> u64 {
    nanos.saturating_add(rank).clamp(1, i64::MAX as u64)
}

/// A time as RFC 3339 text with nanoseconds, in UTC.
pub(super) fn rfc3339(nanos: u64) -> String {
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    // Every u64 of nanoseconds is a date before 2555.
    let time = DateTime::from_timestamp(seconds as i64, fraction as u32).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Nanos, true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(rfc3339(1_711_138_246_978_000_000), "2024-03-22T20:10:46.978000000Z");
        assert_eq!(rfc3339(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn numbers_stay_in_range() {
        assert_eq!(seq_at(0, 0), 1);
        assert_eq!(seq_at(u64::MAX, 3), i64::MAX as u64);
        assert!(seq_at(5, 0) < seq_at(5, 2));
    }

    proptest! {
        #[test]
        fn dates_are_those_of_the_reader(nanos in any::<u64>()) {
            let date = crate::utc_date(&Value::from(rfc3339(nanos)));
            prop_assert_eq!(date.map(i64::from), Some((nanos / 86_400_000_000_000) as i64));
        }
    }
}

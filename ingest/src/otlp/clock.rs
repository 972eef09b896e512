//! Times and the positions made of them.

/// The position of an event of that time: the time itself, moved by a few nanoseconds so that of several things that
/// one coarse clock puts at the same time, what was received stands before what was sent.
pub(super) fn position(nanos: u64, rank: u64) -> u64 {
    nanos.saturating_add(rank).clamp(1, i64::MAX as u64)
}

/// A time as RFC 3339 text with nanoseconds, in UTC.
///
/// Days to dates by the algorithm of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013).
pub(super) fn rfc3339(nanos: u64) -> String {
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z")
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
    fn positions_stay_in_range() {
        assert_eq!(position(0, 0), 1);
        assert_eq!(position(u64::MAX, 3), i64::MAX as u64);
        assert!(position(5, 0) < position(5, 2));
    }

    proptest! {
        #[test]
        fn dates_are_those_of_the_reader(nanos in any::<u64>()) {
            let date = crate::utc_date(&Value::from(rfc3339(nanos)));
            prop_assert_eq!(date.map(i64::from), Some((nanos / 86_400_000_000_000) as i64));
        }
    }
}

//! Times as they stand in logs.

use arrow_array::timezone::Tz;

/// A point in time, in nanoseconds since 1970; nothing where the text is none.
pub(super) fn instant(text: &str) -> Option<i64> {
    let utc: Tz = "+00:00".parse().ok()?;
    arrow_cast::parse::string_to_datetime(&utc, text).ok()?.timestamp_nanos_opt()
}

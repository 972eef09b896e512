//! The UTC date of a logged time, for the partition; nothing else trusts logged times.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};
use demi_schemas::event::is_clock_seq;
use serde_json::Value;

/// Days since 1970-01-01 of a logged `time`, in UTC, or `None` where it cannot be read.
///
/// Text is read as RFC 3339 (`T` or a space between date and time; without an offset it is taken for UTC).
/// Numbers, also as text, are counted from 1970: seconds below 1e11, then milliseconds below 1e14, microseconds
/// below 1e17, nanoseconds beyond. Years before 1 or after 9999 are not read.
#[must_use]
pub fn utc_date(time: &Value) -> Option<i32> {
    match time {
        Value::String(text) => rfc3339_date(text.trim()).or_else(|| epoch_date(text.trim().parse().ok()?)),
        Value::Number(number) => epoch_date(number.as_f64()?),
        _ => None,
    }
}

fn epoch_date(number: f64) -> Option<i32> {
    let seconds = match number.abs() {
        n if n < 1e11 => number,
        n if n < 1e14 => number / 1e3,
        n if n < 1e17 => number / 1e6,
        _ => number / 1e9,
    };
    let day = (seconds / 86_400.0).floor();
    in_range(day.is_finite().then_some(day as i64)?)
}

/// Year 1 to year 9999.
fn in_range(day: i64) -> Option<i32> {
    (-719_162..=2_932_896).contains(&day).then(|| i32::try_from(day).ok())?
}

fn rfc3339_date(text: &str) -> Option<i32> {
    in_range(i64::from(utc(text)?.date().to_epoch_days()))
}

/// Nanoseconds since 1970 of a logged `time`, read as for [`utc_date`], where they can be a sequence number taken from a clock.
pub(crate) fn utc_nanos(time: &Value) -> Option<u64> {
    let nanos = match time {
        Value::String(text) => match utc(text.trim()) {
            Some(utc) => u64::try_from(utc.and_utc().timestamp_nanos_opt()?).ok()?,
            None => epoch_nanos(text.trim())?,
        },
        Value::Number(number) => epoch_nanos(&number.to_string())?,
        _ => return None,
    };
    (is_clock_seq(nanos) && nanos < i64::MAX as u64).then_some(nanos)
}

/// Nanoseconds of a decimal number of seconds, milliseconds, microseconds or nanoseconds; what is smaller is left out.
fn epoch_nanos(number: &str) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let count: u64 = whole.parse().ok()?;
    let digits: usize = match count {
        n if n < 100_000_000_000 => 9,
        n if n < 100_000_000_000_000 => 6,
        n if n < 100_000_000_000_000_000 => 3,
        _ => 0,
    };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: String = fraction.chars().chain(std::iter::repeat('0')).take(digits).collect();
    let part: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    count.checked_mul(10_u64.checked_pow(u32::try_from(digits).ok()?)?)?.checked_add(part)
}

/// The time in UTC that a text tells.
fn utc(text: &str) -> Option<NaiveDateTime> {
    // Log4j and others write a comma before the fraction.
    let text = &text.replacen(',', ".", 1);
    DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%#z"))
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%#z"))
        .map(|time| time.naive_utc())
        .or_else(|_| text.parse::<NaiveDateTime>())
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"))
        .or_else(|_| text.parse::<NaiveDate>().map(|date| date.and_time(NaiveTime::MIN)))
        .ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_numbers_give_their_utc_date() {
        let day = 19_858; // 2024-05-15
        for good in [
            json!("2024-05-15T00:00:00Z"),
            json!("2024-05-15 23:59:59.999999999"),
            json!("2024-05-16T01:30:00+02:00"),
            json!("2024-05-14T23:00:00-0130"),
            json!("2024-05-15"),
            json!(1_715_731_200),
            json!(1_715_731_200.25),
            json!(1_715_731_200_123_i64),
            json!(1_715_731_200_123_456_i64),
            json!(1_715_731_200_123_456_789_i64),
            json!("1715731200"),
        ] {
            assert_eq!(utc_date(&good), Some(day), "{good}");
        }
        assert_eq!(utc_date(&json!(-1)), Some(-1));
        assert_eq!(utc_date(&json!("1970-01-01T00:00:00Z")), Some(0));
    }

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        let nanos = 1_715_731_200_123_456_789;
        for (good, left_out) in [
            (json!("2024-05-15T00:00:00.123456789Z"), 1),
            (json!("2024-05-15 02:00:00,123456+02:00"), 1000),
            (json!(nanos), 1),
            (json!("1715731200.123456789"), 1),
            (json!("1715731200123.456789"), 1),
            (json!(1_715_731_200_123_456_u64), 1000),
            (json!(1_715_731_200), 1_000_000_000),
        ] {
            assert_eq!(utc_nanos(&good), Some(nanos / left_out * left_out), "{good}");
        }
        for bad in [
            json!("1969-01-01"),
            json!("2005-01-01"),
            json!(5),
            json!(-5),
            json!("1.x"),
            json!("9".repeat(30)),
            json!(1e300),
            json!([]),
        ] {
            assert_eq!(utc_nanos(&bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_no_time_has_no_date() {
        for bad in [
            json!("yesterday"),
            json!("2024-13-01"),
            json!("2023-02-29T00:00:00Z"),
            json!("2024-05-15T25:00:00Z"),
            json!("2024-05-15T00:00:00+xx:yy"),
            json!("2024-05-15T00:00:00Zjunk"),
            json!("NaN"),
            json!("inf"),
            json!(1e300),
            json!(null),
            json!({}),
            json!(""),
        ] {
            assert_eq!(utc_date(&bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = utc_date(&Value::String(text.clone()));
            let _ = utc_nanos(&Value::String(text));
        }

        #[test]
        fn days_follow_one_another(day in -700_000i64..2_900_000) {
            // A number of seconds and the text of the same day agree.
            let date = epoch_date(day as f64 * 86_400.0);
            if (-1_000_000..1_000_000).contains(&day) {
                prop_assert_eq!(date.map(i64::from), Some(day));
            }
        }
    }
}

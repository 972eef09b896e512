//! The UTC date of a logged time, for the partition; nothing else trusts logged times.

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
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = bytes.get(range)?;
        part.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(part).ok()?.parse().ok())?
    };
    let at = |i: usize| bytes.get(i).copied();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    if at(4)? != b'-' || at(7)? != b'-' || year == 0 || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let midnight = days_from_civil(year, month, day);
    if bytes.len() == 10 {
        return in_range(midnight);
    }
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !matches!(at(10)?, b'T' | b't' | b' ') || at(13)? != b':' || at(16)? != b':' {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut end = 19;
    if matches!(at(end), Some(b'.' | b',')) {
        end += 1;
        while at(end).is_some_and(|b| b.is_ascii_digit()) {
            end += 1;
        }
    }
    let offset = match bytes.get(end..)? {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let digits: Vec<i64> =
                rest.iter().filter(|b| **b != b':').map(|b| i64::from(b.wrapping_sub(b'0'))).collect();
            if digits.iter().any(|d| *d > 9) {
                return None;
            }
            let minutes = match digits.as_slice() {
                [a, b] => (a * 10 + b) * 60,
                [a, b, c, d] => (a * 10 + b) * 60 + c * 10 + d,
                _ => return None,
            };
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let minutes = midnight * 1440 + hour * 60 + minute - offset;
    in_range(minutes.div_euclid(1440))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
            let _ = utc_date(&Value::String(text));
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

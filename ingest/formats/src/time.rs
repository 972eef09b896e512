//! The UTC date of a logged time, for the partition; nothing else trusts logged times.

use chrono::DateTime;
use demi_common::time::{open_nanos, utc};
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
pub fn utc_nanos(time: &Value) -> Option<u64> {
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

/// A logged time with what its last digit leaves open: a stamp of seconds stands for the whole second.
///
/// Times of day and date are compared with each other, plain numbers with each other: whether a number counts seconds or
/// milliseconds, nobody need know for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// In nanoseconds, or in parts of 10^-9 of a number.
    begin: i128,
    /// How much is left open.
    open: i128,
    is_number: bool,
}

const UNIT: i128 = 1_000_000_000;

impl Stamp {
    /// Reads a logged `time`, as [`utc_date`] does.
    pub fn read(time: &Value) -> Option<Stamp> {
        match time {
            Value::String(text) => Stamp::of_text(text),
            Value::Number(number) => Stamp::of_number(&number.to_string()),
            _ => None,
        }
    }

    /// Reads a text.
    pub fn of_text(text: &str) -> Option<Stamp> {
        let text = text.trim();
        let Some(time) = utc(text) else { return Stamp::of_number(text) };
        let (seconds, nanos) = (time.and_utc().timestamp(), time.and_utc().timestamp_subsec_nanos());
        // A leap second is as long as the one before it.
        let begin = i128::from(seconds) * UNIT + i128::from(nanos.min(999_999_999));
        Some(Stamp { begin, open: open_nanos(text).into(), is_number: false })
    }

    fn of_number(text: &str) -> Option<Stamp> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let negative = whole.starts_with('-');
        let count: i128 = whole.parse::<i64>().ok()?.into();
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = fraction.len().min(9);
        let part: i128 = fraction.get(..digits)?.parse().unwrap_or(0);
        let open = UNIT / 10_i128.pow(digits as u32);
        let begin = count * UNIT + part * open * if negative { -1 } else { 1 };
        Some(Stamp { begin, open, is_number: true })
    }

    /// Whether a sequence number is this time in nanoseconds, or follows it closely because others stand there.
    pub fn tells(self, seq: u64) -> bool {
        let behind = i128::from(seq) - self.begin;
        !self.is_number && (0..=self.open + UNIT / 1000).contains(&behind)
    }

    /// How much earlier this one is than another, where it must be: what digits leave open is no difference. Nothing where the two
    /// cannot be compared.
    pub fn is_before(self, other: Stamp) -> Option<i128> {
        let comparable = self.is_number == other.is_number;
        (comparable && self.begin + self.open <= other.begin).then(|| other.begin - self.begin)
    }

    /// The later of two, by where they begin; this one where they cannot be compared.
    pub fn later(self, other: Stamp) -> Stamp {
        if self.is_number == other.is_number && other.begin > self.begin { other } else { self }
    }

    /// As text.
    pub fn shown(self) -> String {
        let (whole, part) = (self.begin.div_euclid(UNIT), self.begin.rem_euclid(UNIT));
        let digits = (1..=9).find(|d| UNIT / 10_i128.pow(*d) <= self.open).unwrap_or(9) as usize;
        let digits = if self.open >= UNIT { 0 } else { digits };
        let fraction = format!("{part:09}");
        let fraction = match fraction.get(..digits) {
            Some(digits) if !digits.is_empty() => format!(".{digits}"),
            _ => String::new(),
        };
        let time = i64::try_from(whole).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        match time.filter(|_| !self.is_number) {
            Some(time) => format!("{}{fraction}Z", time.format("%Y-%m-%dT%H:%M:%S")),
            None => format!("{whole}{fraction}"),
        }
    }
}

/// A difference of stamps as text.
pub fn difference(by: i128, stamp: Stamp) -> String {
    let plain = |n: i128, unit: i128, name: &str| {
        let (whole, part) = (n / unit, n % unit * 1000 / unit);
        let fraction = format!(".{part:03}");
        format!("{whole}{}{name}", fraction.trim_end_matches('0').trim_end_matches('.'))
    };
    match by {
        by if stamp.is_number => plain(by, UNIT, ""),
        by if by >= 48 * 3600 * UNIT => plain(by, 24 * 3600 * UNIT, " days"),
        by if by >= 2 * 3600 * UNIT => plain(by, 3600 * UNIT, " h"),
        by if by >= 120 * UNIT => plain(by, 60 * UNIT, " min"),
        by if by >= UNIT => plain(by, UNIT, " s"),
        by if by >= UNIT / 1000 => plain(by, UNIT / 1000, " ms"),
        by => plain(by, UNIT / 1_000_000, " µs"),
    }
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
    fn layouts_that_mean_one_thing_are_read() {
        let day = utc_date(&json!("2022-01-28"));
        for good in [
            "2022/01/28 13:28:24.033678",
            "2022/01/28 13:28:24",
            "28 Jan 2022 17:08:15.364",
            "Fri Jan 28 13:28:24 2022",
            "28/Jan/2022:13:28:24 +0000",
            "Fri, 28 Jan 2022 13:28:24 +0000",
            "2022-01-28 13:28:24.5 UTC",
            "2022-01-28 16:49:45.895843+00:00",
        ] {
            assert_eq!(utc_date(&json!(good)), day, "{good}");
        }
        for bad in [
            "Jan 28 13:28:24",
            "0128 03:40:10",
            "28/01/2022 10:00:00",
            "13:28:24",
            "Sat Jan 28 13:28:24 2022",
        ] {
            assert_eq!(utc_date(&json!(bad)), None, "{bad}");
        }
    }

    #[test]
    fn a_stamp_stands_for_what_its_digits_leave_open() {
        let before = |a: Value, b: Value| Stamp::read(&a).unwrap().is_before(Stamp::read(&b).unwrap());
        assert_eq!(Stamp::read(&json!("10:00")), None);
        let t = |text: &str| json!(format!("2024-05-15T{text}"));
        assert_eq!(before(t("10:00:01Z"), t("10:00:02Z")), Some(UNIT));
        assert_eq!(before(t("10:00:01Z"), t("10:00:01.9Z")), None, "a second is not over before it ends");
        assert_eq!(before(t("10:00:01.9Z"), t("10:00:02Z")), Some(UNIT / 10));
        assert_eq!(before(t("12:00:01+02:00"), t("10:00:01Z")), None);
        assert_eq!(before(t("12:00:00+02:00"), t("10:00:01Z")), Some(UNIT));
        assert_eq!(before(json!(5), json!(6)), Some(UNIT));
        assert_eq!(before(json!("5.25"), json!(5.5)), Some(UNIT / 4));
        assert_eq!(before(json!(99_999_999_999_i64), json!(100_000_000_000_i64)), Some(UNIT));
        assert_eq!(before(json!(5), t("10:00:01Z")), None, "nobody knows what 5 is");
        assert_eq!(before(json!("2024-05-14"), json!("2024-05-14T10:00:00Z")), None);
        for text in [
            "2024-05-15T10:00:01.250Z",
            "2024-05-15T10:00:01Z",
            "17.5",
            "17",
            "2024-05-15T10:00:01.123456789Z",
        ] {
            assert_eq!(Stamp::of_text(text).unwrap().shown(), text);
        }
        let shown = |a: &str, b: &str| {
            let (a, b) = (Stamp::of_text(a).unwrap(), Stamp::of_text(b).unwrap());
            difference(a.is_before(b).unwrap(), a)
        };
        assert_eq!(shown("2024-05-15T10:00:01.250Z", "2024-05-15T10:00:05.750Z"), "4.5 s");
        assert_eq!(shown("2024-05-15T10:00:01.250Z", "2024-05-15T10:00:01.253Z"), "3 ms");
        assert_eq!(shown("2024-05-14", "2024-05-17"), "3 days");
        assert_eq!(shown("1.5", "4"), "2.5");
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

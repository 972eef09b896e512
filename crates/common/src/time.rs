//! Stamps as logs write them.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

const SECOND: u64 = 1_000_000_000;

/// Nanoseconds since 1970 of the time that a text tells, as [`utc`] reads it.
#[must_use]
pub fn nanos(text: &str) -> Option<i64> {
    utc(text)?.and_utc().timestamp_nanos_opt()
}

/// How many nanoseconds the last digit of a time leaves open: a stamp of seconds stands for the whole second, one of minutes for the minute, a day for
/// all of it.
#[must_use]
pub fn open_nanos(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    // `10:00`, `10:00:01`: the first colon between hours and minutes, behind the year of `15/May/2024:10:00:01`.
    let clock = (0..bytes.len()).find(|at| {
        let hours = bytes[..*at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        colon(*at) && (1..=2).contains(&hours) && digits(at + 1) == 2
    });
    let end = match clock {
        Some(at) if colon(at + 3) && digits(at + 4) == 2 => at + 6,
        Some(_) => return 60 * SECOND,
        // `20240515T100001`.
        None => match bytes.iter().position(|byte| *byte == b'T').filter(|at| digits(at + 1) >= 4) {
            Some(at) if digits(at + 1) == 6 => at + 7,
            Some(_) => return 60 * SECOND,
            None => return 24 * 3600 * SECOND,
        },
    };
    let fraction = match bytes.get(end) {
        Some(b'.' | b',') => digits(end + 1),
        _ => 0,
    };
    SECOND / 10_u64.pow(fraction.min(9) as u32)
}

/// Layouts of stamps that can be read in one way only, besides those of ISO 8601.
const LAYOUTS: [&str; 8] = [
    "%d %b %Y %H:%M:%S%.f",
    "%a %b %e %H:%M:%S %Y",
    "%a %b %e %H:%M:%S%.f %Y",
    "%a, %d %b %Y %H:%M:%S%.f",
    "%Y%m%dT%H%M%S%.f",
    "%Y%m%dT%H%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
];
/// The same with an offset.
const LAYOUTS_WITH_OFFSET: [&str; 7] = [
    "%d/%b/%Y:%H:%M:%S%.f %z",
    "%a %b %e %H:%M:%S %z %Y",
    "%a, %d %b %Y %H:%M:%S %z",
    "%Y%m%dT%H%M%S%.f%#z",
    "%Y%m%dT%H%M%#z",
    "%Y-%m-%dT%H:%M%#z",
    "%Y-%m-%d %H:%M%#z",
];
/// What says behind a time that it is UTC.
const NAMES_OF_UTC: [&str; 3] = [" UTC", " GMT", "Z"];

/// The time in UTC that a text tells; nothing where it tells none, or may mean several. What has no offset is taken for UTC.
#[must_use]
pub fn utc(text: &str) -> Option<NaiveDateTime> {
    iso(text.as_bytes()).or_else(|| utc_of_others(text))
}

/// What most logs write: `2024-05-15T10:00:01.25+02:00`, with a blank for the `T`, slashes for the dashes, a comma for the point, and without the
/// offset. It is read byte by byte, because that is done for each event.
fn iso(text: &[u8]) -> Option<NaiveDateTime> {
    let number = |from: usize, to: usize| -> Option<u32> {
        text.get(from..to)?
            .iter()
            .try_fold(0, |n, byte| byte.is_ascii_digit().then(|| n * 10 + u32::from(byte - b'0')))
    };
    let stroke = text.get(4).copied().filter(|byte| matches!(byte, b'-' | b'/'))?;
    let marks = [(7, stroke), (13, b':'), (16, b':')];
    if !marks.iter().all(|(at, mark)| text.get(*at) == Some(mark))
        || !matches!(text.get(10), Some(b'T' | b't' | b' '))
    {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(i32::try_from(number(0, 4)?).ok()?, number(5, 7)?, number(8, 10)?)?;
    let mut at = 19;
    let mut nanos = 0;
    if matches!(text.get(at), Some(b'.' | b',')) {
        let digits = text.get(at + 1..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        nanos = number(at + 1, at + 1 + digits)? * 10_u32.pow(9 - digits as u32);
        at += 1 + digits;
    }
    let time = date.and_hms_nano_opt(number(11, 13)?, number(14, 16)?, number(17, 19)?, nanos)?;
    let minutes = match text.get(at..)? {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), offset @ ..] => {
            let (hours, minutes) = match offset.len() {
                5 if offset.get(2) == Some(&b':') => (number(at + 1, at + 3)?, number(at + 4, at + 6)?),
                4 => (number(at + 1, at + 3)?, number(at + 3, at + 5)?),
                _ => return None,
            };
            if hours > 23 || minutes > 59 {
                return None;
            }
            i64::from(hours * 60 + minutes) * if *sign == b'+' { 1 } else { -1 }
        }
        _ => return None,
    };
    time.checked_sub_signed(TimeDelta::try_minutes(minutes)?)
}

fn utc_of_others(text: &str) -> Option<NaiveDateTime> {
    if !text.bytes().any(|byte| byte.is_ascii_digit()) || text.len() > 64 {
        return None;
    }
    let with_comma = text;
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
        .or_else(|| {
            let bare =
                NAMES_OF_UTC.iter().find_map(|name| with_comma.strip_suffix(name)).unwrap_or(with_comma);
            let dotted = bare.replacen(',', ".", 1);
            // Of minutes chrono would take one digit for two.
            let has_clock = open_nanos(bare) < 24 * 3600 * SECOND;
            let iso = NaiveDateTime::parse_from_str(&dotted, "%Y-%m-%d %H:%M:%S%.f").ok();
            let read = |layout: &&str| NaiveDateTime::parse_from_str(bare, layout).ok();
            iso.or_else(|| LAYOUTS.iter().find_map(read).filter(|_| has_clock))
        })
        .or_else(|| {
            let read = |layout: &&str| DateTime::parse_from_str(with_comma, layout).ok();
            LAYOUTS_WITH_OFFSET.iter().find_map(read).map(|time| time.naive_utc())
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stamps_are_as_fine_as_they_are_written() {
        for (text, open) in [
            ("2024-05-15", 24 * 3600 * SECOND),
            ("2024-05-15T10:00:01Z", SECOND),
            ("2024-05-15 10:00:01,250", SECOND / 1000),
            ("2024/05/15 10:00:01.25", SECOND / 100),
            ("Wed, 15 May 2024 10:00:01 +0000", SECOND),
            ("2024-05-15T10:00:01.000000001+02:00", 1),
            ("2024-05-15T10:00Z", 60 * SECOND),
            ("2024-05-15 10:00", 60 * SECOND),
            ("2024-05-15T10:00+02:00", 60 * SECOND),
            ("20240515T100001Z", SECOND),
            ("20240515T100001.25+0200", SECOND / 100),
            ("20240515T1000", 60 * SECOND),
            ("Wed, 15 May 2024 10:00:01 GMT", SECOND),
            ("2024-05-15 10:00:01,250 GMT", SECOND / 1000),
            ("15/May/2024:10:00:01 +0000", SECOND),
            ("15 May 2024 10:00:01.5", SECOND / 10),
        ] {
            assert!(nanos(text).is_some(), "{text}");
            assert_eq!(open_nanos(text), open, "{text}");
        }
    }

    #[test]
    fn layouts_of_one_time_tell_the_same() {
        let time = utc("2024-05-15T10:00:01Z");
        for text in [
            "20240515T100001Z",
            "20240515T120001+0200",
            "Wed, 15 May 2024 10:00:01 GMT",
            "2024-05-15 10:00:01 GMT",
            "2024-05-15 10:00:01 UTC",
            "15 May 2024 10:00:01 UTC",
        ] {
            assert_eq!(utc(text), time, "{text}");
        }
        assert_eq!(utc("2024-05-15T10:00Z"), utc("2024-05-15T10:00:00Z"));
        assert_eq!(utc("2024-05-15T12:00+02:00"), utc("2024-05-15T10:00:00Z"));
        for none in ["10:00", "20240515", "2024-05-15T10:0", "2024-05-15T10:00 CET", "202405151T000"] {
            assert_eq!(utc(none), None, "{none}");
        }
    }

    proptest! {
        /// What is read byte by byte is what chrono reads.
        #[test]
        fn the_usual_layout_is_read_as_chrono_does(
            text in "20[0-9]{2}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-6][0-9]([.,][0-9]{1,10})?(Z|[+-][0-2][0-9]:?[0-6][0-9])?",
        ) {
            if let Some(read) = iso(text.as_bytes()) {
                prop_assert_eq!(Some(read), utc_of_others(&text), "{}", text);
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (nanos(&text), open_nanos(&text));
        }
    }
}

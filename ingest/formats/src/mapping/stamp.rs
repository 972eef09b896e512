//! Wall-clock times in the formats that logs write.

use std::collections::BTreeMap;
use std::fmt;

use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{Datelike, FixedOffset, NaiveDate, NaiveDateTime, TimeDelta};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::MappingError;

/// A time: a template, or one with the formats of its stamps.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[serde(untagged)]
pub enum Time {
    /// A template. Its value is kept as it is.
    Template(String),
    /// With the formats of its stamps. The time is kept in UTC, as `2024-05-15T10:00:01.25Z`.
    Read(TimeFormat),
}

/// `time = { value = "{time}", format = "%m%d %H:%M:%S%.f", year = 2024 }`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeFormat {
    /// A template for the stamp.
    #[serde(default = "time")]
    pub value: String,
    /// How the stamp is written, in the notation of strftime; or several such formats, of which the first that fits counts.
    pub format: OneOrSeveral,
    /// The year of the first stamp, where stamps have none.
    #[serde(default)]
    pub year: Option<i32>,
    /// The day of the first stamp, as `2024-05-15`, where stamps are times of day. A template may tell it.
    #[serde(default)]
    pub date: Option<String>,
    /// What stamps without an offset are ahead of UTC, as `+02:00`; UTC by default.
    #[serde(default)]
    pub offset: Option<String>,
}

fn time() -> String {
    "{time}".to_owned()
}

/// One text, or a list of texts.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(untagged)]
pub enum OneOrSeveral {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadTime)
    }
}

struct ReadTime;

impl<'de> Visitor<'de> for ReadTime {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a template in quotation marks, or { value = \"…\", format = \"…\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
        Ok(Time::Template(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Time, A::Error> {
        TimeFormat::deserialize(MapAccessDeserializer::new(map)).map(Time::Read)
    }
}

impl<'de> Deserialize<'de> for OneOrSeveral {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadTexts)
    }
}

struct ReadTexts;

impl<'de> Visitor<'de> for ReadTexts {
    type Value = OneOrSeveral;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotation marks, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OneOrSeveral, E> {
        Ok(OneOrSeveral::One(text.to_owned()))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<OneOrSeveral, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(OneOrSeveral::Several(texts))
    }
}

/// Formats of stamps, read once.
#[derive(Clone, Debug)]
pub(crate) struct Formats {
    formats: Vec<Vec<Item<'static>>>,
    year: Option<i32>,
    has_date: bool,
    offset: FixedOffset,
}

/// A time in UTC, and how many digits of a second were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) utc: NaiveDateTime,
    digits: usize,
    /// Number of the format in which it is written.
    format: usize,
}

/// The latest time of a source in each format, from which years and days go on that stamps leave open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latest(BTreeMap<usize, NaiveDateTime>);

impl Latest {
    /// Takes note of a time.
    pub(crate) fn note(&mut self, time: Instant) {
        let latest = self.0.entry(time.format).or_insert(time.utc);
        *latest = time.utc.max(*latest);
    }
}

impl Instant {
    /// As text.
    pub(crate) fn text(self) -> String {
        let nanos = format!("{:09}", self.utc.and_utc().timestamp_subsec_nanos().min(999_999_999));
        let fraction = match nanos.get(..self.digits) {
            Some(digits) if !digits.is_empty() => format!(".{digits}"),
            _ => String::new(),
        };
        format!("{}{fraction}Z", self.utc.format("%Y-%m-%dT%H:%M:%S"))
    }
}

impl TimeFormat {
    /// Reads the formats.
    ///
    /// # Errors
    /// When one is none, or the day or offset that is given.
    pub(crate) fn compile(&self, place: &str) -> Result<Formats, MappingError> {
        let texts = match &self.format {
            OneOrSeveral::One(text) => std::slice::from_ref(text),
            OneOrSeveral::Several(texts) => texts,
        };
        let bad = |what: &str, reason: String| MappingError::value(format!("{place}.{what}"), reason);
        if texts.is_empty() {
            return Err(bad("format", "there is no format".into()));
        }
        let mut formats = Vec::new();
        // A zone's name says no offset, but for those that are UTC; where the mapping gives one, the name is only skipped.
        let named = |text: &String| text.contains("%Z") && self.offset.is_none();
        let texts: Vec<String> = texts
            .iter()
            .flat_map(|text| match named(text) {
                true => ["UTC", "GMT", "Z"].iter().map(|zone| text.replace("%Z", zone)).collect(),
                false => vec![text.clone()],
            })
            .collect();
        for text in &texts {
            let items = StrftimeItems::new(text).parse_to_owned();
            let items =
                items.map_err(|_| bad("format", format!("'{text}' is no format as strftime has them")))?;
            if !items.iter().any(|item| matches!(item, Item::Numeric(..) | Item::Fixed(_))) {
                return Err(bad(
                    "format",
                    format!("'{text}' says nothing of a time; write for example %H:%M:%S"),
                ));
            }
            formats.push(items);
        }
        let offset = match &self.offset {
            None => FixedOffset::east_opt(0),
            Some(text) => text.parse().ok(),
        };
        let offset = offset.ok_or_else(|| bad("offset", "an offset is written as +02:00".into()))?;
        // A template tells the day only where there is a record.
        if let Some(text) = self.date.as_deref().filter(|text| !text.contains('{'))
            && text.parse::<NaiveDate>().is_err()
        {
            return Err(bad("date", format!("'{text}' is no day; write it as 2024-05-15")));
        }
        Ok(Formats { formats, year: self.year, has_date: self.date.is_some(), offset })
    }
}

impl Formats {
    /// Whether a year or a day is given for stamps that have none.
    pub(crate) fn is_given_a_date(&self) -> bool {
        self.year.is_some() || self.has_date
    }

    /// Reads a stamp. `day` is the day that is given for stamps that have none. Years and days that stamps leave open go on from the latest one
    /// in the same format.
    pub(crate) fn read(&self, text: &str, day: Option<&str>, latest: &Latest) -> Result<Instant, String> {
        let text = text.trim();
        let day = match day {
            None => None,
            Some(day) => match day.trim().parse::<NaiveDate>() {
                Ok(day) => Some(day),
                Err(_) => return Err(format!("the date is '{day}', not a day such as 2024-05-15")),
            },
        };
        let mut lacks = None;
        for (format, items) in self.formats.iter().enumerate() {
            let mut parsed = Parsed::new();
            if parse(&mut parsed, text, items.iter()).is_err() {
                continue;
            }
            match self.complete(parsed, day, latest.0.get(&format).copied()) {
                Ok(utc) => return Ok(Instant { utc, digits: digits(text, utc), format }),
                Err(what) => lacks = lacks.or(what),
            }
        }
        Err(match lacks {
            Some(what) => {
                format!("the time '{text}' has no {what}, and the mapping gives none: say {what} = … in time")
            }
            // What needs no format needs none here, unless it lacks the offset that the mapping gives.
            None if self.offset.local_minus_utc() == 0 => match as_it_is(text) {
                Some((utc, digits)) => return Ok(Instant { utc, digits, format: self.formats.len() }),
                None => no_format(text),
            },
            None => no_format(text),
        })
    }

    /// The time in UTC of what was read; or what it lacks.
    fn complete(
        &self,
        mut parsed: Parsed,
        day: Option<NaiveDate>,
        last: Option<NaiveDateTime>,
    ) -> Result<NaiveDateTime, Option<&'static str>> {
        let offset = parsed.offset().unwrap_or_else(|| self.offset.local_minus_utc());
        if parsed.timestamp().is_none() && parsed.hour_div_12().is_none() && parsed.hour_mod_12().is_none() {
            // A day alone begins at midnight.
            parsed.set_hour(0).and_then(|()| parsed.set_minute(0)).map_err(|_| None)?;
        }
        let utc = |parsed: &Parsed| {
            let local = parsed.to_naive_datetime_with_offset(offset).ok()?;
            local.checked_sub_signed(TimeDelta::try_seconds(offset.into())?)
        };
        if let Some(time) = utc(&parsed) {
            return Ok(time);
        }
        let dated = parsed.month().is_some() || parsed.ordinal().is_some() || parsed.day().is_some();
        let has_year =
            parsed.year().is_some() || parsed.year_mod_100().is_some() || parsed.isoyear().is_some();
        if dated && !has_year {
            let Some(first) = self.year.or(day.map(|day| day.year())) else { return Err(Some("year")) };
            let with = |year: i32| {
                let mut parsed = parsed.clone();
                parsed.set_year(i64::from(year)).ok()?;
                utc(&parsed)
            };
            let year = last.map_or(first, |last| last.year());
            let around = [with(year.saturating_sub(1)), with(year), with(year.saturating_add(1))];
            return goes_on(around, last, TimeDelta::days(183), TimeDelta::days(1)).ok_or(None);
        }
        if !dated && !has_year {
            let Some(first) = day else { return Err(Some("date")) };
            let with = |day: NaiveDate| {
                let mut parsed = parsed.clone();
                parsed.set_year(i64::from(day.year())).ok()?;
                parsed.set_month(i64::from(day.month())).ok()?;
                parsed.set_day(i64::from(day.day())).ok()?;
                utc(&parsed)
            };
            let local = last.and_then(|last| last.checked_add_signed(TimeDelta::try_seconds(offset.into())?));
            let day = local.map_or(first, |last| last.date());
            let around = [day.pred_opt().and_then(with), with(day), day.succ_opt().and_then(with)];
            return goes_on(around, last, TimeDelta::hours(12), TimeDelta::hours(1)).ok_or(None);
        }
        Err(None)
    }
}

fn no_format(text: &str) -> String {
    format!("the time '{text}' is in none of the mapping's formats")
}

/// The time of a stamp that needs no format: one that can be read in one way only, or a number from 1970. With it how many digits of a second it has.
fn as_it_is(text: &str) -> Option<(NaiveDateTime, usize)> {
    if let Some(utc) = demi_common::time::utc(text) {
        return Some((utc, digits(text, utc)));
    }
    let nanos = crate::time::utc_nanos(&text.into())?;
    let time = chrono::DateTime::from_timestamp_nanos(i64::try_from(nanos).ok()?).naive_utc();
    let zeros = (0..9).take_while(|zeros| nanos % 10_u64.pow(zeros + 1) == 0).count();
    Some((time, 9_usize.saturating_sub(zeros)))
}

/// Of the times in the period before that of the latest stamp, in that, and in the one after, the one that is meant. Time runs forward: a stamp that would be far
/// back belongs to the next period; one that is just before the latest, in the period before, was written a little late.
fn goes_on(
    [before, same, after]: [Option<NaiveDateTime>; 3],
    last: Option<NaiveDateTime>,
    far: TimeDelta,
    late: TimeDelta,
) -> Option<NaiveDateTime> {
    let Some(last) = last else { return same.or(after).or(before) };
    let is_late = |time: &NaiveDateTime| *time <= last && last - *time <= late;
    let is_far_back = |time: &NaiveDateTime| last - *time > far;
    match (before.filter(is_late), same) {
        (Some(before), _) if !same.as_ref().is_some_and(is_late) => Some(before),
        (_, Some(same)) if is_far_back(&same) => after.or(Some(same)),
        (_, same) => same.or(after).or(before),
    }
}

/// Digits of a second that were written: of a number behind a point or comma that says the same as the time.
fn digits(text: &str, time: NaiveDateTime) -> usize {
    let nanos = time.and_utc().timestamp_subsec_nanos();
    let runs = text.match_indices(['.', ',']).filter_map(|(at, _)| {
        let run = text.get(at + 1..)?;
        let length = run.bytes().take_while(u8::is_ascii_digit).count();
        let digits = run.get(..length.min(9)).filter(|digits| !digits.is_empty())?;
        let says = digits.parse::<u32>().ok()? * 10_u32.pow(9 - digits.len() as u32);
        (says == nanos).then_some(digits.len())
    });
    let fewest = || (0..=9).find(|digits| nanos.is_multiple_of(10_u32.pow(9 - *digits)));
    runs.max().unwrap_or_else(|| fewest().unwrap_or(9) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn formats(toml: &str) -> (Formats, Option<String>) {
        let Time::Read(read) = toml::from_str::<BTreeMap<String, Time>>(&format!("time = {toml}"))
            .unwrap()
            .remove("time")
            .unwrap()
        else {
            panic!("{toml}")
        };
        (read.compile("event.time").unwrap(), read.date)
    }

    fn read(toml: &str, text: &str) -> Result<String, String> {
        let (formats, day) = formats(toml);
        formats.read(text, day.as_deref(), &Latest::default()).map(Instant::text)
    }

    #[test]
    fn stamps_of_well_known_programs_are_read() {
        for (toml, text, time) in [
            (
                r#"{format="%m%d %H:%M:%S%.f", year=2024}"#,
                "0324 03:40:10.801139",
                "2024-03-24T03:40:10.801139Z",
            ),
            (r#"{format="%b %e %H:%M:%S", year=2022}"#, "Jan 28 13:28:24", "2022-01-28T13:28:24Z"),
            (r#"{format="%b %e %H:%M:%S", year=2022}"#, "Jan  8 13:28:24", "2022-01-08T13:28:24Z"),
            (
                r#"{format="%Y/%m/%d %H:%M:%S%.f"}"#,
                "2022/01/28 13:28:24.033678",
                "2022-01-28T13:28:24.033678Z",
            ),
            (
                r#"{format="%d %b %H:%M:%S%.3f", year=2019}"#,
                "17 Nov 21:08:46.752",
                "2019-11-17T21:08:46.752Z",
            ),
            (r#"{format="%d %b %Y %H:%M:%S%.f"}"#, "07 Apr 2021 17:08:15.364", "2021-04-07T17:08:15.364Z"),
            (r#"{format="%H:%M:%S%.f", date="2024-05-15"}"#, "07:51:16.133", "2024-05-15T07:51:16.133Z"),
            (r#"{format="%H:%M:%S,%3f", date="2024-05-15"}"#, "14:14:39,898", "2024-05-15T14:14:39.898Z"),
            (r#"{format="%Y-%m-%d %H:%M:%S,%3f"}"#, "2015-08-05 08:59:45,326", "2015-08-05T08:59:45.326Z"),
            (r#"{format="%m-%d|%H:%M:%S%.f", year=2023}"#, "01-04|23:41:40.836", "2023-01-04T23:41:40.836Z"),
            (r#"{format="%a %b %e %H:%M:%S %Y"}"#, "Tue Feb 18 18:13:36 2020", "2020-02-18T18:13:36Z"),
            (
                r#"{format="%Y-%m-%d %H:%M:%S%.f%:z"}"#,
                "2021-11-16 16:49:45.895843+01:00",
                "2021-11-16T15:49:45.895843Z",
            ),
            (r#"{format="%d/%b/%Y:%H:%M:%S %z"}"#, "10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            (r#"{format="%y%m%d %H:%M:%S%.f"}"#, "210303 18:31:18.123456", "2021-03-03T18:31:18.123456Z"),
            (r#"{format="%s%.f"}"#, "1715731200.25", "2024-05-15T00:00:00.25Z"),
            (r#"{format="%s"}"#, "1715731200", "2024-05-15T00:00:00Z"),
            (r#"{format="%m/%d/%Y %I:%M:%S %p"}"#, "05/15/2024 02:03:04 PM", "2024-05-15T14:03:04Z"),
            (r#"{format="%d.%m.%Y"}"#, "15.05.2024", "2024-05-15T00:00:00Z"),
            (r#"{format="%Y-%j %H:%M"}"#, "2024-136 10:30", "2024-05-15T10:30:00Z"),
            (
                r#"{format=["%H:%M:%S", "%Y-%m-%d %H:%M:%S"], offset="+02:00"}"#,
                "2024-05-15 01:30:00",
                "2024-05-14T23:30:00Z",
            ),
            (
                r#"{format="%H:%M:%S", date="2024-05-15", offset="-05:00"}"#,
                "23:00:00",
                "2024-05-16T04:00:00Z",
            ),
        ] {
            assert_eq!(read(toml, text), Ok(time.to_owned()), "{toml}");
        }
    }

    #[test]
    fn what_needs_no_format_needs_none_beside_others() {
        let toml = r#"{format="%m/%d/%Y %I:%M:%S %p"}"#;
        for (text, time) in [
            ("5/27/2013 10:53:39 PM", "2013-05-27T22:53:39Z"),
            ("2013-05-27 22:53:39,250", "2013-05-27T22:53:39.250Z"),
            ("1369695219250", "2013-05-27T22:53:39.25Z"),
        ] {
            assert_eq!(read(toml, text), Ok(time.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let why = |toml: &str, text: &str| read(toml, text).unwrap_err();
        assert!(why(r#"{format="%b %e %H:%M:%S"}"#, "Jan 28 13:28:24").contains("has no year"));
        assert!(why(r#"{format="%H:%M:%S"}"#, "13:28:24").contains("has no date"));
        assert!(why(r#"{format="%H:%M:%S"}"#, "yesterday").contains("none of the mapping's formats"));
        assert!(
            why(r#"{format="%H:%M", offset="+02:00"}"#, "2024-05-15 10:00:01")
                .contains("none of the mapping's formats"),
            "whether it is ahead of UTC nobody knows"
        );
        assert!(why(r#"{format="%a %Y-%m-%d"}"#, "Mon 2024-05-15").contains("none of"), "a Wednesday");
        let parse = |toml: &str| {
            let text = format!(
                "name='x'\ndescription='d'\n[input]\ncontainer='json-lines'\n[event]\nactor='a'\ntime = {toml}\n"
            );
            super::super::Mapping::parse(&text, "m").unwrap_err().to_string()
        };
        assert!(parse(r#"{format="%Q"}"#).contains("no format as strftime"), "{}", parse(r#"{format="%Q"}"#));
        assert!(parse(r#"{format="plain"}"#).contains("nothing of a time"));
        assert!(parse(r#"{format="%H", date="today"}"#).contains("no day"));
        assert!(parse(r#"{format="%H", offset="2"}"#).contains("+02:00"));
        assert!(
            parse(r#"{fromat="%H"}"#).contains("did you mean `format`?"),
            "{}",
            parse(r#"{fromat="%H"}"#)
        );
        assert!(parse("7").contains("a template in quotation marks"), "{}", parse("7"));
    }

    #[test]
    fn years_and_days_go_on_by_themselves() {
        let all = |toml: &str, texts: &[&str]| -> Vec<String> {
            let (formats, day) = formats(toml);
            let mut latest = Latest::default();
            let each = texts.iter().map(|text| {
                let time = formats.read(text, day.as_deref(), &latest).unwrap();
                latest.note(time);
                time.text()
            });
            each.collect()
        };
        assert_eq!(
            all(
                r#"{format="%b %e %H:%M:%S", year=2023}"#,
                &["Dec 31 23:59:59", "Jan  1 00:00:01", "Dec 31 23:59:59", "Feb 29 00:00:00"]
            ),
            ["2023-12-31T23:59:59Z", "2024-01-01T00:00:01Z", "2023-12-31T23:59:59Z", "2024-02-29T00:00:00Z"],
        );
        assert_eq!(
            all(
                r#"{format="%H:%M:%S", date="2024-02-28", offset="+01:00"}"#,
                &["23:59:59", "00:00:01", "23:59:58", "12:00:00", "20:00:00"]
            ),
            [
                "2024-02-28T22:59:59Z",
                "2024-02-28T23:00:01Z",
                "2024-02-28T22:59:58Z",
                "2024-02-29T11:00:00Z",
                "2024-02-29T19:00:00Z"
            ],
        );
        // Time runs forward, also over many months.
        assert_eq!(
            all(r#"{format="%b %e", year=2024}"#, &["Mar 24", "Jan 28", "Nov 17", "Jan  4", "Dec 31"]),
            [
                "2024-03-24T00:00:00Z",
                "2024-01-28T00:00:00Z",
                "2024-11-17T00:00:00Z",
                "2025-01-04T00:00:00Z",
                "2025-12-31T00:00:00Z"
            ],
        );
        // Each format goes on by itself.
        let several = r#"{format=["%b %e", "%H:%M", "%Y-%m-%d"], year=2024, date="2022-05-06"}"#;
        assert_eq!(
            all(several, &["2030-01-01", "Dec 24", "10:00", "Jan  1", "09:00"]),
            [
                "2030-01-01T00:00:00Z",
                "2024-12-24T00:00:00Z",
                "2022-05-06T10:00:00Z",
                "2025-01-01T00:00:00Z",
                "2022-05-06T09:00:00Z"
            ],
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,24}", format in "[%a-zA-Z:., -]{0,10}") {
            let read = TimeFormat { value: time(), format: OneOrSeveral::One(format), year: Some(2024), date: None, offset: None };
            if let Ok(formats) = read.compile("x") {
                let _ = formats.read(&text, Some("2024-05-15"), &Latest::default());
            }
        }

        /// What chrono writes in a format is read back.
        #[test]
        fn what_is_written_is_read(seconds in 1_000_000_000_i64..2_000_000_000, nanos in 0_u32..1_000_000_000, which in 0_usize..4) {
            let format = ["%Y-%m-%d %H:%M:%S%.9f", "%d/%b/%Y:%H:%M:%S%.f", "%y%m%d %I:%M:%S%.9f %p", "%s%.9f"][which];
            let time = chrono::DateTime::from_timestamp(seconds, nanos).unwrap();
            let read = TimeFormat { value: time_template(), format: OneOrSeveral::One(format.into()), year: None, date: None, offset: None };
            let found = read.compile("x").unwrap().read(&time.format(format).to_string(), None, &Latest::default()).unwrap();
            prop_assert_eq!(found.utc, time.naive_utc());
        }
    }

    fn time_template() -> String {
        time()
    }
}

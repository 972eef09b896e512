//! Comma-separated values: a header line that names the columns, then records, of which quoted fields may have several lines. What separates them is the
//! comma, unless the header has none and semicolons, tabs or bars in its place, or a line before it says `sep=;`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::{Decoded, Parts, Record};
use crate::fate::Fate;

thread_local! {
    /// Making a reader costs more than most lines, so it is used again. (A clone of one has lost its final states.)
    static READER: RefCell<(Separator, Reader)> = RefCell::new((Separator::default(), Reader::new()));
}

/// What stands between two fields: one byte of ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Separator(u8);

impl Default for Separator {
    fn default() -> Self {
        Separator(b',')
    }
}

impl Separator {
    /// That of a file which begins so.
    pub(crate) fn of(head: &str) -> Separator {
        let first = head.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
        if let Some(told) = Separator::told(first) {
            return told;
        }
        let mut inside = false;
        let mut counts = [0_u32; 4];
        for byte in first.bytes() {
            inside ^= byte == b'"';
            if let Some(at) = [b',', b';', b'\t', b'|'].iter().position(|one| *one == byte && !inside) {
                counts[at] += 1;
            }
        }
        match counts {
            [0, semicolons, tabs, bars] if semicolons + tabs + bars > 0 => {
                let most = semicolons.max(tabs).max(bars);
                Separator(if semicolons == most {
                    b';'
                } else if tabs == most {
                    b'\t'
                } else {
                    b'|'
                })
            }
            _ => Separator::default(),
        }
    }

    /// What a line before the header says it is, as Excel writes it.
    pub(crate) fn told(line: &str) -> Option<Separator> {
        let told = line.trim_end_matches(['\r', '\n']).strip_prefix("sep=")?;
        Separator::from_char(told.chars().next().filter(|_| told.chars().count() == 1)?)
    }

    /// From what was written down.
    pub(crate) fn from_char(c: char) -> Option<Separator> {
        let byte = u8::try_from(c).ok()?;
        (byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(&byte))
            .then_some(Separator(byte))
    }

    /// To be written down.
    pub(crate) fn as_char(self) -> char {
        self.0.into()
    }
}

/// The fields of one line: a text, and where in it each begins and ends.
type Split<'a> = (Cow<'a, str>, Vec<(usize, usize)>);

/// The fields of one line, quoted ones without their quotes (RFC 4180).
pub(crate) fn fields(text: &str, separator: Separator) -> Result<Vec<String>, String> {
    let (text, spans) = split(text, separator)?;
    Ok(spans.into_iter().map(|(begin, end)| text[begin..end].to_owned()).collect())
}

fn split(text: &str, separator: Separator) -> Result<Split<'_>, String> {
    let plain = text.strip_suffix('\r').unwrap_or(text);
    if plain.is_empty() || memchr::memchr3(b'"', b'\r', b'\n', plain.as_bytes()).is_some() {
        return READER.with_borrow_mut(|(of, reader)| {
            if *of != separator {
                *reader = ReaderBuilder::new().delimiter(separator.0).build();
                *of = separator;
            }
            quoted(reader, text)
        });
    }
    let mut spans = Vec::with_capacity(16);
    let mut begin = 0;
    for end in memchr::memchr_iter(separator.0, plain.as_bytes()) {
        spans.push((begin, end));
        begin = end + 1;
    }
    spans.push((begin, plain.len()));
    Ok((Cow::Borrowed(plain), spans))
}

fn quoted<'a>(reader: &mut Reader, text: &str) -> Result<Split<'a>, String> {
    reader.reset();
    // The fields together are no longer than the line, and each but the last takes a comma.
    let mut out = vec![0; text.len() + 1];
    let mut ends = vec![0; text.len() + 2];
    let (mut read, mut written, mut ended) = (0, 0, 0);
    loop {
        let (result, r, w, e) =
            reader.read_record(&text.as_bytes()[read..], &mut out[written..], &mut ends[ended..]);
        (read, written, ended) = (read + r, written + w, ended + e);
        match result {
            ReadRecordResult::Record => break,
            ReadRecordResult::InputEmpty => {}
            _ => return Err("no record".into()),
        }
    }
    if !text[read..].trim_matches(['\r', '\n']).is_empty() {
        return Err("more than one record".into());
    }
    out.truncate(written);
    // A separator is one byte, so that fields of a text are texts.
    let out = String::from_utf8(out).map_err(|e| e.utf8_error().to_string())?;
    let mut begin = 0;
    let spans = ends[..ended].iter().map(|&end| (std::mem::replace(&mut begin, end), end));
    let spans: Vec<(usize, usize)> = spans.collect();
    if spans.iter().any(|&(begin, end)| out.get(begin..end).is_none()) {
        return Err("a field is no text".into());
    }
    Ok((Cow::Owned(out), spans))
}

/// How a line leaves the field that it ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The record ends with the line.
    Whole,
    /// A quoted field goes on in the next line (RFC 4180, section 2, rule 6).
    Open,
    /// Text stands behind the quote that ends a field, so that nobody knows where it ends.
    Broken,
}

/// How a line ends that begins inside of a quoted field, or at the beginning of a record.
pub(crate) fn ending(text: &str, mut inside: bool, separator: Separator) -> Ending {
    let bytes = text.strip_suffix('\r').unwrap_or(text).as_bytes();
    let mut at = 0;
    loop {
        if inside {
            let Some(quote) = memchr::memchr(b'"', &bytes[at..]) else { return Ending::Open };
            at += quote + 1;
            match bytes.get(at) {
                None => return Ending::Whole,
                // Two quotes are one of the text.
                Some(b'"') => {}
                Some(byte) if *byte == separator.0 => inside = false,
                Some(_) => return Ending::Broken,
            }
            at += 1;
        } else if bytes.get(at) == Some(&b'"') {
            (inside, at) = (true, at + 1);
        } else {
            let Some(comma) = memchr::memchr(separator.0, &bytes[at..]) else { return Ending::Whole };
            at += comma + 1;
        }
    }
}

/// A record under the given header.
pub(crate) fn line<'a>(header: &Arc<[String]>, separator: Separator, text: &'a str) -> Fate<Decoded<'a>> {
    let bad = |reason: String| Fate::rejected("not_csv", reason);
    match split(text, separator) {
        Err(reason) => bad(reason),
        // Files that were put together have it several times.
        Ok((text, spans))
            if spans
                .iter()
                .map(|&(begin, end)| text[begin..end].trim())
                .eq(header.iter().map(String::as_str)) =>
        {
            Fate::LeftOut("header")
        }
        Ok((_, spans)) if spans.len() != header.len() => {
            bad(format!("{} fields, the header has {}", spans.len(), header.len()))
        }
        Ok((text, spans)) => {
            // An empty field has no value.
            let spans = spans.into_iter().map(|(begin, end)| (begin < end).then_some((begin, end))).collect();
            let parts = Parts { names: Arc::clone(header), text, spans, nulls: true };
            Fate::Row(Decoded::Record(Record::Parts(parts)))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const COMMA: Separator = Separator(b',');

    #[test]
    fn a_header_tells_what_separates() {
        for (head, separator) in [
            ("a,b;c", ','),
            ("a;b;c\n1,5;2;3", ';'),
            ("\u{feff}a\tb\n", '\t'),
            ("a|b", '|'),
            ("a", ','),
            ("", ','),
            ("\"a;b\"\n", ','),
            ("sep=;\na,b", ';'),
            ("sep=x\na;b", ','),
        ] {
            assert_eq!(Separator::of(head).as_char(), separator, "{head:?}");
        }
        assert_eq!(fields("a;\"b;\"\"\";c", Separator(b';')).unwrap(), ["a", "b;\"", "c"]);
        assert_eq!(fields("a,\"b\"", COMMA).unwrap(), ["a", "b"]);
    }

    #[test]
    fn quotes_and_wrong_counts() {
        let header: Arc<[String]> = fields("a,b,c\r", COMMA).unwrap().into();
        let Fate::Row(Decoded::Record(record)) = line(&header, COMMA, "1,\"x, \"\"y\"\"\",") else {
            panic!("no record")
        };
        assert_eq!(record.value(), json!({"a": "1", "b": "x, \"y\"", "c": null}));
        assert!(matches!(line(&header, COMMA, "1,2"), Fate::Quarantined(_)));
    }

    #[test]
    fn a_quoted_field_may_go_on() {
        use Ending::{Broken, Open, Whole};
        for (text, inside, expected) in [
            ("", false, Whole),
            ("a,\"b", false, Open),
            ("a,\"b,\"\"", false, Open),
            ("a,\"b\"\"\"", false, Whole),
            ("a,\"b\",c\r", false, Whole),
            ("5\" disk,\"", false, Open),
            ("5\" disk", false, Whole),
            ("b,c", true, Open),
            ("b\",c", true, Whole),
            ("b\"c", true, Broken),
            ("\"", true, Whole),
        ] {
            assert_eq!(ending(text, inside, COMMA), expected, "{text:?} {inside}");
        }
    }

    proptest! {
        #[test]
        fn one_line_is_split_as_a_reader_of_files_splits_it(text in "[a-zé, ;\"\r\n]{0,16}") {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let records: Vec<csv::StringRecord> = reader.records().filter_map(Result::ok).collect();
            match (records.as_slice(), fields(&text, COMMA)) {
                ([record], Ok(fields)) => prop_assert_eq!(record.iter().collect::<Vec<_>>(), fields),
                (_, found) => prop_assert!(found.is_err(), "{:?}", found),
            }
        }

        #[test]
        fn what_is_quoted_comes_back(values in proptest::collection::vec("[^\r\n]{0,8}", 1..6)) {
            let quoted: Vec<String> = values.iter().map(|v| format!("\"{}\"", v.replace('"', "\"\""))).collect();
            prop_assert_eq!(fields(&quoted.join(","), COMMA).unwrap(), values);
        }
    }
}

//! Comma-separated values: a header line that names the columns, then records, of which quoted fields may have several lines.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader};

use super::{Decoded, Parts, Record};
use crate::fate::Fate;

thread_local! {
    /// Making a reader costs more than most lines, so it is used again. (A clone of one has lost its final states.)
    static READER: RefCell<Reader> = RefCell::new(Reader::new());
}

/// The fields of one line: a text, and where in it each begins and ends.
type Split<'a> = (Cow<'a, str>, Vec<(usize, usize)>);

/// The fields of one line, quoted ones without their quotes (RFC 4180).
pub(crate) fn fields(text: &str) -> Result<Vec<String>, String> {
    let (text, spans) = split(text)?;
    Ok(spans.into_iter().map(|(begin, end)| text[begin..end].to_owned()).collect())
}

fn split(text: &str) -> Result<Split<'_>, String> {
    let plain = text.strip_suffix('\r').unwrap_or(text);
    if plain.is_empty() || memchr::memchr3(b'"', b'\r', b'\n', plain.as_bytes()).is_some() {
        return READER.with_borrow_mut(|reader| quoted(reader, text));
    }
    let mut spans = Vec::with_capacity(16);
    let mut begin = 0;
    for end in memchr::memchr_iter(b',', plain.as_bytes()) {
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
    // A comma is one byte, so that fields of a text are texts.
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
pub(crate) fn ending(text: &str, mut inside: bool) -> Ending {
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
                Some(b',') => inside = false,
                Some(_) => return Ending::Broken,
            }
            at += 1;
        } else if bytes.get(at) == Some(&b'"') {
            (inside, at) = (true, at + 1);
        } else {
            let Some(comma) = memchr::memchr(b',', &bytes[at..]) else { return Ending::Whole };
            at += comma + 1;
        }
    }
}

/// A record under the given header.
pub(crate) fn line<'a>(header: &Arc<[String]>, text: &'a str) -> Fate<Decoded<'a>> {
    let bad = |reason: String| Fate::rejected("not_csv", reason);
    match split(text) {
        Err(reason) => bad(reason),
        // Files that were put together have it several times.
        Ok((text, spans)) if spans.iter().map(|&(begin, end)| &text[begin..end]).eq(header.iter()) => {
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

    #[test]
    fn quotes_and_wrong_counts() {
        let header: Arc<[String]> = fields("a,b,c\r").unwrap().into();
        let Fate::Row(Decoded::Record(record)) = line(&header, "1,\"x, \"\"y\"\"\",") else {
            panic!("no record")
        };
        assert_eq!(record.value(), json!({"a": "1", "b": "x, \"y\"", "c": null}));
        assert!(matches!(line(&header, "1,2"), Fate::Quarantined(_)));
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
            assert_eq!(ending(text, inside), expected, "{text:?} {inside}");
        }
    }

    proptest! {
        #[test]
        fn one_line_is_split_as_a_reader_of_files_splits_it(text in "[a-zé, ;\"\r\n]{0,16}") {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let records: Vec<csv::StringRecord> = reader.records().filter_map(Result::ok).collect();
            match (records.as_slice(), fields(&text)) {
                ([record], Ok(fields)) => prop_assert_eq!(record.iter().collect::<Vec<_>>(), fields),
                (_, found) => prop_assert!(found.is_err(), "{:?}", found),
            }
        }

        #[test]
        fn what_is_quoted_comes_back(values in proptest::collection::vec("[^\r\n]{0,8}", 1..6)) {
            let quoted: Vec<String> = values.iter().map(|v| format!("\"{}\"", v.replace('"', "\"\""))).collect();
            prop_assert_eq!(fields(&quoted.join(",")).unwrap(), values);
        }
    }
}

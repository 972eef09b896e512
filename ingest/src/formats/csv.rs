//! Comma-separated values: a header line that names the columns, then one record a line.

use std::cell::RefCell;

use csv_core::{ReadRecordResult, Reader};
use serde_json::{Map, Value};

use super::Decoded;

thread_local! {
    /// Making a reader costs more than most lines, so it is used again. (A clone of one has lost its final states.)
    static READER: RefCell<Reader> = RefCell::new(Reader::new());
}

/// The fields of one line, quoted ones without their quotes (RFC 4180).
pub(crate) fn fields(text: &str) -> Result<Vec<String>, String> {
    let plain = text.strip_suffix('\r').unwrap_or(text);
    if !plain.is_empty() && !plain.contains(['"', '\r', '\n']) {
        return Ok(plain.split(',').map(str::to_owned).collect());
    }
    READER.with_borrow_mut(|reader| quoted(reader, text))
}

fn quoted(reader: &mut Reader, text: &str) -> Result<Vec<String>, String> {
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
    let mut begin = 0;
    ends[..ended]
        .iter()
        .map(|&end| {
            let field = std::str::from_utf8(&out[begin..end]).map_err(|e| e.to_string())?;
            begin = end;
            Ok(field.to_owned())
        })
        .collect()
}

/// A line under the given header. Fields with line feeds in them are not understood.
pub(crate) fn line(header: &[String], text: &str) -> Decoded {
    let bad = |reason| Decoded::Bad { code: "not_csv", reason };
    match fields(text) {
        Err(reason) => bad(reason),
        Ok(fields) if fields.len() != header.len() => {
            bad(format!("{} fields, the header has {}", fields.len(), header.len()))
        }
        Ok(fields) => {
            // An empty field has no value.
            let value = |field: String| if field.is_empty() { Value::Null } else { Value::String(field) };
            let map: Map<String, Value> = header.iter().cloned().zip(fields.into_iter().map(value)).collect();
            Decoded::Record(Value::Object(map))
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
        let header = fields("a,b,c\r").unwrap();
        let record = json!({"a": "1", "b": "x, \"y\"", "c": null});
        assert_eq!(line(&header, "1,\"x, \"\"y\"\"\","), Decoded::Record(record));
        assert!(matches!(line(&header, "1,2"), Decoded::Bad { .. }));
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

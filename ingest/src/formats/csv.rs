//! Comma-separated values: a header line that names the columns, then one record a line.

use serde_json::{Map, Value};

use super::Decoded;

/// The fields of one line, quoted ones without their quotes (RFC 4180).
pub(crate) fn fields(text: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) if reader.is_done() || reader.records().next().is_none() => {
            Ok(record.iter().map(str::to_owned).collect())
        }
        Some(Err(error)) => Err(error.to_string()),
        _ => Err("no record, or more than one".into()),
    }
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
        fn what_is_quoted_comes_back(values in proptest::collection::vec("[^\r\n]{0,8}", 1..6)) {
            let quoted: Vec<String> = values.iter().map(|v| format!("\"{}\"", v.replace('"', "\"\""))).collect();
            prop_assert_eq!(fields(&quoted.join(",")).unwrap(), values);
        }
    }
}

//! JSON documents, one or several in a file, and where in the file their parts are.

use std::ops::Range;

use serde_json::{Deserializer, Value};

/// A part of a file: a document, or an element of one that is an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// Its bytes in the file.
    pub(crate) bytes: Range<usize>,
    /// Its value, or why it has none.
    pub(crate) value: Result<Value, String>,
}

/// Cuts a file into documents. After one that is broken the next line is tried.
pub(crate) fn documents(data: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = if data.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while at < data.len() {
        let mut stream = Deserializer::from_slice(&data[at..]).into_iter::<Value>();
        match stream.next() {
            None => break,
            Some(Ok(value)) => {
                let end = at + stream.byte_offset();
                parts.push(Part { bytes: trim(data, at..end), value: Ok(value) });
                at = end;
            }
            Some(Err(error)) => {
                let begin = trim(data, at..data.len()).start;
                let line_end =
                    data[begin..].iter().position(|&b| b == b'\n').map_or(data.len(), |n| begin + n + 1);
                // A document that runs over lines and is cut off takes the rest of the file with it.
                let end = if error.is_eof() { data.len() } else { line_end };
                parts.push(Part { bytes: begin..end, value: Err(plain(&error)) });
                at = end;
            }
        }
    }
    parts
}

/// The elements of an array, each with its bytes; `base` is where the array begins in the file.
pub(crate) fn elements(data: &[u8], base: usize, values: Vec<Value>) -> Vec<Part> {
    let mut ranges = Vec::with_capacity(values.len());
    let (mut depth, mut text, mut escaped, mut begin) = (0_usize, false, false, 0);
    for (i, &b) in data.iter().enumerate() {
        if text {
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => text = false,
                _ => {}
            }
            continue;
        }
        match b {
            b'"' => text = true,
            b'[' | b'{' => {
                depth += 1;
                if depth == 1 {
                    begin = i + 1;
                }
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    ranges.push(begin..i);
                }
            }
            b',' if depth == 1 => {
                ranges.push(begin..i);
                begin = i + 1;
            }
            _ => {}
        }
    }
    let whole = base..base + data.len();
    let mut ranges = ranges.into_iter().map(|r| {
        let r = trim(data, r);
        base + r.start..base + r.end
    });
    values
        .into_iter()
        .map(|value| Part { bytes: ranges.next().unwrap_or_else(|| whole.clone()), value: Ok(value) })
        .collect()
}

/// The error without its place, which would count from the part's beginning.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn trim(data: &[u8], range: Range<usize>) -> Range<usize> {
    let slice = &data[range.clone()];
    let front = slice.len() - slice.trim_ascii_start().len();
    let back = slice.trim_ascii_start().trim_ascii_end().len();
    range.start + front..range.start + front + back
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_and_elements_know_their_bytes() {
        let data = b"\xef\xbb\xbf {\"a\":1}\n{\"b\":[2]}\nrubbish\n[ {\"c\":\"],\"} , 7 ]\n{\"d\":";
        let parts = documents(data);
        let shown: Vec<_> = parts
            .iter()
            .map(|p| (std::str::from_utf8(&data[p.bytes.clone()]).unwrap().trim(), p.value.is_ok()))
            .collect();
        assert_eq!(
            shown,
            [
                ("{\"a\":1}", true),
                ("{\"b\":[2]}", true),
                ("rubbish", false),
                ("[ {\"c\":\"],\"} , 7 ]", true),
                ("{\"d\":", false)
            ]
        );
        let Ok(Value::Array(values)) = parts[3].value.clone() else { panic!() };
        let range = parts[3].bytes.clone();
        let inner = elements(&data[range.clone()], range.start, values);
        let texts: Vec<_> =
            inner.iter().map(|p| std::str::from_utf8(&data[p.bytes.clone()]).unwrap()).collect();
        assert_eq!(texts, ["{\"c\":\"],\"}", "7"]);
        assert_eq!(inner[1].value, Ok(json!(7)));
    }

    proptest! {
        #[test]
        fn elements_are_their_own_text(values in proptest::collection::vec("[\\[\\]{},\"\\\\a]{0,6}", 0..6)) {
            let array: Vec<Value> = values.iter().map(|v| json!({"x": v, "y": [v]})).collect();
            let text = serde_json::to_string_pretty(&array).unwrap();
            for part in elements(text.as_bytes(), 0, array) {
                let own: Value = serde_json::from_slice(&text.as_bytes()[part.bytes.clone()]).unwrap();
                prop_assert_eq!(Ok(own), part.value);
            }
        }

        #[test]
        fn any_bytes_are_cut(data in proptest::collection::vec(any::<u8>(), 0..80)) {
            let parts = documents(&data);
            for pair in parts.windows(2) {
                prop_assert!(pair[0].bytes.end <= pair[1].bytes.start.max(pair[0].bytes.end));
            }
        }
    }
}

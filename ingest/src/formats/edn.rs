//! EDN (extensible data notation), as far as Jepsen's histories use it, read into JSON values.
//!
//! Keywords and symbols become text without the colon, `nil` becomes `null`, lists, vectors and sets become arrays, maps
//! objects (a key that is no text becomes its text); commas are blanks; `;` begins a comment, `#_` leaves out the next form, and other
//! tags are passed over.

use serde_json::{Map, Number, Value};

use super::{Decoded, Record};

/// Forms within forms; deeper ones are refused.
const DEPTH: usize = 64;

/// Reads the map of a line; nothing where there is only a comment.
pub(crate) fn line(text: &str) -> Decoded<'static> {
    let mut reader = Reader { rest: text };
    let bad = |reason| Decoded::Bad { code: "not_edn", reason };
    let first = match reader.form(0) {
        Ok(Some(form)) => form,
        Ok(None) => return Decoded::Nothing("comment"),
        Err(reason) => return bad(reason),
    };
    match (first, reader.form(0)) {
        (value @ Value::Object(_), Ok(None)) => Decoded::Record(Record::Json(value)),
        (_, Err(reason)) => bad(reason),
        (Value::Object(_), Ok(Some(_))) => bad("more than one form in the line".into()),
        _ => bad("the line is EDN, but no map".into()),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            match self.rest.strip_prefix(';') {
                Some(comment) => self.rest = comment.find('\n').map_or("", |end| &comment[end..]),
                None => return,
            }
        }
    }

    /// The next form; none at the end or before a closing bracket.
    fn form(&mut self, depth: usize) -> Result<Option<Value>, String> {
        if depth > DEPTH {
            return Err(format!("forms are nested more than {DEPTH} deep"));
        }
        self.skip_blanks();
        let Some(c) = self.rest.chars().next() else { return Ok(None) };
        let after = &self.rest[c.len_utf8()..];
        match c {
            ')' | ']' | '}' if depth > 0 => Ok(None),
            ')' | ']' | '}' => Err(format!("'{c}' closes nothing")),
            '(' => self.sequence(after, ')', depth).map(|items| Some(Value::Array(items))),
            '[' => self.sequence(after, ']', depth).map(|items| Some(Value::Array(items))),
            '{' => {
                let items = self.sequence(after, '}', depth)?;
                if items.len() % 2 == 1 {
                    return Err("a map has a key without a value".into());
                }
                let mut map = Map::new();
                let mut items = items.into_iter();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    let key = if let Value::String(text) = key { text } else { key.to_string() };
                    map.insert(key, value);
                }
                Ok(Some(Value::Object(map)))
            }
            '"' => self.string(after).map(Some),
            '#' => match after.chars().next() {
                Some('{') => self.sequence(&after[1..], '}', depth).map(|items| Some(Value::Array(items))),
                Some('_') => {
                    self.rest = &after[1..];
                    self.form(depth + 1)?.ok_or("'#_' has nothing behind it")?;
                    self.form(depth)
                }
                _ => {
                    // A tag: `#inst "…"`, `#jepsen.history.Op{…}`.
                    let end = after.find(|c: char| c.is_whitespace() || "{[(\",".contains(c));
                    self.rest = &after[end.unwrap_or(after.len())..];
                    match self.form(depth + 1)? {
                        Some(value) => Ok(Some(value)),
                        None => Err("a tag has nothing behind it".into()),
                    }
                }
            },
            _ => self.atom().map(Some),
        }
    }

    fn sequence(&mut self, after: &str, close: char, depth: usize) -> Result<Vec<Value>, String> {
        // Lifetimes: `after` is a part of `rest`.
        let skip = self.rest.len() - after.len();
        self.rest = &self.rest[skip..];
        let mut items = Vec::new();
        while let Some(item) = self.form(depth + 1)? {
            items.push(item);
        }
        match self.rest.strip_prefix(close) {
            Some(rest) => {
                self.rest = rest;
                Ok(items)
            }
            None => Err(format!("'{close}' is missing")),
        }
    }

    fn string(&mut self, after: &str) -> Result<Value, String> {
        let skip = self.rest.len() - after.len();
        let text = &self.rest[skip..];
        let mut out = String::new();
        let mut chars = text.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &text[i + 1..];
                    return Ok(Value::String(out));
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, c)) => out.push(c),
                    None => break,
                },
                c => out.push(c),
            }
        }
        Err("a quote is not closed".into())
    }

    fn atom(&mut self) -> Result<Value, String> {
        let ends = |c: char| c.is_whitespace() || ",;\"()[]{}".contains(c);
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(match atom {
            "nil" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match number(atom) {
                Some(number) => Value::Number(number),
                None => Value::String(atom.strip_prefix(':').unwrap_or(atom).to_owned()),
            },
        })
    }
}

/// Whole and floating numbers; `N` and `M` behind them are passed over where the value fits.
fn number(atom: &str) -> Option<Number> {
    let digits = atom.strip_suffix(['N', 'M']).unwrap_or(atom);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    if !digits.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(whole) = digits.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = digits.parse::<u64>() {
        return Some(whole.into());
    }
    digits.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_history_line() {
        let text = r#"{:index 3, :type :ok, :process 4, :value [[:append 8 1] [:r 9 nil]], :s #{1}} ; end"#;
        let expected = json!({
            "index": 3, "type": "ok", "process": 4, "value": [["append", 8, 1], ["r", 9, null]], "s": [1],
        });
        assert_eq!(line(text), Decoded::Record(Record::Json(expected)));
        assert_eq!(line("; only a comment"), Decoded::Nothing("comment"));
        let tagged = r#"#jepsen.history.Op{:index 0, :time 1.5, :e "a \"b\"", #_:gone :f :read, 7 8N}"#;
        assert_eq!(
            line(tagged),
            Decoded::Record(Record::Json(
                json!({"index": 0, "time": 1.5, "e": "a \"b\"", "f": "read", "7": 8})
            ))
        );
    }

    #[test]
    fn broken_ones_say_why() {
        for (text, why) in [
            ("{:a 1", "'}' is missing"),
            ("{:a}", "without a value"),
            ("[1]", "no map"),
            ("{} {}", "more than one"),
            ("]", "closes nothing"),
            ("{:a \"x}", "quote"),
            ("#_", "nothing behind"),
        ] {
            let Decoded::Bad { reason, .. } = line(text) else { panic!("{text}") };
            assert!(reason.contains(why), "{text}: {reason}");
        }
        assert!(matches!(line(&"[".repeat(100_000)), Decoded::Bad { .. }));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"[a-z0-9:{}\[\]()"\\#_;, .\n-]{0,60}"#) {
            let _ = line(&text);
        }
    }
}

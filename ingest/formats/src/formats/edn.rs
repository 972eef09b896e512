//! EDN (extensible data notation), as far as Jepsen's histories use it, read into JSON values.
//!
//! Keywords and symbols become text without the colon, `nil` becomes `null`, lists, vectors and sets become arrays, maps
//! objects (a key that is no text becomes its text); commas are blanks; `;` begins a comment, `#_` leaves out the next form, and other
//! tags are passed over.

use serde_json::{Map, Number, Value};

use super::quoted::quoted;

/// Forms within forms; deeper ones are refused.
const DEPTH: usize = 64;

/// Reads one form; nothing where the text has only comments and forms that are left out.
pub(crate) fn form(text: &str) -> Result<Option<Value>, String> {
    let mut reader = Reader { rest: text };
    let first = reader.form(0)?;
    match reader.form(0)? {
        Some(_) => Err("more than one form".into()),
        None => Ok(first),
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
                // Infinity and what is no number have no JSON.
                Some('#') => {
                    self.rest = &after[1..];
                    self.atom().map(Some)
                }
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
        let (text, rest) = quoted(&self.rest[skip..])?;
        self.rest = rest;
        Ok(Value::String(text))
    }

    /// A character, such as `\a`, `\{` or `\newline`.
    fn character(&mut self) -> Result<Option<String>, String> {
        let Some(text) = self.rest.strip_prefix('\\') else { return Ok(None) };
        let Some(first) = text.chars().next() else {
            return Err("a character is missing behind '\\'".into());
        };
        let behind = &text[first.len_utf8()..];
        let end = first.len_utf8() + behind.find(ends).unwrap_or(behind.len());
        let (name, rest) = text.split_at(end);
        self.rest = rest;
        let character = named(name).ok_or_else(|| format!("there is no character '\\{name}'"))?;
        Ok(Some(character.into()))
    }

    fn atom(&mut self) -> Result<Value, String> {
        if let Some(text) = self.character()? {
            return Ok(Value::String(text));
        }
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

fn ends(c: char) -> bool {
    c.is_whitespace() || ",;\"()[]{}".contains(c)
}

/// The character behind a backslash: itself, or one that has a name.
fn named(text: &str) -> Option<char> {
    Some(match text {
        "newline" => '\n',
        "space" => ' ',
        "tab" => '\t',
        "return" => '\r',
        "formfeed" => '\u{c}',
        "backspace" => '\u{8}',
        _ => {
            let mut chars = text.chars();
            match (chars.next(), chars.as_str()) {
                (Some(only), "") => only,
                (Some('u'), digits) => char::from_u32(u32::from_str_radix(digits, 16).ok()?)?,
                _ => return None,
            }
        }
    })
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
        assert_eq!(form(text), Ok(Some(expected)));
        assert_eq!(form("; only a comment"), Ok(None));
        assert_eq!(form("#_{:a 1} ;"), Ok(None));
        let tagged = r#"#jepsen.history.Op{:index 0, :time 1.5, :e "a \"b\"", #_:gone :f :read, 7 8N}"#;
        assert_eq!(
            form(tagged),
            Ok(Some(json!({"index": 0, "time": 1.5, "e": "a \"b\"", "f": "read", "7": 8})))
        );
        let odd = r###"{:a \newline :b [\{ \} \" \\ \u00e9] :c ##Inf, :d ##-Inf}"###;
        let read = json!({"a": "\n", "b": ["{", "}", "\"", "\\", "é"], "c": "Inf", "d": "-Inf"});
        assert_eq!(form(odd), Ok(Some(read)));
    }

    #[test]
    fn broken_ones_say_why() {
        for (text, why) in [
            ("{:a 1", "'}' is missing"),
            ("{:a}", "without a value"),
            ("\\nope", "no character"),
            ("{} {}", "more than one"),
            ("]", "closes nothing"),
            ("{:a \"x}", "quote"),
            ("#_", "nothing behind"),
        ] {
            let reason = form(text).unwrap_err();
            assert!(reason.contains(why), "{text}: {reason}");
        }
        assert!(form(&"[".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"[a-z0-9:{}\[\]()"\\#_;, .\n-]{0,60}"#) {
            let _ = form(&text);
        }
    }
}

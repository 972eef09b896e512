//! logfmt: `key=value key="quoted value" flag`.

use serde_json::{Map, Value};

use super::{Decoded, json_record};
use crate::fate::Fate;

/// Reads a line. A key without `=` is true; in quotes `\"`, `\\`, `\n` and `\t` are escapes. Of a key that is there twice the
/// last value counts.
pub(crate) fn line(text: &str) -> Fate<Decoded<'static>> {
    match pairs(text) {
        Ok(map) if map.values().all(|v| *v == Value::Bool(true)) => {
            Fate::rejected("not_logfmt", "no key=value pair")
        }
        Ok(map) => json_record(Value::Object(map)),
        Err(reason) => Fate::rejected("not_logfmt", reason),
    }
}

fn pairs(text: &str) -> Result<Map<String, Value>, String> {
    let mut map = Map::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        if key.is_empty() || key.contains('"') {
            return Err(format!("a key is missing before '{}'", after.chars().take(20).collect::<String>()));
        }
        let (value, after) = match after.strip_prefix('=') {
            None => (Value::Bool(true), after),
            Some(after) if after.starts_with('"') => quoted(&after[1..])?,
            Some(after) => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                (Value::String(after[..end].to_owned()), &after[end..])
            }
        };
        map.insert(key.to_owned(), value);
        rest = after.trim_start();
    }
    Ok(map)
}

fn quoted(text: &str) -> Result<(Value, &str), String> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Ok((Value::String(out), &text[i + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, c)) => out.push(c),
                None => break,
            },
            c => out.push(c),
        }
    }
    Err("a quote is not closed".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::formats::Record;

    #[test]
    fn keys_values_quotes_and_flags() {
        let text = r#"at=info actor=raft-1 msg="sent \"x\" to b" n=3 ok empty= "#;
        let expected = json!({
            "at": "info", "actor": "raft-1", "msg": "sent \"x\" to b", "n": "3", "ok": true, "empty": "",
        });
        assert_eq!(line(text), json_record(expected));
        for bad in ["just words here", "a=\"open", "=x", "\"q\"=1"] {
            assert!(matches!(line(bad), Fate::Quarantined(why) if why.code() == "not_logfmt"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn quoted_values_come_back(key in "[a-z]{1,5}", value in "[^\\r]{0,20}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
            let Fate::Row(Decoded::Record(Record::Json(record))) = line(&format!("{key}=\"{escaped}\" z=1")) else { panic!() };
            if key != "z" {
                prop_assert_eq!(&record[&key], &json!(value));
            }
        }
    }
}

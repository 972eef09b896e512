//! Values of TLA+ as TLC prints them, read into JSON values.
//!
//! Sets and tuples become arrays, records and functions objects (a key that is no text becomes its text), model values text. A state,
//! `/\ x = 1 /\ y = {}` over any lines, becomes an object by variable.

use serde_json::{Map, Value};

use super::quoted::quoted;

/// Values within values; deeper ones are refused.
const DEPTH: usize = 64;

/// Reads a state, or one value.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { rest: text };
    reader.skip_blanks();
    let value = match reader.state()? {
        Some(state) => state,
        None => reader.value(0)?,
    };
    reader.skip_blanks();
    match reader.rest.is_empty() {
        true => Ok(value),
        false => Err(format!("'{}' is no part of a value of TLA+", short(reader.rest))),
    }
}

fn short(text: &str) -> String {
    text.chars().take(20).collect()
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.take(token) {
            true => Ok(()),
            false => Err(format!("'{token}' is missing before '{}'", short(self.rest))),
        }
    }

    /// A name of a variable, a field or a model value.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let end =
            self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '!').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        (!word.is_empty()).then(|| {
            self.rest = rest;
            word
        })
    }

    /// Variables with their values, if that is what comes.
    fn state(&mut self) -> Result<Option<Value>, String> {
        let begin = self.rest;
        let mut state = Map::new();
        let several = self.take("/\\");
        loop {
            let name = self.word().filter(|_| self.take("="));
            let Some(name) = name else {
                if several {
                    return Err(format!("a variable is missing before '{}'", short(self.rest)));
                }
                self.rest = begin;
                return Ok(None);
            };
            let value = self.value(0)?;
            state.insert(name.to_owned(), value);
            if !self.take("/\\") {
                return Ok(Some(Value::Object(state)));
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err(format!("values are nested more than {DEPTH} deep"));
        }
        if self.take("<<") {
            return Ok(Value::Array(self.list(">>", depth)?));
        }
        if self.take("{") {
            return Ok(Value::Array(self.list("}", depth)?));
        }
        if self.take("[") {
            return self.record(depth);
        }
        if self.take("(") {
            return self.function(depth);
        }
        if self.take("\"") {
            return self.text();
        }
        if let Some(digits) =
            self.rest.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            self.rest = digits;
            return self.number(true);
        }
        match self.word() {
            Some("TRUE") => Ok(Value::Bool(true)),
            Some("FALSE") => Ok(Value::Bool(false)),
            Some(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                let behind = self.rest;
                self.rest = word;
                let number = self.number(false);
                self.rest = behind;
                let number = number?;
                match self.take("..") {
                    true => Ok(Value::from(format!("{number}..{}", self.value(depth + 1)?))),
                    false => Ok(number),
                }
            }
            Some(word) => Ok(Value::from(word)),
            None => Err(format!("a value is missing before '{}'", short(self.rest))),
        }
    }

    fn number(&mut self, negative: bool) -> Result<Value, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let text = format!("{}{digits}", if negative { "-" } else { "" });
        // What is beyond 64 bits is kept as text.
        Ok(text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from))
    }

    fn text(&mut self) -> Result<Value, String> {
        let (text, rest) = quoted(self.rest)?;
        self.rest = rest;
        Ok(Value::String(text))
    }

    fn list(&mut self, close: &str, depth: usize) -> Result<Vec<Value>, String> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    fn record(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        loop {
            let name =
                self.word().ok_or_else(|| format!("a field is missing before '{}'", short(self.rest)))?;
            self.expect("|->")?;
            let value = self.value(depth + 1)?;
            map.insert(name.to_owned(), value);
            if self.take("]") {
                return Ok(Value::Object(map));
            }
            self.expect(",")?;
        }
    }

    /// `(a :> 1 @@ b :> 2)`.
    fn function(&mut self, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        loop {
            let key = self.value(depth + 1)?;
            if map.is_empty() && self.take(")") {
                return Ok(key);
            }
            self.expect(":>")?;
            let value = self.value(depth + 1)?;
            map.insert(if let Value::String(text) = key { text } else { key.to_string() }, value);
            if self.take(")") {
                return Ok(Value::Object(map));
            }
            self.expect("@@")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn states_and_values_are_read() {
        let state = "/\\ term = (n1 :> 2 @@ n2 :> -3)\n/\\ msgs = {[type |-> \"vote\", from |-> n1,\n   log |-> <<1, <<>>>>]}\n/\\ ok = TRUE\n/\\ r = 1..3\n/\\ f = (<<1, 2>> :> {} @@ 4 :> \"a \\\"b\\\"\")\n";
        let read = json!({"term": {"n1": 2, "n2": -3}, "msgs": [{"type": "vote", "from": "n1", "log": [1, []]}],
            "ok": true, "r": "1..3", "f": {"[1,2]": [], "4": "a \"b\""}});
        assert_eq!(parse(state), Ok(read));
        assert_eq!(parse("x = 5"), Ok(json!({"x": 5})));
        assert_eq!(parse("<<1, a>>"), Ok(json!([1, "a"])));
        assert_eq!(parse("99999999999999999999"), Ok(json!("99999999999999999999")));
        for (text, why) in [
            ("/\\ x = ", "a value is missing"),
            ("/\\ = 1", "a variable is missing"),
            ("{1", "',' is missing"),
            ("[a |-> 1", "',' is missing"),
            ("[a -> 1]", "'|->' is missing"),
            ("(a :> 1", "'@@' is missing"),
            ("\"x", "quote"),
            ("1 2", "no part of"),
        ] {
            assert!(parse(text).unwrap_err().contains(why), "{text}: {:?}", parse(text));
        }
        assert!(parse(&"<<".repeat(100_000)).is_err());
    }

    /// A value as TLC prints it.
    fn print(value: &Value) -> String {
        match value {
            Value::Array(items) => format!("<<{}>>", items.iter().map(print).collect::<Vec<_>>().join(", ")),
            Value::Object(map) => {
                let fields: Vec<String> = map.iter().map(|(k, v)| format!("{k} |-> {}", print(v))).collect();
                format!("[{}]", fields.join(", "))
            }
            Value::Bool(value) => value.to_string().to_uppercase(),
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in r#"[a-c0-9/\\=<>{}\[\](),:@|"\n -]{0,40}"#) {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_printed_is_read(value in {
            let leaf = prop_oneof![any::<i32>().prop_map(Value::from), any::<bool>().prop_map(Value::from), "[a-z ]{0,5}".prop_map(Value::from)];
            leaf.prop_recursive(3, 12, 3, |inner| prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-z]{1,3}", inner, 1..3).prop_map(|map| Value::Object(map.into_iter().collect())),
            ])
        }) {
            prop_assert_eq!(parse(&print(&value)), Ok(value));
        }
    }
}

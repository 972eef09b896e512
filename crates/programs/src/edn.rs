//! What Jepsen writes: EDN, as JSON values. Keywords and symbols become texts, sets become lists, and keys of maps become texts.

use serde_json::{Map, Value};

use crate::history::HistoryError;

/// How deep values may lie in each other.
const DEPTH: u32 = 200;

/// All values of a text, each with the line in which it begins.
pub(crate) fn parse(text: &str) -> Result<Vec<(usize, Value)>, HistoryError> {
    let mut reader = Reader { text, at: 0, line: 1 };
    let mut all = Vec::new();
    loop {
        reader.blank(0)?;
        if reader.peek().is_none() {
            return Ok(all);
        }
        let line = reader.line;
        let value = reader.value(0)?;
        match value {
            // A whole history in one vector: each event still has its own place.
            Value::Array(many) => all.extend(many.into_iter().map(|one| (line, one))),
            one => all.push((line, one)),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn wrong<T>(&self, what: impl Into<String>) -> Result<T, HistoryError> {
        Err(HistoryError { line: self.line, what: what.into() })
    }

    /// Passes over spaces, commas, comments, and values that are left out.
    fn blank(&mut self, depth: u32) -> Result<(), HistoryError> {
        loop {
            match self.peek() {
                Some(c) if c.is_whitespace() || c == ',' => {
                    self.next();
                }
                Some(';') => while self.next().is_some_and(|c| c != '\n') {},
                Some('#') if self.text[self.at..].starts_with("#_") => {
                    self.at += 2;
                    self.value(depth + 1)?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: u32) -> Result<Value, HistoryError> {
        if depth > DEPTH {
            return self.wrong("values lie too deep in each other");
        }
        self.blank(depth)?;
        match self.peek() {
            None => self.wrong("the text ends in the middle of a value"),
            Some('[') => self.list(']', depth),
            Some('(') => self.list(')', depth),
            Some('{') => self.map(depth),
            Some('"') => self.string(),
            Some('#') => {
                self.next();
                if self.peek() == Some('{') {
                    return self.list('}', depth);
                }
                // A tag: `#jepsen.history.Op{..}`, `#inst ".."`.
                self.word();
                self.value(depth + 1)
            }
            Some('\\') => {
                self.next();
                let first = self.next().map(String::from).unwrap_or_default();
                Ok(Value::String(first + self.word()))
            }
            Some(']' | ')' | '}') => self.wrong("a bracket closes that was not opened"),
            Some(_) => {
                let line = self.line;
                let word = self.word();
                if word.is_empty() {
                    return self.wrong("no value");
                }
                Self::atom(word).ok_or(HistoryError { line, what: format!("'{word}' is no value") })
            }
        }
    }

    fn atom(word: &str) -> Option<Value> {
        Some(match word {
            "nil" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ if word.starts_with(':') => Value::from(&word[1..]),
            _ => {
                let digits = word.trim_start_matches(['+', '-']);
                if !digits.starts_with(|c: char| c.is_ascii_digit()) {
                    return Some(Value::from(word));
                }
                let number = word.trim_start_matches('+').trim_end_matches(['N', 'M']);
                serde_json::from_str(number).ok()?
            }
        })
    }

    fn word(&mut self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| {
                c.is_whitespace() || matches!(c, ',' | '[' | ']' | '(' | ')' | '{' | '}' | '"' | ';')
            })
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn list(&mut self, close: char, depth: u32) -> Result<Value, HistoryError> {
        self.next();
        let mut all = Vec::new();
        loop {
            self.blank(depth)?;
            if self.peek() == Some(close) {
                self.next();
                return Ok(Value::Array(all));
            }
            all.push(self.value(depth + 1)?);
        }
    }

    fn map(&mut self, depth: u32) -> Result<Value, HistoryError> {
        self.next();
        let mut all = Map::new();
        loop {
            self.blank(depth)?;
            if self.peek() == Some('}') {
                self.next();
                return Ok(Value::Object(all));
            }
            let key = self.value(depth + 1)?;
            self.blank(depth)?;
            if self.peek() == Some('}') {
                return self.wrong("a key without a value");
            }
            let value = self.value(depth + 1)?;
            all.insert(key.as_str().map_or_else(|| key.to_string(), str::to_owned), value);
        }
    }

    fn string(&mut self) -> Result<Value, HistoryError> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                None => return self.wrong("a text without its end"),
                Some('"') => return Ok(Value::String(text)),
                Some('\\') => match self.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('u') => {
                        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
                        let Some(c) = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) else {
                            return self.wrong("'\\u' without four digits");
                        };
                        self.at += 4;
                        text.push(c);
                    }
                    Some(c) => text.push(c),
                    None => return self.wrong("a text without its end"),
                },
                Some(c) => text.push(c),
            }
        }
    }
}

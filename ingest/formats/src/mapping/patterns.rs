//! Regular expressions of mappings and of logs: their dialects, limits and named groups.

use std::borrow::Cow;
use std::sync::Arc;

use regex::{CaptureLocations, Regex, RegexBuilder};

use super::cutting::{Cut, Row};
use crate::formats::Parts;

/// Compiled size of an expression, in bytes, beyond which it is refused.
const SIZE: usize = 1 << 20;

/// Compiles an expression, with `^` and `$` at each line. What is not an expression of the `regex` crate is tried as one of
/// JavaScript, in which a brace that does not count is a brace.
pub(crate) fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > 16 * 1024 {
        return Err("the expression is longer than 16 KiB".into());
    }
    let build =
        |t: &str| RegexBuilder::new(t).multi_line(true).size_limit(SIZE).dfa_size_limit(4 * SIZE).build();
    match build(text) {
        Ok(regex) => Ok(regex),
        Err(error) => build(&from_javascript(text)?).map_err(|_| last_line(&error)),
    }
}

fn last_line(error: &regex::Error) -> String {
    error.to_string().lines().last().unwrap_or("no regular expression").trim().to_owned()
}

/// The expression in the dialect of the `regex` crate.
fn from_javascript(text: &str) -> Result<String, String> {
    for (mark, what) in
        [("(?=", "look-ahead"), ("(?!", "look-ahead"), ("(?<=", "look-behind"), ("(?<!", "look-behind")]
    {
        if text.contains(mark) {
            return Err(format!("{what} ('{mark}') is not understood: it needs time without bound"));
        }
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() + 8);
    let mut in_class = false;
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        match c {
            '\\' => {
                let next = chars.get(i + 1).copied().unwrap_or('\\');
                if next == 'k' || (next.is_ascii_digit() && next != '0' && !in_class) {
                    return Err("back-references are not understood".into());
                }
                if next.is_ascii_alphanumeric() {
                    out.push('\\');
                    out.push(next);
                } else {
                    out.push_str(&regex::escape(&next.to_string()));
                }
                i += 2;
                continue;
            }
            '[' if in_class => out.push_str("\\["),
            '[' => {
                in_class = true;
                out.push('[');
                if chars.get(i + 1) == Some(&'^') {
                    out.push('^');
                    i += 1;
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '{' if !in_class && !counts(&chars[i..]) => out.push_str("\\{"),
            '}' if !in_class && !closes(&chars[..i]) => out.push_str("\\}"),
            _ => out.push(c),
        }
        i += 1;
    }
    Ok(out)
}

/// Whether the braces that open here say how often: `{2}`, `{2,}`, `{2,5}`.
fn counts(rest: &[char]) -> bool {
    let Some(end) = rest.iter().position(|&c| c == '}') else { return false };
    let inner: String = rest[1..end].iter().collect();
    let (low, high) = inner.split_once(',').unwrap_or((&inner, ""));
    !low.is_empty() && [low, high].iter().all(|n| n.chars().all(|c| c.is_ascii_digit()))
}

/// Whether a brace here closes one that counts.
fn closes(before: &[char]) -> bool {
    before.iter().rposition(|&c| c == '{').is_some_and(|open| {
        let mut rest: Vec<char> = before[open..].to_vec();
        rest.push('}');
        counts(&rest) && !(open > 0 && before[open - 1] == '\\')
    })
}

/// A pattern of a text log: how many lines it spans, and its expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// Lines of a record.
    pub(crate) lines: usize,
    regex: Expression,
    /// The same for a text that is one line: it is anchored where the expression begins with `^`, so that the engine
    /// need not look for a beginning and can take the groups in one pass.
    anchored: Option<Expression>,
    /// The named groups, and their numbers.
    names: Arc<[String]>,
    numbers: Vec<usize>,
    /// The expression as a row of parts, where it is one: for texts of ASCII.
    row: Option<Row>,
}

/// An expression, and room for the places of its groups.
#[derive(Clone, Debug)]
struct Expression {
    regex: Regex,
    places: CaptureLocations,
}

impl Expression {
    fn new(regex: Regex) -> Self {
        Expression { places: regex.capture_locations(), regex }
    }
}

impl Pattern {
    pub(crate) fn new(text: &str, max_lines: usize) -> Result<Pattern, String> {
        let regex = compile(text)?;
        if regex.capture_names().flatten().next().is_none() {
            return Err(format!("'{text}' has no named group such as (?<event>.*)"));
        }
        let lines = 1 + text.matches("\\n").count();
        if lines > max_lines {
            return Err(format!("the pattern spans {lines} lines, more than max_lines, {max_lines}"));
        }
        let alone =
            || RegexBuilder::new(regex.as_str()).size_limit(SIZE).dfa_size_limit(4 * SIZE).build().ok();
        let anchored = (lines == 1).then(alone).flatten().map(Expression::new);
        let named = regex.capture_names().enumerate();
        let (numbers, names): (_, Vec<String>) = named.filter_map(|(i, n)| Some((i, n?.to_owned()))).unzip();
        let row = Row::of(regex.as_str());
        Ok(Pattern { row, lines, anchored, names: names.into(), numbers, regex: Expression::new(regex) })
    }

    /// The expression.
    pub(crate) fn text(&self) -> &str {
        self.regex.regex.as_str()
    }

    /// The names of the groups.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether the pattern is found in the text and begins in its first line.
    pub(crate) fn explains(&self, text: &str) -> bool {
        let regex = match &self.anchored {
            Some(anchored) if memchr::memchr(b'\n', text.as_bytes()).is_none() => anchored,
            _ => &self.regex,
        };
        regex.regex.find(text).is_some_and(|found| begins_in_first_line(text, found.start()))
    }

    /// The groups, if the pattern is found in the text and begins in its first line.
    pub(crate) fn find<'a>(&mut self, text: Cow<'a, str>) -> Option<Parts<'a>> {
        if let Some(row) = self.row.as_ref().filter(|_| text.is_ascii()) {
            match row.cut(text.as_bytes()) {
                Cut::Found(groups) => {
                    let spans = self.numbers.iter().map(|&i| groups.get(i).copied().flatten()).collect();
                    return Some(Parts { names: Arc::clone(&self.names), text, spans, nulls: false });
                }
                Cut::Nothing => return None,
                Cut::Unknown => {}
            }
        }
        let Expression { regex, places } = match &mut self.anchored {
            Some(anchored) if memchr::memchr(b'\n', text.as_bytes()).is_none() => anchored,
            _ => &mut self.regex,
        };
        let found = regex.captures_read(places, &text)?;
        if !begins_in_first_line(&text, found.start()) {
            return None;
        }
        let spans = self.numbers.iter().map(|&i| places.get(i)).collect();
        Some(Parts { names: Arc::clone(&self.names), text, spans, nulls: false })
    }
}

fn begins_in_first_line(text: &str, start: usize) -> bool {
    memchr::memchr(b'\n', &text.as_bytes()[..start]).is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_expressions_of_shiviz_are_understood() {
        let mut pattern = Pattern::new(r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)", 10).unwrap();
        assert_eq!(pattern.lines, 2);
        let groups = pattern.find("a {\"a\":1}\nhello".into()).unwrap();
        assert_eq!(groups.get("clock"), Some("{\"a\":1}"));
        let text = r"(?<ip>(\d{1,3}\.){3}\d{1,3}) (?<date>(\d{1,2}/){2}\d{4} (\d{2}:){2}\d{2} (AM|PM)) (?<clock>{.*})";
        assert!(Pattern::new(text, 10).unwrap().explains("1.2.3.4 5/27/2013 10:53:39 AM {}"));
        let text = r"\[\w+\] \[akka:\/\/B\/(?<host>[^\]\/[]+)\] (?<clock>.*\})";
        assert!(Pattern::new(text, 10).unwrap().explains("[INFO] [akka://B/n1] {\"n1\" : 1}"));
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        let why = |t: &str| Pattern::new(t, 10).unwrap_err();
        assert!(why("(?=a){x}").contains("look-ahead"));
        assert!(why(r"(a)\1{x}").contains("back-references"));
        assert!(why("(?<a>x").contains("unclosed"));
        assert!(why("abc").contains("no named group"));
        assert!(why(&format!("(?<a>x{{1000}}){}", "{1000}")).contains("size"));
    }

    proptest! {
        #[test]
        fn any_text_compiles_or_is_refused(text in r"[a-z\\{}\[\]()?<>^$.*+|0-9,&~/ -]{0,40}") {
            if let Ok(mut pattern) = Pattern::new(&text, 5) {
                let text = "abc {1} [x] \n (y)";
                prop_assert_eq!(pattern.find(text.into()).is_some(), pattern.explains(text));
            }
        }
    }
}

//! What the beginning of a file says of its format.

use regex::Regex;

use super::patterns::{self, Pattern};

/// What the first two lines say where they are ShiViz's: the parser, and the delimiter if there is one.
pub(crate) fn shiviz_header(
    head: &str,
    max_lines: usize,
) -> Option<(Pattern, Result<Option<Regex>, String>)> {
    let mut lines = head.trim_start_matches('\u{feff}').lines();
    let first = lines.next()?;
    if !first.contains("(?") {
        return None;
    }
    let parser = Pattern::new(first.trim_end(), max_lines).ok()?;
    if !parser.names().any(|n| matches!(n, "event" | "host" | "clock")) {
        return None;
    }
    let delimiter = match lines.next().map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) => patterns::compile(text).map(Some),
    };
    Some((parser, delimiter))
}

/// Whether a line of the beginning is a delimiter.
pub(crate) fn has_delimiter(head: &str, delimiter: &Regex) -> bool {
    head.lines().any(|line| delimiter.is_match(line))
}

/// The pattern that explains most lines that are not empty; of equals the first.
pub(crate) fn best(head: &str, patterns: &[Pattern]) -> usize {
    let lines: Vec<&str> = head.lines().take(400).collect();
    let explained = |pattern: &Pattern| {
        let (mut at, mut count) = (0, 0);
        while at < lines.len() {
            let end = (at + pattern.lines).min(lines.len());
            if pattern.explains(&lines[at..end].join("\n")) {
                count += lines[at..end].iter().filter(|l| !l.trim().is_empty()).count();
                at = end;
            } else {
                at += 1;
            }
        }
        count
    };
    (0..patterns.len()).max_by_key(|&i| (explained(&patterns[i]), std::cmp::Reverse(i))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_told_from_logs() {
        let head = "(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n=== (?<trace>.*) ===\na {}\nx\n";
        let (parser, delimiter) = shiviz_header(head, 9).unwrap();
        assert_eq!((parser.lines, delimiter.unwrap().is_some()), (2, true));
        assert!(shiviz_header("a {\"a\":1}\nhello\n", 9).is_none());
        assert!(shiviz_header("f(?) broken\n", 9).is_none());
        let (_, delimiter) = shiviz_header("(?<event>.*)\n(((\n", 9).unwrap();
        assert!(delimiter.is_err());
    }

    #[test]
    fn the_order_of_the_two_lines_is_found() {
        let host_first = Pattern::new(r"^(?<host>\S*) (?<clock>{.*})\n(?<event>.*)", 9).unwrap();
        let event_first = Pattern::new(r"^(?<event>.*)\n(?<host>\S*) (?<clock>{.*})", 9).unwrap();
        let patterns = [host_first, event_first];
        assert_eq!(best("a {\"a\":1}\nhello\nb {\"b\":1}\nyou\n", &patterns), 0);
        assert_eq!(best("hello\na {\"a\":1}\nyou\nb {\"b\":1}\n", &patterns), 1);
    }
}

//! What a log is that nothing could be taken from: the likely reason, told from its beginning.

use std::io::Read;

use serde_json::{Deserializer, Value};

use crate::mapping::{Container, Wrapper};
use crate::read::lines::without_mark;
use crate::read::source::Source;

/// Bytes that are looked at.
const LOOKED_AT: u64 = 64 * 1024;

/// Why nothing could be taken from a source, as far as its beginning tells. `container` is what it was read as, `wrapped` whether a wrapper was taken off.
#[must_use]
pub fn likely_reason(source: Source, container: Container, wrapped: bool) -> Option<String> {
    let (_, stream) = source.read().ok()?;
    let mut head = Vec::new();
    stream.take(LOOKED_AT).read_to_end(&mut head).ok()?;
    let text = whole_lines(&head);
    if let Some(wrapper) = Wrapper::around(&String::from_utf8_lossy(text)).filter(|_| !wrapped) {
        let name = wrapper.name();
        return Some(format!("the lines are wrapped as '{name}' does it; say so with --wrapper {name}"));
    }
    of_beginning(&head, container)
}

fn of_beginning(head: &[u8], container: Container) -> Option<String> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some("the file is UTF-16; say so with --encoding utf-16".to_owned());
    }
    if head.contains(&0) {
        let odd = head.iter().skip(1).step_by(2).filter(|b| **b == 0).count();
        let even = head.iter().step_by(2).filter(|b| **b == 0).count();
        let half = head.len() / 3;
        return Some(match (odd > half, even > half) {
            (true, false) => "the file looks like UTF-16; say so with --encoding utf-16le".to_owned(),
            (false, true) => "the file looks like UTF-16; say so with --encoding utf-16be".to_owned(),
            _ => "the file is not text".to_owned(),
        });
    }
    let text = without_mark(head).trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return in_json(container)
            .then(|| "the file does not begin with JSON; a mapping for another format is needed: ingest mappings lists them".to_owned());
    }
    let line = text.split(|b| *b == b'\n').next().unwrap_or(text);
    let mut values = Deserializer::from_slice(line).into_iter::<Value>();
    let (first, second) = (values.next(), values.next());
    let by_lines = matches!(container, Container::Native | Container::JsonLines);
    match (first, second) {
        (Some(Ok(value)), None) => of_value(&value, container),
        (Some(Ok(_)), Some(_)) if by_lines => Some(
            "several JSON values stand on one line, and one a line is expected; use a mapping with container \"json\""
                .to_owned(),
        ),
        (Some(Err(error)), _) if error.is_eof() && by_lines && text.len() > line.len() => Some(
            "the JSON is pretty-printed: a record runs over several lines, and one a line is expected; use a mapping \
             with container \"json\""
                .to_owned(),
        ),
        _ => None,
    }
}

/// The lines of a beginning that have their end.
fn whole_lines(head: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', head).map_or(head, |end| head.get(..end).unwrap_or(head))
}

fn in_json(container: Container) -> bool {
    use Container::{Jaeger, Json, JsonLines, Native, Otlp, Zipkin};
    matches!(container, Native | JsonLines | Json | Otlp | Zipkin | Jaeger)
}

/// What a first value is that was read as something else.
fn of_value(value: &Value, container: Container) -> Option<String> {
    let first = value.get(0).unwrap_or(value);
    let has = |name: &str| first.get(name).is_some();
    let named = |format: &str| Some(format!("the file looks like {format}"));
    if container != Container::Otlp && (has("resourceSpans") || has("resourceLogs")) {
        return named("OTLP in JSON; use --mapping otlp");
    }
    if container != Container::Zipkin
        && has("traceId")
        && has("id")
        && (has("timestamp") || has("binaryAnnotations"))
    {
        return named("Zipkin spans; use --mapping zipkin");
    }
    let trace = value.get("data").and_then(|data| data.get(0)).unwrap_or(first);
    if container != Container::Jaeger && trace.get("spans").is_some() && trace.get("traceID").is_some() {
        return named("traces of Jaeger; use --mapping jaeger");
    }
    if container != Container::Native && has("actor") && has("kind") && has("seq") {
        return named("event records; they need no --mapping");
    }
    match container {
        Container::Native | Container::JsonLines if value.is_array() => {
            named("one JSON array, and one object a line is expected; use a mapping with container \"json\"")
        }
        Container::Native => {
            named("JSON of another program; it needs a --mapping: ingest mappings lists those there are")
        }
        Container::JsonLines | Container::Json => None,
        Container::Otlp => named("JSON without 'resourceSpans' and 'resourceLogs'; that is no OTLP"),
        Container::Zipkin => named("JSON that is no list of Zipkin spans"),
        Container::Jaeger => named("JSON that has no traces of Jaeger"),
        _ => named("JSON, one value a line; use a mapping with container \"json-lines\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_tell_what_a_file_is() {
        let reason = |head: &[u8], container| of_beginning(head, container).unwrap_or_default();
        assert!(reason(b"\xff\xfe{\0", Container::Native).contains("--encoding utf-16"));
        assert!(reason(b"{\0\"\0a\0\"\0:\x001\0}\0", Container::Native).contains("utf-16le"));
        assert!(reason(b"\x7fELF\0\0\x01", Container::Text).contains("not text"));
        assert!(reason(b"{\n \"actor\": \"a\"\n}\n", Container::Native).contains("pretty-printed"));
        assert!(reason(b"{\"a\":1}{\"a\":2}\n", Container::JsonLines).contains("several JSON values"));
        assert!(reason(b"[{\"a\":1}]\n", Container::JsonLines).contains("container \"json\""));
        assert!(reason(b"{\"resourceSpans\":[]}\n", Container::Native).contains("--mapping otlp"));
        assert!(reason(b"{\"a\":1}\n", Container::Text).contains("json-lines"));
        assert!(reason(b"2024 hello\n", Container::Native).contains("does not begin with JSON"));
        assert_eq!(of_beginning(b"2024 hello\n", Container::Text), None);
    }
}

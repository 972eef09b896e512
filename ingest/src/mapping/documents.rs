//! Sources that are JSON documents: records, OTLP and Zipkin.

use serde_json::Value;

use super::engine::Mapper;
use super::file::Container;
use super::unit::{Outcome, Unit};
use crate::formats::Decoded;
use crate::formats::document::{Part, documents, elements};
use crate::otlp::{self, Item, OtlpOptions};
use crate::read::lines::Line;

/// Makes units of the records of a file of documents.
pub(crate) fn finish(mapper: &mut Mapper, data: &[u8], out: &mut Vec<Unit>) {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(data.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1))
        .collect();
    let place = |part: &Part| {
        let number = starts.partition_point(|&s| s <= part.bytes.start) as u64;
        let length = (part.bytes.end - part.bytes.start) as u64;
        let line = Line { offset: part.bytes.start as u64, number, length, terminated: true, overlong: None };
        let raw = data.get(part.bytes.clone()).unwrap_or_default().to_vec();
        let lines = 1 + raw.iter().filter(|b| **b == b'\n').count() as u64;
        (line, lines, raw)
    };
    let container = mapper.mapping().input.container;
    let records = mapper.mapping().input.records.clone();
    for part in documents(data) {
        let whole = part.bytes.clone();
        let parts = match part.value {
            Ok(value) => split(data, whole, value, container, records.as_deref()),
            Err(_) => vec![part],
        };
        for part in parts {
            let (line, lines, raw) = place(&part);
            match part.value {
                Err(reason) => {
                    mapper.take(line, lines, raw, Decoded::Bad { code: "not_json", reason }, out);
                }
                Ok(value) if container == Container::Json => {
                    let decoded = if value.is_object() {
                        Decoded::Record(value)
                    } else {
                        Decoded::Bad {
                            code: "not_json",
                            reason: "this part of the document is no object".into(),
                        }
                    };
                    mapper.take(line, lines, raw, decoded, out);
                }
                Ok(_) => telemetry(container, &line, lines, &raw, out),
            }
        }
    }
}

/// The records of a document, each with its bytes where they can be told.
fn split(
    data: &[u8],
    whole: std::ops::Range<usize>,
    value: Value,
    container: Container,
    records: Option<&str>,
) -> Vec<Part> {
    let inside = |range: &std::ops::Range<usize>| data.get(range.clone()).unwrap_or_default();
    match (value, records) {
        (value, Some(pointer)) => match value.pointer(pointer) {
            Some(Value::Array(values)) => {
                values.iter().map(|v| Part { bytes: whole.clone(), value: Ok(v.clone()) }).collect()
            }
            _ => vec![Part { bytes: whole, value: Err(format!("there is no array at {pointer}")) }],
        },
        (Value::Array(values), None) if container != Container::Otlp => {
            elements(inside(&whole), whole.start, values)
        }
        (value, None) => vec![Part { bytes: whole, value: Ok(value) }],
    }
}

/// The units of an OTLP document or a Zipkin span.
fn telemetry(container: Container, line: &Line, lines: u64, raw: &[u8], out: &mut Vec<Unit>) {
    let options = OtlpOptions::default();
    let items = match container {
        Container::Zipkin => otlp::from_zipkin_json(&[b"[", raw, b"]"].concat(), &options),
        _ => otlp::from_json(raw, &options),
    };
    // The lines are counted once, however many items there are.
    let mut left = lines;
    let mut unit = |raw: Vec<u8>, outcome| {
        let lines = std::mem::take(&mut left);
        Unit { line: line.clone(), lines, raw, execution: None, outcome }
    };
    match items {
        Err(error) => {
            let outcome = Outcome::Rejected { code: "not_telemetry", reason: error.to_string() };
            out.push(unit(raw.to_vec(), outcome));
        }
        Ok(items) if items.is_empty() => {
            out.push(unit(raw.to_vec(), Outcome::Skipped("no spans and no log records")));
        }
        Ok(items) => {
            for item in items {
                match item {
                    Item::Event(mut event) => {
                        event.line = Some(line.number);
                        let outcome = Outcome::Events { records: vec![*event], warnings: Vec::new() };
                        out.push(unit(Vec::new(), outcome));
                    }
                    Item::Rejected(rejected) => {
                        let reason = rejected.to_string();
                        let outcome = Outcome::Rejected { code: rejected.code, reason };
                        out.push(unit(rejected.raw.into_bytes(), outcome));
                    }
                }
            }
        }
    }
}

//! A request of OTLP in JSON: one document, all of which is there.
//!
//! Parsed whole, a request of empty objects takes fifty times its bytes. So it is looked over first, without keeping anything, and then read
//! like any other document, one span or log record at a time.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Documents, Found};
use crate::fate::Fate;
use crate::formats::Decoded;
use crate::otlp::runs::Runs;
use crate::otlp::{OtlpError, OtlpOptions, Told};
use crate::read::lines::without_mark;

/// The lists that a document may have. Some files hold single elements of the lists of resources, and before version 0.15 of the protocol
/// scopes were called libraries.
const LISTS: [&str; 13] = [
    "resourceSpans",
    "resource_spans",
    "batches",
    "resourceLogs",
    "resource_logs",
    "scopeSpans",
    "scope_spans",
    "scopeLogs",
    "scope_logs",
    "instrumentationLibrarySpans",
    "instrumentation_library_spans",
    "instrumentationLibraryLogs",
    "instrumentation_library_logs",
];

/// What a document looks like.
struct Shape {
    /// Whether there is anything in it.
    any: bool,
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an OTLP document, which is an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Shape, A::Error> {
                let (mut any, mut found) = (false, false);
                while let Some(name) = members.next_key::<Cow<'de, str>>()? {
                    any = true;
                    if LISTS.contains(&&*name) {
                        // Elements that are ignored take no room.
                        found |= members.next_value::<Option<Vec<IgnoredAny>>>()?.is_some();
                    } else {
                        members.next_value::<IgnoredAny>()?;
                    }
                }
                match any && !found {
                    true => {
                        Err(A::Error::custom("neither 'resourceSpans' nor 'resourceLogs' is in the document"))
                    }
                    false => Ok(Shape { any }),
                }
            }
        }
        from.deserialize_map(Members)
    }
}

/// Looks a request over; says whether there is anything in it.
///
/// # Errors
/// When it is no JSON, or of another shape.
pub fn check(request: &[u8]) -> Result<bool, OtlpError> {
    let shape = serde_json::from_slice::<Shape>(without_mark(request));
    shape.map(|shape| shape.any).map_err(|error| OtlpError::Json(error.to_string()))
}

/// Gives what a request that was [looked over](check) holds, in order, as long as somebody listens. An element has at most `limit` bytes.
pub fn read(request: &[u8], options: &OtlpOptions, limit: usize, each: &mut dyn FnMut(Told) -> bool) {
    let mut documents = Documents::otlp(options.clone(), limit);
    let mut runs: Runs<String> = Runs::new(request.len());
    let mut listens = true;
    let mut take = |found: Found| {
        if !listens {
            return;
        }
        listens = match found.fate {
            Fate::LeftOut(_) | Fate::Row(Decoded::Record(_)) => true,
            Fate::Row(Decoded::Events(events)) => events.records.into_iter().all(|mut record| {
                record.line = None;
                runs.event(Box::new(record), each)
            }),
            Fate::Quarantined(why) => {
                // Equal but for their places.
                let (place, reason) = match why.reason().split_once(": ") {
                    Some((place, reason)) if place.ends_with(']') && !place.contains(' ') => (place, reason),
                    _ => ("", why.reason()),
                };
                let (place, reason) = (place.to_owned(), reason.to_owned());
                runs.refuse(place, why.reworded(|_| reason), found.part.raw, each)
            }
        };
    };
    documents.feed(request, &mut take);
    documents.finish(&mut take);
    runs.end(each);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

    use super::*;
    use crate::otlp::{Item, from_json};

    fn told(text: &str) -> Vec<Told> {
        let mut all = Vec::new();
        if !check(text.as_bytes()).unwrap() {
            return all;
        }
        read(text.as_bytes(), &OtlpOptions::default(), 1000, &mut |told| {
            all.push(told);
            true
        });
        all
    }

    #[test]
    fn a_request_says_what_it_says_parsed_whole() {
        let span = |id: u64| {
            format!(
                "{{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"{id:016x}\",\"startTimeUnixNano\":\"{id}\",\"kind\":3}}"
            )
        };
        let log = "{\"timeUnixNano\":\"17\",\"body\":{\"stringValue\":\"x\"}}";
        let resource =
            "\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"a\"}}]}";
        for text in [
            format!(
                "{{\"resourceSpans\":[{{{resource},\"scopeSpans\":[{{\"spans\":[{},{}]}}]}}]}}",
                span(1),
                span(2)
            ),
            format!(
                "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{},{}]}}],{resource}}}]}}",
                span(1),
                span(2)
            ),
            format!(
                "{{\"resourceLogs\":[{{{resource},\"scopeLogs\":[{{\"logRecords\":[{log},{log},{{}}]}}]}}]}}"
            ),
            "{}".to_owned(),
            "\u{feff}{\"resource_logs\":[]}".to_owned(),
        ] {
            let whole = if text == "{}" {
                Vec::new()
            } else {
                from_json(text.as_bytes(), &OtlpOptions::default()).unwrap()
            };
            let found: Vec<Item> = told(&text)
                .into_iter()
                .map(|told| match told {
                    Told::Event(record) => Item::Event(record),
                    Told::Refused(r) => Item::Rejected(crate::otlp::Rejected {
                        path: r.first,
                        why: r.why,
                        raw: String::from_utf8(r.raw).unwrap(),
                    }),
                })
                .collect();
            assert_eq!(found, whole, "{text}");
        }
        for text in ["", "[]", "{", "{\"x\":1}", "{\"resourceSpans\":{}}", "{\"resourceSpans\":null}", "7"] {
            assert!(check(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn equal_refusals_in_a_row_are_one() {
        let text =
            format!("{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{}{{}}]}}]}}]}}", "{},".repeat(999));
        let all = told(&text);
        let [Told::Refused(refused)] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (refused.count, refused.first.as_str()),
            (1000, "resourceSpans[0].scopeSpans[0].spans[0]")
        );
        assert!(
            refused.rejection().reason().contains("spans[999], 1000 in a row"),
            "{:?}",
            refused.rejection()
        );
    }
}

//! Any bytes as OTLP or Zipkin in JSON: events that keep the rules, refusals, or an error.
#![no_main]

use demi_formats::otlp::{Item, OtlpOptions, from_json, from_zipkin_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (zipkin, responses, bytes) = input;
    let options = OtlpOptions { responses, ..OtlpOptions::default() };
    let items = if zipkin { from_zipkin_json(bytes, &options) } else { from_json(bytes, &options) };
    for item in items.unwrap_or_default() {
        match item {
            Item::Event(record) => record.check().expect("events keep the rules"),
            Item::Rejected(rejected) => assert!(!rejected.why.code().is_empty() && !rejected.why.reason().is_empty()),
        }
    }
});

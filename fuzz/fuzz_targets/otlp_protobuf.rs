//! Any bytes as an OTLP request in protobuf: every span and log record becomes events that keep the rules, or is refused; read one at a time
//! as well as decoded whole.
#![no_main]

use demi_formats::otlp::wire::{Signal, check, read};
use demi_formats::otlp::{Item, OtlpOptions, Told, from_log_resources, from_span_resources};
use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (traces, responses, bytes) = input;
    let options = OtlpOptions { responses, ..OtlpOptions::default() };
    if check(bytes).is_ok() {
        let signal = if traces { Signal::Traces } else { Signal::Logs };
        read(bytes, signal, &options, 1 << 16, &mut |told| {
            if let Told::Event(record) = told {
                record.check().expect("events keep the rules");
            }
            true
        });
    }
    let (elements, items) = if traces {
        let Ok(request) = ExportTraceServiceRequest::decode(bytes) else { return };
        let scopes = request.resource_spans.iter().flat_map(|r| &r.scope_spans);
        (scopes.map(|s| s.spans.len()).sum::<usize>(), from_span_resources(request.resource_spans, &options))
    } else {
        let Ok(request) = ExportLogsServiceRequest::decode(bytes) else { return };
        let scopes = request.resource_logs.iter().flat_map(|r| &r.scope_logs);
        (
            scopes.map(|s| s.log_records.len()).sum::<usize>(),
            from_log_resources(request.resource_logs, &options),
        )
    };
    assert!(items.len() >= elements, "{} items of {elements}", items.len());
    for item in items {
        if let Item::Event(record) = item {
            record.check().expect("events keep the rules");
        }
    }
});

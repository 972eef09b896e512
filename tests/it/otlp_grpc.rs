//! OTLP over gRPC, as exporters speak it: packed requests, tokens, a spool without room.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use crate::support::kill;

use std::fs;
use std::path::Path;
use std::time::Duration;

use kill::check::told;
use kill::daemon::Daemon;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, span};
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::{Code, Request};

fn start(dir: &Path, store: &str, source: &str) -> Daemon {
    let d = dir.display();
    let config = format!(
        "[store]\ndir = \"{d}/store\"\n{store}\n[spool]\ndir = \"{d}/spool\"\nmax_bytes = 18000000\n\
         segment_bytes = 1000000\n[limits]\nbody_bytes = 3000000\nfull_secs = 1\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [daemon]\nlog = \"info\"\ndrain_secs = 60\n\
         [sources.in]\nsystem = \"s\"\ntype = \"otlp\"\nlisten = \"127.0.0.1:0\"\n{source}\n"
    );
    let mut daemon = Daemon::with_config(dir, &config);
    daemon.start();
    daemon
}

async fn channel(daemon: &Daemon) -> Channel {
    let address = daemon.addresses().get("in").unwrap();
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A log record that holds an event record.
fn logs(actor: &str, seqs: std::ops::RangeInclusive<u64>, wide: usize) -> ExportLogsServiceRequest {
    let log_records = seqs
        .map(|seq| {
            let payload = "y".repeat(wide);
            let text = format!(
                "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"state\",\"payload\":\"{payload}\"}}"
            );
            LogRecord { body: Some(AnyValue { value: Some(Any::StringValue(text)) }), ..LogRecord::default() }
        })
        .collect();
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }] }
}

/// Spans of one service: a message sent and one received by turns.
fn spans(service: &str, count: u64) -> ExportTraceServiceRequest {
    let name = AnyValue { value: Some(Any::StringValue(service.to_owned())) };
    let attribute = KeyValue { key: "service.name".into(), value: Some(name), ..KeyValue::default() };
    let resource = Resource { attributes: vec![attribute], ..Resource::default() };
    let spans = (1..=count)
        .map(|n| Span {
            trace_id: vec![7; 16],
            span_id: n.to_be_bytes().to_vec(),
            name: format!("span {n}"),
            kind: if n % 2 == 1 { span::SpanKind::Producer } else { span::SpanKind::Consumer }.into(),
            parent_span_id: if n % 2 == 1 { Vec::new() } else { (n - 1).to_be_bytes().to_vec() },
            start_time_unix_nano: 1_700_000_000_000_000_000 + n,
            end_time_unix_nano: 1_700_000_000_000_000_000 + n + 5,
            ..Span::default()
        })
        .collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource = ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource] }
}

#[test]
fn packed_traces_and_logs_are_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = start(dir.path(), "seal_millis = 50", "");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let channel = channel(&daemon).await;
        for how in [None, Some(CompressionEncoding::Gzip), Some(CompressionEncoding::Zstd)] {
            let mut logs_client = LogsServiceClient::new(channel.clone());
            let mut trace_client = TraceServiceClient::new(channel.clone());
            if let Some(how) = how {
                logs_client = logs_client.send_compressed(how);
                trace_client = trace_client.send_compressed(how);
            }
            // The same each time: what was sent before adds nothing.
            let answer = logs_client.export(logs("logger", 1..=500, 50)).await.unwrap().into_inner();
            assert!(answer.partial_success.is_none());
            let answer = trace_client.export(spans("shop", 500)).await.unwrap().into_inner();
            assert!(answer.partial_success.is_none());
        }
        // An element that is no event is told, the others are taken.
        let mut request = logs("logger", 501..=502, 1);
        request.resource_logs[0].scope_logs[0].log_records.push(LogRecord::default());
        let answer = LogsServiceClient::new(channel).export(request).await.unwrap().into_inner();
        let partial = answer.partial_success.unwrap();
        assert_eq!(partial.rejected_log_records, 1);
        assert!(partial.error_message.contains("no time"), "{}", partial.error_message);
    });
    daemon.wait_for(1002);
    daemon.stop();
    let found = told(&dir.path().join("store"));
    assert_eq!((found["logger"].len(), found["shop"].len()), (502, 500));
    assert_eq!(found["logger"].keys().copied().collect::<Vec<_>>(), (1..=502).collect::<Vec<_>>());
    let kinds = |kind: &str| found["shop"].values().filter(|event| event.kind == kind).count();
    assert_eq!((kinds("send"), kinds("receive")), (250, 250));
}

#[test]
fn a_wrong_token_and_a_request_that_is_too_large_are_refused_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tokens"), "right\n").unwrap();
    let source = format!("token_file = \"{}/tokens\"", dir.path().display());
    let daemon = start(dir.path(), "seal_millis = 50", &source);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut client = LogsServiceClient::new(channel(&daemon).await);
        let with = |token: Option<&str>, request| {
            let mut request = Request::new(request);
            if let Some(token) = token {
                let value = format!("Bearer {token}").parse().unwrap();
                request.metadata_mut().insert("authorization", value);
            }
            request
        };
        for token in [None, Some("wrong")] {
            let status = client.export(with(token, logs("a", 1..=1, 1))).await.unwrap_err();
            assert_eq!(status.code(), Code::Unauthenticated, "{status}");
        }
        let status = client.export(with(Some("right"), logs("a", 1..=4, 1_000_000))).await.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status}");
        client.export(with(Some("right"), logs("a", 1..=1, 1))).await.unwrap();
    });
    assert_eq!(daemon.metric("demi_refused_total{source=\"in\",reason=\"wrong_token\"} "), 2);
    assert_eq!(daemon.metric("demi_refused_total{source=\"in\",reason=\"body_too_large\"} "), 1);
    daemon.wait_for(1);
}

#[test]
fn a_client_that_finds_no_room_is_told_when_to_come_back_and_nothing_is_lost_or_doubled() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing is committed, so the spool fills.
    let never = "seal_millis = 3600000\nseal_bytes = 1000000000000";
    let mut daemon = start(dir.path(), never, "");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut refused = Vec::new();
    let mut sent = 0;
    runtime.block_on(async {
        let mut client = LogsServiceClient::new(channel(&daemon).await);
        while refused.len() < 3 {
            sent += 2;
            assert!(sent < 100, "the spool never was full");
            match client.export(logs("a", sent - 1..=sent, 1_000_000)).await {
                Ok(answer) => assert!(answer.into_inner().partial_success.is_none()),
                Err(status) => {
                    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                    // google.rpc.RetryInfo: without it clients do not try again (OTLP specification).
                    let details = status.details();
                    let name = b"type.googleapis.com/google.rpc.RetryInfo";
                    assert!(details.windows(name.len()).any(|part| part == name));
                    refused.push(sent);
                }
            }
        }
    });
    assert!(daemon.metric("demi_refused_total{source=\"in\",reason=\"full\"} ") >= 3);
    assert!(daemon.get("/readyz").contains("spool"));
    // With a store that takes it, all of it goes there; what was refused is sent again.
    daemon.stop();
    let mut daemon = start(dir.path(), "seal_millis = 50", "");
    runtime.block_on(async {
        let mut client = LogsServiceClient::new(channel(&daemon).await);
        for last in &refused {
            let mut tries = 0;
            while client.export(logs("a", last - 1..=*last, 1_000_000)).await.is_err() {
                tries += 1;
                assert!(tries < 60, "no room after a minute");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    });
    daemon.wait_for(sent);
    daemon.stop();
    let found = told(&dir.path().join("store"));
    assert_eq!(found["a"].keys().copied().collect::<Vec<_>>(), (1..=sent).collect::<Vec<_>>());
    assert!(found["a"].values().all(|event| event.payload.len() == 1_000_000));
}

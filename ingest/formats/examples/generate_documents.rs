//! Writes made-up telemetry and records as JSON documents to standard output: `generate_documents KIND MEGABYTES`.
//!
//! `otlp-lines` is OTLP with a document a line, `otlp` one document, `otlp-late` one document in which the resource stands behind its
//! spans, `zipkin` one list of spans, `json` one list of records.

use std::error::Error;
use std::io::{self, BufWriter, Write, stdout};

use serde_json::{Value, json};

/// Spans under one resource of `otlp-lines` and `otlp`.
const SPANS: u64 = 100;
/// Services, and members of the list of records.
const SERVICES: u64 = 50;
/// Nanoseconds of the first time stamp.
const START: u64 = 1_750_000_000_000_000_000;

/// Counts what was written.
struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn resource(n: u64) -> Value {
    json!({"attributes": [attribute("service.name", &format!("service-{}", n % SERVICES)), attribute("host.name", "h1")]})
}

fn span(n: u64) -> Value {
    json!({
        "traceId": format!("{:032x}", n / 8 + 1), "spanId": format!("{:016x}", n + 1), "parentSpanId": format!("{:016x}", n.max(1)),
        "name": format!("/api/{}", n % 100), "kind": 1 + n % 5, "startTimeUnixNano": (START + n * 1000).to_string(),
        "endTimeUnixNano": (START + n * 1000 + 500).to_string(), "status": {"code": 1},
        "attributes": [attribute("http.method", "GET"), attribute("http.target", &format!("/api/{}?q={n}", n % 100))],
    })
}

fn zipkin(n: u64) -> Value {
    let kind = if n.is_multiple_of(2) { "CLIENT" } else { "SERVER" };
    json!({
        "traceId": format!("{:032x}", n / 8 + 1), "id": format!("{:016x}", n + 1), "kind": kind,
        "name": format!("/api/{}", n % 100), "timestamp": START / 1000 + n, "duration": 500,
        "localEndpoint": {"serviceName": format!("service-{}", n % SERVICES)},
        "tags": {"http.method": "GET", "http.target": format!("/api/{}?q={n}", n % 100)},
    })
}

fn record(n: u64) -> Value {
    json!({"actor": format!("member-{}", n % SERVICES), "n": n / SERVICES + 1, "what": "step", "text": format!("round {n} of many")})
}

/// Writes elements, with commas between, until so many bytes are written.
fn list(out: &mut Counted<impl Write>, bytes: u64, mut element: impl FnMut(u64) -> Value) -> io::Result<()> {
    let mut n = 0;
    while out.bytes < bytes {
        if n > 0 {
            out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *out, &element(n))?;
        n += 1;
    }
    Ok(())
}

fn of_resource(n: u64) -> Value {
    let spans: Vec<Value> = (n * SPANS..(n + 1) * SPANS).map(span).collect();
    json!({"resource": resource(n), "scopeSpans": [{"scope": {"name": "http"}, "spans": spans}]})
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, megabytes] = args.as_slice() else { return Err("generate_documents KIND MEGABYTES".into()) };
    let bytes = megabytes.parse::<u64>()? * 1_000_000;
    let mut out = Counted { inner: BufWriter::with_capacity(1 << 20, stdout().lock()), bytes: 0 };
    match kind.as_str() {
        "otlp-lines" => {
            let mut n = 0;
            while out.bytes < bytes {
                serde_json::to_writer(&mut out, &json!({"resourceSpans": [of_resource(n)]}))?;
                out.write_all(b"\n")?;
                n += 1;
            }
        }
        "otlp" => {
            out.write_all(b"{\"resourceSpans\":[")?;
            list(&mut out, bytes, of_resource)?;
            out.write_all(b"]}\n")?;
        }
        "otlp-late" => {
            out.write_all(b"{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[")?;
            list(&mut out, bytes, span)?;
            write!(out, "],\"scope\":{{\"name\":\"http\"}}}}],\"resource\":{}}}]}}", resource(0))?;
        }
        "zipkin" | "json" => {
            out.write_all(b"[")?;
            list(&mut out, bytes, if kind == "json" { record } else { zipkin })?;
            out.write_all(b"]\n")?;
        }
        other => return Err(format!("'{other}' is none of otlp-lines, otlp, otlp-late, zipkin, json").into()),
    }
    out.flush()?;
    Ok(())
}

//! OTLP over HTTP: protobuf or JSON.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde::Serialize;

use super::grpc::{RETRY_SECONDS, RpcStatus, logs_answer, traces_answer};
use super::{Shared, Taken};
use crate::daemon::intake::Refusal;
use crate::daemon::sources::http::{Refused, read_body};
use crate::otlp::{self, OtlpError, from_log_resources, from_span_resources};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// The encodings of requests; an answer has that of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

/// `/v1/traces` and `/v1/logs`.
pub(super) fn router(shared: &Shared) -> Router {
    Router::new().route("/v1/traces", post(traces)).route("/v1/logs", post(logs)).with_state(shared.clone())
}

async fn traces(
    State(shared): State<Shared>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let decode = |bytes: &[u8]| {
        let request = ExportTraceServiceRequest::decode(bytes)?;
        Ok(Box::new(move |options: &_| from_span_resources(request.resource_spans, options)) as Convert)
    };
    match export(&shared, peer, &headers, body, decode).await {
        Ok((encoding, taken)) => answer(encoding, &traces_answer(taken)),
        Err(refused) => shared.refuse(&headers, refused),
    }
}

async fn logs(
    State(shared): State<Shared>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let decode = |bytes: &[u8]| {
        let request = ExportLogsServiceRequest::decode(bytes)?;
        Ok(Box::new(move |options: &_| from_log_resources(request.resource_logs, options)) as Convert)
    };
    match export(&shared, peer, &headers, body, decode).await {
        Ok((encoding, taken)) => answer(encoding, &logs_answer(taken)),
        Err(refused) => shared.refuse(&headers, refused),
    }
}

type Convert = Box<dyn FnOnce(&otlp::OtlpOptions) -> Vec<otlp::Item> + Send>;

fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    match value.split(';').next()?.trim().to_ascii_lowercase().as_str() {
        PROTOBUF | "application/protobuf" => Some(Encoding::Protobuf),
        JSON => Some(Encoding::Json),
        _ => None,
    }
}

async fn export(
    shared: &Shared,
    peer: SocketAddr,
    headers: &HeaderMap,
    body: Body,
    decode: impl FnOnce(&[u8]) -> Result<Convert, prost::DecodeError>,
) -> Result<(Encoding, Taken), Refused> {
    let bad = |text: String| Refused::new(StatusCode::BAD_REQUEST, "bad_request", text);
    let Some(encoding) = encoding(headers) else {
        let text = format!("Content-Type must be {PROTOBUF} or {JSON}");
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_encoding", text));
    };
    let bytes = read_body(headers, body, &shared.context.limits).await?;
    let convert: Convert = match encoding {
        Encoding::Protobuf => decode(&bytes).map_err(|e| bad(format!("not an OTLP request: {e}")))?,
        Encoding::Json if is_empty(&bytes) => Box::new(|_| Vec::new()),
        Encoding::Json => {
            let items = otlp::from_json(&bytes, &shared.options)
                .map_err(|e: OtlpError| bad(format!("not an OTLP request: {e}")))?;
            Box::new(move |_| items)
        }
    };
    let taken = shared.take(peer, bytes.len(), convert).await.map_err(|refusal| {
        let text = refusal.to_string();
        match refusal {
            Refusal::Full => Refused::new(StatusCode::SERVICE_UNAVAILABLE, "full", text),
            Refusal::Closed => Refused::new(StatusCode::SERVICE_UNAVAILABLE, "closed", text),
            Refusal::TooLarge { .. } => Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text),
        }
    })?;
    Ok((encoding, taken))
}

/// A request without anything in it, which is fine.
fn is_empty(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(bytes)
        .is_ok_and(|map| map.is_empty())
}

fn answer(encoding: Encoding, message: &(impl Message + Serialize)) -> Response {
    match encoding {
        Encoding::Protobuf => ([(header::CONTENT_TYPE, PROTOBUF)], message.encode_to_vec()).into_response(),
        Encoding::Json => axum::Json(message).into_response(),
    }
}

impl Shared {
    /// The answer where nothing was taken: a `google.rpc.Status` in the encoding of the request.
    pub(super) fn refuse(&self, headers: &HeaderMap, refused: Refused) -> Response {
        let Refused { status, reason, text } = refused;
        // What the intake refused was counted there.
        if !matches!(reason, "full" | "closed" | "too_large") {
            self.context.metrics.count_refused(&self.context.origin.source, reason);
        }
        let mut response = match encoding(headers) {
            Some(Encoding::Protobuf) => {
                let body = RpcStatus { code: i32::from(status.as_u16()), message: text, details: Vec::new() };
                (status, [(header::CONTENT_TYPE, PROTOBUF)], body.encode_to_vec()).into_response()
            }
            _ => {
                let body = serde_json::json!({ "code": status.as_u16(), "message": text });
                (status, axum::Json(body)).into_response()
            }
        };
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_SECONDS.into());
        }
        response
    }
}

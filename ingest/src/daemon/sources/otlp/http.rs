//! OTLP over HTTP: protobuf or JSON.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use serde::Serialize;

use super::grpc::{RETRY_SECONDS, RpcStatus, logs_answer, traces_answer};
use super::{Shared, Taken};
use crate::daemon::batch::Refusal;
use crate::daemon::sources::body::{Refused, read_body};
use crate::otlp::{self, OtlpError, OtlpOptions, from_log_resources, from_span_resources};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// The encodings of requests; an answer has that of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

/// A request of one signal, and the answer to it.
trait Signal: Message + Default + Send + 'static {
    type Answer: Message + Serialize;
    fn items(self, options: &OtlpOptions) -> Vec<otlp::Item>;
    fn answer(taken: Taken) -> Self::Answer;
}

impl Signal for ExportTraceServiceRequest {
    type Answer = ExportTraceServiceResponse;
    fn items(self, options: &OtlpOptions) -> Vec<otlp::Item> {
        from_span_resources(self.resource_spans, options)
    }
    fn answer(taken: Taken) -> Self::Answer {
        traces_answer(taken)
    }
}

impl Signal for ExportLogsServiceRequest {
    type Answer = ExportLogsServiceResponse;
    fn items(self, options: &OtlpOptions) -> Vec<otlp::Item> {
        from_log_resources(self.resource_logs, options)
    }
    fn answer(taken: Taken) -> Self::Answer {
        logs_answer(taken)
    }
}

/// `/v1/traces` and `/v1/logs`.
pub(super) fn router(shared: &Shared) -> Router {
    Router::new()
        .route("/v1/traces", post(export::<ExportTraceServiceRequest>))
        .route("/v1/logs", post(export::<ExportLogsServiceRequest>))
        .with_state(shared.clone())
}

async fn export<S: Signal>(
    State(shared): State<Shared>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match take::<S>(&shared, peer, &headers, body).await {
        Ok((encoding, taken)) => answer(encoding, &S::answer(taken)),
        Err(refused) => shared.refuse(&headers, refused),
    }
}

type Convert = Box<dyn FnOnce(&OtlpOptions) -> Vec<otlp::Item> + Send>;

fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    match value.split(';').next()?.trim().to_ascii_lowercase().as_str() {
        PROTOBUF | "application/protobuf" => Some(Encoding::Protobuf),
        JSON => Some(Encoding::Json),
        _ => None,
    }
}

async fn take<S: Signal>(
    shared: &Shared,
    peer: SocketAddr,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Encoding, Taken), Refused> {
    let bad = |text: String| Refused::new(StatusCode::BAD_REQUEST, "bad_request", text);
    let Some(encoding) = encoding(headers) else {
        let text = format!("Content-Type must be {PROTOBUF} or {JSON}");
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_encoding", text));
    };
    let bytes = read_body(headers, body, &shared.context.limits).await?;
    let convert: Convert = match encoding {
        Encoding::Protobuf => {
            let request = S::decode(&*bytes).map_err(|e| bad(format!("not an OTLP request: {e}")))?;
            Box::new(move |options| request.items(options))
        }
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

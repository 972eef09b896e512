//! OTLP over HTTP: protobuf or JSON.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use serde::Serialize;

use super::grpc::{RpcStatus, logs_answer, traces_answer};
use super::{Arrived, Encoding, Shared, Taken};
use crate::sources::body::{Refused, read_body};
use crate::sources::web::{answer_json, come_again};
use demi_formats::otlp::wire::Signal;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// Requests of one signal, and the answers to them.
pub(super) trait Service: 'static {
    const SIGNAL: Signal;
    type Answer: Message + Serialize;
    fn answer(taken: Taken) -> Self::Answer;
}

/// Spans.
pub(super) struct Traces;

impl Service for Traces {
    const SIGNAL: Signal = Signal::Traces;
    type Answer = ExportTraceServiceResponse;
    fn answer(taken: Taken) -> Self::Answer {
        traces_answer(taken)
    }
}

/// Log records.
pub(super) struct Logs;

impl Service for Logs {
    const SIGNAL: Signal = Signal::Logs;
    type Answer = ExportLogsServiceResponse;
    fn answer(taken: Taken) -> Self::Answer {
        logs_answer(taken)
    }
}

/// `/v1/traces` and `/v1/logs`.
pub(super) fn router(shared: &Shared) -> Router {
    Router::new()
        .route("/v1/traces", post(export::<Traces>))
        .route("/v1/logs", post(export::<Logs>))
        .with_state(shared.clone())
}

async fn export<S: Service>(
    State(shared): State<Shared>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match take(&shared, S::SIGNAL, peer, &headers, body).await {
        Ok((encoding, taken)) => answer(encoding, &S::answer(taken)),
        Err(refused) => shared.refuse(&headers, refused),
    }
}

fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    match value.split(';').next()?.trim().to_ascii_lowercase().as_str() {
        PROTOBUF | "application/protobuf" => Some(Encoding::Protobuf),
        JSON => Some(Encoding::Json),
        _ => None,
    }
}

async fn take(
    shared: &Shared,
    signal: Signal,
    peer: SocketAddr,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Encoding, Taken), Refused> {
    let Some(encoding) = encoding(headers) else {
        let text = format!("Content-Type must be {PROTOBUF} or {JSON}");
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_encoding", text));
    };
    let (bytes, held) = read_body(headers, body, &shared.context).await?;
    let taken = shared.take(Arrived { peer, bytes, held, encoding, signal }).await?;
    Ok((encoding, taken))
}

fn answer(encoding: Encoding, message: &(impl Message + Serialize)) -> Response {
    match encoding {
        Encoding::Protobuf => ([(header::CONTENT_TYPE, PROTOBUF)], message.encode_to_vec()).into_response(),
        Encoding::Json => axum::Json(message).into_response(),
    }
}

/// The answer where nothing was taken: a `google.rpc.Status` in the encoding of the request.
pub(super) fn refuse(headers: &HeaderMap, refused: Refused) -> Response {
    let Refused { status, text, .. } = &refused;
    match encoding(headers) {
        Some(Encoding::Protobuf) => {
            let body = RpcStatus { code: status.as_u16().into(), message: text.clone(), details: Vec::new() };
            let kind = [(header::CONTENT_TYPE, PROTOBUF)];
            come_again(*status, (*status, kind, body.encode_to_vec()).into_response())
        }
        _ => answer_json(&refused, serde_json::json!({ "code": status.as_u16(), "message": text })),
    }
}

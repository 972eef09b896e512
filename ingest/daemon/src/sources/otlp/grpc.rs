//! OTLP over gRPC.

use std::net::SocketAddr;

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::{Bytes, BytesMut};
use hyper::body::Frame;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message;
use tonic::{Code, Status};

use super::http::{Logs, Service, Traces};
use super::{Arrived, Encoding, Shared, Taken, is_grpc};
use crate::sources::body::{Packed, Refused, read_packed, unpack};
use crate::sources::web::RETRY_SECONDS;
use demi_formats::otlp::wire::Signal;

/// `google.rpc.Status`: what goes into the details of an answer.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Seconds>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Seconds {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

/// Most bytes that stand before a message.
const PREFIX: usize = 5;

/// The services of OTLP.
pub(super) fn router(shared: &Shared) -> Router {
    Router::new()
        .route("/opentelemetry.proto.collector.trace.v1.TraceService/Export", post(export::<Traces>))
        .route("/opentelemetry.proto.collector.logs.v1.LogsService/Export", post(export::<Logs>))
        .with_state(shared.clone())
}

/// A status whose details say when to come again. Clients try again only where it says when (OTLP specification).
fn exhausted(message: String) -> Status {
    let delay = RetryInfo { retry_delay: Some(Seconds { seconds: RETRY_SECONDS }) };
    let details =
        Any { type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(), value: delay.encode_to_vec() };
    let code = Code::ResourceExhausted;
    let details = RpcStatus { code: code as i32, message: message.clone(), details: vec![details] };
    Status::with_details(code, message, details.encode_to_vec().into())
}

/// The status of a request that was not taken, or not taken in.
fn status(refused: Refused) -> Status {
    let Refused { status, reason, text } = refused;
    match (reason, status) {
        ("full", _) | (_, StatusCode::TOO_MANY_REQUESTS) => exhausted(text),
        ("closed", _) => Status::unavailable(text),
        ("too_large", _) => Status::invalid_argument(text),
        (_, StatusCode::PAYLOAD_TOO_LARGE) => Status::out_of_range(text),
        (_, StatusCode::REQUEST_TIMEOUT) => Status::deadline_exceeded(text),
        (_, StatusCode::UNSUPPORTED_MEDIA_TYPE) => Status::unimplemented(text),
        (_, StatusCode::UNAUTHORIZED) => Status::unauthenticated(text),
        (_, StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST) => Status::permission_denied(text),
        _ => Status::internal(text),
    }
}

/// The answer to a request that was not taken.
pub(super) fn refuse(refused: Refused) -> Response {
    let mut response = status(refused).into_http::<Body>();
    let accepted = HeaderValue::from_static("identity,gzip,zstd");
    response.headers_mut().insert("grpc-accept-encoding", accepted);
    response
}

async fn export<S: Service>(
    State(shared): State<Shared>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match take(&shared, S::SIGNAL, peer, &headers, body).await {
        Ok(taken) => Answer::response(&S::answer(taken)),
        Err(refused) => {
            shared.context.count(&refused);
            refuse(refused)
        }
    }
}

/// Takes the one message of a request. It is read here, not by a library, so that what is held in memory is counted from its first byte.
async fn take(
    shared: &Shared,
    signal: Signal,
    peer: SocketAddr,
    headers: &HeaderMap,
    body: Body,
) -> Result<Taken, Refused> {
    let limit = shared.context.limits.body_bytes;
    let bad = |text: &str| Refused::new(StatusCode::BAD_REQUEST, "bad_request", text);
    if !is_grpc(headers) {
        return Err(bad("this address speaks gRPC: Content-Type must be application/grpc"));
    }
    let (mut bytes, held) = read_packed(body, limit + PREFIX, &shared.context).await?;
    if bytes.len() < PREFIX {
        return Err(bad("there is no message"));
    }
    let prefix = bytes.split_to(PREFIX);
    let length = prefix[1..].iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    if length > limit {
        let text = format!("the message is {length} bytes long, more than the limit of {limit}");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text));
    }
    if length != bytes.len() {
        return Err(bad("there is not one message, of the length that it says"));
    }
    let how = headers.get("grpc-encoding").map(HeaderValue::as_bytes);
    let (bytes, held) = match (prefix[0], how) {
        (0, _) => (bytes, held),
        (1, Some(b"gzip")) => unpack(bytes, held, limit, Packed::Gzip).await?,
        (1, Some(b"zstd")) => unpack(bytes, held, limit, Packed::Zstd).await?,
        (1, None | Some(b"identity")) => return Err(bad("the message is packed, and nothing says how")),
        (1, Some(_)) => {
            let text = "the message is packed in a way that is not read: send gzip, zstd or neither";
            return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_request", text));
        }
        _ => return Err(bad("the message is neither packed nor plain")),
    };
    shared.take(Arrived { peer, bytes, held, encoding: Encoding::Protobuf, signal }).await
}

/// The body of an answer: a message, and that all went well.
struct Answer {
    message: Option<Bytes>,
    done: bool,
}

impl Answer {
    fn response(message: &impl Message) -> Response {
        let mut bytes = BytesMut::zeroed(1);
        bytes.extend_from_slice(&(message.encoded_len() as u32).to_be_bytes());
        bytes.extend_from_slice(&message.encode_to_vec());
        let answer = Answer { message: Some(bytes.freeze()), done: false };
        let kind = HeaderValue::from_static("application/grpc");
        ([(header::CONTENT_TYPE, kind)], Body::new(answer)).into_response()
    }
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        if std::mem::replace(&mut self.done, true) {
            return Poll::Ready(None);
        }
        let mut trailers = HeaderMap::new();
        trailers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

/// The answer to traces that were taken.
pub(super) fn traces_answer(taken: Taken) -> ExportTraceServiceResponse {
    let Taken { rejected: rejected_spans, message: error_message } = taken;
    let partial = ExportTracePartialSuccess { rejected_spans, error_message };
    ExportTraceServiceResponse { partial_success: (rejected_spans > 0).then_some(partial) }
}

/// The answer to logs that were taken.
pub(super) fn logs_answer(taken: Taken) -> ExportLogsServiceResponse {
    let Taken { rejected: rejected_log_records, message: error_message } = taken;
    let partial = ExportLogsPartialSuccess { rejected_log_records, error_message };
    ExportLogsServiceResponse { partial_success: (rejected_log_records > 0).then_some(partial) }
}

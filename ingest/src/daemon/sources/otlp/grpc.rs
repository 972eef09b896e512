//! OTLP over gRPC.

use std::net::SocketAddr;

use axum::Router;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Response, Status};

use super::{Shared, Taken};
use crate::daemon::batch::Refusal;
use crate::otlp::{from_log_resources, from_span_resources};

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

/// Seconds after which a client that found no room may try again.
pub(super) const RETRY_SECONDS: i64 = 5;

/// The services of OTLP.
pub(super) fn router(shared: &Shared) -> Router {
    let limit = shared.context.limits.body_bytes;
    let traces = TraceServiceServer::new(shared.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd)
        .max_decoding_message_size(limit);
    let logs = LogsServiceServer::new(shared.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd)
        .max_decoding_message_size(limit);
    Router::new()
        .route_service("/opentelemetry.proto.collector.trace.v1.TraceService/Export", traces)
        .route_service("/opentelemetry.proto.collector.logs.v1.LogsService/Export", logs)
}

/// The answer where nothing was taken. Clients try again later only where it says when (OTLP specification).
fn status(refusal: &Refusal) -> Status {
    let message = refusal.to_string();
    match refusal {
        Refusal::Full => {
            let delay = RetryInfo { retry_delay: Some(Seconds { seconds: RETRY_SECONDS }) };
            let details = Any {
                type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
                value: delay.encode_to_vec(),
            };
            let code = Code::ResourceExhausted;
            let details = RpcStatus { code: code as i32, message: message.clone(), details: vec![details] };
            Status::with_details(code, message, details.encode_to_vec().into())
        }
        Refusal::Closed => Status::unavailable(message),
        Refusal::TooLarge { .. } => Status::invalid_argument(message),
    }
}

fn peer<T>(request: &Request<T>) -> SocketAddr {
    request.extensions().get::<SocketAddr>().copied().unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
}

#[tonic::async_trait]
impl TraceService for Shared {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let (peer, request) = (peer(&request), request.into_inner());
        let bytes = request.encoded_len();
        let taken = self.take(peer, bytes, |options| from_span_resources(request.resource_spans, options));
        Ok(Response::new(traces_answer(taken.await.map_err(|refusal| status(&refusal))?)))
    }
}

#[tonic::async_trait]
impl LogsService for Shared {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let (peer, request) = (peer(&request), request.into_inner());
        let bytes = request.encoded_len();
        let taken = self.take(peer, bytes, |options| from_log_resources(request.resource_logs, options));
        Ok(Response::new(logs_answer(taken.await.map_err(|refusal| status(&refusal))?)))
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

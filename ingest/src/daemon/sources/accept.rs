//! Accepting connections: a bounded number at a time, until shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Context;
use crate::daemon::metrics::SourceLabel;
use crate::daemon::net::security::{Connection, Listener};

/// Time to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until shutdown and gives each to `serve`, at most `max_connections` at a time. Returns when all
/// that were accepted have ended.
pub(super) async fn accept<F, S>(mut listener: Listener, context: &Context, max_connections: usize, serve: F)
where
    F: Fn(Connection, SocketAddr) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    listener.count_into(&context.metrics, &context.origin.source);
    let most = Arc::new(Semaphore::new(max_connections.max(1)));
    let mut connections = JoinSet::new();
    let label = SourceLabel { source: context.origin.source.to_string() };
    loop {
        let permit = tokio::select! {
            permit = most.clone().acquire_owned() => permit,
            () = context.shutdown.wait() => break,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = context.shutdown.wait() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let gauge = context.metrics.connections.get_or_create(&label).clone();
                let served = serve(stream, peer);
                connections.spawn(async move {
                    gauge.inc();
                    served.await;
                    gauge.dec();
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(source = %context.origin.source, %error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    while connections.join_next().await.is_some() {}
}

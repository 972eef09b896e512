//! Accepting connections: a bounded number at a time, until shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use super::Context;
use crate::metrics::SourceLabel;
use crate::net::security::{Connection, Listener};

/// Time to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns where a test may have something to say.
async fn looked_at() {
    match cfg!(test) {
        true => tokio::time::sleep(Duration::from_millis(20)).await,
        false => std::future::pending().await,
    }
}

/// Accepts connections until shutdown and gives each to `serve`, no more at a time than the listener may have. Returns when all
/// that were accepted have ended.
pub(super) async fn accept<F, S>(mut listener: Listener, context: &Context, serve: F)
where
    F: Fn(Connection, SocketAddr) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    listener.count_into(&context.metrics, &context.origin.source);
    let most = Arc::new(Semaphore::new(listener.max_connections()));
    let mut connections = JoinSet::new();
    let label = SourceLabel { source: context.origin.source.to_string() };
    loop {
        // Asked on each turn: while connections come all the time, the pause never ends.
        context.tasks.may_break(&context.origin.source);
        let permit = tokio::select! {
            permit = most.clone().acquire_owned() => permit,
            () = context.shutdown.wait() => break,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = looked_at() => continue,
            () = context.shutdown.wait() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let open = Open::new(context.metrics.connections.get_or_create(&label).clone());
                let served = serve(stream, peer);
                connections.spawn(async move {
                    served.await;
                    drop((open, permit));
                });
            }
            Err(error) => {
                tracing::warn!(source = %context.origin.source, %error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
        while let Some(ended) = connections.try_join_next() {
            note(context, ended);
        }
    }
    while let Some(ended) = connections.join_next().await {
        note(context, ended);
    }
}

/// Counts a connection that ended with a panic.
fn note(context: &Context, ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        context.tasks.panicked(&format!("connection of {}", context.origin.source), error);
    }
}

/// An open connection, counted as long as it is there, however it ends.
struct Open(Gauge);

impl Open {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Open(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

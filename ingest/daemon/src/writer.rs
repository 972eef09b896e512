//! The thread that writes the spool: everything that waits is written and synced together.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use super::batch::{Ack, Refusal};
use super::intake::Request;
use super::metrics::Metrics;
use super::positions::LivePositions;
use super::reserve::Reserve;
use super::tasks::Tasks;
use crate::spool::{Body, Disk, Spool, SpoolError};

/// Bytes after which a group is written though more waits.
const GROUP_BYTES: usize = 16 << 20;
/// Time without a request after which the spool is at rest.
const REST: Duration = Duration::from_millis(200);
/// Pause before a write that failed is tried again.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 100 });

/// What the thread needs besides the spool.
pub(super) struct Writer {
    pub positions: LivePositions,
    pub metrics: Arc<Metrics>,
    pub stop: super::Shutdown,
    /// While it is given up, what is on the disk belongs to the committer.
    pub reserve: Arc<Reserve>,
    pub tasks: Tasks,
}

/// The bodies of a group while it is written. Those that are still here when it ends, however it ends, go back to their requests.
struct Group<'a> {
    waiting: &'a mut Vec<Request>,
    bodies: Vec<Body>,
}

impl Group<'_> {
    fn of(waiting: &mut Vec<Request>) -> Group<'_> {
        let bodies = waiting.iter_mut().map(|request| std::mem::take(&mut request.body)).collect();
        Group { waiting, bodies }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        for (request, body) in self.waiting.iter_mut().zip(self.bodies.drain(..)) {
            request.body = body;
        }
    }
}

impl Writer {
    /// Writes what comes until all intakes are gone, then closes the spool.
    pub(super) fn spawn<D: Disk>(
        self,
        mut spool: Spool<D>,
        mut from: Receiver<Request>,
    ) -> std::io::Result<JoinHandle<()>> {
        thread::Builder::new().name("spool".into()).spawn(move || {
            let mut waiting: Vec<Request> = Vec::new();
            // What waits outlives a panic: it is written by the next try.
            self.tasks.task("spool").keep(|| {
                // After a panic nobody knows what the segment holds.
                spool.leave_segment();
                self.serve(&mut spool, &mut from, &mut waiting);
            });
            spool.close();
        })
    }

    /// Writes what comes until all intakes are gone.
    fn serve<D: Disk>(&self, spool: &mut Spool<D>, from: &mut Receiver<Request>, waiting: &mut Vec<Request>) {
        loop {
            if waiting.is_empty() {
                let next = receive(from, REST).unwrap_or_else(|| {
                    spool.rest();
                    from.blocking_recv()
                });
                match next {
                    Some(request) => waiting.push(request),
                    None => return,
                }
            }
            let mut bytes: usize = waiting.iter().map(|r| r.body.bytes().len()).sum();
            while bytes < GROUP_BYTES
                && let Ok(request) = from.try_recv()
            {
                bytes += request.body.bytes().len();
                waiting.push(request);
            }
            if self.reserve.is_held() {
                self.write(spool, waiting);
            } else {
                if self.metrics.spool_failing.set(1) == 0 {
                    let why = "the disk is full, and what room there is belongs to commits";
                    tracing::warn!("sources wait: {why}");
                    self.tasks.note_trouble("spool", Some(why.to_owned()));
                }
                self.wait(waiting);
            }
        }
    }

    /// Writes a group; what cannot be written stays as long as its sender waits.
    fn write<D: Disk>(&self, spool: &mut Spool<D>, waiting: &mut Vec<Request>) {
        let begin = Instant::now();
        let group = Group::of(waiting);
        self.tasks.may_break("spool");
        let result = spool.write(&group.bodies);
        drop(group);
        let metrics = &self.metrics;
        metrics.spool_bytes.set(i64::try_from(spool.bytes()).unwrap_or(i64::MAX));
        match result {
            Ok(written) => {
                if metrics.spool_failing.set(0) != 0 {
                    self.tasks.note_trouble("spool", None);
                }
                metrics.sync_seconds.observe(begin.elapsed().as_secs_f64());
                for (lsn, request) in (written.first_lsn..).zip(waiting.drain(..)) {
                    self.positions.lock().apply(lsn, &request.origin.source, &request.positions);
                    // Whoever stopped waiting does not hear of it.
                    let _ = request.done.send(Ok(Ack { lsn }));
                    drop(request.permit);
                }
            }
            Err(error) => {
                self.tasks.note_trouble("spool", Some(error.to_string()));
                if metrics.spool_failing.set(1) == 0 {
                    match error {
                        SpoolError::Full { .. } => {
                            tracing::warn!(%error, "sources wait for room in the spool");
                        }
                        _ => {
                            tracing::error!(%error, cause = ?std::error::Error::source(&error), "cannot write the spool")
                        }
                    }
                }
                self.wait(waiting);
            }
        }
    }

    /// Answers those whose time is over, and everybody when the daemon stops; then waits for better times.
    fn wait(&self, waiting: &mut Vec<Request>) {
        let now = Instant::now();
        let stopping = self.stop.is_thrown();
        for at in (0..waiting.len()).rev() {
            let over = waiting[at].deadline.is_some_and(|d| d <= now) || waiting[at].done.is_closed();
            if over || stopping {
                let request = waiting.remove(at);
                let _ = request.done.send(Err(if stopping { Refusal::Closed } else { Refusal::Full }));
            }
        }
        if !waiting.is_empty() {
            thread::sleep(PAUSE);
        }
    }
}

/// The next request, or nothing when all intakes are gone; nothing at all when there was none within a time. It needs no runtime.
fn receive(from: &mut Receiver<Request>, within: Duration) -> Option<Option<Request>> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let begin = Instant::now();
    loop {
        if let Poll::Ready(next) = from.poll_recv(&mut context) {
            return Some(next);
        }
        let left = within.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

/// Wakes a thread that waits for a request.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

//! The layer: takes the macros' events, numbers them, and puts their lines into the buffers.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{Event, Subscriber};
use tracing_subscriber::layer::Context;

use crate::actors::Actors;
use crate::buffer::{Buffers, Put};
use crate::encode::Line;
use crate::incarnations::Incarnations;
use crate::notes::{notes, now};
use crate::sink::{AppendFile, Plain, Sink};
use crate::writer::{Guard, Shared, Waker};
use crate::{LogError, TARGET};

/// How the log is written.
#[derive(Clone, Debug)]
pub struct Builder {
    buffer_bytes: usize,
    flush_every: Duration,
    time: bool,
    incarnation: u32,
    incarnations: Option<PathBuf>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Builder {
    /// 16 MiB of buffers, written at least every 20 ms, with times, first incarnations numbered 0.
    #[must_use]
    pub fn new() -> Self {
        Builder {
            buffer_bytes: 16 << 20,
            flush_every: Duration::from_millis(20),
            time: true,
            incarnation: 0,
            incarnations: None,
        }
    }

    /// Bytes of lines that may wait to be written, all threads together. When a thread's share (a sixteenth) is full,
    /// its events are dropped and counted.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// The longest that a line waits before it is written, if the sink takes it.
    #[must_use]
    pub fn flush_every(mut self, time: Duration) -> Self {
        self.flush_every = time.max(Duration::from_millis(1));
        self
    }

    /// Leaves out the wall-clock time of each event (nanoseconds since 1970), which is only shown, never trusted.
    #[must_use]
    pub fn without_time(mut self) -> Self {
        self.time = false;
        self
    }

    /// The number of the incarnation that actors begin in this process. A process that is started again must give a larger
    /// one than any it had before, because sequence numbers begin at 1 again.
    #[must_use]
    pub fn incarnation(mut self, number: u32) -> Self {
        self.incarnation = number;
        self
    }

    /// Counts incarnations in a file, so that each process begins its actors' incarnations with a number not used before.
    #[must_use]
    pub fn incarnation_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.incarnations = Some(path.into());
        self
    }

    /// Writes to a file, appending. A file that was renamed or deleted is made anew under its name within a second.
    ///
    /// # Errors
    /// When the file, or the one that counts incarnations, cannot be used, or no thread can be started.
    pub fn to_file(self, path: impl AsRef<Path>) -> Result<(Layer, Guard), LogError> {
        let path = path.as_ref();
        let sink = AppendFile::open(path.to_owned())
            .map_err(|source| LogError::Open { path: path.to_owned(), source })?;
        self.build(Box::new(sink))
    }

    /// Writes to anything that takes bytes: a pipe, a socket, standard output.
    ///
    /// # Errors
    /// When the file that counts incarnations cannot be used, or no thread can be started.
    pub fn to_writer(self, writer: impl Write + Send + 'static) -> Result<(Layer, Guard), LogError> {
        self.build(Box::new(Plain(writer)))
    }

    fn build(self, sink: Box<dyn Sink>) -> Result<(Layer, Guard), LogError> {
        let incarnations = self.incarnations.map(Incarnations::open).transpose()?;
        let base = incarnations.as_ref().map_or(self.incarnation, |l| l.first().max(self.incarnation));
        let shared = Arc::new(Shared {
            actors: Actors::new(base),
            buffers: Buffers::new(self.buffer_bytes),
            incarnations,
        });
        let guard = Guard::start(shared.clone(), sink, self.flush_every).map_err(LogError::Thread)?;
        Ok((Layer { shared, waker: guard.waker(), time: self.time }, guard))
    }
}

/// Takes the events of this crate's macros, and no others.
pub struct Layer {
    shared: Arc<Shared>,
    waker: Waker,
    time: bool,
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

thread_local! {
    /// What this thread formats with: the fields, and the finished lines.
    static LINE: RefCell<(Line, Vec<u8>)> = RefCell::default();
}

impl Layer {
    /// Events dropped so far because there was no room in the buffers.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.buffers.dropped.load(Ordering::Relaxed)
    }

    fn take(&self, event: &Event<'_>, line: &mut Line, out: &mut Vec<u8>) {
        line.clear();
        event.record(line);
        if !line.is_record() {
            return;
        }
        let time = self.time.then(now);
        let put = self.shared.actors.with(&line.actor, |actor| {
            if line.kind == "restart" {
                actor.incarnation = actor.incarnation.saturating_add(1);
                actor.seq = 0;
                if let Some(incarnations) = &self.shared.incarnations {
                    incarnations.reached(actor.incarnation);
                }
            }
            out.clear();
            let before = actor.seq;
            if !actor.lost.is_empty() {
                notes(&line.actor, actor, time, out);
            }
            actor.seq += 1;
            line.write(actor.incarnation, actor.seq, time, out);
            let put = self.shared.buffers.put(out);
            if put == Put::Dropped {
                actor.seq = before + 1;
                actor.lose();
            } else {
                actor.lost.clear();
            }
            put
        });
        match put {
            Put::Kept => {}
            Put::KeptAndHurry => self.waker.wake(),
            Put::Dropped => {
                self.shared.buffers.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        // A value that logs while it is being shown gets no line; there is no other way to be called within itself.
        let _ = LINE.try_with(|cell| {
            if let Ok(mut line) = cell.try_borrow_mut() {
                let (line, out) = &mut *line;
                self.take(event, line, out);
            }
        });
    }
}

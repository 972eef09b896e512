//! The thread that writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use crate::actors::Actors;
use crate::buffer::Buffers;
use crate::incarnations::Incarnations;
use crate::notes::{notes, now};
use crate::sink::Sink;

/// How often a file is looked for under its name.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a log that is closed tries to write what a failing sink refuses.
const LAST_TRIES: Duration = Duration::from_secs(2);

/// What those who log and the writer share.
pub(crate) struct Shared {
    pub(crate) actors: Actors,
    pub(crate) buffers: Buffers,
    pub(crate) incarnations: Option<Incarnations>,
}

/// Wakes the writer before its time.
#[derive(Clone)]
pub(crate) struct Waker(Thread);

impl Waker {
    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}

/// Keeps the log going. When it is dropped, everything logged before is written.
#[must_use = "the log ends when this is dropped"]
pub struct Guard {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    writer: Option<JoinHandle<io::Result<()>>>,
    thread: Thread,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

impl Guard {
    pub(crate) fn start(shared: Arc<Shared>, sink: Box<dyn Sink>, every: Duration) -> io::Result<Guard> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut writer =
            Writer { shared: shared.clone(), sink, lines: Vec::new(), written: 0, looked: Instant::now() };
        let stopping = stop.clone();
        let handle =
            thread::Builder::new().name("demi-log".to_owned()).spawn(move || writer.run(&stopping, every))?;
        let thread = handle.thread().clone();
        Ok(Guard { shared, stop, writer: Some(handle), thread })
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker(self.thread.clone())
    }

    /// Events dropped so far because there was no room in the buffers.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.buffers.dropped.load(Ordering::Relaxed)
    }

    /// Writes everything logged before, and ends the log. Events logged later are lost.
    ///
    /// # Errors
    /// What the sink said when it did not take the rest for two seconds.
    pub fn close(mut self) -> io::Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        self.stop.store(true, Ordering::Release);
        self.thread.unpark();
        writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes the log has panicked")))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

struct Writer {
    shared: Arc<Shared>,
    sink: Box<dyn Sink>,
    /// Taken from the buffers, and how much of it is written.
    lines: Vec<u8>,
    written: usize,
    looked: Instant,
}

impl Writer {
    fn run(&mut self, stop: &AtomicBool, every: Duration) -> io::Result<()> {
        let mut spare = Vec::new();
        while !stop.load(Ordering::Acquire) {
            thread::park_timeout(every);
            let took = self.round(&mut spare);
            if took.is_err() {
                // The buffers fill up meanwhile, and then events are dropped; nobody waits for a full disk.
                thread::park_timeout(every.max(Duration::from_millis(50)));
            }
        }
        let begin = Instant::now();
        loop {
            let took = self.round(&mut spare);
            if took.is_ok() || begin.elapsed() > LAST_TRIES {
                return took.and_then(|()| self.last_notes());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Writes what is there.
    fn round(&mut self, spare: &mut Vec<u8>) -> io::Result<()> {
        if self.written == self.lines.len() {
            self.lines.clear();
            self.written = 0;
            if self.looked.elapsed() >= LOOK_EVERY {
                self.looked = Instant::now();
                self.sink.between_lines();
            }
            self.shared.buffers.drain(&mut self.lines, spare);
        }
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        if self.written == self.lines.len() {
            return Ok(());
        }
        while self.written < self.lines.len() {
            match self.sink.write(&self.lines[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sink.flush()
    }

    /// Tells of losses after which the actor logged nothing more.
    fn last_notes(&mut self) -> io::Result<()> {
        let lines = &mut self.lines;
        self.shared.actors.each_lost(|name, actor| {
            notes(name, actor, Some(now()), lines);
            actor.lost.clear();
        });
        self.write()
    }
}

//! One child: lines to it and lines from it, each with a limit of time and length.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use demi_replay::sim::stable;
use demi_schemas::ChildModel;
use serde_json::Value;

use crate::error::{ChildError, Problem, cut};

/// Longest line that a child may write, in bytes.
pub const LONGEST_LINE: usize = 64 << 20;
/// How much of its standard error is kept, in bytes.
const KEPT_STDERR: usize = 2_000;
/// How long an answer may take where the scenario does not say, in seconds.
const TIMEOUT: u32 = 10;

/// What the reading thread found: a line, a line that is too long, or the end.
enum Line {
    Text(Vec<u8>),
    TooLong,
    End,
}

/// A child, or a connection to a model that listens.
pub struct Connection {
    to: SyncSender<Arc<str>>,
    from: Receiver<Line>,
    process: Option<Child>,
    stderr: Arc<Mutex<Vec<u8>>>,
    timeout: Duration,
    last: u64,
}

impl Connection {
    /// Starts the command, or connects to the socket.
    ///
    /// # Errors
    /// When neither is possible.
    pub fn open(model: &ChildModel) -> Result<Connection, ChildError> {
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let failed = |what: &str, e: std::io::Error| ChildError {
            problem: Problem::Unreachable(format!("{what}: {e}")),
            request: String::new(),
            stderr: String::new(),
        };
        let timeout = Duration::from_secs(model.timeout_seconds.unwrap_or(TIMEOUT).max(1).into());
        let (process, reader, writer): (Option<Child>, Box<dyn Read + Send>, Box<dyn Write + Send>) =
            match (&model.socket, model.command.as_slice()) {
                (Some(path), _) => {
                    let stream = UnixStream::connect(path).map_err(|e| failed(path, e))?;
                    let other = stream.try_clone().map_err(|e| failed(path, e))?;
                    (None, Box::new(stream), Box::new(other))
                }
                (None, [program, arguments @ ..]) => {
                    let mut process = Command::new(program)
                        .args(arguments)
                        .stdin(Stdio::piped())
                        .stdout(Stdio::piped())
                        .stderr(Stdio::piped())
                        .spawn()
                        .map_err(|e| failed(program, e))?;
                    let pipes = (process.stdout.take(), process.stdin.take(), process.stderr.take());
                    let (Some(out), Some(into), Some(err)) = pipes else {
                        return Err(failed(program, std::io::Error::other("it has no pipes")));
                    };
                    let kept = Arc::clone(&stderr);
                    std::thread::spawn(move || keep_end(err, &kept));
                    (Some(process), Box::new(out), Box::new(into))
                }
                (None, []) => return Err(failed("command", std::io::Error::other("it is empty"))),
            };
        // The threads end when the child does, or when this end of their channels is dropped.
        let (to, lines) = sync_channel::<Arc<str>>(1);
        std::thread::spawn(move || write_lines(writer, &lines));
        let (found, from) = sync_channel(1);
        std::thread::spawn(move || read_lines(reader, &found));
        Ok(Connection { to, from, process, stderr, timeout, last: 0 })
    }

    /// Sends a request, given as its content without the number, and waits for the answer's content.
    ///
    /// # Errors
    /// When there is none, or none that the protocol knows.
    pub fn ask(&mut self, content: &str) -> Result<Value, ChildError> {
        self.last += 1;
        let line: Arc<str> = format!("{{\"id\":{},{content}}}\n", self.last).into();
        let answer = self.exchange(&line);
        answer.map_err(|problem| {
            let stderr = self.stderr.lock().map(|kept| String::from_utf8_lossy(&kept).into_owned());
            ChildError { problem, request: line.trim_end().to_owned(), stderr: stderr.unwrap_or_default() }
        })
    }

    fn exchange(&mut self, line: &Arc<str>) -> Result<Value, Problem> {
        if self.to.send(Arc::clone(line)).is_err() {
            return Err(Problem::Ended(self.status()));
        }
        let text = match self.from.recv_timeout(self.timeout) {
            Ok(Line::Text(text)) => text,
            Ok(Line::TooLong) => return Err(Problem::Endless(LONGEST_LINE)),
            Ok(Line::End) | Err(RecvTimeoutError::Disconnected) => {
                return Err(Problem::Ended(self.status()));
            }
            Err(RecvTimeoutError::Timeout) => return Err(Problem::Late(self.timeout.as_secs())),
        };
        if let Some(number) = demi_common::text::beyond_64_bits(&text) {
            return Err(Problem::Wide(number));
        }
        let garbage = || Problem::Garbage(cut(&String::from_utf8_lossy(&text)));
        let Ok(Value::Object(mut answer)) = serde_json::from_slice(&text) else { return Err(garbage()) };
        if answer.get("id").and_then(Value::as_u64) != Some(self.last) {
            let got = answer.get("id").map_or_else(|| "nothing".to_owned(), Value::to_string);
            return Err(Problem::WrongId { asked: self.last, got });
        }
        if let Some(error) = answer.remove("error") {
            return Err(Problem::Said(error.as_str().map_or_else(|| error.to_string(), str::to_owned)));
        }
        steady(&mut answer);
        Ok(Value::Object(answer))
    }

    /// How the child ended, for people; waits for it as long as for an answer. Whether it left its memory behind says nothing of the model.
    fn status(&mut self) -> String {
        let Some(process) = &mut self.process else { return String::new() };
        let until = Instant::now() + self.timeout;
        loop {
            match process.try_wait() {
                Ok(Some(status)) => {
                    return format!(" ({})", status.to_string().trim_end_matches(" (core dumped)"));
                }
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                _ => return String::new(),
            }
        }
    }
}

/// Leaves out of what handlers raised what differs from process to process, so that answers can be compared.
fn steady(answer: &mut serde_json::Map<String, Value>) {
    for one in answer.get_mut("answers").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(text) = one.pointer_mut("/raised/text") {
            *text = text.as_str().map_or(Value::Null, |said| Value::from(stable(said)));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn write_lines(mut to: Box<dyn Write + Send>, lines: &Receiver<Arc<str>>) {
    while let Ok(line) = lines.recv() {
        if to.write_all(line.as_bytes()).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn read_lines(from: Box<dyn Read + Send>, found: &SyncSender<Line>) {
    let mut from = BufReader::with_capacity(1 << 16, from);
    loop {
        let mut text = Vec::new();
        let read = (&mut from).take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut text);
        let line = match read {
            Ok(0) | Err(_) => Line::End,
            Ok(n) if n > LONGEST_LINE => Line::TooLong,
            Ok(_) => Line::Text(text),
        };
        let last = !matches!(line, Line::Text(_));
        if found.send(line).is_err() || last {
            return;
        }
    }
}

fn keep_end(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if let Ok(mut kept) = kept.lock() {
            kept.extend_from_slice(&buffer[..read]);
            let surplus = kept.len().saturating_sub(KEPT_STDERR);
            kept.drain(..surplus);
        }
    }
}

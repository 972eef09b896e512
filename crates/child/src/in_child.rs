//! A model that is compiled into this program, run in a process of its own first: this program once more, which answers on its standard output
//! whether calls of handlers return.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use demi_replay::handlers::Handlers;
use demi_replay::vet::{Answer, Elsewhere, Link, Question, Told};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::Scenario;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

/// With what answers begin: a model may print what it likes.
const MARK: &str = "demi-handlers: ";
/// Bytes of its standard error that are kept.
const KEPT: usize = 8_000;
/// How long the rest of its standard error is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Stack that a handler has, in bytes: less than any thread here has, or what passes there would not pass here.
const STACK: usize = 1 << 20;

/// The arguments with which this program runs handlers.
pub const ARGUMENTS: [&str; 2] = ["model", "run-handlers"];

/// This program once more, with the model of a scenario.
pub(crate) struct Again {
    greeting: String,
}

impl Again {
    /// Handlers may take so many bytes of memory.
    pub(crate) fn new(scenario: &Scenario, memory: u64) -> Again {
        Again { greeting: json!({"scenario": scenario, "memory": memory}).to_string() }
    }
}

impl Elsewhere for Again {
    fn open(&self) -> Result<Box<dyn Link>, String> {
        let failed = |what: &str| format!("the model's process cannot be started: {what}");
        let program = std::env::current_exe().map_err(|e| failed(&e.to_string()))?;
        let mut process = Command::new(program)
            .args(ARGUMENTS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Whoever interrupts this program does not mean a handler.
            .process_group(0)
            .spawn()
            .map_err(|e| failed(&e.to_string()))?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(to), Some(from), Some(errors)) = pipes else { return Err(failed("it has no pipes")) };
        let (end, said) = channel();
        std::thread::spawn(move || end.send(last_of(errors)));
        let mut link = Process { process, to, from: BufReader::new(from), said };
        match link.exchange(&self.greeting) {
            Some(text) if text == "ready" => Ok(Box::new(link)),
            Some(text) => Err(failed(&text)),
            None => Err(failed(&link.end())),
        }
    }
}

/// A process that runs handlers.
struct Process {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    said: Receiver<String>,
}

impl Process {
    /// Its answer to a line, if it lives.
    fn exchange(&mut self, line: &str) -> Option<String> {
        self.to.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.to.flush()).ok()?;
        let mut text = Vec::new();
        loop {
            text.clear();
            if self.from.read_until(b'\n', &mut text).ok()? == 0 {
                return None;
            }
            let text = String::from_utf8_lossy(&text);
            // What a model printed before it, without an end of its line, is no part of it.
            if let Some((_, answer)) = text.split_once(MARK) {
                return Some(answer.trim_end().to_owned());
            }
        }
    }

    /// How it ended.
    fn end(&mut self) -> String {
        let said = self.said.recv_timeout(PATIENCE).unwrap_or_default();
        match self.process.wait() {
            Ok(status) => told(&said, status),
            Err(error) => error.to_string(),
        }
    }
}

impl Link for Process {
    fn ask(&mut self, question: &Question) -> Result<Answer, String> {
        match self.exchange(&question.text()).as_deref() {
            Some("returns") => Ok(Answer::Returns),
            Some(_) => Ok(Answer::Lacks),
            None => Err(self.end()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The last bytes of what is read to its end.
fn last_of(mut from: impl Read) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// How a handler ended its process, in words that are the same each time.
fn told(said: &str, status: ExitStatus) -> String {
    let words = match (status.signal(), status.code()) {
        (Some(_), _) if said.contains("has overflowed its stack") => "its stack overflowed",
        (Some(_), _) if said.contains("memory allocation of") => "its memory ran out",
        (Some(6), _) => "it aborted",
        (Some(9), _) => "its process was killed",
        (Some(4), _) => "it ran an illegal instruction",
        (Some(8), _) => "it divided by zero, or ran another illegal calculation",
        (Some(7 | 10 | 11), _) => "it touched memory that is not its own",
        (Some(signal), _) => return format!("its process ended by signal {signal}"),
        (None, Some(code)) => return format!("it ended its process with status {code}"),
        (None, None) => "its process ended",
    };
    words.to_owned()
}

/// Runs handlers of these models until standard input ends.
///
/// # Errors
/// When the first line is none that this program writes, or there is no such model. Whoever asked is told as well.
pub fn run_handlers(models: &(impl Registry + Sync)) -> Result<(), String> {
    let mut lines = BufReader::new(std::io::stdin()).lines();
    let greeting = lines.next().and_then(Result::ok).unwrap_or_default();
    let served = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("handlers".to_owned()).stack_size(STACK);
        let serve = || serve(&greeting, &mut lines, models);
        let thread = thread.spawn_scoped(scope, serve).map_err(|e| e.to_string())?;
        thread.join().map_err(|_| "a defect: it panicked".to_owned())?
    });
    if let Err(why) = &served {
        say(&format!("error: {why}"));
    }
    served
}

fn serve(
    greeting: &str,
    lines: &mut (dyn Iterator<Item = std::io::Result<String>> + Send),
    models: &impl Registry,
) -> Result<(), String> {
    let unknown = || "this is for the program itself: --in-child of its other commands runs it".to_owned();
    let value: Value = serde_json::from_str(greeting).map_err(|_| unknown())?;
    let scenario = serde_json::from_value(value["scenario"].clone()).map_err(|_| unknown())?;
    let memory = value["memory"].as_u64().ok_or_else(unknown)?;
    models.visit(&scenario, Serve { lines, memory }).map_err(|e| e.to_string())
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // Where nobody reads, standard input ends too.
    let _ = out.write_all(format!("\n{MARK}{text}\n").as_bytes()).and_then(|()| out.flush());
}

struct Serve<'a> {
    lines: &'a mut (dyn Iterator<Item = std::io::Result<String>> + Send),
    memory: u64,
}

impl Visitor for Serve<'_> {
    type Output = ();

    fn visit<M: Model>(self, simulator: Simulator<M>) {
        let mut handlers = Handlers::new(simulator);
        limit(self.memory);
        say("ready");
        for line in self.lines {
            let Some(question) = line.ok().and_then(|line| Question::read(&line)) else { return };
            say(match handlers.answer(&question) {
                Answer::Returns => "returns",
                Answer::Lacks => "lacks",
            });
        }
    }
}

/// From here on the process may take so many bytes more than it has, and leaves no image of its memory.
fn limit(memory: u64) {
    let none = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    let _ = setrlimit(Resource::Core, none);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix("kB"));
    // Where the system does not tell, a program of any size has room.
    let now = size.and_then(|size| size.trim().parse::<u64>().ok()).map_or(1 << 32, |size| size << 10);
    let most = now.saturating_add(memory);
    let known = getrlimit(Resource::As);
    if known.current.is_none_or(|known| known > most) {
        let _ = setrlimit(Resource::As, Rlimit { current: Some(most), maximum: known.maximum });
    }
}

/// Has the handlers of whatever model run elsewhere first, where there is an elsewhere.
pub(crate) struct Vetting<'a, V> {
    pub(crate) visitor: V,
    pub(crate) elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Who is told how that goes.
    pub(crate) told: &'a dyn Fn(Told),
}

impl<V: Visitor> Visitor for Vetting<'_, V> {
    type Output = V::Output;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> V::Output {
        if let Some(elsewhere) = self.elsewhere {
            (self.told)(simulator.vet(elsewhere));
        }
        self.visitor.visit(simulator)
    }
}

//! One process of a program, and the steps that it takes: a line that it reads, or its clock going on.
//!
//! The shim (`shim/shim.c`) is loaded into the process. It answers every question about the time, lets one thread run after the other, ends
//! waits when the scheduler says so, and reports when all threads wait: the process is *at rest* then. `/proc` is asked only where a report does not come: a
//! thread may wait for something that the shim does not know. Nothing is concluded from time that passes, but that a step which takes
//! too long is an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use demi_common::text::beyond_64_bits;

use crate::error::{Fault, ProgramError};
use crate::folders::RunFolder;
use crate::resolve::{is_strange, seeded};

/// The shim as a shared object; empty where it could not be compiled.
static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// No deadline.
const NEVER: u64 = u64::MAX;
/// How far behind a deadline the clock is set: who asks whether the time is *past* its deadline must not be asked twice.
const BEHIND: u64 = 1_000;
/// Sleepers with unread input are woken so often.
const PUSHES: u32 = 64;
/// Bytes of standard error that an error shows.
const SHOWN: u64 = 2_000;
/// How many of these are its first.
const HEAD: u64 = 600;
/// Bytes of standard error that are kept of one step.
const KEPT: u64 = 64 * 1024;
/// Bytes of standard error that a process may write.
const NOISE: u64 = 64 << 20;
/// After this part of the time of a step it is noted how long the process has run, to see whether it runs in the rest.
const LOOKED_AT: f64 = 0.1;
/// A process that runs in this part of the rest computes; one that runs less waits for the machine.
const BUSY: f64 = 0.5;
/// So many times the time of a step a process may wait for the machine.
const MOST_STARVED: u32 = 10;
/// Bytes of standard output that a process may write in one step.
const OUTPUT: u64 = 16 << 20;
/// Bytes of files that a node may have when it is killed.
const DISK: u64 = 256 << 20;
/// Folders that lie in each other, at most.
const FOLDERS: u32 = 64;
/// How long a report is waited for before `/proc` is asked.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long is read that is known to come.
const MOMENT: Duration = Duration::from_millis(20);
/// How long a program may take to begin.
const BEGIN: Duration = Duration::from_secs(20);

/// What the shim is told: to go on, to make a copy of the process, to look at its input, to leave out a thread that sleeps in the kernel, or to kill
/// the process when it has written so often.
const GO: u64 = 0;
const COPY: u64 = 1;
const LOOK: u64 = 2;
const PASS: u64 = 3;
const KILL: u64 = 4;

const POLLER: u32 = 2;
const FORKED: u32 = 4;
const CONNECTED: u32 = 8;
const CROWDED: u32 = 16;
const REPLACED: u32 = 32;
const UNTRAPPED: u32 = 64;
const TIMED: u32 = 128;
const TRIED: u32 = 256;

/// The signal that ends a process within a step when it is told to.
const SIGKILL: i32 = Signal::KILL.as_raw();

/// Files that a process left, by their path within its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk(pub(crate) BTreeMap<String, Vec<u8>>);

impl Disk {
    /// The files, by path; folders end in a slash.
    #[must_use]
    pub fn files(&self) -> BTreeMap<&str, &[u8]> {
        self.0.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect()
    }
}

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments, as [`crate::resolve`] finds them.
    pub command: Vec<String>,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Most bytes of its memory.
    pub memory: u64,
    /// Most real time of one step.
    pub step: Duration,
    /// Most lines that one step writes.
    pub outputs: usize,
    /// Nanoseconds of the clock that one step lets go by at most.
    pub limit: u64,
    /// Nanoseconds of the clock that a poll of a program that polls takes.
    pub quantum: u64,
    /// Place of its node among the others: the number of its process and the time of day at which it starts are not theirs.
    pub place: u32,
    /// Whether a kill is a loss of power: of the files only what was synced is left.
    pub synced: bool,
}

/// What a process does in one step.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The lines that it writes.
    pub lines: Vec<Arc<str>>,
    /// Its clock at the end, in nanoseconds since its start.
    pub clock: u64,
    /// Whether it may do something by itself once its clock goes on.
    pub wakes: bool,
    /// How it ended, if it did.
    pub ended: Option<String>,
    /// What it wrote to standard error meanwhile. That is for people: answers that differ in it are equal.
    pub stderr: Arc<str>,
}

impl Answer {
    /// Whether it was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.ended.as_ref().is_some_and(|how| how.starts_with("signal: 9"))
    }
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        let told = |one: &Self| (one.clock, one.wakes);
        told(self) == told(other) && self.lines == other.lines && self.ended == other.ended
    }
}

impl Eq for Answer {}

/// What the shim reports when all threads wait.
#[derive(Clone, Copy, Debug)]
struct Report {
    number: u64,
    clock: u64,
    earliest: u64,
    flags: u32,
    threads: u32,
}

impl Report {
    const BYTES: usize = 32;

    fn read(bytes: &[u8; Report::BYTES]) -> Report {
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        Report { number: long(0), clock: long(8), earliest: long(16), flags: short(24), threads: short(28) }
    }
}

/// How a process came to be.
enum Owned {
    Started(Child),
    /// By a copy of another; none once its end was seen.
    Copied(Option<Pid>),
}

impl Owned {
    /// Its number.
    fn id(&self) -> u32 {
        match self {
            Owned::Started(child) => child.id(),
            Owned::Copied(pid) => pid.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs()),
        }
    }

    /// How it ended, if it did.
    fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        match self {
            Owned::Started(child) => child.try_wait(),
            Owned::Copied(None) => Ok(Some(ExitStatus::from_raw(0))),
            Owned::Copied(pid) => {
                let ended = waitpid(*pid, WaitOptions::NOHANG)?;
                if ended.is_some() {
                    *pid = None;
                }
                Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
            }
        }
    }

    fn kill(&mut self) {
        match self {
            Owned::Started(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            Owned::Copied(pid) => {
                if let Some(pid) = pid.take() {
                    let _ = kill_process(pid, Signal::KILL);
                    let _ = waitpid(Some(pid), WaitOptions::empty());
                }
            }
        }
    }
}

/// The folder in which a process works, with all its copies.
struct Home {
    folder: TempDir,
    /// In which it stands: there as long as a process is.
    run: Arc<RunFolder>,
    /// To which all of them connect, one at a time.
    listener: Mutex<UnixListener>,
    /// Whether there was a copy.
    shared: AtomicBool,
    /// How many files of standard error there are.
    files: AtomicU64,
    /// Held while a copy is made: who connects is then known.
    copying: Mutex<()>,
}

impl Home {
    /// A new file for standard error: to write, and to read.
    fn errors(&self) -> std::io::Result<(File, File)> {
        let path = self.folder.path().join(format!("stderr-{}", self.files.fetch_add(1, Ordering::Relaxed)));
        let files = (File::options().create(true).append(true).open(&path)?, File::open(&path)?);
        std::fs::remove_file(&path)?;
        Ok(files)
    }

    /// Waits for the shim to connect.
    fn accepted(&self, child: &mut Owned) -> Result<UnixStream, String> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(|error| error.to_string())?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.to_string()),
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("it ended at once ({status})"));
            }
            if began.elapsed() > BEGIN {
                return Err(
                    "it does not load the shim: does a shell script start it beside itself, without 'exec'?"
                        .into(),
                );
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The folder in which the shim keeps what was synced.
    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }

    /// Whether nothing was written to the working folder, nor synced there.
    fn is_empty(&self) -> bool {
        let count = |folder: &Path| std::fs::read_dir(folder).map(Iterator::count);
        // The shim keeps the entries of the folder as the process found it.
        let synced = count(&self.kept()).unwrap_or_default();
        count(&self.folder.path().join("work")).is_ok_and(|count| count == 0) && synced <= 1
    }
}

/// A running process that is at rest between its steps.
pub struct Process {
    child: Owned,
    stdin: ChildStdin,
    stdout: ChildStdout,
    control: UnixStream,
    /// Bytes of a report that is not whole yet.
    pending: Vec<u8>,
    report: Report,
    /// Bytes that it wrote in this step.
    taken: u64,
    /// What was written of a line that is not whole yet.
    partial: Vec<u8>,
    lines: Vec<Arc<str>>,
    ended: Option<String>,
    launch: Arc<Launch>,
    /// Its standard error, and how far that was read.
    errors: File,
    read: u64,
    home: Arc<Home>,
}

impl Process {
    /// Starts a program, up to its first rest.
    ///
    /// # Errors
    /// When it cannot be started, does not load the shim, or does not come to rest.
    pub fn start(launch: &Arc<Launch>) -> Result<Process, ProgramError> {
        Process::start_at(launch, 0, 0, &Disk::default())
    }

    /// Starts a program with what an earlier process of its node left, up to its first rest.
    pub(crate) fn start_at(
        launch: &Arc<Launch>,
        incarnation: u32,
        clock: u64,
        disk: &Disk,
    ) -> Result<Process, ProgramError> {
        // Two incarnations of a node must not make the same identifiers.
        let seed = launch.seed.wrapping_add(u64::from(incarnation).wrapping_mul(0x9e37_79b9));
        let failed = |what: String| ProgramError::Start { command: launch.command.join(" "), what };
        if SHIM.is_empty() {
            return Err(failed("this build has no shim: no C compiler was found when it was made".into()));
        }
        let io = |error: std::io::Error| failed(error.to_string());
        let run = RunFolder::of_this_run().map_err(io)?;
        let folder = run.one().map_err(io)?;
        let shim = folder.path().join("shim.so");
        std::fs::write(&shim, SHIM).map_err(io)?;
        let work = folder.path().join("work");
        std::fs::create_dir(&work).map_err(io)?;
        let socket = folder.path().join("control");
        let listener = UnixListener::bind(&socket).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let listener = Mutex::new(listener);
        let home = Arc::new(Home {
            folder,
            run,
            listener,
            shared: AtomicBool::new(false),
            files: AtomicU64::new(0),
            copying: Mutex::default(),
        });
        let (written, errors) = home.errors().map_err(io)?;
        write_files(&work, disk).map_err(io)?;
        let kept = home.kept();
        if launch.synced {
            std::fs::create_dir(&kept).map_err(io)?;
        }
        let command = seeded(launch.command.clone(), seed);
        let (program, arguments) = command.split_first().ok_or_else(|| failed("no program".into()))?;
        let carrier = home.run.carrier();
        let is_guest = is_strange(program);
        let mut words = Command::new(if is_guest { carrier.as_os_str() } else { program.as_ref() });
        words
            .args(is_guest.then_some(program))
            .args(arguments)
            .env_clear()
            .envs(environment(&work))
            .env("LD_PRELOAD", &shim)
            .env("DEMI_SHIM_SOCKET", &socket)
            .env("DEMI_SHIM_SEED", seed.to_string())
            .env("DEMI_SHIM_CLOCK", clock.to_string())
            .env("DEMI_SHIM_MEMORY", launch.memory.to_string())
            .env("DEMI_SHIM_CARRIER", &carrier)
            .env("DEMI_SHIM_PLACE", launch.place.to_string())
            .env("DEMI_SHIM_LIFE", incarnation.to_string())
            .env("DEMI_SHIM_CPU", CPU.fetch_add(1, Ordering::Relaxed).to_string())
            .envs(launch.synced.then_some(("DEMI_SHIM_KEPT", &kept)))
            .current_dir(&work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(written)
            .process_group(0);
        let mut child = spawned(&mut words).map_err(io)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no standard input and output".into()));
        };
        let mut child = Owned::Started(child);
        let control = match home.accepted(&mut child) {
            Ok(control) => control,
            Err(what) => {
                child.kill();
                let told = tail(&errors);
                let told = if told.is_empty() { told } else { format!("; its standard error ends: {told}") };
                return Err(failed(format!("{what}{told}")));
            }
        };
        nonblocking(&stdin).and_then(|()| nonblocking(&stdout)).map_err(io)?;
        control.set_read_timeout(Some(MOMENT)).map_err(io)?;
        let report = Report { number: 0, clock, earliest: NEVER, flags: 0, threads: 1 };
        let mut process = Process {
            child,
            stdin,
            stdout,
            control,
            pending: Vec::new(),
            report,
            taken: 0,
            partial: Vec::new(),
            lines: Vec::new(),
            ended: None,
            launch: Arc::clone(launch),
            errors,
            read: 0,
            home,
        };
        process.rest(0, BEGIN)?;
        Ok(process)
    }

    /// A second process in the same state, made without a start. Nothing where that cannot be done: the program has written files, or holds
    /// descriptors or memory that both would share.
    pub fn copy(&mut self) -> Option<Process> {
        let at_rest = self.ended.is_none() && self.lines.is_empty() && self.partial.is_empty();
        if !at_rest || !self.home.is_empty() || !is_plain(self.child.id(), self.report.threads as usize) {
            return None;
        }
        let (input, stdin) = std::io::pipe().ok()?;
        let (stdout, output) = std::io::pipe().ok()?;
        let (written, errors) = self.home.errors().ok()?;
        let (stdin, stdout) =
            (ChildStdin::from(OwnedFd::from(stdin)), ChildStdout::from(OwnedFd::from(stdout)));
        nonblocking(&stdin).and_then(|()| nonblocking(&stdout)).ok()?;
        let number = |fd: i32| u64::try_from(fd).unwrap_or(u64::MAX);
        let opened = [number(input.as_raw_fd()), number(output.as_raw_fd()), number(written.as_raw_fd())];
        self.home.shared.store(true, Ordering::Relaxed);
        let home = Arc::clone(&self.home);
        let _one = home.copying.lock().unwrap_or_else(PoisonError::into_inner);
        self.control.write_all(&ordered([COPY, opened[0], opened[1], opened[2]])).ok()?;
        let mut child = Owned::Copied(Some(self.copied()?));
        let Ok(control) = home.accepted(&mut child) else {
            child.kill();
            return None;
        };
        control.set_read_timeout(Some(MOMENT)).ok()?;
        let mut made = Process {
            child,
            stdin,
            stdout,
            control,
            pending: Vec::new(),
            report: self.report,
            taken: 0,
            partial: Vec::new(),
            lines: Vec::new(),
            ended: None,
            launch: Arc::clone(&self.launch),
            errors,
            read: 0,
            home: Arc::clone(&self.home),
        };
        // It says when all of its threads are there.
        made.told_once()?;
        Some(made)
    }

    /// The number of the copy that it was told to make. It is at rest, so it says nothing else.
    fn copied(&mut self) -> Option<Pid> {
        let told = self.told_once()?;
        i32::try_from(told.clock.cast_signed()).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw)
    }

    /// The next thing that a process says which is at rest.
    fn told_once(&mut self) -> Option<Report> {
        let mut bytes = [0; Report::BYTES];
        let (mut at, began) = (0, Instant::now());
        while at < bytes.len() {
            match self.control.read(&mut bytes[at..]) {
                Ok(0) => return None,
                Ok(length) => at += length,
                Err(_) if began.elapsed() > self.launch.step => return None,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(_) => return None,
            }
        }
        Some(Report::read(&bytes))
    }

    /// Whether it has files that a copy of it, or that of which it is a copy, can see too. What it did since it was last asked cannot be relied
    /// on then.
    #[must_use]
    pub fn shares_files(&self) -> bool {
        self.home.shared.load(Ordering::Relaxed) && !self.home.is_empty()
    }

    /// The files that are left when it is killed: all that are in its folder, or what of them was synced.
    ///
    /// # Errors
    /// When they cannot be read, or are too large.
    pub fn disk(&self) -> Result<Disk, ProgramError> {
        let mut disk = Disk::default();
        let (root, mut left) = (self.home.folder.path().join("work"), DISK);
        let read = match self.launch.synced {
            true => std::fs::metadata(&root).and_then(|about| {
                read_synced(&self.home.kept(), (about.ino(), String::new()), &mut disk, &mut left, 0)
            }),
            false => read_files(&root, &root, &mut disk, &mut left),
        };
        read.map_err(|error| self.fault(Fault::Disk(error.to_string())))?;
        Ok(disk)
    }

    /// What it wrote to standard error, from its end.
    #[must_use]
    pub fn stderr(&self) -> String {
        tail(&self.errors)
    }

    /// What it wrote to standard error since that was last read.
    fn noted(&mut self) -> Arc<str> {
        let length = self.errors.metadata().map_or(0, |about| about.len());
        if length <= self.read {
            return "".into();
        }
        let from = self.read.max(length.saturating_sub(KEPT));
        self.read = length;
        text_of(&self.errors, from, length).into()
    }

    /// How many threads waited when it last came to rest.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.report.threads
    }

    /// What it does by itself before it reads anything.
    ///
    /// # Errors
    /// When what it wrote is too much.
    pub fn begun(&mut self) -> Result<Answer, ProgramError> {
        self.answer()
    }

    /// Has it read a line.
    ///
    /// # Errors
    /// When it does not come to rest, or does what a program under this scheduler cannot do.
    pub fn deliver(&mut self, line: &str) -> Result<Answer, ProgramError> {
        self.write(format!("{line}\n").as_bytes())?;
        self.look()?;
        self.answer()
    }

    /// Has it be killed once it has written so often to its output or its files; with 0 it is not.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn kill_after(&mut self, writes: u64) -> Result<(), ProgramError> {
        self.told([KILL, writes, 0, 0])
    }

    /// Has it look at its input, until it is at rest.
    fn look(&mut self) -> Result<(), ProgramError> {
        let noted = self.report.number;
        self.told([LOOK, 0, 0, 0])?;
        self.rest(noted, self.launch.step)
    }

    /// Whether there is something that it was sent and has not read.
    fn unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.stdin).unwrap_or(0) > 0
    }

    /// Writes to its standard input. What a pipe does not take at once is written once it has read the beginning.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ProgramError> {
        let mut at = 0;
        while at < bytes.len() && self.ended.is_none() {
            match self.stdin.write(&bytes[at..]) {
                Ok(written) => at += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.look()?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    // It may be about to end.
                    self.listen()?;
                    if self.ended.is_none() {
                        return Err(self.fault(Fault::Closed));
                    }
                }
                Err(error) => return Err(self.fault(Fault::Broken(error.to_string()))),
            }
        }
        Ok(())
    }

    /// Lets its clock go on until it writes something, ends, or waits for input alone.
    ///
    /// # Errors
    /// As for [`Process::deliver`].
    pub fn pass_time(&mut self) -> Result<Answer, ProgramError> {
        let end = self.report.clock.saturating_add(self.launch.limit);
        while self.lines.is_empty() && self.ended.is_none() {
            let Some(next) = self.next_time().filter(|next| *next <= end) else { break };
            let noted = self.report.number;
            self.order(next, end)?;
            self.rest(noted, self.launch.step)?;
        }
        let silent = self.lines.is_empty() && self.ended.is_none();
        let mut answer = self.answer()?;
        // Nothing in that time: it is not asked again before it has read something.
        answer.wakes &= !silent;
        Ok(answer)
    }

    /// Lets its clock go on to a time, whatever it writes meanwhile.
    ///
    /// # Errors
    /// As for [`Process::deliver`].
    pub fn pass_to(&mut self, end: u64) -> Result<Answer, ProgramError> {
        while self.ended.is_none() && self.report.clock < end {
            // Where it does nothing by itself before that, it only shows the new time to who asks.
            let next = self.next_time().filter(|next| *next <= end);
            let noted = self.report.number;
            self.order(next.unwrap_or(end), end)?;
            self.rest(noted, self.launch.step)?;
        }
        self.answer()
    }

    /// The time at which it does something next.
    fn next_time(&self) -> Option<u64> {
        let now = self.report.clock;
        let poll = (self.report.flags & POLLER != 0).then(|| now.saturating_add(self.launch.quantum));
        let deadline =
            (self.report.earliest != NEVER).then(|| self.report.earliest.max(now).saturating_add(BEHIND));
        poll.into_iter().chain(deadline).min()
    }

    /// Sets the clock, and lets it go on by itself until `until` while nothing is written.
    fn order(&mut self, clock: u64, until: u64) -> Result<(), ProgramError> {
        self.told([GO, clock, until, self.launch.quantum])
    }

    fn told(&mut self, order: [u64; 4]) -> Result<(), ProgramError> {
        match self.control.write_all(&ordered(order)) {
            Ok(()) => Ok(()),
            // That it has ended is seen when it is listened to.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(self.fault(Fault::Broken(error.to_string()))),
        }
    }

    /// Waits until it is at rest after that report, and has read what it was sent.
    fn rest(&mut self, mut noted: u64, limit: Duration) -> Result<(), ProgramError> {
        let (began, mut pushes, mut ran_before, mut asleep) = (Instant::now(), 0, None, None::<Instant>);
        while self.ended.is_none() {
            let heard = self.listen()?;
            self.drain()?;
            if self.ended.is_some() {
                break;
            }
            self.allowed()?;
            if self.report.number > noted {
                if !self.unread() {
                    // What it wrote before it came to rest is there now.
                    return self.drain().map(drop);
                }
                // It sleeps beside its input: its clock goes on until it reads.
                let next = self.next_time().filter(|_| pushes < PUSHES);
                let next = next.ok_or_else(|| self.fault(Fault::Unread))?;
                pushes += 1;
                noted = self.report.number;
                self.order(next, 0)?;
                continue;
            }
            if self.errors.metadata().map_or(0, |about| about.len()) > NOISE {
                return Err(self.fault(Fault::Noisy(NOISE >> 20)));
            }
            let (passed, process) = (began.elapsed(), self.child.id());
            if ran_before.is_none() && passed > limit.mul_f64(LOOKED_AT) {
                ran_before = Some((passed, ran(process)));
            }
            if passed > limit {
                let (since, before) = ran_before.unwrap_or_default();
                let ran = ran(process).saturating_sub(before);
                let seconds = limit.as_secs_f64();
                let sleeps = switches(process).is_some();
                let long = asleep.is_some_and(|since| since.elapsed() > limit.mul_f64(LOOKED_AT));
                let fault = match () {
                    () if is_stopped(process) => Some(Fault::Stopped),
                    // One that a busy machine kept from running may have come to sleep just now.
                    () if sleeps && (long || passed > limit * 2) => Some(Fault::Restless(seconds)),
                    // On a busy machine it waits for its turn.
                    () if !sleeps && ran >= (limit - since.min(limit)).mul_f64(BUSY) => {
                        Some(Fault::Computes(seconds))
                    }
                    () if passed > limit * MOST_STARVED => {
                        Some(Fault::Starved(passed.as_secs_f64(), ran.as_secs_f64()))
                    }
                    () => None,
                };
                if let Some(fault) = fault {
                    return Err(self.fault(fault));
                }
            }
            if !heard && self.is_still() {
                asleep.get_or_insert_with(Instant::now);
                // The thread whose turn it is waits for something that the shim does not know.
                self.told([PASS, 0, 0, 0])?;
            } else {
                asleep = None;
            }
        }
        Ok(())
    }

    /// Whether the kernel says that all threads wait, and that none did anything in between. Something may be on its way from one to another
    /// while they are looked through, so they are looked through twice.
    fn is_still(&mut self) -> bool {
        let number = self.report.number;
        let Some(first) = switches(self.child.id()) else { return false };
        let second = switches(self.child.id());
        Some(first) == second && self.listen().is_ok_and(|_| self.report.number == number)
    }

    /// Reads reports, or waits for a moment until there is one or some output. Whether anything came.
    fn listen(&mut self) -> Result<bool, ProgramError> {
        let mut buffer = [0; 16 * Report::BYTES];
        let mut both = [PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.stdout, PollFlags::IN)];
        match poll(&mut both, Some(&PATIENCE)) {
            Ok(0) => return Ok(false),
            Err(error) if error != Errno::INTR => return Err(self.fault(Fault::Broken(error.to_string()))),
            // Its end is seen on the control socket too.
            _ if both[0].revents().is_empty() => return Ok(both[1].revents().contains(PollFlags::IN)),
            _ => {}
        }
        match self.control.read(&mut buffer) {
            Ok(0) => {
                self.end()?;
                return Ok(true);
            }
            Ok(length) => self.pending.extend_from_slice(&buffer[..length]),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                return Ok(false);
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                self.end()?;
                return Ok(true);
            }
            Err(error) => return Err(self.fault(Fault::Broken(error.to_string()))),
        }
        let whole = self.pending.len() / Report::BYTES * Report::BYTES;
        if let Some(last) = self.pending[..whole].last_chunk() {
            self.report = Report::read(last);
        }
        self.pending.drain(..whole);
        Ok(whole > 0)
    }

    /// What a program under this scheduler may not do.
    fn allowed(&mut self) -> Result<(), ProgramError> {
        let flags = self.report.flags;
        let fault = match () {
            () if flags & FORKED != 0 => Fault::Forks,
            () if flags & CONNECTED != 0 => Fault::Connects,
            () if flags & CROWDED != 0 => Fault::Crowded,
            () if flags & REPLACED != 0 => Fault::Replaced,
            () if flags & UNTRAPPED != 0 => Fault::Untrapped,
            () if flags & TIMED != 0 => Fault::Timed,
            () => return Ok(()),
        };
        Err(self.fault(fault))
    }

    /// Takes what it wrote to standard output. Whether there was something.
    fn drain(&mut self) -> Result<bool, ProgramError> {
        let mut buffer = [0; 64 * 1024];
        let mut some = false;
        loop {
            match self.stdout.read(&mut buffer) {
                Ok(0) => return Ok(some),
                Ok(length) => {
                    some = true;
                    let mut pieces = buffer[..length].split(|&byte| byte == b'\n').peekable();
                    while let Some(piece) = pieces.next() {
                        self.partial.extend_from_slice(piece);
                        if pieces.peek().is_none() {
                            break;
                        }
                        let line = std::mem::take(&mut self.partial);
                        let text = match std::str::from_utf8(&line) {
                            Ok(text) => text.trim_end_matches('\r').to_owned(),
                            Err(_) => {
                                let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN as usize)]);
                                return Err(self.fault(Fault::NotText(shown.escape_debug().to_string())));
                            }
                        };
                        if text.starts_with('{')
                            && let Some(number) = beyond_64_bits(text.as_bytes())
                        {
                            return Err(self.fault(Fault::Wide(number)));
                        }
                        if !text.trim().is_empty() {
                            self.lines.push(text.into());
                        }
                    }
                    self.taken += length as u64;
                    if self.lines.len() > self.launch.outputs || self.taken > OUTPUT {
                        return Err(self.fault(Fault::Floods(self.launch.outputs, OUTPUT >> 20)));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(some),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(Fault::Broken(error.to_string()))),
            }
        }
    }

    /// It is gone: how.
    fn end(&mut self) -> Result<(), ProgramError> {
        let began = Instant::now();
        let (status, killed) = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break (status.to_string(), status.signal() == Some(SIGKILL)),
                Ok(None) if began.elapsed() < self.launch.step => {
                    std::thread::sleep(Duration::from_micros(200))
                }
                Ok(None) => return Err(self.fault(Fault::Restless(self.launch.step.as_secs_f64()))),
                Err(error) => break (error.to_string(), false),
            }
        };
        self.ended = Some(status);
        self.drain()?;
        // It may have ended because of what it was refused.
        self.allowed()?;
        if self.report.flags & TRIED != 0 && !killed { Err(self.fault(Fault::Connects)) } else { Ok(()) }
    }

    fn answer(&mut self) -> Result<Answer, ProgramError> {
        if !self.partial.is_empty() && self.ended.is_none() {
            let half = String::from_utf8_lossy(&self.partial).into_owned();
            return Err(self.fault(Fault::Half(half)));
        }
        self.taken = 0;
        Ok(Answer {
            lines: std::mem::take(&mut self.lines),
            clock: self.report.clock,
            wakes: self.ended.is_none() && self.next_time().is_some(),
            ended: self.ended.clone(),
            stderr: self.noted(),
        })
    }

    fn fault(&self, fault: Fault) -> ProgramError {
        ProgramError::Step { fault, stderr: self.stderr() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill();
    }
}

/// Starts a program. One that was just written may be open for a moment more in a process that another thread is about to start.
fn spawned(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..100 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
    command.spawn()
}

/// Reads a folder: files by their path, and empty folders by their path with a slash.
fn read_files(root: &Path, folder: &Path, disk: &mut Disk, left: &mut u64) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let about = std::fs::symlink_metadata(&path)?;
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if about.is_dir() {
            disk.0.insert(format!("{name}/"), Vec::new());
            read_files(root, &path, disk, left)?;
        } else if about.is_file() {
            *left = left.checked_sub(about.len()).ok_or_else(too_large)?;
            disk.0.insert(name, std::fs::read(&path)?);
        }
    }
    Ok(())
}

/// Reads what was synced of a folder, from what the shim kept: the names that the folder had when it was last synced, and of each file what it had in
/// it when that was. A file that never was is empty.
fn read_synced(
    kept: &Path,
    (number, name): (u64, String),
    disk: &mut Disk,
    left: &mut u64,
    depth: u32,
) -> std::io::Result<()> {
    let there = |what: &str| match std::fs::read(kept.join(what)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    };
    let entries = there(&format!("{number}.dir"))?;
    for entry in entries.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
        let text = String::from_utf8_lossy(entry);
        let mut words = text.splitn(3, ' ');
        let (Some(kind), Some(Ok(inner)), Some(own)) =
            (words.next(), words.next().map(str::parse::<u64>), words.next())
        else {
            continue;
        };
        let path = format!("{name}{own}");
        if kind == "d" {
            disk.0.insert(format!("{path}/"), Vec::new());
            // Folders that were renamed while this one was not synced may seem to lie in each other.
            if depth < FOLDERS {
                read_synced(kept, (inner, format!("{path}/")), disk, left, depth + 1)?;
            }
        } else {
            let bytes = there(&format!("{inner}.data"))?;
            *left = left.checked_sub(bytes.len() as u64).ok_or_else(too_large)?;
            disk.0.insert(path, bytes);
        }
    }
    Ok(())
}

fn too_large() -> std::io::Error {
    std::io::Error::other(format!("it has more than {} MiB of files", DISK >> 20))
}

/// Writes files as they were read.
fn write_files(root: &Path, disk: &Disk) -> std::io::Result<()> {
    for (name, bytes) in &disk.0 {
        match name.strip_suffix('/') {
            Some(folder) => std::fs::create_dir_all(root.join(folder))?,
            None => std::fs::write(root.join(name), bytes)?,
        }
    }
    Ok(())
}

/// Which processor the next process is bound to.
static CPU: AtomicU64 = AtomicU64::new(0);

/// An order in the layout in which the shim reads it.
fn ordered(numbers: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn nonblocking(fd: &impl AsFd) -> std::io::Result<()> {
    let flags = fcntl_getfl(fd)?;
    Ok(fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Whether a process has these threads and the shim's, and nothing open that a copy would share with it: files have one place of reading and writing
/// for both, and memory may be shared too. Counters, pipes between its own threads, files that are only read and lists of what they wait for are made anew
/// in a copy.
fn is_plain(pid: u32, threads: usize) -> bool {
    let plain = || -> Option<bool> {
        let own = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.count();
        let mut pipes: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).ok()? {
            let entry = entry.ok()?;
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let target = std::fs::read_link(entry.path()).ok()?;
            let name = target.to_string_lossy();
            if number >= 3 && name.starts_with("pipe:") {
                let (read, written) = pipes.entry(name.into_owned()).or_default();
                *(if flags_of(pid, number)? & 3 == 0 { read } else { written }) += 1;
                continue;
            }
            let own = number < 3 || name == "/dev/null";
            // The shim knows which sockets are connected with each other.
            let anew = ["anon_inode:[eventfd]", "anon_inode:[eventpoll]"].contains(&&*name)
                || name.starts_with("socket:");
            let apart = own || anew || name.starts_with('/') && is_only_read(pid, number)?;
            if !apart {
                return Some(false);
            }
        }
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let shared = maps
            .lines()
            .any(|line| line.split(' ').nth(1).is_some_and(|may| may.ends_with('s') && may.contains('w')));
        Some(!shared && own == threads + 1 && pipes.values().all(|ends| *ends == (1, 1)))
    };
    plain().unwrap_or(false)
}

/// How a descriptor was opened.
fn flags_of(pid: u32, descriptor: u32) -> Option<u64> {
    let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u64::from_str_radix(line.trim(), 8).ok()
}

/// Whether a descriptor is of a file, which is only read: a copy opens it anew, and reads on where the other was.
fn is_only_read(pid: u32, descriptor: u32) -> Option<bool> {
    let about = std::fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    Some(about.is_file() && flags_of(pid, descriptor)? & 3 == 0)
}

/// Whether a process was stopped, as by `SIGSTOP`.
fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && line.contains('T'))
}

/// The environment of a program: nothing of the user's but where programs are found.
fn environment(work: &Path) -> Vec<(&'static str, std::ffi::OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    vec![
        ("PATH", path),
        ("HOME", work.into()),
        ("TMPDIR", work.into()),
        ("LANG", "C.UTF-8".into()),
        ("PYTHONHASHSEED", "0".into()),
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ("UV_THREADPOOL_SIZE", "1".into()),
        ("MALLOC_ARENA_MAX", "1".into()),
        // Go's runtime stops no thread by signals, and uses one processor.
        ("GOMAXPROCS", "1".into()),
        ("GODEBUG", "asyncpreemptoff=1".into()),
        // A race that Go's detector finds ends the program, so that somebody hears of it.
        ("GORACE", "halt_on_error=1".into()),
    ]
}

/// How long a process has run so far, on all its threads.
fn ran(pid: u32) -> Duration {
    let read = || -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name stands in brackets and may hold anything.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    // The kernel tells it in hundredths of a second on all machines on which this runs.
    Duration::from_millis(read().unwrap_or_default() * 10)
}

/// How often each thread of a process was switched, if all of them wait. No sum of them would do: a thread may end while another is switched.
fn switches(pid: u32) -> Option<BTreeMap<std::ffi::OsString, u64>> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let task = task.ok()?;
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let mut sum = 0;
        for line in status.lines() {
            if let Some(state) = line.strip_prefix("State:") {
                if !state.trim_start().starts_with('S') {
                    return None;
                }
            } else if line.contains("voluntary_ctxt_switches:") {
                sum += line.rsplit(|c: char| c.is_whitespace()).next()?.parse::<u64>().ok()?;
            }
        }
        all.insert(task.file_name(), sum);
    }
    Some(all)
}

/// The end of a file, for people.
fn tail(file: &File) -> String {
    let length = file.metadata().map_or(0, |about| about.len());
    if length <= SHOWN {
        return text_of(file, 0, length).trim().to_owned();
    }
    // Some runtimes say first why they end, and others last.
    let (head, end) = (text_of(file, 0, HEAD), text_of(file, length - (SHOWN - HEAD), length));
    let whole = |text: &str, last: bool| match if last { text.rfind('\n') } else { text.find('\n') } {
        Some(at) if last => text[..at].to_owned(),
        Some(at) => text[at + 1..].to_owned(),
        None => text.to_owned(),
    };
    format!("{}\n…\n{}", whole(&head, true), whole(&end, false)).trim().to_owned()
}

/// A part of a file as text.
fn text_of(file: &File, from: u64, to: u64) -> String {
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or_default()];
    let read = file.read_at(&mut bytes, from).unwrap_or_default();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

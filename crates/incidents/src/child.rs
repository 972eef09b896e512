//! Commands of this program, each in a process of its own with limits: a model that loops, or takes all memory, kills a child and nothing else.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, nice, set_parent_process_death_signal};

/// Set for a child: it lowers its own priority, and ends with the process that started it.
const CHILD: &str = "DEMI_INCIDENT_CHILD";
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Every how many looks its memory is.
const MEMORY_LOOKS: u32 = 4;
/// Most bytes of its standard output that are kept, from the beginning on.
const MOST_OUTPUT: usize = 1 << 20;
/// Most bytes of its standard error that are kept, from the end.
const MOST_SAID: usize = 64 << 10;
/// By how much it is less important than the rest.
const NICE: i32 = 10;

/// What a child may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub time: Duration,
    /// How many bytes of memory it and its own children may use.
    pub memory: Option<u64>,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a status.
    Status(i32),
    /// By a signal.
    Killed,
    /// It was ended, for it took too long.
    OutOfTime,
    /// It was ended, for it used too much memory.
    OutOfMemory,
    /// It was ended, for nobody wants what it makes any more.
    Unwanted,
}

impl Ended {
    /// The same in words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Ended::Status(status) => format!("status {status}"),
            Ended::Killed => "killed by a signal".to_owned(),
            Ended::OutOfTime => "ended, for it took too long".to_owned(),
            Ended::OutOfMemory => "ended, for it used too much memory".to_owned(),
            Ended::Unwanted => "ended, for nobody wants it any more".to_owned(),
        }
    }
}

/// What came of a child.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// The beginning of its standard output.
    pub output: String,
    /// The end of its standard error.
    pub said: String,
    /// How long it took.
    pub time: Duration,
}

/// What a process does first of all if it was started by [`run`]: it makes itself less important than others, and ends with whoever started it.
pub fn become_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // Where the system refuses, the work is done all the same.
    let _ = nice(NICE);
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    #[cfg(target_os = "linux")]
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Runs a program until it ends, uses too much, or `wanted` says no.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(
    program: &Path,
    arguments: &[OsString],
    limits: Limits,
    wanted: &mut dyn FnMut() -> bool,
) -> io::Result<Ran> {
    let began = Instant::now();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // So that its own children end with it.
    command.process_group(0);
    let mut child = command.spawn()?;
    let output = child.stdout.take().map(|pipe| thread::spawn(move || beginning(pipe)));
    let said = child.stderr.take().map(|pipe| thread::spawn(move || end(pipe)));
    let ended = watch(&mut child, began, limits, wanted);
    // Whatever it left behind ends too, and with that the pipes.
    kill_group(&child);
    let text = |thread: Option<thread::JoinHandle<Vec<u8>>>| {
        let bytes = thread.and_then(|thread| thread.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (output, said) = (text(output), text(said));
    Ok(Ran { ended: ended?, output, said, time: began.elapsed() })
}

fn watch(
    child: &mut Child,
    began: Instant,
    limits: Limits,
    wanted: &mut dyn FnMut() -> bool,
) -> io::Result<Ended> {
    let mut looks = 0_u32;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(of_status(status));
        }
        looks = looks.wrapping_add(1);
        let why = if began.elapsed() >= limits.time {
            Some(Ended::OutOfTime)
        } else if !wanted() {
            Some(Ended::Unwanted)
        } else if looks.is_multiple_of(MEMORY_LOOKS)
            && limits.memory.is_some_and(|most| memory(child.id()) > most)
        {
            Some(Ended::OutOfMemory)
        } else {
            None
        };
        if let Some(why) = why {
            kill_group(child);
            let _ = child.kill();
            child.wait()?;
            return Ok(why);
        }
        thread::sleep(LOOK);
    }
}

fn of_status(status: ExitStatus) -> Ended {
    status.code().map_or(Ended::Killed, Ended::Status)
}

fn kill_group(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Bytes of memory that a process and its children use, as far as the system says.
fn memory(pid: u32) -> u64 {
    let (mut sum, mut left, mut seen) = (0, vec![pid], 0);
    while let Some(pid) = left.pop() {
        seen += 1;
        if seen > 10_000 {
            break;
        }
        let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let held = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = held.and_then(|held| held.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
        sum += kib * 1024;
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            left.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    sum
}

/// Reads a pipe to its end, and keeps the beginning.
fn beginning(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        let room = MOST_OUTPUT.saturating_sub(kept.len());
        kept.extend(&buffer[..read.min(room)]);
    }
    kept
}

/// Reads a pipe to its end, and keeps the end.
fn end(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        kept.extend(&buffer[..read]);
        if kept.len() > 2 * MOST_SAID {
            kept.drain(..kept.len() - MOST_SAID);
        }
    }
    kept.drain(..kept.len().saturating_sub(MOST_SAID));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limits: Limits) -> Ran {
        let arguments = ["-c".into(), script.into()];
        run(Path::new("/bin/sh"), &arguments, limits, &mut || true).unwrap()
    }

    const LONG: Limits = Limits { time: Duration::from_secs(600), memory: None };

    #[test]
    fn a_child_tells_how_it_ended() {
        let ran = shell("echo out; echo err >&2; exit 3", LONG);
        assert_eq!((ran.ended, ran.output.as_str(), ran.said.as_str()), (Ended::Status(3), "out\n", "err\n"));
        assert_eq!(shell("kill -9 $$", LONG).ended, Ended::Killed);
    }

    #[test]
    fn a_child_that_takes_too_long_ends_with_its_own_children() {
        let limits = Limits { time: Duration::from_millis(300), memory: None };
        // The pipe of the child's child is closed too, or this would wait.
        assert_eq!(shell("sleep 1000 & sleep 1000", limits).ended, Ended::OutOfTime);
        let arguments = ["-c".into(), "sleep 1000".into()];
        let ran = run(Path::new("/bin/sh"), &arguments, LONG, &mut || false).unwrap();
        assert_eq!(ran.ended, Ended::Unwanted);
    }

    #[test]
    fn what_a_child_leaves_running_ends_with_it() {
        assert_eq!(shell("sleep 1000 & exit 0", LONG).ended, Ended::Status(0));
    }

    #[test]
    fn a_child_that_takes_too_much_memory_is_ended() {
        if !Path::new("/proc/self/status").exists() {
            println!("skipped: this system does not say how much memory a process uses");
            return;
        }
        let limits = Limits { memory: Some(64 << 20), ..LONG };
        // `tail` keeps a line of any length, in a process of its own.
        assert_eq!(shell("tail /dev/zero | cat", limits).ended, Ended::OutOfMemory);
    }

    #[test]
    fn little_of_what_is_said_without_end_is_kept() {
        let ran = shell("yes word | head -c 9000000; yes word | head -c 9000000 >&2; echo last >&2", LONG);
        assert_eq!(ran.output.len(), MOST_OUTPUT);
        assert!(ran.said.len() <= MOST_SAID && ran.said.ends_with("last\n"));
    }
}

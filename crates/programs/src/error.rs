//! What can go wrong with a program.

use std::fmt;

/// A program cannot be run as it is.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be started.
    #[error("the program '{command}' cannot be started: {what}")]
    Start {
        /// The program and its arguments.
        command: String,
        /// What is wrong.
        what: String,
    },
    /// A step went wrong.
    #[error("the program {fault}{}", Told(.stderr))]
    Step {
        /// What it did.
        fault: Fault,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// The same inputs led to two answers.
    #[error(
        "the program is not deterministic: node {node}, input {step} ({input}) gave first {first} and then {second}"
    )]
    Differs {
        /// The node.
        node: String,
        /// Which of its inputs, from 1.
        step: usize,
        /// The input.
        input: String,
        /// What came first.
        first: String,
        /// What came then.
        second: String,
    },
}

/// What a program did that cannot be scheduled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// It runs on and on.
    #[error(
        "did not come to rest within {0} s of one step: one of its threads computes without a pause. Where it waits in a loop for something \
         to change, let it sleep or yield in that loop; where it needs longer, give it more step_seconds"
    )]
    Computes(f64),
    /// The machine had no time for it.
    #[error(
        "did not come to rest within {0:.0} s of one step, of which it ran {1:.1} s: other work keeps the machine busy. Give it more step_seconds, or run \
         less beside it"
    )]
    Starved(f64, f64),
    /// It neither runs nor comes to rest.
    #[error("did not come to rest within {0} s of one step: it waits for something that is not there")]
    Restless(f64),
    /// It does not read.
    #[error("does not read its standard input")]
    Unread,
    /// It closed its input.
    #[error("closed its standard input")]
    Closed,
    /// It starts others.
    #[error("starts other processes, which are not scheduled")]
    Forks,
    /// It opens a connection.
    #[error("opens a network connection: messages are its only way to others")]
    Connects,
    /// It becomes another program.
    #[error("replaces itself by another program: name that one in the scenario's command")]
    Replaced,
    /// The system does not let its calls be filtered.
    #[error("cannot be run here: the system refuses filters of system calls (seccomp)")]
    Untrapped,
    /// It uses timers that start threads.
    #[error("uses timers that start threads (SIGEV_THREAD), which are not scheduled")]
    Timed,
    /// It has too many threads.
    #[error("has more than 512 threads")]
    Crowded,
    /// It writes too much.
    #[error("writes more than {0} lines (outputs in [process]) or {1} MiB in one step")]
    Floods(usize, u64),
    /// It writes too much to standard error.
    #[error("writes more than {0} MiB to its standard error")]
    Noisy(u64),
    /// Its files cannot be kept.
    #[error("was killed, and its files cannot be read: {0}")]
    Disk(String),
    /// It was stopped.
    #[error("stopped itself, as by SIGSTOP, and nobody lets it go on")]
    Stopped,
    /// It writes a whole number that would become another one.
    #[error(
        "writes {0}, a whole number of more than 64 bits, which would be passed on as another number: write it as text"
    )]
    Wide(String),
    /// It writes what is no text.
    #[error("writes a line that is not UTF-8, which JSON is: {0}")]
    NotText(String),
    /// It writes half a line.
    #[error("waits after half a line of output, so end each message with a newline: {0}")]
    Half(String),
    /// The system refuses something.
    #[error("cannot be reached: {0}")]
    Broken(String),
}

struct Told<'a>(&'a String);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; its standard error ends: {}", self.0) }
    }
}

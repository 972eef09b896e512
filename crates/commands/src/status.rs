//! The exit statuses, the same for every command.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// What was asked for is there: a violation, a claim that is true, a predicate that holds.
    There = 0,
    /// It is not there.
    NotThere = 1,
    /// The command was used wrongly, or it failed.
    Failed = 2,
    /// A replay diverged, or the model is not deterministic.
    Diverged = 3,
    /// The budget ended before there was an answer.
    BudgetEnded = 4,
}

/// Which outcome a command that looks for a violation is to call success.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// A violation: status 0 if there is one, 1 if there is none.
    #[default]
    Violation,
    /// None: status 0 if there is none, 1 if there is one. For CI.
    None,
}

impl Expect {
    /// The status, given that of a command that was to find a violation. Divergences and failures stay what they are.
    #[must_use]
    pub fn status(self, code: u8) -> ExitCode {
        ExitCode::from(match (self, code) {
            (Expect::None, 0) => 1,
            (Expect::None, 1) => 0,
            (_, code) => code,
        })
    }
}

/// The table as `--help` shows it.
pub const TABLE: &str = "Exit status of every command:\n  \
     0  what was asked for is there: a violation found, a claim true, a predicate that holds, work done\n  \
     1  it is not there\n  \
     2  the command was used wrongly, or it failed\n  \
     3  the replay diverged, or the model is not deterministic\n  \
     4  the budget ended before there was an answer";

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// An error with a status of its own; all others are [`Status::Failed`].
#[derive(Debug)]
pub struct Ended {
    /// How the command ended.
    pub status: Status,
    /// What is told.
    pub text: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Ended {}

/// The status of an error.
pub fn of(error: &(dyn Error + 'static)) -> Status {
    error.downcast_ref::<Ended>().map_or(Status::Failed, |ended| ended.status)
}

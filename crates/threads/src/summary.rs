//! The summary of what a test came to, in the form of `explore`'s: what was run of each cost, what was found, and what is promised. It is the
//! certificate of the promise: an enumeration that shares nothing with the search can be asked whether it is true.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::schedule::{Schedule, ScheduleError};

/// The name of the format.
pub const FORMAT: &str = "demi-threads-summary/1";

/// How the file of a summary ends.
const ENDING: &str = ".summary.json";

/// What a search bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cost {
    /// Switches away from a task that could go on.
    #[serde(rename = "preempt")]
    Preemptions,
    /// Tasks passed over in the order of the deterministic scheduler.
    #[serde(rename = "delay")]
    Delays,
}

impl Cost {
    /// At most so much, in words.
    pub(crate) fn at_most(self, n: u32) -> String {
        match (self, n) {
            (Cost::Preemptions, 0) => "without a preemption".to_owned(),
            (Cost::Preemptions, 1) => "with at most 1 preemption".to_owned(),
            (Cost::Preemptions, n) => format!("with at most {n} preemptions"),
            (Cost::Delays, 0) => "without a delay".to_owned(),
            (Cost::Delays, 1) => "with at most 1 delay".to_owned(),
            (Cost::Delays, n) => format!("with at most {n} delays"),
        }
    }
}

/// A number with a comma before every three digits.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Every execution within the bound was run, and none fails.
    Complete,
    /// A failure was found.
    Found,
    /// The budget ended before the bound.
    Stopped,
}

/// No execution within this bound fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The most that an execution spends of the cost.
    pub bound: u32,
    /// The promise in words.
    pub text: String,
}

/// A failure that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its class.
    pub violation: Vec<String>,
    /// The tasks that it is about.
    pub affected: Vec<String>,
    /// What goes wrong.
    pub failure: Failure,
    /// The preemptions of its schedule; null where it has none.
    pub preemptions: Option<u32>,
    /// Whether every schedule with fewer was tried: none fails in this way.
    pub least: bool,
    /// Steps of its schedule.
    pub steps: u32,
    /// What found it.
    pub by: String,
    /// In which execution of that.
    pub executions: u64,
    /// The file of its schedule, from the folder on; null where it has none.
    pub schedule: Option<String>,
}

/// What was run of one cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The cost.
    pub cost: u32,
    /// Executions.
    pub executions: u64,
    /// Steps of all of them, each up to the known state that it came to.
    pub steps: u64,
    /// Executions that came to a state which was known.
    pub pruned: u64,
    /// Whether there are no others.
    pub complete: bool,
}

/// What a test came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Always [`FORMAT`].
    pub format: String,
    /// The name of the test.
    pub test: String,
    /// What was counted.
    pub cost: Cost,
    /// The most that an execution might spend of it.
    pub bound: u32,
    /// The most steps of an execution; one that has more fails.
    pub steps: u32,
    /// The most steps in a row of one task that change nothing while another could go on.
    pub hog: u32,
    /// Decides what the random executions are.
    pub seed: u64,
    /// How it ended.
    pub ended: Ended,
    /// What is promised; null where nothing is.
    pub promise: Option<Promise>,
    /// Why coverage is incomplete, where the test did not do the same each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Whether a task yielded a second time though others that wait had not gone on since the first: to go on all the same counts as a preemption.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    /// What was found.
    pub findings: Vec<Found>,
    /// What was run, by cost from 0 on.
    pub levels: Vec<Run>,
    /// Random executions.
    pub random: u64,
}

/// Why a summary cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: std::io::Error,
    },
    /// A file is no summary.
    #[error("{}: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A folder has none.
    #[error("{} has no summary of a test (NAME{ENDING}); `DEMI_OUT={} cargo test` writes one for each test", .0.display(), .0.display())]
    Nothing(PathBuf),
}

/// A claim that is not true.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// Figures, words or files contradict each other.
    #[error("{0}")]
    False(String),
    /// The file of a schedule cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: std::io::Error,
    },
    /// It is no schedule.
    #[error("{}: {error}", path.display())]
    Schedule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: ScheduleError,
    },
}

/// The name of a test as that of a file.
pub(crate) fn stem(test: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { '.' };
    test.replace("::", ".").chars().map(safe).collect()
}

impl Found {
    /// A failure without a schedule.
    #[cfg(feature = "runtime")]
    pub(crate) fn new(failure: &Failure, by: String, executions: u64) -> Self {
        Self {
            violation: vec![failure.class()],
            affected: affected(failure),
            failure: failure.clone(),
            preemptions: None,
            least: false,
            steps: 0,
            by,
            executions,
            schedule: None,
        }
    }
}

/// The tasks that a failure is about.
fn affected(failure: &Failure) -> Vec<String> {
    match failure.kind() {
        FailureKind::Panic { task, .. }
        | FailureKind::Hog { task, .. }
        | FailureKind::Blocked { task, .. } => {
            vec![task.clone()]
        }
        FailureKind::Deadlock { waits } => waits.iter().map(|waits| waits.task.clone()).collect(),
        FailureKind::Livelock { tasks, .. } => tasks.clone(),
        FailureKind::Nondeterministic { .. } => Vec::new(),
    }
}

impl Summary {
    /// The promise of so many complete levels.
    #[cfg(feature = "runtime")]
    pub(crate) fn promised(cost: Cost, bound: u32, levels: &[Run], held_back: bool) -> Promise {
        Promise { bound, text: in_words(cost, bound, levels, held_back) }
    }

    /// The name of its file in a folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}{ENDING}", stem(&self.test))
    }

    /// Where the summary of a test is in a folder.
    #[must_use]
    pub fn path_of(folder: &Path, test: &str) -> PathBuf {
        folder.join(format!("{}{ENDING}", stem(test)))
    }

    /// The file.
    #[must_use]
    pub fn write(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no summary.
    pub fn read(path: &Path) -> Result<Self, SummaryError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SummaryError::File { path: path.to_owned(), error })?;
        let wrong = |message: String| SummaryError::Format { path: path.to_owned(), message };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        match value.get("format").and_then(serde_json::Value::as_str) {
            Some(FORMAT) => {}
            other => {
                let other = other.unwrap_or("none");
                return Err(wrong(format!("the format is \"{other}\", not \"{FORMAT}\"")));
            }
        }
        serde_json::from_value(value).map_err(|error| wrong(error.to_string()))
    }

    /// Reads all summaries of a folder, by the names of their files.
    ///
    /// # Errors
    /// When one cannot be read, or there is none.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, SummaryError> {
        let failed = |error| SummaryError::File { path: folder.to_owned(), error };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING)) {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Err(SummaryError::Nothing(folder.to_owned()));
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// The exit status that a command would end with: 0 where the promise is that which was asked for, 1 where a failure was found, 2 where the
    /// test cannot be checked, 3 where it does not do the same each time, 4 where the budget ended before the bound.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self.findings.first().map(|found| found.failure.kind()) {
            Some(FailureKind::Nondeterministic { .. }) => 3,
            Some(FailureKind::Blocked { .. }) => 2,
            Some(_) => 1,
            None if self.incomplete.is_some() => 3,
            None if self.promise.as_ref().is_some_and(|promise| promise.bound >= self.bound) => 0,
            None => 4,
        }
    }

    /// Checks all that can be checked without the program: figures, words and schedules must say the same. Says what was checked.
    ///
    /// # Errors
    /// When a claim is false, or the file of a schedule cannot be read.
    pub fn verify(&self, folder: &Path) -> Result<Vec<String>, Wrong> {
        let mut lines = Vec::new();
        let wrong = |text: String| Err(Wrong::False(format!("{}: {text}", self.test)));
        for (cost, level) in self.levels.iter().enumerate() {
            if level.cost as usize != cost {
                return wrong(format!("level {cost} says that its cost is {}", level.cost));
            }
            if level.pruned > level.executions {
                return wrong(format!("the figures of cost {cost} contradict each other"));
            }
        }
        let complete = self.levels.iter().take_while(|level| level.complete).count();
        if let Some(promise) = &self.promise {
            if promise.bound as usize >= complete {
                return wrong(format!(
                    "cost {} is promised, but executions of cost {complete} were left out",
                    promise.bound
                ));
            }
            if self.incomplete.is_some() {
                return wrong("something is promised although coverage is incomplete".to_owned());
            }
            let words = in_words(self.cost, promise.bound, &self.levels, self.held_back);
            if words != promise.text {
                return wrong(format!("the promise in words is not that in figures, which is: {words}"));
            }
        }
        let reached = self.promise.as_ref().is_some_and(|promise| promise.bound >= self.bound);
        let ended = match (self.findings.is_empty(), reached) {
            (false, _) => Ended::Found,
            (true, true) => Ended::Complete,
            (true, false) => Ended::Stopped,
        };
        if ended != self.ended {
            return wrong(format!(
                "it says that it ended as {:?}, and its figures that it is {ended:?}",
                self.ended
            ));
        }
        lines.push(format!("{}: words and figures agree", self.test));
        for found in &self.findings {
            lines.push(format!("{}: {}", self.test, self.verify_found(folder, found)?));
        }
        Ok(lines)
    }

    fn verify_found(&self, folder: &Path, found: &Found) -> Result<String, Wrong> {
        let class = found.failure.class();
        if found.violation != [class.clone()] || found.affected != affected(&found.failure) {
            return Err(Wrong::False(format!("{}: the failure is not of the class that it says", self.test)));
        }
        let Some(schedule) = self.schedule(folder, found)? else {
            return Ok(format!("{class}: it has no schedule"));
        };
        let header = &schedule.header;
        let named = |text: String| {
            let file = found.schedule.as_deref().unwrap_or_default();
            Err(Wrong::False(format!("{}: {text}", folder.join(file).display())))
        };
        if header.test != self.test || header.failure.class() != class {
            return named(format!(
                "it is a schedule of {} that ends with {}",
                header.test,
                header.failure.class()
            ));
        }
        if Some(header.preemptions) != found.preemptions
            || header.least != found.least
            || header.steps != found.steps
        {
            return named("its first line says something else than the summary".to_owned());
        }
        let counted = schedule.count();
        if counted.preemptions != header.preemptions {
            return named(format!(
                "it says {} preemptions, and has {}",
                header.preemptions, counted.preemptions
            ));
        }
        if counted.steps != u64::from(header.steps) {
            return named(format!("it says {} steps, and has {}", header.steps, counted.steps));
        }
        if let Some(task) = counted.contradicts {
            return named(format!("its lines do not agree on how many operations {task} has made"));
        }
        // Where a bound below it is not complete, nothing is known of what has fewer.
        let known = self.promise.as_ref().filter(|_| self.cost == Cost::Preemptions);
        if known.is_some_and(|promise| promise.bound >= header.preemptions) {
            return named("the summary promises that there is no such schedule".to_owned());
        }
        Ok(format!("{class}: its schedule has {} preemptions and {} steps", header.preemptions, header.steps))
    }

    /// The schedule of a failure.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn schedule(&self, folder: &Path, found: &Found) -> Result<Option<Schedule>, Wrong> {
        let Some(name) = &found.schedule else { return Ok(None) };
        // A name leads to no other folder.
        if Path::new(name).file_name().is_none_or(|file| file != std::ffi::OsStr::new(name)) {
            return Err(Wrong::False(format!(
                "{}: \"{name}\" is no name of a file in its folder",
                self.test
            )));
        }
        let path = folder.join(name);
        let text =
            std::fs::read_to_string(&path).map_err(|error| Wrong::File { path: path.clone(), error })?;
        Schedule::read(&text).map(Some).map_err(|error| Wrong::Schedule { path, error })
    }
}

/// What is promised, in words.
fn in_words(cost: Cost, bound: u32, levels: &[Run], held: bool) -> String {
    let executions: u64 = levels.iter().take(bound as usize + 1).map(|level| level.executions).sum();
    format!(
        "no failure {}: {} executions, all of them{}; by default the task that runs goes on while it can, and then the next one in the order in \
         which they were spawned; memory is sequentially consistent",
        cost.at_most(bound),
        grouped(executions),
        if held { held_back(cost) } else { "" }
    )
}

/// What counts too where tasks yield again and again.
pub(crate) fn held_back(cost: Cost) -> &'static str {
    match cost {
        Cost::Preemptions => {
            "; to go on after a second yield, though others that wait have not gone on since the first, counts as a preemption"
        }
        Cost::Delays => {
            "; a task that yielded a second time, though others that wait have not gone on since the first, comes last in the order"
        }
    }
}

/// The text for people.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.test)?;
        for found in &self.findings {
            write!(f, "{}", found.failure)?;
            match (found.preemptions, found.least) {
                (Some(n), true) => write!(f, "\n  preemptions: {n}, the fewest")?,
                (Some(n), false) => write!(f, "\n  preemptions: {n}, not proven to be the fewest")?,
                (None, _) => {}
            }
            write!(f, "\n  found by {} in its execution {}", found.by, grouped(found.executions))?;
            if let Some(schedule) = &found.schedule {
                write!(f, "\n  schedule: {schedule}")?;
            }
        }
        match (&self.promise, self.findings.is_empty()) {
            (Some(promise), true) => write!(f, "{}", promise.text)?,
            (Some(promise), false) => write!(f, "\n  {}", promise.text)?,
            (None, true) => write!(f, "no failure found, and no bound is complete")?,
            (None, false) => {}
        }
        if self.status() == 4 {
            write!(f, "\n  {} was asked for", self.cost.at_most(self.bound).trim_start_matches("with "))?;
        }
        if let Some(why) = &self.incomplete {
            write!(f, "\n  coverage is incomplete: {why}")?;
        }
        let name = match self.cost {
            Cost::Preemptions => "preemptions",
            Cost::Delays => "delays",
        };
        for level in self.levels.iter().filter(|level| level.executions > 0) {
            write!(
                f,
                "\n  {name} {}: {} executions, {} steps, {} came to a known state{}",
                level.cost,
                grouped(level.executions),
                grouped(level.steps),
                grouped(level.pruned),
                if level.complete { ", all of them" } else { "" }
            )?;
        }
        if self.random > 0 {
            write!(f, "\n  random: {} executions", grouped(self.random))?;
        }
        Ok(())
    }
}

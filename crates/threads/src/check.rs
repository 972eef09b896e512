//! Checks: which executions of a test are run, and what is said of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::failure::{Failure, FailureKind};
use crate::log::{Followed, Log};
use crate::minimize::{Patience, follow, follow_log, minimize};
use crate::recheck::Recheck;
use crate::run::{Body, Ways, drive};
use crate::schedule::Schedule;
use crate::search::{Bounded, Level, Random, Twice};
use crate::summary::{self, Cost, Ended, Found, Summary, Wrong, grouped};
use crate::world::{Directive, Limits, born};

/// The highest bound: what is beyond it has no end in practice.
const MOST_BOUND: u32 = 10_000;

/// How long one half of the budget runs before the other has its turn, at first.
const TURN: Duration = Duration::from_millis(250);

/// How much is run at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Budget {
    Executions(u64),
    Time(Duration),
}

/// Which half of the budget found a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// All executions within the bound, in order.
    Bounded,
    /// Random ones.
    Random,
    /// Neither: a schedule was read from a file.
    Replay,
    /// Neither: a log was followed.
    Log,
    /// Neither: the test is not fit to be checked.
    Before,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Half::Bounded => "the bounded half",
            Half::Random => "the random half",
            Half::Replay => "the schedule",
            Half::Log => "the log",
            Half::Before => "the first two executions",
        })
    }
}

/// A failure that was found, with its schedule.
#[derive(Clone, Debug)]
pub struct Finding {
    failure: Failure,
    by: Half,
    executions: u64,
    before: u32,
    tests: u64,
    schedule: Option<Schedule>,
}

impl Finding {
    /// What goes wrong.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Which half found it.
    #[must_use]
    pub fn by(&self) -> Half {
        self.by
    }

    /// Executions of that half until it was found.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// Preemptions of the execution that was found, before it was minimized.
    #[must_use]
    pub fn preemptions_before(&self) -> u32 {
        self.before
    }

    /// Executions that it took to minimize it.
    #[must_use]
    pub fn tests(&self) -> u64 {
        self.tests
    }

    /// The schedule with the fewest preemptions. There is none where the test itself is not fit.
    #[must_use]
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    /// The preemptions of the minimized schedule, and whether no schedule with fewer fails.
    #[must_use]
    pub fn least(&self) -> Option<(u32, bool)> {
        self.schedule.as_ref().map(|schedule| (schedule.header.preemptions, schedule.header.least))
    }
}

/// What a check came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    finding: Option<Finding>,
    cost: Cost,
    bound: u32,
    levels: Vec<Level>,
    complete: Option<u32>,
    random: u64,
    diverged: u64,
    held_back: bool,
    full: bool,
    terminal: std::collections::BTreeSet<u128>,
    classes: std::collections::BTreeMap<String, u32>,
    followed: Option<Followed>,
}

impl Outcome {
    /// The failure, if there is one.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// The executions with 0, 1, 2, .. preemptions or delays.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Up to this bound every execution was run.
    #[must_use]
    pub fn complete(&self) -> Option<u32> {
        self.complete
    }

    /// Random executions.
    #[must_use]
    pub fn random(&self) -> u64 {
        self.random
    }

    /// The graphs of happens-before that bounded executions ended with, by their hashes, where [`Check::exhaustive`] asked for it.
    #[must_use]
    pub fn terminal_graphs(&self) -> &std::collections::BTreeSet<u128> {
        &self.terminal
    }

    /// The classes of failures, each with the least number of preemptions or delays, where [`Check::exhaustive`] asked for it.
    #[must_use]
    pub fn classes(&self) -> &std::collections::BTreeMap<String, u32> {
        &self.classes
    }

    /// How far a log was followed, where [`Check::follow`] gave one.
    #[must_use]
    pub fn followed(&self) -> Option<&Followed> {
        self.followed.as_ref()
    }

    /// Executions of the bounded half.
    #[must_use]
    pub fn executions(&self) -> u64 {
        self.levels.iter().map(Level::executions).sum()
    }

    /// What is promised, in a sentence.
    #[must_use]
    pub fn promise(&self) -> String {
        let count = |n: u32| self.cost.at_most(n);
        let of =
            |level: u32| -> u64 { self.levels.iter().take(level as usize + 1).map(Level::executions).sum() };
        let mut text = match self.complete {
            Some(bound) => {
                format!("no failure {}: {} executions, all of them", count(bound), grouped(of(bound)))
            }
            None => "no failure found, and no bound is complete".to_owned(),
        };
        if self.held_back && self.complete.is_some() {
            text.push_str(summary::held_back(self.cost));
        }
        if self.complete.is_none_or(|complete| complete < self.bound) {
            text.push_str(&format!(
                "; {} was asked for: {} of its executions were run, and {}",
                count(self.bound).trim_start_matches("with "),
                grouped(self.executions()),
                if self.full { "there was no room for more choices" } else { "DEMI_BUDGET can allow more" }
            ));
        }
        if self.random > 0 {
            text.push_str(&format!("; none in {} random executions", grouped(self.random)));
        }
        if self.diverged > 0 {
            text.push_str(&format!("; coverage is incomplete: {}", went_another_way(self.diverged)));
        }
        text
    }
}

/// A variable of the environment has a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}={value}: {expected}")]
pub struct Misuse {
    name: &'static str,
    value: String,
    expected: String,
}

/// A check of a test.
#[derive(Clone, Debug)]
pub struct Check {
    name: String,
    cost: Cost,
    bound: u32,
    budget: Budget,
    random: bool,
    bounded: bool,
    cached: bool,
    steps: u32,
    hog: u32,
    stack: usize,
    patience: Duration,
    seed: u64,
    replay: Option<Schedule>,
    /// The test whose schedule is to be replayed, if that is not this one.
    elsewhere: Option<String>,
    log: Option<Arc<Log>>,
    out: Option<PathBuf>,
    verify: Option<PathBuf>,
    graphs: bool,
}

/// What a second opinion on a summary came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rechecked {
    /// All that it claims is true; what was checked.
    Holds(Vec<String>),
    /// A claim is false.
    False(String),
    /// The budget ended before all was checked, after so many executions.
    Ended(u64),
}

impl Check {
    /// A check with a name for files and reports: at most 2 preemptions and 50,000 executions, half of them random.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cost: Cost::Preemptions,
            bound: 2,
            budget: Budget::Executions(50_000),
            random: true,
            bounded: true,
            cached: true,
            steps: 20_000,
            hog: 1_000,
            // As the standard library's threads have; what is not used of it is not there.
            stack: 0x20_0000,
            patience: Duration::from_secs(20),
            seed: 1,
            replay: None,
            elsewhere: None,
            log: None,
            out: None,
            verify: None,
            graphs: false,
        }
    }

    /// At most so many preemptions.
    #[must_use]
    pub fn bound(mut self, preemptions: u32) -> Self {
        (self.cost, self.bound) = (Cost::Preemptions, preemptions.min(MOST_BOUND));
        self
    }

    /// At most so many delays: tasks that are passed over in the order of the deterministic scheduler. Better than preemptions for many tasks.
    #[must_use]
    pub fn delays(mut self, delays: u32) -> Self {
        (self.cost, self.bound) = (Cost::Delays, delays.min(MOST_BOUND));
        self
    }

    /// At most so many executions.
    #[must_use]
    pub fn budget(mut self, executions: u64) -> Self {
        self.budget = Budget::Executions(executions);
        self
    }

    /// At most so long.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.budget = Budget::Time(time);
        self
    }

    /// Whether half of the budget is for random executions.
    #[must_use]
    pub fn random(mut self, random: bool) -> Self {
        self.random = random;
        self
    }

    /// Whether there is a bounded half.
    #[must_use]
    pub fn bounded(mut self, bounded: bool) -> Self {
        self.bounded = bounded;
        self
    }

    /// Whether states that are known, by what happened before them, are not explored again. Without it every execution within the bound is run.
    #[must_use]
    pub fn cache(mut self, cached: bool) -> Self {
        self.cached = cached;
        self
    }

    /// The most steps of an execution: a longer one is a failure, for it may have no end.
    #[must_use]
    pub fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// After so many steps of one task that change nothing, while another could go on, the task is called a hog.
    #[must_use]
    pub fn hog(mut self, steps: u32) -> Self {
        self.hog = steps;
        self
    }

    /// The stack of each task, in bytes.
    #[must_use]
    pub fn stack(mut self, bytes: usize) -> Self {
        self.stack = bytes;
        self
    }

    /// After so long without a step, a task is said to block for real.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The seed of the random half.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Follows a schedule instead of searching.
    #[must_use]
    pub fn replay(mut self, schedule: Schedule) -> Self {
        self.replay = Some(schedule);
        self
    }

    /// Follows a log of a program first, as far as the test does the same. If it fails, that is the schedule which is minimized; if not, the search
    /// begins.
    #[must_use]
    pub fn follow(mut self, log: Log) -> Self {
        self.log = Some(Arc::new(log));
        self
    }

    /// The folder of schedule files, and of a summary of each test.
    #[must_use]
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out = Some(folder.into());
        self
    }

    /// Goes on to the end of the bound after failures, and keeps the graphs that executions end with: for tests of the search itself.
    #[must_use]
    pub fn exhaustive(mut self) -> Self {
        self.graphs = true;
        self.random = false;
        self
    }

    fn ways(&self) -> Ways {
        let limits = Limits { steps: self.steps, idle: self.hog };
        Ways { limits, stack: self.stack, patience: self.patience }
    }

    /// Takes `DEMI_BOUND`, `DEMI_BUDGET`, `DEMI_STEPS`, `DEMI_LOG`, `DEMI_REPLAY`, `DEMI_OUT` and `DEMI_VERIFY` from the environment.
    ///
    /// # Errors
    /// When one of them has a value that cannot be used.
    pub fn environment(mut self) -> Result<Self, Misuse> {
        fn number<T: std::str::FromStr>(name: &'static str) -> Result<Option<T>, Misuse> {
            let Ok(value) = std::env::var(name) else { return Ok(None) };
            let parsed = value.replace('_', "").parse();
            parsed.map(Some).map_err(|_| Misuse { name, value, expected: "expected a number".to_owned() })
        }
        if let Some(bound) = number::<u32>("DEMI_BOUND")? {
            if bound > MOST_BOUND {
                let expected = format!("expected at most {MOST_BOUND}");
                return Err(Misuse { name: "DEMI_BOUND", value: bound.to_string(), expected });
            }
            self.bound = bound;
        }
        if let Some(steps) = number("DEMI_STEPS")? {
            self.steps = steps;
        }
        if let Ok(value) = std::env::var("DEMI_BUDGET") {
            let seconds = value.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok());
            let executions = value.replace('_', "").parse::<u64>().ok();
            self.budget = match (seconds, executions) {
                (Some(seconds), _) => Budget::Time(Duration::from_secs(seconds)),
                (None, Some(executions)) => Budget::Executions(executions),
                (None, None) => {
                    let expected = "expected executions, as 50000, or seconds, as 60s".to_owned();
                    return Err(Misuse { name: "DEMI_BUDGET", value, expected });
                }
            };
        }
        if let Ok(value) = std::env::var("DEMI_OUT") {
            self.out = Some(value.into());
        }
        if let Ok(value) = std::env::var("DEMI_VERIFY") {
            self.verify = Some(value.into());
            if std::env::var_os("DEMI_BUDGET").is_none() {
                self.budget = Budget::Time(Duration::from_secs(600));
            }
        }
        if let Ok(value) = std::env::var("DEMI_LOG") {
            let log = Log::from_file(&value).map_err(|error| Misuse {
                name: "DEMI_LOG",
                value: value.clone(),
                expected: error.to_string(),
            })?;
            self.log = Some(Arc::new(log));
        }
        if let Ok(value) = std::env::var("DEMI_REPLAY") {
            let wrong = |expected: String| Misuse { name: "DEMI_REPLAY", value: value.clone(), expected };
            let text = std::fs::read_to_string(&value).map_err(|error| wrong(error.to_string()))?;
            let schedule = Schedule::read(&text).map_err(|error| wrong(error.to_string()))?;
            // Each test of a run sees the variable; the schedule is of one of them.
            if schedule.header.test == self.name {
                self.replay = Some(schedule);
            } else {
                self.elsewhere = Some(schedule.header.test);
            }
        }
        Ok(self)
    }

    /// Checks a test: panics with a report where it fails, and prints the promise where it does not.
    #[track_caller]
    #[allow(clippy::panic, reason = "this is how a test fails")]
    pub fn run<F: Fn() + Send + Sync + 'static>(self, f: F) {
        let name = self.name.clone();
        let check = match self.environment() {
            Ok(check) => check,
            Err(misuse) => panic!("{misuse}"),
        };
        if let Some(folder) = &check.verify {
            match check.verify_in(folder, f) {
                Ok(text) => return say(&format!("demi_threads: {text}")),
                Err(text) => panic!("{text}"),
            }
        }
        if let Some(other) = &check.elsewhere {
            say(&format!(
                "demi_threads: {name}: the schedule of DEMI_REPLAY is of the test {other}, so this one is searched"
            ));
        }
        let outcome = check.explore(f);
        let told = check.tell(&outcome);
        if let Some(followed) = outcome.followed() {
            say(&format!("demi_threads: {name}: {followed}"));
        }
        let Some(finding) = outcome.finding() else {
            say(&if check.replay.is_some() {
                format!("demi_threads: {name}: the schedule of DEMI_REPLAY does not fail any more")
            } else {
                format!("demi_threads: {name}: {}", outcome.promise())
            });
            if let Err(error) = told {
                panic!("the summary of {name} could not be written: {error}");
            }
            return;
        };
        let mut text = format!("{}\n", finding.failure);
        if let Some(schedule) = &finding.schedule {
            text = schedule.show();
            text.push_str(&format!(
                "\nfound by {} in its execution {} with {} preemptions, minimized in {} more\n",
                finding.by,
                grouped(finding.executions),
                finding.before,
                grouped(finding.tests)
            ));
            match check.write(schedule) {
                Ok(path) => text.push_str(&format!(
                    "schedule: {0}\nagain: DEMI_REPLAY={0} cargo test {1}\npage: demi-lineage threads report {0} --html page.html\n",
                    path.display(),
                    name.rsplit("::").next().unwrap_or(&name)
                )),
                Err(error) => text.push_str(&format!("the schedule could not be written: {error}\n")),
            }
        }
        if let Err(error) = told {
            text.push_str(&format!("the summary could not be written: {error}\n"));
        }
        panic!("{text}");
    }

    /// Writes the summary of a search, where a folder was given.
    fn tell(&self, outcome: &Outcome) -> std::io::Result<()> {
        let Some(folder) = self.out.as_ref().filter(|_| self.replay.is_none()) else { return Ok(()) };
        let summary = self.summary(outcome);
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(summary.file_name()), summary.write())
    }

    /// The name of the file of the schedule.
    fn schedule_name(&self) -> String {
        format!("{}.jsonl", summary::stem(&self.name))
    }

    /// What a search came to, in the form of the summary of `explore`.
    #[must_use]
    pub fn summary(&self, outcome: &Outcome) -> Summary {
        let levels: Vec<summary::Run> = outcome
            .levels
            .iter()
            .enumerate()
            .map(|(cost, level)| summary::Run {
                cost: cost as u32,
                executions: level.executions,
                steps: level.steps,
                pruned: level.pruned,
                complete: level.complete,
            })
            .collect();
        let finding = outcome.finding.as_ref().map(|finding| {
            let found = Found::new(&finding.failure, finding.by.to_string(), finding.executions);
            let Some(schedule) = &finding.schedule else { return found };
            Found {
                preemptions: Some(schedule.header.preemptions),
                least: schedule.header.least,
                steps: schedule.header.steps,
                schedule: Some(self.schedule_name()),
                ..found
            }
        });
        let promise =
            outcome.complete.map(|bound| Summary::promised(self.cost, bound, &levels, outcome.held_back));
        let ended = match &promise {
            _ if finding.is_some() => Ended::Found,
            Some(promise) if promise.bound >= self.bound => Ended::Complete,
            _ => Ended::Stopped,
        };
        Summary {
            format: summary::FORMAT.to_owned(),
            test: self.name.clone(),
            cost: self.cost,
            bound: self.bound,
            steps: self.steps,
            hog: self.hog,
            seed: self.seed,
            ended,
            promise,
            incomplete: (outcome.diverged > 0).then(|| went_another_way(outcome.diverged)),
            held_back: outcome.held_back,
            findings: finding.into_iter().collect(),
            levels,
            random: outcome.random,
        }
    }

    /// Checks what the summary in a folder claims of this test, and says what was checked.
    fn verify_in<F: Fn() + Send + Sync + 'static>(&self, folder: &Path, f: F) -> Result<String, String> {
        if !folder.is_dir() {
            return Err(format!("DEMI_VERIFY: {} is no folder", folder.display()));
        }
        let path = Summary::path_of(folder, &self.name);
        if !path.exists() {
            return Ok(format!("{}: there is no {}, so nothing is claimed of it", self.name, path.display()));
        }
        let summary = Summary::read(&path).map_err(|error| error.to_string())?;
        match self.recheck(&summary, folder, f) {
            Ok(Rechecked::Holds(lines)) => {
                let has_schedules = summary.findings.iter().all(|found| found.schedule.is_some());
                let holds = if has_schedules { "all of it holds" } else { "not all of it can be checked" };
                Ok(format!("{}: {holds}\n  {}", self.name, lines.join("\n  ")))
            }
            Ok(Rechecked::False(text)) => Err(format!("{}: a claim is false: {text}", self.name)),
            Ok(Rechecked::Ended(executions)) => Err(format!(
                "{}: the budget ended before all was checked, after {} executions; DEMI_BUDGET can allow more",
                self.name,
                grouped(executions)
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Checks what a summary claims of a test: its schedules fail again, and all executions within its promise and below its least failure are run
    /// once more, by code that shares nothing with the search. They are many more, because it knows of no state that it was there.
    ///
    /// # Errors
    /// When the file of a schedule cannot be read.
    pub fn recheck<F: Fn() + Send + Sync + 'static>(
        &self,
        summary: &Summary,
        folder: &Path,
        f: F,
    ) -> Result<Rechecked, Wrong> {
        let check = Self { steps: summary.steps, hog: summary.hog, cost: summary.cost, ..self.clone() };
        let body: Body = Arc::new(f);
        let mut lines = match summary.verify(folder) {
            Ok(lines) => lines,
            Err(Wrong::False(text)) => return Ok(Rechecked::False(text)),
            Err(error) => return Err(error),
        };
        let mut left = match self.budget {
            Budget::Executions(all) => all,
            Budget::Time(_) => u64::MAX,
        };
        let deadline = match self.budget {
            Budget::Executions(_) => None,
            Budget::Time(time) => Some(Instant::now() + time),
        };
        let mut all = 0;
        for found in &summary.findings {
            let Some(schedule) = summary.schedule(folder, found)? else { continue };
            let class = found.failure.class();
            match check.again(&body, &schedule) {
                Ok(Some(again)) if again.executions == 1 && again.failure.class() == class => {}
                Ok(_) => return Ok(Rechecked::False(format!("its schedule does not end with: {class}"))),
                Err(failure) => return Ok(Rechecked::False(failure.to_string())),
            }
            lines.push(format!("the schedule fails again: {class}"));
            let fewer = schedule.header.preemptions.checked_sub(1).filter(|_| found.least);
            let Some(bound) = fewer else { continue };
            let asked = (Cost::Preemptions, bound, Some(class.clone()));
            match check.enumerate(&body, asked, (&mut left, deadline)) {
                Ok(executions) => all += executions,
                Err(other) => return Ok(other.with(all)),
            }
            let within = Cost::Preemptions.at_most(bound);
            lines
                .push(format!("none fails so {within}: {} executions, run without the search", grouped(all)));
        }
        match &summary.promise {
            Some(promise) => {
                match check.enumerate(&body, (summary.cost, promise.bound, None), (&mut left, deadline)) {
                    Ok(executions) => lines.push(format!(
                        "no failure {}: {} executions, run without the search",
                        summary.cost.at_most(promise.bound),
                        grouped(executions)
                    )),
                    Err(other) => return Ok(other.with(all)),
                }
            }
            None => lines.push("nothing is promised".to_owned()),
        }
        Ok(Rechecked::Holds(lines))
    }

    /// Runs all executions within a bound, without the search: how many there are, or why it is not so that none fails.
    fn enumerate(
        &self,
        body: &Body,
        (cost, bound, class): (Cost, u32, Option<String>),
        (left, deadline): (&mut u64, Option<Instant>),
    ) -> Result<u64, Rechecked> {
        let mut recheck = Recheck::new(cost, bound, class);
        (recheck.most, recheck.deadline) = (*left, deadline);
        let recheck =
            drive(body, recheck, self.ways()).map_err(|failure| Rechecked::False(failure.to_string()))?;
        *left = left.saturating_sub(recheck.executions);
        if let Some((failure, spent)) = recheck.broken {
            return Err(Rechecked::False(format!("an execution {} fails: {failure}", cost.at_most(spent))));
        }
        if recheck.diverged {
            return Err(Rechecked::False("the test does not do the same each time".to_owned()));
        }
        if recheck.complete { Ok(recheck.executions) } else { Err(Rechecked::Ended(recheck.executions)) }
    }

    fn write(&self, schedule: &Schedule) -> std::io::Result<PathBuf> {
        let folder = self.out.clone().unwrap_or_else(|| {
            let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
            let beside =
                std::env::var_os("CARGO_MANIFEST_DIR").map(|root| PathBuf::from(root).join("target"));
            let found = target.into_iter().chain(beside).find(|folder| folder.is_dir());
            found.unwrap_or_else(std::env::temp_dir).join("demi-threads")
        });
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(self.schedule_name());
        std::fs::write(&path, schedule.write())?;
        Ok(path)
    }

    /// Checks a test and says what was found.
    pub fn explore<F: Fn() + Send + Sync + 'static>(&self, f: F) -> Outcome {
        let body: Body = Arc::new(f);
        let mut outcome = Outcome {
            finding: None,
            cost: self.cost,
            bound: self.bound,
            levels: Vec::new(),
            complete: None,
            random: 0,
            diverged: 0,
            held_back: false,
            full: false,
            terminal: Default::default(),
            classes: Default::default(),
            followed: None,
        };
        let unfit = |failure: Failure| Finding {
            failure,
            by: Half::Before,
            executions: 0,
            before: 0,
            tests: 0,
            schedule: None,
        };
        let result = match &self.replay {
            Some(schedule) => self.again(&body, schedule),
            None => self.search(&body, &mut outcome),
        };
        match result {
            Ok(finding) => outcome.finding = finding,
            Err(failure) => outcome.finding = Some(unfit(failure)),
        }
        outcome
    }

    fn search(&self, body: &Body, outcome: &mut Outcome) -> Result<Option<Finding>, Failure> {
        let ways = self.ways();
        if !self.graphs {
            let twice = drive(body, Twice::new(), ways)?;
            if let Some(kind) = twice.differs {
                return Err(Failure::new(kind));
            }
        }
        if let Some(log) = &self.log {
            let (found, followed) = follow_log(body, ways, Arc::clone(log))?;
            outcome.followed = followed;
            if let Some(found) = found {
                return self.finding(body, &found, Half::Log, None).map(Some);
            }
        }
        let mut bounded = Bounded::new(self.cost, self.bound, self.cached);
        let mut random = Random::new(self.seed, true);
        if self.graphs {
            bounded.all = true;
            bounded.graphs = Some(Default::default());
        }
        let (mut left_bounded, mut left_random, deadline) = match self.budget {
            Budget::Executions(all) if self.random && self.bounded => (all - all / 2, all / 2, None),
            Budget::Executions(all) => (all, all, None),
            Budget::Time(time) => (u64::MAX, u64::MAX, Some(Instant::now() + time)),
        };
        (bounded.deadline, random.deadline) = (deadline, deadline);
        // The halves take turns, so that what either finds soon is found soon; and none keeps the other from it where an execution takes long.
        let mut chunk = if self.random { 128u64 } else { u64::MAX };
        let mut turn = TURN;
        loop {
            let now = Instant::now();
            let over = deadline.is_some_and(|end| now >= end);
            if self.random && self.bounded && deadline.is_some() {
                random.deadline = deadline.map(|end| end.min(now + turn));
                bounded.deadline = deadline.map(|end| end.min(now + 2 * turn));
                turn *= 2;
            }
            let random_left = self.random && left_random > 0 && !over;
            if random_left {
                random.allowance = chunk.min(left_random);
                left_random -= random.allowance;
                random = drive(body, random, ways)?;
                outcome.random = random.executions;
                if let Some(found) = &random.found {
                    if let FailureKind::Livelock { round, .. } = found.failure.kind()
                        && !round.is_empty()
                    {
                        // It costs a preemption in each of its rounds: there is no least number.
                        return Ok(Some(Finding {
                            failure: found.failure.clone(),
                            by: Half::Random,
                            executions: found.executions,
                            before: found.preemptions,
                            tests: 0,
                            schedule: None,
                        }));
                    }
                    return self.finding(body, found, Half::Random, None).map(Some);
                }
            }
            let bounded_left = self.bounded && left_bounded > 0 && !over;
            if bounded_left {
                bounded.allowance = chunk.min(left_bounded);
                left_bounded -= bounded.allowance;
                bounded = drive(body, bounded, ways)?;
                outcome.levels.clone_from(&bounded.levels);
                outcome.complete = bounded.complete();
                outcome.diverged = bounded.diverged;
                outcome.held_back = bounded.held_back;
                outcome.full = bounded.is_full();
                outcome.terminal.extend(bounded.graphs.iter().flatten());
                outcome.classes.clone_from(&bounded.classes);
                if let Some(found) = &bounded.found
                    && !self.graphs
                {
                    let all = bounded.diverged == 0 && !bounded.is_full();
                    let proven = (self.cost == Cost::Preemptions && all).then_some(found.preemptions);
                    return self.finding(body, found, Half::Bounded, proven).map(Some);
                }
                if outcome.complete == Some(self.bound) {
                    return Ok(None);
                }
            }
            if !random_left && !bounded_left {
                return Ok(None);
            }
            chunk = chunk.saturating_mul(2);
        }
    }

    fn finding(
        &self,
        body: &Body,
        found: &crate::search::Found,
        by: Half,
        proven: Option<u32>,
    ) -> Result<Finding, Failure> {
        let patience = match self.budget {
            Budget::Executions(all) => Patience { executions: all.max(50_000), until: None },
            // As long again as for the search.
            Budget::Time(time) => Patience { executions: u64::MAX, until: Some(Instant::now() + time) },
        };
        let minimal = minimize(body, self.ways(), &self.name, found, proven, patience)?;
        Ok(Finding {
            failure: minimal.schedule.header.failure.clone(),
            by,
            executions: found.executions,
            before: found.preemptions,
            tests: minimal.tests,
            schedule: Some(minimal.schedule),
        })
    }

    /// Follows a schedule. Where the program has changed so that it does not fail any more, its switches are tried some operations earlier and later.
    fn again(&self, body: &Body, schedule: &Schedule) -> Result<Option<Finding>, Failure> {
        let of = |name: &str| {
            schedule.header.tasks.iter().find(|(task, _)| task == name).and_then(|(_, path)| born(path))
        };
        let mut directives = Vec::new();
        for switch in schedule.switches.iter().filter(|switch| switch.forced) {
            if let (Some(task), Some(to)) = (of(&switch.after.task), of(&switch.to)) {
                directives.push(Directive { after: (task, switch.after.ops), to });
            }
        }
        let read = &schedule.header.failure;
        // An edit moves the places in the source: what a panic says is as good.
        let said = |failure: &Failure| match failure.kind() {
            FailureKind::Panic { message, .. } => Some(message.clone()),
            _ => None,
        };
        let is_it = |failure: &Failure| {
            failure.class() == read.class() || said(failure).is_some() && said(failure) == said(read)
        };
        let wanted = std::mem::discriminant(read.kind());
        let is_like_it = |failure: &Failure| std::mem::discriminant(failure.kind()) == wanted;
        let mut like_it = None;
        let mut tries = vec![directives.clone()];
        for at in 0..directives.len() {
            for by in (1..=8i64).flat_map(|by| [by, -by]) {
                let mut moved = directives.clone();
                if let Ok(ops) = u32::try_from(i64::from(moved[at].after.1) + by) {
                    moved[at].after.1 = ops;
                    // What comes later in the same task comes later by as much.
                    for later in at + 1..moved.len() {
                        if moved[later].after.0 == moved[at].after.0 {
                            let ops = i64::from(moved[later].after.1) + by;
                            moved[later].after.1 = u32::try_from(ops).unwrap_or(0);
                        }
                    }
                    tries.push(moved);
                }
            }
        }
        for (at, directives) in tries.iter().enumerate() {
            let run = follow(body, self.ways(), directives, false)?;
            if let Some(failure) = run.failure
                && is_like_it(&failure)
            {
                let found = crate::search::Found {
                    failure,
                    directives: run.directives,
                    preemptions: run.preemptions,
                    steps: run.steps,
                    executions: at as u64 + 1,
                };
                if is_it(&found.failure) {
                    return self.finding_as_read(body, &found).map(Some);
                }
                like_it.get_or_insert(found);
            }
        }
        like_it.map(|found| self.finding_as_read(body, &found)).transpose()
    }

    fn finding_as_read(&self, body: &Body, found: &crate::search::Found) -> Result<Finding, Failure> {
        let directives: Vec<Directive> = found.directives.iter().map(|(directive, _)| *directive).collect();
        // Whether it is the fewest was found out of the program of then.
        let mut again = crate::minimize::told(body, self.ways(), &self.name, &directives, &found.failure)?;
        again.header.least = again.header.preemptions == 0;
        Ok(Finding {
            failure: again.header.failure.clone(),
            by: Half::Replay,
            executions: found.executions,
            before: found.preemptions,
            tests: 0,
            schedule: Some(again),
        })
    }
}

fn went_another_way(executions: u64) -> String {
    format!("{executions} executions went another way the second time")
}

impl Rechecked {
    /// With executions that were run before.
    fn with(self, before: u64) -> Self {
        match self {
            Rechecked::Ended(executions) => Rechecked::Ended(before + executions),
            other => other,
        }
    }
}

#[allow(clippy::print_stderr, reason = "a test says what it found; the test harness keeps it")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Checks a test with at most 2 preemptions, or what the environment says; panics with a report where it fails.
#[track_caller]
pub fn check<F: Fn() + Send + Sync + 'static>(f: F) {
    let thread = std::thread::current();
    Check::named(thread.name().unwrap_or("check")).run(f);
}

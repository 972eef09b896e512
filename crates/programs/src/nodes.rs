//! Local histories of nodes, and what the program answered to them.
//!
//! The state of a node is what it has read so far, and when its clock went on: its local history. A program that is deterministic answers equal
//! histories equally, so every history is executed once, whichever schedule comes to it. A process that has read a history waits in a
//! pool, and goes on from there when a longer one is asked for.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};

use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::ProgramError;
use crate::pool::{Places, Spares};
use crate::process::{Answer, Disk, Launch, Process};

/// Every so many-th history that is executed is executed again, in a fresh process; and of those after the first thousand.
const AGAIN: u64 = 50;
const LATER: u64 = 250;

/// What a node takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A line on its standard input.
    Line(Arc<str>),
    /// Its clock goes on.
    Clock,
    /// Its clock goes on to a time, in nanoseconds since the start of the node, whatever it writes meanwhile.
    Until(u64),
    /// Nothing: it begins, and does what it does by itself.
    Begin,
    /// Another input, in which it is killed once it has written so often.
    Cut(Box<Input>, u8),
}

impl Input {
    /// The line that is read, if one is.
    pub(crate) fn line(&self) -> Option<&str> {
        match self {
            Input::Line(text) => Some(text),
            Input::Cut(input, _) => input.line(),
            Input::Clock | Input::Until(_) | Input::Begin => None,
        }
    }

    /// As bytes that tell all inputs apart.
    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Input::Clock => bytes.push(0),
            Input::Line(text) => {
                bytes.push(1);
                bytes.extend_from_slice(text.as_bytes());
            }
            Input::Begin => bytes.push(2),
            Input::Until(time) => {
                bytes.push(3);
                bytes.extend_from_slice(&time.to_le_bytes());
            }
            Input::Cut(input, writes) => {
                bytes.extend_from_slice(&[4, *writes]);
                input.encode(bytes);
            }
        }
    }

    /// In words.
    fn told(&self) -> String {
        match self {
            Input::Line(text) => text.to_string(),
            Input::Clock => "its clock goes on".to_owned(),
            Input::Until(time) => format!("its clock goes on to {} s", *time as f64 / 1e9),
            Input::Begin => "its beginning".to_owned(),
            Input::Cut(input, writes) => format!("{}, killed after {writes} writes", input.told()),
        }
    }
}

/// Where a process begins: with nothing, or with what a failed one left.
#[derive(Debug)]
pub struct Root {
    pub(crate) node: usize,
    /// How many came before it.
    pub(crate) incarnation: u32,
    /// What its clock shows, in nanoseconds since the start of the first.
    pub(crate) clock: u64,
    pub(crate) disk: Disk,
    /// The history in which the one before it failed.
    failed: Option<Arc<Local>>,
    digest: u128,
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Root {}

impl Hash for Root {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Root {
    /// The first process of a node.
    #[must_use]
    pub fn first(node: usize) -> Root {
        Root { node, incarnation: 0, clock: 0, disk: Disk::default(), failed: None, digest: node as u128 }
    }

    /// A number for all of it: equal beginnings have the same.
    pub(crate) fn digest(&self) -> u128 {
        self.digest
    }

    /// The files that it begins with.
    #[must_use]
    pub fn files(&self) -> BTreeMap<&str, &[u8]> {
        self.disk.files()
    }

    fn after(failed: &Arc<Local>, disk: Disk) -> Root {
        let (root, clock) = (&failed.root, failed.answer.clock);
        let incarnation = root.incarnation + 1;
        let mut text = format!("{} {incarnation} {clock}\n", root.node).into_bytes();
        for (path, bytes) in &disk.0 {
            text.extend_from_slice(format!("{path} {}\n", bytes.len()).as_bytes());
            text.extend_from_slice(bytes);
        }
        let failed = Some(Arc::clone(failed));
        Root { node: root.node, incarnation, clock, disk, failed, digest: xxh3_128(&text) }
    }
}

/// A local history of one node, with the answer to its last input.
#[derive(Debug)]
pub struct Local {
    root: Arc<Root>,
    before: Option<Arc<Local>>,
    input: Input,
    /// Of the node and all inputs. Two histories with one digest of 128 bits are taken for equal.
    digest: u128,
    /// How many inputs there were.
    depth: u32,
    answer: Arc<Answer>,
}

impl PartialEq for Local {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Local {}

impl Hash for Local {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Local {
    /// What it answered to the last input.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// How many inputs it took.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// What it took last.
    #[must_use]
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// A number for all of it: equal histories have the same.
    pub(crate) fn digest(&self) -> u128 {
        self.digest
    }

    /// From the first input on, those of earlier incarnations included.
    pub(crate) fn whole(self: &Arc<Local>) -> Vec<&Arc<Local>> {
        let mut all = Vec::new();
        let mut last = Some(self);
        while let Some(local) = last {
            let path = local.path();
            last = local.root.failed.as_ref();
            all.extend(path.into_iter().rev());
        }
        all.reverse();
        all
    }

    /// From the first input on.
    fn path(self: &Arc<Local>) -> Vec<&Arc<Local>> {
        let mut all = vec![self];
        while let Some(before) = all.last().and_then(|local| local.before.as_ref()) {
            all.push(before);
        }
        all.reverse();
        all
    }
}

/// One after the other: a long history would end the stack.
impl Drop for Local {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(local) = next {
            next = Arc::try_unwrap(local).ok().and_then(|mut local| local.before.take());
        }
    }
}

/// The processes of a program, and everything that they answered.
pub struct Nodes {
    names: Vec<String>,
    answers: RwLock<FxHashMap<u128, Arc<Answer>>>,
    places: Places,
    spares: Spares,
    /// By history, the files that a node has then.
    disks: Mutex<FxHashMap<u128, Disk>>,
    /// Histories that are being executed: who needs one of them waits.
    running: Mutex<FxHashSet<u128>>,
    ran: Condvar,
    fault: OnceLock<ProgramError>,
    asked: AtomicU64,
    executed: AtomicU64,
    new: AtomicU64,
    operations: AtomicU64,
    answered: AtomicU64,
    refused: AtomicU64,
    stop: Arc<AtomicBool>,
}

/// How much work was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Steps of nodes that were asked for.
    pub asked: u64,
    /// Those of them that no process had made before.
    pub new: u64,
    /// Steps that processes made: new ones, what came before them where no process waited there, and what was made again to compare.
    pub executed: u64,
    /// Processes that were started.
    pub starts: u64,
    /// Processes that were copied from others.
    pub copies: u64,
    /// Operations that clients began.
    pub operations: u64,
    /// How many of them were answered.
    pub answered: u64,
    /// How many of the answers say that it was not done.
    pub refused: u64,
}

impl std::ops::Add for Work {
    type Output = Work;

    fn add(self, other: Work) -> Work {
        Work {
            asked: self.asked + other.asked,
            new: self.new + other.new,
            executed: self.executed + other.executed,
            starts: self.starts + other.starts,
            copies: self.copies + other.copies,
            operations: self.operations + other.operations,
            answered: self.answered + other.answered,
            refused: self.refused + other.refused,
        }
    }
}

impl Nodes {
    /// Nodes of these names, each started in its own way.
    #[must_use]
    pub fn new(nodes: Vec<(String, Launch)>) -> Nodes {
        let (names, launches) = nodes.into_iter().map(|(name, launch)| (name, Arc::new(launch))).unzip();
        Nodes {
            names,
            answers: RwLock::default(),
            places: Places::default(),
            spares: Spares::new(launches),
            disks: Mutex::default(),
            running: Mutex::default(),
            ran: Condvar::new(),
            fault: OnceLock::new(),
            asked: AtomicU64::new(0),
            executed: AtomicU64::new(0),
            new: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            stop: Arc::default(),
        }
    }

    /// Work that takes longer than a step ends early once this is set.
    #[must_use]
    pub fn until(self, stop: Arc<AtomicBool>) -> Nodes {
        Nodes { stop, ..self }
    }

    /// Whether nobody waits for long work any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Why the program cannot be run, once that is known.
    #[must_use]
    pub fn fault(&self) -> Option<&ProgramError> {
        self.fault.get()
    }

    /// How much work was done.
    #[must_use]
    pub fn work(&self) -> Work {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Work {
            asked: read(&self.asked),
            new: read(&self.new),
            executed: read(&self.executed),
            starts: self.spares.starts(),
            copies: self.places.copies(),
            operations: read(&self.operations),
            answered: read(&self.answered),
            refused: read(&self.refused),
        }
    }

    /// A client began an operation.
    pub(crate) fn count_operation(&self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
    }

    /// A client was answered.
    pub(crate) fn count_answer(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer says that the operation was not done.
    pub(crate) fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What a node does with the next input. Nothing when the program cannot be run; [`Nodes::fault`] says why.
    pub fn step(&self, node: usize, before: Option<&Arc<Local>>, input: Input) -> Option<Arc<Local>> {
        match before {
            Some(local) => self.step_of(&local.root, before, input),
            None => self.step_of(&Arc::new(Root::first(node)), None, input),
        }
    }

    /// As [`Nodes::step`], of a process that may begin with what another left.
    pub fn step_of(&self, root: &Arc<Root>, before: Option<&Arc<Local>>, input: Input) -> Option<Arc<Local>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let digest = Nodes::digest(root, before, &input);
        let answer = match self.known(digest) {
            Some(answer) => answer,
            None => self.found(root, before, &input, digest)?,
        };
        let depth = before.map_or(0, |local| local.depth) + 1;
        Some(Arc::new(Local {
            root: Arc::clone(root),
            before: before.cloned(),
            input,
            digest,
            depth,
            answer,
        }))
    }

    /// Where a node begins after it was killed in a history: with its files, or with nothing.
    pub fn killed(&self, failed: &Arc<Local>, keeps: bool) -> Option<Root> {
        let disk = if keeps { self.files(failed)? } else { Disk::default() };
        Some(Root::after(failed, disk))
    }

    /// The files that a node has after a history.
    fn files(&self, local: &Arc<Local>) -> Option<Disk> {
        let known = |disks: &FxHashMap<u128, Disk>| disks.get(&local.digest).cloned();
        if let Some(disk) = known(&self.disks.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(disk);
        }
        if self.fault.get().is_some() {
            return None;
        }
        let (root, path) = (&local.root, local.path());
        let read = self.process_at(root, &path).and_then(|mut process| {
            let mut disk = process.disk()?;
            if process.shares_files() {
                // What it has there may be another's.
                self.places.part();
                process = self.fed(root.node, &path, 0, self.begun(root)?)?;
                disk = process.disk()?;
            }
            if local.answer.ended.is_none() {
                self.places.put(local.digest, process);
            }
            Ok(disk)
        });
        match read {
            Ok(disk) => {
                let mut disks = self.disks.lock().unwrap_or_else(PoisonError::into_inner);
                Some(disks.entry(local.digest).or_insert(disk).clone())
            }
            Err(error) => {
                let _ = self.fault.set(error);
                None
            }
        }
    }

    /// A process that has read nothing.
    fn begun(&self, root: &Root) -> Result<Process, ProgramError> {
        match root.incarnation {
            0 => self.spares.take(root.node),
            incarnation => self.spares.begin_anew(root.node, incarnation, root.clock, &root.disk),
        }
    }

    fn known(&self, digest: u128) -> Option<Arc<Answer>> {
        self.answers.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }

    /// The answer to what was not known a moment ago: by execution, or by that which goes on.
    fn found(
        &self,
        root: &Arc<Root>,
        before: Option<&Arc<Local>>,
        input: &Input,
        digest: u128,
    ) -> Option<Arc<Answer>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(answer) = self.known(digest) {
                return Some(answer);
            }
            if self.fault.get().is_some() {
                return None;
            }
            if running.insert(digest) {
                break;
            }
            running = self.ran.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
        drop(running);
        let made = self.execute(root, before, input, digest);
        if let Err(error) = &made {
            let _ = self.fault.set(error.clone());
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest);
        self.ran.notify_all();
        made.ok()
    }

    fn digest(root: &Root, before: Option<&Arc<Local>>, input: &Input) -> u128 {
        let start = before.map_or(root.digest, |local| local.digest);
        let mut bytes = start.to_le_bytes().to_vec();
        input.encode(&mut bytes);
        xxh3_128(&bytes)
    }

    fn execute(
        &self,
        root: &Arc<Root>,
        before: Option<&Arc<Local>>,
        input: &Input,
        digest: u128,
    ) -> Result<Arc<Answer>, ProgramError> {
        let path = before.map_or_else(Vec::new, Local::path);
        let mut process = self.process_at(root, &path)?;
        let mut answer = Arc::new(self.made(&mut process, input)?);
        if process.shares_files() {
            // Others may have changed what it read, and it what they will read.
            self.places.part();
            process = self.fed(root.node, &path, 0, self.begun(root)?)?;
            answer = Arc::new(self.made(&mut process, input)?);
        }
        let place = self.new.fetch_add(1, Ordering::Relaxed);
        if place.is_multiple_of(if place < 1_000 { AGAIN } else { LATER }) {
            let mut fresh = self.fed(root.node, &path, 0, self.begun(root)?)?;
            let second = self.made(&mut fresh, input)?;
            if second != *answer {
                return Err(self.differs(root.node, path.len() + 1, input, &answer, &second));
            }
        }
        if answer.ended.is_none() {
            if path.is_empty() {
                // Every history begins like this.
                self.places.keep(digest, &mut process);
            }
            self.places.put(digest, process);
        }
        let mut answers = self.answers.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(answers.entry(digest).or_insert(answer)))
    }

    fn made(&self, process: &mut Process, input: &Input) -> Result<Answer, ProgramError> {
        self.executed.fetch_add(1, Ordering::Relaxed);
        match input {
            Input::Line(text) => process.deliver(text),
            Input::Clock => process.pass_time(),
            Input::Until(time) => process.pass_to(*time),
            Input::Cut(input, writes) => {
                process.kill_after(u64::from(*writes))?;
                let answer = self.made(process, input)?;
                process.kill_after(0)?;
                Ok(answer)
            }
            Input::Begin => process.begun(),
        }
    }

    /// A process that has read a history: that which has read the longest part of it, and is fed the rest.
    fn process_at(&self, root: &Root, path: &[&Arc<Local>]) -> Result<Process, ProgramError> {
        let digests: Vec<u128> = path.iter().map(|local| local.digest).collect();
        let (read, process) = match self.places.take(&digests) {
            Some((read, process)) => (read, process),
            None => (0, self.begun(root)?),
        };
        let mut process = self.fed(root.node, path, read, process)?;
        if let Some(digest) = digests.last()
            && read < path.len()
        {
            // Some process was here before and went on: who comes back once comes back again.
            self.places.keep(*digest, &mut process);
        }
        Ok(process)
    }

    /// Feeds a process what it has not read yet, and compares its answers with those that are known.
    fn fed(
        &self,
        node: usize,
        path: &[&Arc<Local>],
        read: usize,
        mut process: Process,
    ) -> Result<Process, ProgramError> {
        for (at, local) in path.iter().enumerate().skip(read) {
            let answer = self.made(&mut process, &local.input)?;
            if answer != *local.answer && !process.shares_files() {
                return Err(self.differs(node, at + 1, &local.input, &local.answer, &answer));
            }
            if at == 0 {
                // Every history begins like this.
                self.places.keep(local.digest, &mut process);
            }
        }
        Ok(process)
    }

    fn differs(
        &self,
        node: usize,
        step: usize,
        input: &Input,
        first: &Answer,
        second: &Answer,
    ) -> ProgramError {
        let told = |answer: &Answer| {
            format!(
                "{:?} at {} ns{}",
                answer.lines,
                answer.clock,
                answer.ended.as_deref().map_or(String::new(), |how| format!(", {how}"))
            )
        };
        ProgramError::Differs {
            node: self.names[node].clone(),
            step,
            input: input.told(),
            first: told(first),
            second: told(second),
        }
    }
}

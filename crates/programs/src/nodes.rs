//! Local histories of nodes, and what the program answered to them.
//!
//! The state of a node is what it has read so far, and when its clock went on: its local history. A program that is deterministic answers equal
//! histories equally, so every history is executed once, whichever schedule comes to it. A process that has read a history waits in a
//! pool, and goes on from there when a longer one is asked for.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::ProgramError;
use crate::process::{Answer, Launch, Process};

/// Processes that wait in the pool at most.
const POOL: usize = 64;
/// Every so many-th history that is executed is executed again, in a fresh process.
const AGAIN: u64 = 50;

/// What a node takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A line on its standard input.
    Line(Arc<str>),
    /// Its clock goes on.
    Clock,
}

/// A local history of one node, with the answer to its last input.
#[derive(Debug)]
pub struct Local {
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
    launches: Vec<Arc<Launch>>,
    answers: RwLock<FxHashMap<u128, Arc<Answer>>>,
    /// By the digest of what they have read; the oldest first.
    pool: Mutex<VecDeque<(u128, Process)>>,
    fault: OnceLock<ProgramError>,
    asked: AtomicU64,
    executed: AtomicU64,
    starts: AtomicU64,
    misses: AtomicU64,
}

/// How much work was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Steps of nodes that were asked for.
    pub asked: u64,
    /// Steps that processes made.
    pub executed: u64,
    /// Processes that were started.
    pub starts: u64,
}

impl Nodes {
    /// Nodes of these names, each started in its own way.
    #[must_use]
    pub fn new(nodes: Vec<(String, Launch)>) -> Nodes {
        let (names, launches) = nodes.into_iter().map(|(name, launch)| (name, Arc::new(launch))).unzip();
        Nodes {
            names,
            launches,
            answers: RwLock::default(),
            pool: Mutex::default(),
            fault: OnceLock::new(),
            asked: AtomicU64::new(0),
            executed: AtomicU64::new(0),
            starts: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
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
        Work { asked: read(&self.asked), executed: read(&self.executed), starts: read(&self.starts) }
    }

    /// What a node does with the next input. Nothing when the program cannot be run; [`Nodes::fault`] says why.
    pub fn step(&self, node: usize, before: Option<&Arc<Local>>, input: Input) -> Option<Arc<Local>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let digest = self.digest(node, before, &input);
        let known = self.answers.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        let answer = match known {
            Some(answer) => answer,
            None if self.fault.get().is_some() => return None,
            None => match self.execute(node, before, &input, digest) {
                Ok(answer) => answer,
                Err(error) => {
                    let _ = self.fault.set(error);
                    return None;
                }
            },
        };
        let depth = before.map_or(0, |local| local.depth) + 1;
        Some(Arc::new(Local { before: before.cloned(), input, digest, depth, answer }))
    }

    fn digest(&self, node: usize, before: Option<&Arc<Local>>, input: &Input) -> u128 {
        let start = before.map_or(node as u128, |local| local.digest);
        let mut bytes = start.to_le_bytes().to_vec();
        match input {
            Input::Clock => bytes.push(0),
            Input::Line(text) => {
                bytes.push(1);
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        xxh3_128(&bytes)
    }

    fn execute(
        &self,
        node: usize,
        before: Option<&Arc<Local>>,
        input: &Input,
        digest: u128,
    ) -> Result<Arc<Answer>, ProgramError> {
        let path = before.map_or_else(Vec::new, Local::path);
        let mut process = self.process_at(node, &path)?;
        let answer = Arc::new(self.made(&mut process, input)?);
        if self.misses.fetch_add(1, Ordering::Relaxed).is_multiple_of(AGAIN) {
            let mut fresh = self.fed(node, &path, 0, None)?;
            let second = self.made(&mut fresh, input)?;
            if second != *answer {
                return Err(self.differs(node, path.len() + 1, input, &answer, &second));
            }
        }
        if answer.ended.is_none() {
            self.put(digest, process);
        }
        let mut answers = self.answers.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(answers.entry(digest).or_insert(answer)))
    }

    fn made(&self, process: &mut Process, input: &Input) -> Result<Answer, ProgramError> {
        self.executed.fetch_add(1, Ordering::Relaxed);
        match input {
            Input::Line(text) => process.deliver(text),
            Input::Clock => process.pass_time(),
        }
    }

    /// A process that has read a history: that which has read the longest part of it, and is fed the rest.
    fn process_at(&self, node: usize, path: &[&Arc<Local>]) -> Result<Process, ProgramError> {
        let found = {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            let places: FxHashMap<u128, usize> =
                pool.iter().enumerate().map(|(at, (digest, _))| (*digest, at)).collect();
            let longest = path
                .iter()
                .enumerate()
                .rev()
                .find_map(|(depth, local)| Some((depth, *places.get(&local.digest)?)));
            longest.and_then(|(depth, at)| Some((depth + 1, pool.remove(at)?.1)))
        };
        match found {
            Some((depth, process)) => self.fed(node, path, depth, Some(process)),
            None => self.fed(node, path, 0, None),
        }
    }

    /// Feeds a process what it has not read yet, and compares its answers with those that are known.
    fn fed(
        &self,
        node: usize,
        path: &[&Arc<Local>],
        read: usize,
        process: Option<Process>,
    ) -> Result<Process, ProgramError> {
        let mut process = match process {
            Some(process) => process,
            None => {
                self.starts.fetch_add(1, Ordering::Relaxed);
                Process::start(&self.launches[node])?
            }
        };
        for (at, local) in path.iter().enumerate().skip(read) {
            let answer = self.made(&mut process, &local.input)?;
            if answer != *local.answer {
                return Err(self.differs(node, at + 1, &local.input, &local.answer, &answer));
            }
        }
        Ok(process)
    }

    fn put(&self, digest: u128, process: Process) {
        let evicted = {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.push_back((digest, process));
            if pool.len() > POOL { pool.pop_front() } else { None }
        };
        drop(evicted);
    }

    fn differs(
        &self,
        node: usize,
        step: usize,
        input: &Input,
        first: &Answer,
        second: &Answer,
    ) -> ProgramError {
        let input = match input {
            Input::Line(text) => text.to_string(),
            Input::Clock => "its clock goes on".to_owned(),
        };
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
            input,
            first: told(first),
            second: told(second),
        }
    }
}

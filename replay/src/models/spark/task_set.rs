//! The tasks of a stage, listed by where they would best run.

use std::collections::BTreeSet;

use super::actors::Number;
use super::driver::partitions;

/// A host that a task may prefer: the one named `localhost`, or one named by a number. None of them has an executor.
type Host = Option<Number>;

/// How well placed a task is, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Node,
    NoPreference,
    Any,
}

/// The tasks of a stage. Lists are used from the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskSet {
    /// The job it is for, its priority.
    pub job: u32,
    pub stage: u32,
    launched: Vec<bool>,
    successful: Vec<bool>,
    hosts: Vec<(Host, Vec<u32>)>,
    no_preference: Vec<u32>,
    all: Vec<u32>,
}

/// Hosts that a task prefers.
fn preferred(job: u32, index: u32) -> &'static [Host] {
    if job == 0 && index < 2 { &[None, Some(0)] } else { &[] }
}

impl TaskSet {
    /// The task set of a stage, with the hosts that have executors.
    pub fn new(job: u32, stage: u32, known: &BTreeSet<Number>) -> TaskSet {
        let count = partitions(job);
        let mut set = TaskSet {
            job,
            stage,
            launched: vec![false; count as usize],
            successful: vec![false; count as usize],
            hosts: Vec::new(),
            no_preference: Vec::new(),
            all: (0..count).rev().collect(),
        };
        for index in (0..count).rev() {
            for host in preferred(job, index) {
                match set.hosts.iter_mut().find(|(h, _)| h == host) {
                    Some((_, list)) => list.push(index),
                    None => set.hosts.push((*host, vec![index])),
                }
            }
            if !placed(job, index, known) {
                set.no_preference.push(index);
            }
        }
        set
    }

    /// New hosts have executors: tasks that prefer one of them have a preference after all.
    pub fn hosts_added(&mut self, known: &BTreeSet<Number>) {
        let job = self.job;
        self.no_preference.retain(|index| !placed(job, *index, known));
    }

    /// Takes a task to launch on the executor of that number, if there is one left. The flag says whether a better
    /// placed one was listed. With `one_list` the task stays in the lists in which it was not found.
    pub fn take(&mut self, executor: Number, one_list: bool) -> Option<(u32, bool)> {
        if self.successful.iter().all(|s| *s) {
            return None;
        }
        let launched = &self.launched;
        let own = self.hosts.iter_mut().find(|(h, _)| *h == Some(executor)).map(|(_, list)| list);
        let lists = own.into_iter().chain([&mut self.no_preference, &mut self.all]);
        let (at, index) = lists.enumerate().find_map(|(at, list)| {
            while list.last().is_some_and(|i| launched[*i as usize]) {
                list.pop();
            }
            list.last().map(|i| (at, *i))
        })?;
        let level = |index: u32| match index {
            i if self.hosts.iter().any(|(_, list)| list.contains(&i)) => Level::Node,
            i if self.no_preference.contains(&i) => Level::NoPreference,
            _ => Level::Any,
        };
        let best = if self.hosts.iter().any(|(_, list)| !list.is_empty()) {
            Level::Node
        } else if self.no_preference.is_empty() {
            Level::Any
        } else {
            Level::NoPreference
        };
        let inverted = best < level(index);
        self.launched[index as usize] = true;
        if one_list {
            let own = self.hosts.iter_mut().find(|(h, _)| *h == Some(executor)).map(|(_, list)| list);
            if let Some(list) = own.into_iter().chain([&mut self.no_preference, &mut self.all]).nth(at) {
                list.pop();
            }
        } else {
            self.hosts.iter_mut().for_each(|(_, list)| list.retain(|i| *i != index));
            self.no_preference.retain(|i| *i != index);
            self.all.retain(|i| *i != index);
        }
        Some((index, inverted))
    }

    /// A task has succeeded. Says whether all have.
    pub fn succeeded(&mut self, index: u32) -> bool {
        if let Some(done) = self.successful.get_mut(index as usize) {
            *done = true;
        }
        self.successful.iter().all(|s| *s)
    }
}

fn placed(job: u32, index: u32, known: &BTreeSet<Number>) -> bool {
    preferred(job, index).iter().any(|host| host.is_some_and(|h| known.contains(&h)))
}

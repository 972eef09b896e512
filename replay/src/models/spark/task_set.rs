//! The tasks of a stage, listed by where they would best run.

use super::actors::Number;
use super::driver::partitions;

/// A host that a task may prefer: the one named `localhost`, or one named by a number. None of them has an executor, for
/// workers count from 1.
type Host = Option<Number>;

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
    /// The task set of a stage. As no preferred host has an executor, no task counts as one with a preference.
    pub fn new(job: u32, stage: u32) -> TaskSet {
        let count = partitions(job);
        let mut set = TaskSet {
            job,
            stage,
            launched: vec![false; count as usize],
            successful: vec![false; count as usize],
            hosts: Vec::new(),
            no_preference: (0..count).rev().collect(),
            all: (0..count).rev().collect(),
        };
        for index in (0..count).rev() {
            for host in preferred(job, index) {
                match set.hosts.iter_mut().find(|(h, _)| h == host) {
                    Some((_, list)) => list.push(index),
                    None => set.hosts.push((*host, vec![index])),
                }
            }
        }
        set
    }

    /// The lists in which a task for an executor is looked for, in that order.
    fn lists(&mut self, executor: Number) -> impl Iterator<Item = &mut Vec<u32>> {
        let own = self.hosts.iter_mut().find(|(host, _)| *host == Some(executor)).map(|(_, list)| list);
        own.into_iter().chain([&mut self.no_preference, &mut self.all])
    }

    /// How well placed what is listed is, best first: on a host, without preference, anywhere.
    fn level(&self, listed: impl Fn(&[u32]) -> bool) -> u8 {
        match () {
            () if self.hosts.iter().any(|(_, list)| listed(list)) => 0,
            () if listed(&self.no_preference) => 1,
            () => 2,
        }
    }

    /// Takes a task to launch on the executor of that number, if there is one left. The flag says whether a better
    /// placed one was listed. With `one_list` the task stays in the lists in which it was not found.
    pub fn take(&mut self, executor: Number, one_list: bool) -> Option<(u32, bool)> {
        if self.successful.iter().all(|s| *s) {
            return None;
        }
        let launched = self.launched.clone();
        let (at, index) = self.lists(executor).enumerate().find_map(|(at, list)| {
            while list.last().is_some_and(|i| launched[*i as usize]) {
                list.pop();
            }
            list.last().map(|i| (at, *i))
        })?;
        let inverted = self.level(|list| !list.is_empty()) < self.level(|list| list.contains(&index));
        self.launched[index as usize] = true;
        if one_list {
            self.lists(executor).nth(at).map(Vec::pop);
        } else {
            let hosts = self.hosts.iter_mut().map(|(_, list)| list);
            let lists = hosts.chain([&mut self.no_preference, &mut self.all]);
            lists.for_each(|list| list.retain(|i| *i != index));
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

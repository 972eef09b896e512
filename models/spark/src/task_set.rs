//! The tasks of a stage, listed by where they would best run.

use std::collections::BTreeMap;

use super::actors::Number;

/// Where a task may prefer to run. None of these has an executor, for workers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    /// The driver program itself, taken for an executor. It is the best place.
    Driver,
    /// The host named `localhost`, which is the driver's.
    Localhost,
    /// A host named by a number.
    Host(Number),
}

/// The tasks of a stage. Lists are used from the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskSet {
    /// The job it is for, its priority.
    pub job: u32,
    pub stage: u32,
    /// Whether its data set is cached.
    pub cached: bool,
    launched: Vec<bool>,
    successful: Vec<bool>,
    preferred: BTreeMap<Place, Vec<u32>>,
    no_preference: Vec<u32>,
    all: Vec<u32>,
}

impl TaskSet {
    /// The task set of a job's stage, of whose partitions it is known where they are or not. As no preferred host has
    /// an executor, every task also counts as one without a preference.
    pub fn new((job, stage): (u32, u32), known: &[bool], cached: bool) -> TaskSet {
        let count = known.len() as u32;
        let mut set = TaskSet {
            job,
            stage,
            cached,
            launched: vec![false; known.len()],
            successful: vec![false; known.len()],
            preferred: BTreeMap::new(),
            no_preference: (0..count).rev().collect(),
            all: (0..count).rev().collect(),
        };
        for index in (0..count).rev() {
            let places: &[Place] = match (cached, known[index as usize]) {
                (true, true) => &[Place::Driver, Place::Localhost],
                (false, _) if job == 0 && index < 2 => &[Place::Localhost, Place::Host(0)],
                _ => &[],
            };
            places.iter().for_each(|place| set.preferred.entry(*place).or_default().push(index));
        }
        set
    }

    /// The lists in which a task for an executor is looked for, in that order.
    fn lists(&mut self, executor: Number) -> impl Iterator<Item = &mut Vec<u32>> {
        let own = self.preferred.get_mut(&Place::Host(executor));
        own.into_iter().chain([&mut self.no_preference, &mut self.all])
    }

    /// How well placed what is listed is, best first: in an executor, on a host, without preference, anywhere.
    fn level(&self, listed: impl Fn(&[u32]) -> bool) -> u8 {
        match self.preferred.iter().find(|(_, list)| listed(list)) {
            Some((place, _)) => u8::from(*place != Place::Driver),
            None if listed(&self.no_preference) => 2,
            None => 3,
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
            let lists = self.preferred.values_mut().chain([&mut self.no_preference, &mut self.all]);
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

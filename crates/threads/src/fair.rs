//! Fair scheduling: a task that yields lets those go first that it kept waiting. After Musuvathi and Qadeer, "Fair stateless model checking"
//! (PLDI 2008), with its relations P, E, D and S.

use crate::hash::mix;
use crate::op::TaskId;

/// A set of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tasks(Vec<u64>);

impl Tasks {
    pub(crate) fn insert(&mut self, task: TaskId) {
        let word = usize::from(task) / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (task % 64);
    }

    pub(crate) fn remove(&mut self, task: TaskId) {
        if let Some(word) = self.0.get_mut(usize::from(task) / 64) {
            *word &= !(1 << (task % 64));
        }
    }

    pub(crate) fn has(&self, task: TaskId) -> bool {
        self.0.get(usize::from(task) / 64).is_some_and(|word| word >> (task % 64) & 1 == 1)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn meets(&self, other: &Tasks) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn keep(&mut self, other: &Tasks) {
        self.0.truncate(other.0.len());
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
    }

    fn add(&mut self, other: &Tasks) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    fn drop_all(&mut self, other: &Tasks) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            (0..64u16).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at as u16 * 64 + bit)
        })
    }
}

/// What is known of a task since it yielded last.
#[derive(Clone, Debug, Default)]
struct Since {
    /// Whether it yielded at all: before the first time nothing follows from what it does.
    yielded: bool,
    /// Those that it has to let go first (P).
    behind: Tasks,
    /// Those enabled ever since (E).
    enabled: Tasks,
    /// Those that it disabled since (D).
    disabled: Tasks,
    /// Those scheduled since (S).
    scheduled: Tasks,
}

/// The priorities among tasks.
#[derive(Debug, Default)]
pub(crate) struct Fair {
    tasks: Vec<Since>,
    /// Whether any task has yielded. Until then there is nothing to keep.
    active: bool,
    before: Tasks,
}

impl Fair {
    pub(crate) fn reset(&mut self) {
        if self.active {
            self.tasks.clear();
        }
        self.active = false;
    }

    pub(crate) fn active(&self) -> bool {
        self.active
    }

    /// A task made a step; these are enabled now, and perhaps it yields.
    pub(crate) fn stepped(&mut self, task: TaskId, enabled: &[TaskId], yields: bool) {
        if !self.active && !yields {
            return;
        }
        let mut now = Tasks::default();
        enabled.iter().for_each(|task| now.insert(*task));
        if !self.active {
            self.before = now.clone();
            self.active = true;
        }
        if self.tasks.len() <= usize::from(task) {
            self.tasks.resize(usize::from(task) + 1, Since::default());
        }
        let mut disabled = std::mem::replace(&mut self.before, now.clone());
        disabled.drop_all(&now);
        for (other, since) in self.tasks.iter_mut().enumerate() {
            since.behind.remove(task);
            if since.yielded {
                since.enabled.keep(&now);
                if other == usize::from(task) {
                    since.disabled.add(&disabled);
                }
                since.scheduled.insert(task);
            }
        }
        if yields {
            let since = &mut self.tasks[usize::from(task)];
            if since.yielded {
                let mut first = since.enabled.clone();
                first.add(&since.disabled);
                first.drop_all(&since.scheduled);
                since.behind.add(&first);
            }
            since.yielded = true;
            since.enabled = now;
            since.disabled.clear();
            since.scheduled.clear();
        }
    }

    /// Puts those last that have to let another one go first which is enabled, and says how many the others are. Both keep their order.
    pub(crate) fn order(&self, enabled: &mut [TaskId]) -> usize {
        if !self.active {
            return enabled.len();
        }
        let mut now = Tasks::default();
        enabled.iter().for_each(|task| now.insert(*task));
        let held =
            |task: TaskId| self.tasks.get(usize::from(task)).is_some_and(|since| since.behind.meets(&now));
        // A stable sort, and what it compares is one bit.
        enabled.sort_by_key(|task| held(*task));
        enabled.partition_point(|task| !held(*task))
    }

    /// A task goes on though it had to let others go first: until it yields again, it has not.
    pub(crate) fn goes_on(&mut self, task: TaskId) {
        if let Some(since) = self.tasks.get_mut(usize::from(task)) {
            since.behind.clear();
        }
    }

    /// A number for all of it, with tasks known by what does not depend on the order in which they were made.
    pub(crate) fn key(&self, name: impl Fn(TaskId) -> u128) -> u128 {
        let mut sum = 0u128;
        for (task, since) in self.tasks.iter().enumerate() {
            let task = name(task as TaskId);
            let sets = [&since.behind, &since.enabled, &since.disabled, &since.scheduled];
            for (which, set) in sets.into_iter().enumerate() {
                for other in set.iter() {
                    sum = sum.wrapping_add(mix(mix(task, name(other)), which as u128 + 1));
                }
            }
            sum = sum.wrapping_add(mix(task, u128::from(since.yielded)));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_yields_twice_lets_one_go_first_that_waited_all_the_time() {
        let mut fair = Fair::default();
        fair.stepped(0, &[0, 1], true);
        let order = |fair: &Fair| {
            let mut enabled = [0, 1];
            let first = fair.order(&mut enabled);
            (enabled, first)
        };
        assert_eq!(order(&fair), ([0, 1], 2), "the first yield adds nothing");
        fair.stepped(0, &[0, 1], true);
        assert_eq!(order(&fair), ([1, 0], 1));
        fair.stepped(1, &[0, 1], false);
        assert_eq!(order(&fair), ([0, 1], 2));
    }

    #[test]
    fn a_task_that_goes_on_all_the_same_has_to_let_others_first_from_its_next_yield_on() {
        let mut fair = Fair::default();
        fair.stepped(0, &[0, 1], true);
        fair.stepped(0, &[0, 1], true);
        fair.goes_on(0);
        fair.stepped(0, &[0, 1], false);
        assert_eq!(fair.order(&mut [0, 1]), 2);
        fair.stepped(0, &[0, 1], true);
        assert_eq!(fair.order(&mut [0, 1]), 1);
    }

    #[test]
    fn who_was_disabled_by_others_is_not_let_first() {
        let mut fair = Fair::default();
        fair.stepped(0, &[0, 1], true);
        fair.stepped(0, &[0, 1, 2], true);
        let mut enabled = vec![0, 2];
        assert_eq!(fair.order(&mut enabled), 2);
        assert_eq!(enabled, [0, 2], "2 was not enabled all the time since the last yield but one");
    }
}

//! A second opinion on what is promised: all executions within the bound once more, by code that shares nothing with the search. It knows no
//! cache and no prefixes that are taken over; it goes by the order of steps instead of that of costs, takes a choice also where the search knows
//! that another one comes to the same, and counts costs itself. Of the rest it uses what makes one step: what is enabled, and who has to let others
//! go first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::op::TaskId;
use crate::world::{Cost, Ended, Guide, Plan, Strategy, World};

/// A moment at which more than one task could go on.
#[derive(Debug, PartialEq, Eq)]
struct Moment {
    /// The tasks, that of the default first, and those last that have to let others go first.
    tasks: Vec<TaskId>,
    /// Whether it costs a preemption to leave the first.
    stays: bool,
    /// How many have to let nobody go first.
    fair: usize,
}

impl Moment {
    fn new(current: TaskId, gives_way: bool, enabled: &[TaskId], fair: usize) -> Self {
        let (first, held) = enabled.split_at(fair);
        let stays = !gives_way && first.contains(&current);
        let mut tasks: Vec<TaskId> = enabled.to_vec();
        // Round robin: the task itself where it may stay, then those after it, then those before it.
        tasks.sort_by_key(|&task| {
            let turn = match task {
                task if task == current => (if stays { 0 } else { 3 }, task),
                task if task > current => (1, task),
                task => (2, task),
            };
            (held.contains(&task), turn)
        });
        Self { tasks, stays, fair }
    }

    fn price(&self, cost: Cost, choice: usize) -> u32 {
        match cost {
            Cost::Preemptions if choice >= self.fair => 1,
            Cost::Preemptions => u32::from(self.stays && choice > 0),
            Cost::Delays => choice as u32,
        }
    }
}

/// Where the enumeration is.
#[derive(Debug)]
pub(crate) struct Enumeration {
    cost: Cost,
    bound: u32,
    /// The moments of the present execution, with which task is taken.
    path: Vec<(Moment, usize)>,
    /// Moments that the execution has come through.
    depth: usize,
}

impl Enumeration {
    /// Who goes on at the next moment; nothing where the same choices led to another moment than before. Of those enabled the first so many
    /// have to let nobody go first.
    pub(crate) fn choose(
        &mut self,
        current: TaskId,
        gives_way: bool,
        enabled: &[TaskId],
        fair: usize,
    ) -> Option<TaskId> {
        let here = Moment::new(current, gives_way, enabled, fair);
        let at = self.depth;
        self.depth += 1;
        match self.path.get(at) {
            Some((before, choice)) if *before == here => here.tasks.get(*choice).copied(),
            Some(_) => None,
            None => {
                let first = here.tasks.first().copied();
                self.path.push((here, 0));
                first
            }
        }
    }

    fn spent(&self) -> u32 {
        self.path.iter().map(|(moment, choice)| moment.price(self.cost, *choice)).sum()
    }

    /// Takes the last choice that can be another one; false where there is none.
    fn advance(&mut self) -> bool {
        self.depth = 0;
        while let Some((moment, choice)) = self.path.pop() {
            let next = choice + 1;
            if next < moment.tasks.len() && self.spent() + moment.price(self.cost, next) <= self.bound {
                self.path.push((moment, next));
                return true;
            }
        }
        false
    }
}

/// All executions within a bound, one after the other.
pub(crate) struct Recheck {
    all: Arc<Mutex<Enumeration>>,
    cost: Cost,
    /// Only failures of this class count.
    class: Option<String>,
    began: bool,
    pub(crate) executions: u64,
    pub(crate) most: u64,
    pub(crate) deadline: Option<Instant>,
    /// Whether there are no more.
    pub(crate) complete: bool,
    pub(crate) diverged: bool,
    /// A failure, with what it cost.
    pub(crate) broken: Option<(String, u32)>,
}

impl Recheck {
    pub(crate) fn new(cost: Cost, bound: u32, class: Option<String>) -> Self {
        let all = Enumeration { cost, bound, path: Vec::new(), depth: 0 };
        Self {
            all: Arc::new(Mutex::new(all)),
            cost,
            class,
            began: false,
            executions: 0,
            most: u64::MAX,
            deadline: None,
            complete: false,
            diverged: false,
            broken: None,
        }
    }
}

impl Strategy for Recheck {
    fn next(&mut self) -> Option<Plan> {
        let over = self.executions >= self.most || self.deadline.is_some_and(|end| Instant::now() >= end);
        if self.broken.is_some() || self.diverged || self.complete || (self.began && over) {
            return None;
        }
        if self.began {
            let more = self.all.lock().unwrap_or_else(PoisonError::into_inner).advance();
            if !more {
                self.complete = true;
                return None;
            }
        }
        self.began = true;
        Some(Plan { cost: self.cost, ..Plan::by(Guide::Enumerated(Arc::clone(&self.all))) })
    }

    fn done(&mut self, _: &World, ended: Ended) {
        self.executions += 1;
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.diverged || all.depth < all.path.len() {
            self.diverged = true;
            return;
        }
        if let Some(failure) = ended.failure
            && self.class.as_ref().is_none_or(|class| *class == failure.class())
        {
            self.broken = Some((failure.to_string(), all.spent()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All choices of a tree of moments with so many tasks each.
    fn leaves(cost: Cost, bound: u32, tasks: &[u16]) -> usize {
        let mut all = Enumeration { cost, bound, path: Vec::new(), depth: 0 };
        let mut count = 0;
        loop {
            let mut current = 0;
            for &tasks in tasks {
                let enabled: Vec<TaskId> = (0..tasks).collect();
                current = all.choose(current, false, &enabled, enabled.len()).unwrap();
            }
            count += 1;
            if !all.advance() {
                return count;
            }
        }
    }

    #[test]
    fn an_enumeration_has_all_choices_within_its_bound_and_no_others() {
        assert_eq!(leaves(Cost::Preemptions, 0, &[3, 3, 3]), 1);
        assert_eq!(leaves(Cost::Preemptions, 1, &[3, 3, 3]), 1 + 3 * 2);
        assert_eq!(leaves(Cost::Preemptions, 3, &[3, 3, 3]), 27);
        // Delays of 0, 1 or 2 at each of three moments, at most 2 in all: 1 + 3 + (3 + 3).
        assert_eq!(leaves(Cost::Delays, 2, &[3, 3, 3]), 10);
    }

    #[test]
    fn the_same_choices_lead_to_the_same_moments() {
        let mut all = Enumeration { cost: Cost::Delays, bound: 1, path: Vec::new(), depth: 0 };
        assert_eq!(all.choose(1, true, &[0, 1, 2], 3), Some(2), "who gives way comes last");
        assert!(all.advance());
        assert_eq!(all.choose(1, true, &[0, 2], 2), None);
    }

    #[test]
    fn who_has_to_let_others_go_first_comes_last_and_costs_a_preemption() {
        let here = Moment::new(1, true, &[2, 0, 1], 2);
        assert_eq!((&here.tasks[..], here.stays), (&[2, 0, 1][..], false));
        assert_eq!([0, 1, 2].map(|choice| here.price(Cost::Preemptions, choice)), [0, 0, 1]);
        let stays = Moment::new(1, false, &[1, 0], 1);
        assert_eq!([0, 1].map(|choice| stays.price(Cost::Preemptions, choice)), [0, 1]);
    }
}

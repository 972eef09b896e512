//! A system whose configurations cannot be copied: only the choices that lead to them are known, and are run again each time.

use std::collections::BTreeSet;

use demi_replay::Violation;
use demi_space::cheapest::{Ended, Options, Outcome, search};
use demi_space::{Item, Spent, System, Unfit};
use proptest::prelude::*;

/// What a thread does at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Read,
    /// Writes one more than what was read last.
    Write,
    Lock,
    Unlock,
}

/// Threads that count up one variable.
#[derive(Clone, Debug)]
struct Threads {
    programs: Vec<Vec<Op>>,
    runs: u64,
}

/// A run of some choices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    done: Vec<usize>,
    read: Vec<u32>,
    value: u32,
    held: Option<usize>,
}

impl Threads {
    fn run(&mut self, choices: &[usize]) -> Run {
        self.runs += 1;
        let n = self.programs.len();
        let mut run = Run { done: vec![0; n], read: vec![0; n], value: 0, held: None };
        for &thread in choices {
            match self.programs[thread][run.done[thread]] {
                Op::Read => run.read[thread] = run.value,
                Op::Write => run.value = run.read[thread] + 1,
                Op::Lock => run.held = Some(thread),
                Op::Unlock => run.held = None,
            }
            run.done[thread] += 1;
        }
        run
    }

    fn may(&self, run: &Run, thread: usize) -> bool {
        match self.programs[thread].get(run.done[thread]) {
            None => false,
            Some(Op::Lock) => run.held.is_none(),
            Some(_) => true,
        }
    }

    fn broken(&self, run: &Run) -> bool {
        let writes = self.programs.iter().flatten().filter(|op| **op == Op::Write).count() as u32;
        let over = run.done.iter().zip(&self.programs).all(|(done, program)| *done == program.len());
        over && run.value != writes
    }
}

impl System for Threads {
    type State = (Vec<usize>, Run);
    type Choice = usize;
    type Error = Unfit;

    fn first(&mut self) -> Result<Self::State, Unfit> {
        Ok((Vec::new(), self.run(&[])))
    }

    /// To leave a thread that could go on costs one.
    fn menu(&mut self, (choices, run): &Self::State, _: u32) -> Result<Vec<Item<usize>>, Unfit> {
        let last = choices.last().copied().filter(|thread| self.may(run, *thread));
        let others =
            (0..self.programs.len()).filter(|thread| Some(*thread) != last && self.may(run, *thread));
        let item = |choice| {
            let cost = u32::from(last.is_some_and(|last| last != choice));
            Item { choice, spends: Spent { cost, faults: 0, steps: 1 } }
        };
        Ok(last.into_iter().chain(others).map(item).collect())
    }

    fn make(&mut self, (choices, _): &Self::State, choice: &usize) -> Result<(Self::State, usize), Unfit> {
        let choices: Vec<usize> = choices.iter().chain([choice]).copied().collect();
        let run = self.run(&choices);
        Ok(((choices, run), *choice))
    }

    fn key(&self, (choices, run): &Self::State, _: Spent) -> u128 {
        // So few and small that all fit into one number.
        let numbers = run.done.iter().map(|n| *n as u128).chain(run.read.iter().map(|n| u128::from(*n)));
        let more = [run.value.into(), run.held.map_or(9, |held| held as u128)];
        let last = choices.last().map_or(9, |last| *last as u128);
        numbers.chain(more).chain([last]).fold(1, |key, n| key * 10 + n)
    }

    fn violations(&mut self, (_, run): &Self::State) -> Vec<Violation> {
        let lost = || Violation { fingerprint: "lost".to_owned(), affected: Vec::new() };
        self.broken(run).then(lost).into_iter().collect()
    }
}

fn explored(threads: &mut Threads, cost: u32, cache: bool, kept: usize) -> Outcome<usize> {
    let most = Spent { cost, faults: 0, steps: 100 };
    search(threads, Options { most, all: true, cache, kept, from: None }, &mut |_| true).unwrap()
}

/// The least number of preemptions with which an update is lost, and all runs that can be reached with so many, one by one.
fn by_hand(threads: &mut Threads, most: u32) -> (Option<u32>, BTreeSet<(Run, Option<usize>)>) {
    let (mut least, mut met) = (None::<u32>, BTreeSet::new());
    let mut left = vec![(Vec::new(), 0)];
    while let Some((choices, cost)) = left.pop() {
        let run = threads.run(&choices);
        if threads.broken(&run) {
            least = Some(least.map_or(cost, |least| least.min(cost)));
            continue;
        }
        met.insert((run.clone(), choices.last().copied()));
        for item in threads.menu(&(choices.clone(), run), 0).unwrap() {
            if cost + item.spends.cost <= most {
                left.push((choices.iter().copied().chain([item.choice]).collect(), cost + item.spends.cost));
            }
        }
    }
    (least, met)
}

#[test]
fn an_update_is_lost_by_one_preemption() {
    let programs = vec![vec![Op::Read, Op::Write]; 2];
    let mut threads = Threads { programs, runs: 0 };
    assert!(explored(&mut threads, 0, true, 100).findings.is_empty());
    let outcome = explored(&mut threads, 1, true, 100);
    assert_eq!(outcome.ended, Ended::Complete);
    let finding = &outcome.findings[0];
    assert_eq!((finding.spent.cost, &finding.path[..]), (1, &[0, 1, 1, 0][..]));
    assert_eq!(finding.deviations.len(), 1);
    let locked = vec![vec![Op::Lock, Op::Read, Op::Write, Op::Unlock]; 2];
    let mut threads = Threads { programs: locked, runs: 0 };
    assert!(explored(&mut threads, 3, true, 100).findings.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A search finds what there is, with the cache and without, whatever it keeps, and also in two parts.
    #[test]
    fn threads_are_explored_as_by_hand(
        ops in prop::collection::vec(prop::collection::vec(prop_oneof![Just(Op::Read), Just(Op::Write)], 1..4), 2..4),
        bound in 0..3_u32,
        stop in 1..40_u64,
    ) {
        let mut threads = Threads { programs: ops, runs: 0 };
        let (least, met) = by_hand(&mut threads, bound);
        let outcome = explored(&mut threads, bound, true, 100);
        prop_assert_eq!(outcome.findings.first().map(|finding| finding.spent.cost), least);
        prop_assert_eq!(outcome.met, met.len() as u64);
        let without = explored(&mut threads, bound, false, 100);
        prop_assert_eq!((without.met, without.digest), (outcome.met, outcome.digest));
        let forgetful = explored(&mut threads, bound, true, 0);
        prop_assert_eq!(&forgetful, &outcome);
        let most = Spent { cost: bound, faults: 0, steps: 100 };
        let options = Options { most, all: true, cache: true, kept: 3, from: None };
        let mut left = stop;
        let part = search(&mut threads, options, &mut |_| { left -= 1; left > 0 }).unwrap();
        if part.ended == Ended::Stopped {
            let options = Options { from: Some(&part.stand), ..options };
            prop_assert_eq!(search(&mut threads, options, &mut |_| true).unwrap(), outcome);
        }
    }
}

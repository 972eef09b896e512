//! What comes after a batch of moments, worked out by all threads.

use demi_replay::{Model, Simulator, Violation};

use crate::cost::Spent;
use crate::moment::Moment;
use crate::scene::SceneError;
use crate::ways::Ways;
use crate::worker::{After, Frame};

/// Most moments of a batch. Enough that a thread has work for milliseconds, few enough that what comes after them fits into memory.
pub(crate) const MOST: usize = 512;
/// So few moments are faster without threads.
const LITTLE: usize = 32;
/// How much more than its share a worker does, rather than that another one makes moments again.
const SLACK: f64 = 1.25;

/// A moment that waits, and how it was reached.
pub(crate) struct Node<M: Model> {
    /// The moment itself, unless it is made again when its turn comes.
    pub moment: Option<Moment<M>>,
    /// The worker that made it, which alone understands it.
    pub owner: usize,
    /// Its place in the tree of choices.
    pub place: usize,
    /// See [`Moment::key`].
    pub key: u128,
    /// Its part of the tree of executions.
    pub weight: f64,
    /// Whether it violates.
    pub violates: bool,
    /// What it violates; empty where that is found out again.
    pub violations: Vec<Violation>,
}

impl<M: Model> Node<M> {
    /// A moment that is known by its place alone.
    pub fn waits(place: usize, key: u128, weight: f64, violates: bool) -> Self {
        Node { moment: None, owner: 0, place, key, weight, violates, violations: Vec::new() }
    }
}

/// What is to be done with a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It violates.
    Found,
    /// Everything that it leads to is known.
    Known,
    /// What comes after it is looked at.
    GoOn {
        /// The fewest steps after which it was met before.
        before: u32,
    },
}

/// What comes after a moment, and the worker that found it out.
pub(crate) type Done<M> = (usize, After<M>);
/// The same for each moment of a batch; nothing for one that is not gone on from.
pub(crate) type Results<M> = Vec<Option<Result<Done<M>, SceneError>>>;

/// What comes after each moment that is gone on from, in the order of the moments.
pub(crate) fn after<M: Model>(
    frame: &Frame<'_, M>,
    ways: &Ways,
    sims: &mut [&mut Simulator<M>],
    turns: &[(Node<M>, Turn)],
    spent: Spent,
) -> Results<M> {
    let work = |sim: &mut Simulator<M>, worker: usize, at: usize| {
        let node = &turns[at].0;
        let after = match node.moment.as_ref().filter(|_| node.owner == worker) {
            Some(moment) => frame.after(sim, (moment, node.place), spent),
            None => frame
                .waited(sim, &ways.to(node.place), (spent, node.key))
                .and_then(|moment| frame.after(sim, (&moment, node.place), spent)),
        };
        after.map(|after| (worker, after))
    };
    let goes_on = |at: &usize| matches!(turns[*at].1, Turn::GoOn { .. });
    let all: Vec<usize> = (0..turns.len()).filter(goes_on).collect();
    let mut results: Results<M> = turns.iter().map(|_| None).collect();
    if sims.len() == 1 || all.len() < LITTLE {
        for at in all {
            let worker = turns[at].0.owner;
            results[at] = Some(work(sims[worker], worker, at));
        }
        return results;
    }
    let shares = shares(sims.len(), all.iter().map(|&at| (at, &turns[at].0)));
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = sims
            .iter_mut()
            .zip(shares)
            .enumerate()
            .map(|(worker, (sim, share))| {
                scope.spawn(move || {
                    let done = share.into_iter().map(|at| (at, work(sim, worker, at)));
                    done.collect::<Vec<_>>()
                })
            })
            .collect();
        for thread in threads {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done.into_iter().for_each(|(at, result)| results[at] = Some(result));
        }
    });
    results
}

/// Which moments each worker goes on from: its own, unless they are many more than its share.
fn shares<'a, M: Model>(
    workers: usize,
    nodes: impl ExactSizeIterator<Item = (usize, &'a Node<M>)>,
) -> Vec<Vec<usize>> {
    let most = (nodes.len() as f64 / workers as f64 * SLACK).ceil() as usize;
    let mut shares = vec![Vec::new(); workers];
    let mut others = Vec::new();
    for (at, node) in nodes {
        let own = &mut shares[node.owner];
        match node.moment.is_some() && own.len() < most {
            true => own.push(at),
            false => others.push(at),
        }
    }
    for at in others {
        if let Some(least) = shares.iter_mut().min_by_key(|share| share.len()) {
            least.push(at);
        }
    }
    shares
}

//! Which violation is looked for, where others count than the recorded one: bounds, symmetry and proofs are about certain
//! fingerprints, so to look for another violation is another problem.

use std::sync::Arc;

use demi_replay::Model;

use crate::oracle::engine::Engine;
use crate::oracle::matcher::EXACT;
use crate::oracle::witness::Shared;
use crate::problem::criteria::Match;
use crate::problem::{Problem, Question};
use crate::reduce::reducer::Reducer;
use crate::search;
use crate::solution::Solution;

/// Aims at the violation that a witness ends in, where others count than the recorded one. Says whether it is another one than
/// before.
pub fn at<M: Model>(engine: &mut Engine<M>, witness: &Shared<M>) -> bool {
    let problem = engine.problem.clone();
    if problem.question.matching == Match::Fingerprint {
        return false;
    }
    let target = engine.ends_in(witness);
    if target.is_empty() || target == problem.target {
        return false;
    }
    let mut aimed = Problem { target, pattern_database: None, ..(*problem).clone() };
    engine.pose(&Arc::new(aimed.clone()));
    if engine.own_bound().is_none() {
        aimed.pattern_database = search::pattern_database(engine, &problem.raw).map(Arc::new);
    }
    engine.pose(&Arc::new(aimed));
    true
}

/// As [`at`], of a solution.
pub fn at_solution<M: Model>(engine: &mut Engine<M>, solution: Option<&Solution>) -> bool {
    if engine.problem.question.matching == Match::Fingerprint {
        return false;
    }
    let witness = solution.and_then(|solution| engine.restore(&solution.schedule));
    witness.is_some_and(|witness| at(engine, &witness))
}

/// From now on only the violation counts that the reducer's witness ends in, so that what is proven is proven of it.
pub fn settle<M: Model>(reducer: &mut Reducer<'_, M>) {
    if reducer.engine.problem.asked.matching == Match::Fingerprint {
        return;
    }
    let asked = reducer.engine.problem.asked.clone();
    ask(&mut reducer.engine, asked);
    let best = reducer.best.clone();
    at(&mut reducer.engine, &best);
    let accepted = reducer.engine.problem.target.clone();
    ask(&mut reducer.engine, Question { matching: Match::Fingerprint, accepted });
}

/// A witness that was found after [`settle`] may meet another violation that counts before its end. Cuts it there and settles
/// for that. Says whether it did.
pub fn cut<M: Model>(reducer: &mut Reducer<'_, M>) -> bool {
    if reducer.engine.problem.asked.matching == Match::Fingerprint {
        return false;
    }
    let asked = reducer.engine.problem.asked.clone();
    ask(&mut reducer.engine, asked);
    let acts = reducer.best.acts.clone();
    let found = reducer.engine.first_witness(&acts, EXACT);
    let shorter = reducer.keep(found);
    settle(reducer);
    shorter
}

fn ask<M: Model>(engine: &mut Engine<M>, question: Question) {
    let problem = Problem { question, ..(*engine.problem).clone() };
    engine.pose(&Arc::new(problem));
}

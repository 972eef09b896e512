//! A replay of schedules on plain queues.

use std::collections::{BTreeMap, VecDeque};

use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::{Schedule, StepKind, Via};

/// Runs a schedule on queues: what is delivered must be the oldest of its channel; threads and outside have no order.
pub fn replay(schedule: &Schedule, early: &[(String, String, String)]) {
    let mut queues: BTreeMap<(String, String), VecDeque<String>> = BTreeMap::new();
    let mut loose: Vec<(String, String, String)> = early.to_vec();
    for step in &schedule.steps {
        let payload = step.payload.clone().unwrap_or_default();
        let from = step.from.clone().unwrap_or_default();
        match step.kind {
            // What threads send are steps of their own.
            StepKind::External | StepKind::Send => loose.push((from, step.to.clone(), payload)),
            StepKind::Deliver => {
                let queue = queues.entry((from.clone(), step.to.clone())).or_default();
                if queue.front() == Some(&payload) {
                    queue.pop_front();
                } else {
                    let at =
                        loose.iter().position(|l| *l == (from.clone(), step.to.clone(), payload.clone()));
                    loose.swap_remove(at.unwrap_or_else(|| panic!("{:?} is not pending", step.event)));
                }
            }
            _ => {}
        }
        for sent in &step.sends {
            let from = sent.from.clone().unwrap_or_else(|| step.to.clone());
            if sent.via == Some(Via::Thread) || from == DEAD_LETTERS {
                loose.push((from, sent.to.clone(), sent.payload.clone()));
            } else {
                queues.entry((from, sent.to.clone())).or_default().push_back(sent.payload.clone());
            }
        }
    }
}

//! What is asked of the states of an execution, and which of its global states are looked at for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use demi_predicate::{Class, ClassError, ParseError, Predicate, Scope};
use demi_schemas::InvariantEntry;

use super::Query;
use super::check::{CheckAnswer, StateHistory};
use crate::error::LineageError;

/// The global states at which a predicate is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSelection {
    /// Those that the linear extension passes, one a state record.
    Order,
    /// All pairs of states that can exist at the same time, in whatever order the events are taken.
    Pairs,
    /// Those of one order, and where the predicate holds there and speaks of several actors, pairs.
    All,
}

/// A predicate, and the actors that it is about.
#[derive(Clone, Debug)]
pub struct ClassPredicate {
    /// What has to hold.
    pub predicate: Predicate,
    /// Of whom.
    pub class: Class,
}

/// An error of preparing an invariant of a file.
#[derive(Debug, thiserror::Error)]
pub enum ClassPredicateError {
    /// Its predicate cannot be read.
    #[error(transparent)]
    Predicate(#[from] ParseError),
    /// Its class cannot be read.
    #[error("class: {0}")]
    Class(#[from] ClassError),
}

impl ClassPredicate {
    /// Reads an invariant of a file.
    ///
    /// # Errors
    /// When its predicate or its class cannot be read.
    pub fn of(entry: &InvariantEntry) -> Result<ClassPredicate, ClassPredicateError> {
        let predicate = Predicate::parse(&entry.holds)?;
        let class = entry.class.as_deref().map(Class::parse).transpose()?.unwrap_or_default();
        Ok(ClassPredicate { predicate, class })
    }
}

impl Query {
    /// Goes through the global states of all actors and says where a predicate fails.
    ///
    /// # Errors
    /// When no record tells a state, no state has a variable of that name, values cannot be compared as the predicate does, or a
    /// file cannot be read.
    pub fn check(
        &self,
        predicate: &Predicate,
        selection: StateSelection,
    ) -> Result<CheckAnswer, LineageError> {
        let told = match predicate.scope().is_of_messages() {
            // Messages may tell enough of themselves.
            true => self.state_history_or_empty()?,
            false => self.state_history()?,
        };
        let asked = ClassPredicate { predicate: predicate.clone(), class: Class::default() };
        let answer = self.check_class(&told, &asked, selection)?;
        match &answer.absent {
            Some(absent) => Err(self.slip(&told, predicate, absent)?),
            None => Ok(answer),
        }
    }

    /// As [`check`](Self::check), of states that were read before, and of the actors of a class. Where a variable is absent from all of
    /// their states the answer names it: nothing was checked then.
    ///
    /// # Errors
    /// When values cannot be compared as the predicate does, or a file cannot be read.
    pub fn check_class(
        &self,
        told: &StateHistory,
        asked: &ClassPredicate,
        selection: StateSelection,
    ) -> Result<CheckAnswer, LineageError> {
        let ClassPredicate { predicate, class } = asked;
        if selection == StateSelection::Pairs {
            return self.check_pairs(told, predicate, class);
        }
        let answer = self.check_history(told, predicate, class)?;
        let goes_on = selection == StateSelection::All && predicate.is_of_cuts();
        match goes_on && answer.holds && answer.absent.is_none() {
            // One order of the events may not show it.
            true => self.check_pairs(told, predicate, class),
            false => Ok(answer),
        }
    }

    /// The answers to many questions, in their order, found by as many threads as the machine runs at once. `begun` is called with the
    /// number of each when it is begun.
    pub fn check_many(
        &self,
        told: &StateHistory,
        asked: &[ClassPredicate],
        selection: StateSelection,
        begun: &(dyn Fn(usize) + Sync),
    ) -> Vec<Result<CheckAnswer, LineageError>> {
        let (folder, certain) = (self.folder.as_path(), self.certain);
        let of_messages = |a: &ClassPredicate| {
            a.predicate.scope().is_of_messages() || matches!(a.predicate.scope(), Scope::Neighbours(..))
        };
        if asked.iter().any(of_messages) {
            // They are read once for all; where that fails, each answer says so.
            let _ = told.deliveries(self);
        }
        let next = AtomicUsize::new(0);
        let work = |query: &Query| {
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(asked) = asked.get(number) else { return answers };
                begun(number);
                answers.push((number, query.check_class(told, asked, selection)));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(asked.len());
        let mut answers = std::thread::scope(|scope| {
            let other = || match Query::open(folder, certain) {
                Ok(query) => work(&query),
                // This thread does it all, or finds out why not.
                Err(_) => Vec::new(),
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(other)).collect();
            let mut answers = work(self);
            for other in others {
                match other.join() {
                    Ok(found) => answers.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            answers
        });
        answers.sort_unstable_by_key(|(number, _)| *number);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

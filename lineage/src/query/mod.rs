//! Questions about the partial order of an execution.
//!
//! [`Query`] answers them from the order index; what needs whole columns reads the execution's tables. SELECT
//! statements are answered by the crate `demi-sql`.

mod check;
mod check_messages;
mod cut;
mod delivered;
mod edges;
mod ground;
mod order;
mod pairs;
mod past;
mod ranges;
mod rows;
mod runs;
mod state;
mod state_selection;
mod stats;
mod store;
mod ties;
mod time;
mod units;

use std::ops::Range;
use std::path::{Path, PathBuf};

pub use check::{CheckAnswer, Failure, StateHistory};
pub use cut::{CutAnswer, CutSpec, InFlight, Missing};
pub use delivered::Delivery;
pub use demi_predicate::{Class, Predicate, Scope};
pub use edges::{Edge, LogRun};
pub use ground::Ground;
pub use order::Relation;
pub use past::PastAnswer;
pub use ranges::EventSet;
pub use runs::Run;
pub use state::{ActorState, GlobalState};
pub use state_selection::{ClassPredicate, ClassPredicateError, StateSelection};
pub use stats::{ChannelStats, Latency, Stats};
pub use store::{Refreshed, rebuild, refresh};
pub use time::TimedCut;
pub(crate) use time::instant;

pub use crate::grow::RebuildReason;

use crate::error::LineageError;
use crate::execution::Part;
pub use crate::index::INDEX_FOLDER;
use crate::index::Index;

/// An execution to ask.
pub struct Query {
    folder: PathBuf,
    index: Index,
    certain: bool,
    ties: ties::Ties,
}

impl Query {
    /// Opens an execution's folder. With `certain`, only edges count that could not be otherwise.
    ///
    /// # Errors
    /// When the folder holds no execution, or one without an index.
    pub fn open(folder: &Path, certain: bool) -> Result<Query, LineageError> {
        let at = folder.join(INDEX_FOLDER);
        if !at.is_dir() {
            let reason = match folder.join(crate::execution::SUMMARY).exists() {
                true => "has no order index",
                false => "holds no execution",
            };
            return Err(LineageError::Index { path: folder.to_owned(), reason: reason.into() });
        }
        Ok(Query {
            folder: folder.to_owned(),
            index: Index::open(&at)?,
            certain,
            ties: ties::Ties::default(),
        })
    }

    /// Prepares for so many questions about pasts, one after the other, where that takes no longer than the questions themselves.
    ///
    /// # Errors
    /// When a file of the index cannot be read.
    pub fn prepare_for_many(&mut self, questions: u64) -> Result<(), LineageError> {
        self.index.prepare_for_many(questions)
    }

    /// Whether only edges count that could not be otherwise.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.certain
    }

    /// Where the events' rows stand.
    pub(crate) fn rows(&self) -> rows::Rows<'_> {
        rows::Rows::new(self.index.header())
    }

    /// The folder of the execution.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The rows of a part that hold events of these ranges, which are in order.
    #[must_use]
    pub fn rows_of(&self, part: Part, ranges: &[Range<u32>]) -> Vec<Range<u32>> {
        self.rows().rows_of(part, ranges)
    }

    /// How many rows a part has.
    #[must_use]
    pub fn rows_in(&self, part: Part) -> u32 {
        self.rows().numbering(part).rows()
    }

    /// The order index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }
}

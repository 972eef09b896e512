//! Rows on their way into tables, in which they count all at once.
//!
//! A load is the same whether its rows go into the tables of a store or into files that one build reads: what differs is said by two traits.

use arrow_array::RecordBatch;
use demi_schemas::summary::BackwardStamps;

use crate::StoreError;
use crate::admit::Known;
use crate::columns::Sink;
use crate::stamps::Stamps;

/// Rows of one system that are written and do not count yet.
pub(crate) trait Transaction {
    /// The quarantine.
    type Quarantine: Sink;

    /// The quarantine of the system.
    fn quarantine(&mut self) -> &mut Self::Quarantine;

    /// Takes a batch of events, which may be packed while the next is gathered.
    fn events(&mut self, batch: RecordBatch) -> Result<(), StoreError>;

    /// Lets count what was written, in the order of all commits. Whether there were events among it.
    fn commit(&mut self) -> Result<bool, StoreError>;
}

/// Tables that systems are loaded into.
pub(crate) trait Tables {
    /// What writes into them.
    type Transaction: Transaction;

    /// Begins to write into a system, and says what is known of it.
    fn begin(&mut self, system: &str) -> Result<(Known, Self::Transaction), StoreError>;

    /// Takes what was committed, and says what the stamps of the system's events tell.
    fn end(
        &mut self,
        system: &str,
        transaction: Self::Transaction,
        stamps: Stamps,
    ) -> Result<Vec<BackwardStamps>, StoreError>;
}

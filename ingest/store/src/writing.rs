//! What is written into the tables of a store, and the order in which it begins to count.
//!
//! The tables are committed one after the other, always in this order:
//!
//! 1. rows added to the quarantine;
//! 2. the completeness (the daemon);
//! 3. the events, whose commit is the one that counts: it carries how far the source was taken;
//! 4. rows removed from the quarantine, in one commit with those that replace them (`requeue`).
//!
//! After a crash in between the same lines are taken again. Quarantine rows are known by their digest and events by their
//! key, so nothing is there twice; and because events come after what is added and before what is removed, no line is
//! ever in neither table.

use arrow_array::RecordBatch;
use deltalake_core::kernel::Remove;

use crate::columns::Sink;
use crate::delta::{Gone, TableWriter};
use crate::lent::Lent;
use crate::{Store, StoreError};

/// Numbers that a commit keeps, by the name of the application.
pub type Numbers = [(String, u64)];

/// Rows on their way into the tables of a store: for `load`, the daemon and `requeue`.
pub struct Writing {
    /// Rows are encoded while the next are looked at.
    events: Lent<TableWriter>,
    quarantine: TableWriter,
}

/// What begins to count with a commit besides the events.
pub enum Quarantine<'a> {
    /// Rows that were added, with these numbers.
    Added(&'a Numbers),
    /// Rows that were written in place of those in these files.
    Replaced(Vec<Remove>),
    /// Nothing: what was written is left.
    AsItWas,
}

/// When events are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// When there are any.
    IfAny,
    /// Also when there are none: the numbers count.
    Always,
}

impl Writing {
    /// Begins to write into a store as it is now.
    ///
    /// # Errors
    /// When a table cannot be opened.
    pub fn begin(store: &Store) -> Result<Self, StoreError> {
        let events = Lent::new(store.events_writer()?, "events")?;
        Ok(Writing { events, quarantine: store.quarantine_writer()? })
    }

    /// The table of events, when what was handed to it is written.
    ///
    /// # Errors
    /// That of the writing.
    pub fn events(&mut self) -> Result<&mut TableWriter, StoreError> {
        self.events.get()
    }

    /// The table of quarantined lines.
    pub fn quarantine(&mut self) -> &mut TableWriter {
        &mut self.quarantine
    }

    /// Both tables, when what was handed to them is written.
    ///
    /// # Errors
    /// That of the writing.
    pub fn tables(&mut self) -> Result<[&mut TableWriter; 2], StoreError> {
        Ok([self.events.get()?, &mut self.quarantine])
    }

    /// Hands over a batch of events, which is written on a thread of its own, where `before` is called first.
    ///
    /// # Errors
    /// That of the writing before.
    pub fn write(
        &mut self,
        batch: RecordBatch,
        before: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        self.events.work(move |events| {
            before();
            events.write(batch)
        })
    }

    /// Lets count what was written, in the order of all commits; whether there were events among it. `completeness` is committed before the events
    /// that it counts.
    ///
    /// # Errors
    /// When a table cannot be committed. What is behind it in the order does not count then.
    pub fn commit<E: From<StoreError>>(
        &mut self,
        quarantine: Quarantine<'_>,
        completeness: impl FnOnce() -> Result<(), E>,
        (events, numbers): (Events, &Numbers),
    ) -> Result<bool, E> {
        if let (Quarantine::Added(numbers), true) = (&quarantine, self.quarantine.is_pending()) {
            self.quarantine.commit(numbers, Gone::Nothing)?;
        }
        completeness()?;
        let table = self.events.get()?;
        let any = table.is_pending();
        if any || events == Events::Always {
            table.commit(numbers, Gone::Nothing)?;
        }
        if let Quarantine::Replaced(files) = quarantine {
            self.quarantine.commit(&[], Gone::Files(files))?;
        }
        Ok(any)
    }

    /// The tables of events and of quarantined lines as they are then.
    ///
    /// # Errors
    /// That of the writing.
    pub fn end(self) -> Result<(TableWriter, TableWriter), StoreError> {
        Ok((self.events.into_inner()?, self.quarantine))
    }
}

impl Sink for TableWriter {
    fn write(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        TableWriter::write(self, batch)
    }
}

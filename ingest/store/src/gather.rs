//! Events of logs in files that one build reads, without a store.
//!
//! A log is read as a load into a new store reads it: the same records are new, known, in conflict or in quarantine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use demi_common::sealed::SealedFile;
use demi_schemas::summary::BackwardStamps;

use crate::StoreError;
use crate::admit::{Known, There};
use crate::columns::Sink;
use crate::data_file::DataFileWriter;
use crate::lent::Lent;
use crate::load::{LoadOptions, LoadReport, Progress, load_into, native};
use crate::quarantined::{Quarantined, counted};
use crate::stamps::{Stamps, sort};
use crate::transaction::{Tables, Transaction};
use demi_formats::mapping::Mapper;
use demi_formats::read::source::Sources;

/// The events of logs, by system, in data files of a folder.
#[derive(Debug)]
pub struct Gathered {
    folder: PathBuf,
    systems: BTreeMap<String, Files>,
    /// How many files were begun.
    begun: usize,
}

/// What was read of a system.
#[derive(Debug, Default)]
struct Files {
    events: Vec<SealedFile>,
    quarantine: Vec<SealedFile>,
    backwards: Vec<BackwardStamps>,
}

impl Gathered {
    /// Reads `sources` into files in `folder`, which is there and which the caller removes; without a mapper they are event records. Calls
    /// `progress` now and then.
    ///
    /// A source that holds several executions gives several systems, as with [`load_mapped`](crate::load_mapped).
    ///
    /// # Errors
    /// When the system's name cannot be used, a source cannot be read, or a file cannot be written.
    pub fn read(
        folder: &Path,
        sources: Sources,
        options: &LoadOptions,
        mapper: Option<Mapper>,
        progress: impl FnMut(&Progress),
    ) -> Result<(Gathered, LoadReport), StoreError> {
        let mut gathered = Gathered { folder: folder.to_owned(), systems: BTreeMap::new(), begun: 0 };
        let mapper = mapper.map_or_else(native, Ok)?;
        let report = load_into(&mut gathered, sources, options, mapper, progress)?;
        Ok((gathered, report))
    }

    /// The systems that have events, sorted.
    pub fn systems(&self) -> impl Iterator<Item = &str> {
        self.systems.iter().filter(|(_, files)| !files.events.is_empty()).map(|(system, _)| system.as_str())
    }

    /// The Parquet files that hold a system's events, with the digests of their content, in the columns of a store's event files; none where
    /// nothing was read of it.
    #[must_use]
    pub fn event_files(&self, system: &str) -> &[SealedFile] {
        self.systems.get(system).map_or(&[], |files| &files.events)
    }

    /// The lines of a system that are no event records or contradict one, counted by why; the commonest reasons come first.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn quarantined(&self, system: &str) -> Result<Vec<Quarantined>, StoreError> {
        self.systems.get(system).map_or_else(|| Ok(Vec::new()), |files| counted(&files.quarantine, system))
    }

    /// Actors of a system whose stamps run backwards through their logs.
    #[must_use]
    pub fn backward_stamps(&self, system: &str) -> &[BackwardStamps] {
        self.systems.get(system).map_or(&[], |files| &files.backwards)
    }
}

/// Rows on their way into files.
pub(crate) struct Gathering {
    /// Rows are encoded while the next are looked at.
    events: Lent<DataFileWriter>,
    quarantine: DataFileWriter,
}

impl Tables for Gathered {
    type Transaction = Gathering;

    fn begin(&mut self, system: &str) -> Result<(Known, Gathering), StoreError> {
        let before = self.systems.entry(system.to_owned()).or_default();
        let (events, quarantine) = (before.events.clone(), before.quarantine.clone());
        let there = There { events, quarantine, deleted: &[], told: true };
        let known = Known::read(system, there, self.folder.display().to_string(), self.folder.clone())?;
        self.begun += 1;
        let path = |table: &str| self.folder.join(format!("{table}-{}.parquet", self.begun));
        let events = DataFileWriter::new(path("events"), &["system", "date"]);
        let quarantine = DataFileWriter::new(path("quarantine"), &["system"]);
        Ok((known, Gathering { events: Lent::new(events, "rows")?, quarantine }))
    }

    fn end(
        &mut self,
        system: &str,
        transaction: Gathering,
        stamps: Stamps,
    ) -> Result<Vec<BackwardStamps>, StoreError> {
        let files = self.systems.entry(system.to_owned()).or_default();
        files.events.extend(transaction.events.into_inner()?.finish()?);
        files.quarantine.extend(transaction.quarantine.finish()?);
        let (found, _) = stamps.finish(|| Ok(files.events.clone()))?;
        for one in &found {
            let is_again = |known: &BackwardStamps| {
                let key =
                    |of: &BackwardStamps| (of.actor.clone(), of.incarnation, of.source.clone(), of.line);
                key(known) == key(one)
            };
            files.backwards.retain(|known| !is_again(known));
            files.backwards.push(one.clone());
        }
        sort(&mut files.backwards);
        Ok(found)
    }
}

impl Transaction for Gathering {
    type Quarantine = DataFileWriter;

    fn quarantine(&mut self) -> &mut DataFileWriter {
        &mut self.quarantine
    }

    fn events(&mut self, batch: RecordBatch) -> Result<(), StoreError> {
        self.events.work(move |events| events.write(batch))
    }

    /// All of it counts when the logs are read.
    fn commit(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }
}

//! What the store says of every actor: read from its events, with what the ledger counted besides.

use std::path::PathBuf;

use super::ledger::{self, LedgerRow};
use crate::seen::Seen;
use crate::{IngestError, Store};

/// Completeness of each life of each actor, of one system or all, sorted by system, actor and life.
///
/// Positions are read from the events themselves. Duplicates, conflicts and last times come from the daemon's
/// ledger; a store that was only loaded into has none.
///
/// # Errors
/// When the store cannot be read.
pub fn status(store: &Store, system: Option<&str>) -> Result<Vec<LedgerRow>, IngestError> {
    let counted = match store.ledger(false)? {
        Some(table) => ledger::read(store.dir(), &table)?,
        None => Vec::new(),
    };
    let systems = match system {
        Some(system) => vec![system.to_owned()],
        None => store.systems()?,
    };
    let mut rows = Vec::new();
    for system in systems {
        let files = store.event_files(&system)?;
        let scratch: PathBuf = std::env::temp_dir();
        let seen = Seen::read(store.dir().display().to_string(), scratch, files)?;
        for mut life in seen.completeness() {
            let found = counted.iter().find(|row| {
                (&row.system, &row.life.actor, row.life.incarnation)
                    == (&system, &life.actor, life.incarnation)
            });
            if let Some(row) = found {
                (life.duplicates, life.conflicts) = (row.life.duplicates, row.life.conflicts);
            }
            let last_time = found.and_then(|row| row.last_time.clone());
            rows.push(LedgerRow { system: system.clone(), life, last_time });
        }
    }
    Ok(rows)
}

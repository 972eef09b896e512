//! Retention: events of days that are over are deleted while the daemon runs, as the configuration says by system.
//!
//! What is deleted is noted in the store, so that it neither counts as missing nor comes back. The session ends before it and begins anew after it,
//! since it knows which records there are.

use std::time::{Duration, Instant};

use chrono::{NaiveDate, Utc};

use super::session::Session;
use super::{CommitError, Settings};
use crate::metrics::{Metrics, SystemLabel};
use demi_store::delta::TableWriter;
use demi_store::{Doomed, Store, StoreError, Waiting, delete_locked};

/// Time between two looks for events that are too old.
const EVERY: Duration = Duration::from_secs(3600);

/// When it is looked for events that are too old.
pub(super) struct Retention {
    next: Instant,
}

impl Retention {
    /// At once, and from then on every hour.
    pub(super) fn new() -> Self {
        Retention { next: Instant::now() }
    }

    /// Whether events have to go now.
    pub(super) fn is_due(
        &mut self,
        session: &mut Session<'_>,
        settings: &Settings,
    ) -> Result<bool, CommitError> {
        if Instant::now() < self.next {
            return Ok(false);
        }
        self.next = Instant::now() + EVERY;
        let today = Utc::now().date_naive();
        for (system, before) in old(settings, today) {
            if is_there(session.writing.events()?, system, before)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The systems whose events are not kept for ever, with the first day that is kept.
fn old(settings: &Settings, today: NaiveDate) -> impl Iterator<Item = (&str, NaiveDate)> {
    settings.keep.iter().map(move |(system, keep)| (&**system, keep.since(today)))
}

/// Whether events of a system of days before one are there.
fn is_there(events: &TableWriter, system: &str, before: NaiveDate) -> Result<bool, StoreError> {
    let mut files = events.data_files(system)?.into_iter();
    Ok(files.any(|file| file.date.is_some_and(|date| date < before)))
}

/// Deletes what is too old. The systems are locked by this process.
pub(super) fn delete(settings: &Settings, metrics: &Metrics) -> Result<(), StoreError> {
    let mut store = Store::create_on(&settings.store, settings.files.clone())?;
    for (system, before) in old(settings, Utc::now().date_naive()) {
        if !is_there(&store.events_writer()?, system, before)? {
            continue;
        }
        let doomed = Doomed { before: Some(before), ..Doomed::default() };
        let _ = store.forget_order(system);
        let deleted = delete_locked(&mut store, system, &doomed, &Waiting::default())?;
        // It holds a copy of them. A process that is killed here leaves it, unless it was removed before.
        if let Err(error) = store.forget_order(system) {
            tracing::error!(system, %error, "a kept order may hold events that are too old");
        }
        if deleted.events > 0 {
            tracing::info!(system, %before, events = deleted.events, kept = deleted.kept, "deleted events that are too old");
            metrics
                .events_expired
                .get_or_create(&SystemLabel { system: system.to_owned() })
                .inc_by(deleted.events);
        }
    }
    Ok(())
}

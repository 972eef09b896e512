//! Forgetting: everything of some incidents goes for good, and what stays are their class and how often it happened.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use demi_common::durable::sync_folder;

use crate::event::{Event, FORGOTTEN, Input, Opened};
use crate::fold::{State, Work};
use crate::id::IncidentId;
use crate::journal::{Journal, JournalError};
use crate::objects::Objects;
use crate::place::Place;

/// The incidents of a system that are not forgotten yet.
#[must_use]
pub fn of_system(state: &State, system: &str) -> Vec<IncidentId> {
    let known = state.incidents().iter();
    known
        .filter(|(_, one)| one.opened().system == system && one.work() != Work::Purged)
        .map(|(id, _)| *id)
        .collect()
}

/// Forgets incidents: the journal says so, then their files go, and then what the journal said of them. It is the only place where entries change: each
/// keeps its number. Whoever is killed on the way begins again.
///
/// # Errors
/// When the journal or a file cannot be read, written or removed.
pub fn purge<O: Objects>(
    journal: &mut Journal<O>,
    place: &Place,
    ids: &[IncidentId],
    by: &str,
) -> Result<(), JournalError> {
    let ids: BTreeSet<IncidentId> = ids.iter().copied().collect();
    let uploads: BTreeSet<String> =
        ids.iter().filter_map(|id| upload_of(journal.state().incidents().get(id)?.opened())).collect();
    for some in ids.iter().copied().collect::<Vec<_>>().chunks(crate::sources::AT_A_TIME) {
        journal.say(Event::Purged { ids: some.to_vec(), by: by.to_owned() })?;
    }
    for id in &ids {
        remove(&place.data(*id))?;
    }
    let left: BTreeSet<String> =
        journal.state().incidents().values().filter_map(|one| upload_of(one.opened())).collect();
    for upload in uploads.difference(&left) {
        remove(&place.uploads().join(upload))?;
    }
    // Notes on bugs that nothing else is known of go as well.
    let bugs: BTreeSet<u32> = {
        let state = journal.state();
        state.bugs().keys().copied().filter(|bug| state.is_forgotten(*bug)).collect()
    };
    journal.rewrite(|event| scrub(event, &ids, &bugs))
}

fn upload_of(opened: &Opened) -> Option<String> {
    match &opened.input {
        Input::Store => None,
        Input::Logs { upload, .. } | Input::Execution { upload } => Some(upload.clone()),
    }
}

fn remove(folder: &std::path::Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match folder.parent().filter(|parent| parent.is_dir()) {
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

/// Takes names and texts of these incidents out of an event.
fn scrub(event: &mut Event, ids: &BTreeSet<IncidentId>, bugs: &BTreeSet<u32>) {
    match event {
        Event::Opened(opened) if ids.contains(&opened.id) => **opened = opened.forgotten(),
        Event::Stage { id, findings: Some(findings), outputs, .. } if ids.contains(id) => {
            **findings = findings.forgotten();
            outputs.clear();
        }
        Event::Done { id, findings, .. } if ids.contains(id) => **findings = findings.forgotten(),
        Event::Failed { id, said, .. } if ids.contains(id) => said.clear(),
        Event::Noted { bug, text, .. } if bugs.contains(bug) => FORGOTTEN.clone_into(text),
        _ => {}
    }
}

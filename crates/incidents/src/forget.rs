//! Forgetting: everything of some incidents goes for good, and what stays are their class and how often it happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use demi_formats::read::decompress::unpack;

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

/// The incidents that were opened before a day, as `2026-01-31`, and are not forgotten yet.
#[must_use]
pub fn before(state: &State, day: &str) -> Vec<IncidentId> {
    let known = state.incidents().iter();
    known.filter(|(_, one)| one.opened_at() < day && one.work() != Work::Purged).map(|(id, _)| *id).collect()
}

/// The incidents in which a name stands: in what the journal says of them, in what was made of them, or in the logs that were brought for them.
///
/// # Errors
/// When the journal or a file cannot be read.
pub fn naming<O: Objects>(
    journal: &Journal<O>,
    place: &Place,
    name: &str,
) -> Result<Vec<IncidentId>, JournalError> {
    let state = journal.state();
    let mut found = Vec::new();
    // Of an upload that several incidents have.
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    for (id, one) in state.incidents().iter().filter(|(_, one)| one.work() != Work::Purged) {
        let told = is_told(one.opened(), name) || stands_in_text(one.said(), name);
        let found_out = || is_told(one.findings(), name);
        let steps = || journal.story(*id).map(|story| story.iter().any(|step| stands_in_text(step, name)));
        let in_folder = |folder: &Path| -> io::Result<bool> {
            place.bring(folder)?;
            holds(folder, name)
        };
        let made = || in_folder(&place.data(*id));
        let mut brought = || -> io::Result<bool> {
            let Some(upload) = upload_of(one.opened()) else { return Ok(false) };
            if let Some(known) = known.get(&upload) {
                return Ok(*known);
            }
            let holds = in_folder(&place.uploads().join(&upload))?;
            known.insert(upload, holds);
            Ok(holds)
        };
        if told || found_out() || steps()? || made()? || brought()? {
            found.push(*id);
        }
    }
    Ok(found)
}

/// Whether a name stands in a file of a folder, unpacked where it is packed.
fn holds(folder: &Path, name: &str) -> io::Result<bool> {
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                left.push(entry?.path());
            }
        } else if path.is_file() && stands_in(&path, name.as_bytes())? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn stands_in(path: &Path, name: &[u8]) -> io::Result<bool> {
    let file = || -> io::Result<Box<dyn Read + Send>> { Ok(Box::new(File::open(path)?)) };
    // What is no text that is packed is looked at as it is, and so is what is damaged.
    if let Ok(reader) = unpack("it", file()?)
        && let Ok(stands) = stands(reader, name)
    {
        return Ok(stands);
    }
    stands(file()?, name)
}

/// Whether a name stands in what the journal keeps of something.
fn is_told(what: &impl serde::Serialize, name: &str) -> bool {
    serde_json::to_string(what).is_ok_and(|text| stands_in_text(&text, name))
}

/// Whether a name stands in a text by itself.
fn stands_in_text(text: &str, name: &str) -> bool {
    stands(text.as_bytes(), name.as_bytes()).unwrap_or(true)
}

/// Bytes before a name that say whether it begins there: those of the longest escape in JSON.
const BEFORE: usize = 6;

/// Whether a name stands in a stream by itself: `node-1` is not in `node-10`. In what is no text, names may stand side by side, and there only digits
/// that go on make it another one.
fn stands(mut stream: impl Read, name: &[u8]) -> io::Result<bool> {
    let (Some(&first), Some(&last)) = (name.first(), name.last()) else { return Ok(false) };
    let overlap = BEFORE + name.len();
    let mut buffer = vec![0; 256 * 1024 + overlap];
    // Bytes that are there, and up to where the beginnings were looked at.
    let (mut end, mut looked) = (0, 0);
    let (mut binary, mut loose) = (false, false);
    loop {
        let read = match stream.read(&mut buffer[end..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        binary |= buffer[end..end + read].contains(&0);
        end += read;
        // What follows the name has to be there too, or nothing.
        let known = if read == 0 { end } else { end.saturating_sub(1) };
        for at in looked..(known + 1).saturating_sub(name.len()) {
            if &buffer[at..at + name.len()] != name {
                continue;
            }
            let (before, after) =
                (&buffer[at.saturating_sub(BEFORE)..at], buffer[..end].get(at + name.len()));
            if !goes_on(last, after) && (!goes_on(first, before.last()) || is_escaped(before)) {
                return Ok(true);
            }
            let digits =
                |one: u8, next: Option<&u8>| one.is_ascii_digit() && next.is_some_and(u8::is_ascii_digit);
            loose |= !digits(last, after) && !digits(first, before.last());
        }
        looked = looked.max((known + 1).saturating_sub(name.len()));
        if read == 0 {
            return Ok(binary && loose);
        }
        if end > buffer.len() / 2 {
            let gone = looked.saturating_sub(BEFORE);
            buffer.copy_within(gone..end, 0);
            (end, looked) = (end - gone, looked - gone);
        }
    }
}

/// Whether a name that ends in a byte goes on with the next one; or before it, where it begins.
fn goes_on(one: u8, next: Option<&u8>) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte >= 128 || byte == b'_' || byte == b'-';
    of_name(one) && next.is_some_and(|next| of_name(*next))
}

/// Whether bytes end in what JSON writes for one letter.
fn is_escaped(bytes: &[u8]) -> bool {
    let short =
        bytes.len() >= 2 && bytes[bytes.len() - 2] == b'\\' && b"bfnrt".contains(&bytes[bytes.len() - 1]);
    let long = bytes.len() >= 6 && bytes.starts_with(b"\\u") && bytes[2..].iter().all(u8::is_ascii_hexdigit);
    short || long
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
        place.remove(&place.data(*id))?;
    }
    let left: BTreeSet<String> =
        journal.state().incidents().values().filter_map(|one| upload_of(one.opened())).collect();
    for upload in uploads.difference(&left) {
        place.remove(&place.uploads().join(upload))?;
    }
    let bugs = forgotten_bugs(&journal.state());
    journal.rewrite(|event| scrub(event, &ids, &bugs))?;
    // Last, since somebody else may have written one meanwhile who had not read what is forgotten.
    journal.remove_snapshots()
}

/// Bugs that nothing is known of any more: notes on them are forgotten too.
fn forgotten_bugs(state: &State) -> BTreeSet<u32> {
    state.bugs().keys().copied().filter(|bug| state.is_forgotten(*bug)).collect()
}

/// Forgets again what was purged within the last hour; whether it was there. Who read an entry before it was purged, and packed it later, has
/// brought it back.
///
/// # Errors
/// When the journal cannot be read or written.
pub fn again<O: Objects>(journal: &mut Journal<O>) -> Result<bool, JournalError> {
    journal.follow()?;
    let since = Utc::now() - TimeDelta::hours(1);
    let is_new = |at: &str| DateTime::parse_from_rfc3339(at).is_ok_and(|at| at > since);
    let (ids, bugs) = {
        let state = journal.state();
        let purged = state.incidents().iter().filter(|(_, one)| one.purged_at().is_some_and(is_new));
        (purged.map(|(id, _)| *id).collect::<BTreeSet<_>>(), forgotten_bugs(&state))
    };
    if ids.is_empty() || !journal.rewrite(|event| scrub(event, &ids, &bugs))? {
        return Ok(false);
    }
    journal.remove_snapshots()?;
    Ok(true)
}

pub(crate) fn upload_of(opened: &Opened) -> Option<String> {
    match &opened.input {
        Input::Store => None,
        Input::Logs { upload, .. } | Input::Execution { upload } => Some(upload.clone()),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(to.len());
            self.0.read(&mut to[..count])
        }
    }

    /// The parts of a text between what stands in no name.
    fn words(text: &str) -> Vec<&str> {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).collect()
    }

    proptest! {
        #[test]
        fn a_name_is_found_wherever_it_stands_by_itself(text in "[ab1 .é]{0,30}", name in "[ab1]{1,4}", at_once in 1_usize..7) {
            let found = stands(Slow(text.as_bytes(), at_once), name.as_bytes()).unwrap();
            prop_assert_eq!(found, words(&text).contains(&&name[..]));
        }
    }

    #[test]
    fn a_part_of_a_name_is_none() {
        let said = |text: &str, name: &str| stands_in_text(text, name);
        assert!(
            !said("node-10 told node-11", "node-1") && !said("Vote", "ote") && !said("my-node-1", "node-1")
        );
        assert!(
            said("from node-1.", "node-1")
                && said(r#"{"a":"x\nnode-1\u0009"}"#, "node-1")
                && said("a/node-1:7", "node-1")
        );
        assert!(!said("anything", ""));
        // Side by side, as in columns of a table.
        assert!(said("\0node-1node-2", "node-1") && !said("\0node-10node-2", "node-1"));
    }

    #[test]
    fn a_name_is_found_in_what_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let text = "x".repeat(300_000) + " zebra7 " + &"y".repeat(300_000);
        fs::write(dir.path().join("a/log"), zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
        assert!(holds(dir.path(), "zebra7").unwrap() && !holds(dir.path(), "zebra8").unwrap());
        fs::write(dir.path().join("b"), "zebra8").unwrap();
        assert!(holds(dir.path(), "zebra8").unwrap());
        assert!(!holds(&dir.path().join("none"), "zebra8").unwrap());
    }
}

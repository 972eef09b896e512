//! Making room: what was made of incidents goes where it takes too much, and what is known of bugs stays.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Event, Outcome};
use crate::fold::{State, Work};
use crate::forget::{self, upload_of};
use crate::id::IncidentId;
use crate::journal::{Journal, JournalError};
use crate::objects::Objects;
use crate::place::Place;
use crate::sources::AT_A_TIME;

/// How many of a bug's newest incidents go after all others.
const NEWEST: usize = 3;

/// Removes what was made of incidents until all of it takes at most `most` bytes, or nothing more may go; how many incidents that were. Those that stand
/// for a bug stay, and so does what is being worked on. Whoever is killed on the way begins again.
///
/// # Errors
/// When the journal or a file cannot be read, written or removed.
pub fn sweep<O: Objects>(journal: &mut Journal<O>, place: &Place, most: u64) -> Result<usize, JournalError> {
    forget::again(journal)?;
    let state = journal.state();
    let mut sizes: BTreeMap<IncidentId, u64> = BTreeMap::new();
    let there = place.sizes(&place.root().join("data"))?;
    for (id, one) in state.incidents() {
        let (data, bytes) = (place.data(*id), there.get(&id.to_string()));
        if !matches!(one.work(), Work::Gone | Work::Purged) {
            sizes.extend(bytes.map(|bytes| (*id, *bytes)));
        } else if bytes.is_some() || data.is_dir() {
            // Somebody was killed before it went, or somebody else removed it, and here it is still.
            place.remove(&data)?;
        }
    }
    let uploads = place.sizes(&place.uploads())?;
    let total: u64 = sizes.values().sum::<u64>() + uploads.values().sum::<u64>();
    if total <= most {
        return Ok(0);
    }
    // Some more than is needed, or the next incident would be too much again.
    let wanted = most - most / 10;
    let (mut left, mut going) = (total, Vec::new());
    let mut holders = holders(&state);
    for id in order(&state, &sizes) {
        if left <= wanted {
            break;
        }
        left -= sizes.get(&id).copied().unwrap_or(0);
        let upload = state.incidents().get(&id).and_then(|one| upload_of(one.opened()));
        if let Some(holders) = upload.as_ref().and_then(|upload| holders.get_mut(upload)) {
            *holders -= 1;
            if *holders == 0 {
                left -= upload.and_then(|upload| uploads.get(&upload)).copied().unwrap_or(0).min(left);
            }
        }
        going.push(id);
    }
    drop(state);
    for ids in going.chunks(AT_A_TIME) {
        journal.say(Event::Swept { ids: ids.to_vec() })?;
    }
    let state = journal.state();
    for id in &going {
        // Somebody may have asked for it meanwhile.
        if state.incidents().get(id).is_some_and(|one| one.work() == Work::Gone) {
            place.remove(&place.data(*id))?;
        }
    }
    let held = self::holders(&state);
    for upload in uploads.keys().filter(|upload| !held.contains_key(*upload)) {
        place.remove(&place.uploads().join(upload))?;
    }
    Ok(going.len())
}

/// How many incidents need what somebody brought.
fn holders(state: &State) -> BTreeMap<String, usize> {
    let mut holders = BTreeMap::new();
    for one in state.incidents().values().filter(|one| !matches!(one.work(), Work::Gone | Work::Purged)) {
        if let Some(upload) = upload_of(one.opened()) {
            *holders.entry(upload).or_insert(0) += 1;
        }
    }
    holders
}

/// What may go, the first first: of the most frequent bug, the oldest; the newest of a bug, and the first of each class of its schedules, come last.
fn order(state: &State, sizes: &BTreeMap<IncidentId, u64>) -> Vec<IncidentId> {
    let (mut stand, mut late) = (BTreeSet::new(), BTreeSet::new());
    for bug in state.bugs().values() {
        stand.insert(bug.representative());
        let mut of: Vec<(u64, IncidentId)> =
            bug.incidents().iter().filter_map(|id| Some((state.incidents().get(id)?.entry(), *id))).collect();
        of.sort_unstable();
        late.extend(of.iter().rev().take(NEWEST).map(|(_, id)| *id));
        let mut classes = BTreeSet::new();
        for (_, id) in of {
            let keys = state.incidents().get(&id).and_then(|one| one.findings().keys.as_ref());
            if keys.is_some_and(|keys| classes.insert(&keys.exact)) {
                late.insert(id);
            }
        }
    }
    let mut may: Vec<_> = sizes
        .keys()
        .filter_map(|id| {
            let one = state.incidents().get(id)?;
            let stands = stand.contains(id) && one.work() == (Work::Done { outcome: Outcome::Minimized });
            let often = one.bug().and_then(|bug| state.bug(bug)).map_or(0, |(_, bug)| bug.incidents().len());
            let may = !one.work().is_open() && !stands;
            may.then_some((late.contains(id), Reverse(often), one.entry(), *id))
        })
        .collect();
    may.sort_unstable();
    may.into_iter().map(|(_, _, _, id)| id).collect()
}

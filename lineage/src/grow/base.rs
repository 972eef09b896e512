//! What is known of a base beside its order.

use std::path::Path;

use demi_common::sealed;
use demi_schemas::Kind;
use demi_schemas::event::ANYONE;
use serde::{Deserialize, Serialize};

use super::depths::DEPTHS;
use super::{RebuildReason, ids, open};
use crate::error::LineageError;
use crate::execution::{Folder, SUMMARY, link_folder, link_sealed};
use crate::index::INDEX_FOLDER;
use crate::matching::{Channels, Matching, RULES};
use crate::read::{COUNTED, EARLIEST, Events, HAS_ID, IdHash, NONE, beside, is_send};

/// Name of the file.
const FACTS: &str = "base.json";

/// The latest delivered message of a channel: sender, receiver, and the send's incarnation and sequence number.
pub(crate) type Latest = (String, String, u32, u64);

/// Facts of a base.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BaseFacts {
    version: String,
    /// Whether events have vector clocks or parents, or are operations of threads.
    clocked: bool,
    /// Whether all messages were joined by ids, each at the one it was sent to.
    by_id: bool,
    /// Whether all plain channels deliver in order.
    in_order: bool,
    /// By plain channel, where all are in order.
    latest: Vec<Latest>,
}

impl BaseFacts {
    /// Whether all plain channels deliver in order.
    pub(crate) fn in_order(&self) -> bool {
        self.in_order
    }

    /// By plain channel, where all are in order.
    pub(crate) fn latest(&self) -> &[Latest] {
        &self.latest
    }
}

impl BaseFacts {
    /// Looks at events that were matched, and writes their ids to the base's folder.
    pub(crate) fn of(
        events: &Events,
        matching: &Matching,
        channels: &Channels,
        clocked: bool,
        folder: &Path,
    ) -> Result<BaseFacts, LineageError> {
        let latest = match channels.in_order() {
            false => Vec::new(),
            true => {
                let name = |actor: u32| events.actor_name(actor).to_owned();
                let all = channels.seen().iter().map(|(&(from, to), &(send, _))| {
                    let (incarnation, seq) = events.places.get(send);
                    (name(from), name(to), incarnation, seq)
                });
                let mut all: Vec<Latest> = all.collect();
                all.sort_unstable();
                all
            }
        };
        let by_id = matching.extra().is_empty() && joined_by_ids(events, matching);
        if by_id && !clocked {
            let ids = |wanted: &dyn Fn(u32) -> bool| -> Vec<IdHash> {
                let named = (0..events.len() as u32).filter(|&e| events.has(e, HAS_ID) && wanted(e));
                named.map(|e| events.id[e as usize]).collect()
            };
            ids::write(folder, ids::SENT, ids(&|e| is_send(events.kind[e as usize])))?;
            let unsent = |e: u32| events.kind[e as usize].is_delivery() && matching.mate(e) == NONE;
            ids::write(folder, ids::RECEIVED, ids(&unsent))?;
        }
        let version = RULES.to_owned();
        Ok(BaseFacts { version, clocked, by_id, in_order: channels.in_order(), latest })
    }

    /// Why the base cannot be grown at all.
    pub(crate) fn obstacle(&self) -> Option<RebuildReason> {
        match (self.clocked, self.by_id) {
            (true, _) => Some(RebuildReason::Clocks),
            (_, false) => Some(RebuildReason::NotById),
            _ => None,
        }
    }

    /// Reads what was written; nothing where there is no base of this version.
    pub(crate) fn read(folder: &Path) -> Result<Option<BaseFacts>, LineageError> {
        let path = folder.join(FACTS);
        if !path.is_file() || !folder.join(DEPTHS).is_file() {
            return Ok(None);
        }
        let text = beside(&path)?.read_to_string().map_err(LineageError::io(&path))?;
        let facts: Option<BaseFacts> = serde_json::from_str(&text).ok();
        Ok(facts.filter(|f| f.version == RULES))
    }

    /// Writes it to the base's folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), LineageError> {
        let path = folder.join(FACTS);
        let text = serde_json::to_vec(self).map_err(LineageError::table(&path))?;
        sealed::write(&path, &text).map_err(LineageError::io(&path))
    }
}

/// Whether messages have ids, and each that was joined was taken by the actor it names.
pub(crate) fn joined_by_ids(events: &Events, matching: &Matching) -> bool {
    let no_warning = matching.warnings.is_empty();
    let has_id = |e: u32| events.has(e, HAS_ID) && !events.has(e, COUNTED) && !events.has(e, EARLIEST);
    no_warning
        && (0..events.len() as u32).all(|e| {
            let i = e as usize;
            let to = || events.names.text(events.to[i]);
            match events.kind[i] {
                Kind::Send => {
                    let mate = matching.mates()[i];
                    let taken = mate == NONE || events.actor_name(events.actor[mate as usize]) == to();
                    has_id(e) && taken && to() != ANYONE
                }
                Kind::Receive => has_id(e),
                _ => true,
            }
        })
}

/// Gives what a new base shares with its execution a second name in the base's folder.
pub(crate) fn seal_base(folder: &Folder) -> Result<(), LineageError> {
    link_sealed(&folder.path(SUMMARY), &folder.base().join(SUMMARY))?;
    link_folder(&folder.index(), &folder.base().join(INDEX_FOLDER))
}

/// Gives a base's files a second name in `to`.
pub(crate) fn link_all(from: &Path, to: &Path) -> Result<(), LineageError> {
    for name in [FACTS, SUMMARY, open::OPEN, DEPTHS, ids::SENT, ids::RECEIVED] {
        link_sealed(&from.join(name), &to.join(name))?;
    }
    link_folder(&from.join(INDEX_FOLDER), &to.join(INDEX_FOLDER))
}

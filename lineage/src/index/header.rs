//! What the index holds: `header.json`.

use serde::{Deserialize, Serialize};

/// Name of the folder of the index in an execution's folder.
pub const INDEX_FOLDER: &str = "index";
/// Version of the files.
pub(crate) const INDEX_SCHEMA: &str = "demi-index/1";

/// Name of the header.
pub(crate) const HEADER: &str = "header.json";
/// By event, the other end of its message: 32 bits each, [`crate::read::NONE`] for none.
pub(crate) const MATES: &str = "mates.bin";
/// By event, the place in the linear extension from 1: 32 bits each.
pub(crate) const ORDERS: &str = "orders.bin";
/// By event, what it is: one byte each, see [`super::Info`].
pub(crate) const INFOS: &str = "infos.bin";
/// Counts up to each block of events.
pub(crate) const COUNTS: &str = "counts.bin";
/// Runs of events without a gap in their names.
pub(crate) const RUNS: &str = "runs.bin";
/// Further edges, sorted by effect, then the same sorted by cause.
pub(crate) const LINKS: &str = "links.bin";
/// Clocks at checkpoints.
pub(crate) const CLOCKS: &str = "clocks.bin";
/// Numbers of the events that carry a state.
pub(crate) const STATES: &str = "states.bin";

/// Events in a block: what is read at a time, and the distance of stored counts.
pub(crate) const BLOCK: u32 = 4096;

/// The share of one actor in the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ActorEntry {
    /// The actor's name.
    pub name: String,
    /// Number of its first event; the next actor's first closes its range.
    pub first: u32,
    /// Its first run in the file of runs.
    pub first_run: u32,
    /// Its first event with a state in the file of states.
    pub first_state: u32,
    /// How many of its events, the last ones, were added to the execution after it was built, and stand in tables of their own.
    #[serde(default)]
    pub appended: u32,
    /// Place in the linear extension of its first event with an effect elsewhere; absent if there is none.
    pub first_out: Option<u32>,
    /// Place in the linear extension of its last event with a cause elsewhere; absent if there is none.
    pub last_in: Option<u32>,
}

/// The header of an index.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexHeader {
    /// Version of the files.
    pub schema: String,
    /// How many events there are.
    pub events: u32,
    /// The actors, sorted by name.
    pub actors: Vec<ActorEntry>,
    /// Runs in the file of runs.
    pub runs: u32,
    /// Events with a state.
    pub states: u32,
    /// Explicit causes.
    pub links: u32,
    /// Messages whose match is not certain, and further edges that are not.
    pub uncertain: u64,
    /// Events outside their log's order.
    pub alone: u64,
    /// Number of the actor that stands for the environment, whose events are not ordered among themselves.
    pub environment: Option<u32>,
    /// Events of an actor between two stored clocks; 0 where no clocks are stored.
    pub stride: u32,
    /// Whether a file of digests stands beside each file; indexes of earlier versions have none.
    #[serde(default)]
    pub sealed: bool,
    /// The digest of the header itself, written without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl IndexHeader {
    /// The numbers of an actor's events, in the order of its log.
    pub(crate) fn events_of(&self, actor: usize) -> std::ops::Range<u32> {
        let end = self.actors.get(actor + 1).map_or(self.events, |next| next.first);
        self.actors[actor].first..end
    }

    /// The digest of all that the header says besides.
    pub(crate) fn own_digest(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_vec(&IndexHeader { digest: None, ..self.clone() })?;
        Ok(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&text)))
    }
}

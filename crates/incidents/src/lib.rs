//! Incidents, and the bugs that they are occurrences of.
//!
//! An *incident* is one violation, a *bug* is what incidents have in common, *work* is what the machine does about an incident, and *status* is what
//! people have said about a bug. All that is shared is a numbered [journal](journal), whose only primitive is to take a name once. What it says comes
//! to a [`State`] by a pure fold, and what is to be done next is a pure [decision](decide) on that state and on what somebody sees.
//!
//! ```text
//! who opens, works, tells, or says something ──► decide(state, seen) ──► entry N + 1 ──► fold ──► state
//!                                                     ▲                     │ somebody else was faster: read, decide again
//!                                                     └─────────────────────┘
//! ```

mod anywhere;
pub mod bundle;
pub mod child;
pub mod class;
pub mod decide;
pub mod event;
mod far;
pub mod fold;
pub mod forget;
pub mod group;
mod id;
pub mod journal;
pub mod models;
pub mod objects;
mod packs;
pub mod page;
pub mod place;
pub mod replays;
pub mod retention;
pub mod sources;
pub mod tell;
pub mod text;
pub mod uploads;
mod version;
pub mod view;
#[cfg(feature = "store")]
pub mod watch;
pub mod work;

pub use anywhere::Anywhere;
pub use fold::{Bug, Incident, State, Status, Work};
pub use id::{IncidentId, NoId, digest_of, hex_of};
pub use journal::{Journal, JournalError, Rhythm};
pub use objects::{LocalFolder, Objects};
pub use place::Place;
pub use version::compare;

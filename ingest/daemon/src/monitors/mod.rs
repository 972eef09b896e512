//! Monitors: invariants watched while events come in (S. Grant, H. Cech and I. Beschastnikh, "Inferring and asserting distributed system
//! invariants", ICSE 2018, section 5).
//!
//! ```text
//! parser ─► Feed ─► work (a thread each) ─► checkpoint beside the spool
//!                        └─► courier ─► record in the spool, webhook, build and minimize
//! ```
//!
//! A violation is written into the checkpoint before anybody hears of it, and its record is the same whenever it is made: after a crash it
//! is in the store once, and posted again under the same key.

mod checkpoint;
mod config;
mod courier;
mod feed;
mod figures;
mod follow_up;
pub(crate) mod post;
mod set;
mod webhook;
mod work;

pub(crate) use checkpoint::Checkpoint;
pub use checkpoint::is_checkpoint;
pub use config::{MinimizeConfig, MonitorConfig};
pub(crate) use feed::{Cut, Feed, Feeds, Turn, Waits};
pub use figures::{Figures, InvariantLabels, MonitorLabel};
pub use set::MonitorError;
pub(crate) use set::{Carried, Monitors};

//! Causal pasts on engines that exist: tables of messages beside the events, and rounds of stock SQL over them.
//!
//! [`refresh()`] keeps the tables. [`close`] raises a frontier, one position for each log, until it stands; an [`Engine`] runs what that asks,
//! and [`Process`] is one that Python loads.

mod engine;
mod error;
mod frontier;
mod process;
mod refresh;
mod session;
mod slice;
mod sql;

pub use engine::{Cell, ColumnType, Counted, Engine, Files, Rows, Saved, Small};
pub use error::PlanError;
pub use frontier::{Closed, ClosedBy, Effort, Frontier, Options, Position, close};
pub use process::{EngineKind, Process};
pub use refresh::{Log, Refreshed, logs, refresh, version};
pub use session::{EngineCut, Place, Session};
pub use slice::{Slice, SliceSummary};
pub use sql::{Dialect, KEY, Step, explained};

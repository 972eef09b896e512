//! Everything that crosses a boundary between crates or leaves the tool: the event record, the
//! Arrow schemas of the tables, the schedule file, the scenario file and the summary files.
//!
//! This crate does no I/O: it turns text into values and values into text. Each type that is
//! written as JSON has a JSON Schema generated from it ([`json_schema`]) and committed under
//! `schemas/json/`.

mod asserted;
pub mod certificate;
pub mod event;
pub mod event_id;
mod explore_summary;
mod fuzz_summary;
pub mod invariants;
pub mod json_schema;
pub mod kind;
mod known;
pub mod model_ref;
pub mod scenario;
mod scenario_error;
pub mod schedule;
pub mod summary;
pub mod tables;

pub use asserted::{Asserted, Assertion};
pub use certificate::Certificate;
pub use event::{EventRecord, Kind, RecordError, TimerInfo, Via};
pub use event_id::EventId;
pub use invariants::{InvariantEntry, InvariantsError, InvariantsFile, Standing};
pub use known::Known;
pub use model_ref::{ChildModel, ModelRef, ProgramNodes};
pub use scenario::{NetworkRule, Scenario};
pub use scenario_error::ScenarioError;
pub use schedule::{Schedule, ScheduleError, ScheduleHeader, Step, StepKind};

//! The incident service: records become incidents, workers work on them, pages show them, and receivers are told.

mod config;
mod figures;
mod openapi;
mod replays;
mod service;
mod shared;
mod tell;
mod web;

pub use config::{IncidentsConfig, Range, ReceiverConfig, Settings};
pub use figures::{BugLabel, DeliveryLabel, FailureLabel, IncidentFigures, WorkLabel};
pub use service::{ServiceError, serve};
pub(crate) use service::{Wanted, start};

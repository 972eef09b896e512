//! The folder of an execution: its tables, its schedule and its summary, written and read.

mod folder;
mod lines;
mod names;
pub(crate) mod rows;
mod schedule;
pub(crate) mod segments;
mod steps;
mod summary;
pub(crate) mod writer;

pub(crate) use folder::Folder;
pub(crate) use lines::Lines;
pub(crate) use names::{BASE_FOLDER, EVENTS_ADDED, MESSAGES_ADDED};
pub use names::{EVENTS, MESSAGES, SCHEDULE, SUMMARY};
pub(crate) use schedule::{header, write_lines};
pub use schedule::{load_schedule, write_schedule};
pub(crate) use steps::{Composer, Placed};
pub use summary::load_summary;
pub(crate) use summary::write_summary;
pub(crate) use writer::TableWriter;

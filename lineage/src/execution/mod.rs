//! The folder of an execution: its tables, its schedule and its summary, written and read.

mod folder;
mod lines;
pub(crate) mod messages;
mod names;
pub(crate) mod references;
pub(crate) mod rows;
mod schedule;
mod steps;
mod summary;
mod tables;
pub(crate) mod writer;

pub use crate::read::record_schema;
pub(crate) use folder::{Folder, link, link_files, link_folder, link_sealed};
pub(crate) use lines::Lines;
pub(crate) use names::{BASE_FOLDER, EVENTS_ADDED, MESSAGES_ADDED, TABLES};
pub use names::{EVENTS, MESSAGES, SCHEDULE, SUMMARY};
pub use references::ROWS;
pub use references::{Places, References};
pub(crate) use schedule::{header, write_lines};
pub use schedule::{load_schedule, write_schedule};
pub(crate) use steps::{Composer, StepContext};
pub use summary::load_summary;
pub(crate) use summary::write_summary;
pub use tables::{MessageFiles, Part, Tables, is_execution};
pub(crate) use writer::TableWriter;

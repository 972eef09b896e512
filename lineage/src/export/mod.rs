//! Pictures and files of an execution, or of a slice of one, for other tools.
//!
//! [`Skeleton`] holds the order of an execution as the order index has it, about 35 bytes an event; [`Selection`] says which of its events a slice
//! has; [`Trace`] adds what the events are, for the slice alone; [`write()`] writes a trace in one of the [`Format`]s.
//! Texts come from outside: each format escapes them by its own rules.

mod causes;
mod chrome;
mod content;
mod dot;
mod error;
mod graphml;
mod json;
mod load;
mod merged;
mod mermaid;
mod select;
mod shiviz;
mod skeleton;
mod trace;

use std::io::Write;

pub use causes::{Cause, Causes, ClockedEvent, EdgeReason};
pub use content::Content;
pub use error::ExportError;
pub use load::{Ranks, contents, ordered, skeleton};
pub use select::{Selection, Window};
pub use skeleton::{Builder, Joint, NONE, Neighbor, Skeleton};
pub use trace::Trace;

/// The file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A log with vector clocks for ShiViz: a parser line, a delimiter line, two lines an event.
    Shiviz,
    /// A Graphviz digraph with one cluster an actor.
    Dot,
    /// GraphML, for networkx, yEd, Gephi.
    Graphml,
    /// Chrome's trace events as JSON, with flows; Perfetto reads it.
    Perfetto,
    /// A Mermaid sequence diagram.
    Mermaid,
    /// JSON for programs: actors, events, messages.
    Json,
    /// One log of all actors as text, a line an event.
    MergedLog,
}

/// Options of writing a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// ShiViz puts the events of a host one after the other. Events that have no place in the order of their log (sends
    /// by the environment and by threads) share one host where this is off, which orders them more than is known; each
    /// has a host of its own where it is on.
    pub split_loose: bool,
}

/// Writes a trace.
///
/// # Errors
/// When `out` cannot be written to, or a host's name has no place in the format.
pub fn write(
    trace: &Trace,
    format: Format,
    options: WriteOptions,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    match format {
        Format::Shiviz => shiviz::write(trace, options, out),
        Format::Dot => dot::write(trace, out),
        Format::Graphml => graphml::write(trace, out),
        Format::Perfetto => chrome::write(trace, out),
        Format::Mermaid => mermaid::write(trace, out),
        Format::Json => json::write(trace, out),
        Format::MergedLog => merged::write(trace, out),
    }
}

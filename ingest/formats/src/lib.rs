//! Logs of any format as event records: which files are read, what a line is, and what mappings make of it.
//!
//! ```
//! use demi_formats::Fate;
//! use demi_formats::mapping::{Mapper, Mapping};
//! use demi_formats::lines::Line;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut mapper = Mapper::new(&Mapping::named("logfmt")?)?;
//! let mut units = Vec::new();
//! mapper.begin("log", b"");
//! mapper.line(Line::empty(0, 1), b"actor=a seq=1 msg=ready", &mut units);
//! mapper.end(&mut units);
//! assert!(matches!(units[0].fate, Fate::Row(_)));
//! # Ok(())
//! # }
//! ```

mod container;
pub mod digest;
mod documents;
mod error;
mod fate;
mod formats;
pub mod mapping;
mod nature;
pub mod otlp;
pub mod read;
mod redact;
pub mod secret_file;
pub mod structured;
pub mod time;

pub use digest::record_digest;
pub use documents::request;
pub use error::ReadError;
pub use fate::{Events, Fate, REASONS, Rejection};
pub use nature::likely_reason;
pub use read::encoding::{Encoding, UnknownEncoding};
pub use read::lines;
pub use read::order::rotated_log;
pub use read::source::{Plan, Share, Source, Sources};
pub use redact::{RedactError, Redaction};
pub use time::utc_date;

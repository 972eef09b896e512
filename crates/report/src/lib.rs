//! An execution, or a minimized schedule beside its original, as one self-contained page; and the same page served on
//! loopback for executions too large for one file.
//!
//! [`load()`] reads an execution's folder or a result's folder into a [`Page`]; [`html`] makes the file of it;
//! [`serve()`] answers the page's questions one window at a time. The page's own source is in `assets/`: plain
//! JavaScript and CSS that are put together without a build step.
//!
//! Texts of events come from outside. They reach the page as data (compressed, in base64) and are shown as text only;
//! a content security policy with the hashes of the page's own script and style stands behind that.

mod align;
mod columns;
mod completeness;
mod data;
mod error;
mod execution;
mod input;
mod invariants;
mod page;
mod plain;
mod replayed;
#[cfg(feature = "serve")]
mod serve;
mod timeline;

pub use data::Page;
pub use error::ReportError;
pub use input::{Input, LoadOptions, folder_of, load, open_trace};
pub use page::html;
pub use replayed::mark_kept;
#[cfg(feature = "serve")]
pub use serve::{Served, serve};

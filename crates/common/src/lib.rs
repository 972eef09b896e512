//! What every part of the project needs and none of them is about: names as path components, files and folders that
//! survive a power cut, text for people.

pub mod durable;
pub mod hint;
pub mod owned;
pub mod panics;
pub mod path_name;
pub mod recent;
pub mod regular;
#[cfg(feature = "parquet")]
pub mod sealed;
pub mod sums;
pub mod table;
pub mod text;
pub mod time;

pub use hint::nearest;
pub use owned::{FolderError, Kind, Replacement};
pub use path_name::{path_name, stays_inside};
pub use recent::Recent;
pub use table::Table;

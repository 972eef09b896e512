//! From paths to lines and event records: which files are read, unpacking, cutting into lines, parsing.

pub(crate) mod decompress;
pub mod lines;
pub(crate) mod parse;
pub(crate) mod source;

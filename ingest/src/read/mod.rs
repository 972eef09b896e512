//! From paths to lines and event records: which files are read, unpacking, decoding, cutting into lines, parsing.

pub(crate) mod decompress;
pub(crate) mod encoding;
pub mod lines;
pub(crate) mod names;
mod order;
pub(crate) mod parse;
pub(crate) mod source;

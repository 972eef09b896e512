//! From paths to lines and event records: which files are read, unpacking, decoding, cutting into lines, parsing.

pub mod block;
pub mod decompress;
pub(crate) mod encoding;
pub mod lines;
pub mod names;
pub(crate) mod order;
pub mod parse;
pub mod plain;
pub mod source;

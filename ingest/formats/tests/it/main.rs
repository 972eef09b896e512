//! The tests of the crate from outside, in one program.

mod formats;
mod mapping_language;
mod otlp;
#[cfg(feature = "otlp")]
mod otlp_any;
mod record_fields;
mod shapes;

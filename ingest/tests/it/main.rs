//! The tests of the crate from outside, in one program.

mod formats;
mod load;
mod mapping_language;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
mod otlp_any;
mod record_fields;
mod shapes;

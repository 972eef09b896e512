//! The kinds of sources that there are.

use super::source::Kind;

/// The kinds of this build, in the order in which they are told.
pub const KINDS: &[Kind] = &[
    super::files::KIND,
    super::tcp::KIND,
    super::http::KIND,
    #[cfg(feature = "otlp")]
    super::otlp::KIND,
    #[cfg(feature = "nats")]
    super::nats::KIND,
];

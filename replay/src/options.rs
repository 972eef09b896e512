//! What a caller of a replay chooses.

use demi_schemas::NetworkRule;

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// The network rule to enforce.
    pub rule: NetworkRule,
    /// Stop at the first step that cannot be followed, instead of skipping it.
    pub strict: bool,
    /// For schedules lifted from logs: check the invariants after each so many deliveries, remembering what
    /// earlier checks saw, as the recorder did. Other schedules are checked after every delivery, each
    /// configuration by itself.
    pub interval: u32,
}

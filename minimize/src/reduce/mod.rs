//! Reduction: from a witness to a smaller one that still violates.

pub mod baselines;
pub mod descent;
pub mod passes;
pub mod reducer;
pub mod registry;
pub mod stats;

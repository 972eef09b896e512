//! The journal under many writers, kills and power cuts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod disk;
mod grouping;
mod interleavings;
mod on_disk;
mod packs;
mod room;
mod storm;

//! The tests of the crate from outside, as one program.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

mod common;
mod correct;
mod crashes;
mod determinism;
mod misuses;
mod scenarios;

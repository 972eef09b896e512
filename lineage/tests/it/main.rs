//! The tests of the crate as one program, so that they are linked once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

mod bad_index;
mod bad_input;
mod clocks;
mod common;
mod cores;
mod corpus;
mod doubt;
mod export;
mod order_index;
mod properties;
mod threads;
mod window;

//! Integration tests of pages, and of everything else that shows the order of an execution.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

mod contrast;
mod one_relation;
mod parsed;
mod script;
mod systems;

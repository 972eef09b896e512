//! Pasts on engines against the order index.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

mod answers;
mod ballista;
mod cluster;
mod common;
mod loops;
mod memory;
mod slices;
mod tables;
mod topologies;

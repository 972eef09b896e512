//! Real programs under the scheduler, and the checkers of their histories against brute force.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

mod budgets;
mod citizens;
mod clocks;
mod copies;
mod disks;
mod examples;
mod follow;
mod guests;
mod histories;
mod kills;
mod mutants;
mod raft;
mod registers;
mod strangers;
mod threads;
mod transactions;
mod workloads;

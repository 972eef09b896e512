//! Systems of Stateright actors as models, compared with Stateright's own checker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

#[path = "../../examples/registers/abd.rs"]
mod abd;
mod common;
mod networks;
#[path = "../../examples/registers/paxos.rs"]
mod paxos;
#[path = "../../examples/registers/register.rs"]
mod register;
mod registers;
#[path = "../../examples/registers/single_copy.rs"]
mod single_copy;
mod timers;

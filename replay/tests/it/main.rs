//! The tests of the crate from outside, as one program: linking several costs more than running them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

#[path = "../../examples/lock.rs"]
#[expect(dead_code, reason = "its main function is run by hand")]
mod lock;
#[path = "../../examples/registration.rs"]
#[expect(dead_code, reason = "its main function is run by hand")]
mod registration;
#[path = "../../examples/token_ring.rs"]
#[expect(dead_code, reason = "its main function is run by hand")]
mod token_ring;

mod akka_raft_smoke;
mod any_schedule;
mod chapter;
mod configurations;
mod files;
mod follow;
mod fuzz;
mod hostile;
mod incarnations;
mod kept;
mod layers;
mod network_rules;
mod raft_bound;
mod raft_renaming;
mod recorded;
mod roles;
mod spark;
mod spark_cached;
mod spark_model;
mod vet;

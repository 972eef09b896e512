//! Tests of `demi-threads`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod bad_use;
mod brute_force;
mod claims;
mod fairness;
mod files;
mod logs;
mod objects;
mod summary;

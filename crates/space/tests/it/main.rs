//! The packed space, and searches over systems.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod prefixes;
mod threads;

//! The commands of a program with a model of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod export;
mod fuzz;
mod hostile;
mod model_check;

//! The tests of the crate from outside, in one binary, so that linking is short.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod alike;
mod anytime;
mod at_start;
mod causes;
mod certificate;
mod common;
mod crashes;
mod detours;
mod faults;
mod golden;
mod ledger;
mod lives;
mod long;
mod masked;
mod matchers;
mod optimum;
mod oracle;
mod passes;
mod pattern_database;
mod recorded;
mod registry;
mod renamings;
mod resume;
mod search;
mod spark;
mod trails;
mod two_phase;

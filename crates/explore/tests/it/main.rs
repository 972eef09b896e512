//! Exploration against a search of all interleavings, and with its cache against without.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod around;
mod cache;
mod counts;
mod left;
mod livelock;
mod machine;
mod promise;
mod recheck;
mod rounds;
mod side_by_side;
mod stuck;

//! The tests of the crate from outside, in one program.

mod load;
mod retries;

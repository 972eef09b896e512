//! Passes: each looks for a smaller witness in its own way and hands what it finds to the [`Reducer`].
//!
//! [`Reducer`]: crate::reduce::reducer::Reducer

pub mod backtrack;
pub mod chunks;
pub mod contents;
pub mod detours;
pub mod endings;
pub mod joint;
pub mod late_starts;
pub mod noop;
pub mod probdd;
pub mod renamings;
pub mod structure;
pub mod subjects;
pub mod subsets;
pub mod window;

//! What it costs to leave the default order, and how far an exploration goes.

pub use demi_check::Cost;
pub use demi_space::Spent;

/// How far an exploration goes. Budgets are apart and never added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// What is counted.
    pub cost: Cost,
    /// Most an execution may have spent of each.
    pub most: Spent,
}

//! How strongly operators bind, the weakest first: the parser climbs these, and what is printed has brackets where they ask for them.

pub(crate) const OR: u8 = 1;
pub(crate) const AND: u8 = 2;
pub(crate) const NOT: u8 = 3;
pub(crate) const IS: u8 = 4;
pub(crate) const COMPARE: u8 = 5;
pub(crate) const ADD: u8 = 6;
pub(crate) const MULTIPLY: u8 = 7;
/// What is no operator: a literal, a column, a call.
pub(crate) const ATOM: u8 = 8;

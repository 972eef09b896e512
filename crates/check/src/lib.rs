//! An independent checker: it finds out by plain enumeration what the searches claim, and shares nothing with them.
//!
//! [`certificate`] checks what is written down of a minimized schedule, [`settled`] that nothing smaller exists over everything recorded,
//! [`promise`] that no execution within the bounds of an exploration violates, and [`optimum`] looks for a shortest execution, as a yardstick.
//! Of the simulator they use what makes one step in one world. They know no bound but the model's own, no packed space, no symmetry, no
//! order of search and no table of the searches that they judge.

pub mod certificate;
pub mod cost;
mod faults;
pub mod optimum;
pub mod promise;
pub mod settled;

pub use certificate::{CertificateError, Checked, certify, verify};
pub use cost::Cost;
pub use settled::verify_settled;

/// How much a check may do.
pub trait Quota {
    /// Whether the time for it is over.
    fn late(&self) -> bool;
    /// Takes room for one more configuration; says whether there was any.
    fn take(&mut self) -> bool;
}

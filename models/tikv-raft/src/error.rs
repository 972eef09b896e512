//! What can be wrong with what the model reads.

/// Why a text is no request from outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// There is no request of that name.
    #[error("'{0}' is no request: expected Write, Read, AddNode, RemoveNode or Compact")]
    Unknown(String),
    /// A number is missing or is none.
    #[error("'{0}' lacks a number")]
    Number(String),
}

/// Why the state of the application cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// A committed entry does not follow the one that was applied last.
    #[error("entry {got} is to be applied after entry {last}")]
    Gap {
        /// What was applied last.
        last: u64,
        /// What came.
        got: u64,
    },
    /// An entry or a snapshot has content that the application did not write.
    #[error("entry {0} has content that cannot be read")]
    Content(u64),
    /// The library refused to start from what is on the disk.
    #[error("the library refuses what is on the disk: {0}")]
    Disk(String),
}

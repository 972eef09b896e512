//! What a search may still use.

/// How long a search may go on, and how much it may do.
pub trait Allowance: Sync {
    /// Whether the time is over. It is asked before each step that may be slow.
    fn late(&self) -> bool;

    /// Whether the work must end now, for whatever reason.
    fn ended(&self) -> bool;
}

/// No limit.
impl Allowance for () {
    fn late(&self) -> bool {
        false
    }

    fn ended(&self) -> bool {
        false
    }
}

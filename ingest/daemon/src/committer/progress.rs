//! How far a spool is in the tables: numbers kept with each commit.

/// Name of the application under which a spool's progress is kept in the tables.
pub(crate) fn application(spool: u64) -> String {
    format!("demi-spool/{spool:016x}")
}

/// The same for one source.
pub(crate) fn source_application(spool: u64, source: &str) -> String {
    format!("demi-spool/{spool:016x}/{source}")
}

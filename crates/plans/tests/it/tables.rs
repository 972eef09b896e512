//! Keeping the tables.

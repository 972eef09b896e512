//! `demi-lineage ingest`: put logs into the event store.

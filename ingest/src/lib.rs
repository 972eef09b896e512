//! Sources, parsers and the event store.

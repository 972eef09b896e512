//! Matching sends to receives, the partial order, provenance, and executions.

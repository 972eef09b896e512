//! The model API, the deterministic simulator, network rules, conformance and fuzzing.

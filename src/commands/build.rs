//! `demi-lineage build`: partial order, violation, causal past, execution.

//! JSON Schemas generated from the types; committed under `schemas/json/` and kept equal by a test.

use schemars::{JsonSchema, Schema, schema_for};

use crate::{certificate, event, invariants, scenario, schedule, summary};

/// A file name and the schema it holds.
pub struct SchemaFile {
    /// File name under `schemas/json/`.
    pub file: &'static str,
    /// The schema.
    pub schema: Schema,
}

fn named<T: JsonSchema>(file: &'static str) -> SchemaFile {
    SchemaFile { file, schema: schema_for!(T) }
}

/// Every JSON Schema, in the order of their file names.
#[must_use]
pub fn all() -> Vec<SchemaFile> {
    vec![
        named::<summary::BuildSummary>("build-summary.schema.json"),
        named::<certificate::Certificate>("certificate.schema.json"),
        named::<event::EventRecord>("event-record.schema.json"),
        named::<summary::ExploreSummary>("explore-summary.schema.json"),
        named::<summary::FuzzSummary>("fuzz-summary.schema.json"),
        named::<invariants::InvariantsFile>("invariants.schema.json"),
        named::<summary::LoadSummary>("load-summary.schema.json"),
        named::<summary::MinimizeSummary>("minimize-summary.schema.json"),
        named::<summary::ReplaySummary>("replay-summary.schema.json"),
        named::<scenario::Scenario>("scenario.schema.json"),
        named::<schedule::ScheduleHeader>("schedule-header.schema.json"),
        named::<schedule::Step>("schedule-step.schema.json"),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// `UPDATE_SCHEMAS=1 cargo test -p demi-schemas` writes the files anew.
    #[test]
    fn committed_schemas_agree_with_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("json");
        for super::SchemaFile { file, schema } in super::all() {
            let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
            let path = folder.join(file);
            if std::env::var_os("UPDATE_SCHEMAS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(committed, text, "{file} is stale: run UPDATE_SCHEMAS=1 cargo test -p demi-schemas");
        }
    }
}

//! What stands in quarantine, counted by why.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use serde::Serialize;

use crate::StoreError;
use crate::scan::scan;

/// The quarantined records of a system that have one code, with the one that came first as an example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quarantined {
    /// The system.
    pub system: String,
    /// The short word for the reason, as `not_json` or `conflict`.
    pub code: String,
    /// How many there are.
    pub rows: u64,
    /// The reason of the first one, as a sentence.
    pub reason: String,
    /// The source of the first one.
    pub source: String,
    /// Its line in that source, from 1.
    pub line: u64,
}

/// The quarantined records in the files of a system, counted by why; the commonest reasons come first.
pub(crate) fn counted(files: &[SealedFile], system: &str) -> Result<Vec<Quarantined>, StoreError> {
    let columns = [
        ("code", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("source", DataType::Utf8),
        ("line", DataType::Int64),
    ];
    let mut by_code: BTreeMap<String, Quarantined> = BTreeMap::new();
    scan(files, &columns, |batch| {
        let text = |i: usize| batch.column(i).as_string::<i32>();
        for row in 0..batch.num_rows() {
            let code = text(0).value(row);
            if let Some(found) = by_code.get_mut(code) {
                found.rows += 1;
                continue;
            }
            let first = Quarantined {
                system: system.to_owned(),
                code: code.to_owned(),
                rows: 1,
                reason: text(1).value(row).to_owned(),
                source: text(2).value(row).to_owned(),
                line: batch.column(3).as_primitive::<Int64Type>().value(row) as u64,
            };
            by_code.insert(code.to_owned(), first);
        }
        Ok(())
    })?;
    let mut found: Vec<Quarantined> = by_code.into_values().collect();
    found.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.code.cmp(&b.code)));
    Ok(found)
}

//! The logs of a run, as files.

use demi_common::path_name;
use demi_replay::fuzz::Found;

/// The logs of a run, with their paths.
pub fn logs(found: &Found) -> Result<Vec<(String, String)>, serde_json::Error> {
    let mut files = Vec::new();
    for (actor, records) in &found.records {
        let mut text = String::new();
        for record in records {
            text.push_str(&serde_json::to_string(record)?);
            text.push('\n');
        }
        files.push((format!("logs/{}.jsonl", path_name(actor)), text));
    }
    Ok(files)
}

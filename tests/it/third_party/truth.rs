//! What is known of a public log from elsewhere, as `truth.json` says it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One execution of one file.
pub struct Truth {
    pub set: String,
    pub file: PathBuf,
    pub execution: Option<String>,
    pub value: Value,
}

/// The folder of the public logs, if it is here.
pub fn folder() -> Option<PathBuf> {
    let root = std::env::var_os("DEMI_CORPUS").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"));
    let folder = root.join("third-party");
    folder.is_dir().then_some(folder)
}

/// Everything that is known of the sets.
pub fn all(folder: &Path) -> Vec<Truth> {
    let mut sets: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    sets.sort();
    let mut out = Vec::new();
    for set in sets.iter().filter(|s| s.join("truth.json").is_file()) {
        let text = std::fs::read_to_string(set.join("truth.json")).unwrap();
        let truth: Value = serde_json::from_str(&text).unwrap();
        for (file, value) in truth["files"].as_object().unwrap() {
            let path = set.join("data").join(file);
            if !path.is_file() {
                continue;
            }
            let name = set.file_name().unwrap().to_string_lossy().into_owned();
            let one = |execution: Option<String>, value: &Value| Truth {
                set: name.clone(),
                file: path.clone(),
                execution,
                value: value.clone(),
            };
            match value["executions"].as_object() {
                None => out.push(one(None, value)),
                Some(executions) => {
                    for (label, value) in executions {
                        out.push(one(Some(label.clone()), value));
                    }
                }
            }
        }
    }
    out
}

impl Truth {
    /// How many events there are, whatever the set calls them.
    pub fn events(&self) -> u64 {
        let names = ["events", "operations", "lines", "spans", "log_records"];
        names.iter().find_map(|n| self.value[*n].as_u64()).unwrap()
    }

    /// Events by host, where that is known.
    pub fn hosts(&self) -> Option<BTreeMap<String, u64>> {
        let hosts = self.value["hosts"].as_object()?;
        Some(hosts.iter().map(|(h, n)| (h.clone(), n.as_u64().unwrap())).collect())
    }

    /// Where the order is known.
    pub fn ordered(&self) -> Option<u64> {
        self.value["pairs"]["ordered"].as_u64()
    }

    /// A name for messages of tests.
    pub fn name(&self) -> String {
        format!("{} {:?}", self.file.display(), self.execution)
    }
}

/// `host#n` as a pair.
pub fn event(id: &str) -> (String, u64) {
    let (host, n) = id.rsplit_once('#').unwrap();
    (host.to_owned(), n.parse().unwrap())
}

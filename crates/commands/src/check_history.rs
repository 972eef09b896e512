//! `demi-lineage check-history`: whether a history has the property of a workload, by the checkers alone.

use std::path::PathBuf;

use demi_common::text::printable;
use demi_programs::{History, Workload};
use demi_schemas::scenario::WorkloadSettings;
use serde_json::json;

use crate::Outcome;
use crate::files::text_of;
use crate::status::Status;
use crate::ui::Ui;

/// Arguments of `check-history`.
#[derive(clap::Args, Debug)]
pub struct CheckHistoryArgs {
    /// The history: history.jsonl of `fuzz`, or Jepsen's history.edn.
    history: PathBuf,
    /// Whose property it must have: echo, unique-ids, broadcast, g-set, g-counter, pn-counter, lin-kv, kafka, txn-list-append or txn-rw-register.
    #[arg(long, value_name = "NAME")]
    workload: String,
    /// What transactions are promised: read-uncommitted, read-committed, snapshot-isolation, serializable or strict-serializable [default:
    /// serializable].
    #[arg(long, value_name = "NAME")]
    consistency: Option<String>,
    /// Print what was found as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `check-history`.
///
/// # Errors
/// When the history cannot be read, or there is no such workload.
pub fn run(args: &CheckHistoryArgs, ui: &Ui) -> Outcome {
    let settings = WorkloadSettings {
        name: args.workload.clone(),
        consistency: args.consistency.clone(),
        ..WorkloadSettings::default()
    };
    let workload = Workload::new(&settings)?;
    let path = args.history.display();
    let text = text_of(&args.history).map_err(|error| format!("{path}: {error}"))?;
    let history = History::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let (foreign, names) = workload.foreign(&history).map_err(|error| format!("{path}: {error}"))?;
    if foreign > 0 {
        ui.note(&format!(
            "{foreign} operations are none of '{}', and were not looked at: {}",
            workload.name(),
            printable(&names.join(", "))
        ));
    }
    let found = workload.check(&history);
    let operations = history.operations().len();
    if args.json {
        let found: Vec<_> =
            found.iter().map(|one| json!({ "anomaly": one.name, "told": one.told })).collect();
        ui.json(&json!({
            "workload": workload.name(),
            "operations": operations,
            "holds": found.is_empty(),
            "anomalies": found,
        }))?;
    } else if found.is_empty() {
        ui.result(&format!("{operations} operations, and nothing in them breaks '{}'", workload.name()));
    } else {
        let told: Vec<String> =
            found.iter().map(|one| format!("{}: {}", one.name, printable(&one.told))).collect();
        let anomalies = if found.len() == 1 { "anomaly" } else { "anomalies" };
        ui.result(&format!("{}\n{operations} operations, {} {anomalies}", told.join("\n"), found.len()));
    }
    Ok(match found.is_empty() {
        true => Status::There.into(),
        false => Status::NotThere.into(),
    })
}

//! Questions to the binary about the order of a built execution.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::truth::Truth;
use super::{counts, demi};

/// Lines of JSON that a query prints for questions in a file, one a line.
pub fn answers(exec: &str, command: &str, option: &str, questions: &[String], dir: &Path) -> Vec<Value> {
    let file = dir.join("questions");
    std::fs::write(&file, questions.join("\n")).unwrap();
    let output = demi(&["query", exec, command, option, &file.display().to_string(), "--json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "query {command}: {stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), questions.len(), "query {command}: {stderr}");
    lines
}

/// Asks the binary what the truth has answers to.
pub fn ask(truth: &Truth, exec: &str, dir: &Path) {
    let name = truth.name();
    let id = |value: &Value| value.as_str().unwrap().replace('#', "/");
    let list = |key: &str| truth.value[key].as_array().cloned().unwrap_or_default();
    let samples = list("samples");
    let pairs: Vec<String> =
        samples.iter().map(|s| serde_json::json!([id(&s["a"]), id(&s["b"])]).to_string()).collect();
    for (sample, answer) in samples.iter().zip(answers(exec, "order", "--pairs", &pairs, dir)) {
        assert_eq!(sample["rel"], answer["order"], "{name}: {sample}");
    }
    let pasts = list("causal_pasts");
    let events: Vec<String> = pasts.iter().map(|p| id(&p["event"])).collect();
    for (past, answer) in pasts.iter().zip(answers(exec, "past", "--events", &events, dir)) {
        assert_eq!(past["past_size_without_itself"], answer["size"], "{name}: {past}");
        let frontier: BTreeMap<String, u64> = answer["frontier"]
            .as_object()
            .unwrap()
            .values()
            .map(|e| e.as_str().unwrap().rsplit_once('/').unwrap())
            .map(|(host, n)| (host.to_owned(), n.parse().unwrap()))
            .collect();
        let wanted: BTreeMap<String, u64> =
            counts(&past["frontier"]).into_iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(frontier, wanted, "{name}: {past}");
    }
    let cuts = list("cuts");
    let questions: Vec<String> = cuts.iter().map(|c| c["cut"].to_string()).collect();
    for (cut, answer) in cuts.iter().zip(answers(exec, "cut", "--cuts", &questions, dir)) {
        assert_eq!(cut["consistent"], answer["consistent"], "{name}: {cut}");
    }
}

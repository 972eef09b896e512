//! The recorded executions: what is kept by DEMi's rule must be what DEMi kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use demi_lineage::generate::write_store_file;
use demi_lineage::{BuildOptions, build, execution};
use demi_schemas::summary::ProvenanceRule;
use demi_schemas::{EventRecord, StepKind};
use serde_json::Value;

fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("DEMI_CORPUS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus"), PathBuf::from);
    for path in [path.clone(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")] {
        if path.join("demi").is_dir() {
            return Some(path.join("demi"));
        }
    }
    println!("SKIPPED: no recordings at {} (set DEMI_CORPUS)", path.display());
    None
}

fn load(case: &Path, dir: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(case.join("logs")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let records = texts.iter().flat_map(|t| t.lines()).map(|l| EventRecord::parse(l.as_bytes()).unwrap());
    let file = dir.join("store.parquet");
    write_store_file(&file, records).unwrap();
    file
}

/// Ids of the receives and fired timers kept, read back from the logs by the names of the schedule's events.
fn kept_ids(case: &Path, exec: &Path) -> BTreeSet<String> {
    let mut ids = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(case.join("logs")).unwrap() {
        for line in std::fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let record = EventRecord::parse(line.as_bytes()).unwrap();
            ids.insert(record.id().to_string(), record.msg_id);
        }
    }
    let schedule = execution::load_schedule(exec, true).unwrap();
    let deliveries = schedule.steps.iter().filter(|s| s.kind.is_delivery());
    deliveries.map(|s| ids[s.event.as_ref().unwrap()].clone().unwrap()).collect()
}

#[test]
fn strict_provenance_is_what_was_recorded() {
    let Some(corpus) = corpus() else { return };
    for case in std::fs::read_dir(&corpus).unwrap().map(|e| e.unwrap().path()) {
        let dir = tempfile::tempdir().unwrap();
        let file = load(&case, dir.path());
        let expected: Value =
            serde_json::from_str(&std::fs::read_to_string(case.join("expected.json")).unwrap()).unwrap();
        let strict = &expected["provenance_strict"];
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        let mut wanted: BTreeSet<String> =
            strict["kept_msg_ids"].as_array().unwrap().iter().map(text).collect();
        for id in strict["kept_only_through_a_timer_edge"].as_array().unwrap() {
            assert!(wanted.remove(&text(id)));
        }
        let exec = dir.path().join("exec");
        let options =
            BuildOptions { system: "s".into(), rule: ProvenanceRule::Strict, ..BuildOptions::default() };
        let summary = build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
        println!("{}: {summary:?}", case.display());
        let got = kept_ids(&case, &exec);
        let name = case.display();
        assert_eq!(got.difference(&wanted).collect::<Vec<_>>(), Vec::<&String>::new(), "{name}: too many");
        assert_eq!(wanted.difference(&got).collect::<Vec<_>>(), Vec::<&String>::new(), "{name}: too few");
        assert_eq!(summary.kept_deliveries as usize, wanted.len(), "{name}");
        assert_eq!(summary.unmatched.sender_missing + summary.unmatched.external, 0, "{name}");
        assert_eq!(summary.deliveries, expected["initial"]["deliveries"].as_u64().unwrap());

        let full = execution::load_schedule(&exec, false).unwrap();
        assert_eq!(full.deliveries(), summary.deliveries as usize, "{name}");
        assert_eq!(full.header.deliveries, Some(summary.deliveries));
        if name.to_string().contains("raft") {
            let fields = |k: &str| expected["initial"][k].as_u64().unwrap() as usize;
            assert_eq!(full.steps.iter().filter(|s| s.kind == StepKind::Timer).count(), fields("timers"));
            assert_eq!(full.externals(), fields("externals"), "{name}");
            if summary.channels_in_order {
                crate::common::replay(&full, &[]);
                crate::common::replay(&execution::load_schedule(&exec, true).unwrap(), &[]);
            }
        }
    }
}

//! Broken logs and wrong requests: a clear message, and nothing half-written.

use std::path::Path;

use demi_lineage::generate::write_store_file;
use demi_lineage::{BuildOptions, build, execution};
use demi_schemas::EventRecord;
use demi_schemas::summary::BuildSummary;

fn parse(lines: &str) -> Vec<EventRecord> {
    lines
        .lines()
        .filter(|l| !l.trim().is_empty())
        .map(|l| EventRecord::parse(l.as_bytes()).unwrap())
        .collect()
}

fn try_build(dir: &Path, lines: &str, violation: Option<&str>) -> Result<BuildSummary, String> {
    let file = dir.join("store.parquet");
    write_store_file(&file, parse(lines)).unwrap();
    let violation = violation.map(|v| v.parse().unwrap()).unwrap_or_default();
    let options = BuildOptions { system: "tiny".into(), violation, ..BuildOptions::default() };
    build(&[file.into()], &options, &dir.join("exec"), &mut |_| {}).map_err(|e| e.to_string())
}

const TINY: &str = r#"
{"actor":"alice","seq":1,"kind":"start","external":true}
{"actor":"alice","seq":2,"kind":"receive","msg_id":"1","from":"deadLetters","to":"alice","type":"Go","payload":"Go(\"now\")","external":true,"fields":{"class":"Go"}}
{"actor":"alice","seq":3,"kind":"send","msg_id":"2","from":"alice","to":"bob","type":"Ping","payload":"Ping","external":false}
{"actor":"alice","seq":4,"kind":"timer_set","msg_id":"3","from":"alice","to":"alice","type":"Tick","payload":"Tick","timer":{"name":"tick"}}
{"actor":"alice","seq":5,"kind":"timer_fire","msg_id":"3","from":"alice","to":"alice","type":"Tick","payload":"Tick","timer":{"name":"tick"}}
{"actor":"bob","seq":1,"kind":"start","external":true}
{"actor":"bob","seq":2,"kind":"receive","msg_id":"2","from":"alice","to":"bob","type":"Ping","payload":"Ping","source":"bob.jsonl","offset":77}
{"actor":"bob","seq":3,"kind":"send","msg_id":"4","from":"bob","to":"alice","type":"Pong","payload":"Pong"}
{"actor":"_environment","seq":1,"kind":"send","msg_id":"1","from":"deadLetters","to":"alice","type":"Go","payload":"Go(\"now\")","external":true,"fields":{"class":"Go"}}
{"actor":"_environment","seq":2,"kind":"send","msg_id":"9","from":"deadLetters","to":"bob","type":"Go","payload":"Go(late)","external":true}
"#;

const VIOLATION: &str =
    r#"{"actor":"_monitor","seq":1,"kind":"violation","fields":{"fingerprints":["F"],"affected":["bob"]}}"#;

#[test]
fn a_tiny_build() {
    let dir = tempfile::tempdir().unwrap();
    let summary = try_build(dir.path(), &format!("{TINY}{VIOLATION}"), None).unwrap();
    insta::assert_snapshot!(
        "tiny_schedule",
        std::fs::read_to_string(dir.path().join("exec").join(execution::SCHEDULE)).unwrap()
    );
    insta::assert_snapshot!("tiny_summary", serde_json::to_string_pretty(&summary).unwrap());
    insta::assert_snapshot!(
        "tiny_full_schedule",
        execution::load_schedule(&dir.path().join("exec"), false).unwrap().to_text()
    );
    let text = std::fs::read_to_string(dir.path().join("exec").join(execution::SCHEDULE)).unwrap();
    assert_eq!(
        demi_schemas::Schedule::parse(&text).unwrap().to_text(),
        text,
        "written as the schemas write it"
    );
}

#[test]
fn a_violation_may_name_an_actor_without_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let violation = VIOLATION.replace(r#"["bob"]"#, r#"["carol","bob"]"#);
    let summary = try_build(dir.path(), &format!("{TINY}{violation}"), None).unwrap();
    assert!(summary.warnings.iter().any(|w| w.contains("'carol', of which there is no log")));
    let violation = VIOLATION.replace("bob", "carol");
    let error = try_build(dir.path(), &format!("{TINY}{violation}"), None).unwrap_err();
    assert!(error.contains("no log of actor 'carol'"), "{error}");
}

#[test]
fn a_violation_ends_where_its_record_says() {
    let dir = tempfile::tempdir().unwrap();
    let local = |actor: &str, seq: u64| {
        format!(
            "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"receive\",\"from\":\"x\",\"external\":true}}\n"
        )
    };
    let of = |actor: &str, seq: u64, fields: &str| {
        format!("{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"violation\",\"fields\":{fields}}}\n")
    };
    let logs = |record: String| {
        let others = (1..=5).flat_map(|seq| [local("a", seq), local("b", seq)]);
        others.chain([local("a", 7), local("a", 8), record]).collect::<String>()
    };
    // Of its own actor the record is the end, of others the last event.
    let own = logs(of("a", 6, r#"{"affected":["a"],"fingerprints":["F"]}"#));
    assert_eq!(try_build(dir.path(), &own, None).unwrap().kept, 6);
    assert_eq!(try_build(dir.path(), &own, Some("record:a/6")).unwrap().kept, 6);
    let other = logs(of("_monitor", 1, r#"{"affected":["a"],"fingerprints":["F"]}"#));
    assert_eq!(try_build(dir.path(), &other, None).unwrap().kept, 8);
    // Who was told at an event ends there, the named and the others.
    let told = logs(of("_monitor", 1, r#"{"affected":["a"],"told_at":["a/2","b/3"],"fingerprints":["F"]}"#));
    let summary = try_build(dir.path(), &told, None).unwrap();
    assert_eq!((summary.kept, summary.affected), (6, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(try_build(dir.path(), &told, Some("event:b/3,a/2")).unwrap().kept, 5);
    let unknown = logs(of("_monitor", 1, r#"{"affected":["a"],"told_at":["c/9"]}"#));
    let summary = try_build(dir.path(), &unknown, None).unwrap();
    assert!(summary.warnings.iter().any(|w| w.contains("told at 'c/9', which is in no log")));
    assert_eq!(summary.kept, 8);
}

#[test]
fn wrong_violations_list_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let error = |violation: &str| try_build(dir.path(), TINY, Some(violation)).unwrap_err();
    let none = try_build(dir.path(), TINY, None).unwrap_err();
    assert!(none.contains("no violation record") && none.contains("alice, bob"), "{none}");
    assert!(error("actors:alise").contains("did you mean 'alice'?"));
    assert!(error("event:alice/99").contains("from alice/1 to alice/5"));
    assert!(error("event:carol/1").contains("no log of actor 'carol'"));
    assert!(error("event:alice").contains("is not an event name"));
    assert!(error("nonsense").contains(
        "expected event:ACTOR/SEQ, record:ACTOR/SEQ, line:FILE:LINE, text:REGEX, actors:A,B or none"
    ));
    let nobody = format!(
        "{TINY}{}",
        r#"{"actor":"_monitor","seq":1,"kind":"violation","fields":{"fingerprints":["F"]}}"#
    );
    let nobody = try_build(dir.path(), &nobody, None).unwrap_err();
    assert!(nobody.contains("_monitor/1 names no affected actor"), "{nobody}");
    assert!(!dir.path().join("exec").exists());
}

#[test]
fn an_event_named_on_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let summary = try_build(dir.path(), TINY, Some("event:alice/1")).unwrap();
    assert_eq!((summary.kept, summary.affected), (1, vec!["alice".to_owned()]));
}

#[test]
fn a_cycle_is_named_and_the_rest_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let log = r#"
{"actor":"a","seq":1,"kind":"receive","msg_id":"y","from":"b","to":"a"}
{"actor":"a","seq":2,"kind":"send","msg_id":"x","from":"a","to":"b"}
{"actor":"b","seq":1,"kind":"receive","msg_id":"x","from":"a","to":"b"}
{"actor":"b","seq":2,"kind":"send","msg_id":"y","from":"b","to":"a"}
{"actor":"c","seq":1,"kind":"receive","msg_id":"z","from":"c","to":"c"}
{"actor":"c","seq":2,"kind":"send","msg_id":"z","from":"c","to":"c"}
"#;
    let summary = try_build(dir.path(), log, Some("actors:a,b")).unwrap();
    let text = summary.warnings.join("\n");
    for name in ["a/1", "a/2", "b/1", "b/2", "c/1"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert_eq!(summary.events, 6);
    assert_eq!(summary.matched, 1);
    let full = execution::load_schedule(&dir.path().join("exec"), false).unwrap();
    assert_eq!(full.deliveries(), 3);
}

#[test]
fn an_id_used_twice_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let log = r#"
{"actor":"a","seq":1,"kind":"send","msg_id":"1","to":"b","from":"a","payload":"P"}
{"actor":"a","seq":2,"kind":"send","msg_id":"1","to":"c","from":"a","payload":"P"}
{"actor":"b","seq":1,"kind":"receive","msg_id":"1","from":"a","to":"b","payload":"P"}
{"actor":"c","seq":1,"kind":"receive","msg_id":"1","from":"a","to":"c","payload":"P"}
{"actor":"c","seq":2,"kind":"receive","msg_id":"1","from":"a","to":"c","payload":"P"}
{"actor":"c","seq":3,"kind":"receive","msg_id":"7","from":"ghost","to":"c","payload":"P"}
"#;
    let summary = try_build(dir.path(), log, Some("actors:c")).unwrap();
    assert_eq!((summary.matched, summary.unmatched.duplicate, summary.unmatched.sender_missing), (2, 1, 1));
    assert!(summary.warnings[0].contains("used by more than one send"), "{:?}", summary.warnings);
}

#[test]
fn empty_stores_and_foreign_folders_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = BuildOptions { system: "nowhere".into(), ..BuildOptions::default() };
    let error = build(&[], &options, &dir.path().join("exec"), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("no events of system 'nowhere'"), "{error}");

    let exec = dir.path().join("exec");
    std::fs::create_dir(&exec).unwrap();
    std::fs::write(exec.join("thesis.txt"), "mine").unwrap();
    let error = try_build(dir.path(), TINY, Some("actors:bob")).unwrap_err();
    assert!(error.contains("did not write"), "{error}");
    assert_eq!(std::fs::read_to_string(exec.join("thesis.txt")).unwrap(), "mine");

    std::fs::remove_file(exec.join("thesis.txt")).unwrap();
    try_build(dir.path(), TINY, Some("actors:bob")).unwrap();
    try_build(dir.path(), TINY, Some("actors:alice")).unwrap();
    assert_eq!(execution::load_summary(&exec).unwrap().affected, ["alice"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left behind");
}

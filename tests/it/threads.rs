//! `threads`: schedules of tests with `demi-threads`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::process::Output;

use assert_cmd::Command;

pub const SCHEDULE: &str = concat!(
    r#"{"format":"demi-threads/1","test":"bank","shuttle":"0.9.10","failure":{"kind":"panic","task":"main","message":"a <deposit> is lost","#,
    r#""at":"src/bank.rs:14:5"},"preemptions":1,"least":true,"executions":9,"steps":5,"tasks":[["main",""],["task 1","1"],["task 2","2"]]}"#,
    "\n",
    r#"{"after":{"task":"main","ops":2},"to":"task 1","why":"block","next":{"op":"join task 1","at":"src/bank.rs:13:9"},"did":[{"op":"spawn","at":"src/bank.rs:9:9"},{"op":"spawn","at":"src/bank.rs:9:9"}]}"#,
    "\n",
    r#"{"after":{"task":"task 1","ops":2},"to":"task 2","why":"preempt","forced":true,"next":{"op":"lock account","at":"src/bank.rs:11:9"},"#,
    r#""then":{"op":"lock account","at":"src/bank.rs:10:9"},"holds":["log"],"did":[{"op":"lock account","at":"src/bank.rs:10:9"},{"op":"unlock account","at":"src/bank.rs:10:9"}]}"#,
    "\n",
    r#"{"last":"task 2","did":[{"op":"lock account","at":"src/bank.rs:10:9"}]}"#,
    "\n"
);

/// Of a test that ended with [`SCHEDULE`].
pub const SUMMARY: &str = r#"{
  "format": "demi-threads-summary/1", "test": "bank", "cost": "preempt", "bound": 2, "steps": 20000, "hog": 1000, "seed": 1, "ended": "found",
  "promise": {"bound": 0, "text": "no failure without a preemption: 1,002 executions, all of them; by default the task that runs goes on while it can, and then the next one in the order in which they were spawned; memory is sequentially consistent"},
  "findings": [{
    "violation": ["panic at src/bank.rs:14:5"], "affected": ["main"],
    "failure": {"kind": "panic", "task": "main", "message": "a <deposit> is lost", "at": "src/bank.rs:14:5"},
    "preemptions": 1, "least": true, "steps": 5, "by": "the bounded half", "executions": 1007, "schedule": "bank.jsonl"
  }],
  "levels": [
    {"cost": 0, "executions": 1002, "steps": 9018, "pruned": 2, "complete": true},
    {"cost": 1, "executions": 5, "steps": 45, "pruned": 0, "complete": false},
    {"cost": 2, "executions": 0, "steps": 0, "pruned": 0, "complete": false}
  ],
  "random": 128
}"#;

/// Summaries of a test that found nothing, by the status that each is to end with.
pub fn without_findings() -> [(i32, String); 3] {
    let begin = SUMMARY.find("[{\n    \"violation\"").unwrap();
    let end = SUMMARY.find("}],\n  \"levels\"").unwrap() + 2;
    // The budget ended, the bound was reached, the test was not the same each time.
    [(4, 2, false), (0, 0, false), (3, 0, true)].map(|(status, bound, incomplete)| {
        let mut summary: serde_json::Value =
            serde_json::from_str(&SUMMARY.replacen(&SUMMARY[begin..end], "[]", 1)).unwrap();
        summary["bound"] = bound.into();
        if incomplete {
            summary["incomplete"] = "3 executions went another way the second time".into();
            summary["promise"] = serde_json::Value::Null;
        }
        (status, summary.to_string())
    })
}

/// A folder with a test's summary, changed from one text to another, and its schedule.
fn tested(from: &str, to: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert!(SUMMARY.contains(from), "{from}");
    std::fs::write(folder.path().join("bank.summary.json"), SUMMARY.replacen(from, to, 1)).unwrap();
    std::fs::write(folder.path().join("bank.jsonl"), SCHEDULE).unwrap();
    folder
}

fn run(folder: &tempfile::TempDir, args: &[&str]) -> Output {
    Command::cargo_bin("demi-lineage").unwrap().current_dir(folder).args(args).output().unwrap()
}

#[test]
fn a_schedule_is_shown_with_tasks_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bank.jsonl"), SCHEDULE).unwrap();
    let output = run(&folder, &["threads", "show", "bank.jsonl"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("main panicked at src/bank.rs:14:5: a <deposit> is lost"), "{text}");
    assert!(text.contains(
        ">>> preemption of task 1 before lock account at src/bank.rs:11:9, by task 2, which does lock account at src/bank.rs:10:9; it holds log"
    ));
    let json = run(&folder, &["threads", "show", "bank.jsonl", "--json"]).stdout;
    let header: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&header["preemptions"], &header["least"]), (&1.into(), &true.into()));
}

#[test]
fn a_page_shows_a_lane_for_each_task_and_trusts_no_text() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bank.jsonl"), SCHEDULE).unwrap();
    let output = run(&folder, &["threads", "report", "bank.jsonl", "--html", "page.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("a &lt;deposit&gt; is lost") && !page.contains("<deposit>"));
    assert_eq!(page.matches("<th scope=\"col\">").count(), 3);
    assert_eq!(page.matches("switch preempt").count(), 1);
}

#[test]
fn a_schedule_is_exported_as_shuttle_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let with = SCHEDULE.replace(
        "\"src/bank.rs:10:9\"}]}\n{\"last\"",
        "\"src/bank.rs:10:9\"}]}\n{\"shuttle\":\"9101030028\",\"last\"",
    );
    assert_ne!(with, SCHEDULE);
    std::fs::write(folder.path().join("with.jsonl"), with).unwrap();
    std::fs::write(folder.path().join("without.jsonl"), SCHEDULE).unwrap();
    let output = run(&folder, &["threads", "export", "with.jsonl", "--format", "shuttle"]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"9101030028\n"[..]));
    let output = run(&folder, &["threads", "export", "without.jsonl", "--format", "shuttle"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("DEMI_REPLAY"), "{output:?}");
}

#[test]
fn what_is_no_schedule_ends_with_status_2_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other.jsonl"), "{\"format\":\"demi-schedule/1\"}\n").unwrap();
    let output = run(&folder, &["threads", "show", "other.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("the format is \"demi-schedule/1\", not \"demi-threads/1\""), "{text}");
    assert_eq!(run(&folder, &["threads", "show", "absent.jsonl"]).status.code(), Some(2));
}

#[test]
fn a_folder_is_shown_with_the_status_of_explore() {
    let found = "\"ended\": \"found\"";
    let folder = tested(found, found);
    let output = run(&folder, &["threads", "show", "."]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("preemptions: 1, the fewest") && text.contains("schedule: bank.jsonl"), "{text}");
    assert!(text.contains("no failure without a preemption: 1,002 executions, all of them"), "{text}");
    assert!(
        text.contains("preemptions 0: 1,002 executions, 9,018 steps, 2 came to a known state, all of them"),
        "{text}"
    );

    for (status, summary) in without_findings() {
        std::fs::write(folder.path().join("bank.summary.json"), summary).unwrap();
        let output = run(&folder, &["threads", "show", "bank.summary.json"]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
    let empty = tempfile::tempdir().unwrap();
    let output = run(&empty, &["threads", "show", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no summary of a test"), "{output:?}");
}

#[test]
fn a_folder_that_contradicts_itself_is_not_verified() {
    let found = "\"ended\": \"found\"";
    let output = run(&tested(found, found), &["threads", "verify", "."]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("its schedule has 1 preemptions and 5 steps"), "{text}");
    assert!(
        text.contains("not checked: that there are no other failures") && text.contains("DEMI_VERIFY=."),
        "{text}"
    );
    for (from, to, why) in [
        ("1,002 executions", "1,003 executions", "the promise in words is not that in figures"),
        ("\"bound\": 0", "\"bound\": 1", "executions of cost 1 were left out"),
        (found, "\"ended\": \"complete\"", "it says that it ended as"),
        ("\"least\": true", "\"least\": false", "its first line says something else than the summary"),
        ("\"preemptions\": 1", "\"preemptions\": 0", "its first line says something else than the summary"),
        (
            "panic at src/bank.rs:14:5",
            "panic at src/bank.rs:15:5",
            "the failure is not of the class that it says",
        ),
        ("\"pruned\": 2", "\"pruned\": 2000", "the figures of cost 0 contradict each other"),
        (
            "\"schedule\": \"bank.jsonl\"",
            "\"schedule\": \"../bank.jsonl\"",
            "is no name of a file in its folder",
        ),
    ] {
        let output = run(&tested(from, to), &["threads", "verify", "."]);
        assert_eq!(output.status.code(), Some(1), "{to}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{to}: {output:?}");
    }
    for (from, to, why) in [
        ("\"preempt\"", "\"preemptions\"", "it says 1 preemptions, and has 0"),
        (
            "\"ops\":2},\"to\":\"task 2\"",
            "\"ops\":3},\"to\":\"task 2\"",
            "do not agree on how many operations task 1 has made",
        ),
    ] {
        let folder = tested(found, found);
        assert!(SCHEDULE.contains(from), "{from}");
        std::fs::write(folder.path().join("bank.jsonl"), SCHEDULE.replacen(from, to, 1)).unwrap();
        let output = run(&folder, &["threads", "verify", "."]);
        assert_eq!(output.status.code(), Some(1), "{to}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{to}: {output:?}");
    }
    let folder = tested(found, found);
    std::fs::remove_file(folder.path().join("bank.jsonl")).unwrap();
    assert_eq!(run(&folder, &["threads", "verify", "."]).status.code(), Some(2));
    let output = run(&folder, &["verify", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("demi-lineage threads verify ."), "{output:?}");
}

/// What a program wrote with `demi_log::operation!`: a lock goes from one thread to the other.
#[test]
fn a_log_of_operations_is_ordered_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut seq = std::collections::BTreeMap::new();
    let operations = [
        ("main", "spawn", "ann"),
        ("main", "spawn", "bob"),
        ("ann", "lock", "account"),
        ("ann", "unlock", "account"),
        ("bob", "lock", "account"),
        ("bob", "unlock", "account"),
        ("main", "join", "ann"),
        ("main", "join", "bob"),
        ("main", "read", "account"),
    ];
    let line = |(at, (actor, what, on)): (usize, &(&'static str, &str, &str))| {
        let seq = seq.entry(*actor).or_insert(0);
        *seq += 1;
        format!(
            "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"local\",\"type\":\"{what}\",\"payload\":\"{on}\",\"operation\":{},\"process\":7}}\n",
            at + 1
        )
    };
    let log: String = operations.iter().enumerate().map(line).collect();
    std::fs::write(folder.path().join("events.jsonl"), log).unwrap();
    let output = run(&folder, &["build", "events.jsonl", "--violation", "none", "--out", "exec"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && text.contains("edges besides messages: 5 by operations of threads"),
        "{text}"
    );
    let path = run(&folder, &["query", "exec", "path", "ann/1", "bob/1", "--json"]);
    let text = String::from_utf8(path.stdout).unwrap();
    assert!(path.status.success() && text.contains("\"operation\""), "{text}");
    let past = run(&folder, &["query", "exec", "past", "bob/2"]);
    let text = String::from_utf8(past.stdout).unwrap();
    assert!(text.contains("ann/2") && !text.contains("main/3"), "{text}");
    assert!(run(&folder, &["report", "exec", "--html", "page.html"]).status.success());
}

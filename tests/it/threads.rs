//! `threads`: schedules of tests with `demi-threads`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::process::Output;

use assert_cmd::Command;

pub const SCHEDULE: &str = concat!(
    r#"{"format":"demi-threads/1","test":"bank","shuttle":"0.9.10","failure":{"kind":"panic","task":"main","message":"a <deposit> is lost","#,
    r#""at":"src/bank.rs:14:5"},"preemptions":1,"least":true,"executions":9,"steps":9,"tasks":[["main",""],["task 1","1"],["task 2","2"]]}"#,
    "\n",
    r#"{"after":{"task":"main","ops":2},"to":"task 1","why":"block","next":{"op":"join task 1","at":"src/bank.rs:13:9"},"did":[{"op":"spawn","at":"src/bank.rs:9:9"}]}"#,
    "\n",
    r#"{"after":{"task":"task 1","ops":2},"to":"task 2","why":"preempt","forced":true,"next":{"op":"lock account","at":"src/bank.rs:11:9"},"#,
    r#""then":{"op":"lock account","at":"src/bank.rs:10:9"},"holds":["log"],"did":[{"op":"lock account","at":"src/bank.rs:10:9"}]}"#,
    "\n",
    r#"{"last":"task 2","did":[{"op":"lock account","at":"src/bank.rs:10:9"}]}"#,
    "\n"
);

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

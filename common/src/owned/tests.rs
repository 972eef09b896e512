use std::fs;

use super::*;

fn written(out: &Path, kind: Kind, name: &str) -> Result<(), FolderError> {
    let new = Replacement::begin(out, kind, &[])?;
    let path = new.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "x").unwrap();
    new.finish()
}

fn names(folder: &Path) -> Vec<String> {
    check::files_in(folder, &[]).unwrap()
}

#[test]
fn its_own_folder_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    written(&out, Kind::Fuzzed, "logs/a.jsonl").unwrap();
    written(&out, Kind::Fuzzed, "logs/b.jsonl").unwrap();
    assert_eq!(names(&out), ["logs/b.jsonl"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn foreign_files_are_named_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    written(&out, Kind::Fuzzed, "logs/a.jsonl").unwrap();
    fs::write(out.join("logs/mine"), "precious").unwrap();
    let error = written(&out, Kind::Fuzzed, "logs/b.jsonl").unwrap_err();
    assert!(matches!(&error, FolderError::Foreign { file, .. } if file == "logs/mine"), "{error}");
    assert_eq!(names(&out), ["logs/a.jsonl", "logs/mine"]);
}

#[test]
fn a_file_that_comes_while_the_folder_is_made_stays() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let new = Replacement::begin(&out, Kind::Fuzzed, &[]).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("mine"), "precious").unwrap();
    assert!(matches!(new.finish(), Err(FolderError::Unmarked { .. })));
    assert_eq!(names(&out), ["mine"]);
}

#[test]
fn folders_without_our_marker_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    assert!(check(&out, Kind::Minimized, &[]).is_ok(), "it is empty");
    fs::write(out.join("summary.json"), "{}").unwrap();
    assert!(matches!(check(&out, Kind::Minimized, &[]), Err(FolderError::Unmarked { .. })));
    for text in ["", "{}", r#"{"version": 2}"#, r#"{"version": 1}"#] {
        fs::write(out.join(MARKER), text).unwrap();
        assert!(matches!(check(&out, Kind::Minimized, &[]), Err(FolderError::OtherMarker { .. })), "{text}");
    }
    fs::write(dir.path().join("file"), "x").unwrap();
    assert!(matches!(check(&dir.path().join("file"), Kind::Demo, &[]), Err(FolderError::NoFolder(_))));
}

#[test]
fn another_kind_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    written(&out, Kind::Execution, "a").unwrap();
    assert!(matches!(written(&out, Kind::Minimized, "b"), Err(FolderError::OtherKind { .. })));
    assert_eq!(names(&out), ["a"]);
}

#[test]
fn what_is_read_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    written(&out, Kind::Minimized, "schedule.jsonl").unwrap();
    let input = out.join("schedule.jsonl");
    let dotted = dir.path().join("out/../out/schedule.jsonl");
    let missing = dir.path().join("absent/ledger");
    for (out, input) in [
        (&out, &input),
        (&out, &dotted),
        (&out, &out),
        (&dir.path().to_owned(), &input),
        (&dir.path().join("absent"), &missing),
    ] {
        let error = check(out, Kind::Minimized, &[input]).unwrap_err();
        assert!(matches!(error, FolderError::Input { .. }), "{error}");
    }
    assert!(
        check(&dir.path().join("ou"), Kind::Minimized, &[&input]).is_ok(),
        "a part of a name is another folder"
    );
}

#[test]
fn entries_of_other_commands_are_ours() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut new = Replacement::begin(&out, Kind::Demo, &[]).unwrap();
    new.later(&["store/", "report.html"]);
    new.finish().unwrap();
    fs::create_dir(out.join("store")).unwrap();
    fs::write(out.join("store/anything"), "x").unwrap();
    fs::write(out.join("report.html"), "x").unwrap();
    assert!(check(&out, Kind::Demo, &[]).is_ok());
    fs::write(out.join("mine"), "x").unwrap();
    assert!(check(&out, Kind::Demo, &[]).is_err());
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_its_target_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (out, link) = (dir.path().join("deep/out"), dir.path().join("link"));
    written(&out, Kind::Fuzzed, "a").unwrap();
    std::os::unix::fs::symlink(&out, &link).unwrap();
    written(&link, Kind::Fuzzed, "b").unwrap();
    assert!(link.is_symlink());
    assert_eq!(names(&out), ["b"]);
    std::os::unix::fs::symlink(dir.path(), out.join("c")).unwrap();
    assert!(
        matches!(check(&out, Kind::Fuzzed, &[]), Err(FolderError::Foreign { .. })),
        "a link in it is foreign"
    );
}

#[test]
fn stages_of_killed_processes_are_removed_and_live_ones_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (dead, live) = (dir.path().join(format!("{STAGE}dead")), dir.path().join(format!("{STAGE}live")));
    for stage in [&dead, &live] {
        fs::create_dir_all(stage.join("new")).unwrap();
        fs::write(stage.join("lock"), "").unwrap();
    }
    let held = fs::File::open(live.join("lock")).unwrap();
    held.lock().unwrap();
    written(&dir.path().join("out"), Kind::Fuzzed, "a").unwrap();
    assert!(!dead.exists() && live.exists());
}

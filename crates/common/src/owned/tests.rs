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
    check::files_in(folder).unwrap()
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
fn a_removed_folder_is_gone_whenever_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    remove(&out, Kind::Fuzzed).unwrap();
    written(&out, Kind::Fuzzed, "logs/a.jsonl").unwrap();
    assert!(matches!(remove(&out, Kind::Demo), Err(FolderError::OtherKind { .. })));
    fs::write(out.join("mine"), "precious").unwrap();
    assert!(matches!(remove(&out, Kind::Fuzzed), Err(FolderError::Foreign { .. })));
    fs::remove_file(out.join("mine")).unwrap();
    // Killed when the folder had left its place, and half of it was gone.
    let killed = dir.path().join(format!("{STAGE}killed"));
    fs::create_dir_all(killed.join("scratch/logs")).unwrap();
    fs::write(killed.join("lock"), "").unwrap();
    fs::write(killed.join("scratch/logs/b.jsonl"), "deleted").unwrap();
    remove(&out, Kind::Fuzzed).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
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
fn what_other_commands_write_is_ours_and_what_lies_beside_it_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: PathBuf| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    };
    for (kind, ours, foreign) in [
        (
            Kind::Execution,
            &["tables/messages.parquet", "tables/messages.sum", "tables/.demi-a1/messages.parquet"][..],
            &[
                "tables/notes.txt",
                "tables/messages.parquet.bak",
                "tables/sub/messages.parquet",
                "tables/.demi-x",
                "other/messages.parquet",
            ][..],
        ),
        (
            Kind::Demo,
            &["report.html", "logs.jsonl.zst"],
            // A store that somebody made there is none of the demo's.
            &["store/events/_delta_log/00.json", "store/locks/0.lock", "exec/notes.txt", "report.html.bak"],
        ),
        (Kind::Minimized, &[], &["tables/messages.parquet", "store/.demi-reserve"]),
    ] {
        for &foreign in foreign {
            let out = dir.path().join(format!("{kind:?}"));
            let _ = fs::remove_dir_all(&out);
            written(&out, kind, "a").unwrap();
            ours.iter().for_each(|name| put(out.join(name)));
            assert!(check(&out, kind, &[]).is_ok(), "{kind:?}");
            put(out.join(foreign));
            let error = written(&out, kind, "a").unwrap_err();
            assert!(matches!(&error, FolderError::Foreign { file, .. } if file == foreign), "{error}");
            assert!(out.join(foreign).exists());
        }
    }
}

#[test]
fn a_folder_in_it_with_a_marker_is_held_to_that() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    written(&out, Kind::Demo, "README").unwrap();
    written(&out.join("exec"), Kind::Execution, "rows/0.parquet").unwrap();
    written(&out.join("store/orders/s"), Kind::Execution, "rows/0.parquet").unwrap();
    fs::create_dir(out.join("exec/tables")).unwrap();
    fs::write(out.join("exec/tables/messages.parquet"), "x").unwrap();
    assert!(check(&out, Kind::Demo, &[]).is_ok());
    for foreign in ["exec/rows/1.parquet", "exec/tables/mine", "store/orders/s/mine", "store/orders/mine"] {
        fs::write(out.join(foreign), "x").unwrap();
        let error = check(&out, Kind::Demo, &[]).unwrap_err();
        assert!(matches!(&error, FolderError::Foreign { file, .. } if file == foreign), "{error}");
        fs::remove_file(out.join(foreign)).unwrap();
    }
    // A marker that cannot be read makes everything foreign.
    fs::write(out.join("exec").join(MARKER), "{").unwrap();
    assert!(check(&out, Kind::Demo, &[]).is_err());
}

#[test]
fn folders_that_earlier_versions_did_not_list_are_looked_into() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    written(&out, Kind::Execution, "a").unwrap();
    let text = fs::read_to_string(out.join(MARKER)).unwrap().replace("\"a\"", "\"a\", \"tables/\"");
    fs::write(out.join(MARKER), text).unwrap();
    fs::create_dir(out.join("tables")).unwrap();
    fs::write(out.join("tables/messages.parquet"), "x").unwrap();
    assert!(check(&out, Kind::Execution, &[]).is_ok() && is_whole(&out, Kind::Execution));
    fs::write(out.join("tables/notes.txt"), "x").unwrap();
    assert!(check(&out, Kind::Execution, &[]).is_err());
}

#[test]
fn a_folder_that_lacks_a_file_is_not_whole() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    assert!(!is_whole(&out, Kind::Execution));
    written(&out, Kind::Execution, "logs/a").unwrap();
    assert!(is_whole(&out, Kind::Execution) && !is_whole(&out, Kind::Demo));
    fs::remove_file(out.join("logs/a")).unwrap();
    assert!(!is_whole(&out, Kind::Execution));
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

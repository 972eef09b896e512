//! The modules of the page's script, in Node.

use std::path::{Path, PathBuf};
use std::process::Command;

use demi_replay::registry::NoModels;
use demi_report::{LoadOptions, html, load};

/// The folder of the tests that are written in JavaScript.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page")
}

/// Node, where it is installed.
pub(crate) fn node() -> Option<Command> {
    let there = Command::new("node").arg("--version").output().is_ok_and(|o| o.status.success());
    if !there {
        println!("skipped: no node");
    }
    there.then(|| Command::new("node"))
}

#[test]
fn modules_of_the_script_pass_their_tests() {
    let Some(mut node) = node() else { return };
    let files = std::fs::read_dir(folder()).unwrap().map(|f| f.unwrap().path());
    let mut tests: Vec<PathBuf> = files.filter(|f| f.to_string_lossy().ends_with(".test.js")).collect();
    tests.sort();
    let output = node.args(["--test", "--test-reporter=tap"]).args(&tests).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for test in ["trace", "causality", "search", "inspector", "view", "counts"] {
        assert!(tests.iter().any(|t| t.ends_with(format!("{test}.test.js"))), "{test}");
    }
}

/// The packed script is one that a browser takes, and has no documentation in it.
#[test]
fn the_packed_script_is_well_formed() {
    let Some(mut node) = node() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.parquet");
    let record = serde_json::from_str(r#"{"actor":"a","seq":1,"kind":"start"}"#).unwrap();
    demi_lineage::generate::write_store_file(&file, vec![record]).unwrap();
    let exec = dir.path().join("exec");
    let options = demi_lineage::BuildOptions {
        violation: demi_lineage::ViolationSpec::None,
        ..demi_lineage::BuildOptions::default()
    };
    demi_lineage::build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    let page = html(&load(&NoModels, &exec, &LoadOptions::default()).unwrap()).unwrap();
    let script = page.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    assert!(!script.contains("@param") && script.contains("class App"), "{script}");
    let file = dir.path().join("script.js");
    std::fs::write(&file, script).unwrap();
    let output = node.arg("--check").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

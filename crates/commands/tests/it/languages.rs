//! The examples without an SDK: models in C and in Go keep to the protocol, and their bugs are found and minimized.

use std::path::Path;
use std::process::Command;

use crate::export::{program, run};

/// Compiles an example with a compiler, if there is one, and takes it from `model check` to the result.
fn example(compiler: &str, args: &[&str], source: &str, expected: &str) {
    if Command::new(compiler).arg("version").output().is_err() {
        eprintln!("skipped: there is no {compiler}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/examples").canonicalize().unwrap();
    let path = examples.join(source);
    let name = path.file_stem().unwrap().to_str().unwrap();
    let built = Command::new(compiler)
        .args(args)
        .args(["-o", name])
        .arg(&path)
        .env("GOCACHE", at.join("cache"))
        .env("GOFLAGS", "-mod=mod")
        .current_dir(at)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let scenario = examples.join(name).with_extension("toml").display().to_string();
    run(at, &["model", "check", "--", &format!("./{name}")]);
    let fuzz = ["fuzz", "--scenario", &scenario, "--seed", "1", "--out", "found", "--minimize", "min"];
    let output = Command::new(program())
        .args(fuzz)
        .args(["--budget", "2000r", "--expect", "violation"])
        .current_dir(at)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains(expected), "{told}");
}

#[test]
fn a_model_in_c_needs_no_library() {
    example("cc", &["-std=c11"], "ring.c", "4 steps, 2 deliveries");
}

#[test]
fn a_model_in_go_needs_no_library() {
    example("go", &["build"], "counter.go", "13 steps, 10 deliveries");
}

//! The program, run once.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// Its exit status, and what it writes to standard output and standard error.
pub fn output(arguments: &[&str]) -> (i32, String, String) {
    told(Path::new("."), arguments)
}

/// The same, where it runs in a folder.
pub fn told(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("demi-lineage").unwrap();
    let output = command.current_dir(folder).arg("-q").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// The JSON that it writes, where it succeeds.
pub fn demi(arguments: &[&str]) -> Value {
    let (code, told, error) = output(arguments);
    assert_eq!(code, 0, "{arguments:?}: {told}{error}");
    serde_json::from_str(&told).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {told}{error}"))
}

/// What it writes in a folder, where it succeeds.
pub fn done(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, error) = told(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{error}");
    out
}

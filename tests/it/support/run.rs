//! The program, run once.

use assert_cmd::Command;
use serde_json::Value;

/// Its exit status, and what it writes to standard output and standard error.
pub fn output(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// The JSON that it writes, where it succeeds.
pub fn demi(arguments: &[&str]) -> Value {
    let (code, told, error) = output(arguments);
    assert_eq!(code, 0, "{arguments:?}: {told}{error}");
    serde_json::from_str(&told).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {told}{error}"))
}

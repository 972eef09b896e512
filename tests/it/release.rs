//! What a tag must agree with before anything is released.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::path::Path;
use std::process::Command;

/// The script, run in a copy of the files that it reads.
fn told(changelog: &str, tag: &[&str]) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".ci")).unwrap();
    for file in [".ci/release", "Cargo.toml", "Cargo.lock", "pyproject.toml"] {
        std::fs::copy(root.join(file), folder.path().join(file)).unwrap();
    }
    std::fs::write(folder.path().join("CHANGELOG.md"), changelog).unwrap();
    let output = Command::new("bash").arg(folder.path().join(".ci/release")).args(tag).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn only_a_tag_of_the_version_is_released() {
    let version = env!("CARGO_PKG_VERSION");
    let (tag, section) = (format!("v{version}"), format!("# Changelog\n\n## {version} (2030-01-01)\n"));
    assert_eq!(told(&section, &[&tag]), (true, format!("{tag} may be released\n")));
    for (changelog, tag, says) in [
        (section.as_str(), "v999.0.0", "is not that of the version"),
        (section.as_str(), version, "is not that of the version"),
        ("# Changelog\n\n## Unreleased\n", tag.as_str(), "CHANGELOG.md has no section"),
    ] {
        let (released, text) = told(changelog, &[tag]);
        assert!(!released && text.contains(says), "{tag}: {text}");
    }
    assert!(told(&section, &[]).1.contains("usage"), "a tag is wanted");
}

//! What `demi-lineage demo` writes, made once for all tests that begin with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assert_cmd::Command;

/// Puts what the demo wrote into a folder.
pub fn copy_into(folder: &Path) {
    copy(&made().join("demi-demo"), folder);
}

/// The folder in which the demo ran: it holds `demi-demo`, and what was printed in `stdout`.
pub fn made() -> &'static Path {
    static DEMO: OnceLock<PathBuf> = OnceLock::new();
    DEMO.get_or_init(|| {
        let tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // What processes left that are gone.
        for entry in fs::read_dir(tests).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.strip_prefix("demo-").is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let room = tests.join(format!("demo-{}", std::process::id()));
        fs::create_dir_all(&room).unwrap();
        let made =
            Command::cargo_bin("demi-lineage").unwrap().arg("demo").current_dir(&room).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        fs::write(room.join("stdout"), &made.stdout).unwrap();
        room
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

//! Scripts that use pages in a browser.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Python with the browser script's package; a build machine must have it and Chromium.
pub fn browser() -> Option<PathBuf> {
    let python = std::env::var_os("DEMI_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let ready = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    let have = ready(Command::new(&python).args(["-c", "import websockets"]))
        && ready(Command::new("sh").args(["-c", "command -v chromium"]));
    if !have {
        assert!(std::env::var_os("CI").is_none(), "chromium and the Python package websockets must be there");
        println!("skipped: no chromium, or no Python with websockets (set DEMI_PYTHON)");
        return None;
    }
    Some(python)
}

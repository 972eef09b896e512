//! `build` and `minimize` at a violation, one at a time.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::checkpoint::Told;
use super::config::MonitorConfig;
use crate::metrics::Metrics;

/// How often an execution is tried.
pub(crate) const ATTEMPTS: u32 = 6;
/// Pause after the first failure; each is eight times the one before.
const PAUSE: Duration = Duration::from_secs(1);
/// The file in a violation's folder that says why no execution was built.
const FAILED: &str = "failed.txt";
/// Most executions that are kept: each may hold all that ever happened.
const MOST: usize = 100;
/// How often it is looked whether a record is in the store.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until a frame is in the store.
pub(crate) async fn committed(metrics: &Metrics, lsn: u64) {
    let lsn = i64::try_from(lsn).unwrap_or(i64::MAX);
    while metrics.committed_lsn.get() < lsn {
        tokio::time::sleep(LOOK).await;
    }
}

/// The folder of a violation's results.
pub(crate) fn folder(store: &Path, told: &Told) -> PathBuf {
    store.join("violations").join(&told.id)
}

/// How long to wait after so many failures.
pub(crate) fn pause(attempts: u32) -> Duration {
    PAUSE * 8_u32.saturating_pow(attempts.saturating_sub(1))
}

/// Writes down why no execution was built.
pub(crate) fn give_up(store: &Path, told: &Told, reason: &str) {
    let folder = folder(store, told);
    // Where there is no folder there is nothing that could be taken for a result.
    if folder.is_dir() {
        let _ = demi_common::durable::write(&folder.join(FAILED), format!("{reason}\n").as_bytes());
    }
}

/// Builds the execution that led to a violation, and minimizes it where that is wanted. What is there already stays.
///
/// # Errors
/// What went wrong, in words.
pub(crate) async fn run(config: &MonitorConfig, store: &Path, told: &Told) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    let folder = folder(store, told);
    let execution = folder.join("execution");
    let dir = store.join("violations");
    let held = std::fs::read_dir(&dir).map(|all| all.count()).unwrap_or(0);
    if held >= MOST && !folder.exists() {
        return Err(format!("{} has {MOST} executions: remove some to have more", dir.display()));
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let alert = serde_json::to_vec_pretty(told).unwrap_or_default();
    let path = folder.join("violation.json");
    demi_common::durable::replace(&path, |file| file.write_all(&alert))
        .map_err(|e: std::io::Error| format!("{}: {e}", path.display()))?;
    // Each actor at the event with which it told what fails.
    let first = &told.first;
    let mut events = first.told_at.clone();
    if !events.contains(&first.event) && events.len() < 2 {
        events = vec![first.event.clone()];
    }
    let violation = format!("event:{}", events.join(","));
    if !execution.exists() {
        let arguments: [&std::ffi::OsStr; 10] = [
            "-q".as_ref(),
            "build".as_ref(),
            "--store".as_ref(),
            store.as_os_str(),
            "--system".as_ref(),
            config.system.as_ref(),
            "--violation".as_ref(),
            violation.as_ref(),
            "--out".as_ref(),
            execution.as_os_str(),
        ];
        call(&program, arguments.map(OsString::from).to_vec()).await?;
    }
    let done = || {
        let _ = std::fs::remove_file(folder.join(FAILED));
    };
    let Some(minimize) = &config.minimize else {
        done();
        return Ok(());
    };
    let minimized = folder.join("minimized");
    if !minimized.exists() {
        let arguments: [&std::ffi::OsStr; 9] = [
            "-q".as_ref(),
            "minimize".as_ref(),
            execution.as_os_str(),
            "--scenario".as_ref(),
            minimize.scenario.as_os_str(),
            "--budget".as_ref(),
            minimize.budget.as_ref(),
            "--out".as_ref(),
            minimized.as_os_str(),
        ];
        call(&program, arguments.map(OsString::from).to_vec()).await?;
    }
    done();
    Ok(())
}

async fn call(program: &Path, arguments: Vec<OsString>) -> Result<(), String> {
    let mut command = Command::new(program);
    // It ends with the daemon; at the next start it is done anew.
    command
        .args(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = command.output().await.map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let what = arguments.get(1).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
    Err(format!("{what} ended with {}: {last}", output.status))
}

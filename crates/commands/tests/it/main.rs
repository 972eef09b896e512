//! The commands of a program with a model of its own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

mod export;
mod fuzz;
mod generated_code;
mod hostile;
mod languages;
mod model_check;
mod new_model;
mod permission;
mod programs;

/// Whether there is a Python to run models with; says so where there is none.
fn python() -> bool {
    let there = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no python3");
    }
    there
}

//! The documents say of passes, strategies and baselines what the registries say.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_minimize::Phases;
use demi_minimize::plan::PLAN;
use demi_minimize::reduce::registry::PASSES;

const PAGE: &str = include_str!("../../../docs/passes.md");

/// The rows of the table under a heading, without its head.
fn rows(heading: &str) -> Vec<&'static str> {
    let section = PAGE.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section.lines().filter(|line| line.starts_with('|')).skip(2).collect()
}

#[test]
fn the_page_has_a_row_for_each_pass() {
    let told: Vec<String> =
        PASSES.iter().map(|entry| format!("| {} | {} | {} |", entry.name, entry.gate, entry.doc)).collect();
    assert_eq!(rows("Passes"), told, "docs/passes.md should have these rows:\n{}\n", told.join("\n"));
}

#[test]
fn the_page_has_a_row_for_each_strategy() {
    let names: Vec<&str> = rows("Strategies").iter().map(|row| row.split(" | ").next().unwrap()).collect();
    let mut told: Vec<String> = Vec::new();
    for turn in &PLAN {
        let name = format!("| {}", turn.name);
        if !told.contains(&name) {
            told.push(name);
        }
    }
    assert_eq!(names, told);
}

#[test]
fn the_page_has_a_row_for_each_baseline() {
    let told: Vec<String> = Phases::ALL.iter().map(|p| format!("| {} | {} |", p.name(), p.doc())).collect();
    assert_eq!(rows("Baselines"), told);
}

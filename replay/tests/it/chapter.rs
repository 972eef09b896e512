//! The chapter on writing a model: every piece of code in it is part of an example that is compiled, and the examples do
//! what it says.

use std::path::Path;

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{Names, Simulator};
use demi_schemas::Scenario;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Lines without what stands before and after them.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The blocks of code in a text, with the line in which each begins.
fn blocks(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut open = None;
    for (number, line) in text.lines().enumerate() {
        match (line.trim(), &mut open) {
            ("```rust" | "```toml", None) => open = Some((number + 1, Vec::new())),
            ("```", Some(_)) => blocks.extend(open.take()),
            (line, Some((_, lines))) if !line.is_empty() => lines.push(line),
            _ => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

#[test]
fn every_piece_of_code_is_part_of_an_example() {
    let chapter = read("../docs/writing-a-model.md");
    let sources = ["token_ring", "registration", "lock"].map(|name| read(&format!("examples/{name}.rs")));
    let blocks = blocks(&chapter);
    assert!(blocks.len() >= 12, "{}", blocks.len());
    for (line, block) in blocks {
        let stands = |source: &String| lines(source).windows(block.len()).any(|part| part == block);
        assert!(sources.iter().any(stands), "the code at line {line} of the chapter is in no example");
    }
}

#[test]
fn every_file_that_the_chapter_names_is_there() {
    let chapter = read("../docs/writing-a-model.md");
    let place = |word: &&str| ["replay/", "models/"].iter().any(|folder| word.starts_with(folder));
    let named = chapter.split('`').filter(place).filter(|word| !word.contains(' '));
    let mut count = 0;
    for file in named {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file).exists(), "{file}");
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn the_example_finds_its_bug() {
    let scenario = Scenario::parse(crate::registration::SCENARIO).unwrap();
    let mut names = Names::default();
    let model = crate::registration::Registration::new(&mut names);
    let mut sim = Simulator::new(model, names, &scenario).unwrap();
    let options = FuzzOptions::new(1, 100, 50);
    let found = fuzz(&mut sim, &scenario, &options, &mut |_| true).unwrap().unwrap();
    assert_eq!((found.violation, found.affected), (vec!["CountedTwice".into()], vec!["server".into()]));
    assert_eq!(found.externals, 3);
}

#[test]
fn the_small_example_is_small_and_finds_its_bug() {
    assert!(read("examples/token_ring.rs").lines().count() < 80);
    let scenario = Scenario::parse("model = 'token-ring'\nnetwork = 'fifo'").unwrap();
    let mut names = Names::default();
    let ring = crate::token_ring::Ring((1..=4).map(|n| names.id(&format!("node-{n}"))).collect());
    let mut sim = Simulator::new(ring, names, &scenario).unwrap();
    let options = FuzzOptions::new(2, 100, 50);
    let found = fuzz(&mut sim, &scenario, &options, &mut |_| true).unwrap().unwrap();
    assert_eq!((found.violation, found.affected.len()), (vec!["OneToken".into()], 2));
}

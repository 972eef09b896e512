//! The structure that CONTRIBUTING.md promises: no circle of imports over more than two files. That a file names the module which it
//! is a part of is no import.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Most files of a circle of imports.
const MOST_FILES: usize = 2;

/// A module of a crate: the names that lead to it.
type Module = Vec<String>;

/// The folders of the members of the workspace, and of the package at its root.
fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let members =
        members.trim_end_matches(']').split(',').map(|name| root.join(name.trim().trim_matches('"')));
    members.chain([root.to_owned()]).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The modules of a crate with their texts; tests are left out.
fn modules(folder: &Path) -> BTreeMap<Module, String> {
    let src = folder.join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut modules = BTreeMap::new();
    for file in files {
        let names = file.strip_prefix(&src).unwrap().with_extension("");
        let mut names: Module = names.iter().map(|n| n.to_string_lossy().into_owned()).collect();
        if names.last().is_some_and(|name| name == "mod") || names == ["lib"] || names == ["main"] {
            names.pop();
        }
        if names.iter().all(|name| name != "tests") {
            let text = fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            modules.insert(names, code.collect::<Vec<_>>().join("\n"));
        }
    }
    modules
}

/// The paths of one tree of a `use`: `a::{b, c::d}` has two.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((before, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        paths.push(format!("{prefix}{path}"));
        return;
    };
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    expand(&format!("{prefix}{before}"), &inner[begin..at], paths);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths that a text names: its imports, and what begins with `crate::` or `super::` elsewhere.
fn paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for import in text.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        expand("", import, &mut paths);
    }
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        if word.starts_with("crate::") || word.starts_with("super::") {
            paths.push(word.to_owned());
        }
    }
    paths
}

/// Which modules each module names, those that it is a part of left out.
fn imports(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let named = |module: &Module, path: &str| {
        let mut steps = path.split("::").map(str::trim).peekable();
        let mut at: Module = match *steps.peek()? {
            "crate" => Vec::new(),
            "self" | "super" => module.clone(),
            _ => return None,
        };
        for step in steps {
            match step {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        // What is behind the module's name is one of its items.
        while !modules.contains_key(&at) {
            at.pop()?;
        }
        modules.get_key_value(&at).map(|(found, _)| found).filter(|found| !module.starts_with(found))
    };
    let of = |(module, text): (_, &String)| {
        (module, paths(text).iter().filter_map(|path| named(module, path)).collect())
    };
    modules.iter().filter(|(module, _)| !module.is_empty()).map(of).collect()
}

fn reached<'a>(graph: &BTreeMap<&'a Module, BTreeSet<&'a Module>>, from: &'a Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&Module> = graph.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = left.pop() {
        if found.insert(module) {
            left.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

#[test]
fn no_circle_of_imports_is_over_more_than_two_files() {
    let mut circles = BTreeSet::new();
    for folder in crates() {
        let modules = modules(&folder);
        let graph = imports(&modules);
        let reach: BTreeMap<_, _> = graph.keys().map(|module| (*module, reached(&graph, module))).collect();
        for (module, from_it) in &reach {
            let circle: BTreeSet<String> = from_it
                .iter()
                .filter(|other| reach[**other].contains(module))
                .map(|names| names.join("::"))
                .collect();
            if circle.len() > MOST_FILES {
                circles.insert((folder.clone(), circle));
            }
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let modules = BTreeMap::from([
        (module("a"), "use crate::b::{X, y::Z};".to_owned()),
        (module("b"), "fn f() { super::c::g() }".to_owned()),
        (module("c"), "use super::{\n    a::Q as P,\n};".to_owned()),
        (module("d"), "use crate::a::Q;".to_owned()),
    ]);
    let graph = imports(&modules);
    assert!(reached(&graph, &module("a")).contains(&module("a")));
    assert!(!reached(&graph, &module("d")).contains(&module("d")));
    assert_eq!(reached(&graph, &module("d")).len(), 3);
}

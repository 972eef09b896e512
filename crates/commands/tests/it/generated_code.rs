//! Names from outside are text in generated code, whatever they are: the language's own parser sees the same tree for every name, and the
//! code has the texts that were exported.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// What ends lines, comments, strings and files somewhere, turns the direction of reading, or is a rule of its own in the first lines of a
/// file.
const PIECES: [&str; 34] = [
    "\u{2028}",
    "\u{2029}",
    "\u{85}",
    "\u{b}",
    "\u{c}",
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\u{1a}",
    "\u{7f}",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\u{feff}",
    "\u{fffe}",
    "\u{1f600}",
    "\u{10ffff}",
    "\u{301}",
    "\"",
    "\"\"\"",
    "'''",
    "\\",
    "\\N{x}",
    "\\u{",
    "*/",
    "/*",
    "//",
    "#",
    "coding: utf-7",
    "${process.exit(77)}",
    "`",
    "process.exit(77)//",
    "{{x}}",
];

/// Names made of such pieces, any names, and some that were chosen.
fn names() -> Vec<String> {
    let mut names: Vec<String> = PIECES.iter().map(|piece| format!("x{piece}process.exit(77)//")).collect();
    names.extend(PIECES.iter().map(|piece| (*piece).to_owned()));
    let mut runner = TestRunner::deterministic();
    let pieces =
        prop::collection::vec(prop::sample::select(PIECES.to_vec()), 1..6).prop_map(|all| all.concat());
    let any = prop_oneof![pieces, any::<String>()];
    names.extend((0..60).map(|_| any.new_tree(&mut runner).unwrap().current()));
    names
}

/// Writes a scenario and a schedule in which everything that may have any text has this one, and exports them as tests into `at`.
fn export(at: &Path, name: &str, format: &str, output: &str) -> Output {
    let lines = [
        json!({"schema": "demi-schedule/1", "network": "fifo", "violation": [name, format!("{name}:b")], "affected": [name], "deliveries": 1}),
        json!({"kind": "start", "to": name}),
        json!({"kind": "deliver", "from": name, "to": "b", "type": name, "payload": name, "external": true}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(at.join("schedule.jsonl"), text).unwrap();
    let model = match format {
        "rust-test" => json!(name),
        _ => json!({"command": ["model", name]}),
    };
    let scenario = json!({"model": model, "network": "fifo", "settings": {"__proto__": name, "key": name}});
    let scenario: toml::Table = serde_json::from_value(scenario).unwrap();
    fs::write(at.join("scenario.toml"), scenario.to_string()).unwrap();
    let args =
        ["export", "schedule.jsonl", "--scenario", "scenario.toml", "--format", format, "--out", output];
    Command::new(crate::export::program()).args(args).current_dir(at).output().unwrap()
}

/// Exports a test for each name, and gives the names and files of those that could be.
fn exported(at: &Path, format: &str, ending: &str) -> Vec<(String, String)> {
    let mut done = Vec::new();
    for (number, name) in ["plain".to_owned()].into_iter().chain(names()).enumerate() {
        let file = format!("t{number}.{ending}");
        let output = export(at, &name, format, &file);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0 | 2)) && !told.contains("panicked"),
            "{name:?}: {told}"
        );
        if output.status.success() {
            let text = fs::read(at.join(&file)).unwrap();
            let plain = text.iter().all(|byte| matches!(byte, b'\n' | b' '..=b'~'));
            assert!(plain, "{name:?} in {}", String::from_utf8_lossy(&text));
            done.push((name, file));
        } else {
            assert!(name != "plain", "{told}");
        }
    }
    assert!(done.len() > names().len() / 2, "{} names can be exported", done.len());
    done
}

/// Runs a parser over the files: it prints for each a line with its tree and its texts.
fn parsed(at: &Path, command: &str, args: &[&str], files: &[(String, String)]) -> Vec<(Value, Vec<String>)> {
    let files = files.iter().map(|(_, file)| file);
    let output = Command::new(command).args(args).args(files).current_dir(at).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every tree is that of the first file, and its texts hold the name and the whole schedule.
fn same_trees(files: &[(String, String)], trees: &[(Value, Vec<String>)]) {
    assert_eq!(files.len(), trees.len());
    for ((name, file), (tree, texts)) in files.iter().zip(trees) {
        assert_eq!(tree, &trees[0].0, "{name:?} in {file}");
        let start = texts.iter().find(|text| text.contains("\"start\"")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(start).unwrap()["to"], json!(name), "{file}");
        let scenario = texts.iter().find(|text| text.contains("\"settings\"")).unwrap();
        assert_eq!(serde_json::from_str::<Value>(scenario).unwrap()["settings"]["__proto__"], json!(name));
        assert!(texts.contains(name), "{name:?} is a word of the command in {file}");
    }
}

#[test]
fn any_name_is_text_in_python() {
    if !crate::python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = exported(folder.path(), "pytest", "py");
    let parser = r#"
import ast, json, sys
for file in sys.argv[1:]:
    tree, texts = ast.parse(open(file, "rb").read(), file), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
            node.value = ""
        if isinstance(node, ast.FunctionDef):
            node.name = "test"
    print(json.dumps([ast.dump(tree), texts]))
"#;
    same_trees(&files, &parsed(folder.path(), "python3", &["-c", parser], &files));
}

#[test]
fn any_name_is_text_in_javascript() {
    // Node brings a parser.
    let acorn = "internal/deps/acorn/acorn/dist/acorn";
    let there =
        Command::new("node").args(["--expose-internals", "-e", &format!("require('{acorn}')")]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no node with a parser");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = exported(folder.path(), "js-test", "mjs");
    let parser = format!(
        r#"
const {{ parse }} = require("{acorn}");
for (const file of process.argv.slice(1)) {{
  const texts = [];
  const plain = (key, value) => {{
    if (["start", "end", "raw"].includes(key)) return undefined;
    if (value?.type === "Literal" && typeof value.value === "string") {{ texts.push(value.value); return "text"; }}
    return value;
  }};
  const text = require("fs").readFileSync(file, "utf8");
  const tree = JSON.stringify(parse(text, {{ sourceType: "module", ecmaVersion: "latest" }}), plain);
  console.log(JSON.stringify([tree, texts]));
}}
"#
    );
    same_trees(&files, &parsed(folder.path(), "node", &["--expose-internals", "-e", &parser, "--"], &files));
}

#[test]
fn any_name_is_text_in_rust() {
    if Command::new("rustc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no rustc");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let files = exported(at, "rust-test", "rs");
    // Crates in the place of the project's own: what they are given is what was exported.
    let rustc = |args: &[&str]| {
        let output = Command::new("rustc")
            .args(["--edition", "2024", "-L", "."])
            .args(args)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    fs::write(at.join("hostile.rs"), "pub fn models() {}").unwrap();
    let testing = r#"pub mod testing {
        pub fn violations(_: &(), scenario: &str, schedule: &str) -> Result<Vec<String>, String> {
            use std::io::Write;
            let mut out = std::fs::OpenOptions::new().append(true).create(true).open("texts").unwrap();
            writeln!(out, "{}\n{}", scenario.len(), schedule.len()).unwrap();
            out.write_all(scenario.as_bytes()).unwrap();
            out.write_all(schedule.as_bytes()).unwrap();
            Ok(Vec::new())
        }
    }"#;
    fs::write(at.join("demi_commands.rs"), testing).unwrap();
    rustc(&["--crate-type", "rlib", "hostile.rs"]);
    rustc(&["--crate-type", "rlib", "demi_commands.rs"]);
    let modules: String =
        files.iter().map(|(_, file)| format!("mod {};\n", file.trim_end_matches(".rs"))).collect();
    fs::write(at.join("all.rs"), modules).unwrap();
    rustc(&[
        "--test",
        "--extern",
        "hostile",
        "--extern",
        "demi_commands",
        "-D",
        "warnings",
        "all.rs",
        "-o",
        "all",
    ]);
    let tests = Command::new(at.join("all")).arg("--test-threads=1").current_dir(at).output().unwrap();
    let told = String::from_utf8_lossy(&tests.stdout);
    assert!(tests.status.success() && told.contains(&format!("{} passed", files.len())), "{told}");
    let all = fs::read_to_string(at.join("texts")).unwrap();
    let mut names: Vec<String> = Vec::new();
    let mut rest = all.as_str();
    while let Some((scenario, after)) = rest.split_once('\n') {
        let (schedule, after) = after.split_once('\n').unwrap();
        let (scenario, after) = after.split_at(scenario.parse().unwrap());
        let (schedule, after) = after.split_at(schedule.parse().unwrap());
        let start: Value = serde_json::from_str(schedule.lines().nth(1).unwrap()).unwrap();
        let scenario: toml::Table = scenario.parse().unwrap();
        assert_eq!(start["to"].as_str(), scenario["settings"]["key"].as_str());
        names.push(start["to"].as_str().unwrap().to_owned());
        rest = after;
    }
    let mut expected: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
}

//! The reference in `docs/reference` is made of what the program itself knows: its help, the schemas of its files, and the configuration that
//! names every key. `UPDATE_REFERENCE=1 cargo test … reference` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Map, Value};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a page with what it should be, or writes it.
fn is_page(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    if there != text {
        let differs = there.lines().zip(text.lines()).find(|(a, b)| a != b);
        panic!(
            "docs/reference/{name} is not what the program says (UPDATE_REFERENCE=1 writes it anew): {differs:?}"
        );
    }
}

/// The help of a command, as wide as a page.
fn help(command: &[String]) -> String {
    let output = Command::cargo_bin("demi-lineage")
        .unwrap()
        .arg("help")
        .args(command)
        .env("COLUMNS", "100")
        .env_remove("DEMI_STORE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The commands below one, from its help.
fn below(help: &str) -> Vec<String> {
    let usage = help.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
    if !usage.contains("COMMAND") {
        return Vec::new();
    }
    help.lines()
        .skip_while(|line| !line.starts_with("Usage: "))
        .take_while(|line| !line.starts_with("Options:") && !line.starts_with("Arguments:"))
        .filter_map(|line| {
            line.strip_prefix("  ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .filter_map(|line| line.split("  ").next())
        .filter(|name| *name != "help" && !name.contains(' '))
        .map(str::to_owned)
        .collect()
}

/// Calls `f` with each command and its help: one, and then those below it.
pub fn commands(command: &[String], f: &mut impl FnMut(&[String], &str)) {
    let text = help(command);
    f(command, &text);
    for next in below(&text) {
        commands(&[command, &[next]].concat(), f);
    }
}

#[test]
fn the_reference_has_every_command() {
    let mut page = String::from(
        "# Commands\n\nWhat `--help` says of each command. This page is made of the program by a test.\n",
    );
    let mut count = 0;
    commands(&[], &mut |command, help| {
        let name = [&["demi-lineage".to_owned()], command].concat().join(" ");
        writeln!(page, "\n## {name}\n\n```text\n{}\n```", help.trim_end()).unwrap();
        count += 1;
    });
    assert!(count > 45, "{count} commands");
    for known in ["demi-lineage ingest restore", "demi-lineage query past", "demi-lineage incident work"] {
        assert!(page.contains(&format!("\n## {known}\n")), "{known}");
    }
    is_page("commands.md", &page);
}

/// The type of a value, in a few words; a type of the schema itself is a link to its table.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    let several = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array());
    if let Some(several) = several {
        let mut kinds: Vec<String> = several.iter().map(kind).filter(|kind| kind != "nothing").collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    if let Some(one) = schema.get("const") {
        return format!("`{one}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words = types.into_iter().filter(|word| *word != "null").map(|word| match word {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("table of {}", kind(&schema["additionalProperties"]))
        }
        "object" => "table".into(),
        "boolean" => "true or false".into(),
        "string" => "text".into(),
        "integer" => "whole number".into(),
        other => other.into(),
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        if schema["type"] == "null" { "nothing".into() } else { "any value".into() }
    } else {
        words.join(" or ")
    }
}

/// A text as it stands in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn table(keys: &Map<String, Value>, required: &Value, page: &mut String) {
    page.push_str("\n| key | value | meaning |\n| --- | --- | --- |\n");
    for (key, value) in keys {
        let needed = required.as_array().is_some_and(|all| all.iter().any(|one| one == key));
        let default = match &value["default"] {
            Value::Null => String::new(),
            one => format!("; default: `{}`", one.to_string().replace('|', "\\|")),
        };
        let needed = if needed { "; must be there" } else { "" };
        let meaning = cell(value["description"].as_str().unwrap_or_default());
        writeln!(page, "| `{key}` | {}{default}{needed} | {meaning} |", kind(value).replace(" | ", " or "))
            .unwrap();
    }
}

/// A page of tables for a schema: its keys, and those of the types that it names.
fn schema_page(title: &str, schema: &Value) -> String {
    let mut page = format!("# {title}\n\n{}\n", cell(schema["description"].as_str().unwrap_or_default()));
    page.push_str("\nThis page is made of the program's types by a test.\n");
    table(schema["properties"].as_object().unwrap(), &schema["required"], &mut page);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        writeln!(page, "\n## {name}\n\n{}", cell(definition["description"].as_str().unwrap_or_default()))
            .unwrap();
        let mut forms = vec![definition];
        let several = definition["oneOf"].as_array().or_else(|| definition["anyOf"].as_array());
        if let Some(several) = several {
            forms = several.iter().collect();
        }
        for form in forms {
            match form["properties"].as_object() {
                Some(keys) if !keys.is_empty() => table(keys, &form["required"], &mut page),
                _ => {
                    let meaning =
                        form["description"].as_str().filter(|_| form != definition).unwrap_or_default();
                    writeln!(
                        page,
                        "\n{}{}{}",
                        kind(form),
                        if meaning.is_empty() { "" } else { ": " },
                        cell(meaning)
                    )
                    .unwrap();
                }
            }
        }
    }
    page
}

#[test]
fn the_reference_has_every_key_of_scenarios_and_mappings() {
    for (title, name) in [("The scenario file", "scenario"), ("Mappings", "mapping")] {
        let text = fs::read_to_string(root().join(format!("schemas/json/{name}.schema.json"))).unwrap();
        let schema: Value = serde_json::from_str(&text).unwrap();
        let page = schema_page(title, &schema);
        for key in schema["properties"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("| `{key}` |")), "{key}");
        }
        is_page(&format!("{name}.md"), &page);
    }
}

#[test]
fn the_reference_has_the_configuration_with_every_key() {
    // A test of the daemon says that no key is missing there.
    let text = fs::read_to_string(root().join("ingest/daemon/dist/demi.toml")).unwrap();
    let page = format!(
        "# demi.toml\n\nThe configuration of the daemon with every key, its default and its meaning. This page is made of\n\
         `ingest/daemon/dist/demi.toml` by a test.\n\n```toml\n{}\n```\n",
        text.trim_end()
    );
    is_page("demi-toml.md", &page);
}

/// The pages that a folder has, by their path from `docs`.
fn pages(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") && !path.ends_with("SUMMARY.md") {
            found.push(path.strip_prefix(root().join("docs")).unwrap().to_string_lossy().into_owned());
        }
    }
}

/// The contents of the site name each page once.
#[test]
fn the_site_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed: Vec<String> = summary
        .lines()
        .filter_map(|line| Some(line.split_once("](")?.1.split_once(')')?.0.to_owned()))
        .collect();
    let mut there = Vec::new();
    pages(&root().join("docs"), &mut there);
    listed.sort();
    there.sort();
    assert_eq!(listed, there);
}

/// Links of the site that lead out of `docs` lead to the repository.
#[test]
fn links_out_of_the_site_lead_to_the_repository() {
    let chapter = serde_json::json!({"Chapter": {
        "name": "a", "path": "decisions/a.md", "sub_items": [],
        "content": "[up](../../README.md#install) [in](../query.md) [out](https://x.org/../../y) [here](#a) `[code](../../x)`\n\n```text\n[b](../../x)\n```\n",
    }});
    let book =
        serde_json::json!([{"root": root(), "config": {}}, {"sections": [chapter], "items": [chapter]}]);
    let script = root().join(".ci/site_links.py");
    let supports = Command::new("python3").arg(&script).args(["supports", "html"]).output().unwrap();
    assert!(supports.status.success());
    let output = Command::new("python3").arg(&script).write_stdin(book.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    for list in ["sections", "items"] {
        let content = done[list][0]["Chapter"]["content"].as_str().unwrap();
        let wanted = "[up](https://github.com/demi-lineage/demi-lineage/blob/main/README.md#install) [in](../query.md) \
                      [out](https://x.org/../../y) [here](#a) `[code](../../x)`\n\n```text\n[b](../../x)\n```\n";
        assert_eq!(content, wanted);
    }
}

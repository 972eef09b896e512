//! The page as one file: template, style, script and data put together.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use demi_common::text::markup;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::data::Page;
use crate::error::ReportError;
use crate::plain::listed;

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = concat!(include_str!("../assets/style.css"), "\n", include_str!("../assets/print.css"));

/// A module of the script: its file, and what is in it.
type Module = (&'static str, &'static str);

/// The modules of the script. A module imports only from those before it.
const MODULES: [Module; 27] = [
    ("text.js", include_str!("../assets/app/text.js")),
    ("dom.js", include_str!("../assets/app/dom.js")),
    ("clock.js", include_str!("../assets/app/clock.js")),
    ("link.js", include_str!("../assets/app/link.js")),
    ("json.js", include_str!("../assets/app/json.js")),
    ("pattern.js", include_str!("../assets/app/pattern.js")),
    ("edges.js", include_str!("../assets/app/edges.js")),
    ("causality.js", include_str!("../assets/app/causality.js")),
    ("apart.js", include_str!("../assets/app/apart.js")),
    ("counts.js", include_str!("../assets/app/counts.js")),
    ("trace.js", include_str!("../assets/app/trace.js")),
    ("remote.js", include_str!("../assets/app/remote.js")),
    ("track.js", include_str!("../assets/app/track.js")),
    ("view.js", include_str!("../assets/app/view.js")),
    ("theme.js", include_str!("../assets/app/theme.js")),
    ("paint.js", include_str!("../assets/app/paint.js")),
    ("overview.js", include_str!("../assets/app/overview.js")),
    ("diagram.js", include_str!("../assets/app/diagram.js")),
    ("list.js", include_str!("../assets/app/list.js")),
    ("filters.js", include_str!("../assets/app/filters.js")),
    ("inspector.js", include_str!("../assets/app/inspector.js")),
    ("tally.js", include_str!("../assets/app/tally.js")),
    ("search.js", include_str!("../assets/app/search.js")),
    ("facts.js", include_str!("../assets/app/facts.js")),
    ("keys.js", include_str!("../assets/app/keys.js")),
    ("app.js", include_str!("../assets/app/app.js")),
    ("main.js", include_str!("../assets/app/main.js")),
];

/// The script of the page: one function, in which each module is a function of its own that returns its exports.
///
/// The modules keep to a part of the language: `import { a, b } from "./file.js";` on a line of its own, and `export` before a
/// `function`, `class` or `const`. Blocks of documentation are left out.
fn script() -> String {
    let mut script = String::from("\"use strict\";\n(() => {\n");
    for (file, source) in MODULES {
        let mut exports = Vec::new();
        script.push_str(&format!("const {} = (() => {{\n", variable(file)));
        let mut documentation = false;
        for line in source.lines() {
            documentation |= line.trim_start().starts_with("/**");
            if documentation {
                documentation = !line.ends_with("*/");
                continue;
            }
            if let Some((names, from)) = import(line) {
                script.push_str(&format!("const {{ {} }} = {};\n", names.join(", "), variable(from)));
                continue;
            }
            let line = match export(line) {
                Some((name, line)) => {
                    exports.push(name);
                    line
                }
                None => line,
            };
            script.push_str(line);
            script.push('\n');
        }
        script.push_str(&format!("return {{ {} }};\n}})();\n", exports.join(", ")));
    }
    script.push_str("})();\n");
    script
}

/// The variable that holds the exports of a module.
fn variable(file: &str) -> String {
    format!("{}_module", file.trim_end_matches(".js"))
}

/// The names that a line imports, and the file they come from.
fn import(line: &str) -> Option<(Vec<&str>, &str)> {
    let (names, from) = line.strip_prefix("import { ")?.split_once(" } from \"./")?;
    Some((names.split(", ").collect(), from.strip_suffix("\";")?))
}

/// The name that a line exports, and the line without the word.
fn export(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("export ")?;
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    let name = words.find(|word| !matches!(*word, "async" | "function" | "class" | "const"))?;
    Some((name, line))
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Makes the page. It needs nothing from elsewhere: data is gzip-compressed JSON in base64, in which no text can end
/// the element around it.
///
/// # Errors
/// When the data cannot be written as JSON.
pub fn html(page: &Page) -> Result<String, ReportError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let wrap = |e: std::io::Error| ReportError::Json(serde_json::Error::io(e));
    serde_json::to_writer(&mut encoder, page)?;
    encoder.flush().map_err(wrap)?;
    let data = STANDARD.encode(encoder.finish().map_err(wrap)?);
    let script = script();
    let ask = if page.served { "'self'" } else { "'none'" };
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; connect-src {ask}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(&script),
    );
    let title = match page.violation.first() {
        Some(violation) => violation.clone(),
        None => page.system.clone(),
    };
    // Each part is put in once and never looked at again, so that no part can stand for another.
    let mut html = String::with_capacity(TEMPLATE.len() + STYLE.len() + script.len() + data.len());
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        html.push_str(before);
        match name {
            "policy" => html.push_str(&markup(&policy)),
            "title" => html.push_str(&markup(&title)),
            "style" => html.push_str(STYLE),
            "script" => html.push_str(&script),
            "data" => html.push_str(&data),
            "text" => html.push_str(&listed(page)),
            _ => {}
        }
        rest = after;
    }
    html.push_str(rest);
    Ok(html)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Whether a module keeps to the part of the language that is packed, and imports what modules before it export.
    fn checked(modules: &[Module]) -> Result<(), String> {
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (file, source) in modules {
            let mut exports = BTreeSet::new();
            for line in source.lines() {
                if let Some((names, from)) = import(line) {
                    let there =
                        known.get(from).ok_or_else(|| format!("{file}: {from} does not stand before it"))?;
                    if let Some(name) = names.iter().find(|name| !there.contains(*name)) {
                        return Err(format!("{file}: {from} does not export {name}"));
                    }
                } else if let Some((name, rest)) = export(line) {
                    let kind = rest.split(' ').next().unwrap_or_default();
                    if !matches!(kind, "function" | "async" | "class" | "const") || !exports.insert(name) {
                        return Err(format!("{file}: {line}"));
                    }
                } else if line.trim_start().starts_with("import ") || line.trim_start().starts_with("export ")
                {
                    return Err(format!("{file}: {line}"));
                } else if line.trim_start().starts_with("/**") && line.contains("*/") && !line.ends_with("*/")
                {
                    return Err(format!("{file}: code behind documentation: {line}"));
                }
            }
            known.insert(file, exports);
        }
        Ok(())
    }

    #[test]
    fn modules_import_what_those_before_them_export() {
        assert_eq!(checked(&MODULES), Ok(()));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/app");
        let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.filter(|f| f.ends_with(".js")).collect();
        assert_eq!(
            files,
            MODULES.iter().map(|m| m.0.to_owned()).collect(),
            "every file of the folder is packed"
        );
        for (source, says) in [
            ("import { a } from \"./late.js\";", "late.js does not stand before it"),
            ("import { b } from \"./early.js\";", "early.js does not export b"),
            ("import * as a from \"./early.js\";", "import * as a"),
            ("import {a} from \"./early.js\";", "import {a}"),
            ("export let a = 1;", "export let"),
            ("export { a };", "export { a }"),
            ("export default 1;", "export default"),
            ("/** @type {number} */ const a = 1;", "code behind documentation"),
        ] {
            let modules = [("early.js", "export const a = 1;"), ("it.js", source), ("late.js", "")];
            let found = checked(&modules).unwrap_err();
            assert!(found.contains(says), "{source}: {found}");
        }
    }

    #[test]
    fn nothing_ends_the_script_or_the_style() {
        let script = script().to_lowercase();
        assert!(!script.contains("</script") && !script.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
    }

    #[test]
    fn the_script_makes_no_markup_of_texts() {
        let script = script();
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!script.contains(word), "{word}");
        }
    }

    #[test]
    fn texts_from_outside_do_not_become_markup() {
        let mut page = Page::new("<b>{{data}}</b>".into());
        page.violation = vec!["</title><script>alert(1)</script>".into()];
        let html = html(&page).unwrap();
        assert!(!html.contains("<script>alert(1)"), "{html}");
        assert!(html.contains("&lt;/title&gt;&lt;script&gt;alert(1)"));
        assert_eq!(html.matches("<script").count(), 2);
        for part in ["{{", "}}"] {
            assert!(!html.replace(&script(), "").contains(part), "{part}");
        }
    }
}

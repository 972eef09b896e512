//! The page as one file: template, style, script and data put together.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::data::Page;
use crate::error::ReportError;

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = concat!(include_str!("../assets/style.css"), "\n", include_str!("../assets/print.css"));

/// The script's files, in the order in which they are put together. All share one function's scope.
const SCRIPT: [(&str, &str); 13] = [
    ("dom.js", include_str!("../assets/app/dom.js")),
    ("trace.js", include_str!("../assets/app/trace.js")),
    ("remote.js", include_str!("../assets/app/remote.js")),
    ("causality.js", include_str!("../assets/app/causality.js")),
    ("theme.js", include_str!("../assets/app/theme.js")),
    ("paint.js", include_str!("../assets/app/paint.js")),
    ("diagram.js", include_str!("../assets/app/diagram.js")),
    ("overview.js", include_str!("../assets/app/overview.js")),
    ("inspector.js", include_str!("../assets/app/inspector.js")),
    ("search.js", include_str!("../assets/app/search.js")),
    ("facts.js", include_str!("../assets/app/facts.js")),
    ("keys.js", include_str!("../assets/app/keys.js")),
    ("main.js", include_str!("../assets/app/main.js")),
];

fn script() -> String {
    let mut script = String::from("\"use strict\";\n(() => {\n");
    for (name, source) in SCRIPT {
        script.push_str(&format!("// ---- {name}\n{source}\n"));
    }
    script.push_str("})();\n");
    script
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
            "policy" => html.push_str(&escaped(&policy)),
            "title" => html.push_str(&escaped(&title)),
            "style" => html.push_str(STYLE),
            "script" => html.push_str(&script),
            "data" => html.push_str(&data),
            _ => {}
        }
        rest = after;
    }
    html.push_str(rest);
    Ok(html)
}

/// Text as HTML content or as the value of a quoted attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

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

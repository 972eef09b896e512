//! The page of a schedule: a lane for each task, preemptions with both places, held locks.

use std::fmt::Write as _;

use crate::schedule::{Did, Schedule};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8886;--mark:#b3261e;--soft:#8881}\
@media(prefers-color-scheme:dark){:root{--mark:#ff8a80}}\
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem;max-width:none}\
h1{font-size:1.3rem}pre{white-space:pre-wrap;background:var(--soft);padding:.8rem;border-radius:.4rem}\
table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.2rem .7rem;border-left:1px solid var(--line)}\
thead th{position:sticky;top:0;background:Canvas;border-bottom:2px solid var(--line)}\
td.ran{background:var(--soft);border-left:4px solid currentColor}\
tr.switch td{border-left:0;border-top:1px dashed var(--line);padding:.3rem .7rem}\
tr.preempt td{color:var(--mark);font-weight:600;border-top:2px solid var(--mark)}\
code{font:12px/1.5 ui-monospace,monospace}small{font-weight:400}";

fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut all, c| {
        match c {
            '&' => all.push_str("&amp;"),
            '<' => all.push_str("&lt;"),
            '>' => all.push_str("&gt;"),
            '"' => all.push_str("&quot;"),
            c => all.push(c),
        }
        all
    })
}

fn told(did: &Did) -> String {
    format!("{} <code>{}</code>", escaped(&did.told()), escaped(&did.at.0))
}

impl Schedule {
    /// The page, which needs nothing else.
    #[must_use]
    pub fn page(&self) -> String {
        let mut lanes: Vec<&str> = Vec::new();
        for (task, _, _) in self.pieces() {
            if !lanes.contains(&task) {
                lanes.push(task);
            }
        }
        let title = escaped(&self.header.test);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n\
             <p>{}</p>\n<pre>{}</pre>\n<table><thead><tr>",
            escaped(&self.summary()),
            escaped(&self.header.failure.to_string())
        );
        for lane in &lanes {
            let _ = write!(page, "<th scope=\"col\">{}</th>", escaped(lane));
        }
        page.push_str("</tr></thead><tbody>\n");
        for (task, did, switch) in self.pieces() {
            page.push_str("<tr>");
            for lane in &lanes {
                if *lane != task {
                    page.push_str("<td></td>");
                    continue;
                }
                let ops: Vec<String> = did.iter().map(told).collect();
                let _ = write!(page, "<td class=\"ran\">{}</td>", ops.join("<br>"));
            }
            page.push_str("</tr>\n");
            let Some(switch) = switch else { continue };
            let what = match switch.why.as_str() {
                "preempt" => "is preempted",
                "block" => "has to wait",
                "yield" => "lets others go first",
                "unfair" => "comes to a point where others wait",
                _ => "ends",
            };
            let counts = matches!(switch.why.as_str(), "preempt" | "unfair");
            let class = if counts { "switch preempt" } else { "switch" };
            let next = match (&switch.next, switch.why.as_str()) {
                (Some(next), "preempt") => format!(" before {}", told(next)),
                (Some(next), "block") => format!(": {}", told(next)),
                _ => String::new(),
            };
            let goes_on = match switch.why.as_str() {
                "unfair" => "goes on, though it yielded again (counts as a preemption)",
                _ => "goes on",
            };
            let then =
                switch.then.as_ref().map_or(String::new(), |then| format!(", which does {}", told(then)));
            let holds = if switch.holds.is_empty() {
                String::new()
            } else {
                format!(" <small>holds {}</small>", escaped(&switch.holds.join(", ")))
            };
            let _ = writeln!(
                page,
                "<tr class=\"{class}\"><td colspan=\"{}\">{} {what}{next}; {} {goes_on}{then}.{holds}</td></tr>",
                lanes.len(),
                escaped(task),
                escaped(&switch.to)
            );
        }
        page.push_str("</tbody></table></body></html>\n");
        page
    }
}

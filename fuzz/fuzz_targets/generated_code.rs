//! Any texts in a schedule and its scenario, exported as a test of each language: the code is printable ASCII in as many lines as with other
//! texts, and the strings that hold the schedule read back to it.
#![no_main]

use demi_commands::export_test::{Language, text};
use demi_schemas::{Scenario, Schedule};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

/// A schedule and a scenario that have a text wherever there may be any.
fn with(name: &str, rust: bool) -> Option<(Scenario, Schedule)> {
    let lines = [
        json!({"schema": "demi-schedule/1", "network": "fifo", "violation": [name, format!("{name}:b")], "affected": [name], "deliveries": 1}),
        json!({"kind": "start", "to": name}),
        json!({"kind": "deliver", "from": name, "to": "b", "type": name, "payload": name, "external": true}),
    ];
    let schedule = Schedule::parse(&lines.map(|line| format!("{line}\n")).concat()).ok()?;
    let model = if rust { json!(name) } else { json!({"command": ["model", name]}) };
    let scenario = json!({"model": model, "network": "fifo", "settings": {"__proto__": name, "key": name}});
    Some((serde_json::from_value(scenario).ok()?, schedule))
}

/// The string that a line holds, as its language reads it.
fn string(language: Language, line: &str) -> Option<String> {
    let mut rest = line.trim().strip_prefix('"')?.strip_suffix("\",")?.chars();
    let mut out = String::new();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let digits: String = match (rest.next()?, language) {
            (c @ ('\\' | '"'), _) => {
                out.push(c);
                continue;
            }
            ('u', Language::Python) => rest.by_ref().take(4).collect(),
            ('U', Language::Python) => rest.by_ref().take(8).collect(),
            ('u', _) if rest.next()? == '{' => rest.by_ref().take_while(|c| *c != '}').collect(),
            _ => return None,
        };
        out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
    }
    Some(out)
}

fuzz_target!(|name: &str| {
    for language in [Language::Python, Language::JavaScript, Language::Rust] {
        let made = |name: &str| {
            let (scenario, schedule) = with(name, language == Language::Rust)?;
            Some((text(language, &scenario, &schedule, "program").ok()?, schedule.to_text()))
        };
        let (Some((code, schedule)), Some((plain, _))) = (made(name), made("x")) else { continue };
        assert!(code.bytes().all(|b| b == b'\n' || (0x20..0x7f).contains(&b)), "{code:?}");
        assert_eq!(code.lines().count(), plain.lines().count(), "{code}");
        let strings: Vec<String> = code.lines().filter_map(|line| string(language, line)).collect();
        let lines: Vec<&str> = schedule.lines().collect();
        assert!(strings.windows(lines.len()).any(|some| some == lines), "{code}");
    }
});

use demi_schemas::{EventRecord, Kind};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn redaction(text: &str) -> Result<Redaction, RedactError> {
    let root: toml::Table = text.parse().unwrap();
    Redaction::new(root["redact"].clone())
}

fn with_key(rules: &str) -> (tempfile::TempDir, Redaction) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "0123456789abcdef0123\n").unwrap();
    let text = format!("[redact]\nkey_file = {:?}\n{rules}", path.display().to_string());
    (folder, redaction(&text).unwrap())
}

fn login() -> EventRecord {
    EventRecord {
        type_: Some("Login".into()),
        payload: Some("{\"user\":\"ada\",\"password\":\"secret\"}".into()),
        fields: Some(
            json!({ "user": "ada", "tries": [{ "password": "a" }, { "password": "b" }], "card": 4111111111111111_u64 }),
        ),
        state: Some(json!({ "ada@example.org": { "open": true } })),
        attrs: [("trace".to_owned(), json!("ada@example.org logs in"))].into(),
        ..EventRecord::new("server", 1, Kind::Receive)
    }
}

#[test]
fn fields_go_and_are_hashed() {
    let (_folder, redaction) = with_key(
        "[[redact.rules]]\nfield = \"payload.password\"\n[[redact.rules]]\nfield = \"fields.tries.password\"\nreplace = \"*\"\n\
         [[redact.rules]]\nfield = \"fields.user\"\nhash = true\n[[redact.rules]]\nfield = \"trace\"\n",
    );
    let mut record = login();
    redaction.record("s", &mut record);
    assert_eq!(record.payload.as_deref(), Some("{\"user\":\"ada\"}"));
    let fields = record.fields.unwrap();
    assert_eq!(fields["tries"], json!([{ "password": "*" }, { "password": "*" }]));
    let user = fields["user"].as_str().unwrap();
    assert!(user.starts_with("h:") && user.len() == 2 + DIGITS && !user.contains("ada"), "{user}");
    assert!(record.attrs.is_empty());
    // The same content has the same hash, so that what was equal is equal.
    let mut again = login();
    redaction.record("s", &mut again);
    assert_eq!(again.fields.unwrap(), fields);
}

#[test]
fn patterns_are_found_in_texts_numbers_and_keys() {
    let redaction = redaction(
        "[redact]\n[[redact.rules]]\npattern = '[a-z]+@[a-z.]+'\n[[redact.rules]]\npattern = '\\b\\d{13,16}\\b'\nreplace = \"<card>\"\n",
    )
    .unwrap();
    let mut record = login();
    redaction.record("s", &mut record);
    assert_eq!(record.state, Some(json!({ "[redacted]": { "open": true } })));
    assert_eq!(record.fields.unwrap()["card"], "<card>");
    assert_eq!(record.attrs["trace"], "[redacted] logs in");
    assert_eq!(redaction.raw("s", b"not json: ada@example.org"), b"not json: [redacted]");
}

#[test]
fn rules_are_about_a_type_or_a_system() {
    let redaction =
        redaction("[redact]\n[[redact.rules]]\nsystem = \"bank\"\ntype = \"Login\"\nfield = \"payload\"\n")
            .unwrap();
    for (system, type_, gone) in [
        ("bank", "Login", true),
        ("bank/1", "Login", true),
        ("banks", "Login", false),
        ("bank", "Logout", false),
    ] {
        let mut record = EventRecord { type_: Some(type_.into()), ..login() };
        redaction.record(system, &mut record);
        assert_eq!(record.payload.as_deref() == Some(""), gone, "{system} {type_}");
    }
    // Where the fields of a line are is not known, so nothing of it is kept.
    assert_eq!(
        (redaction.raw("bank", b"secret"), redaction.raw("other", b"open")),
        (vec![], b"open".to_vec())
    );
}

#[test]
fn rules_that_hide_nothing_are_refused() {
    for (rule, word) in [
        ("field = \"actor\"", "order of events"),
        ("field = \"fields..x\"", "empty part"),
        ("pattern = \"a*\"", "nothing"),
        ("pattern = \"(\"", "pattern"),
        ("field = \"state.x\"\nhash = true", "key_file"),
        ("field = \"state.x\"\npattern = \"x\"", "either"),
        ("type = \"x\"", "either"),
        ("fild = \"state.x\"", "fild"),
    ] {
        let error = redaction(&format!("[redact]\n[[redact.rules]]\n{rule}\n")).unwrap_err().to_string();
        assert!(error.contains(word), "{rule}: {error}");
    }
    assert!(redaction("[redact]\n").unwrap_err().to_string().contains("no rules"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "short\n").unwrap();
    let text = format!(
        "[redact]\nkey_file = {:?}\n[[redact.rules]]\nfield = \"state\"\n",
        path.display().to_string()
    );
    assert!(redaction(&text).unwrap_err().to_string().contains("16 bytes"));
}

proptest! {
    #[test]
    fn no_match_of_a_pattern_is_left(text in "[a-c0-9 ]{0,40}", key in "[a-c0-9]{1,8}") {
        let redaction = redaction("[redact]\n[[redact.rules]]\npattern = '[0-9]{2,}'\nreplace = \"#\"\n").unwrap();
        let mut record = EventRecord {
            payload: Some(text.clone()),
            fields: Some(json!({ key.clone(): [text.clone(), { "deep": text.clone() }] })),
            ..EventRecord::new("a", 1, Kind::Send)
        };
        redaction.record("s", &mut record);
        let left = regex::Regex::new("[0-9]{2,}").unwrap();
        let written = format!("{}{}", record.payload.unwrap(), record.fields.unwrap());
        prop_assert!(!left.is_match(&written), "{written}");
        prop_assert_eq!(left.replace_all(&text, "#").into_owned(), redaction.text("s", &text).into_owned());
    }
}

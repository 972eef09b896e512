use demi_formats::Fate;
use demi_formats::read::lines::Line;
use demi_formats::read::parse::Parser;
use demi_formats::read::plain::{Anew, LineTexts};
use demi_formats::time::Stamp;
use proptest::prelude::*;

use super::*;

/// What a line becomes as a plain record, and what it becomes otherwise: digest, whether the row tells it, stamp, and the row.
type Became = (u64, bool, Option<String>, RecordBatch);

fn row(date: Option<i32>, digest: u64, offset: u64) -> EventRow<'static> {
    EventRow { system: "s", date, source: "f", offset, digest }
}

fn plain(lines: &str, line: &Line, start: usize) -> Option<Became> {
    let mut anew = Anew::default();
    let found = Parser::new("s").plain(lines, start..lines.len(), line, &mut anew)?;
    let texts = LineTexts::new(lines.to_owned(), anew);
    assert_eq!((found.start as usize, found.length as usize), (start, lines.len() - start));
    let mut columns = EventColumns::default();
    columns.push_plain(&found, found.seq, &texts, &row(found.date, found.digest, found.offset));
    let stamp = found.stamp.map(|stamp| format!("{stamp:?}"));
    Some((found.digest, found.told, stamp, columns.finish().unwrap()))
}

fn otherwise(text: &str, line: &Line) -> Option<Became> {
    let Fate::Row(found) = Parser::new("s").line(text.as_bytes(), line) else { return None };
    let mut columns = EventColumns::default();
    columns.push(&found.record, &row(found.date, found.digest, line.offset));
    let stamp = found.record.time.as_ref().and_then(Stamp::read).map(|stamp| format!("{stamp:?}"));
    Some((found.digest, found.told, stamp, columns.finish().unwrap()))
}

/// A value as hostile logs have it, well formed or not.
fn value() -> impl Strategy<Value = String> {
    let odd = [
        "null",
        "true",
        "false",
        "tru",
        "1",
        "0",
        "-1",
        "-0",
        "01",
        "1.0",
        "1e3",
        "1e400",
        "-",
        "+1",
        "0x1",
        "NaN",
        "2147483647",
        "2147483648",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1152921504606846976",
        "1700000000000000000",
        "1e-7",
        "0.1",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\"",
        "\"normal\"",
        "\"send\"",
        "\"receive\"",
        "\"ask\"",
        "\"\\u0061sk\"",
        "\"a\\\"b\"",
        "\"\\\\\"",
        "\"\\n\\t\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"\\x\"",
        "\"\u{1}\"",
        "\"\u{7f}é😀\"",
        "\"2024-05-14T22:00:00Z\"",
        "\"1715731200\"",
        "\"7\"",
        "1715731200000",
        "{}",
        "[]",
        "{\"a\":1,\"a\":2}",
        "{\"b\":[1,{\"c\":null}],\"a\":\"}]\\\"\"}",
        "[1,2",
        "{\"a\":1]",
        "[1,]",
        "{\"name\":\"t\",\"repeat\":true,\"more\":[1]}",
        "{\"name\":1}",
        "{\"a\":1,\"b\":2}",
        "{\"a\":-1}",
        "{\"$serde_json::private::Number\":\"1\"}",
        "\"_monitor\"",
        "\"s\"",
        "\"t\"",
        "\"deadbeef\" x",
    ];
    let deep = (60usize..130).prop_map(|n| format!("{}{}", "[".repeat(n), "]".repeat(n)));
    prop_oneof![20 => proptest::sample::select(odd.map(str::to_owned).to_vec()), 1 => deep, 2 => "\"[ -~\\\\n]{0,12}\""]
}

fn name() -> impl Strategy<Value = String> {
    let names = [
        "system",
        "incarnation",
        "msg_id",
        "from",
        "to",
        "via",
        "timer",
        "type",
        "payload",
        "fingerprint",
        "external",
        "fields",
        "state",
        "time",
        "source",
        "offset",
        "vector_clock",
        "gaps",
        "key",
        "line",
        "zone",
        "attrs",
        "logged_source",
        "\\u0073tate",
        "a\\\"b",
        "actor",
        "seq",
        "kind",
    ];
    proptest::sample::select(names.map(str::to_owned).to_vec())
}

/// A line: an object of what every record has and more fields, in any order, some twice, with space between.
fn line() -> impl Strategy<Value = String> {
    let usual = (
        "[a-c]{0,2}",
        prop_oneof![4 => (0u64..5).prop_map(|n| n.to_string()), 1 => value()],
        proptest::sample::select(vec!["send", "receive", "local", "timer_set", "no_kind"]),
    );
    let more = proptest::collection::vec((name(), value()), 0..6);
    let space = proptest::sample::select(vec!["", " ", "\t", "\r", "  "]);
    (
        usual,
        more,
        space,
        any::<prop::sample::Index>(),
        proptest::option::weighted(0.1, (any::<prop::sample::Index>(), "[ -~]")),
    )
        .prop_map(|((actor, seq, kind), more, space, turn, spoilt)| {
            let mut fields = vec![
                ("actor".to_owned(), format!("\"{actor}\"")),
                ("seq".to_owned(), seq),
                ("kind".to_owned(), format!("\"{kind}\"")),
            ];
            fields.extend(more);
            let at = turn.index(fields.len());
            fields.rotate_left(at);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{space}\"{name}\"{space}:{space}{value}{space}"))
                .collect();
            let mut text = format!("{space}{{{}}}{space}", fields.join(","));
            if let Some((at, by)) = spoilt {
                let at = at.index(text.len());
                if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                    text.replace_range(at..=at, &by);
                }
            }
            text
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What is taken for a plain record is a record, and its row is the row of that record.
    #[test]
    fn plain_records_are_what_records_are(text in line(), before in "[ -~é]{0,9}", offset in 0u64..1 << 40) {
        let at = Line { length: text.len() as u64, ..Line::empty(offset + 1, 7) };
        let lines = format!("{before}{text}");
        if let Some(found) = plain(&lines, &at, before.len()) {
            prop_assert_eq!(Some(found), otherwise(&text, &at));
        }
    }
}

#[test]
fn records_of_all_fields_are_plain() {
    let texts = [
        r#"{"actor":"a","seq":1,"kind":"send","to":"b","msg_id":"1"}"#,
        r#" { "actor" : "a\n", "seq" : 9223372036854775807, "kind" : "receive", "from" : "\u00e9", "type":null, "external":true } "#,
        r#"{"actor":"a","seq":2,"kind":"state","incarnation":3,"state":{"x":[1,2.5,{"y":null}]},"fields":{"b":1,"a":2},"via":"ask","system":"s",
            "time":"2024-05-14T22:00:00.5Z","timer":{"name":"t"},"vector_clock":{"a":1,"b":18446744073709551615},"zone":"\"z\"","n":-1e3}"#,
        r#"{"actor":"a","seq":3,"kind":"local","gaps":"odd","time":1715731200000,"payload":"p","fingerprint":"q"}"#,
        r#"{"actor":"a","seq":1700000000000000000,"kind":"local","key":"k","logged_offset":3,"time":"7"}"#,
    ];
    for text in texts {
        let at = Line { length: text.len() as u64, ..Line::empty(5, 1) };
        let found = plain(text, &at, 0);
        assert!(found.is_some(), "{text}");
        assert_eq!(found, otherwise(text, &at), "{text}");
    }
    let sparse = r#"{"actor":"a","seq":3,"kind":"local","gaps":"normal"}"#;
    assert!(plain(sparse, &Line::empty(5, 1), 0).is_none());
    for text in [
        "",
        "{}",
        "[]",
        r#"{"actor":"a","seq":1,"kind":"send"}"#,
        r#"{"actor":"","seq":1,"kind":"local"}"#,
        r#"{"actor":"a","seq":1,"seq":1,"kind":"local"}"#,
        r#"{"actor":"a","seq":1,"kind":"local"} x"#,
        r#"{"actor":"_monitor","incarnation":1,"seq":1,"kind":"local"}"#,
        r#"{"actor":"a","seq":1,"kind":"local",}"#,
    ] {
        let at = Line::empty(5, 1);
        assert!(plain(text, &at, 0).is_none() && otherwise(text, &at).is_none(), "{text}");
    }
}

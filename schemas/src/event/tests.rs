use proptest::prelude::*;

use super::*;

#[test]
fn unknown_fields_are_kept() {
    let line = br#"{"actor":"a","seq":1,"kind":"start","host":"h7","n":{"x":[1,2]}}"#;
    let record = EventRecord::parse(line).unwrap();
    assert_eq!(record.attrs["host"], "h7");
    assert_eq!(serde_json::to_string(&record).unwrap().as_bytes(), line.as_slice());
}

#[test]
fn errors_say_what_is_wrong() {
    let code = |line: &[u8]| EventRecord::parse(line).unwrap_err();
    assert_eq!(code(b"\xff"), RecordError::NotUtf8(0));
    assert_eq!(code(br#"{"actor":"a","seq":1,"kind":"sned"}"#), RecordError::UnknownKind("sned".into()));
    assert!(code(br#"{"actor":"a","seq":-4,"kind":"start"}"#).to_string().contains("-4"));
    assert!(code(br#"{"actor":"a","seq":0,"kind":"start"}"#).to_string().contains("from 1"));
    assert!(code(br#"{"actor":"","seq":1,"kind":"start"}"#).to_string().contains("actor"));
    assert!(code(br#"{"actor":"a","seq":1,"kind":"send"}"#).to_string().contains("'to'"));
    assert_eq!(code(b"[1]").code(), "not_json");
    assert_eq!(code(br#"{"level":"info","message":"hello"}"#).code(), "not_json");
    let timer = code(br#"{"actor":"a","seq":1,"kind":"timer_set","timer":"election"}"#);
    assert_eq!(timer.code(), "rule");
    assert!(timer.to_string().contains("column"), "{timer}");
}

proptest! {
    #[test]
    fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = EventRecord::parse(&bytes);
    }

    #[test]
    fn what_is_written_is_read_back(
        actor in "[a-z$/_]{1,8}", seq in 1u64..1_000_000, inc in 0u32..4, k in 0usize..16,
        payload in proptest::option::of(".{0,20}"), extra in "[xyz]{3}[a-z]{1,3}",
    ) {
        let mut record = EventRecord::new(actor, seq, Kind::ALL[k]);
        record.incarnation = inc;
        record.from = Some("f".into());
        record.to = Some("t".into());
        record.payload = payload;
        record.attrs.insert(extra, Value::from(3));
        let text = serde_json::to_vec(&record).unwrap();
        prop_assert_eq!(EventRecord::parse(&text).unwrap(), record);
    }
}

/// What deriving would make of a record: the oracle of the reader.
#[derive(Debug, Deserialize)]
#[serde(rename = "EventRecord")]
struct Derived {
    #[serde(default)]
    system: Option<String>,
    actor: String,
    #[serde(default)]
    incarnation: u32,
    seq: u64,
    kind: Kind,
    #[serde(default)]
    msg_id: Option<String>,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
    #[serde(default)]
    via: Option<Via>,
    #[serde(default)]
    timer: Option<TimerInfo>,
    #[serde(default, rename = "type")]
    type_: Option<String>,
    #[serde(default)]
    payload: Option<String>,
    #[serde(default)]
    fingerprint: Option<String>,
    #[serde(default)]
    external: Option<bool>,
    #[serde(default)]
    fields: Option<Value>,
    #[serde(default)]
    state: Option<Value>,
    #[serde(default)]
    time: Option<Value>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    vector_clock: Option<VectorClock>,
    #[serde(flatten)]
    attrs: BTreeMap<String, Value>,
}

impl From<Derived> for EventRecord {
    fn from(d: Derived) -> Self {
        EventRecord {
            system: d.system,
            actor: d.actor,
            incarnation: d.incarnation,
            seq: d.seq,
            kind: d.kind,
            msg_id: d.msg_id,
            from: d.from,
            to: d.to,
            via: d.via,
            timer: d.timer,
            type_: d.type_,
            payload: d.payload,
            fingerprint: d.fingerprint,
            external: d.external,
            fields: d.fields,
            state: d.state,
            time: d.time,
            source: d.source,
            offset: d.offset,
            line: None,
            vector_clock: d.vector_clock,
            attrs: d.attrs,
        }
    }
}

/// A field's name and a value as JSON text: one that suits it most of the time.
fn field() -> impl Strategy<Value = (&'static str, String)> {
    let any = prop::sample::select(vec![
        "null",
        "true",
        "0",
        "7",
        "-1",
        "1.5",
        "1e400",
        "4294967296",
        r#""x""#,
        r#""\u00e4\n""#,
        r#""send""#,
        "[]",
        r#"[1,{"b":[]}]"#,
        "{}",
        r#"{"a":1,"b":null}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"name":"t","repeat":true,"z":[0]}"#,
    ]);
    let text = prop::sample::select(vec![r#""x""#, r#""a\"b""#, r#""\ud83d\ude00""#, "null"]);
    let number = prop::sample::select(vec!["1", "7", "4000000000"]);
    let texts = ["system", "msg_id", "from", "to", "type", "payload", "fingerprint", "source"];
    let others = ["via", "timer", "external", "fields", "state", "time", "vector_clock", "line", "zone", ""];
    let texts = (prop::sample::select(texts.to_vec()), text.prop_map(str::to_owned));
    let numbers =
        (prop::sample::select(vec!["incarnation", "offset", "seq"]), number.prop_map(str::to_owned));
    let others = (prop::sample::select(others.to_vec()), any.clone().prop_map(str::to_owned));
    let names = ["system", "actor", "seq", "kind", "incarnation", "offset", "external", "timer", "payload"];
    let wrong = (prop::sample::select(names.to_vec()), any.prop_map(str::to_owned));
    prop_oneof![4 => texts, 2 => numbers, 3 => others, 1 => wrong]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn the_reader_accepts_what_deriving_would(
        mut fields in prop::collection::vec(field(), 0..8),
        whole in prop::bool::weighted(0.9),
        cut in prop::option::weighted(0.1, 0usize..200),
    ) {
        if whole {
            let mut needed = vec![("actor", r#""a""#.to_owned()), ("kind", r#""state""#.to_owned())];
            if !fields.iter().any(|(name, _)| *name == "seq") {
                needed.push(("seq", "3".to_owned()));
            }
            fields.extend(needed);
        }
        let members: Vec<String> = fields.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
        let mut text = format!("{{{}}}", members.join(","));
        if let Some(cut) = cut {
            let cut = cut.min(text.len());
            text.truncate((0..=cut).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0));
        }
        let ours = serde_json::from_str::<EventRecord>(&text).map_err(|e| e.to_string());
        let derived = serde_json::from_str::<Derived>(&text).map(EventRecord::from).map_err(|e| e.to_string());
        prop_assert_eq!(&ours, &derived, "{}", text);
        let value = serde_json::from_str::<Value>(&text);
        if let Ok(value) = value {
            let ours = EventRecord::deserialize(&value).map_err(|e| e.to_string());
            let derived = Derived::deserialize(&value).map(EventRecord::from).map_err(|e| e.to_string());
            prop_assert_eq!(&ours, &derived, "{}", text);
        }
    }
}

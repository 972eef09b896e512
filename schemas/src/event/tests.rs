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

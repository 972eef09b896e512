//! A number that tells whether two records say the same.

use demi_schemas::EventRecord;
use demi_schemas::event::is_clock_seq;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// xxh3-64 of a record's content without `system`, `source`, `offset` and `line`.
///
/// The order of keys, at the top and inside structured values, makes no difference. A sequence number taken from a clock is
/// left out, because records that share a nanosecond are moved apart; and where such a record has a text `key` among
/// its attributes, that key says what the event is, whatever else was said with it.
#[must_use]
pub fn record_digest(record: &EventRecord) -> u64 {
    let mut buffer = Vec::with_capacity(512);
    digest_into(record, &mut buffer)
}

/// [`record_digest`] with a buffer to use again.
pub fn digest_into(record: &EventRecord, buffer: &mut Vec<u8>) -> u64 {
    buffer.clear();
    put(buffer, 1, record.actor.as_bytes());
    put(buffer, 2, &record.incarnation.to_le_bytes());
    put(buffer, 4, record.kind.as_str().as_bytes());
    if is_clock_seq(record.seq) {
        if let Some(Value::String(key)) = record.attrs.get("key") {
            put(buffer, 0, key.as_bytes());
            return xxh3_64(buffer);
        }
    } else {
        put(buffer, 3, &record.seq.to_le_bytes());
    }
    let texts = [
        (5, &record.msg_id),
        (6, &record.from),
        (7, &record.to),
        (8, &record.type_),
        (9, &record.payload),
        (10, &record.fingerprint),
    ];
    for (tag, text) in texts {
        if let Some(text) = text {
            put(buffer, tag, text.as_bytes());
        }
    }
    if let Some(via) = record.via {
        put(buffer, 11, via.as_str().as_bytes());
    }
    if let Some(external) = record.external {
        put(buffer, 12, &[u8::from(external)]);
    }
    if let Some(timer) = &record.timer {
        let value = serde_json::to_value(timer).unwrap_or(Value::Null);
        put_value(buffer, 13, &value);
    }
    for (tag, value) in [(14, &record.fields), (15, &record.state), (16, &record.time)] {
        if let Some(value) = value {
            put_value(buffer, tag, value);
        }
    }
    for (name, count) in record.vector_clock.iter().flatten() {
        put(buffer, 22, name.as_bytes());
        put(buffer, 23, &count.to_le_bytes());
    }
    for (name, value) in &record.attrs {
        put(buffer, 17, name.as_bytes());
        put_value(buffer, 18, value);
    }
    xxh3_64(buffer)
}

/// Tag, length, bytes: no two different records write the same.
fn put(buffer: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    buffer.push(tag);
    buffer.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    buffer.extend_from_slice(bytes);
}

fn put_value(buffer: &mut Vec<u8>, tag: u8, value: &Value) {
    match value {
        Value::Null => put(buffer, tag, b"n"),
        Value::Bool(yes) => put(buffer, tag, if *yes { b"t" } else { b"f" }),
        Value::Number(number) => put(buffer, tag, format!("#{number}").as_bytes()),
        Value::String(text) => {
            buffer.push(b'"');
            put(buffer, tag, text.as_bytes());
        }
        Value::Array(items) => {
            put(buffer, tag, format!("[{}", items.len()).as_bytes());
            items.iter().for_each(|item| put_value(buffer, 19, item));
        }
        Value::Object(map) => {
            put(buffer, tag, format!("{{{}", map.len()).as_bytes());
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            for (name, value) in entries {
                put(buffer, 20, name.as_bytes());
                put_value(buffer, 21, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> u64 {
        record_digest(&EventRecord::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn only_content_counts() {
        let one = r#"{"actor":"a","seq":1,"kind":"state","state":{"x":1,"y":[2,{"p":1,"q":2}]},"zone":"z"}"#;
        let same = [
            r#"{"zone":"z","kind":"state","state":{"y":[2,{"q":2,"p":1}],"x":1},"seq":1,"actor":"a"}"#,
            r#"{"system":"s","source":"f","offset":9,"actor":"a","seq":1,"kind":"state","incarnation":0,
                "state":{"x":1,"y":[2,{"p":1,"q":2}]},"zone":"z"}"#,
        ];
        same.iter().for_each(|text| assert_eq!(digest(text), digest(one), "{text}"));
        let other = [
            r#"{"actor":"a","seq":1,"kind":"state","state":{"x":1,"y":[2,{"p":1,"q":3}]},"zone":"z"}"#,
            r#"{"actor":"a","seq":1,"kind":"state","state":{"x":"1","y":[2,{"p":1,"q":2}]},"zone":"z"}"#,
            r#"{"actor":"a","seq":1,"kind":"state","state":{"x":1,"y":[2,{"p":1,"q":2}]},"zone":"y"}"#,
            r#"{"actor":"a","seq":1,"kind":"state","state":{"x":1,"y":[2,{"p":1,"q":2}]}}"#,
            r#"{"actor":"a","seq":1,"kind":"state","vector_clock":{"a":1},"state":{"x":1,"y":[2,{"p":1,"q":2}]},"zone":"z"}"#,
            r#"{"actor":"a","seq":1,"kind":"state","fields":{"x":1,"y":[2,{"p":1,"q":2}]},"zone":"z"}"#,
        ];
        other.iter().for_each(|text| assert_ne!(digest(text), digest(one), "{text}"));
    }

    #[test]
    fn at_a_sequence_number_from_a_clock_the_key_counts() {
        let at =
            |seq: u64, rest: &str| digest(&format!(r#"{{"actor":"a","seq":{seq},"kind":"stop"{rest}}}"#));
        let (t, u) = (1_700_000_000_000_000_000, 1_700_000_000_000_000_001);
        assert_eq!(at(t, ""), at(u, ""));
        assert_ne!(at(t, ""), at(t, r#","payload":"p""#));
        assert_eq!(at(t, r#","key":"k","payload":"p""#), at(u, r#","key":"k","payload":"q""#));
        assert_ne!(at(t, r#","key":"k""#), at(t, r#","key":"l""#));
        assert_ne!(at(7, r#","key":"k","payload":"p""#), at(7, r#","key":"k","payload":"q""#));
    }

    #[test]
    fn neighbouring_fields_do_not_run_together() {
        assert_ne!(
            digest(r#"{"actor":"a","seq":1,"kind":"start","msg_id":"ab","type":"c"}"#),
            digest(r#"{"actor":"a","seq":1,"kind":"start","msg_id":"a","type":"bc"}"#),
        );
    }
}

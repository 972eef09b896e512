//! A number that tells whether two records say the same.

use demi_schemas::event::{VectorClock, is_clock_seq};
use demi_schemas::{EventRecord, Via};
use serde::de::IgnoredAny;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::structured::{Part, put};

/// The attributes of a row that keep what a logger wrote as `source` and `offset`, which are no part of the content.
pub const FOUND: [&str; 2] = ["logged_source", "logged_offset"];

/// What a record says, wherever it is read from.
pub struct Content<'a, P> {
    /// Who did it.
    pub actor: &'a str,
    /// Which incarnation of the actor.
    pub incarnation: u32,
    /// Its sequence number.
    pub seq: u64,
    /// What it was, by name.
    pub kind: &'a str,
    /// Its texts, of which any may be absent: id of the message, sender, receiver, type, payload, fingerprint.
    pub texts: [Option<&'a str>; 6],
    /// How it was sent, by name.
    pub via: Option<&'a str>,
    /// Whether it came from outside.
    pub external: Option<bool>,
    /// What is known of the timer.
    pub timer: Option<&'a Value>,
    /// The content as structure.
    pub fields: Option<P>,
    /// Variables of the actor.
    pub state: Option<P>,
    /// Wall-clock time.
    pub time: Option<&'a Value>,
    /// Counts of events by actor.
    pub vector_clock: Option<&'a VectorClock>,
    /// All other fields, by name.
    pub attrs: &'a [(&'a str, P)],
}

/// xxh3-64 of a record's content without `system`, `source`, `offset` and `line`.
///
/// The order of keys, at the top and inside structured values, makes no difference. A sequence number taken from a clock is
/// left out, because records that share a nanosecond are moved apart; and where such a record has a text `key` among
/// its attributes, that key says what the event is, whatever else was said with it.
#[must_use]
pub fn record_digest(record: &EventRecord) -> u64 {
    Digester::default().record(record)
}

/// Makes digests of records, one after the other.
#[derive(Default)]
pub struct Digester {
    buffer: Vec<u8>,
    /// Whether all values seen of this record are read back from JSON text as they are.
    plain: bool,
}

impl Digester {
    /// [`record_digest`].
    pub fn record(&mut self, record: &EventRecord) -> u64 {
        self.told(record).0
    }

    /// [`Digester::content_told`] of a record.
    pub fn told(&mut self, record: &EventRecord) -> (u64, bool) {
        let timer = record.timer.as_ref().map(|timer| serde_json::to_value(timer).unwrap_or(Value::Null));
        let attrs: Vec<_> = record.attrs.iter().map(|(name, value)| (name.as_str(), value)).collect();
        self.content_told(&Content {
            actor: &record.actor,
            incarnation: record.incarnation,
            seq: record.seq,
            kind: record.kind.as_str(),
            texts: [
                record.msg_id.as_deref(),
                record.from.as_deref(),
                record.to.as_deref(),
                record.type_.as_deref(),
                record.payload.as_deref(),
                record.fingerprint.as_deref(),
            ],
            via: record.via.map(Via::as_str),
            external: record.external,
            timer: timer.as_ref(),
            fields: record.fields.as_ref(),
            state: record.state.as_ref(),
            time: record.time.as_ref(),
            vector_clock: record.vector_clock.as_ref(),
            attrs: &attrs,
        })
    }

    /// The digest of a content, and whether it is told by the row in a table, which has structured values as JSON text
    /// and other fields for where the record was found.
    pub fn content_told<P: Part>(&mut self, content: &Content<'_, P>) -> (u64, bool) {
        let digest = self.content(content);
        // A text that is JSON too stands in the row as the value that it is not.
        let time = match content.time {
            Some(Value::String(text)) => serde_json::from_str::<IgnoredAny>(text).is_err(),
            _ => true,
        };
        let moved = content.attrs.iter().any(|(name, _)| FOUND.contains(name));
        (digest, self.plain && time && !moved)
    }

    /// The digest of a content.
    pub fn content<P: Part>(&mut self, content: &Content<'_, P>) -> u64 {
        self.buffer.clear();
        self.plain = true;
        self.put(1, content.actor.as_bytes());
        self.put(2, &content.incarnation.to_le_bytes());
        self.put(4, content.kind.as_bytes());
        if is_clock_seq(content.seq) {
            let key = content.attrs.iter().find(|(name, _)| *name == "key");
            if let Some(key) = key.and_then(|(_, key)| key.text()) {
                self.put(0, key.as_bytes());
                let digest = xxh3_64(&self.buffer);
                // Whether the row tells all of it is about the rest as well, which is read back with it.
                [content.timer, content.time].into_iter().for_each(|value| self.value(0, value));
                [content.fields, content.state].into_iter().for_each(|value| self.value(0, value));
                content.attrs.iter().for_each(|(_, value)| self.value(0, Some(*value)));
                return digest;
            }
        } else {
            self.put(3, &content.seq.to_le_bytes());
        }
        for (tag, text) in (5..).zip(content.texts) {
            if let Some(text) = text {
                self.put(tag, text.as_bytes());
            }
        }
        if let Some(via) = content.via {
            self.put(11, via.as_bytes());
        }
        if let Some(external) = content.external {
            self.put(12, &[u8::from(external)]);
        }
        self.value(13, content.timer);
        self.value(14, content.fields);
        self.value(15, content.state);
        self.value(16, content.time);
        for (name, count) in content.vector_clock.into_iter().flatten() {
            self.put(22, name.as_bytes());
            self.put(23, &count.to_le_bytes());
        }
        for (name, value) in content.attrs {
            self.put(17, name.as_bytes());
            self.value(18, Some(*value));
        }
        xxh3_64(&self.buffer)
    }

    fn put(&mut self, tag: u8, bytes: &[u8]) {
        put(&mut self.buffer, tag, bytes);
    }

    fn value(&mut self, tag: u8, value: Option<impl Part>) {
        if let Some(value) = value {
            self.plain &= value.put(tag, &mut self.buffer);
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
    fn a_record_known_by_its_key_is_told_by_its_row_only_where_all_of_it_is_read_back() {
        let told = |rest: &str| {
            let text = format!(r#"{{"actor":"a","seq":1700000000000000000,"kind":"stop","key":"k"{rest}}}"#);
            let record = EventRecord::parse(text.as_bytes()).unwrap();
            Digester::default().told(&record)
        };
        let (shallow, deep) =
            (told(",\"z\":[1]"), told(&format!(",\"z\":{}1{}", "[".repeat(100), "]".repeat(100))));
        assert_eq!((shallow.1, deep.1), (true, false));
        assert_eq!(shallow.0, deep.0, "the key alone says what it is");
    }

    #[test]
    fn neighbouring_fields_do_not_run_together() {
        assert_ne!(
            digest(r#"{"actor":"a","seq":1,"kind":"start","msg_id":"ab","type":"c"}"#),
            digest(r#"{"actor":"a","seq":1,"kind":"start","msg_id":"a","type":"bc"}"#),
        );
    }
}

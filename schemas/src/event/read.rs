//! Event records from any format of serde, in one pass over the fields.
//!
//! What `#[derive(Deserialize)]` makes of a struct with a flattened map keeps unknown fields aside and reads them a second
//! time. What is accepted and what is refused, and why, is the same, which a test compares.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use super::EventRecord;

/// A struct of options, one for each field that a record may have, filled as fields come.
macro_rules! slots {
    ($($field:ident = $name:literal: $type:ty,)*) => {
        /// A name in a record.
        #[allow(non_camel_case_types)]
        enum Name {
            $($field,)*
            Other(String),
        }

        impl<'de> Deserialize<'de> for Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Names;
                impl Visitor<'_> for Names {
                    type Value = Name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a field name")
                    }
                    fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                        Ok(match name {
                            $($name => Name::$field,)*
                            _ => Name::Other(name.to_owned()),
                        })
                    }
                }
                deserializer.deserialize_identifier(Names)
            }
        }

        #[derive(Default)]
        struct Slots {
            $($field: Option<$type>,)*
            attrs: BTreeMap<String, Value>,
        }

        impl Slots {
            fn fill<'de, A: MapAccess<'de>>(&mut self, name: Name, map: &mut A) -> Result<(), A::Error> {
                match name {
                    $(Name::$field => {
                        if self.$field.is_some() {
                            return Err(Error::duplicate_field($name));
                        }
                        self.$field = Some(map.next_value()?);
                    })*
                    Name::Other(name) => {
                        self.attrs.insert(name, map.next_value()?);
                    }
                }
                Ok(())
            }
        }
    };
}

slots! {
    system = "system": Option<String>,
    actor = "actor": String,
    incarnation = "incarnation": u32,
    seq = "seq": u64,
    kind = "kind": super::Kind,
    msg_id = "msg_id": Option<String>,
    from = "from": Option<String>,
    to = "to": Option<String>,
    via = "via": Option<super::Via>,
    timer = "timer": Option<super::TimerInfo>,
    type_ = "type": Option<String>,
    payload = "payload": Option<String>,
    fingerprint = "fingerprint": Option<String>,
    external = "external": Option<bool>,
    fields = "fields": Option<Value>,
    state = "state": Option<Value>,
    time = "time": Option<Value>,
    source = "source": Option<String>,
    offset = "offset": Option<u64>,
    vector_clock = "vector_clock": Option<super::VectorClock>,
}

impl<'de> Deserialize<'de> for EventRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Records)
    }
}

struct Records;

impl<'de> Visitor<'de> for Records {
    type Value = EventRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct EventRecord")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EventRecord, A::Error> {
        let mut slots = Slots::default();
        while let Some(name) = map.next_key()? {
            slots.fill(name, &mut map)?;
        }
        Ok(EventRecord {
            system: slots.system.flatten(),
            actor: slots.actor.ok_or_else(|| Error::missing_field("actor"))?,
            incarnation: slots.incarnation.unwrap_or_default(),
            seq: slots.seq.ok_or_else(|| Error::missing_field("seq"))?,
            kind: slots.kind.ok_or_else(|| Error::missing_field("kind"))?,
            msg_id: slots.msg_id.flatten(),
            from: slots.from.flatten(),
            to: slots.to.flatten(),
            via: slots.via.flatten(),
            timer: slots.timer.flatten(),
            type_: slots.type_.flatten(),
            payload: slots.payload.flatten(),
            fingerprint: slots.fingerprint.flatten(),
            external: slots.external.flatten(),
            fields: slots.fields.flatten(),
            state: slots.state.flatten(),
            time: slots.time.flatten(),
            source: slots.source.flatten(),
            offset: slots.offset.flatten(),
            line: None,
            vector_clock: slots.vector_clock.flatten(),
            attrs: slots.attrs,
        })
    }
}

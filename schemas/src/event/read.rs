//! Event records from any format of serde, in one pass over the fields.
//!
//! What `#[derive(Deserialize)]` makes of a struct with a flattened map keeps unknown fields aside and reads them a second
//! time. What is accepted and what is refused, and why, is the same, which a test compares.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::EventRecord;

/// The fields that a record may have: their names, and how each is read.
macro_rules! fields {
    ($($field:ident = $name:literal,)*) => {
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

        /// The fields that came.
        #[derive(Default)]
        struct FieldSet {
            $($field: bool,)*
        }

        /// Reads the field of that name.
        fn fill<'de, A: MapAccess<'de>>(
            record: &mut EventRecord,
            seen: &mut FieldSet,
            name: Name,
            map: &mut A,
        ) -> Result<(), A::Error> {
            match name {
                $(Name::$field => {
                    if std::mem::replace(&mut seen.$field, true) {
                        return Err(Error::duplicate_field($name));
                    }
                    record.$field = map.next_value()?;
                })*
                Name::Other(name) => {
                    record.attrs.insert(name, map.next_value()?);
                }
            }
            Ok(())
        }
    };
}

fields! {
    system = "system",
    actor = "actor",
    incarnation = "incarnation",
    seq = "seq",
    kind = "kind",
    msg_id = "msg_id",
    from = "from",
    to = "to",
    via = "via",
    timer = "timer",
    type_ = "type",
    payload = "payload",
    fingerprint = "fingerprint",
    external = "external",
    fields = "fields",
    state = "state",
    time = "time",
    source = "source",
    offset = "offset",
    vector_clock = "vector_clock",
}

impl<'de> Deserialize<'de> for EventRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record = EventRecord::new(String::new(), 0, super::Kind::Local);
        RecordReader(&mut record).deserialize(deserializer)?;
        Ok(record)
    }
}

/// Reads a record into its place. It is large, and to move it about would cost as much as to read it.
pub(super) struct RecordReader<'r>(pub(super) &'r mut EventRecord);

impl<'de> DeserializeSeed<'de> for RecordReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct EventRecord")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = FieldSet::default();
        while let Some(name) = map.next_key()? {
            fill(self.0, &mut seen, name, &mut map)?;
        }
        for (there, name) in [(seen.actor, "actor"), (seen.seq, "seq"), (seen.kind, "kind")] {
            if !there {
                return Err(Error::missing_field(name));
            }
        }
        Ok(())
    }
}

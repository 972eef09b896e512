//! Structured values that are read where they stand in a JSON text: what a digest takes of them, and the text without what says nothing. No tree is made
//! of them: it would take sixteen times the bytes of a text of small numbers.

use std::fmt;
use std::ops::Range;

use demi_common::text::exact_numbers;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Levels within each other in a structured value that are read back: half of what the JSON reader takes.
const DEEP: u32 = 64;

/// What a digest takes of a structured value.
pub trait Part: Copy {
    /// Writes it, with a tag; says whether the value is read back from JSON text as it is.
    fn put(self, tag: u8, digest: &mut Vec<u8>) -> bool;

    /// The value, if it is a text.
    fn text(&self) -> Option<&str>;
}

/// Tag, length, bytes: no two different values write the same.
pub(crate) fn put(digest: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    digest.push(tag);
    digest.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    digest.extend_from_slice(bytes);
}

/// Bytes that [`put`] writes before the bytes it is given.
const BEFORE: usize = 9;

impl Part for &Value {
    fn put(self, tag: u8, digest: &mut Vec<u8>) -> bool {
        put_tree(tag, self, 0, digest)
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }
}

fn put_tree(tag: u8, value: &Value, depth: u32, digest: &mut Vec<u8>) -> bool {
    match value {
        Value::Null => put(digest, tag, b"n"),
        Value::Bool(yes) => put(digest, tag, if *yes { b"t" } else { b"f" }),
        Value::Number(number) => put(digest, tag, format!("#{number}").as_bytes()),
        Value::String(text) => {
            digest.push(b'"');
            put(digest, tag, text.as_bytes());
        }
        Value::Array(items) => {
            put(digest, tag, format!("[{}", items.len()).as_bytes());
            let mut whole = depth < DEEP;
            for item in items {
                whole &= put_tree(19, item, depth + 1, digest);
            }
            return whole;
        }
        Value::Object(map) => {
            put(digest, tag, format!("{{{}", map.len()).as_bytes());
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            let mut whole = depth < DEEP;
            for (name, value) in entries {
                whole &= !is_special(name);
                put(digest, 20, name.as_bytes());
                whole &= put_tree(21, value, depth + 1, digest);
            }
            return whole;
        }
    }
    true
}

/// Whether a name means something to the JSON reader.
fn is_special(name: &str) -> bool {
    name.starts_with("$serde_json")
}

/// A value that was read: its places in [`Values`].
#[derive(Clone, Debug)]
pub struct Structured {
    digest: Range<usize>,
    text: Range<usize>,
    whole: bool,
}

/// Room for the values of a record.
#[derive(Debug, Default)]
pub struct Values {
    digest: Vec<u8>,
    text: Vec<u8>,
    /// Of the objects that are being read: where their entries begin in `digest`, and the lengths of their names.
    entries: Vec<(usize, usize)>,
    /// To sort entries.
    sorted: Vec<u8>,
    /// Whether the value that is being read is read back from JSON text as it is.
    whole: bool,
}

/// What a digest takes of a value that was read.
#[derive(Clone, Copy, Debug)]
pub struct ReadPart<'a> {
    digest: &'a [u8],
    whole: bool,
}

impl Part for ReadPart<'_> {
    fn put(self, tag: u8, digest: &mut Vec<u8>) -> bool {
        let from = digest.len() + usize::from(self.digest.first() == Some(&b'"'));
        digest.extend_from_slice(self.digest);
        if let Some(place) = digest.get_mut(from) {
            *place = tag;
        }
        self.whole
    }

    fn text(&self) -> Option<&str> {
        match self.digest.split_first() {
            Some((b'"', rest)) => std::str::from_utf8(rest.get(BEFORE..)?).ok(),
            _ => None,
        }
    }
}

impl Values {
    /// Forgets what was read. The room is kept.
    pub fn clear(&mut self) {
        [&mut self.digest, &mut self.text, &mut self.sorted].into_iter().for_each(Vec::clear);
        self.entries.clear();
    }

    /// Reads a JSON text.
    ///
    /// # Errors
    /// When it is not JSON, or when an object in it has two entries of one name.
    pub fn read(&mut self, json: &str) -> Result<Structured, serde_json::Error> {
        let json = exact_numbers(json);
        let mut reader = serde_json::Deserializer::from_str(&json);
        let read = self.read_from(&mut reader)?;
        reader.end()?;
        Ok(read)
    }

    fn read_from<'j, D: Deserializer<'j>>(&mut self, from: D) -> Result<Structured, D::Error> {
        self.whole = true;
        let (digest, text) = (self.digest.len(), self.text.len());
        Walk { values: self, tag: 0, depth: 0, comma: false }.deserialize(from)?;
        Ok(Structured { digest: digest..self.digest.len(), text: text..self.text.len(), whole: self.whole })
    }

    /// Reads a JSON text that holds an object: its entries in the order of their names.
    ///
    /// # Errors
    /// As [`Values::read`], and when it is not an object.
    pub fn read_entries(&mut self, json: &str) -> Result<Vec<(String, Structured)>, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let mut entries = reader.deserialize_map(Entries(self))?;
        reader.end()?;
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        match entries.iter().zip(entries.iter().skip(1)).any(|(one, next)| one.0 == next.0) {
            true => Err(twice()),
            false => Ok(entries),
        }
    }

    /// What a digest takes of a value.
    #[must_use]
    pub fn part(&self, value: &Structured) -> ReadPart<'_> {
        ReadPart { digest: self.digest.get(value.digest.clone()).unwrap_or_default(), whole: value.whole }
    }

    /// The JSON text of a value, without spaces.
    #[must_use]
    pub fn json(&self, value: &Structured) -> &str {
        let text = self.text.get(value.text.clone()).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    fn put_name(&mut self, name: &str, comma: bool) -> Result<(), serde_json::Error> {
        if comma {
            self.text.push(b',');
        }
        serde_json::to_writer(&mut self.text, name)?;
        self.text.push(b':');
        self.whole &= !is_special(name);
        self.entries.push((self.digest.len(), name.len()));
        put(&mut self.digest, 20, name.as_bytes());
        Ok(())
    }

    /// Says of what the digest has from `from` on how many parts of what kind it is.
    fn put_head(&mut self, from: usize, tag: u8, kind: char, count: usize) {
        let mut head = Vec::with_capacity(2 * BEFORE);
        put(&mut head, tag, format!("{kind}{count}").as_bytes());
        self.digest.splice(from..from, head);
    }

    /// Brings the entries from `base` on, which the digest has from `from` on, into the order of their names. Says whether all names are different.
    fn sort_entries(&mut self, from: usize, base: usize) -> bool {
        let Values { digest, entries, sorted, .. } = self;
        let own = entries.get(base..).unwrap_or_default();
        let name = |&(begin, length): &(usize, usize)| digest.get(begin + BEFORE..begin + BEFORE + length);
        if own.is_sorted_by(|one, next| name(one) < name(next)) {
            return true;
        }
        let ends = own.iter().skip(1).map(|next| next.0).chain([digest.len()]);
        let mut order: Vec<_> = own.iter().zip(ends).collect();
        order.sort_unstable_by_key(|(entry, _)| name(entry));
        let different = order.iter().zip(order.iter().skip(1)).all(|(one, next)| name(one.0) != name(next.0));
        sorted.clear();
        for ((begin, _), end) in order {
            sorted.extend_from_slice(digest.get(*begin..end).unwrap_or_default());
        }
        digest.truncate(from);
        digest.append(sorted);
        different
    }
}

fn twice<E: de::Error>() -> E {
    E::custom("two entries of one object have one name")
}

/// Reads a value into the room.
struct Walk<'v> {
    values: &'v mut Values,
    tag: u8,
    depth: u32,
    /// Whether a comma comes before it.
    comma: bool,
}

impl Walk<'_> {
    fn begin(&mut self) {
        if self.comma {
            self.values.text.push(b',');
        }
    }

    /// A value without parts: what the digest takes, and how it is written.
    fn put<E>(mut self, digest: &[u8], text: &[u8]) -> Result<(), E> {
        self.begin();
        put(&mut self.values.digest, self.tag, digest);
        self.values.text.extend_from_slice(text);
        Ok(())
    }

    fn number<E>(self, number: &Number) -> Result<(), E> {
        let text = format!("#{number}");
        self.put(text.as_bytes(), text.as_bytes().get(1..).unwrap_or_default())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.put(b"n", b"null")
    }

    fn visit_bool<E>(self, yes: bool) -> Result<(), E> {
        if yes { self.put(b"t", b"true") } else { self.put(b"f", b"false") }
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(&number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(&number.into())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<(), E> {
        match Number::from_f64(number) {
            Some(number) => self.number(&number),
            None => self.visit_unit(),
        }
    }

    fn visit_str<E: de::Error>(mut self, text: &str) -> Result<(), E> {
        self.begin();
        self.values.digest.push(b'"');
        put(&mut self.values.digest, self.tag, text.as_bytes());
        serde_json::to_writer(&mut self.values.text, text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.begin();
        let Walk { values, tag, depth, .. } = self;
        let (from, mut count) = (values.digest.len(), 0);
        values.text.push(b'[');
        loop {
            let item = Walk { values: &mut *values, tag: 19, depth: depth + 1, comma: count > 0 };
            if items.next_element_seed(item)?.is_none() {
                break;
            }
            count += 1;
        }
        values.text.push(b']');
        values.put_head(from, tag, '[', count);
        values.whole &= depth < DEEP;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.begin();
        let Walk { values, tag, depth, .. } = self;
        let (from, base) = (values.digest.len(), values.entries.len());
        values.text.push(b'{');
        while entries
            .next_key_seed(Name { comma: values.entries.len() > base, values: &mut *values })?
            .is_some()
        {
            entries.next_value_seed(Walk {
                values: &mut *values,
                tag: 21,
                depth: depth + 1,
                comma: false,
            })?;
        }
        values.text.push(b'}');
        let different = values.sort_entries(from, base);
        let count = values.entries.len() - base;
        values.entries.truncate(base);
        values.put_head(from, tag, '{', count);
        values.whole &= depth < DEEP;
        different.then_some(()).ok_or_else(twice)
    }
}

/// Reads the name of an entry.
struct Name<'v> {
    values: &'v mut Values,
    comma: bool,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<(), E> {
        self.values.put_name(name, self.comma).map_err(E::custom)
    }
}

/// Reads the entries of an object, each as a value of its own.
struct Entries<'v>(&'v mut Values);

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Vec<(String, Structured)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(name) = entries.next_key::<String>()? {
            read.push((name, entries.next_value_seed(Whole(&mut *self.0))?));
        }
        Ok(read)
    }
}

/// Reads a value as one of its own.
struct Whole<'v>(&'v mut Values);

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = Structured;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Structured, D::Error> {
        self.0.read_from(from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            r#"[a-c\\"é\n]{0,4}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((r"[a-d]{0,3}|\$serde_json", inner), 0..6)
                    .prop_map(|entries| entries.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_a_tree_says(values in prop::collection::vec(any_value(), 1..4)) {
            let mut room = Values::default();
            for value in values {
                for json in [value.to_string(), format!(" {value:#} ")] {
                    // A number with a point may be read as its neighbour.
                    let tree: Value = serde_json::from_str(&json).unwrap();
                    let read = room.read(&json).unwrap();
                    let (mut one, mut other) = (Vec::new(), Vec::new());
                    prop_assert_eq!(room.part(&read).put(17, &mut one), (&tree).put(17, &mut other));
                    prop_assert_eq!(one, other);
                    let part = room.part(&read);
                    prop_assert_eq!(part.text(), tree.as_str());
                    prop_assert_eq!(room.json(&read), tree.to_string());
                }
            }
        }
    }

    #[test]
    fn entries_are_read_one_by_one() {
        let mut room = Values::default();
        let entries = room.read_entries(r#"{"b":[1,{"y":1,"x":2}],"a":"t"}"#).unwrap();
        let names: Vec<_> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let first = room.part(&entries[0].1);
        assert_eq!(first.text(), Some("t"));
        let (mut one, mut other) = (Vec::new(), Vec::new());
        room.part(&entries[1].1).put(1, &mut one);
        (&json!([1, {"x": 2, "y": 1}])).put(1, &mut other);
        assert_eq!(one, other);
    }

    #[test]
    fn a_name_that_comes_twice_is_refused() {
        let mut room = Values::default();
        for json in [r#"{"a":1,"a":2}"#, r#"[{"b":1,"a":2,"b":3}]"#, "[1", "1 2", "{1:2}"] {
            assert!(room.read(json).is_err(), "{json}");
        }
        assert!(room.read_entries(r#"{"a":1,"b":1,"a":1}"#).is_err());
        assert!(room.read_entries("[1]").is_err());
    }
}

//! Logs of messages and states that serde can write: a model with such types needs no code for them.

use std::fmt::{self, Debug, Display};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::{Impossible, Serializer};
use serde_json::{Map, Value};

use super::logs::{ExternalMessage, Logs};
use crate::names::{Names, by_name};

/// Logs messages and states as serde writes them, and reads messages from outside back.
///
/// The variant of an enum is the message's type, and its content is JSON: `Granted` or `Grant {"term":3,"to":"client-1"}`. Actors stand there by their
/// names. A message from outside is read in that form, and as JSON alone, with the variant around the content or without. States are shown as JSON, so that
/// invariants of a scenario can ask for their fields.
///
/// ```
/// use demi_replay::model::{ExternalMessage, Logs, Serialized};
/// use demi_replay::{ActorId, Names};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// enum Msg {
///     Acquire,
///     Grant { term: u64, to: ActorId },
/// }
///
/// let mut names = Names::default();
/// let grant = Msg::Grant { term: 3, to: names.id("client-1") };
/// let logs: &dyn Logs<(), Msg> = &Serialized;
/// assert_eq!(logs.payload(&grant, &names), r#"Grant {"term":3,"to":"client-1"}"#);
/// assert_eq!(logs.payload(&Msg::Acquire, &names), "Acquire");
/// let outside = ExternalMessage { type_: "Grant", payload: r#"{"term":3,"to":"client-1"}"#, fields: None };
/// assert_eq!(logs.external(outside, &mut names), Ok(grant));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Serialized;

impl<S, Msg> Logs<S, Msg> for Serialized
where
    S: Debug + Serialize,
    Msg: Debug + Serialize + DeserializeOwned,
{
    fn type_name(&self, msg: &Msg) -> String {
        let variant = msg.serialize(Variant).err().and_then(|not| not.0);
        variant.map_or_else(|| Logs::<S, Msg>::type_name(&(), msg), str::to_owned)
    }

    fn payload(&self, msg: &Msg, names: &Names) -> String {
        let type_ = Logs::<S, Msg>::type_name(self, msg);
        match content(&type_, written(msg, names)) {
            Value::Null => type_,
            content => format!("{type_} {content}"),
        }
    }

    fn external(&self, message: ExternalMessage<'_>, names: &mut Names) -> Result<Msg, String> {
        let ExternalMessage { type_, payload, fields } = message;
        let rest = payload.strip_prefix(type_).unwrap_or(payload).trim();
        let told = match rest {
            "" => Ok(Value::Null),
            text => serde_json::from_str(text).map_err(|error| error.to_string()),
        };
        let forms = told.clone().ok().into_iter().chain(fields.cloned()).flat_map(|content| {
            let tagged = match &content {
                Value::Null => Value::String(type_.to_owned()),
                _ => Value::Object(Map::from_iter([(type_.to_owned(), content.clone())])),
            };
            [tagged, content]
        });
        let mut why = told.err();
        for form in forms {
            match by_name(names, || serde_json::from_value(form)) {
                Ok(msg) => return Ok(msg),
                Err(error) => drop(why.get_or_insert(error.to_string())),
            }
        }
        Err(format!("'{payload}' is no {type_} of the model: {}", why.unwrap_or_default()))
    }

    fn describe(&self, state: &S, names: &Names) -> Value {
        written(state, names)
    }
}

/// A value as JSON, actors by their names; what serde cannot write as `Debug` prints it.
fn written<T: Debug + Serialize>(value: &T, names: &Names) -> Value {
    let json = by_name(&mut names.clone(), || serde_json::to_value(value));
    json.unwrap_or_else(|_| Value::String(format!("{value:?}")))
}

/// What stands beside a message's type.
fn content(type_: &str, whole: Value) -> Value {
    match whole {
        Value::String(text) if text == type_ => Value::Null,
        Value::Object(mut map) if map.len() == 1 && map.contains_key(type_) => {
            map.shift_remove(type_).unwrap_or_default()
        }
        whole => whole,
    }
}

/// A serializer that gets no further than the variant of an enum, which is its error.
struct Variant;

/// The variant that was to be written; nothing for what is no variant.
#[derive(Debug)]
struct Not(Option<&'static str>);

impl Display for Not {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.unwrap_or("no variant"))
    }
}

impl std::error::Error for Not {}

impl serde::ser::Error for Not {
    fn custom<T: Display>(_: T) -> Self {
        Not(None)
    }
}

type Never = Impossible<(), Not>;

/// What is no variant ends here.
macro_rules! no_variant {
    ($($name:ident($($type:ty),*) -> $ok:ty;)*) => {
        $(fn $name(self, $(_: $type),*) -> Result<$ok, Not> { Err(Not(None)) })*
    };
}

impl Serializer for Variant {
    type Ok = ();
    type Error = Not;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    no_variant! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_seq(Option<usize>) -> Never;
        serialize_tuple(usize) -> Never;
        serialize_tuple_struct(&'static str, usize) -> Never;
        serialize_map(Option<usize>) -> Never;
        serialize_struct(&'static str, usize) -> Never;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Not> {
        Err(Not(None))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), Not> {
        Err(Not(None))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Not> {
        Err(Not(Some(variant)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<(), Not> {
        Err(Not(Some(variant)))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Never, Not> {
        Err(Not(Some(variant)))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Never, Not> {
        Err(Not(Some(variant)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use crate::names::ActorId;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Msg {
        Plain,
        One(u64),
        Who(ActorId),
        Two(i64, Option<ActorId>),
        Fields {
            text: String,
            votes: BTreeMap<ActorId, bool>,
        },
        #[serde(rename = "other-name")]
        Renamed(Vec<Msg>),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Ping {
        n: u64,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        A { n: u64 },
        B,
    }

    fn messages() -> impl Strategy<Value = Msg> {
        let actor = (0..5_u16).prop_map(ActorId);
        let leaf = prop_oneof![
            Just(Msg::Plain),
            any::<u64>().prop_map(Msg::One),
            actor.clone().prop_map(Msg::Who),
            (any::<i64>(), prop::option::of(actor.clone())).prop_map(|(n, who)| Msg::Two(n, who)),
            (".*", prop::collection::btree_map(actor, any::<bool>(), 0..4))
                .prop_map(|(text, votes)| Msg::Fields { text, votes }),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Msg::Renamed))
    }

    fn there_and_back<M: Clone + Debug + PartialEq + Serialize + DeserializeOwned>(msg: &M) {
        let mut names = Names::default();
        for name in ["a", "b-2", "Plain", "\u{e9}"] {
            names.id(name);
        }
        let logs: &dyn Logs<(), M> = &Serialized;
        let (type_, payload) = (logs.type_name(msg), logs.payload(msg, &names));
        assert!(payload.starts_with(&type_), "{payload}");
        let outside = ExternalMessage { type_: &type_, payload: &payload, fields: None };
        assert_eq!(logs.external(outside, &mut names).as_ref(), Ok(msg), "{payload}");
        // As a program would log it that knows nothing of this form.
        let plain = by_name(&mut names, || serde_json::to_string(msg).unwrap());
        let outside = ExternalMessage { type_: &type_, payload: &plain, fields: None };
        assert_eq!(logs.external(outside, &mut names).as_ref(), Ok(msg), "{plain}");
        let fields = by_name(&mut names, || serde_json::to_value(msg).unwrap());
        let outside =
            ExternalMessage { type_: &type_, payload: "as somebody prints it", fields: Some(&fields) };
        assert_eq!(logs.external(outside, &mut names).as_ref(), Ok(msg), "{fields}");
    }

    proptest! {
        #[test]
        fn messages_are_read_back(msg in messages(), n in any::<u64>()) {
            there_and_back(&msg);
            there_and_back(&Ping { n });
            there_and_back(&Tagged::A { n });
            there_and_back(&Tagged::B);
        }
    }

    #[test]
    fn types_are_what_serde_calls_the_variant() {
        let logs: &dyn Logs<(), Msg> = &Serialized;
        assert_eq!(logs.type_name(&Msg::Renamed(Vec::new())), "other-name");
        assert_eq!(logs.type_name(&Msg::Two(1, None)), "Two");
        let logs: &dyn Logs<(), Ping> = &Serialized;
        assert_eq!(logs.payload(&Ping { n: 3 }, &Names::default()), r#"Ping {"n":3}"#);
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_reason() {
        let logs: &dyn Logs<(), Msg> = &Serialized;
        let mut names = Names::default();
        let outside = ExternalMessage { type_: "One", payload: r#"One "x""#, fields: None };
        let error = logs.external(outside, &mut names).unwrap_err();
        assert!(error.contains("One \"x\"") && error.contains("u64"), "{error}");
    }

    #[test]
    fn an_actor_has_no_name_outside_a_simulator() {
        assert!(serde_json::to_string(&ActorId(1)).unwrap_err().to_string().contains("by name"));
        assert!(serde_json::from_str::<ActorId>("\"a\"").is_err());
        // Not even after something failed there.
        let failed = std::panic::catch_unwind(|| by_name(&mut Names::default(), || panic!("in the middle")));
        assert!(failed.is_err() && serde_json::to_string(&ActorId(0)).is_err());
    }
}

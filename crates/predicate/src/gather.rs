//! Many states, read so that they share names and values.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_128;

use crate::state::{Shape, State, Values};

/// Reads many states, each text once.
#[derive(Default)]
pub struct Gather {
    values: Values,
    shapes: FxHashMap<Vec<String>, Shape>,
    /// How the last text had its variables.
    layout: Layout,
    /// By hash of 128 bits: the state with that text.
    known: FxHashMap<u128, usize>,
    states: Vec<(Shape, Box<[u32]>)>,
}

/// The layout of the variables in a text. Texts of one program have them in the same way.
struct Layout {
    /// Their names, in the order of the text.
    names: Vec<String>,
    /// For each name in order, where the text has it last.
    places: Vec<usize>,
    shape: Shape,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { names: Vec::new(), places: Vec::new(), shape: Arc::from([]) }
    }
}

/// A member of an object: its name, and the number of its value.
type Member<'t> = (Cow<'t, str>, u32);

impl Gather {
    /// Reads the text of a state record; the number of the state, which is that of an earlier one with the same text. A text that is no
    /// JSON object is a state without variables.
    pub fn add(&mut self, text: &str) -> usize {
        let hash = xxh3_128(text.as_bytes());
        if let Some(&known) = self.known.get(&hash) {
            return known;
        }
        let mut members = Vec::with_capacity(self.layout.names.len());
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = Members { values: &mut self.values, into: &mut members }.deserialize(&mut reader);
        if read.and_then(|()| reader.end()).is_err() {
            members.clear();
        }
        let number = self.push(members);
        self.known.insert(hash, number);
        number
    }

    pub(crate) fn add_value(&mut self, value: Json) -> usize {
        let Json::Object(variables) = value else { return self.push(Vec::new()) };
        let number = |(name, value)| (Cow::Owned(name), self.values.number_owned(value));
        let members = variables.into_iter().map(number).collect();
        self.push(members)
    }

    fn push(&mut self, members: Vec<Member<'_>>) -> usize {
        let as_before = members.len() == self.layout.names.len()
            && members.iter().zip(&self.layout.names).all(|((name, _), known)| name == known);
        if !as_before {
            self.layout = self.layout_of(&members);
        }
        let numbers = self.layout.places.iter().map(|place| members[*place].1).collect();
        self.states.push((self.layout.shape.clone(), numbers));
        self.states.len() - 1
    }

    fn layout_of(&mut self, members: &[Member<'_>]) -> Layout {
        let mut places: Vec<usize> = (0..members.len()).collect();
        places.sort_by(|a, b| members[*a].0.cmp(&members[*b].0));
        // Of members with one name the last counts, as everywhere.
        let mut last: Vec<usize> = Vec::with_capacity(places.len());
        for place in places {
            last.pop_if(|before| members[*before].0 == members[place].0);
            last.push(place);
        }
        let sorted: Vec<String> = last.iter().map(|place| members[*place].0.clone().into_owned()).collect();
        let shape = match self.shapes.get(&sorted) {
            Some(shape) => shape.clone(),
            None => {
                let shape: Shape = sorted.iter().map(|name| Arc::from(name.as_str())).collect();
                self.shapes.insert(sorted, shape.clone());
                shape
            }
        };
        let names = members.iter().map(|(name, _)| name.clone().into_owned()).collect();
        Layout { names, places: last, shape }
    }

    /// The states, by their numbers.
    #[must_use]
    pub fn finish(self) -> Vec<Arc<State>> {
        let values = Arc::new(self.values);
        let state = |(shape, numbers)| Arc::new(State::numbered(shape, numbers, values.clone()));
        self.states.into_iter().map(state).collect()
    }
}

impl State {
    /// Reads the text of a state record; text that is no JSON is a state without variables.
    #[must_use]
    pub fn parse(text: &str) -> State {
        State::new(serde_json::from_str(text).unwrap_or_default())
    }

    /// A state with these variables; without any where it is no object.
    #[must_use]
    pub fn new(variables: Json) -> State {
        let mut gather = Gather::default();
        gather.add_value(variables);
        gather.finish().pop().map_or_else(State::default, Arc::unwrap_or_clone)
    }
}

/// Reads the members of an object, each value as it comes; nothing of another value.
struct Members<'g, 't> {
    values: &'g mut Values,
    into: &'g mut Vec<Member<'t>>,
}

/// A name, borrowed where the text has it as it is.
#[derive(Deserialize)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'t> DeserializeSeed<'t> for Members<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Members<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the variables of a state")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = members.next_key()? {
            let value: Json = members.next_value()?;
            self.into.push((name, self.values.number_owned(value)));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_read_as_json_is() {
        let texts = [
            r#"{"b":1,"a":[2,{"x":null}]}"#,
            r#"{"a":[2,{"x":null}],"b":1}"#,
            r#"{"b":1,"a":2,"b":3}"#,
            r#"{"b":1,"a":2,"b":4}"#,
            r#"{"\u0061":7}"#,
            r#"{"a":1} x"#,
            r#"{"a":1"#,
            "[1,2]",
            "7",
            "\"text\"",
            "",
            "{}",
        ];
        let mut gather = Gather::default();
        let numbers: Vec<usize> = texts.iter().map(|text| gather.add(text)).collect();
        let states = gather.finish();
        for (text, number) in texts.iter().zip(numbers) {
            let json: Json = serde_json::from_str(text).unwrap_or_default();
            let expected = if json.is_object() { json } else { Json::Object(Default::default()) };
            assert_eq!(states[number].value(), expected, "{text}");
        }
        assert_eq!(states[0], states[1]);
        assert!(Arc::ptr_eq(states[0].shape(), states[1].shape()));
        assert!(Arc::ptr_eq(states[2].shape(), states[3].shape()));
    }

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            "[a-c\"\\\\\n]{0,3}".prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                proptest::collection::vec(("[a-d\"]{0,2}", inner), 0..4)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Any texts, one after the other, against a parser of JSON alone.
        #[test]
        fn many_states_are_each_what_their_text_says(values in proptest::collection::vec(json(), 1..8)) {
            let mut gather = Gather::default();
            let numbers: Vec<usize> = values.iter().map(|value| gather.add(&value.to_string())).collect();
            let states = gather.finish();
            for (value, number) in values.iter().zip(numbers) {
                let read: Json = serde_json::from_str(&value.to_string()).unwrap();
                let expected = if read.is_object() { read } else { Json::Object(Default::default()) };
                prop_assert_eq!(states[number].value(), expected);
            }
        }
    }
}

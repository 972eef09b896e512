//! States: what actors told of themselves. Values that several states have are kept once, and known by a number.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::term::Column;
use crate::value::Value;

/// Values, each once, by number.
#[derive(Clone, Default)]
pub struct Values {
    all: Vec<Arc<Json>>,
    /// By hash: the last value with it, and by value the one before it with the same hash.
    last: FxHashMap<u64, u32>,
    before: Vec<Option<u32>>,
}

impl Values {
    /// The number of a value, which is added where it is new.
    pub fn number(&mut self, value: &Json) -> u32 {
        self.find_or(value, || Arc::new(value.clone()))
    }

    /// As [`number`](Self::number), of a value that others have too.
    pub fn number_of(&mut self, value: &Arc<Json>) -> u32 {
        self.find_or(value, || value.clone())
    }

    /// As [`number`](Self::number), of a value that nobody else has.
    pub(crate) fn number_owned(&mut self, value: Json) -> u32 {
        match self.find(&value) {
            Ok(number) => number,
            Err(hash) => self.push(hash, Arc::new(value)),
        }
    }

    fn find_or(&mut self, value: &Json, new: impl FnOnce() -> Arc<Json>) -> u32 {
        match self.find(value) {
            Ok(number) => number,
            Err(hash) => self.push(hash, new()),
        }
    }

    /// The number of a value, or its hash where it is new.
    fn find(&self, value: &Json) -> Result<u32, u64> {
        let mut hasher = DefaultHasher::new();
        hash(value, &mut hasher);
        let hash = hasher.finish();
        let mut at = self.last.get(&hash).copied();
        while let Some(number) = at {
            if *self.all[number as usize] == *value {
                return Ok(number);
            }
            at = self.before[number as usize];
        }
        Err(hash)
    }

    fn push(&mut self, hash: u64, value: Arc<Json>) -> u32 {
        let number = self.all.len() as u32;
        self.all.push(value);
        self.before.push(self.last.insert(hash, number));
        number
    }

    /// The value with a number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Arc<Json>> {
        self.all.get(number as usize)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl std::ops::Index<usize> for Values {
    type Output = Json;

    fn index(&self, number: usize) -> &Json {
        &self.all[number]
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.all.len())
    }
}

/// Equal values have equal hashes, whatever the order of members.
fn hash(value: &Json, hasher: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Json::Null => {}
        Json::Bool(b) => b.hash(hasher),
        Json::Number(n) => n.hash(hasher),
        Json::String(text) => text.hash(hasher),
        Json::Array(all) => {
            all.len().hash(hasher);
            all.iter().for_each(|element| hash(element, hasher));
        }
        Json::Object(members) => {
            let each = members.iter().map(|(name, value)| {
                let mut own = DefaultHasher::new();
                name.hash(&mut own);
                hash(value, &mut own);
                own.finish()
            });
            each.fold(0_u64, u64::wrapping_add).hash(hasher);
        }
    }
}

/// The names of variables, in order.
pub type Shape = Arc<[Arc<str>]>;

/// A state that an actor told of itself.
#[derive(Clone)]
pub struct State {
    shape: Shape,
    numbers: Box<[u32]>,
    values: Arc<Values>,
}

impl State {
    /// A state with these variables: for each name the number of a value, in the order of the names, which are sorted.
    pub(crate) fn numbered(shape: Shape, numbers: Box<[u32]>, values: Arc<Values>) -> State {
        State { shape, numbers, values }
    }

    /// A state with these variables: a value for each name, in the order of the names, which are sorted.
    #[must_use]
    pub fn of(shape: Shape, values: Vec<Arc<Json>>) -> State {
        debug_assert!(shape.len() == values.len() && shape.is_sorted());
        let numbers = (0..values.len() as u32).collect();
        State { shape, numbers, values: Arc::new(Values { all: values, ..Values::default() }) }
    }

    /// The value at the place of a name among the names of its variables.
    #[must_use]
    pub fn shared(&self, place: usize) -> Option<&Arc<Json>> {
        self.values.get(*self.numbers.get(place)?)
    }

    /// The names of its variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.shape.iter().map(|name| &**name)
    }

    /// The names of its variables, which states with the same names share.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// For each name the number of the value among [`values`](Self::values).
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The values that it shares with others.
    #[must_use]
    pub fn values(&self) -> &Arc<Values> {
        &self.values
    }

    /// The value of a variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Json> {
        self.at(self.slot(name)?)
    }

    /// The state as JSON.
    #[must_use]
    pub fn value(&self) -> Json {
        let members = self.shape.iter().zip(&self.numbers);
        let value = |number: &u32| self.values.get(*number).map_or(Json::Null, |v| (**v).clone());
        Json::Object(members.map(|(name, number)| (name.to_string(), value(number))).collect())
    }

    /// The same state with the variables of another besides, which count where both have one.
    #[must_use]
    pub fn with(&self, other: &State) -> State {
        let (Json::Object(mut all), Json::Object(others)) = (self.value(), other.value()) else {
            return self.clone();
        };
        all.extend(others);
        State::new(Json::Object(all))
    }

    /// The same values under other names, which are sorted; for each name the place of its value among those of this state.
    #[must_use]
    pub fn named(&self, names: Shape, places: &[usize]) -> State {
        debug_assert!(names.len() == places.len() && names.is_sorted());
        let numbers = places.iter().filter_map(|place| self.numbers.get(*place)).copied();
        State { numbers: numbers.collect(), shape: names, values: self.values.clone() }
    }

    /// The same state with these variables alone.
    #[must_use]
    pub(crate) fn only(&self, wanted: &dyn Fn(&str) -> bool) -> State {
        let members = self.shape.iter().zip(&self.numbers).filter(|(name, _)| wanted(name));
        let value = |number: &u32| self.values.get(*number).map_or(Json::Null, |v| (**v).clone());
        State::new(Json::Object(members.map(|(name, number)| (name.to_string(), value(number))).collect()))
    }

    /// Where a variable stands among the others.
    pub(crate) fn slot(&self, name: &str) -> Option<usize> {
        self.shape.binary_search_by(|own| (**own).cmp(name)).ok()
    }

    fn at(&self, slot: usize) -> Option<&Json> {
        self.values.get(*self.numbers.get(slot)?).map(|value| &**value)
    }

    pub(crate) fn get(&self, column: &Column) -> Value<'_> {
        let mut at = match column.among(&self.shape).and_then(|slot| self.at(slot)) {
            Some(value) => value,
            None => return Value::Null,
        };
        for name in &column.path[1..] {
            match at.get(name) {
                Some(inner) => at = inner,
                None => return Value::Null,
            }
        }
        Value::from(at)
    }

    /// Whether both share their names and values, so that numbers can be compared.
    pub(crate) fn is_beside(&self, other: &State) -> bool {
        Arc::ptr_eq(&self.values, &other.values) && Arc::ptr_eq(&self.shape, &other.shape)
    }
}

impl Default for State {
    fn default() -> State {
        State { shape: Arc::from([]), numbers: Box::from([]), values: Arc::default() }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.shape == other.shape
            && self
                .numbers
                .iter()
                .zip(&other.numbers)
                .all(|(a, b)| self.values.get(*a) == other.values.get(*b))
    }
}

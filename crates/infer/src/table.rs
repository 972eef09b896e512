//! The states of a class as a table: one row a state, one column a variable, values by number.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use demi_predicate::{State, Values, name_of};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::Execution;
use crate::classes::Class;
use crate::options::Variables;

/// Most variables of a class; those that change most often are kept.
const MOST: usize = 60;
/// Most members of an object whose members are variables of their own.
const MEMBERS: usize = 8;

/// The part of a variable that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Whole,
    Length,
    Last,
}

/// The kind of values that a variable has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Number,
    Text,
    Truth,
    List,
}

/// A variable, or what is derived from one.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    /// The side of the rows that has it, as a predicate names it; empty where rows have one.
    pub(crate) side: &'static str,
    path: Vec<String>,
    pub(crate) part: Part,
    pub(crate) sort: ValueKind,
    /// For each row the number of its value; 0 where it has none.
    pub(crate) column: Vec<u32>,
    /// The values that it has, each once.
    pub(crate) values: Vec<u32>,
}

/// The place of a row: whose state it is, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace {
    pub(crate) execution: u32,
    /// The moment with which it is there.
    pub(crate) moment: u32,
    pub(crate) actor: u32,
    /// The row with the state before, of the same incarnation.
    pub(crate) before: Option<u32>,
}

/// The states of a class.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<RowPlace>,
    /// Pairs of rows that can be there together; see [`Execution::pairs`].
    pub(crate) pairs: Vec<[u32; 2]>,
    pub(crate) variables: Vec<Variable>,
    /// Values by number; the first is unknown.
    pub(crate) values: Values,
    /// By number of a value: the whole number that it is.
    pub(crate) wholes: Vec<Option<i64>>,
    /// Variables with one value, which take no part: name and value.
    pub(crate) constants: Vec<(String, String)>,
    /// Names of variables that take no part: identifiers, addresses, and what is beyond the limit.
    pub(crate) left_out: Vec<String>,
    /// Names of the actors of the class.
    actors: BTreeSet<String>,
}

impl Variable {
    /// How it is written in a predicate, with a name in front of it where there is one.
    pub(crate) fn text(&self, side: &str) -> String {
        self.named(if side.is_empty() { self.side } else { side })
    }

    /// How it is written with exactly this name in front of it, or with none.
    pub(crate) fn named(&self, side: &str) -> String {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut name = name_of(&path);
        if !side.is_empty() {
            name = format!("{side}.{name}");
        }
        match self.part {
            Part::Whole => name,
            Part::Length => format!("length({name})"),
            Part::Last => format!("last({name})"),
        }
    }

    /// Whether this is the length of that list.
    pub(crate) fn is_length_of(&self, list: &Variable) -> bool {
        self.part == Part::Length && list.part == Part::Whole && self.is_beside(list)
    }

    /// Whether both are read of one variable of the log.
    pub(crate) fn is_beside(&self, other: &Variable) -> bool {
        self.side == other.side && self.path == other.path
    }
}

impl Table {
    /// The states that the actors of a class told.
    pub(crate) fn new(executions: &[Execution], class: &Class, variables: &Variables) -> Table {
        let actors: FxHashMap<&str, u32> =
            class.actors.iter().enumerate().map(|(i, a)| (a.as_str(), i as u32)).collect();
        let mut rows: Vec<RowPlace> = Vec::new();
        let mut states: Vec<&State> = Vec::new();
        let mut pairs: Vec<[u32; 2]> = Vec::new();
        for (number, execution) in executions.iter().enumerate() {
            // The row of each record; no row has the last number.
            let mut places =
                vec![u32::MAX; if execution.pairs.is_empty() { 0 } else { execution.records.len() }];
            let mut last: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
            for (place, record) in execution.records.iter().enumerate() {
                let Some(&actor) = actors.get(&*record.actor) else { continue };
                let row = rows.len() as u32;
                if let Some(known) = places.get_mut(place) {
                    *known = row;
                }
                let before = last.insert(actor, (record.incarnation, row));
                let before = before.filter(|b| b.0 == record.incarnation).map(|b| b.1);
                rows.push(RowPlace {
                    execution: number as u32,
                    moment: execution.moment(place),
                    actor,
                    before,
                });
                states.push(&record.state);
            }
            let both = execution.pairs.iter().map(|pair| pair.map(|record| places[record]));
            pairs.extend(both.filter(|pair| !pair.contains(&u32::MAX)));
        }
        Table { pairs, ..Table::of_sides(rows, &[("", states)], class.actors.clone(), variables) }
    }

    /// Rows with one state a side.
    pub(crate) fn of_sides(
        rows: Vec<RowPlace>,
        sides: &[(&'static str, Vec<&State>)],
        actors: BTreeSet<String>,
        variables: &Variables,
    ) -> Table {
        let mut table = Table { rows, actors, ..Table::default() };
        table.values.number(&Value::Null);
        let mut known = KnownValues::default();
        for (side, states) in sides {
            for name in names(states) {
                let top = known.column(&mut table.values, states, name);
                let mut values = top.clone();
                values.sort_unstable();
                values.dedup();
                values.retain(|v| *v != 0);
                let read: Vec<Arc<Value>> =
                    values.iter().filter_map(|v| table.values.get(*v).cloned()).collect();
                let mut paths = Vec::new();
                spread(&read, vec![name.to_owned()], &mut paths);
                paths.retain(|(path, _)| variables.take(path));
                for (path, part) in paths {
                    table.add(side, (&top, &values), path, part);
                }
            }
        }
        table.wholes = (0..table.values.len()).map(|v| table.values[v].as_i64()).collect();
        table.limit();
        table
    }

    /// Adds what is read of a variable, whose values are given for each row and each once.
    fn add(&mut self, side: &'static str, (top, of): (&[u32], &[u32]), path: Vec<String>, part: Part) {
        let mut sorts = Vec::new();
        let mut numbers = vec![0; of.last().map_or(1, |most| *most as usize + 1)];
        for &number in of {
            let Some(whole) = self.values.get(number).cloned() else { continue };
            let Some(value) = read(&whole, &path[1..], part) else { continue };
            let sort = match value.as_ref() {
                Value::Number(_) => ValueKind::Number,
                Value::String(_) => ValueKind::Text,
                Value::Bool(_) => ValueKind::Truth,
                Value::Array(_) => ValueKind::List,
                _ => return,
            };
            if !sorts.contains(&sort) {
                sorts.push(sort);
            }
            numbers[number as usize] = self.values.number(&value);
        }
        // A variable whose values are of several kinds is compared with nothing.
        let &[sort] = sorts.as_slice() else { return };
        let column: Vec<u32> = top.iter().map(|number| numbers[*number as usize]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.retain(|v| *v != 0);
        let values = numbers;
        let many = values.len() > 8 && values.len() * 4 > top.len();
        let variable = Variable { side, path, part, sort, column, values };
        if let &[only] = variable.values.as_slice() {
            self.constants.push((variable.text(""), self.values[only as usize].to_string()));
        } else if sort == ValueKind::Text && many {
            self.left_out.push(variable.text(""));
        } else {
            self.variables.push(variable);
        }
    }

    /// How two values compare as numbers, by their own numbers; nothing where one is none.
    pub(crate) fn compare(&self, a: u32, b: u32) -> Option<std::cmp::Ordering> {
        match (self.wholes[a as usize], self.wholes[b as usize]) {
            // Whole numbers beyond 2^53 are not what they were as others.
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => self.values[a as usize].as_f64()?.partial_cmp(&self.values[b as usize].as_f64()?),
        }
    }

    /// Leaves out what changes least, where there are too many variables.
    fn limit(&mut self) {
        if self.variables.len() > MOST {
            let changes = |v: &Variable| {
                let rows = self.rows.iter().enumerate();
                rows.filter(|(i, r)| r.before.is_some_and(|b| v.column[b as usize] != v.column[*i])).count()
            };
            let mut order: Vec<(usize, usize)> =
                self.variables.iter().enumerate().map(|(i, v)| (changes(v), i)).collect();
            order.sort_by_key(|(changes, i)| (std::cmp::Reverse(*changes), *i));
            let kept: Vec<usize> = order[..MOST].iter().map(|o| o.1).collect();
            let mut i = 0;
            let left_out = &mut self.left_out;
            self.variables.retain(|v| {
                let keep = kept.contains(&i);
                if !keep {
                    left_out.push(v.text(""));
                }
                i += 1;
                keep
            });
        }
        self.variables.sort_by_cached_key(|v| (v.text("").len(), v.text("")));
    }

    /// The value of a variable in a row.
    pub(crate) fn value(&self, variable: usize, row: usize) -> &Value {
        &self.values[self.variables[variable].column[row] as usize]
    }

    /// The values of a variable that tells a mode: at most 8 texts or truths. Numbers are quantities, and names of actors are no modes:
    /// what holds of one actor by name would hold of the next by another.
    pub(crate) fn modes(&self, variable: usize) -> Option<Vec<u32>> {
        self.few(variable).filter(|_| self.variables[variable].sort != ValueKind::Number)
    }

    /// The values of a variable that has few: texts and truths at most 8, numbers at most 3; not names of actors.
    pub(crate) fn few(&self, variable: usize) -> Option<Vec<u32>> {
        let all = &self.variables[variable].values;
        let most = match self.variables[variable].sort {
            ValueKind::Text | ValueKind::Truth => 8,
            ValueKind::Number => 3,
            ValueKind::List => return None,
        };
        let named =
            |v: &u32| self.values[*v as usize].as_str().is_some_and(|text| self.actors.contains(text));
        if all.len() > most || all.iter().any(named) {
            return None;
        }
        let mut few = all.clone();
        few.sort_by_cached_key(|v| self.values[*v as usize].to_string());
        Some(few)
    }
}

/// The names of the variables of these states, in order.
fn names<'a>(states: &[&'a State]) -> Vec<&'a str> {
    let mut shapes: FxHashMap<*const Arc<str>, &State> = FxHashMap::default();
    for state in states {
        shapes.entry(state.shape().as_ptr()).or_insert(state);
    }
    let mut names: Vec<&str> = shapes.into_values().flat_map(State::variables).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Numbers of values in the table, by where they are kept, and their number there, their number in the table.
#[derive(Default)]
struct KnownValues(FxHashMap<*const Values, Vec<u32>>);

/// No number.
const UNKNOWN: u32 = u32::MAX;

impl KnownValues {
    /// The values of a variable in these states; 0 where it has none.
    fn column(&mut self, values: &mut Values, states: &[&State], name: &str) -> Vec<u32> {
        let mut column = Vec::with_capacity(states.len());
        let mut last: Option<(*const Arc<str>, Option<usize>)> = None;
        for state in states {
            let shape = state.shape().as_ptr();
            let slot = match last {
                Some((known, slot)) if known == shape => slot,
                _ => state.shape().binary_search_by(|own| (**own).cmp(name)).ok(),
            };
            last = Some((shape, slot));
            let Some(number) = slot.and_then(|slot| state.numbers().get(slot)).copied() else {
                column.push(0);
                continue;
            };
            let known = self.0.entry(Arc::as_ptr(state.values())).or_default();
            if known.len() <= number as usize {
                known.resize(state.values().len(), UNKNOWN);
            }
            if known[number as usize] == UNKNOWN {
                known[number as usize] =
                    state.values().get(number).map_or(0, |value| values.number_of(value));
            }
            column.push(known[number as usize]);
        }
        column
    }
}

/// What is read of a variable: its members where it is an object that always has the same few, its length, its last element.
fn spread(states: &[Arc<Value>], path: Vec<String>, out: &mut Vec<(Vec<String>, Part)>) {
    let mut keys: Option<Vec<&str>> = None;
    let (mut objects, mut lists, mut same) = (false, false, true);
    for state in states {
        match at(state, &path[1..]) {
            Some(Value::Object(members)) => {
                objects = true;
                let here: Vec<&str> = members.keys().map(String::as_str).collect();
                same &= keys.get_or_insert_with(|| here.clone()) == &here;
            }
            Some(Value::Array(_)) => lists = true,
            _ => {}
        }
    }
    match (objects, lists) {
        (true, false) => {
            let keys = keys.unwrap_or_default();
            if same && keys.len() <= MEMBERS && path.len() < 3 {
                for key in keys {
                    spread(states, path.iter().cloned().chain([key.to_owned()]).collect(), out);
                }
            } else {
                out.push((path, Part::Length));
            }
        }
        (false, true) => {
            let parts = [Part::Whole, Part::Length, Part::Last];
            out.extend(parts.into_iter().map(|part| (path.clone(), part)));
        }
        _ => out.push((path, Part::Whole)),
    }
}

fn at<'a>(state: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(state, |at, name| at.get(name))
}

/// The value of a variable in a state; `null` is none.
fn read<'a>(state: &'a Value, path: &[String], part: Part) -> Option<Cow<'a, Value>> {
    let found = match (part, at(state, path)?) {
        (Part::Whole, value) => Cow::Borrowed(value),
        (Part::Length, Value::Array(all)) => Cow::Owned(Value::from(all.len())),
        (Part::Length, Value::Object(all)) => Cow::Owned(Value::from(all.len())),
        (Part::Last, Value::Array(all)) => Cow::Borrowed(all.last()?),
        _ => return None,
    };
    Some(found).filter(|value| !value.is_null())
}

//! The states of a class as a table: one row a state, one column a variable, values by number.

use std::borrow::Cow;
use std::collections::BTreeSet;

use demi_predicate::name_of;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::Execution;
use crate::classes::Class;
use crate::options::Variables;

/// Most variables of a class; those that change most often are kept.
const MOST: usize = 60;
/// Most members of an object whose members are variables of their own.
const MEMBERS: usize = 8;

/// What is read of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Whole,
    Length,
    Last,
}

/// What values a variable has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
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
    pub(crate) sort: Sort,
    /// For each row the number of its value; 0 where it has none.
    pub(crate) column: Vec<u32>,
    /// The values that it has, each once.
    pub(crate) values: Vec<u32>,
}

/// Whose state a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowAt {
    pub(crate) execution: u32,
    pub(crate) actor: u32,
    /// The row with the state before, of the same incarnation.
    pub(crate) before: Option<u32>,
}

/// The states of a class.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<RowAt>,
    pub(crate) variables: Vec<Variable>,
    /// Values by number; the first is unknown.
    pub(crate) values: Vec<Value>,
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
        let mut rows: Vec<RowAt> = Vec::new();
        let mut states: Vec<&Value> = Vec::new();
        for (number, execution) in executions.iter().enumerate() {
            let mut last: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
            for record in &execution.records {
                let Some(&actor) = actors.get(&*record.actor) else { continue };
                let row = rows.len() as u32;
                let before = last.insert(actor, (record.incarnation, row));
                let before = before.filter(|b| b.0 == record.incarnation).map(|b| b.1);
                rows.push(RowAt { execution: number as u32, actor, before });
                states.push(record.state.value());
            }
        }
        Table::of_sides(rows, &[("", states)], class.actors.clone(), variables)
    }

    /// Rows with one state a side.
    pub(crate) fn of_sides(
        rows: Vec<RowAt>,
        sides: &[(&'static str, Vec<&Value>)],
        actors: BTreeSet<String>,
        variables: &Variables,
    ) -> Table {
        let mut table = Table { rows, values: vec![Value::Null], actors, ..Table::default() };
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        for (side, states) in sides {
            let mut paths = Vec::new();
            let objects = states.iter().filter_map(|s| s.as_object());
            let mut top: Vec<&str> = objects.flat_map(|o| o.keys().map(String::as_str)).collect();
            top.sort_unstable();
            top.dedup();
            top.iter().for_each(|name| spread(states, vec![(*name).to_owned()], &mut paths));
            paths.retain(|(path, _)| variables.take(path));
            for (path, part) in paths {
                table.add(side, states, path, part, &mut numbers);
            }
        }
        table.limit();
        table
    }

    fn add(
        &mut self,
        side: &'static str,
        states: &[&Value],
        path: Vec<String>,
        part: Part,
        numbers: &mut FxHashMap<String, u32>,
    ) {
        let mut sorts = Vec::new();
        let mut column = Vec::with_capacity(states.len());
        for state in states {
            let Some(value) = read(state, &path, part) else {
                column.push(0);
                continue;
            };
            let sort = match value.as_ref() {
                Value::Number(_) => Sort::Number,
                Value::String(_) => Sort::Text,
                Value::Bool(_) => Sort::Truth,
                Value::Array(_) => Sort::List,
                _ => return,
            };
            if !sorts.contains(&sort) {
                sorts.push(sort);
            }
            let next = self.values.len() as u32;
            let number = *numbers.entry(value.to_string()).or_insert(next);
            if number == next {
                self.values.push(value.into_owned());
            }
            column.push(number);
        }
        // A variable whose values are of several kinds is compared with nothing.
        let &[sort] = sorts.as_slice() else { return };
        let mut values = column.clone();
        values.sort_unstable();
        values.dedup();
        values.retain(|v| *v != 0);
        let many = values.len() > 8 && values.len() * 4 > states.len();
        let variable = Variable { side, path, part, sort, column, values };
        if let &[only] = variable.values.as_slice() {
            self.constants.push((variable.text(""), self.values[only as usize].to_string()));
        } else if sort == Sort::Text && many {
            self.left_out.push(variable.text(""));
        } else {
            self.variables.push(variable);
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
        self.few(variable).filter(|_| self.variables[variable].sort != Sort::Number)
    }

    /// The values of a variable that has few: texts and truths at most 8, numbers at most 3; not names of actors.
    pub(crate) fn few(&self, variable: usize) -> Option<Vec<u32>> {
        let all = &self.variables[variable].values;
        let most = match self.variables[variable].sort {
            Sort::Text | Sort::Truth => 8,
            Sort::Number => 3,
            Sort::List => return None,
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

/// What is read of a variable: its members where it is an object that always has the same few, its length, its last element.
fn spread(states: &[&Value], path: Vec<String>, out: &mut Vec<(Vec<String>, Part)>) {
    let mut keys: Option<Vec<&str>> = None;
    let (mut objects, mut lists, mut same) = (false, false, true);
    for state in states {
        match at(state, &path) {
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

//! Relations within a row: what they say, and whether a row fits.

use serde_json::Value;

use crate::table::{Table, ValueKind};

/// A relation between variables of one state. Variables are numbers of the table's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Relation {
    /// One of these values.
    OneOf(usize, Vec<u32>),
    AtLeast(usize, i64),
    AtMost(usize, i64),
    /// A value of an enumerable variable.
    Is(usize, u32),
    Equal(usize, usize),
    Less(usize, usize),
    NotMore(usize, usize),
    Unequal(usize, usize),
    /// `y = a * x + b`.
    Linear {
        y: usize,
        x: usize,
        a: i64,
        b: i64,
    },
    /// `z = x + y`.
    Sum(usize, usize, usize),
    /// `z = x * y`.
    Product(usize, usize, usize),
    /// `y = x % m`.
    Residue {
        y: usize,
        x: usize,
        m: i64,
    },
    /// The list has the value.
    Contains(usize, usize),
    /// The first list begins with the second.
    StartsWith(usize, usize),
    /// Where the variable has the value, the relation, which is about other variables, holds.
    Implies(usize, u32, Box<Relation>),
}

impl Relation {
    /// The variables that it reads.
    pub(crate) fn variables(&self) -> Vec<usize> {
        match self {
            Relation::OneOf(x, _) | Relation::AtLeast(x, _) | Relation::AtMost(x, _) | Relation::Is(x, _) => {
                vec![*x]
            }
            Relation::Equal(x, y)
            | Relation::Less(x, y)
            | Relation::NotMore(x, y)
            | Relation::Unequal(x, y)
            | Relation::Linear { y, x, .. }
            | Relation::Residue { y, x, .. }
            | Relation::Contains(x, y)
            | Relation::StartsWith(x, y) => vec![*x, *y],
            Relation::Sum(z, x, y) | Relation::Product(z, x, y) => vec![*z, *x, *y],
            Relation::Implies(x, _, then) => {
                let mut all = vec![*x];
                all.extend(then.variables());
                all
            }
        }
    }

    /// The relation as a predicate.
    pub(crate) fn text(&self, table: &Table) -> String {
        self.text_with(table, &|v| table.variables[v].text(""))
    }

    /// The relation as it would be said of a state alone.
    pub(crate) fn text_without_side(&self, table: &Table) -> String {
        self.text_with(table, &|v| table.variables[v].named(""))
    }

    fn text_with(&self, table: &Table, named: &dyn Fn(usize) -> String) -> String {
        let name = |v: &usize| named(*v);
        let sql = |v: &u32| literal(&table.values[*v as usize]);
        match self {
            Relation::OneOf(x, values) => {
                format!("{} IN ({})", name(x), values.iter().map(sql).collect::<Vec<_>>().join(", "))
            }
            Relation::AtLeast(x, c) => format!("{} >= {c}", name(x)),
            Relation::AtMost(x, c) => format!("{} <= {c}", name(x)),
            Relation::Is(x, v) => format!("{} = {}", name(x), sql(v)),
            Relation::Equal(x, y) => format!("{} = {}", name(x), name(y)),
            Relation::Less(x, y) => format!("{} < {}", name(x), name(y)),
            Relation::NotMore(x, y) => format!("{} <= {}", name(x), name(y)),
            Relation::Unequal(x, y) => format!("{} <> {}", name(x), name(y)),
            Relation::Linear { y, x, a, b } => {
                let product = if *a == 1 { name(x) } else { format!("{a} * {}", name(x)) };
                match b.signum() {
                    0 => format!("{} = {product}", name(y)),
                    1 => format!("{} = {product} + {b}", name(y)),
                    _ => format!("{} = {product} - {}", name(y), b.unsigned_abs()),
                }
            }
            Relation::Sum(z, x, y) => format!("{} = {} + {}", name(z), name(x), name(y)),
            Relation::Product(z, x, y) => format!("{} = {} * {}", name(z), name(x), name(y)),
            Relation::Residue { y, x, m } => format!("{} = {} % {m}", name(y), name(x)),
            Relation::Contains(l, x) => format!("contains({}, {})", name(l), name(x)),
            Relation::StartsWith(l, k) => format!("starts_with({}, {})", name(l), name(k)),
            Relation::Implies(x, v, then) => {
                format!("{} <> {} OR {}", name(x), sql(v), then.text_with(table, named))
            }
        }
    }

    /// Whether these values fit, in the order of [`Relation::variables`]; nothing where one is unknown.
    pub(crate) fn fits(&self, table: &Table, numbers: &[u32]) -> Option<bool> {
        if let Relation::Implies(_, v, then) = self {
            return match numbers.first() {
                Some(0) | None => None,
                Some(n) if n != v => Some(true),
                // What is implied speaks of other variables: theirs follow.
                Some(_) => then.fits(table, &numbers[1..]),
            };
        }
        if numbers.contains(&0) {
            return None;
        }
        let value = |i: usize| &table.values[numbers[i] as usize];
        let whole = |i: usize| table.wholes[numbers[i] as usize];
        match self {
            Relation::OneOf(_, values) => Some(values.contains(&numbers[0])),
            Relation::Is(_, v) => Some(numbers[0] == *v),
            Relation::AtLeast(_, c) => Some(value(0).as_f64()? >= *c as f64),
            Relation::AtMost(_, c) => Some(value(0).as_f64()? <= *c as f64),
            Relation::Equal(..) => Some(numbers[0] == numbers[1]),
            Relation::Unequal(..) => Some(table.compare(numbers[0], numbers[1])?.is_ne()),
            Relation::Less(..) => Some(table.compare(numbers[0], numbers[1])?.is_lt()),
            Relation::NotMore(..) => Some(table.compare(numbers[0], numbers[1])?.is_le()),
            Relation::Linear { a, b, .. } => Some(a.checked_mul(whole(0)?)?.checked_add(*b)? == whole(1)?),
            Relation::Sum(..) => Some(whole(0)? == whole(1)?.checked_add(whole(2)?)?),
            Relation::Product(..) => Some(whole(0)? == whole(1)?.checked_mul(whole(2)?)?),
            Relation::Residue { m, .. } => Some(whole(0)?.checked_rem(*m)? == whole(1)?),
            Relation::Contains(..) => Some(value(0).as_array()?.contains(value(1))),
            Relation::StartsWith(..) => Some(value(0).as_array()?.starts_with(value(1).as_array()?)),
            Relation::Implies(..) => None,
        }
    }

    /// Whether a row of the table fits.
    pub(crate) fn fits_row(&self, table: &Table, variables: &[usize], row: usize) -> Option<bool> {
        // No relation has more variables; a list for each row would cost more than the comparison.
        let mut numbers = [0; 4];
        for (number, v) in numbers.iter_mut().zip(variables) {
            *number = table.variables[*v].column[row];
        }
        self.fits(table, &numbers[..variables.len().min(4)])
    }
}

/// A value as a predicate writes it.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

/// Whole numbers of a column.
pub(crate) fn wholes(table: &Table, variable: usize) -> Option<Vec<i64>> {
    if table.variables[variable].sort != ValueKind::Number {
        return None;
    }
    let values = table.variables[variable].values.iter();
    values.map(|v| table.values[*v as usize].as_i64()).collect()
}

//! Whether a predicate holds of rows.

use rustc_hash::FxHashMap;

use crate::list;
use crate::print::column_name;
use crate::row::Row;
use crate::term::{Aggregate, Call, Compare, Parsed, Sum, Term};
use crate::value::Value;

/// The value of a term, or why it has none.
type Evaluated<'a> = Result<Value<'a>, String>;

/// The rows that a term is about: one row, or a group with one of its rows to stand for it.
#[derive(Clone, Copy)]
pub(crate) struct TermScope<'a> {
    pub(crate) one: Option<Row<'a>>,
    group: &'a [Row<'a>],
}

/// A row or group of which a predicate does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The row or group in words; empty for the table as a whole.
    pub of: String,
    /// The rows that it has, by their numbers.
    pub rows: Vec<usize>,
}

/// A function of each group: the values that its rows have in common, the numbers of the rows, the rows, and what terms are about.
/// It says whether to go on.
type GroupVisitor<'e> =
    dyn FnMut(&[Value<'_>], &[usize], &[Row<'_>], TermScope<'_>) -> Result<bool, String> + 'e;

/// Calls `f` with each row that stands for itself, or each group, in their order; a row alone has no key and no members.
pub(crate) fn each_group(
    predicate: &Parsed,
    rows: &[Row<'_>],
    f: &mut GroupVisitor<'_>,
) -> Result<(), String> {
    let Some(groups) = &predicate.groups else {
        return each_row(predicate, rows, f);
    };
    let mut left = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        if counts(predicate.filter.as_ref(), *row)? {
            left.push((number, *row));
        }
    }
    if groups.is_empty() {
        let numbers: Vec<usize> = left.iter().map(|(number, _)| *number).collect();
        let members: Vec<Row<'_>> = left.iter().map(|(_, row)| *row).collect();
        // The sums of nothing say nothing: before any actor told its state nothing can fail.
        if !rows.is_empty() {
            f(&[], &numbers, &members, TermScope { one: members.first().copied(), group: &members })?;
        }
        return Ok(());
    }
    let mut found: Vec<(Vec<Value<'_>>, Vec<usize>, Vec<Row<'_>>)> = Vec::new();
    for (number, row) in &left {
        let scope = TermScope { one: Some(*row), group: &[] };
        let key = groups.iter().map(|t| value(t, scope)).collect::<Result<Vec<_>, _>>()?;
        match found.iter_mut().find(|(k, ..)| *k == key) {
            Some((_, numbers, members)) => {
                numbers.push(*number);
                members.push(*row);
            }
            None => found.push((key, vec![*number], vec![*row])),
        }
    }
    for (key, numbers, members) in found {
        if !f(&key, &numbers, &members, TermScope { one: members.first().copied(), group: &members })? {
            break;
        }
    }
    Ok(())
}

/// Whether a condition, if there is one, leaves a row.
fn counts(filter: Option<&Term>, row: Row<'_>) -> Result<bool, String> {
    match filter {
        None => Ok(true),
        Some(filter) => Ok(truth(filter, TermScope { one: Some(row), group: &[] })? == Some(true)),
    }
}

/// Calls `f` with each row that WHERE leaves.
fn each_row(predicate: &Parsed, rows: &[Row<'_>], f: &mut GroupVisitor<'_>) -> Result<(), String> {
    for (number, row) in rows.iter().enumerate() {
        let scope = TermScope { one: Some(*row), group: &[] };
        if counts(predicate.filter.as_ref(), *row)? && !f(&[], &[number], &[], scope)? {
            break;
        }
    }
    Ok(())
}

/// A row or group in words.
pub(crate) fn named(predicate: &Parsed, key: &[Value<'_>], row: Option<Row<'_>>) -> String {
    match &predicate.groups {
        None => row.map_or(String::new(), |row| row.named(&predicate.scope)),
        Some(groups) => {
            let named = |(term, value): (&Term, &Value<'_>)| match term {
                Term::Column(column) => format!("{} = {value}", column_name(&predicate.scope, column)),
                _ => value.to_string(),
            };
            groups.iter().zip(key).map(named).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The rows or groups of which the predicate does not hold, in their order; with `first` no more than one.
pub(crate) fn failing(predicate: &Parsed, rows: &[Row<'_>], first: bool) -> Result<Vec<Failing>, String> {
    let mut failing = Vec::new();
    each_group(predicate, rows, &mut |key, numbers, _, scope| {
        let fails = truth(&predicate.holds, scope)? == Some(false);
        if fails {
            failing.push(Failing { of: named(predicate, key, scope.one), rows: numbers.to_vec() });
        }
        Ok(!(fails && first))
    })?;
    Ok(failing)
}

/// The verdict on a row or group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Fails,
    /// Values do not compare, or cannot be counted with: why.
    Unjudged(String),
}

impl Verdict {
    /// Unknown is no failure.
    fn of(found: Result<Option<bool>, String>) -> Verdict {
        match found {
            Ok(Some(false)) => Verdict::Fails,
            Ok(_) => Verdict::Holds,
            Err(reason) => Verdict::Unjudged(reason),
        }
    }
}

/// A group that a predicate does not hold of, or of which it says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupVerdict {
    /// The group in words; the row, where it cannot be said to which group it belongs.
    pub(crate) of: String,
    /// The rows that it has, by their numbers.
    pub(crate) rows: Vec<usize>,
    pub(crate) says: Verdict,
}

/// What is said of a row that stands for itself; nothing where WHERE leaves it out.
pub(crate) fn verdict_of_row(predicate: &Parsed, row: Row<'_>) -> Option<Verdict> {
    match counts(predicate.filter.as_ref(), row) {
        Ok(false) => None,
        Ok(true) => Some(Verdict::of(truth(&predicate.holds, TermScope { one: Some(row), group: &[] }))),
        Err(reason) => Some(Verdict::Unjudged(reason)),
    }
}

/// What is said of a group with these rows, which WHERE has left.
pub(crate) fn verdict_of_group(predicate: &Parsed, rows: &[Row<'_>]) -> Verdict {
    Verdict::of(truth(&predicate.holds, TermScope { one: rows.first().copied(), group: rows }))
}

/// The groups of these rows, each for itself, that the predicate does not hold of or says nothing of. A row of which WHERE says
/// nothing leaves its group without a verdict. One whose group cannot be told is in none, and is without a verdict itself.
pub(crate) fn judge_groups(predicate: &Parsed, rows: &[Row<'_>]) -> Vec<GroupVerdict> {
    let mut groups: Vec<(GroupVerdict, Vec<Row<'_>>)> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    let mut alone = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let counts = counts(predicate.filter.as_ref(), *row);
        if counts == Ok(false) {
            continue;
        }
        let (key, words) = match group_of(predicate, *row) {
            Ok(found) => found,
            Err(reason) => {
                let of = row.named(&predicate.scope);
                alone.push(GroupVerdict { of, rows: vec![number], says: Verdict::Unjudged(reason) });
                continue;
            }
        };
        let place = *places.entry(key).or_insert_with(|| {
            groups.push((GroupVerdict { of: words, rows: Vec::new(), says: Verdict::Holds }, Vec::new()));
            groups.len() - 1
        });
        let (judged, members) = &mut groups[place];
        judged.rows.push(number);
        members.push(*row);
        if let (Err(reason), Verdict::Holds) = (counts, &judged.says) {
            judged.says = Verdict::Unjudged(reason);
        }
    }
    // The table as a whole is a group also where WHERE leaves nothing of it.
    if groups.is_empty() && alone.is_empty() && !rows.is_empty() && predicate.is_of_the_whole() {
        groups.push((GroupVerdict { of: String::new(), rows: Vec::new(), says: Verdict::Holds }, Vec::new()));
    }
    for (judged, members) in &mut groups {
        if judged.says == Verdict::Holds {
            judged.says = verdict_of_group(predicate, members);
        }
    }
    let judged = groups.into_iter().map(|(judged, _)| judged).chain(alone);
    judged.filter(|judged| judged.says != Verdict::Holds).collect()
}

/// The group that a row belongs to, as a text that other groups do not have, and in words.
pub(crate) fn group_of(predicate: &Parsed, row: Row<'_>) -> Result<(String, String), String> {
    let scope = TermScope { one: Some(row), group: &[] };
    let groups = predicate.groups.iter().flatten();
    let values = groups.map(|term| value(term, scope)).collect::<Result<Vec<_>, String>>()?;
    let key = values.iter().map(ToString::to_string).collect::<Vec<_>>().join("\u{1f}");
    Ok((key, named(predicate, &values, Some(row))))
}

/// Whether a condition lets a row pass. Where it cannot be asked, what comes after it says why.
pub(crate) fn passes(condition: &Term, row: Row<'_>) -> bool {
    matches!(truth(condition, TermScope { one: Some(row), group: &[] }), Ok(Some(true)) | Err(_))
}

/// The group that a row belongs to; nothing where `WHERE` leaves it out.
pub(crate) fn key(predicate: &Parsed, row: Row<'_>) -> Result<Option<String>, String> {
    Ok(if counts(predicate.filter.as_ref(), row)? { Some(group_of(predicate, row)?.0) } else { None })
}

pub(crate) fn truth(term: &Term, scope: TermScope<'_>) -> Result<Option<bool>, String> {
    value(term, scope)?.truth()
}

fn known(truth: Option<bool>) -> Value<'static> {
    truth.map_or(Value::Null, Value::Bool)
}

pub(crate) fn value<'a>(term: &'a Term, scope: TermScope<'a>) -> Evaluated<'a> {
    Ok(match term {
        Term::Literal(value) => value.borrowed(),
        Term::Column(column) => scope.one.map_or(Value::Null, |row| row.get(column)),
        Term::Compare(how, two) => {
            let (a, b) = (value(&two.0, scope)?, value(&two.1, scope)?);
            known(match how {
                Compare::Equal => a.equal(&b),
                Compare::Unequal => a.equal(&b).map(|equal| !equal),
                Compare::Less => a.compare(&b)?.map(std::cmp::Ordering::is_lt),
                Compare::AtMost => a.compare(&b)?.map(std::cmp::Ordering::is_le),
                Compare::More => a.compare(&b)?.map(std::cmp::Ordering::is_gt),
                Compare::AtLeast => a.compare(&b)?.map(std::cmp::Ordering::is_ge),
            })
        }
        Term::Calculate(sign, two) => value(&two.0, scope)?.calculate(*sign, &value(&two.1, scope)?)?,
        Term::And(two) => known(match (truth(&two.0, scope)?, truth(&two.1, scope)?) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        Term::Or(two) => known(match (truth(&two.0, scope)?, truth(&two.1, scope)?) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
        Term::Not(one) => known(truth(one, scope)?.map(|yes| !yes)),
        Term::IsNull(one) => Value::Bool(value(one, scope)? == Value::Null),
        Term::OneOf(one, others) => {
            let one = value(one, scope)?;
            let mut found = Some(false);
            for other in others {
                match one.equal(&value(other, scope)?) {
                    Some(true) => return Ok(Value::Bool(true)),
                    Some(false) => {}
                    None => found = None,
                }
            }
            known(found)
        }
        Term::Call(call, arguments) => called(*call, arguments, scope)?,
        Term::Aggregate(aggregate) => sum(aggregate, scope.group)?,
    })
}

fn called<'a>(call: Call, arguments: &'a [Term], scope: TermScope<'a>) -> Evaluated<'a> {
    let argument = |n: usize| arguments.get(n).map_or(Ok(Value::Null), |t| value(t, scope));
    let (one, two) = (argument(0)?, argument(1)?);
    Ok(match call {
        Call::Length => one.length(),
        Call::Last => list::last(one),
        Call::Head => list::head(&one, &two)?,
        Call::Item => list::item(one, &two)?,
        Call::StartsWith => known(list::starts_with(&one, &two)),
        Call::Contains => known(list::contains(&one, &two)),
    })
}

fn sum<'a>(aggregate: &'a Aggregate, rows: &'a [Row<'a>]) -> Evaluated<'a> {
    let mut values: Vec<Value<'a>> = Vec::new();
    for row in rows {
        if !counts(aggregate.filter.as_ref(), *row)? {
            continue;
        }
        let scope = TermScope { one: Some(*row), group: &[] };
        let of = match &aggregate.of {
            None => Value::Bool(true),
            Some(term) => value(term, scope)?,
        };
        if of != Value::Null && !(aggregate.distinct && values.contains(&of)) {
            values.push(of);
        }
    }
    let total = |values: &[Value<'_>]| {
        let nothing = if values.is_empty() { Value::Null } else { Value::Int(0) };
        values.iter().try_fold(nothing, |sum, v| sum.calculate('+', v))
    };
    let most = |order: std::cmp::Ordering| {
        values.iter().try_fold(Value::Null, |best, v| {
            Ok::<_, String>(match v.compare(&best)? {
                Some(found) if found != order => best,
                _ => v.clone(),
            })
        })
    };
    let truths = || values.iter().map(Value::truth).collect::<Result<Vec<_>, _>>();
    Ok(match aggregate.sum {
        Sum::Count => Value::Int(values.len() as i64),
        Sum::Total => total(&values)?,
        Sum::Mean => total(&values)?.calculate('/', &Value::Int(values.len() as i64))?,
        Sum::Least => most(std::cmp::Ordering::Less)?,
        Sum::Most => most(std::cmp::Ordering::Greater)?,
        Sum::Prefixes | Sum::Aligned | Sum::Disjoint => known(list::together(aggregate.sum, &values)),
        _ if values.is_empty() => Value::Null,
        Sum::Every => Value::Bool(truths()?.iter().all(|t| *t == Some(true))),
        Sum::Some => Value::Bool(truths()?.contains(&Some(true))),
    })
}

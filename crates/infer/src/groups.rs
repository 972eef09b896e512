//! What holds of the states on both sides of a message, and along causal chains of messages: no cut is needed to see it.
//!
//! Rows are told apart by the classes of their actors, the logging points of their states, and the type of the message (S. Grant,
//! H. Cech and I. Beschastnikh, Dinv, ICSE 2018, section 4.3).

use std::collections::BTreeMap;

use demi_predicate::{Delivered, Link, State};
use glob::Pattern;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::classes::Class;
use crate::options::Variables;
use crate::relation::{Relation, literal};
use crate::table::{RowPlace, Table};
use crate::{Candidate, Execution, evidence, rows, template_of};

/// Least rows of a group; smaller ones are counted and not asked.
const MIN_ROWS: usize = 20;
/// How many states a chain has.
const CHAIN: usize = 3;
/// The variable that tells at which point of a handler a state was taken, where logs have several.
const POINT: &str = "logging_point";
/// The sides of a chain.
const LINKS: [&str; CHAIN] = ["s1", "s2", "s3"];

/// The key of a group: whether they are chains, the type of the message, and each place's class and point.
type Key = (bool, String, Vec<(usize, Option<String>)>);

/// Rows about which the same is said.
pub(crate) struct Group<'a> {
    key: Key,
    /// The execution, and the last message of the row.
    rows: Vec<(u32, &'a Delivered)>,
}

/// A relation of a group.
pub(crate) struct GroupRelation {
    pub(crate) found: Candidate,
    /// Whether it speaks of more than one side.
    pub(crate) both: bool,
    /// What it says without the side, where it speaks of one: its class, and the relation.
    pub(crate) alone: Option<(usize, String)>,
}

/// The links of a row, the first first.
fn links(delivered: &Delivered, chain: bool) -> Option<impl Iterator<Item = &Link>> {
    Some(delivered.links.get(..if chain { CHAIN } else { 2 })?.iter().rev())
}

fn point(state: &State) -> Option<String> {
    state.variable(POINT).and_then(Value::as_str).map(str::to_owned)
}

/// The groups of messages or chains with enough rows, and how many had too few.
pub(crate) fn groups<'a>(
    executions: &'a [Execution],
    classes: &[Class],
    chain: bool,
) -> (Vec<Group<'a>>, usize) {
    let mut class_of: FxHashMap<&str, usize> = FxHashMap::default();
    for (number, class) in classes.iter().enumerate() {
        class_of.extend(class.actors.iter().map(|actor| (actor.as_str(), number)));
    }
    let mut found: BTreeMap<Key, Vec<(u32, &Delivered)>> = BTreeMap::new();
    for (number, execution) in executions.iter().enumerate() {
        for delivered in &execution.messages {
            let delivered: &Delivered = delivered;
            let Some(links) = links(delivered, chain) else { continue };
            let place = |link: &Link| Some((*class_of.get(&*link.0)?, point(&link.1)));
            // Who told no state has nothing to compare.
            let Some(places) = links.map(place).collect::<Option<Vec<_>>>() else { continue };
            let kind = if chain { String::new() } else { delivered.kind.to_string() };
            found.entry((chain, kind, places)).or_default().push((number as u32, delivered));
        }
    }
    let all = found.len();
    let enough = found.into_iter().filter(|(_, rows)| rows.len() >= MIN_ROWS);
    let groups: Vec<Group<'_>> = enough.map(|(key, rows)| Group { key, rows }).collect();
    let few = all - groups.len();
    (groups, few)
}

impl Group<'_> {
    /// The patterns of the actors at each place.
    pub(crate) fn patterns(&self, classes: &[Class]) -> Vec<Pattern> {
        self.key.2.iter().filter_map(|(class, _)| Some(classes.get(*class)?.names.clone())).collect()
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What stands in front of what holds.
    pub(crate) fn words(&self) -> String {
        let (chain, kind, places) = &self.key;
        let mut text = if *chain {
            "CHAIN ".to_owned()
        } else {
            format!("MESSAGES {} ", literal(&Value::from(kind.as_str())))
        };
        let sides: &[&str] = if *chain { &LINKS } else { &["sender", "receiver"] };
        let points: Vec<String> = sides
            .iter()
            .zip(places)
            .filter_map(|(side, (_, point))| {
                Some(format!("{side}.{POINT} = {}", literal(&Value::from(point.as_deref()?))))
            })
            .collect();
        if !points.is_empty() {
            text.push_str(&format!("WHERE {} ", points.join(" AND ")));
        }
        text + "HAVING "
    }

    fn table(&self, classes: &[Class], variables: &Variables) -> Table {
        let chain = self.key.0;
        let mut rows = Vec::with_capacity(self.rows.len());
        let mut last: FxHashMap<(u32, &str, &str), u32> = FxHashMap::default();
        let mut states: Vec<Vec<&State>> = vec![Vec::new(); if chain { CHAIN } else { 2 }];
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        for (execution, delivered) in &self.rows {
            let Some(links) = links(delivered, chain) else { continue };
            let links: Vec<&Link> = links.collect();
            let (Some((first, end)), row) = (links.first().zip(links.last()), rows.len() as u32) else {
                continue;
            };
            let before = last.insert((*execution, &first.0, &end.0), row);
            let next = numbers.len() as u32;
            let actor = *numbers.entry(&first.0).or_insert(next);
            rows.push(RowPlace { execution: *execution, moment: rows.len() as u32, actor, before });
            states.iter_mut().zip(&links).for_each(|(all, link)| all.push(&link.1));
        }
        let mut sides: Vec<(&'static str, Vec<&State>)> = Vec::new();
        let names: [&'static str; CHAIN] = if chain { LINKS } else { ["sender", "receiver", ""] };
        sides.extend(names.into_iter().zip(states));
        if !chain {
            sides.push(("message", self.rows.iter().map(|(_, d)| &*d.message).collect()));
        }
        let actors = self.key.2.iter().filter_map(|(class, _)| classes.get(*class));
        let actors = actors.flat_map(|class| class.actors.iter().cloned()).collect();
        Table::of_sides(rows, &sides, actors, variables)
    }

    /// What holds of all its rows.
    pub(crate) fn relations(&self, classes: &[Class], variables: &Variables) -> Vec<GroupRelation> {
        let table = self.table(classes, variables);
        let rows = rows::distinct(&table);
        let equal = rows::equal(&table, &rows);
        let variables: Vec<usize> =
            (0..table.variables.len()).filter(|v| equal.iter().all(|(_, follower)| follower != v)).collect();
        let mut relations: Vec<Relation> = equal.iter().map(|(a, b)| Relation::Equal(*a, *b)).collect();
        relations.extend(rows::relations(&table, &rows, &variables));
        let words = self.words();
        let mut found = Vec::new();
        for relation in relations {
            let mut sides: Vec<&str> =
                relation.variables().iter().map(|v| table.variables[*v].side).collect();
            sides.sort_unstable();
            sides.dedup();
            let both = sides.len() > 1;
            let class = match *sides.as_slice() {
                ["sender"] => self.key.2.first(),
                ["receiver"] => self.key.2.last(),
                _ => None,
            };
            // What is within one state of a chain is within the state of a message.
            if self.key.0 && !both {
                continue;
            }
            let alone = class.map(|(class, _)| (*class, relation.text_without_side(&table)));
            let (episodes, bits) = evidence::of_relation(&table, &relation);
            let text = format!("{words}{}", relation.text(&table));
            found.push(GroupRelation {
                found: Candidate::new(template_of(&relation), text, episodes, bits),
                both,
                alone,
            });
        }
        found
    }
}

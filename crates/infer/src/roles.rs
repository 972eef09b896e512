//! Variables that bear the names of their actors: `eating_3` of the third philosopher and `eating_4` of the fourth are one variable of one role.
//!
//! Actors that might be of one class, and whose states have other variables each, are compared: what all of them have is left as it is, and in
//! what is left the part that tells the instance becomes a star. That is a number, the actor's name, or what the name has beyond that of the
//! class. Where the same is left of several, they are one class. In a predicate a name with a star stands for the one variable
//! of a state that fits it ([`demi_predicate::meant`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use demi_predicate::{Delivered, Shape, State, meant};
use rustc_hash::FxHashMap;

use crate::classes::Class;
use crate::{Execution, Record};

/// Names with stars, and the actors that have them.
pub(crate) type Role<'a> = (BTreeSet<String>, Vec<&'a str>);

/// The largest role among actors, each with its variables: none where fewer than two actors fit, or all have the same variables.
pub(crate) fn role<'a>(actors: &BTreeMap<&'a str, &BTreeSet<&'a str>>, stem: &str) -> Option<Role<'a>> {
    let mut sets = actors.values();
    let mut common: BTreeSet<&str> = (*sets.next()?).clone();
    for variables in sets {
        common.retain(|name| variables.contains(name));
    }
    let mut found: BTreeMap<(usize, BTreeSet<String>), Vec<&str>> = BTreeMap::new();
    for (actor, variables) in actors {
        let own: BTreeSet<&str> = variables.difference(&common).copied().collect();
        for stars in readings(actor, stem, &own) {
            if is_told_apart(&stars, variables, own.len()) {
                let many = stars.iter().map(|name| name.matches('*').count()).sum();
                found.entry((many, stars)).or_default().push(actor);
            }
        }
    }
    // Of two that as many actors fit, the one with fewer stars says more.
    let found = found.into_iter().filter(|(_, actors)| actors.len() > 1);
    found
        .max_by_key(|((many, _), actors)| (actors.len(), std::cmp::Reverse(*many)))
        .map(|((_, stars), actors)| (stars, actors))
}

/// What may be left of the names of an actor's own variables.
fn readings(actor: &str, stem: &str, own: &BTreeSet<&str>) -> BTreeSet<BTreeSet<String>> {
    let mut parts: BTreeSet<&str> = own.iter().flat_map(|name| numbers(name)).collect();
    parts.extend(
        [actor, actor.strip_prefix(stem).unwrap_or(actor)].into_iter().filter(|part| !part.is_empty()),
    );
    let starred = |star: &dyn Fn(&str) -> String| -> BTreeSet<String> {
        let names = own.iter().map(|name| star(name));
        names.filter(|name| name.contains('*')).collect()
    };
    let mut all: BTreeSet<BTreeSet<String>> =
        parts.into_iter().map(|part| starred(&|name| without(name, part))).collect();
    all.insert(starred(&without_numbers));
    all.retain(|stars| !stars.is_empty());
    all
}

/// Whether each name with stars is one variable's, and most of an actor's own variables have one.
fn is_told_apart(stars: &BTreeSet<String>, variables: &BTreeSet<&str>, own: usize) -> bool {
    2 * stars.len() >= own && stars.iter().all(|name| meant(name, variables.iter().copied()).is_some())
}

/// The runs of digits in a name.
fn numbers(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty())
}

/// A name with a star for each run of digits.
fn without_numbers(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('*') => {}
            true => out.push('*'),
            false => out.push(c),
        }
    }
    out
}

/// A name with a star for a part, wherever that stands as a whole: a number beside no digit, a word beside no letter that continues it.
fn without(name: &str, part: &str) -> String {
    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
    let goes_on =
        |c: char| if is_number { c.is_ascii_digit() } else { c.is_lowercase() || c.is_ascii_digit() };
    let stars = part.split(|c: char| !c.is_alphanumeric()).map(|word| if word.is_empty() { "" } else { "*" });
    let marks: Vec<&str> = part.split(char::is_alphanumeric).filter(|mark| !mark.is_empty()).collect();
    let star: String = match marks.is_empty() {
        true => "*".to_owned(),
        // The star is no separator: one stands for each word.
        false => {
            let mut marks = marks.into_iter();
            stars.fold(String::new(), |all, star| {
                if all.is_empty() {
                    star.to_owned()
                } else {
                    format!("{all}{}{star}", marks.next().unwrap_or(""))
                }
            })
        }
    };
    let (mut out, mut from) = (String::new(), 0);
    while let Some(at) = name.get(from..).and_then(|rest| rest.find(part)) {
        let (begin, end) = (from + at, from + at + part.len());
        let before = name[..begin]
            .chars()
            .next_back()
            .is_some_and(|c| if is_number { c.is_ascii_digit() } else { c.is_alphanumeric() });
        let after = name[end..].chars().next().is_some_and(goes_on);
        out.push_str(&name[from..begin]);
        out.push_str(if before || after { part } else { &star });
        from = end;
    }
    out.push_str(name.get(from..).unwrap_or(""));
    out
}

/// The same executions, with the variables of roles under the names with stars.
pub(crate) fn renamed(executions: &[Execution], classes: &[Class]) -> Vec<Execution> {
    let mut names = Names { classes, known: FxHashMap::default() };
    let record = |names: &mut Names<'_>, record: &Record| Record {
        state: names.state(&record.actor, &record.state),
        ..record.clone()
    };
    let message = |names: &mut Names<'_>, delivered: &Arc<Delivered>| {
        let mut own = (**delivered).clone();
        for link in &mut own.links {
            link.1 = names.state(&link.0, &link.1);
        }
        if let (Some(before), Some(receiver)) = (&own.before, own.links.first()) {
            own.before = Some(names.state(&receiver.0, before));
        }
        Arc::new(own)
    };
    let all = executions.iter().map(|execution| Execution {
        records: execution.records.iter().map(|r| record(&mut names, r)).collect(),
        messages: execution.messages.iter().map(|m| message(&mut names, m)).collect(),
        ..execution.clone()
    });
    all.collect()
}

/// The names of variables under which an actor's states are looked at, in order, and where the value of each stands.
type NamedVariables = (Shape, Vec<usize>);

/// The names of the variables of actors, found once for each of their shapes.
struct Names<'a> {
    classes: &'a [Class],
    known: FxHashMap<(Arc<str>, Shape), Option<NamedVariables>>,
}

impl Names<'_> {
    fn state(&mut self, actor: &Arc<str>, state: &Arc<State>) -> Arc<State> {
        let shape = state.shape();
        let known = self.known.entry((actor.clone(), shape.clone())).or_insert_with(|| {
            let class =
                self.classes.iter().find(|class| class.names.matches(actor) && !class.roles.is_empty())?;
            let variables = || shape.iter().map(|name| &**name);
            let meant: FxHashMap<&str, &String> =
                class.roles.iter().filter_map(|star| Some((meant(star, variables())?, star))).collect();
            let new = |name: &Arc<str>| {
                meant.get(&**name).map_or_else(|| name.clone(), |star| Arc::from(star.as_str()))
            };
            let mut names: Vec<(Arc<str>, usize)> =
                shape.iter().enumerate().map(|(at, name)| (new(name), at)).collect();
            names.sort();
            let (names, places): (Vec<Arc<str>>, Vec<usize>) = names.into_iter().unzip();
            Some((Arc::from(names), places))
        });
        match known {
            Some((names, places)) => Arc::new(state.named(names.clone(), places)),
            None => state.clone(),
        }
    }
}

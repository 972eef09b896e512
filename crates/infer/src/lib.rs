//! Invariants inferred from the states that actors told, after S. Grant, H. Cech and I. Beschastnikh, "Inferring and asserting
//! distributed system invariants" (Dinv, ICSE 2018), and M. D. Ernst et al., "The Daikon system for dynamic detection of likely
//! invariants" (2007).
//!
//! Templates are filled with the variables of a class of actors; what a state contradicts is dropped; what is left is weighed by how
//! unlikely it is of values that have nothing to do with each other ([`Invariant::bits`]). Where several executions are given, some are
//! held out: what they contradict is refuted. Nothing here is proven, and nothing is called an invariant that is more than that: it held.
//! No template and no threshold knows a system.

mod across;
mod classes;
mod evidence;
mod execution;
mod groups;
mod moments;
mod nearest;
mod options;
mod relation;
mod roles;
mod rows;
mod shadow;
mod steps;
mod table;
#[cfg(test)]
mod tests;

use demi_predicate::Predicate;
use glob::Pattern;

pub use self::execution::{Execution, Record};
pub use self::nearest::NearFailure;
pub use self::options::{Groups, Options, Variables};
use self::relation::Relation;
use self::table::Table;
pub use demi_predicate::NearMiss;

/// A kind of invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Template {
    /// Who has a value has what counted when its key was lower.
    Inheritance,
    /// Who has a value under a key is the only one ever to.
    Owner,
    /// A key decides a value, at a moment or ever.
    KeyDecides,
    /// Lists begin each other, agree, or share nothing.
    Lists,
    /// At most one actor has a value.
    AtMostOne,
    /// The most of some is at least that of the others.
    Dominance,
    /// All actors agree, nearly or quite.
    Agreement,
    /// A variable never falls, moves in small steps, a list only grows.
    Step,
    /// Which value follows which.
    Transition,
    /// Where a variable has a value, something else holds.
    Implication,
    /// Two variables are equal.
    Equal,
    /// A variable is computed from others.
    Function,
    /// A list has or begins with something.
    Member,
    /// A variable is less than another, or different.
    Order,
    /// One of few values.
    OneOf,
    /// A least or largest value.
    Bound,
}

impl Template {
    /// Whether what fails of two states fails of more.
    fn is_of_two(self) -> bool {
        matches!(self, Template::Agreement | Template::AtMostOne | Template::KeyDecides | Template::Lists)
    }

    /// A short, stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Template::Inheritance => "inheritance",
            Template::Owner => "owner",
            Template::KeyDecides => "key",
            Template::Lists => "lists",
            Template::AtMostOne => "at-most-one",
            Template::Dominance => "dominance",
            Template::Agreement => "agreement",
            Template::Step => "step",
            Template::Transition => "transition",
            Template::Implication => "implication",
            Template::Equal => "equal",
            Template::Function => "function",
            Template::Member => "member",
            Template::Order => "order",
            Template::OneOf => "one-of",
            Template::Bound => "bound",
        }
    }
}

/// A candidate that was not contradicted within its table.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    template: Template,
    text: String,
    episodes: usize,
    bits: f64,
    /// Predicates that it implies.
    shadows: Vec<String>,
}

impl Candidate {
    fn new(template: Template, text: String, episodes: usize, bits: f64) -> Candidate {
        Candidate { template, text, episodes, bits, shadows: Vec::new() }
    }
}

/// An invariant that held in all states given.
#[derive(Clone, Debug, PartialEq)]
pub struct Invariant {
    /// Its template and a digest of what it says: the same text of the same class has the same name in every run.
    pub id: String,
    /// What it says, in kind.
    pub template: Template,
    /// The predicate.
    pub holds: String,
    /// The actors that its rows are; of messages and chains those at each place, with arrows between them.
    pub class: String,
    /// Whether it is about the states on two sides of a message or chain.
    pub across: bool,
    /// How often it was tried.
    pub episodes: usize,
    /// How much speaks for it; 6.64 bits are one in a hundred that it is chance.
    pub bits: f64,
    /// Others that imply it.
    pub shadowed_by: Vec<String>,
    /// What came nearest to breaking it, the nearest first.
    pub nearest: Vec<NearFailure>,
}

impl Invariant {
    /// The equality that it would be if its numbers stayed below the divisor, where it is one with a remainder. The rows that are nearest to
    /// breaking it are those that break this.
    #[must_use]
    pub fn without_remainder(&self) -> Option<&str> {
        let (equality, divisor) = self.holds.rsplit_once(" % ")?;
        let is_whole = self.template == Template::Function && divisor.bytes().all(|b| b.is_ascii_digit());
        is_whole.then_some(equality)
    }
}

/// The figures of a class of actors.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassProfile {
    /// Its pattern of names.
    pub class: String,
    /// How many actors it has.
    pub actors: usize,
    /// How many states they told.
    pub states: usize,
    /// The variables that took part.
    pub variables: Vec<String>,
    /// Variables that always had one value: name and value.
    pub constants: Vec<(String, String)>,
    /// Variables that took no part: identifiers, addresses, what is beyond the limit.
    pub left_out: Vec<String>,
}

/// The figures of a group of messages, or of chains of them.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupProfile {
    /// The actors at each place, with arrows between them.
    pub class: String,
    /// The words of a predicate that choose its rows.
    pub rows_are: String,
    /// How many rows it has.
    pub rows: usize,
}

/// The result of inference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inferred {
    /// What held, the most telling first.
    pub invariants: Vec<Invariant>,
    /// What held of the executions inferred from, and not of those held out.
    pub refuted: Vec<Invariant>,
    /// The classes of actors.
    pub classes: Vec<ClassProfile>,
    /// Groups of messages and of chains.
    pub groups: Vec<GroupProfile>,
    /// Groups of messages and chains with too few rows.
    pub small_groups: usize,
    /// Candidates with too little evidence.
    pub below: usize,
    /// Executions inferred from.
    pub learned_from: usize,
    /// Executions held out.
    pub held_out: usize,
}

/// Infers what holds of the states of executions. `progress` is told how many candidates of how many are checked.
#[must_use]
pub fn infer(
    executions: &[Execution],
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) -> Inferred {
    let held = (executions.len() as f64 * options.holdout.clamp(0.0, 0.9)).floor() as usize;
    let classes = classes::classes(&executions[..executions.len() - held], &options.classes);
    let named_by_role;
    let executions = match classes.iter().all(|class| class.roles.is_empty()) {
        true => executions,
        false => {
            named_by_role = roles::renamed(executions, &classes);
            &named_by_role
        }
    };
    let (learn, held) = executions.split_at(executions.len() - held);
    let mut inferred = Inferred { learned_from: learn.len(), held_out: held.len(), ..Inferred::default() };
    for class in &classes {
        let among = |all: &[Execution]| all.iter().map(|e| e.among(&class.names)).collect::<Vec<_>>();
        let (own, others) = (among(learn), among(held));
        let table = Table::new(&own, class, &options.variables);
        let mut found = candidates(&table);
        let all = found.len();
        found.retain(|f| f.bits >= options.min_bits);
        inferred.below += all - found.len();
        found.retain(|f| if f.text.starts_with("EVER ") { options.groups.ever } else { options.groups.all });
        let (mut kept, mut refuted) = (Vec::new(), Vec::new());
        let all = found.len();
        for (i, candidate) in found.into_iter().enumerate() {
            progress(i, all);
            let Ok(predicate) = Predicate::parse(&candidate.text) else { continue };
            let of_two = candidate.template.is_of_two() && !candidate.text.starts_with("EVER ");
            let fits = |e: &Execution| e.fits(&predicate) && (!of_two || e.fits_pairs(&predicate));
            let fails = |executions: &[Execution]| !executions.iter().all(fits);
            // What is within an actor's own states was asked of every row of the table already.
            let asked = candidate.template > Template::Agreement;
            match !asked && fails(&own) {
                true => {}
                false if fails(&others) => refuted.push(candidate),
                false => kept.push(candidate),
            }
        }
        let pattern = class.names.as_str();
        inferred.refuted.extend(refuted.iter().map(|f| named(f, pattern)));
        inferred.invariants.extend(shadow::cast(&kept, pattern));
        inferred.classes.push(ClassProfile {
            class: pattern.to_owned(),
            actors: class.actors.len(),
            states: table.rows.len(),
            variables: table.variables.iter().map(|v| v.text("")).collect(),
            constants: table.constants,
            left_out: table.left_out,
        });
    }
    for chain in [false, true] {
        let wanted = if chain { options.groups.chains } else { options.groups.messages };
        if wanted {
            of_messages(&mut inferred, (learn, held), &classes, chain, options, progress);
        }
    }
    let rank = |i: &Invariant| {
        let kind = match i.template {
            _ if i.across => 1,
            template if template <= Template::Agreement => 0,
            _ => 2,
        };
        (kind, i.template, -(i.bits * 100.0).round() as i64)
    };
    inferred.invariants.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.holds.cmp(&b.holds)));
    let all = inferred.invariants.len();
    for (number, invariant) in inferred.invariants.iter_mut().enumerate() {
        progress(number, all);
        let places = invariant.class.split(" -> ").map(Pattern::new).collect::<Result<Vec<_>, _>>();
        if let (Ok(predicate), Ok(places)) = (Predicate::parse(&invariant.holds), places) {
            invariant.nearest = nearest::nearest(executions, &predicate, &places);
        }
    }
    inferred
}

/// Adds what holds of messages, or of chains of them.
fn of_messages(
    inferred: &mut Inferred,
    (learn, held): (&[Execution], &[Execution]),
    classes: &[classes::Class],
    chain: bool,
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) {
    let (groups, few) = groups::groups(learn, classes, chain);
    inferred.small_groups += few;
    let of_states: rustc_hash::FxHashMap<(String, String), String> =
        inferred.invariants.iter().map(|i| ((i.class.clone(), i.holds.clone()), i.id.clone())).collect();
    let all = groups.len();
    for (number, group) in groups.into_iter().enumerate() {
        progress(number, all);
        let places = group.patterns(classes);
        let pattern = places.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(" -> ");
        let (rows_are, rows) = (group.words().trim_end_matches("HAVING ").trim_end().to_owned(), group.len());
        inferred.groups.push(GroupProfile { class: pattern.clone(), rows_are, rows });
        let (mut kept, mut more) = (Vec::new(), Vec::new());
        for across in group.relations(classes, &options.variables) {
            let found = across.found;
            if found.bits < options.min_bits {
                inferred.below += 1;
                continue;
            }
            let Ok(predicate) = Predicate::parse(&found.text) else { continue };
            let fits =
                |executions: &[Execution]| executions.iter().all(|e| e.fits_messages(&predicate, &places));
            if !fits(learn) {
                continue;
            }
            if !fits(held) {
                inferred.refuted.push(named(&found, &pattern));
                continue;
            }
            let of_state = across.alone.and_then(|(class, text)| {
                of_states.get(&(classes.get(class)?.names.as_str().to_owned(), text)).cloned()
            });
            more.push((across.both, of_state));
            kept.push(found);
        }
        for (mut invariant, (both, of_state)) in shadow::cast(&kept, &pattern).into_iter().zip(more) {
            invariant.across = both;
            invariant.shadowed_by.extend(of_state);
            inferred.invariants.push(invariant);
        }
    }
}

/// All that the table does not contradict, and what can only be seen by following the executions.
fn candidates(table: &Table) -> Vec<Candidate> {
    let rows = rows::distinct(table);
    let equal = rows::equal(table, &rows);
    let variables: Vec<usize> =
        (0..table.variables.len()).filter(|v| equal.iter().all(|(_, follower)| follower != v)).collect();
    let mut relations: Vec<Relation> = equal.iter().map(|(a, b)| Relation::Equal(*a, *b)).collect();
    relations.extend(rows::relations(table, &rows, &variables));
    let implications = rows::implications(table, &rows, &variables, &relations);
    relations.extend(implications);
    let mut found: Vec<Candidate> = relations
        .iter()
        .map(|relation| {
            let (episodes, bits) = evidence::of_relation(table, relation);
            Candidate::new(template_of(relation), relation.text(table), episodes, bits)
        })
        .collect();
    found.extend(steps::steps(table, &variables));
    found.extend(across::candidates(table, &rows, &variables));
    let mut seen = rustc_hash::FxHashSet::default();
    found.retain(|f| seen.insert(f.text.clone()));
    found
}

fn template_of(relation: &Relation) -> Template {
    match relation {
        Relation::OneOf(..) | Relation::Is(..) => Template::OneOf,
        Relation::AtLeast(..) | Relation::AtMost(..) => Template::Bound,
        Relation::Equal(..) => Template::Equal,
        Relation::Less(..) | Relation::NotMore(..) | Relation::Unequal(..) => Template::Order,
        Relation::Linear { .. } | Relation::Sum(..) | Relation::Product(..) | Relation::Residue { .. } => {
            Template::Function
        }
        Relation::Contains(..) | Relation::StartsWith(..) => Template::Member,
        Relation::Implies(..) => Template::Implication,
    }
}

fn named(found: &Candidate, class: &str) -> Invariant {
    let digest = xxhash_rust::xxh3::xxh3_64(format!("{class}\n{}", found.text).as_bytes());
    Invariant {
        id: format!("{}-{:08x}", found.template.word(), digest >> 32),
        template: found.template,
        holds: found.text.clone(),
        class: class.to_owned(),
        across: false,
        episodes: found.episodes,
        bits: (found.bits * 10.0).round() / 10.0,
        shadowed_by: Vec::new(),
        nearest: Vec::new(),
    }
}

/// Candidates within a row or between two states of an actor that the states contradict, judged by their text: none, if both ways of
/// evaluation agree. What is between actors is proposed freely, and judged by its text alone.
#[cfg(test)]
fn disagreements(executions: &[Execution]) -> Vec<String> {
    let mut found = Vec::new();
    for class in classes::classes(executions, &[]) {
        let table = Table::new(executions, &class, &Variables::default());
        for candidate in candidates(&table).into_iter().filter(|c| c.template > Template::Agreement) {
            let fits =
                |predicate: Predicate| executions.iter().all(|e| e.among(&class.names).fits(&predicate));
            let held = Predicate::parse(&candidate.text).is_ok_and(fits);
            if !held {
                found.push(candidate.text);
            }
        }
    }
    found
}

//! A mapping with its templates and expressions read.

use std::collections::BTreeSet;

use demi_schemas::Kind;
use regex::Regex;

use super::error::MappingError;
use super::file::{Clock, Fields, Input, LinkOrder, Mapping, Rule};
use super::patterns::{self, Pattern};
use super::template::{Form, Template, template};
use crate::container::Container;
use crate::read::encoding::{Encoding, UnknownEncoding};

/// Templates of the fields of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emit {
    pub(crate) kind: Option<Template>,
    /// The kind, where the template always makes the same one.
    pub(crate) fixed_kind: Option<Kind>,
    pub(crate) actor: Option<Template>,
    pub(crate) incarnation: Option<Template>,
    pub(crate) seq: Option<Template>,
    pub(crate) msg_id: Option<Template>,
    pub(crate) link: Option<(Vec<Template>, LinkOrder)>,
    pub(crate) from: Option<Template>,
    pub(crate) to: Option<Template>,
    pub(crate) via: Option<Template>,
    pub(crate) type_: Option<Template>,
    pub(crate) payload: Option<Template>,
    pub(crate) fingerprint: Option<Template>,
    pub(crate) external: Option<Template>,
    pub(crate) fields: Option<Form>,
    pub(crate) state: Option<Form>,
    pub(crate) time: Option<Template>,
}

/// A condition and what it leads to.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRule {
    pub(crate) when: Vec<(String, Regex)>,
    pub(crate) absent: Vec<String>,
    pub(crate) skip: bool,
    pub(crate) emits: Vec<Emit>,
    /// Names of the record that its templates use; what is left is `{@rest}`.
    pub(crate) used: BTreeSet<String>,
}

/// What tells beginnings from ends.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    pub(crate) phase: Template,
    pub(crate) begins: Regex,
    pub(crate) ends: Regex,
}

/// A mapping ready for use.
#[derive(Clone, Debug)]
pub(crate) struct Compiled {
    pub(crate) name: String,
    pub(crate) input: Input,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) start: Option<Regex>,
    pub(crate) skip: Vec<Regex>,
    pub(crate) delimiter: Option<Regex>,
    pub(crate) label: Option<Template>,
    pub(crate) clock: Option<(Template, Clock)>,
    /// Names of hosts, where they are written and the entries are deduced.
    pub(crate) host_name: Option<Template>,
    pub(crate) phases: Option<Phases>,
    /// The rules, and last the one for everything else.
    pub(crate) rules: Vec<CompiledRule>,
}

fn expression(place: &str, text: &str) -> Result<Regex, MappingError> {
    patterns::compile(text).map_err(|e| MappingError::value(place, e))
}

impl Compiled {
    pub(crate) fn new(mapping: &Mapping) -> Result<Compiled, MappingError> {
        let input = mapping.input.clone();
        let bad = |place: &str, reason: &str| Err(MappingError::value(place, reason));
        if input.container == Container::Text && input.patterns.is_empty() {
            return bad("input.patterns", "a text log needs at least one pattern");
        }
        if input.container != Container::Text && (!input.patterns.is_empty() || input.start.is_some()) {
            return bad("input", "only text logs have 'patterns' and 'start'");
        }
        if input.records.is_some() && input.container != Container::Json {
            return bad("input.records", "only for container 'json'");
        }
        let own = input.container.is_told();
        let named = mapping.event.actor.is_some()
            || (!mapping.rules.is_empty() && mapping.rules.iter().all(|r| r.skip || actors(r)));
        if !own && !named {
            return bad("event.actor", "missing: whose event is it?");
        }
        let numbered = |place: &str, list: &[String]| -> Result<Vec<Regex>, MappingError> {
            list.iter().enumerate().map(|(i, t)| expression(&format!("{place}[{i}]"), t)).collect()
        };
        let patterns = input.patterns.iter().enumerate().map(|(i, text)| {
            Pattern::new(text, input.max_lines)
                .map_err(|e| MappingError::value(format!("input.patterns[{i}]"), e))
        });
        let base = emit("event", &mapping.event)?;
        let mut rules = Vec::new();
        for (i, rule) in mapping.rules.iter().enumerate() {
            rules.push(compile_rule(&format!("rule[{i}]"), rule, mapping, &base)?);
        }
        let every = Rule::default();
        rules.push(compile_rule("event", &every, mapping, &base)?);
        let clock = match &mapping.clock {
            None => None,
            Some(clock) => Some((template("clock.value", &clock.value)?, clock.clone())),
        };
        let host_name = match mapping.clock.as_ref().and_then(|c| c.name.as_deref()) {
            Some(text) => Some(template("clock.name", text)?),
            None => None,
        };
        let phases = match &mapping.real_time {
            None => None,
            Some(_) if clock.is_some() => return bad("real_time", "there is [clock] already"),
            Some(r) => Some(Phases {
                phase: template("real_time.phase", &r.phase)?,
                begins: expression("real_time.begins", &r.begins)?,
                ends: expression("real_time.ends", &r.ends)?,
            }),
        };
        let execution = &mapping.execution;
        Ok(Compiled {
            name: mapping.name.clone(),
            patterns: patterns.collect::<Result<_, _>>()?,
            encoding: input
                .encoding
                .as_deref()
                .map(str::parse)
                .transpose()
                .map_err(|e: UnknownEncoding| MappingError::value("input.encoding", e.to_string()))?,
            start: input.start.as_deref().map(|t| expression("input.start", t)).transpose()?,
            skip: numbered("input.skip", &input.skip)?,
            delimiter: execution
                .delimiter
                .as_deref()
                .map(|t| expression("execution.delimiter", t))
                .transpose()?,
            label: execution.label.as_deref().map(|t| template("execution.label", t)).transpose()?,
            clock,
            host_name,
            phases,
            rules,
            input,
        })
    }
}

/// Whether each event of the rule says whose it is.
fn actors(rule: &Rule) -> bool {
    !rule.emit.is_empty() && rule.emit.iter().all(|f| f.actor.is_some())
}

fn compile_rule(
    place: &str,
    rule: &Rule,
    mapping: &Mapping,
    event: &Emit,
) -> Result<CompiledRule, MappingError> {
    let mut when = Vec::new();
    for (name, text) in &rule.when {
        when.push((name.clone(), expression(&format!("{place}.when.'{name}'"), text)?));
    }
    let mut emits = Vec::new();
    for (i, fields) in rule.emit.iter().enumerate() {
        emits.push(emit(&format!("{place}.emit[{i}]"), fields)?.over(event));
    }
    if emits.is_empty() && !rule.skip {
        emits.push(event.clone());
    }
    let mut used = BTreeSet::new();
    [&mapping.event].into_iter().chain(&rule.emit).for_each(|fields| names_used(fields, &mut used));
    mapping.clock.iter().for_each(|c| names_in(&c.value, &mut used));
    Ok(CompiledRule { when, absent: rule.absent.clone(), skip: rule.skip, emits, used })
}

/// Top-level names in the texts of templates. A name that only looks like one does no harm.
fn names_used(fields: &Fields, used: &mut BTreeSet<String>) {
    // `fields` and `state` are left out: they may ask for the rest and for parts of it.
    let Fields {
        kind,
        actor,
        incarnation,
        seq,
        msg_id,
        from,
        to,
        via,
        type_,
        time,
        fingerprint,
        payload,
        ..
    } = fields;
    let texts = [kind, actor, incarnation, seq, msg_id, from, to, via, type_, time, fingerprint, payload];
    texts.into_iter().flatten().for_each(|text| names_in(text, used));
}

fn names_in(text: &str, used: &mut BTreeSet<String>) {
    for inner in text.split('{').skip(1).filter_map(|t| t.split('}').next()) {
        for name in inner.split('!').next().unwrap_or("").split('|') {
            used.insert(name.trim().split('.').next().unwrap_or("").to_owned());
        }
    }
}

fn emit(place: &str, fields: &Fields) -> Result<Emit, MappingError> {
    let one = |name: &str, text: &Option<String>| {
        text.as_deref().map(|t| template(&format!("{place}.{name}"), t)).transpose()
    };
    let form = |name: &str, shape: &Option<super::shape::Shape>| {
        let read = |s| Form::parse(s).map_err(|e| MappingError::value(format!("{place}.{name}"), e));
        shape.as_ref().map(read).transpose()
    };
    let link = match &fields.link {
        None => None,
        Some(link) => {
            let key = link.key.iter().map(|t| template(&format!("{place}.link.key"), t));
            Some((key.collect::<Result<_, _>>()?, link.order))
        }
    };
    let kind = one("kind", &fields.kind)?;
    Ok(Emit {
        fixed_kind: kind.as_ref().and_then(Template::constant).and_then(Kind::from_name),
        kind,
        actor: one("actor", &fields.actor)?,
        incarnation: one("incarnation", &fields.incarnation)?,
        seq: one("seq", &fields.seq)?,
        msg_id: one("msg_id", &fields.msg_id)?,
        link,
        from: one("from", &fields.from)?,
        to: one("to", &fields.to)?,
        via: one("via", &fields.via)?,
        type_: one("type", &fields.type_)?,
        payload: one("payload", &fields.payload)?,
        fingerprint: one("fingerprint", &fields.fingerprint)?,
        external: one("external", &fields.external)?,
        fields: form("fields", &fields.fields)?,
        state: form("state", &fields.state)?,
        time: one("time", &fields.time)?,
    })
}

impl Emit {
    /// These templates, and those of `base` where there are none.
    fn over(self, base: &Emit) -> Emit {
        let base = base.clone();
        Emit {
            fixed_kind: if self.kind.is_some() { self.fixed_kind } else { base.fixed_kind },
            kind: self.kind.or(base.kind),
            actor: self.actor.or(base.actor),
            incarnation: self.incarnation.or(base.incarnation),
            seq: self.seq.or(base.seq),
            msg_id: self.msg_id.or(base.msg_id),
            link: self.link.or(base.link),
            from: self.from.or(base.from),
            to: self.to.or(base.to),
            via: self.via.or(base.via),
            type_: self.type_.or(base.type_),
            payload: self.payload.or(base.payload),
            fingerprint: self.fingerprint.or(base.fingerprint),
            external: self.external.or(base.external),
            fields: self.fields.or(base.fields),
            state: self.state.or(base.state),
            time: self.time.or(base.time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mapping, shipped};

    #[test]
    fn every_shipped_mapping_is_one() {
        for mapping in shipped() {
            let read = Mapping::named(mapping.name).unwrap();
            assert_eq!(read.name, mapping.name);
            assert!(!read.description.is_empty());
        }
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_place() {
        let why = |text: &str| {
            let text = format!("name='x'\ndescription='d'\n{text}");
            Mapping::parse(&text, "m.toml").unwrap_err().to_string()
        };
        let text = "[input]\ncontainer='text'\npatterns=['(?<a>[)']\n[event]\nactor='{a}'\n";
        assert!(why(text).starts_with("m.toml: input.patterns[0]: "), "{}", why(text));
        let text = "[input]\ncontainer='json-lines'\n[event]\nactor='{a'\n";
        assert!(why(text).contains("event.actor: '{a': a brace is not closed"), "{}", why(text));
        let text = "[input]\ncontainer='json-lines'\n";
        assert!(why(text).contains("whose event"), "{}", why(text));
        let text = "[input]\ncontainer='logfmt'\npatterns=['(?<a>.)']\n[event]\nactor='{a}'\n";
        assert!(why(text).contains("only text logs"), "{}", why(text));
    }
}

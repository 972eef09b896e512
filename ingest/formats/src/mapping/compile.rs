//! A mapping with its templates and expressions read.

use std::collections::BTreeMap;
use std::sync::Arc;

use demi_schemas::Kind;
use regex::Regex;

use super::error::MappingError;
use super::file::{Carry, Clock, Fields, Input, LinkOrder, Mapping, Rule};
use super::patterns::{self, Pattern};
use super::seq::Gaps;
use super::stamp::{Formats, Time};
use super::template::{Form, Path, Template, split, template};
use crate::container::Container;
use crate::read::encoding::{Encoding, UnknownEncoding};

/// The fields of an event whose templates make a text, by their names: what a mapping says of each, compiled.
macro_rules! texts {
    ($($field:ident = $name:literal,)*) => {
        /// Templates of the fields that are texts.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Texts {
            $(pub(crate) $field: Option<Template>,)*
        }

        impl Texts {
            fn compile(place: &str, fields: &Fields) -> Result<Self, MappingError> {
                let one = |name: &str, text: &Option<String>| {
                    text.as_deref().map(|text| template(&format!("{place}.{name}"), text)).transpose()
                };
                Ok(Texts { $($field: one($name, &fields.$field)?,)* })
            }

            /// These templates, and those of `base` where there are none.
            fn over(self, base: Texts) -> Self {
                Texts { $($field: self.$field.or(base.$field),)* }
            }

            fn all(&self) -> impl Iterator<Item = &Template> {
                [$(&self.$field,)*].into_iter().flatten()
            }
        }
    };
}

texts! {
    kind = "kind",
    actor = "actor",
    incarnation = "incarnation",
    msg_id = "msg_id",
    from = "from",
    to = "to",
    via = "via",
    type_ = "type",
    payload = "payload",
    fingerprint = "fingerprint",
    external = "external",
}

/// Templates of the fields of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emit {
    pub(crate) texts: Texts,
    /// The kind, where the template always makes the same one.
    pub(crate) fixed_kind: Option<Kind>,
    pub(crate) seq: Option<Template>,
    /// Whether gaps between sequence numbers mean nothing.
    pub(crate) sparse: bool,
    pub(crate) link: Option<(Vec<Template>, LinkOrder)>,
    pub(crate) fields: Option<Form>,
    pub(crate) state: Option<Form>,
    pub(crate) time: Option<Template>,
    /// How stamps are written, if the mapping says so.
    pub(crate) formats: Option<Arc<Formats>>,
    /// The day of stamps that have none.
    pub(crate) date: Option<Template>,
    /// A list, or object: the templates are filled for each of its elements.
    pub(crate) each: Option<Path>,
}

/// A value, which is the first that is there, and what must be found in it.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) names: Vec<Path>,
    pub(crate) regex: Regex,
}

/// What holds for the records that follow.
#[derive(Clone, Debug)]
pub(crate) struct CompiledCarry {
    pub(crate) line: Option<Regex>,
    pub(crate) when: Vec<Condition>,
    pub(crate) set: Vec<(String, Template)>,
}

/// A condition and what it leads to.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRule {
    pub(crate) when: Vec<Condition>,
    pub(crate) absent: Vec<Path>,
    pub(crate) skip: bool,
    pub(crate) emits: Vec<Emit>,
    /// Whether a template asks for what no other uses, `{@rest}`.
    pub(crate) wants_rest: bool,
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
    pub(crate) carry: Vec<CompiledCarry>,
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
        if input.records.is_some() && !matches!(input.container, Container::Json | Container::Xml) {
            return bad("input.records", "only for containers 'json' and 'xml'");
        }
        let is_telemetry = matches!(input.container, Container::Otlp | Container::Jaeger | Container::Zipkin);
        match &input.actor_by {
            Some(_) if !is_telemetry => {
                return bad("input.actor_by", "only for containers 'otlp', 'jaeger' and 'zipkin'");
            }
            Some(keys) if keys.is_empty() => return bad("input.actor_by", "names at least one attribute"),
            _ => {}
        }
        let own = input.container.is_told();
        let named = mapping.event.actor.is_some()
            || (!mapping.rules.is_empty() && mapping.rules.iter().all(|r| r.skip || actors(r)));
        if !own && !named {
            return bad("event.actor", "missing: whose event is it?");
        }
        if let Some(wrapper) = input.wrapper
            && input.container.is_of_documents()
        {
            let reason =
                format!("'{}' stands around lines, and this container is made of documents", wrapper.name());
            return bad("input.wrapper", &reason);
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
            rules.push(compile_rule(&format!("rule[{i}]"), rule, &base)?);
        }
        let every = Rule::default();
        rules.push(compile_rule("event", &every, &base)?);
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
        let mut carry = Vec::new();
        for (i, each) in mapping.carry.iter().enumerate() {
            carry.push(compile_carry(&format!("carry[{i}]"), each, input.container)?);
        }
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
            carry,
            rules,
            input,
        })
    }
}

/// Whether each event of the rule says whose it is.
fn actors(rule: &Rule) -> bool {
    !rule.emit.is_empty() && rule.emit.iter().all(|f| f.actor.is_some())
}

fn conditions(place: &str, when: &BTreeMap<String, String>) -> Result<Vec<Condition>, MappingError> {
    let each = |(name, text): (&String, &String)| {
        let place = format!("{place}.when.'{name}'");
        let names = split(name, '|').into_iter().map(|name| Path::parse(name.trim()));
        let names = names.collect::<Result<_, _>>().map_err(|e| MappingError::value(place.clone(), e))?;
        Ok(Condition { names, regex: expression(&place, text)? })
    };
    when.iter().map(each).collect()
}

fn compile_carry(place: &str, carry: &Carry, container: Container) -> Result<CompiledCarry, MappingError> {
    let bad = |reason: &str| Err(MappingError::value(place, reason));
    let line = carry.line.as_deref().map(|text| expression(&format!("{place}.line"), text)).transpose()?;
    if line.is_some() && (!carry.when.is_empty() || !carry.set.is_empty()) {
        return bad("a line that is no record has no values: 'line' stands alone");
    }
    if line.is_some() && (container.is_of_documents() || container == Container::Native) {
        return bad("'line' is for containers whose records are lines; use 'when' or 'set'");
    }
    let when = conditions(place, &carry.when)?;
    let set = carry
        .set
        .iter()
        .map(|(name, text)| Ok((name.clone(), template(&format!("{place}.set.{name}"), text)?)));
    let set = set.collect::<Result<Vec<_>, _>>()?;
    let names = |regex: &Regex| regex.capture_names().flatten().next().is_some();
    if set.is_empty() && !line.iter().chain(when.iter().map(|condition| &condition.regex)).any(names) {
        return bad("nothing is carried: there is no named group such as (?<node>.*), and no 'set'");
    }
    Ok(CompiledCarry { line, when, set })
}

fn compile_rule(place: &str, rule: &Rule, event: &Emit) -> Result<CompiledRule, MappingError> {
    let when = conditions(place, &rule.when)?;
    let mut emits = Vec::new();
    for (i, fields) in rule.emit.iter().enumerate() {
        emits.push(emit(&format!("{place}.emit[{i}]"), fields)?.over(event));
    }
    if emits.is_empty() && !rule.skip {
        emits.push(event.clone());
    }
    let absent = rule.absent.iter().map(|name| Path::parse(name));
    let absent =
        absent.collect::<Result<_, _>>().map_err(|e| MappingError::value(format!("{place}.absent"), e))?;
    let wants_rest = emits.iter().any(|emit| emit.names("@rest"));
    Ok(CompiledRule { when, absent, skip: rule.skip, emits, wants_rest })
}

fn emit(place: &str, fields: &Fields) -> Result<Emit, MappingError> {
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
    let texts = Texts::compile(place, fields)?;
    let time_place = format!("{place}.time");
    let (time, formats, date) = match &fields.time {
        None => (None, None, None),
        Some(Time::Template(text)) => (Some(template(&time_place, text)?), None, None),
        Some(Time::Read(read)) => {
            let date = read.date.as_deref().map(|text| template(&format!("{time_place}.date"), text));
            let value = template(&format!("{time_place}.value"), &read.value)?;
            (Some(value), Some(Arc::new(read.compile(&time_place)?)), date.transpose()?)
        }
    };
    let each = fields.each.as_deref().map(Path::parse).transpose();
    Ok(Emit {
        fixed_kind: texts.kind.as_ref().and_then(Template::constant).and_then(Kind::from_name),
        texts,
        seq: fields.seq.as_ref().map(|seq| template(&format!("{place}.seq"), seq.value())).transpose()?,
        sparse: fields.seq.as_ref().is_some_and(|seq| seq.gaps() == Gaps::Normal),
        link,
        fields: form("fields", &fields.fields)?,
        state: form("state", &fields.state)?,
        time,
        formats,
        date,
        each: each.map_err(|e| MappingError::value(format!("{place}.each"), e))?,
    })
}

impl Emit {
    /// Calls `each` with all templates but those of `link`.
    pub(crate) fn each_template<'a>(&'a self, each: &mut dyn FnMut(&'a Template)) {
        self.texts.all().for_each(&mut *each);
        [&self.seq, &self.time, &self.date].into_iter().flatten().for_each(&mut *each);
        [&self.fields, &self.state].into_iter().flatten().for_each(|form| form.each_template(each));
    }

    /// Whether a template may ask for a name.
    pub(crate) fn names(&self, name: &str) -> bool {
        let mut found = false;
        self.each_template(&mut |template| found |= template.names(name));
        found || self.link.iter().flat_map(|(key, _)| key).any(|template| template.names(name))
    }

    /// These templates, and those of `base` where there are none.
    fn over(self, base: &Emit) -> Emit {
        let base = base.clone();
        Emit {
            fixed_kind: if self.texts.kind.is_some() { self.fixed_kind } else { base.fixed_kind },
            texts: self.texts.over(base.texts),
            sparse: if self.seq.is_some() { self.sparse } else { base.sparse },
            seq: self.seq.or(base.seq),
            link: self.link.or(base.link),
            fields: self.fields.or(base.fields),
            state: self.state.or(base.state),
            formats: if self.time.is_some() { self.formats } else { base.formats },
            date: if self.time.is_some() { self.date } else { base.date },
            time: self.time.or(base.time),
            each: self.each.or(base.each),
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

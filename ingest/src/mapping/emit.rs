//! From a record to its events: the rule that counts, its templates, sequence numbers, clocks and message ids.

use std::path::Path;

use demi_schemas::event::{first_host_hint, is_clock_seq};
use demi_schemas::{EventRecord, Kind, Via};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::clocks::Written;
use super::compile::{Compiled, CompiledRule, Emit};
use super::file::Ticks;
use super::links::Links;
use super::real_time::{Phase, RealTime};
use super::template::{Scope, text_of};
use crate::otlp::Repeats;

/// Where a record is, and what is known of it besides.
pub(crate) struct Place<'a> {
    pub(crate) source: &'a str,
    pub(crate) line: u64,
    pub(crate) offset: u64,
    pub(crate) execution: &'a str,
    /// The host that was deduced.
    pub(crate) host: Option<&'a str>,
    /// Names of the entries of clocks, where they were deduced.
    pub(crate) hosts: Option<&'a [String]>,
    pub(crate) raw: &'a [u8],
}

/// What became of a record.
#[derive(Debug)]
pub(crate) enum Emitted {
    Events(Vec<EventRecord>, Vec<String>),
    Skipped(&'static str),
    Bad(&'static str, String),
}

type Incarnation = (String, u32);

/// What is remembered from record to record.
#[derive(Default)]
pub(crate) struct Emitter {
    pub(crate) counted: FxHashMap<String, FxHashMap<Incarnation, u64>>,
    pub(crate) links: Links,
    pub(crate) histories: FxHashMap<String, RealTime>,
    /// Records at sequence numbers taken from a clock that say the same, by execution.
    pub(crate) repeats: FxHashMap<String, Repeats>,
    /// Whether sequence numbers may not be counted.
    pub(crate) strict: bool,
}

type Failure = (&'static str, String);

impl Emitter {
    /// The events of a record.
    pub(crate) fn emit(&mut self, mapping: &Compiled, record: &Value, place: &Place<'_>) -> Emitted {
        match self.try_emit(mapping, record, place) {
            Ok(emitted) => emitted,
            Err((code, reason)) => Emitted::Bad(code, reason),
        }
    }

    fn try_emit(
        &mut self,
        mapping: &Compiled,
        record: &Value,
        place: &Place<'_>,
    ) -> Result<Emitted, Failure> {
        let known = |name: &str| place.known(name);
        let mut groups = Map::new();
        let Some(rule) = mapping.rules.iter().find(|rule| {
            groups.clear();
            holds(rule, record, &mut groups, &known)
        }) else {
            return Ok(Emitted::Skipped("no rule holds"));
        };
        if rule.skip {
            return Ok(Emitted::Skipped("a rule leaves it out"));
        }
        let rule_error = |reason| ("rule", reason);
        let scope = Scope { record, groups: &groups, known: &known };
        let clock = match &mapping.clock {
            None => None,
            Some((value, names)) => match value.value(&scope).map_err(|e| ("clock", e))? {
                None => None,
                Some(value) => {
                    let written =
                        Written::read(&value).map_err(|e| ("clock", format!("the vector clock: {e}")))?;
                    Some(written.named(names, place.hosts))
                }
            },
        };
        let phase = match &mapping.phases {
            None => None,
            Some(phases) => {
                let text = phases.phase.text(&scope).map_err(rule_error)?.unwrap_or_default();
                Some(match text {
                    t if phases.begins.is_match(&t) => Phase::Begins,
                    t if phases.ends.is_match(&t) => Phase::Ends,
                    _ => Phase::Neither,
                })
            }
        };
        let known = |name: &str| match name.strip_prefix("clock.") {
            Some(host) => clock.as_ref().and_then(|c| c.get(host)).map(|n| Value::from(*n)),
            None if name == "rest" => rest(record, rule),
            None => place.known(name),
        };
        let scope = Scope { record, groups: &groups, known: &known };
        let mut records = Vec::with_capacity(rule.emits.len());
        let mut warnings = Vec::new();
        for emit in &rule.emits {
            let mut event = fill(emit, &scope).map_err(rule_error)?;
            let own = clock.as_ref().and_then(|c| c.get(&event.actor)).copied();
            let ticks = mapping.clock.as_ref().map_or(Ticks::Every, |(_, c)| c.ticks);
            if event.seq == 0 {
                let strict = self.strict;
                let next = self.counter(place.execution, &event);
                event.seq = match own {
                    Some(own) if ticks == Ticks::Every => {
                        *next = own.max(*next);
                        own
                    }
                    _ if strict => {
                        let reason =
                            "the record says no sequence number, and over this source none can be counted";
                        return Err(rule_error(reason.to_owned()));
                    }
                    _ => {
                        *next += 1;
                        *next
                    }
                };
            }
            if clock.is_some() && own.is_none() {
                let hint = first_host_hint(&event.actor, clock.iter().flat_map(|c| c.keys()));
                warnings.push(format!("the clock of '{}' has no entry of its own host{hint}", event.actor));
            }
            event.vector_clock.clone_from(&clock);
            if let Some(phase) = phase {
                let history = self.histories.entry(place.execution.to_owned()).or_default();
                event.vector_clock = Some(history.clock(&event.actor, event.seq, phase));
            }
            self.link(emit, &mut event, &scope, place.execution).map_err(rule_error)?;
            if is_clock_seq(event.seq) {
                self.repeats.entry(place.execution.to_owned()).or_default().count(&mut event);
            } else if records.iter().any(|earlier: &EventRecord| is_at(earlier, &event)) {
                return Err(rule_error(format!(
                    "the record becomes two events of '{}' with the sequence number {}: {}",
                    event.actor,
                    event.seq,
                    match own {
                        Some(_) if emit.seq.is_none() =>
                            "say ticks = \"some\" in [clock], so that they are counted",
                        _ => "leave 'seq' out, so that they are counted",
                    }
                )));
            }
            event.line = Some(place.line);
            event.check().map_err(|e| rule_error(e.to_string()))?;
            records.push(event);
        }
        Ok(Emitted::Events(records, warnings))
    }

    /// The last sequence number given out in the log of the event's actor.
    fn counter(&mut self, execution: &str, event: &EventRecord) -> &mut u64 {
        if !self.counted.contains_key(execution) {
            self.counted.insert(execution.to_owned(), FxHashMap::default());
        }
        let incarnations = self.counted.entry(execution.to_owned()).or_default();
        incarnations.entry((event.actor.clone(), event.incarnation)).or_insert(0)
    }

    fn link(
        &mut self,
        emit: &Emit,
        event: &mut EventRecord,
        scope: &Scope<'_>,
        execution: &str,
    ) -> Result<(), String> {
        let Some((templates, order)) = &emit.link else { return Ok(()) };
        let is_send = match event.kind {
            Kind::Send => true,
            Kind::Receive => false,
            _ => return Ok(()),
        };
        if event.msg_id.is_some() {
            return Ok(());
        }
        let mut key = Vec::with_capacity(templates.len());
        for template in templates {
            let value = template.value(scope)?.unwrap_or(Value::Null);
            key.push(canonical(&value));
        }
        event.msg_id = Some(self.links.id(execution, &key, *order, is_send));
        Ok(())
    }
}

/// Whether an event stands where another one does.
fn is_at(event: &EventRecord, other: &EventRecord) -> bool {
    event.seq == other.seq && event.incarnation == other.incarnation && event.actor == other.actor
}

impl Place<'_> {
    fn known(&self, name: &str) -> Option<Value> {
        Some(match name {
            "line" => Value::from(self.line),
            "offset" => Value::from(self.offset),
            "file" => Value::from(self.source),
            "stem" => Value::from(stem(self.source)),
            "execution" => Value::from(self.execution),
            "raw" => Value::from(String::from_utf8_lossy(self.raw)),
            "host" => Value::from(self.host?),
            _ => return None,
        })
    }
}

/// The file's name without its folder and endings: `logs/p1.txt.gz` is `p1`.
pub(crate) fn stem(source: &str) -> String {
    let mut path = Path::new(source);
    if matches!(path.extension().and_then(|e| e.to_str()), Some("gz" | "zst")) {
        path = path.file_stem().map_or(path, Path::new);
    }
    path.file_stem().map_or_else(|| source.to_owned(), |s| s.to_string_lossy().into_owned())
}

/// Whether a rule's conditions hold; the groups of its expressions are added.
fn holds(
    rule: &CompiledRule,
    record: &Value,
    groups: &mut Map<String, Value>,
    known: &dyn Fn(&str) -> Option<Value>,
) -> bool {
    if rule.absent.is_empty() && rule.when.is_empty() {
        return true;
    }
    let nothing = Map::new();
    let scope = Scope { record, groups: &nothing, known };
    if rule.absent.iter().any(|name| scope.get(name).is_some()) {
        return false;
    }
    rule.when.iter().all(|(name, regex)| {
        let value = scope.get(name);
        let Some(text) = value.as_deref().and_then(text_of) else { return false };
        let Some(found) = regex.captures(&text) else { return false };
        for group in regex.capture_names().flatten() {
            if let Some(value) = found.name(group) {
                groups.insert(group.to_owned(), Value::from(value.as_str()));
            }
        }
        true
    })
}

/// The values that no template of the rule uses.
fn rest(record: &Value, rule: &CompiledRule) -> Option<Value> {
    let map = record.as_object()?;
    let left: Map<String, Value> = map
        .iter()
        .filter(|(name, value)| !value.is_null() && !rule.used.contains(name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (!left.is_empty()).then_some(Value::Object(left))
}

/// The value as text that is equal for equal values, whatever the order of keys.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
                Value::Object(entries.into_iter().map(|(k, v)| (k.clone(), sorted(v))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

/// The event that the templates make; its sequence number is 0 where none says it.
fn fill(emit: &Emit, scope: &Scope<'_>) -> Result<EventRecord, String> {
    let text = |template: &Option<super::template::Template>| match template {
        Some(template) => template.text(scope),
        None => Ok(None),
    };
    let whole = |name: &str, template| match text(template)? {
        None => Ok(None),
        Some(text) => text
            .trim()
            .parse::<u64>()
            .map(Some)
            .map_err(|_| format!("{name} is '{text}', not a whole number")),
    };
    let actor = text(&emit.actor)?.filter(|a| !a.is_empty()).ok_or("the actor has no value")?;
    let kind = text(&emit.kind)?.unwrap_or_else(|| Kind::Local.as_str().to_owned());
    let kind = Kind::from_name(&kind).ok_or_else(|| format!("unknown kind '{kind}'"))?;
    let mut event = EventRecord::new(actor, whole("seq", &emit.seq)?.unwrap_or(0), kind);
    if emit.seq.is_some() && event.seq == 0 {
        return Err("seq has no value, or is 0; sequence numbers count from 1".into());
    }
    let incarnation = whole("incarnation", &emit.incarnation)?.unwrap_or(0);
    event.incarnation = i32::try_from(incarnation)
        .map_err(|_| format!("incarnation {incarnation} is too large"))?
        .unsigned_abs();
    event.msg_id = text(&emit.msg_id)?;
    event.from = text(&emit.from)?;
    event.to = text(&emit.to)?;
    event.via = match text(&emit.via)? {
        None => None,
        Some(name) => Some(Via::from_name(&name).ok_or_else(|| format!("unknown via '{name}'"))?),
    };
    event.type_ = text(&emit.type_)?;
    event.payload = text(&emit.payload)?;
    event.fingerprint = text(&emit.fingerprint)?;
    event.external = match text(&emit.external)?.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(other) => return Err(format!("external is '{other}', not true or false")),
    };
    event.fields = emit.fields.as_ref().map_or(Ok(None), |f| f.value(scope))?;
    event.state = emit.state.as_ref().map_or(Ok(None), |f| f.value(scope))?;
    event.time = emit.time.as_ref().map_or(Ok(None), |t| t.value(scope))?;
    Ok(event)
}

/// The name of the host that a record has, where entries are deduced.
pub(crate) fn host_name(mapping: &Compiled, record: &Value) -> Option<String> {
    let none = Map::new();
    let scope = Scope { record, groups: &none, known: &|_| None };
    mapping.host_name.as_ref()?.text(&scope).ok()?
}

/// The clock of a record of which only that is wanted, as an array.
pub(crate) fn clock_array(mapping: &Compiled, record: &Value) -> Result<Vec<u64>, String> {
    let none = Map::new();
    let scope = Scope { record, groups: &none, known: &|_| None };
    let Some((value, _)) = &mapping.clock else { return Err("the mapping has no clock".into()) };
    match value.value(&scope)?.as_ref().map(Written::read) {
        Some(Ok(Written::Array(counts))) => Ok(counts),
        Some(Ok(Written::Named(_))) => Err("the clock names its hosts; nothing is to deduce".into()),
        Some(Err(error)) => Err(error),
        None => Err("the record has no clock".into()),
    }
}

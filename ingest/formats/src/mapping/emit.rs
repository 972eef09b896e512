//! From a record to its events: the rule that counts, its templates, sequence numbers, clocks and message ids.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use demi_schemas::event::{VectorClock, first_host_hint, is_clock_seq, sparse_seq};
use demi_schemas::{EventRecord, Kind, Via};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::canonical::canonical;
use super::clocks::Written;
use super::compile::{Compiled, Condition, Emit};
use super::counted::Counted;
use super::file::Ticks;
use super::links::Links;
use super::real_time::{Phase, RealTime};
use super::stamp::{Instant, Latest};
use super::template::{Each, Found, Path as ValuePath, Scope, Stamps, Template, Uses};
use crate::fate::{Events, Fate, Rejection};
use crate::formats::Record;
use crate::otlp::Repeats;
use crate::read::order;

/// Where a record is, and what is known of it besides.
pub(crate) struct Place<'a> {
    pub(crate) source: &'a str,
    /// The log of which the source is a part: its own name, unless it was rotated.
    pub(crate) log: &'a str,
    /// The log's name without its folder and endings.
    pub(crate) stem: &'a str,
    pub(crate) line: u64,
    pub(crate) offset: u64,
    pub(crate) execution: &'a str,
    /// The host that was deduced.
    pub(crate) host: Option<&'a str>,
    /// Names of the entries of clocks, where they were deduced.
    pub(crate) hosts: Option<&'a [String]>,
    pub(crate) raw: &'a [u8],
    /// Values that records before this one told.
    pub(crate) carried: &'a BTreeMap<String, String>,
}

/// What is remembered from record to record.
#[derive(Default)]
pub(crate) struct Emitter {
    pub(crate) counted: Counted,
    pub(crate) links: Links,
    pub(crate) histories: FxHashMap<String, RealTime>,
    /// Records at sequence numbers taken from a clock that say the same, by execution.
    pub(crate) repeats: FxHashMap<String, Repeats>,
    /// Whether sequence numbers may not be counted.
    pub(crate) strict: bool,
    /// Latest times of the source that were read by the mapping's formats.
    pub(crate) latest: Latest,
}

impl Emitter {
    /// The events of a record.
    pub(crate) fn emit(
        &mut self,
        mapping: &Compiled,
        record: &Record<'_>,
        place: &Place<'_>,
    ) -> Fate<Events> {
        self.try_emit(mapping, record, place).unwrap_or_else(Fate::Quarantined)
    }

    fn try_emit(
        &mut self,
        mapping: &Compiled,
        record: &Record<'_>,
        place: &Place<'_>,
    ) -> Result<Fate<Events>, Rejection> {
        let known = |name: &str| place.known(name);
        let mut groups = Vec::new();
        let scope = Scope { known: &known, carried: Some(place.carried), ..Scope::of(record) };
        let Some(rule) = mapping.rules.iter().find(|rule| {
            groups.clear();
            holds(&rule.when, &rule.absent, &scope, &mut groups)
        }) else {
            return Ok(Fate::LeftOut("no rule holds"));
        };
        if rule.skip {
            return Ok(Fate::LeftOut("a rule leaves it out"));
        }
        let rule_error = |reason: String| Rejection::new("rule", reason);
        let scope = Scope { groups: &groups, ..scope };
        let clock = clock_of(mapping, &scope, place).map_err(|e| Rejection::new("clock", e))?;
        let phase = match &mapping.phases {
            None => None,
            Some(phases) => {
                let text = phases.phase.look(&scope).map_err(rule_error)?.unwrap_or_default();
                Some(match text {
                    t if phases.begins.is_match(&t) => Phase::Begins,
                    t if phases.ends.is_match(&t) => Phase::Ends,
                    _ => Phase::Neither,
                })
            }
        };
        // One event is made of each of these.
        let mut making: Vec<(&Emit, Option<Each<'_>>)> = Vec::with_capacity(rule.emits.len());
        for emit in &rule.emits {
            match &emit.each {
                None => making.push((emit, None)),
                Some(path) => making.extend(scope.elements(path).into_iter().map(|each| (emit, Some(each)))),
            }
        }
        if making.is_empty() {
            return Ok(Fate::LeftOut("the list is empty"));
        }
        let has_clock = clock.is_some();
        // The last event takes the clock, after everything was asked about it.
        let clock = RefCell::new(clock);
        let entry = |host: &str| clock.borrow().as_ref().and_then(|c| c.get(host)).copied();
        let uses = Uses::default();
        let ask = |name: &str| match name.strip_prefix("clock.") {
            Some(host) => entry(host).map(Found::from),
            None if name == "rest" => Some(Found::from(Value::Object(Map::new()))),
            None => place.known(name),
        };
        let latest = self.latest.clone();
        let mut rest = None;
        if rule.wants_rest {
            for (emit, each) in &making {
                let scope = Scope {
                    groups: &groups,
                    known: &ask,
                    uses: Some(&uses),
                    carried: Some(place.carried),
                    each: each.as_ref(),
                    stamps: emit.stamps(&latest),
                    ..Scope::of(record)
                };
                note_uses(mapping, emit, has_clock, &scope);
            }
            rest = uses.rest(record);
        }
        let mut records = Vec::with_capacity(making.len());
        let mut warnings = Vec::new();
        for (i, (emit, each)) in making.iter().enumerate() {
            let known = |name: &str| match name {
                "rest" => rest.clone().map(Found::from),
                _ => ask(name),
            };
            let scope = Scope {
                groups: &groups,
                known: &known,
                carried: Some(place.carried),
                each: each.as_ref(),
                stamps: emit.stamps(&latest),
                ..Scope::of(record)
            };
            let (time, read) = time_of(emit, &scope, &mut warnings).map_err(rule_error)?;
            let known = |name: &str| match name {
                "time" => time.clone().map(Found::from),
                _ => known(name),
            };
            let scope = Scope { known: &known, stamps: scope.stamps.filter(|_| read.is_some()), ..scope };
            let mut event = fill(emit, &scope).map_err(rule_error)?;
            event.time.clone_from(&time);
            if let Some(read) = read {
                self.latest.note(read);
            }
            let own = if has_clock { entry(&event.actor) } else { None };
            let ticks = mapping.clock.as_ref().map_or(Ticks::Every, |(_, c)| c.ticks);
            if event.seq == 0 {
                let strict = self.strict;
                let next = self.counted.of(place.execution, &event.actor, event.incarnation);
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
            if has_clock && own.is_none() {
                let clock = clock.borrow();
                let hint = first_host_hint(&event.actor, clock.iter().flat_map(|c| c.keys()));
                warnings.push(format!("the clock of '{}' has no entry of its own host{hint}", event.actor));
            }
            self.link(emit, &mut event, &scope, place.execution).map_err(rule_error)?;
            event.vector_clock = if i + 1 < making.len() { clock.borrow().clone() } else { clock.take() };
            if let Some(phase) = phase {
                // What happened before what, the beginnings and ends of one log tell.
                let key = format!("{}\n{}", place.log, place.execution);
                let history = self.histories.entry(key).or_default();
                event.vector_clock = Some(history.clock(&event.actor, event.seq, phase));
            }
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
        Ok(Fate::Row(Events { records, warnings }))
    }

    fn link<'a>(
        &mut self,
        emit: &'a Emit,
        event: &mut EventRecord,
        scope: &Scope<'a>,
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
            key.push(template.found(scope)?.map_or_else(|| "null".to_owned(), |found| canonical(&found)));
        }
        event.msg_id = Some(self.links.id(execution, &key, *order, is_send));
        Ok(())
    }
}

impl Emit {
    /// How stamps are written, and the latest ones.
    fn stamps<'a>(&'a self, latest: &'a Latest) -> Option<Stamps<'a>> {
        self.formats.as_deref().map(|formats| Stamps { formats, date: self.date.as_ref(), latest })
    }
}

/// Whether an event stands where another one does.
fn is_at(event: &EventRecord, other: &EventRecord) -> bool {
    event.seq == other.seq && event.incarnation == other.incarnation && event.actor == other.actor
}

impl Place<'_> {
    fn known(&self, name: &str) -> Option<Found<'_>> {
        Some(match name {
            "line" => Found::from(self.line),
            "offset" => Found::from(self.offset),
            "file" => Found::from(self.source),
            "stem" => Found::from(self.stem),
            "execution" => Found::from(self.execution),
            "raw" => Found::Text(String::from_utf8_lossy(self.raw)),
            "host" => Found::from(self.host?),
            _ => return None,
        })
    }
}

/// The file's name without its folder and endings: `logs/p1.txt.gz` is `p1`, and so is what a rotation left of it (`p1.txt.1`).
pub(crate) fn stem(source: &str) -> String {
    let mut path = Path::new(source);
    if matches!(path.extension().and_then(|e| e.to_str()), Some("gz" | "zst")) {
        path = path.file_stem().map_or(path, Path::new);
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    if let Some(log) = name.as_deref().and_then(order::rotated_log) {
        return Path::new(log)
            .file_stem()
            .map_or_else(|| log.to_owned(), |s| s.to_string_lossy().into_owned());
    }
    path.file_stem().map_or_else(|| source.to_owned(), |s| s.to_string_lossy().into_owned())
}

/// The clock of a record, if the mapping has one and the record too.
fn clock_of<'a>(
    mapping: &'a Compiled,
    scope: &Scope<'a>,
    place: &Place<'_>,
) -> Result<Option<VectorClock>, String> {
    let Some((value, names)) = &mapping.clock else { return Ok(None) };
    let Some(found) = value.found(scope)? else { return Ok(None) };
    let written = Written::read(found).map_err(|e| format!("the vector clock: {e}"))?;
    Ok(Some(written.named(names, place.hosts)))
}

/// Whether conditions hold; the groups of their expressions are added.
pub(crate) fn holds<'a>(
    when: &'a [Condition],
    absent: &'a [ValuePath],
    scope: &Scope<'a>,
    groups: &mut Vec<(&'a str, Cow<'a, str>)>,
) -> bool {
    absent.iter().all(|name| scope.get(name).is_none())
        && when.iter().all(|Condition { names, regex }| {
            let found = names.iter().find_map(|name| scope.get(name));
            let Some(text) = found.and_then(Found::text) else { return false };
            // Most rules do not hold, and to find that out is cheaper without groups.
            if !regex.is_match(&text) {
                return false;
            }
            if regex.captures_len() == 1 {
                return true;
            }
            match text {
                Cow::Borrowed(text) => {
                    each_group(regex, text, |name, g| groups.push((name, Cow::Borrowed(g))))
                }
                Cow::Owned(text) => {
                    each_group(regex, &text, |name, g| groups.push((name, Cow::Owned(g.to_owned()))));
                }
            }
            true
        })
}

pub(crate) fn each_group<'r, 't>(regex: &'r Regex, text: &'t str, mut take: impl FnMut(&'r str, &'t str)) {
    let Some(found) = regex.captures(text) else { return };
    for name in regex.capture_names().flatten() {
        if let Some(group) = found.name(name) {
            take(name, group.as_str());
        }
    }
}

/// The time of an event; and in UTC, where the mapping's formats tell how stamps are written. One that is in none of them is kept as it is.
fn time_of<'a>(
    emit: &'a Emit,
    scope: &Scope<'a>,
    warnings: &mut Vec<String>,
) -> Result<(Option<Value>, Option<Instant>), String> {
    let Some(template) = &emit.time else { return Ok((None, None)) };
    let Some(found) = template.found(scope)? else { return Ok((None, None)) };
    let Some(stamps) = &scope.stamps else { return Ok((Some(found.value()), None)) };
    let value = found.value();
    let Some(text) = Found::from(value.clone()).text() else { return Ok((None, None)) };
    match stamps.instant(&text, scope) {
        Ok(time) => Ok((Some(Value::from(time.text())), Some(time))),
        Err(reason) => {
            warnings.push(reason);
            Ok((Some(value), None))
        }
    }
}

/// Has all templates of a rule filled, so that the scope knows what they use of the record. Which alternative of a template has a value, only the
/// record tells.
fn note_uses<'a>(mapping: &'a Compiled, emit: &'a Emit, has_clock: bool, scope: &Scope<'a>) {
    // Errors come again when the event is made.
    let use_of = |template: &'a Template| template.found(scope).ok().flatten().is_some();
    emit.each_template(&mut |template| {
        use_of(template);
    });
    if let Some((key, _)) = &emit.link {
        let kind = match emit.fixed_kind {
            Some(kind) => Some(kind),
            None => look(&emit.texts.kind, scope).ok().flatten().and_then(|kind| Kind::from_name(&kind)),
        };
        let is_message = matches!(kind, Some(Kind::Send | Kind::Receive));
        if is_message && !emit.texts.msg_id.as_ref().is_some_and(use_of) {
            key.iter().for_each(|template| {
                use_of(template);
            });
        }
    }
    if let Some((value, _)) = mapping.clock.as_ref().filter(|_| has_clock) {
        use_of(value);
    }
    [&mapping.label, &mapping.host_name].into_iter().flatten().for_each(|template| {
        use_of(template);
    });
}

/// The event that the templates make; its sequence number is 0 where none says it.
fn fill<'a>(emit: &'a Emit, scope: &Scope<'a>) -> Result<EventRecord, String> {
    let text = |template: &'a Option<Template>| match template {
        Some(template) => template.text(scope),
        None => Ok(None),
    };
    let whole = |name: &str, template: &'a Option<Template>| match look(template, scope)? {
        None => Ok(None),
        Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| no_number(name, &text)),
    };
    let peer = |name: &str, template: &'a Option<Template>| {
        let found = template.as_ref().map_or(Ok(None), |template| template.found(scope))?;
        match &found {
            Some(Found::Json(value)) if value.is_array() => {
                Err(format!("'{name}' is a list: `each` makes an event of each of its values"))
            }
            Some(Found::Json(value)) if value.is_object() => {
                Err(format!("'{name}' is an object and no name"))
            }
            _ => Ok(found.and_then(Found::text).map(Cow::into_owned)),
        }
    };
    let actor = text(&emit.texts.actor)?.filter(|a| !a.is_empty()).ok_or("the actor has no value")?;
    let kind = match emit.fixed_kind {
        Some(kind) => kind,
        None => match look(&emit.texts.kind, scope)? {
            None => Kind::Local,
            Some(kind) => Kind::from_name(&kind).ok_or_else(|| format!("unknown kind '{kind}'"))?,
        },
    };
    let mut event = EventRecord::new(actor, whole("seq", &emit.seq)?.unwrap_or(0), kind);
    if emit.sparse && event.seq > 0 {
        event.seq = sparse_seq(event.seq)?;
    }
    if emit.seq.is_some() && event.seq == 0 {
        return Err("seq has no value, or is 0; sequence numbers count from 1".into());
    }
    let incarnation = whole("incarnation", &emit.texts.incarnation)?.unwrap_or(0);
    event.incarnation = i32::try_from(incarnation)
        .map_err(|_| format!("incarnation {incarnation} is too large"))?
        .unsigned_abs();
    event.msg_id = text(&emit.texts.msg_id)?.filter(|id| !is_no_id(id));
    event.from = peer("from", &emit.texts.from)?;
    event.to = peer("to", &emit.texts.to)?;
    event.via = match look(&emit.texts.via, scope)? {
        None => None,
        Some(name) => Some(Via::from_name(&name).ok_or_else(|| format!("unknown via '{name}'"))?),
    };
    event.type_ = text(&emit.texts.type_)?;
    event.payload = text(&emit.texts.payload)?;
    event.fingerprint = text(&emit.texts.fingerprint)?;
    event.external = match look(&emit.texts.external, scope)?.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(other) => return Err(format!("external is '{other}', not true or false")),
    };
    event.fields = emit.fields.as_ref().map_or(Ok(None), |f| f.value(scope))?;
    event.state = emit.state.as_ref().map_or(Ok(None), |f| f.value(scope))?;
    Ok(event)
}

/// Whether a text stands for an id that is not there, as loggers write it: two messages without an id are not one.
fn is_no_id(id: &str) -> bool {
    const NONE: [&str; 9] = ["", "-", "null", "nil", "none", "undefined", "(null)", "<nil>", "n/a"];
    let id = id.trim();
    NONE.iter().any(|none| id.eq_ignore_ascii_case(none))
        // The nil UUID, and the trace that is none.
        || (id.len() >= 16 && id.bytes().all(|byte| byte == b'0' || byte == b'-'))
}

/// Why a text is no whole number that can be used.
fn no_number(name: &str, text: &str) -> String {
    match text.trim() {
        digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{name} is {digits}, which is too large: the largest is {}", i64::MAX)
        }
        _ => format!("{name} is '{text}', not a whole number"),
    }
}

/// What a template makes as text, if there is one.
fn look<'a>(template: &'a Option<Template>, scope: &Scope<'a>) -> Result<Option<Cow<'a, str>>, String> {
    match template {
        Some(template) => template.look(scope),
        None => Ok(None),
    }
}

/// The name of the host that a record has, where entries are deduced.
pub(crate) fn host_name(mapping: &Compiled, record: &Record<'_>) -> Option<String> {
    let scope = Scope::of(record);
    mapping.host_name.as_ref()?.text(&scope).ok()?
}

/// The clock of a record of which only that is wanted, as an array.
pub(crate) fn clock_array(mapping: &Compiled, record: &Record<'_>) -> Result<Vec<u64>, String> {
    let scope = Scope::of(record);
    let Some((value, _)) = &mapping.clock else { return Err("the mapping has no clock".into()) };
    match value.found(&scope)?.map(Written::read) {
        Some(Ok(Written::Array(counts))) => Ok(counts),
        Some(Ok(Written::Named(_))) => Err("the clock names its hosts; nothing is to deduce".into()),
        Some(Err(error)) => Err(error),
        None => Err("the record has no clock".into()),
    }
}

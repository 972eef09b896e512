//! Documents of OTLP: spans and log records under the attributes of their resource and scope.
//!
//! The attributes usually stand before the spans; then each span becomes events as soon as it is read. JSON has no order, and where they
//! stand behind, or are left out, spans wait for the end of their scope or resource: [`Held`] keeps a few megabytes of them in memory
//! and what is more in an unnamed file.

use std::io;

use serde_json::Value;

use super::held::{Entry, Held, drained};
use super::kept::Part;
use super::out::Out;
use super::records::value;
use super::scan::{Action, Handler, Level, Tag};
use super::telemetry::{broken, done, place, rejected};
use crate::fate::Fate;
use crate::otlp::{Attributes, OtlpOptions, Repeats, Surroundings, json};

/// What an array or object is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Document,
    Resources,
    Resource,
    Scopes,
    Scope,
    Spans,
    Logs,
}

/// What is known of a scope: name and attributes, or why they cannot be read.
type Scope = Result<(String, Attributes), String>;

/// Makes events of spans and log records.
#[derive(Default)]
pub(super) struct Otlp {
    options: OtlpOptions,
    /// What was entered, from the outside in.
    kinds: Vec<Kind>,
    repeats: Repeats,
    resource: Option<Result<Attributes, String>>,
    scope: Option<Scope>,
    /// Both, once they are known.
    around: Option<Result<Surroundings, String>>,
    /// The scope at hand as it stood, and whether those that wait for the resource know it.
    scope_part: Option<Part>,
    scope_told: bool,
    /// What waits for its scope, and what has one and waits for its resource.
    for_scope: Held,
    for_resource: Held,
    /// The list that the document at hand has: of resources, or of scopes.
    list: Option<Kind>,
    /// Whether something was in it.
    given: bool,
}

fn list(first: u8, kind: Kind, otherwise: &'static str) -> (Option<Kind>, Action) {
    match first {
        b'[' => (Some(kind), Action::Enter),
        b'n' => (None, Action::Skip),
        _ => (None, Action::Capture(Tag::Misfit(otherwise))),
    }
}

impl Handler for Otlp {
    fn begin(&mut self, path: &[Level], first: u8) -> Action {
        let key = path.last().map_or("", |level| level.key.as_str());
        let object = first == b'{';
        // Tempo answers with `batches`; some files hold single elements of the lists. Before version 0.15 of the protocol scopes
        // were called libraries.
        let (kind, action) = match (self.kinds.last(), key) {
            (None, _) if object => (Some(Kind::Document), Action::Enter),
            (None, _) => (None, Action::Capture(Tag::Misfit("an OTLP document is an object"))),
            (
                Some(Kind::Document),
                "resourceSpans" | "resource_spans" | "resourceLogs" | "resource_logs" | "batches",
            ) => list(first, Kind::Resources, "the resources are no list"),
            (Some(Kind::Document | Kind::Resource), "resource") => (None, Action::Capture(Tag::Resource)),
            (
                Some(Kind::Document | Kind::Resource),
                "scopeSpans"
                | "scope_spans"
                | "scopeLogs"
                | "scope_logs"
                | "instrumentationLibrarySpans"
                | "instrumentation_library_spans"
                | "instrumentationLibraryLogs"
                | "instrumentation_library_logs",
            ) => list(first, Kind::Scopes, "the scopes are no list"),
            (Some(Kind::Scope), "scope" | "instrumentationLibrary" | "instrumentation_library") => {
                (None, if first == b'n' { Action::Skip } else { Action::Capture(Tag::Scope) })
            }
            (Some(Kind::Scope), "spans") => list(first, Kind::Spans, "the spans are no list"),
            (Some(Kind::Scope), "logRecords" | "log_records" | "logs") => {
                list(first, Kind::Logs, "the log records are no list")
            }
            (Some(Kind::Resources), _) if object => (Some(Kind::Resource), Action::Enter),
            (Some(Kind::Scopes), _) if object => (Some(Kind::Scope), Action::Enter),
            (Some(Kind::Resources | Kind::Scopes), _) => {
                (None, Action::Capture(Tag::Misfit("an element of this list is an object")))
            }
            (Some(Kind::Spans), _) => (None, Action::Capture(Tag::Span)),
            (Some(Kind::Logs), _) => (None, Action::Capture(Tag::Log)),
            (Some(_), _) => (None, Action::Skip),
        };
        if self.kinds.last() == Some(&Kind::Document)
            && let Some(kind) = kind
            && *self.list.get_or_insert(kind) != kind
        {
            return Action::Capture(Tag::Misfit("resources and scopes stand side by side"));
        }
        self.kinds.extend(kind);
        action
    }

    fn end(&mut self, out: &mut Out<'_>) {
        match self.kinds.pop() {
            Some(Kind::Scope) => self.end_scope(out),
            Some(Kind::Resource | Kind::Document) => self.end_resource(out),
            _ => {}
        }
    }

    fn captured(&mut self, tag: Tag, path: &[Level], part: Part, out: &mut Out<'_>) {
        match tag {
            Tag::Misfit(reason) => {
                self.given = true;
                let at = if path.is_empty() { String::new() } else { place(path) };
                out.done(part, rejected(&at, "not_telemetry", reason));
            }
            Tag::Resource => {
                let attributes = value(&part).map_err(|(_, reason)| reason).and_then(|v| json::resource(&v));
                self.know_resource(attributes.map_err(|e| format!("its resource: {e}")), out);
            }
            Tag::Scope => {
                self.scope_part = Some(part);
                self.know_scope(out);
            }
            _ => {
                self.given = true;
                let entry = Entry { tag, path: place(path), part };
                if self.scope.is_some() && self.resource.is_some() || entry.part.line.overlong.is_some() {
                    self.convert(entry, out);
                } else if self.scope.is_some() {
                    self.wait_for_resource(entry, out);
                } else if let Err(error) = self.for_scope.push(&entry) {
                    no_room(entry, &error, out);
                }
            }
        }
    }

    fn document(&mut self, part: Part, out: &mut Out<'_>) {
        if self.list.is_none() && !self.given {
            let reason = "neither 'resourceSpans' nor 'resourceLogs' is in the document";
            out.done(part, rejected("", "not_telemetry", reason));
        } else if !self.given {
            out.give(part, Fate::LeftOut("no spans and no log records"));
        }
        self.forget();
    }

    fn broken(&mut self, part: Part, reason: String, out: &mut Out<'_>) {
        for held in [std::mem::take(&mut self.for_resource), std::mem::take(&mut self.for_scope)] {
            drained(held, out, |entry, out| {
                if entry.tag != Tag::Scope {
                    let why = "the document breaks off before it says whose this is";
                    let outcome = rejected(&entry.path, "not_telemetry", why);
                    out.done(entry.part, outcome);
                }
            });
        }
        self.forget();
        broken(part, reason, out);
    }
}

fn no_room(entry: Entry, error: &io::Error, out: &mut Out<'_>) {
    let reason = format!("it stands before its resource, and there is no room to hold it: {error}");
    out.done(entry.part, rejected(&entry.path, "held", &reason));
}

impl Otlp {
    /// A reader with options.
    pub(super) fn new(options: OtlpOptions) -> Self {
        Otlp { options, ..Otlp::default() }
    }

    /// Forgets the document.
    fn forget(&mut self) {
        let options = std::mem::take(&mut self.options);
        *self = Otlp { options, ..Otlp::default() };
    }

    /// Takes note of what is known of the resource, for which others may have waited.
    fn know_resource(&mut self, resource: Result<Attributes, String>, out: &mut Out<'_>) {
        self.resource = Some(resource);
        let of_scope = self.scope.take();
        drained(std::mem::take(&mut self.for_resource), out, |entry, out| {
            if entry.tag == Tag::Scope {
                self.scope = Some(read_scope(Some(&entry.part)));
                self.around = None;
            } else {
                self.convert(entry, out);
            }
        });
        (self.scope, self.around) = (of_scope, None);
    }

    /// Takes note of the scope, for which others may have waited.
    fn know_scope(&mut self, out: &mut Out<'_>) {
        self.scope = Some(read_scope(self.scope_part.as_ref()));
        self.around = None;
        drained(std::mem::take(&mut self.for_scope), out, |entry, out| {
            if self.resource.is_some() {
                self.convert(entry, out);
            } else {
                self.wait_for_resource(entry, out);
            }
        });
    }

    fn end_scope(&mut self, out: &mut Out<'_>) {
        if self.scope.is_none() && !self.for_scope.is_empty() {
            self.know_scope(out);
        }
        (self.scope, self.scope_part, self.scope_told, self.around) = (None, None, false, None);
    }

    fn end_resource(&mut self, out: &mut Out<'_>) {
        if self.resource.is_none() && !self.for_resource.is_empty() {
            self.know_resource(Ok(Attributes::new()), out);
        }
        (self.resource, self.around) = (None, None);
    }

    /// Holds something whose scope is known.
    fn wait_for_resource(&mut self, entry: Entry, out: &mut Out<'_>) {
        let mut push = || {
            if !self.scope_told {
                let nothing = || {
                    let line = crate::read::lines::Line::empty(0, 0);
                    Part { line, last: 0, raw: b"null".to_vec() }
                };
                let part = self.scope_part.clone().unwrap_or_else(nothing);
                self.for_resource.push(&Entry { tag: Tag::Scope, path: String::new(), part })?;
                self.scope_told = true;
            }
            self.for_resource.push(&entry)
        };
        if let Err(error) = push() {
            no_room(entry, &error, out);
        }
    }

    /// Makes events of something whose scope and resource are known.
    fn convert(&mut self, entry: Entry, out: &mut Out<'_>) {
        let Entry { tag, path, part } = entry;
        let around = self.around.get_or_insert_with(|| {
            let resource = self.resource.clone().unwrap_or_else(|| Ok(Attributes::new()))?;
            let (scope, scope_attributes) = self.scope.clone().unwrap_or_else(|| Ok(Default::default()))?;
            Ok(Surroundings { resource, scope, scope_attributes })
        });
        let items = value(&part).and_then(|element| {
            let around = around.as_ref().map_err(|reason| ("not_telemetry", reason.clone()))?;
            match tag {
                Tag::Log => {
                    let record = self.repeats.json(&element, around, &self.options)?;
                    Ok(vec![record])
                }
                _ => json::span(&element, around, &self.options),
            }
        });
        let outcome = done(items, &part, &path);
        out.done(part, outcome);
    }
}

fn read_scope(part: Option<&Part>) -> Scope {
    let value = part.map_or(Ok(Value::Null), value).map_err(|(_, reason)| reason);
    value.and_then(|v| json::scope(&v)).map_err(|e| format!("its scope: {e}"))
}

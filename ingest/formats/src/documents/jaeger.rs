//! Documents of Jaeger: a list of traces under `data`, a list of them, or a single one.
//!
//! The processes of a trace usually stand behind its spans, so these wait for the end of the trace: [`Held`] keeps a few megabytes of them in
//! memory and what is more in an unnamed file.

use serde_json::Value;

use super::held::{Entry, Held, drained};
use super::kept::Part;
use super::out::Out;
use super::records::value;
use super::scan::{Action, Handler, Level, Tag};
use super::telemetry::{broken, done, place, rejected};
use crate::fate::Fate;
use crate::otlp::OtlpOptions;
use crate::otlp::jaeger::{self, Processes};

/// What an array or object is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Document,
    Traces,
    Trace,
    Spans,
}

/// Makes events of spans.
#[derive(Default)]
pub(super) struct Jaeger {
    options: OtlpOptions,
    /// What was entered, from the outside in.
    kinds: Vec<Kind>,
    /// Id and processes of the trace at hand, where they are known.
    trace: Option<String>,
    processes: Option<Processes>,
    /// Spans of the trace.
    waiting: Held,
    /// Whether the document at hand had a list of spans, and a span.
    spans: bool,
    given: bool,
}

impl Handler for Jaeger {
    fn begin(&mut self, path: &[Level], first: u8) -> Action {
        let key = path.last().map_or("", |level| level.key.as_str());
        let (kind, action) = match (self.kinds.last(), key, first) {
            (None, _, b'{') => (Some(Kind::Document), Action::Enter),
            (None, _, b'[') | (Some(Kind::Document), "data", b'[') => (Some(Kind::Traces), Action::Enter),
            (None, ..) => {
                (None, Action::Capture(Tag::Misfit("a Jaeger document is an object or a list of traces")))
            }
            (Some(Kind::Traces), _, b'{') => (Some(Kind::Trace), Action::Enter),
            (Some(Kind::Traces), ..) => (None, Action::Capture(Tag::Misfit("a trace is an object"))),
            (Some(Kind::Document | Kind::Trace), "spans", b'[') => {
                self.spans = true;
                (Some(Kind::Spans), Action::Enter)
            }
            (Some(Kind::Document | Kind::Trace), "traceID", _) => (None, Action::Capture(Tag::Scope)),
            (Some(Kind::Document | Kind::Trace), "processes", _) => (None, Action::Capture(Tag::Resource)),
            (Some(Kind::Spans), ..) => (None, Action::Capture(Tag::Span)),
            (Some(_), ..) => (None, Action::Skip),
        };
        self.kinds.extend(kind);
        action
    }

    fn end(&mut self, out: &mut Out<'_>) {
        if matches!(self.kinds.pop(), Some(Kind::Trace | Kind::Document)) {
            self.end_trace(out);
        }
    }

    fn captured(&mut self, tag: Tag, path: &[Level], part: Part, out: &mut Out<'_>) {
        match tag {
            Tag::Misfit(reason) => {
                self.given = true;
                out.done(part, rejected(&place(path), "not_telemetry", reason));
            }
            Tag::Scope => self.trace = value(&part).ok().as_ref().and_then(jaeger::id),
            Tag::Resource => match value(&part) {
                Ok(Value::Object(processes)) => self.processes = Some(processes),
                Ok(_) => {
                    out.done(part, rejected(&place(path), "not_telemetry", "the processes are no object"))
                }
                Err((code, reason)) => out.done(part, rejected(&place(path), code, &reason)),
            },
            _ => {
                self.given = true;
                let entry = Entry { tag, path: place(path), part };
                if entry.part.line.overlong.is_some() {
                    self.convert(entry, out);
                } else if let Err(error) = self.waiting.push(&entry) {
                    let reason =
                        format!("it stands before its process, and there is no room to hold it: {error}");
                    out.done(entry.part, rejected(&entry.path, "held", &reason));
                }
            }
        }
    }

    fn document(&mut self, part: Part, out: &mut Out<'_>) {
        if !self.spans && !self.given {
            let reason = "there are no 'spans' in the document";
            out.done(part, rejected("", "not_telemetry", reason));
        } else if !self.given {
            out.give(part, Fate::LeftOut("no spans"));
        }
        self.forget();
    }

    fn broken(&mut self, part: Part, reason: String, out: &mut Out<'_>) {
        drained(std::mem::take(&mut self.waiting), out, |entry, out| {
            // A span that has its process with it needs nothing of what is lost.
            self.convert(entry, out);
        });
        self.forget();
        broken(part, reason, out);
    }
}

impl Jaeger {
    /// A reader with options.
    pub(super) fn new(options: OtlpOptions) -> Self {
        Jaeger { options, ..Jaeger::default() }
    }

    fn forget(&mut self) {
        let options = std::mem::take(&mut self.options);
        *self = Jaeger { options, ..Jaeger::default() };
    }

    fn end_trace(&mut self, out: &mut Out<'_>) {
        drained(std::mem::take(&mut self.waiting), out, |entry, out| self.convert(entry, out));
        (self.trace, self.processes) = (None, None);
    }

    /// Makes events of a span.
    fn convert(&self, entry: Entry, out: &mut Out<'_>) {
        let Entry { path, part, .. } = entry;
        let items = value(&part).and_then(|span| {
            jaeger::span(&span, self.trace.as_deref(), self.processes.as_ref(), &self.options)
        });
        let outcome = done(items, &part, &path);
        out.done(part, outcome);
    }
}

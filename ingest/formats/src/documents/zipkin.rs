//! Documents of Zipkin spans: a list of spans, a list of lists of them, or a single one.
//!
//! A span waits until a megabyte of others was read or its list ends, because a part of it may follow ([`Window`]).

use super::kept::Part;
use super::out::Out;
use super::records::value;
use super::scan::{Action, Handler, Level, Tag};
use super::telemetry::{broken, done, place, rejected};
use crate::fate::{Events, Fate};
use crate::otlp::OtlpOptions;
use crate::otlp::zipkin::{self, Window};

/// Makes events of spans.
#[derive(Default)]
pub(super) struct Zipkin {
    options: OtlpOptions,
    /// Spans, where they stand, and what was found instead of one.
    window: Window<(Part, String, Option<Fate<Events>>)>,
    /// Whether the document at hand had a span.
    given: bool,
}

impl Handler for Zipkin {
    fn begin(&mut self, path: &[Level], first: u8) -> Action {
        match (path.len(), first) {
            (0 | 1, b'[') => Action::Enter,
            (0, byte) if byte != b'{' => Action::Capture(Tag::Misfit("a Zipkin document is a list of spans")),
            _ => Action::Capture(Tag::Span),
        }
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.give_all(out);
    }

    fn captured(&mut self, tag: Tag, path: &[Level], part: Part, out: &mut Out<'_>) {
        self.given = true;
        let (element, instead) = match tag {
            Tag::Misfit(reason) => (None, Some(rejected("", "not_telemetry", reason))),
            _ => match value(&part) {
                Ok(span) => (Some(span), None),
                Err((code, reason)) => (None, Some(rejected(&place(path), code, &reason))),
            },
        };
        let (bytes, of) = (part.raw.len(), (part, place(path), instead));
        let options = &self.options;
        self.window
            .take(element.unwrap_or_default(), bytes, of, &mut |of, spans| give(of, spans, options, out));
    }

    fn document(&mut self, part: Part, out: &mut Out<'_>) {
        self.give_all(out);
        if !std::mem::take(&mut self.given) {
            out.give(part, Fate::LeftOut("no spans"));
        }
    }

    fn broken(&mut self, part: Part, reason: String, out: &mut Out<'_>) {
        self.give_all(out);
        self.given = false;
        broken(part, reason, out);
    }
}

impl Zipkin {
    /// A reader with options.
    pub(super) fn new(options: OtlpOptions) -> Self {
        Zipkin { options, ..Zipkin::default() }
    }

    /// Nothing more comes that could be a part of what waits.
    fn give_all(&mut self, out: &mut Out<'_>) {
        let options = &self.options;
        self.window.give_beyond(0, &mut |of, spans| give(of, spans, options, out));
    }
}

fn give(
    (part, path, instead): (Part, String, Option<Fate<Events>>),
    spans: Vec<serde_json::Value>,
    options: &OtlpOptions,
    out: &mut Out<'_>,
) {
    if let Some(instead) = instead {
        out.done(part, instead);
        return;
    }
    if spans.is_empty() {
        out.give(part, Fate::LeftOut("part of a span that is with its start"));
        return;
    }
    let mut all = Fate::Row(Events::default());
    for span in &spans {
        let fate = done(zipkin::span(span, options), &part, &path);
        match (&mut all, fate) {
            (Fate::Row(all), Fate::Row(more)) => all.records.extend(more.records),
            // A span of version 1 may have two sides, one of which has no time.
            (Fate::Row(all), Fate::Quarantined(why)) if spans.len() > 1 => {
                all.warnings.push(why.reason().to_owned());
            }
            (all, fate) => *all = fate,
        }
    }
    out.done(part, all);
}

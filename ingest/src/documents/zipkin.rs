//! Documents of Zipkin spans: a list of spans, a list of lists of them, or a single one.

use super::kept::Part;
use super::out::Out;
use super::records::value;
use super::scan::{Action, Handler, Level, Tag};
use super::telemetry::{broken, done, place, rejected};
use crate::otlp::{OtlpOptions, zipkin};
use crate::outcome::Outcome;

/// Makes events of spans.
#[derive(Default)]
pub(super) struct Zipkin {
    options: OtlpOptions,
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

    fn end(&mut self, _: &mut Out<'_>) {}

    fn captured(&mut self, tag: Tag, path: &[Level], part: Part, out: &mut Out<'_>) {
        self.given = true;
        let outcome = match tag {
            Tag::Misfit(reason) => rejected("", "not_telemetry", reason),
            _ => match value(&part) {
                Ok(span) => done(zipkin::span(&span, &self.options), &part, &place(path)),
                Err((code, reason)) => rejected(&place(path), code, &reason),
            },
        };
        out.done(part, outcome);
    }

    fn document(&mut self, part: Part, out: &mut Out<'_>) {
        if !std::mem::take(&mut self.given) {
            out.done(part, Outcome::Skipped("no spans"));
        }
    }

    fn broken(&mut self, part: Part, reason: String, out: &mut Out<'_>) {
        self.given = false;
        broken(part, reason, out);
    }
}

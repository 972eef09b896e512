//! Sources that are documents: JSON, EDN, OTLP, Zipkin and Jaeger.

use super::engine::{Mapper, SKIPPED};
use super::unit::Unit;
use crate::documents::{Documents, Found};
use crate::fate::Fate;
use crate::formats::Decoded;
use crate::read::lines::Line;

impl Mapper {
    /// Whether sources are documents, which are no lines: give them to [`Mapper::bytes`].
    #[must_use]
    pub fn reads_documents(&self) -> bool {
        self.source.documents.is_some()
    }

    /// Sets the most bytes of a record of a document; 16 MiB unless told. Longer ones are rejected, each by itself.
    pub fn limit_records(&mut self, bytes: usize) {
        self.record_limit = bytes;
    }

    /// Begins a source that is made of documents.
    pub(crate) fn begin_documents(&mut self) {
        let input = &self.mapping.input;
        let documents = Documents::new(input.container, input.records.as_deref(), self.record_limit);
        self.source.documents = documents.map(Box::new);
    }

    /// Takes the next bytes of a source that is made of documents, cut anywhere.
    pub fn bytes(&mut self, bytes: &[u8], out: &mut dyn FnMut(Unit)) {
        self.with_documents(out, |documents, sink| documents.feed(bytes, sink));
    }

    /// Ends a source that is made of documents; [`Mapper::end`] does it too, but gives all that is left at once.
    pub fn end_bytes(&mut self, out: &mut dyn FnMut(Unit)) {
        self.with_documents(out, |documents, sink| documents.finish(sink));
    }

    /// Takes a line of a source that is made of documents.
    pub(crate) fn document_line(&mut self, line: &Line, bytes: &[u8], out: &mut Vec<Unit>) {
        self.with_documents(&mut |unit| out.push(unit), |documents, sink| documents.line(line, bytes, sink));
    }

    fn with_documents(
        &mut self,
        out: &mut dyn FnMut(Unit),
        work: impl FnOnce(&mut Documents, &mut dyn FnMut(Found)),
    ) {
        let Some(mut documents) = self.source.documents.take() else { return };
        let mut units = Vec::new();
        work(&mut documents, &mut |found| {
            let Found { part, lines, fate } = found;
            let skip = &self.mapping.skip;
            let skipped = |raw: &[u8]| {
                !skip.is_empty() && skip.iter().any(|skip| skip.is_match(&String::from_utf8_lossy(raw)))
            };
            let fate = match fate {
                Fate::Row(Decoded::Record(_)) | Fate::Quarantined(_) if skipped(&part.raw) => SKIPPED,
                fate => fate,
            };
            self.take(part.line, lines, part.raw, fate, &mut units);
            units.drain(..).for_each(&mut *out);
        });
        self.source.documents = Some(documents);
    }
}

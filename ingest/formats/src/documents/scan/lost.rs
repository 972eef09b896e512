//! What becomes of a document that is broken.

use super::{Handler, Scanner, State};
use crate::documents::kept::Kept;
use crate::documents::out::Out;
use crate::read::lines::KEPT_OF_OVERLONG;

impl Scanner {
    /// Leaves the document at hand, which is broken at that byte.
    pub(super) fn fail(&mut self, piece: &[u8], at: usize, what: &str) {
        let place = self.base + at as u64;
        for kept in self.kept() {
            kept.take(piece, at);
        }
        let capture = self.capture.take().map(|(.., kept)| kept);
        let document = self.document.take();
        let begun = document.as_ref().map_or(self.line, Kept::number);
        let column = place - self.line_start + 1;
        let reason = format!(
            "the document that begins in line {begun} is broken in line {}, column {column}: {what}",
            self.line
        );
        // Of a short document all of it is kept, of a long one the value at hand.
        let mut kept = (document.filter(Kept::is_whole).or(capture))
            .unwrap_or_else(|| Kept::new(place, self.line, at, KEPT_OF_OVERLONG));
        kept.limit(KEPT_OF_OVERLONG);
        self.lost = Some((kept, reason));
        self.stack.clear();
        (self.entered, self.key) = (0, None);
        self.was_broken = true;
        self.state = State::Lost;
    }

    /// Behind a break, looks for a line that begins with an array or object, not further to the right than the broken document
    /// began: what a document has inside is usually indented.
    pub(super) fn look_for_line(
        &mut self,
        piece: &[u8],
        at: usize,
        byte: u8,
        handler: &mut impl Handler,
        out: &mut Out<'_>,
    ) -> usize {
        let place = self.base + at as u64;
        match byte {
            b'\n' => self.newline(at),
            _ if self.first.is_some_and(|first| first != place) => {
                let rest = piece.get(at..).unwrap_or_default();
                return memchr::memchr(b'\n', rest).map_or(piece.len(), |n| at + n);
            }
            b' ' | b'\t' | b'\r' => {}
            b'{' | b'[' if place - self.line_start <= self.column => {
                self.found_again(piece, at, handler, out);
                return at;
            }
            _ => self.first = Some(place),
        }
        at + 1
    }

    pub(super) fn found_again(
        &mut self,
        piece: &[u8],
        at: usize,
        handler: &mut impl Handler,
        out: &mut Out<'_>,
    ) {
        self.state = State::Top;
        if let Some((mut kept, reason)) = self.lost.take() {
            kept.take(piece, at);
            // The line at hand belongs to what comes next, if anything does.
            let behind = self.first.is_none() || !piece.is_empty();
            let last = if behind { self.line - 1 } else { self.line };
            handler.broken(kept.part(last), reason, out);
            out.document_ends(last);
        }
    }
}

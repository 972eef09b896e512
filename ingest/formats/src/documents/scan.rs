//! A scanner of JSON that is fed pieces of a stream, cut anywhere, and hands out the values that somebody wants.
//!
//! The scanner checks the grammar of RFC 8259 except for what stands inside numbers and escapes; the values it hands out are parsed by
//! whoever takes them. It holds the value at hand and the nesting around it, nothing else of the stream.

mod lost;

use super::kept::{Kept, Part};
use super::out::Out;
use crate::read::lines::{KEPT_OF_OVERLONG, MARK};

/// Deepest nesting of arrays and objects.
const MOST_DEPTH: usize = 256;
/// Longest name of a member that is told apart, in bytes.
const LONGEST_KEY: usize = 4096;

/// What is to be done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Ask again for each value in it.
    Enter,
    /// Pass over it.
    Skip,
    /// Hand it out when it is read.
    Capture(Tag),
}

/// What a value that is handed out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Record,
    Resource,
    Scope,
    Span,
    Log,
    /// Something that should not stand here, and why.
    Misfit(&'static str),
}

/// An array or object around the place where the scanner is.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) array: bool,
    /// Name of the member at hand, of an object that was entered.
    pub(super) key: String,
    /// Number of the element at hand, from 0.
    pub(super) index: u64,
}

/// Takes what the scanner finds.
pub(super) trait Handler {
    /// Says what is to be done with a value, by the arrays and objects around it and its first byte.
    fn begin(&mut self, path: &[Level], first: u8) -> Action;
    /// Takes note of the end of the innermost array or object that was entered.
    fn end(&mut self, out: &mut Out<'_>);
    /// Takes a value.
    fn captured(&mut self, tag: Tag, path: &[Level], part: Part, out: &mut Out<'_>);
    /// Takes note of the end of a document, of which `part` has at least the beginning.
    fn document(&mut self, part: Part, out: &mut Out<'_>);
    /// Takes what could not be read, from some place in a document to where reading goes on.
    fn broken(&mut self, part: Part, reason: String, out: &mut Out<'_>);
}

#[derive(Clone, Copy)]
enum State {
    /// Between documents.
    Top,
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Text {
        key: bool,
        escaped: bool,
    },
    Number,
    Word(&'static [u8]),
    /// Behind a break: looks for the next line that may begin a document.
    Lost,
}

pub(super) struct Scanner {
    /// Offset of the piece at hand in the stream.
    base: u64,
    line: u64,
    line_start: u64,
    /// Offset of the first byte of the line that is no space.
    first: Option<u64>,
    state: State,
    stack: Vec<Level>,
    /// How many levels of the stack were entered.
    entered: usize,
    key: Option<Kept>,
    capture: Option<(Tag, usize, Kept)>,
    document: Option<Kept>,
    /// Column in which the document begins.
    column: u64,
    lost: Option<(Kept, String)>,
    /// Whether a document of this stream was broken.
    was_broken: bool,
    /// Most bytes of a value that is handed out.
    limit: usize,
}

impl Scanner {
    pub(super) fn new(limit: usize) -> Self {
        Scanner {
            base: 0,
            line: 1,
            line_start: 0,
            first: None,
            state: State::Top,
            stack: Vec::new(),
            entered: 0,
            key: None,
            capture: None,
            document: None,
            column: 0,
            lost: None,
            was_broken: false,
            limit,
        }
    }

    /// Says where in a larger stream the next byte is; between documents.
    pub(super) fn at(&mut self, offset: u64, line: u64) {
        (self.base, self.line_start, self.line) = (offset, offset, line);
    }

    /// Takes the next piece of the stream.
    pub(super) fn feed(&mut self, piece: &[u8], handler: &mut impl Handler, out: &mut Out<'_>) {
        for kept in self.kept() {
            kept.from = 0;
        }
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            at = self.step(piece, at, byte, handler, out);
        }
        for kept in self.kept() {
            kept.take(piece, piece.len());
        }
        self.base += piece.len() as u64;
    }

    /// Takes the end of the stream.
    pub(super) fn finish(&mut self, handler: &mut impl Handler, out: &mut Out<'_>) {
        for kept in self.kept() {
            kept.from = 0;
        }
        if matches!(self.state, State::Number) {
            self.value_ended(&[], 0, handler, out);
        }
        if !matches!(self.state, State::Top | State::Lost) {
            self.fail(&[], 0, "the file ends within it");
        }
        self.found_again(&[], 0, handler, out);
    }

    fn kept(&mut self) -> impl Iterator<Item = &mut Kept> {
        let capture = self.capture.iter_mut().map(|(.., kept)| kept);
        let lost = self.lost.iter_mut().map(|(kept, _)| kept);
        capture.chain(lost).chain(self.key.iter_mut()).chain(self.document.iter_mut())
    }

    fn newline(&mut self, at: usize) {
        self.line += 1;
        self.line_start = self.base + at as u64 + 1;
        self.first = None;
    }

    /// Deals with one byte or several; gives the place of the next one.
    fn step(
        &mut self,
        piece: &[u8],
        at: usize,
        byte: u8,
        handler: &mut impl Handler,
        out: &mut Out<'_>,
    ) -> usize {
        match self.state {
            State::Lost => return self.look_for_line(piece, at, byte, handler, out),
            State::Text { key, escaped } => return self.text(piece, at, key, escaped, handler, out),
            State::Number => {
                let number = byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
                if number {
                    return at + 1;
                }
                self.value_ended(piece, at, handler, out);
                return at;
            }
            State::Word([next, rest @ ..]) => {
                if *next != byte {
                    self.fail(piece, at, "a word that JSON does not have");
                    return at;
                }
                self.state = State::Word(rest);
                if rest.is_empty() {
                    self.value_ended(piece, at + 1, handler, out);
                }
                return at + 1;
            }
            _ => {}
        }
        let place = self.base + at as u64;
        match byte {
            b'\n' => self.newline(at),
            b' ' | b'\t' | b'\r' => {}
            _ if place < 3 && matches!(self.state, State::Top) && MARK[place as usize] == byte => {}
            _ => {
                self.first.get_or_insert(place);
                if let Err(reason) = self.token(piece, at, byte, handler, out) {
                    self.fail(piece, at, reason);
                    return at;
                }
            }
        }
        at + 1
    }

    /// Deals with a byte that begins or ends something.
    fn token(
        &mut self,
        piece: &[u8],
        at: usize,
        byte: u8,
        handler: &mut impl Handler,
        out: &mut Out<'_>,
    ) -> Result<(), &'static str> {
        let array = self.stack.last().is_some_and(|level| level.array);
        match (self.state, byte) {
            // What a broken document left behind.
            (State::Top, b',' | b']' | b'}') if self.was_broken => {}
            (State::Top, _) => {
                let place = self.base + at as u64;
                self.document = Some(Kept::new(place, self.line, at, KEPT_OF_OVERLONG));
                self.column = place - self.line_start;
                out.document_begins(self.line);
                return self.value(at, byte, handler);
            }
            (State::ValueOrEnd, b']') => self.close(piece, at, handler, out),
            (State::KeyOrEnd, b'}') => self.close(piece, at, handler, out),
            (State::CommaOrEnd, b']') if array => self.close(piece, at, handler, out),
            (State::CommaOrEnd, b'}') if !array => self.close(piece, at, handler, out),
            (State::CommaOrEnd, b',') => {
                if let Some(level) = self.stack.last_mut() {
                    level.index += 1;
                }
                self.state = if array { State::Value } else { State::Key };
            }
            (State::Value | State::ValueOrEnd, _) => return self.value(at, byte, handler),
            (State::Key | State::KeyOrEnd, b'"') => {
                if self.stack.len() == self.entered {
                    self.key = Some(Kept::new(self.base + at as u64, self.line, at, LONGEST_KEY));
                }
                self.state = State::Text { key: true, escaped: false };
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::Key | State::KeyOrEnd, _) => return Err("a name in quotation marks is expected"),
            (State::Colon, _) => return Err("':' is expected"),
            _ if array => return Err("',' or ']' is expected"),
            _ => return Err("',' or '}' is expected"),
        }
        Ok(())
    }

    /// Begins a value.
    fn value(&mut self, at: usize, byte: u8, handler: &mut impl Handler) -> Result<(), &'static str> {
        let state = match byte {
            b'[' => State::ValueOrEnd,
            b'{' => State::KeyOrEnd,
            b'"' => State::Text { key: false, escaped: false },
            b'-' | b'0'..=b'9' => State::Number,
            b't' => State::Word(b"rue"),
            b'f' => State::Word(b"alse"),
            b'n' => State::Word(b"ull"),
            _ => return Err("a value is expected"),
        };
        let nests = matches!(byte, b'[' | b'{');
        if nests && self.stack.len() >= MOST_DEPTH {
            return Err("nested too deep");
        }
        let asked = self.capture.is_none() && self.stack.len() == self.entered;
        match if asked { handler.begin(&self.stack, byte) } else { Action::Skip } {
            Action::Enter if nests => self.entered += 1,
            Action::Capture(tag) => {
                let kept = Kept::new(self.base + at as u64, self.line, at, self.limit);
                self.capture = Some((tag, self.stack.len(), kept));
            }
            Action::Enter | Action::Skip => {}
        }
        if nests {
            self.stack.push(Level { array: byte == b'[', key: String::new(), index: 0 });
        }
        self.state = state;
        Ok(())
    }

    /// Ends an array or object.
    fn close(&mut self, piece: &[u8], at: usize, handler: &mut impl Handler, out: &mut Out<'_>) {
        self.stack.pop();
        if self.entered > self.stack.len() {
            self.entered = self.stack.len();
            handler.end(out);
        }
        self.value_ended(piece, at + 1, handler, out);
    }

    /// Takes note that a value ends before `to`.
    fn value_ended(&mut self, piece: &[u8], to: usize, handler: &mut impl Handler, out: &mut Out<'_>) {
        self.state = State::CommaOrEnd;
        if let Some((tag, depth, mut kept)) = self.capture.take() {
            if depth == self.stack.len() {
                kept.take(piece, to);
                handler.captured(tag, &self.stack, kept.part(self.line), out);
            } else {
                self.capture = Some((tag, depth, kept));
            }
        }
        if self.stack.is_empty() {
            self.state = State::Top;
            if let Some(mut document) = self.document.take() {
                document.take(piece, to);
                handler.document(document.part(self.line), out);
                out.document_ends(self.line);
            }
        }
    }

    /// Reads on in a text.
    fn text(
        &mut self,
        piece: &[u8],
        at: usize,
        key: bool,
        escaped: bool,
        handler: &mut impl Handler,
        out: &mut Out<'_>,
    ) -> usize {
        let rest = piece.get(at..).unwrap_or_default();
        let special = |b: &u8| *b == b'"' || *b == b'\\' || *b < 0x20;
        let next = if escaped { Some(0) } else { rest.iter().position(special) };
        let Some(at) = next.map(|n| at + n) else { return piece.len() };
        match piece.get(at).copied() {
            Some(..0x20) => {
                self.fail(piece, at, "a line end or control character within quotation marks");
                return at;
            }
            _ if escaped => self.state = State::Text { key, escaped: false },
            Some(b'\\') => self.state = State::Text { key, escaped: true },
            _ if !key => self.value_ended(piece, at + 1, handler, out),
            _ => {
                self.state = State::Colon;
                if let (Some(mut kept), Some(level)) = (self.key.take(), self.stack.last_mut()) {
                    kept.take(piece, at + 1);
                    let lossy = || String::from_utf8_lossy(kept.raw()).into_owned();
                    level.key = serde_json::from_slice(kept.raw()).unwrap_or_else(|_| lossy());
                }
            }
        }
        at + 1
    }
}

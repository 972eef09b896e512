//! EDN as a stream of forms: maps one behind the other, or in a vector, list or set around them, on any lines.
//!
//! Each form in the outermost collection, and each outside of one, is handed out as soon as its last byte is there. Brackets are matched
//! here; `formats::edn` reads what stands between them.
//!
//! EDN has no separators, so a bracket that is never closed is found late, often at the end of the file. What was read until then is not lost: it is
//! read again from the next line on that may begin a form, one that begins with a bracket or `#` and is not indented further than the broken form.
//! In that stretch such a line ends a form that is still open.

use xxhash_rust::xxh3::Xxh3;

use super::kept::Part;
use super::out::Found;
use crate::fate::{Fate, not_utf8};
use crate::formats::{Decoded, edn, json_record};
use crate::read::lines::{KEPT_OF_OVERLONG, Line, MARK};

/// Deepest nesting of brackets.
const MOST_DEPTH: usize = 256;
/// Most bytes kept of what holds no record.
const KEPT_OF_GAP: usize = 4096;

/// Where a byte stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    line: u64,
}

/// What is being read of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Blank,
    Comment,
    Text {
        escaped: bool,
    },
    /// A number, word or keyword; or a character, whose first one may be anything.
    Atom {
        literal: bool,
    },
    /// Behind `#`.
    Hash,
    Tag,
}

/// What a byte is to a form.
enum Told {
    /// It belongs to it.
    More,
    /// The form ends with it.
    Ends,
    /// The form ended before it.
    Ended,
    /// It opens a collection whose members are the forms.
    Enters(u8),
    /// The form is broken.
    Broken(String),
}

/// Finds the end of a form.
#[derive(Debug)]
struct Lexer {
    state: State,
    /// What closes the brackets that are open.
    open: Vec<u8>,
    /// Forms that must come yet before this one is whole: itself, and those that `#_` leaves out.
    wants: usize,
    begun: bool,
    /// Whether it is a form that is left out.
    discards: bool,
    /// Whether a collection is entered, and not a form itself.
    enters: bool,
}

impl Lexer {
    fn new(enters: bool) -> Self {
        Lexer { state: State::Blank, open: Vec::new(), wants: 1, begun: false, discards: false, enters }
    }

    fn step(&mut self, byte: u8) -> Told {
        match self.state {
            State::Comment if byte == b'\n' => self.state = State::Blank,
            State::Comment => {}
            State::Text { escaped: true } => self.state = State::Text { escaped: false },
            State::Text { .. } if byte == b'\\' => self.state = State::Text { escaped: true },
            State::Text { .. } if byte == b'"' => return self.form_ends(Told::Ends),
            State::Text { .. } => {}
            State::Atom { literal: true } => self.state = State::Atom { literal: false },
            State::Atom { .. } if !delimits(byte) => {}
            State::Atom { .. } => {
                return match self.form_ends(Told::Ended) {
                    Told::More => self.blank(byte),
                    told => told,
                };
            }
            State::Hash => return self.hash(byte),
            State::Tag if delimits(byte) => {
                self.state = State::Blank;
                return self.blank(byte);
            }
            State::Tag => {}
            State::Blank => return self.blank(byte),
        }
        Told::More
    }

    /// A byte between forms.
    fn blank(&mut self, byte: u8) -> Told {
        match byte {
            b',' | b' ' | b'\t'..=b'\r' => return Told::More,
            b';' => {
                self.state = State::Comment;
                return Told::More;
            }
            b'(' => return self.collection(b')'),
            b'[' => return self.collection(b']'),
            b'{' => return self.opens(b'}'),
            b')' | b']' | b'}' => {
                return match self.open.pop() {
                    Some(closer) if closer == byte => self.form_ends(Told::Ends),
                    Some(closer) => {
                        Told::Broken(format!("'{}' is missing before '{}'", closer as char, byte as char))
                    }
                    None => Told::Broken(format!("a form is missing before '{}'", byte as char)),
                };
            }
            b'"' => self.state = State::Text { escaped: false },
            b'#' => {
                self.state = State::Hash;
                return Told::More;
            }
            b'\\' => self.state = State::Atom { literal: true },
            _ => self.state = State::Atom { literal: false },
        }
        self.begun = true;
        Told::More
    }

    fn hash(&mut self, byte: u8) -> Told {
        self.state = State::Blank;
        let first = !std::mem::replace(&mut self.begun, true);
        match byte {
            b'{' => return self.collection(b'}'),
            b'_' => {
                self.discards |= first;
                if self.open.is_empty() && !first {
                    self.wants += 1;
                }
            }
            b'"' => self.state = State::Text { escaped: false },
            b'#' => self.state = State::Atom { literal: false },
            _ if delimits(byte) => return Told::Broken("a tag is missing behind '#'".into()),
            _ => self.state = State::Tag,
        }
        Told::More
    }

    /// A vector, list or set.
    fn collection(&mut self, closer: u8) -> Told {
        match self.enters && !self.discards && self.open.is_empty() {
            true => Told::Enters(closer),
            false => self.opens(closer),
        }
    }

    fn opens(&mut self, closer: u8) -> Told {
        self.begun = true;
        if self.open.len() >= MOST_DEPTH {
            return Told::Broken(format!("brackets are nested more than {MOST_DEPTH} deep"));
        }
        self.open.push(closer);
        Told::More
    }

    fn form_ends(&mut self, told: Told) -> Told {
        self.state = State::Blank;
        if self.open.is_empty() {
            self.wants -= 1;
        }
        if self.wants == 0 { told } else { Told::More }
    }
}

fn delimits(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b || b",;\"()[]{}".contains(&byte)
}

/// A form that is being read.
struct Form {
    begin: Place,
    /// Column in which it begins.
    column: u64,
    raw: Vec<u8>,
    /// Of one that is longer than the limit: its digest and length, while `raw` is its beginning.
    long: Option<(Box<Xxh3>, u64)>,
    lexer: Lexer,
    /// The first line in it that may begin another form.
    restart: Option<Restart>,
}

/// A line within a form that may begin another.
#[derive(Clone, Copy, Debug)]
struct Restart {
    /// Where in the form its first byte is that is no blank.
    at: usize,
    line: u64,
    column: u64,
}

impl Form {
    fn push(&mut self, byte: u8) {
        match &mut self.long {
            Some((hash, length)) => {
                hash.update(&[byte]);
                *length += 1;
            }
            None => self.raw.push(byte),
        }
    }

    /// Keeps no more than the beginning from now on.
    fn grows_long(&mut self, limit: usize) {
        if self.long.is_none() {
            let mut hash = Box::new(Xxh3::new());
            hash.update(&self.raw);
            self.long = Some((hash, self.raw.len() as u64));
            self.raw.truncate(KEPT_OF_OVERLONG.min(limit));
            self.raw.shrink_to_fit();
        }
    }
}

/// What holds no record: comments, brackets around records.
#[derive(Debug)]
struct Gap {
    begin: Place,
    last: u64,
    raw: Vec<u8>,
}

/// Forms of one line that cannot be read, one behind the other.
#[derive(Debug)]
struct Rejected {
    begin: Place,
    last: u64,
    raw: Vec<u8>,
    /// Bytes behind it that may become part of it.
    behind: Vec<u8>,
    code: &'static str,
    reason: String,
}

/// Reads EDN.
pub(crate) struct Edn {
    limit: usize,
    at: Place,
    line_start: u64,
    /// Whether nothing but blanks stood in the line so far.
    line_begins: bool,
    /// What closes the collection that was entered, and the line in which it begins.
    entered: Option<(u8, u64)>,
    in_comment: bool,
    form: Option<Form>,
    gap: Option<Gap>,
    rejected: Option<Rejected>,
    /// Up to where a line that may begin a form ends one that is open.
    mended_until: u64,
    /// Last line that was counted.
    counted: u64,
}

type Sink<'a> = &'a mut dyn FnMut(Found);

impl Edn {
    pub(super) fn new(limit: usize) -> Self {
        Edn {
            limit,
            at: Place { offset: 0, line: 1 },
            line_start: 0,
            line_begins: true,
            entered: None,
            in_comment: false,
            form: None,
            gap: None,
            rejected: None,
            mended_until: 0,
            counted: 0,
        }
    }

    /// Takes note of where the next line stands, if nothing of it was read.
    pub(super) fn at_line(&mut self, line: &Line) {
        if self.line_begins && self.line_start == self.at.offset && self.form.is_none() && self.gap.is_none()
        {
            let number = line.number.max(1);
            self.at = Place { offset: line.offset, line: number };
            self.line_start = line.offset;
            self.counted = self.counted.max(number - 1);
        }
    }

    /// What closes the collection that was entered, and the line in which it begins.
    pub(super) fn entered(&self) -> Option<(char, u64)> {
        self.entered.map(|(closer, line)| (closer as char, line))
    }

    /// Begins within a collection.
    pub(super) fn enter(&mut self, entered: Option<(char, u64)>) {
        self.entered = entered.and_then(|(closer, line)| Some((u8::try_from(closer).ok()?, line)));
    }

    /// Where the first byte is that nothing was told of: its offset and line.
    pub(super) fn unfinished(&self) -> Option<(u64, u64)> {
        let form = self.form.as_ref().map(|form| form.begin);
        let gap = self.gap.as_ref().map(|gap| gap.begin);
        let rejected = self.rejected.as_ref().map(|rejected| rejected.begin);
        let first = [form, gap, rejected].into_iter().flatten().min_by_key(|place| place.offset)?;
        Some((first.offset, first.line))
    }

    /// Takes the next piece of the stream.
    pub(super) fn feed(&mut self, piece: &[u8], sink: Sink<'_>) {
        piece.iter().for_each(|byte| self.byte(*byte, sink));
    }

    /// Takes the end of the stream.
    pub(super) fn finish(&mut self, sink: Sink<'_>) {
        while let Some(form) = &mut self.form {
            match form.lexer.step(b'\n') {
                Told::Ended | Told::Ends => self.form_ends(sink),
                _ => self.broken("the file ends within it", sink),
            }
        }
        self.tell_rejected(sink);
        self.tell_gap(u64::MAX, sink);
        if let Some((closer, line)) = self.entered.take() {
            let reason = format!(
                "the collection that begins in line {line} is not closed: '{}' is missing; the file may be cut off",
                closer as char
            );
            let fate = Fate::rejected("not_edn", reason);
            let last = self.at.line.saturating_sub(u64::from(self.line_begins));
            self.tell(self.at, last, (0, None), Vec::new(), fate, sink);
        }
        self.in_comment = false;
    }

    /// Takes a line that is too long to be held, in place of its bytes.
    pub(super) fn too_long(&mut self, line: &Line, kept: &[u8], sink: Sink<'_>) {
        if self.form.is_some() {
            self.broken("a line in it is longer than the limit", sink);
        }
        self.tell_rejected(sink);
        self.tell_gap(u64::MAX, sink);
        let reason = format!(
            "the line is {} bytes long, more than the limit; its first {} bytes are kept",
            line.length,
            kept.len()
        );
        let fate = Fate::rejected("too_long", reason);
        let begin = self.at;
        self.tell(begin, begin.line, (line.length, line.overlong), kept.to_vec(), fate, sink);
        self.at.offset += line.length;
    }

    fn byte(&mut self, byte: u8, sink: Sink<'_>) {
        let Place { offset, .. } = self.at;
        let is_mark = offset < 3 && MARK.get(offset as usize) == Some(&byte) && self.form.is_none();
        if !is_mark {
            let blank = matches!(byte, b' ' | b'\t'..=b'\r' | b',');
            let begins = self.line_begins && matches!(byte, b'{' | b'[' | b'(' | b'#');
            self.line_begins &= blank;
            if begins {
                self.may_begin(sink);
            }
            self.take(byte, blank, begins, sink);
        }
        self.at.offset += 1;
        if byte == b'\n' {
            if self.form.is_none() {
                self.tell_rejected(sink);
            }
            self.at.line += 1;
            self.line_start = self.at.offset;
            self.line_begins = true;
        }
    }

    /// Takes note that a line may begin a form here.
    fn may_begin(&mut self, sink: Sink<'_>) {
        let column = self.at.offset - self.line_start;
        let line = self.at.line;
        let mending = self.at.offset < self.mended_until;
        let Some(form) = self.form.as_mut().filter(|form| column <= form.column && form.begin.line < line)
        else {
            return;
        };
        if mending || form.long.is_some() {
            self.reject_form("it is not closed before the next form begins", sink);
        } else if form.restart.is_none() {
            form.restart = Some(Restart { at: form.raw.len(), line, column });
        }
    }

    fn take(&mut self, byte: u8, blank: bool, begins: bool, sink: Sink<'_>) {
        if let Some(form) = &mut self.form {
            let told = form.lexer.step(byte);
            if !matches!(told, Told::Ended | Told::Broken(_)) {
                form.push(byte);
            }
            match told {
                Told::More => {
                    if form.long.is_none() && form.raw.len() > self.limit {
                        match form.restart {
                            Some(_) => {
                                self.broken("it is not closed within the longest record that is taken", sink)
                            }
                            None => form.grows_long(self.limit),
                        }
                    }
                }
                Told::Ends => self.form_ends(sink),
                Told::Ended => {
                    self.form_ends(sink);
                    self.between(byte, blank, sink);
                }
                Told::Enters(closer) => {
                    // What stands before it is a tag.
                    if let Some(Form { begin, raw, .. }) = self.form.take() {
                        self.tell_rejected(sink);
                        self.pass(begin, &raw);
                    }
                    self.entered = Some((closer, self.at.line));
                }
                Told::Broken(reason) => {
                    self.broken(&reason, sink);
                    // Behind a break the byte may belong to another form.
                    if begins {
                        self.mended_until = self.at.offset + 1;
                        self.may_begin(sink);
                    }
                    self.take(byte, blank, false, sink);
                }
            }
            return;
        }
        self.between(byte, blank, sink);
    }

    /// Takes a byte that is part of no form yet.
    fn between(&mut self, byte: u8, blank: bool, sink: Sink<'_>) {
        if self.in_comment || byte == b';' {
            self.in_comment = byte != b'\n';
            if byte == b'\n' {
                self.gap_goes_on(byte);
            } else {
                self.tell_rejected(sink);
                self.pass(self.at, &[byte]);
            }
        } else if blank {
            if let Some(rejected) = &mut self.rejected {
                rejected.behind.push(byte);
            }
            self.gap_goes_on(byte);
        } else if self.entered.is_some_and(|(closer, _)| closer == byte) {
            self.entered = None;
            self.tell_rejected(sink);
            self.pass(self.at, &[byte]);
        } else if matches!(byte, b')' | b']' | b'}') {
            let reason = format!("'{}' closes nothing", byte as char);
            self.reject(self.at, vec![byte], "not_edn", reason, sink);
        } else {
            let mut lexer = Lexer::new(self.entered.is_none());
            if let Told::Enters(closer) = lexer.step(byte) {
                self.tell_rejected(sink);
                self.entered = Some((closer, self.at.line));
                self.pass(self.at, &[byte]);
                return;
            }
            let column = self.at.offset - self.line_start;
            self.tell_gap(self.at.line - 1, sink);
            self.form =
                Some(Form { begin: self.at, column, raw: vec![byte], long: None, lexer, restart: None });
        }
    }

    /// Takes a blank behind what holds no record.
    fn gap_goes_on(&mut self, byte: u8) {
        if let Some(gap) = self.gap.as_mut().filter(|gap| gap.raw.len() < KEPT_OF_GAP) {
            gap.raw.push(byte);
        }
    }

    /// Takes note of bytes that hold no record.
    fn pass(&mut self, begin: Place, bytes: &[u8]) {
        if self.at.line <= self.counted {
            return;
        }
        let gap = self.gap.get_or_insert(Gap { begin, last: self.at.line, raw: Vec::new() });
        gap.last = self.at.line;
        let room = KEPT_OF_GAP.saturating_sub(gap.raw.len()).min(bytes.len());
        gap.raw.extend_from_slice(&bytes[..room]);
    }

    /// Ends the form at hand, whose last byte was taken.
    fn form_ends(&mut self, sink: Sink<'_>) {
        let Some(form) = self.form.take() else { return };
        let last = self.at.line;
        if let Some((hash, length)) = form.long {
            self.tell_rejected(sink);
            let reason = format!(
                "this form is {length} bytes long, more than the limit; its first {} bytes are kept",
                form.raw.len()
            );
            let fate = Fate::rejected("too_long", reason);
            self.tell(form.begin, last, (length, Some(hash.digest())), form.raw, fate, sink);
            return;
        }
        let text = match std::str::from_utf8(&form.raw) {
            Ok(text) => text,
            Err(error) => {
                let reason = not_utf8(&form.raw, error);
                return self.reject(form.begin, form.raw, "not_utf8", reason, sink);
            }
        };
        match edn::form(text) {
            Ok(Some(record)) if record.is_object() => {
                self.tell_rejected(sink);
                self.tell(
                    form.begin,
                    last,
                    (form.raw.len() as u64, None),
                    form.raw,
                    json_record(record),
                    sink,
                );
            }
            Ok(Some(_)) => self.reject(form.begin, form.raw, "not_edn", "it is EDN, but no map".into(), sink),
            Ok(None) => {
                self.tell_rejected(sink);
                let fate = Fate::LeftOut("a form that is left out");
                self.tell(form.begin, last, (form.raw.len() as u64, None), form.raw, fate, sink);
            }
            Err(reason) => self.reject(form.begin, form.raw, "not_edn", reason, sink),
        }
    }

    /// Leaves the form at hand, which cannot go on as it is. What may be forms of their own in it is read again.
    fn broken(&mut self, reason: &str, sink: Sink<'_>) {
        let Some(form) = &mut self.form else { return };
        let Some(restart) = form.restart.take().filter(|_| form.long.is_none()) else {
            return self.reject_form(reason, sink);
        };
        let (here, line_start, line_begins) = (self.at, self.line_start, self.line_begins);
        let begin = form.begin.offset;
        self.mended_until = begin + form.raw.len() as u64;
        let again = form.raw.split_off(restart.at);
        self.reject_form(reason, sink);
        self.at = Place { offset: begin + restart.at as u64, line: restart.line };
        self.line_start = self.at.offset - restart.column;
        self.line_begins = true;
        self.feed(&again, sink);
        (self.at, self.line_start, self.line_begins) = (here, line_start, line_begins);
    }

    /// Rejects the form at hand.
    fn reject_form(&mut self, what: &str, sink: Sink<'_>) {
        let Some(mut form) = self.form.take() else { return };
        let Place { line, offset } = self.at;
        let reason = format!(
            "the form that begins in line {} is broken in line {line}, column {}: {what}",
            form.begin.line,
            offset.saturating_sub(self.line_start) + 1
        );
        if let Some((hash, length)) = form.long {
            self.tell_rejected(sink);
            let fate = Fate::rejected("not_edn", reason);
            self.tell(form.begin, line, (length, Some(hash.digest())), form.raw, fate, sink);
            return;
        }
        let blanks = form.raw.split_off(form.raw.trim_ascii_end().len());
        self.reject(form.begin, form.raw, "not_edn", reason, sink);
        if let Some(rejected) = &mut self.rejected {
            rejected.behind = blanks;
        }
    }

    /// Rejects what was read, together with what was rejected before it in its line.
    fn reject(&mut self, begin: Place, raw: Vec<u8>, code: &'static str, reason: String, sink: Sink<'_>) {
        // A line break at the end is of the line that it ends.
        let inner = raw.strip_suffix(b"\n").unwrap_or(&raw);
        let last = begin.line + inner.iter().filter(|byte| **byte == b'\n').count() as u64;
        match self.rejected.as_mut().filter(|before| before.last == begin.line) {
            Some(before) => {
                before.raw.append(&mut before.behind);
                before.raw.extend_from_slice(&raw);
                before.last = last;
            }
            None => {
                self.tell_rejected(sink);
                // What comes behind is no part of what stood before.
                self.tell_gap(begin.line - 1, sink);
                self.rejected = Some(Rejected { begin, last, raw, behind: Vec::new(), code, reason });
            }
        }
    }

    fn tell_rejected(&mut self, sink: Sink<'_>) {
        let Some(Rejected { begin, last, raw, code, reason, .. }) = self.rejected.take() else { return };
        let fate = Fate::rejected(code, reason);
        self.tell(begin, last, (raw.len() as u64, None), raw, fate, sink);
    }

    /// Tells of lines without a record, up to that one.
    fn tell_gap(&mut self, until: u64, sink: Sink<'_>) {
        let Some(Gap { begin, last, raw }) = self.gap.take() else { return };
        let last = last.min(until);
        if last >= begin.line && last > self.counted {
            let fate = Fate::LeftOut("no record stands in it");
            self.tell(begin, last, (raw.len() as u64, None), raw, fate, sink);
        }
    }

    fn tell(
        &mut self,
        begin: Place,
        last: u64,
        (length, overlong): (u64, Option<u64>),
        raw: Vec<u8>,
        fate: Fate<Decoded<'static>>,
        sink: Sink<'_>,
    ) {
        let lines = last.saturating_sub(self.counted.max(begin.line.saturating_sub(1)));
        self.counted = self.counted.max(last);
        let line = Line { offset: begin.offset, number: begin.line, length, terminated: true, overlong };
        sink(Found { part: Part { line, last, raw }, lines, fate });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// What stands in a text that comes in pieces: records, and reasons against what is none, each with line and lines.
    fn read(text: &str, piece: usize, limit: usize) -> Vec<(u64, u64, Result<Value, String>)> {
        let mut found = Vec::new();
        let mut edn = Edn::new(limit);
        let mut take = |f: Found| {
            let at = f.part.line.offset as usize;
            assert!(text.as_bytes()[at..].starts_with(&f.part.raw), "{f:?}");
            let what = match f.fate {
                Fate::Row(Decoded::Record(record)) => Ok(record.value()),
                Fate::Quarantined(why) => Err(format!("{}: {}", why.code(), why.reason())),
                Fate::LeftOut(why) => Err(format!("skipped: {why}")),
                Fate::Row(Decoded::Events(_)) => panic!("nothing else comes"),
            };
            found.push((f.part.line.number, f.lines, what));
        };
        for piece in text.as_bytes().chunks(piece.max(1)) {
            edn.feed(piece, &mut take);
        }
        edn.finish(&mut take);
        found
    }

    fn records(text: &str) -> (Vec<Value>, Vec<String>) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (line, _, what) in read(text, 3, 1 << 20) {
            match what {
                Ok(record) => good.push(record),
                Err(reason) if reason.starts_with("skipped") => {}
                Err(reason) => bad.push(format!("{line}: {reason}")),
            }
        }
        (good, bad)
    }

    #[test]
    fn maps_stand_one_behind_the_other_or_in_a_collection_on_any_lines() {
        let maps = [json!({"a": 1}), json!({"a": {"b": [1, 2]}}), json!({"c": "x]\n{"})];
        for text in [
            "{:a 1} {:a {:b [1 2]}}\n{:c \"x]\\n{\"}",
            "[{:a 1}\n {:a {:b [1 2]}}\n {:c \"x]\n{\"}]\n",
            "({:a 1},\n ; {:z 1\n {:a\n  {:b\n   (1\n2)}}\n #_{:z 1} {:c \"x]\n{\"}\n)",
            "#{{:a\n1} {:a\n{:b\n[1\n2]\n}\n}#_ #_ {:y 1} [1 {:z 2}]\n{:c \"x]\n{\"}}",
            "\u{feff}#jepsen/history [#jepsen.history.Op{:a 1}\n{:a #foo {:b #_ #x 3 [1 2]}} {:c \"x]\n{\"}]",
            "{:a 1 ; } \"\n}\n{:a {:b [1 2]}}[{:c \"x]\n{\"}]",
        ] {
            assert_eq!(records(text), (maps.to_vec(), Vec::new()), "{text}");
        }
        let (good, bad) = records("[{:a \\{ :b \\newline :c \\u0041, :d ##Inf, :e \\;}]");
        assert_eq!(good, [json!({"a": "{", "b": "\n", "c": "A", "d": "Inf", "e": ";"})], "{bad:?}");
    }

    #[test]
    fn what_cannot_be_read_is_rejected_and_nothing_besides() {
        for (text, good, bad) in [
            ("[1 {:a 1} two [{:a 2}]\n{:a 3}]", 2, vec!["1: not_edn: it is EDN, but no map"; 2]),
            ("{:a 1}}\n{:a 2}", 2, vec!["1: not_edn: '}' closes nothing"]),
            ("{:a 1\n{:a 2}\n{:a 3}", 2, vec!["1: not_edn: the form that begins in line 1 is broken"]),
            ("[{:a 1\n {:a 2}\n {:a 3}]\n{:a 4}", 3, vec!["1: not_edn: the form that begins in line 1"]),
            ("{:a \"x}\n{:a 2}\n{:a 3}", 2, vec!["1: not_edn: the form that begins in line 1"]),
            (
                "{:a [1 2}\n{:a 2}",
                1,
                vec!["1: not_edn: the form that begins in line 1 is broken in line 1, column 9"],
            ),
            ("{:a 1}\n{:b}\n{:a 2}", 2, vec!["2: not_edn: a map has a key without a value"]),
            (
                "{:a 1}\n[{:a 2}\n{:a 3",
                2,
                vec!["3: not_edn: the form", "3: not_edn: the collection that begins in line 2"],
            ),
            ("just some words\n{:a 1} # \n", 1, vec!["1: not_edn: it is", "2: not_edn: the form"]),
            ("{:a 1} #_", 1, vec!["1: not_edn: the form"]),
        ] {
            let (records, reasons) = records(text);
            assert_eq!(records.len(), good, "{text}: {records:?} {reasons:?}");
            assert_eq!(reasons.len(), bad.len(), "{text}: {reasons:?}");
            for (reason, wanted) in reasons.iter().zip(bad) {
                assert!(reason.starts_with(wanted), "{text}: {reason}");
            }
        }
        let (good, bad) = records(&format!("{}\n{{:a 1}}\n", "[".repeat(100_000)));
        assert_eq!((good.len(), bad.len()), (1, 2), "{bad:?}");
    }

    #[test]
    fn a_form_that_is_too_long_is_rejected_alone() {
        let text = format!("[{{:a 1}}\n {{:a \"{}\"}}\n {{:a 3}}]", "x".repeat(300));
        let found = read(&text, 7, 100);
        assert!(matches!(&found[1].2, Err(reason) if reason.starts_with("too_long: this form is 307 bytes")));
        assert_eq!(found.iter().filter(|(.., what)| what.is_ok()).count(), 2);
        // One that is not closed takes no other with it.
        let text = format!("{{:a 1\n{}", "{:b 22222222}\n".repeat(40));
        let found = read(&text, 7, 100);
        assert_eq!(found.iter().filter(|(.., what)| what.is_ok()).count(), 40);
    }

    #[test]
    fn many_forms_that_are_not_closed_take_no_longer_than_others() {
        let text = "{:a [1 2\n".repeat(60_000);
        let found = read(&text, 1 << 16, 1 << 20);
        assert_eq!(found.len(), 60_000);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            (0..99_i64).prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            r#"[a-c \]\[{}();#"\\]{0,6}"#.prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]{1,2}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// A value as EDN, with any blanks between its forms.
    fn write(value: &Value, blanks: &mut impl Iterator<Item = &'static str>, out: &mut String) {
        let blank = |out: &mut String, blanks: &mut dyn Iterator<Item = &'static str>| {
            out.push_str(blanks.next().unwrap_or(" "))
        };
        match value {
            Value::Null => out.push_str("nil"),
            Value::String(text) => out.push_str(&serde_json::to_string(text).unwrap()),
            Value::Array(items) => {
                out.push('[');
                for item in items {
                    blank(out, blanks);
                    write(item, blanks, out);
                    out.push(' ');
                }
                out.push(']');
            }
            Value::Object(map) => {
                out.push('{');
                for (key, value) in map {
                    blank(out, blanks);
                    out.push_str(&format!(":{key} "));
                    write(value, blanks, out);
                    out.push('\n');
                }
                out.push('}');
            }
            other => out.push_str(&other.to_string()),
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            maps in proptest::collection::vec(proptest::collection::btree_map("[a-c]{1,2}", values(), 1..3), 0..6),
            around in prop_oneof![Just(("", "")), Just(("[", "]")), Just(("(", "\n)")), Just(("#{", "}"))],
            blanks in proptest::collection::vec(
                prop_oneof![Just(" "), Just("\n"), Just(",\n  "), Just(" ; c }] \"\n"), Just("#_ {:x [1]} "), Just("\r\n\t")], 24),
            piece in 1..40_usize,
        ) {
            let maps: Vec<Value> = maps.into_iter().map(|map| Value::Object(map.into_iter().collect())).collect();
            let mut blanks = blanks.into_iter().cycle();
            let mut text = around.0.to_owned();
            for map in &maps {
                text.push_str(blanks.next().unwrap());
                write(map, &mut blanks, &mut text);
            }
            text.push_str(around.1);
            let found = read(&text, piece, 1 << 20);
            let good: Vec<&Value> = found.iter().filter_map(|(.., what)| what.as_ref().ok()).collect();
            prop_assert_eq!(&good, &maps.iter().collect::<Vec<_>>(), "{}", text);
            let bad: Vec<_> = found.iter().filter(|(.., w)| matches!(w, Err(r) if !r.starts_with("skipped"))).collect();
            prop_assert!(bad.is_empty(), "{text}: {bad:?}");
        }

        /// Whatever the text, pieces do not matter, each line is counted at most once, and what stands in no unit is blank.
        #[test]
        fn no_byte_vanishes(
            parts in proptest::collection::vec(prop_oneof![
                3 => r#"[a-c:{}\[\]()"\\#_; ,\n]{0,9}"#,
                2 => Just("{:a 1}".to_owned()),
                1 => Just("\n{:a\n 1}".to_owned()),
                1 => Just("é\n".to_owned()),
            ], 0..14),
            piece in 1..40_usize,
        ) {
            let text = parts.concat();
            let found = read(&text, piece, 64);
            prop_assert_eq!(&found, &read(&text, 1 << 20, 64));
            let counted: u64 = found.iter().map(|(_, lines, _)| lines).sum();
            prop_assert!(counted <= text.lines().count() as u64, "{counted} lines of {text:?}");
            let mut edn = Edn::new(64);
            let mut in_units = vec![false; text.len()];
            let mut take = |f: Found| {
                let begin = f.part.line.offset as usize;
                let end = begin + f.part.line.length as usize;
                let skipped = matches!(f.fate, Fate::LeftOut("no record stands in it"));
                for place in in_units.iter_mut().take(end).skip(begin).filter(|_| !skipped) {
                    assert!(!*place, "twice in {text:?}");
                    *place = true;
                }
            };
            edn.feed(text.as_bytes(), &mut take);
            edn.finish(&mut take);
            let left: Vec<u8> = text.bytes().zip(&in_units).map(|(b, held)| if *held && b != b'\n' { b' ' } else { b }).collect();
            let left = String::from_utf8_lossy(&left);
            for line in left.lines() {
                let line = line.split(';').next().unwrap_or_default();
                // A tag before a collection belongs to no record either.
                let line = line.trim_matches(|c: char| c.is_whitespace() || ",()[]{}#".contains(c));
                prop_assert!(line.is_empty() || line.starts_with(['a', 'b', 'c', ':', '_', '\\', '"']) && text.contains('#'),
                    "'{line}' is nowhere: {text:?} {found:?}");
            }
        }
    }
}

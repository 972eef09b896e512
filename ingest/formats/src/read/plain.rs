//! Event records that are read where they stand: their texts are places in the lines, and no record of their own is made of them.
//!
//! Plain is a line that is one JSON object with the fields that a record must have, each known field once and of its type. What is read of it here
//! is what [`EventRecord::parse`](demi_schemas::EventRecord::parse) reads, which a property test says. Everything else is left to
//! that, also every line that is refused: this module knows no reason against a line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use demi_schemas::event::{TimerInfo, VectorClock, sparse_seq};
use demi_schemas::{Kind, Via};
use serde::Serialize;
use serde_json::Value;

use crate::time::Stamp;

/// Levels within each other in a value: fewer than the JSON reader takes, which counts those around the value too.
const DEEP: usize = 64;
/// Marks places in what was written anew.
const ANEW: u32 = 1 << 31;

/// A text of a plain record, or none: its place in [`LineTexts`].
#[derive(Clone, Copy, Debug)]
pub struct Text {
    start: u32,
    length: u32,
}

impl Text {
    /// No text.
    pub const NONE: Text = Text { start: u32::MAX, length: 0 };
}

/// Lines, and what of their records had to be written anew.
#[derive(Debug, Default)]
pub struct LineTexts {
    lines: String,
    anew: Anew,
}

impl LineTexts {
    /// The texts of these lines.
    #[must_use]
    pub fn new(lines: String, anew: Anew) -> LineTexts {
        LineTexts { lines, anew }
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// A text, if it is one.
    #[must_use]
    pub fn get(&self, text: Text) -> Option<&str> {
        if text.start == u32::MAX {
            return None;
        }
        let from = if text.start & ANEW == 0 { &self.lines } else { &self.anew.texts };
        let start = (text.start & !ANEW) as usize;
        from.get(start..start + text.length as usize)
    }
}

/// LineTexts that do not stand in the lines as they are, one behind the other.
#[derive(Debug, Default)]
pub struct Anew {
    texts: String,
    /// Room for a JSON text.
    room: Vec<u8>,
}

impl Anew {
    /// Notes where a text of the line that begins at `line` is, which is written unless it stands there.
    fn place(&mut self, text: Option<&Found<'_>>, line: usize) -> Option<Text> {
        match text {
            None => Some(Text::NONE),
            Some(Found { at, text: Cow::Borrowed(text) }) => Text::at(line + at, text.len()),
            Some(Found { text: Cow::Owned(text), .. }) => self.write(text),
        }
    }

    fn write(&mut self, text: &str) -> Option<Text> {
        let place = Text::at(self.texts.len(), text.len())?;
        self.texts.push_str(text);
        Some(Text { start: place.start | ANEW, ..place })
    }

    /// Writes a value as JSON text.
    fn write_json<T: Serialize>(&mut self, value: Option<&T>) -> Option<Text> {
        let Some(value) = value else { return Some(Text::NONE) };
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        serde_json::to_writer(&mut room, value).ok()?;
        let written = self.write(std::str::from_utf8(&room).ok()?);
        self.room = room;
        written
    }
}

impl Text {
    fn at(start: usize, length: usize) -> Option<Text> {
        let (start, length) = (u32::try_from(start).ok()?, u32::try_from(length).ok()?);
        (start < ANEW - 1).then_some(Text { start, length })
    }
}

/// What a row says of a plain record. LineTexts are places in [`LineTexts`].
#[derive(Debug)]
pub struct PlainRow {
    /// Where the line begins in its source.
    pub offset: u64,
    /// Number of the line, from 1.
    pub number: u64,
    /// Where the line stands in the lines.
    pub start: u32,
    /// Its length in bytes.
    pub length: u32,
    /// Who did it.
    pub actor: Text,
    /// Which incarnation of the actor.
    pub incarnation: u32,
    /// Its sequence number.
    pub seq: u64,
    /// What it was.
    pub kind: Kind,
    /// How it was sent.
    pub via: Option<Via>,
    /// Whether it came from outside.
    pub external: Option<bool>,
    /// Id of the message, sender, receiver, type, payload, fingerprint.
    pub texts: [Text; 6],
    /// Wall-clock time: a text as it is, anything else as JSON.
    pub time: Text,
    /// Timer, fields, state, clock and other fields as JSON, if there is any of them.
    pub values: Option<Box<[Text; 5]>>,
    /// The digest of the content.
    pub digest: u64,
    /// Whether the row tells the digest.
    pub told: bool,
    /// The day of its time, in days since 1970.
    pub date: Option<i32>,
    /// What stamp its time is.
    pub stamp: Option<Box<Stamp>>,
}

/// A text that was read, and where it begins in the line if it stands there.
#[derive(Debug)]
pub(super) struct Found<'a> {
    at: usize,
    pub(super) text: Cow<'a, str>,
}

/// A record whose texts stand in a line.
#[derive(Debug, Default)]
pub(super) struct PlainRecord<'a> {
    pub(super) system: Option<Found<'a>>,
    actor: Option<Found<'a>>,
    pub(super) incarnation: u32,
    pub(super) seq: u64,
    kind: Option<Kind>,
    /// As in [`PlainRow`].
    texts: [Option<Found<'a>>; 6],
    pub(super) via: Option<Via>,
    pub(super) external: Option<bool>,
    pub(super) timer: Option<TimerInfo>,
    pub(super) fields: Option<Value>,
    pub(super) state: Option<Value>,
    pub(super) time: Option<Value>,
    /// Where the text of the time stands, if it is one and stands in the line.
    time_text: Option<(usize, usize)>,
    pub(super) vector_clock: Option<VectorClock>,
    pub(super) attrs: BTreeMap<String, Value>,
}

/// The fields that may be there once.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn first(&mut self, field: u32) -> Option<()> {
        let before = self.0;
        self.0 |= 1 << field;
        (before != self.0).then_some(())
    }
}

impl<'a> PlainRecord<'a> {
    /// Reads a line; `None` where it is not plain, or breaks a rule about the fields.
    pub(super) fn read(line: &'a str) -> Option<PlainRecord<'a>> {
        let mut scan = Scan { line, at: 0 };
        let mut record = PlainRecord::default();
        let mut seen = Seen::default();
        scan.space();
        scan.take(b'{')?;
        loop {
            scan.space();
            let name = scan.string()?.text;
            scan.space();
            scan.take(b':')?;
            scan.space();
            record.field(&name, &mut seen, &mut scan)?;
            scan.space();
            match scan.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        scan.space();
        (scan.at == line.len()).then_some(())?;
        record.checked()
    }

    fn field(&mut self, name: &str, seen: &mut Seen, scan: &mut Scan<'a>) -> Option<()> {
        let text = match name {
            "msg_id" => 0,
            "from" => 1,
            "to" => 2,
            "type" => 3,
            "payload" => 4,
            "fingerprint" => 5,
            "actor" => {
                seen.first(6)?;
                self.actor = Some(scan.string()?);
                return Some(());
            }
            "seq" => {
                seen.first(7)?;
                self.seq = scan.number()?;
                return Some(());
            }
            "kind" => {
                seen.first(8)?;
                self.kind = Some(Kind::from_name(&scan.string()?.text)?);
                return Some(());
            }
            "incarnation" => {
                seen.first(9)?;
                self.incarnation = u32::try_from(scan.number()?).ok()?;
                return Some(());
            }
            "system" => {
                seen.first(10)?;
                self.system = scan.string_or_null()?;
                return Some(());
            }
            "time" => {
                seen.first(11)?;
                if scan.peek() == Some(b'"') {
                    let found = scan.string()?;
                    self.time_text = match &found.text {
                        Cow::Borrowed(text) => Some((found.at, text.len())),
                        Cow::Owned(_) => None,
                    };
                    self.time = Some(Value::String(found.text.into_owned()));
                } else {
                    self.time = serde_json::from_str(scan.value()?).ok()?;
                }
                return Some(());
            }
            "via" => {
                seen.first(12)?;
                self.via = match scan.string_or_null()? {
                    Some(name) => Some(Via::from_name(&name.text)?),
                    None => None,
                };
                return Some(());
            }
            "external" => {
                seen.first(13)?;
                self.external = serde_json::from_str(scan.value()?).ok()?;
                return Some(());
            }
            "timer" => {
                seen.first(14)?;
                self.timer = serde_json::from_str(scan.value()?).ok()?;
                return Some(());
            }
            "fields" => {
                seen.first(15)?;
                self.fields = serde_json::from_str(scan.value()?).ok()?;
                return Some(());
            }
            "state" => {
                seen.first(16)?;
                self.state = serde_json::from_str(scan.value()?).ok()?;
                return Some(());
            }
            "vector_clock" => {
                seen.first(17)?;
                self.vector_clock = serde_json::from_str(scan.value()?).ok()?;
                return Some(());
            }
            // They are moved elsewhere.
            "source" | "offset" => return None,
            _ => {
                self.attrs.insert(name.to_owned(), serde_json::from_str(scan.value()?).ok()?);
                return Some(());
            }
        };
        seen.first(text)?;
        self.texts[text as usize] = scan.string_or_null()?;
        Some(())
    }

    /// The record, if it has what it must have and breaks no rule.
    fn checked(mut self) -> Option<Self> {
        let named = self.actor.as_ref().is_some_and(|actor| !actor.text.is_empty());
        if self.seq > 0 && self.attrs.get("gaps").is_some_and(|gaps| gaps == "normal") {
            self.seq = sparse_seq(self.seq);
        }
        let numbered = self.seq > 0 && i64::try_from(self.seq).is_ok();
        let addressed = match self.kind? {
            Kind::Send => self.texts[2].is_some(),
            Kind::Receive => self.texts[1].is_some(),
            _ => true,
        };
        (named && numbered && addressed).then_some(self)
    }

    pub(super) fn actor(&self) -> &str {
        self.actor.as_ref().map_or("", |actor| &actor.text)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::Local)
    }

    pub(super) fn texts(&self) -> [Option<&str>; 6] {
        self.texts.each_ref().map(|text| text.as_ref().map(|text| &*text.text))
    }

    /// The texts of the row, where `start` is the place of the line.
    pub(super) fn place(&self, anew: &mut Anew, start: usize) -> Option<Places> {
        let actor = anew.place(self.actor.as_ref(), start)?;
        let mut texts = [Text::NONE; 6];
        for (text, place) in self.texts.iter().zip(&mut texts) {
            *place = anew.place(text.as_ref(), start)?;
        }
        let time = match (&self.time, self.time_text) {
            (_, Some((at, length))) => Text::at(start + at, length)?,
            (Some(Value::String(text)), None) => anew.write(text)?,
            (other, None) => anew.write_json(other.as_ref())?,
        };
        let attrs = Some(&self.attrs).filter(|attrs| !attrs.is_empty());
        let values = [
            anew.write_json(self.timer.as_ref())?,
            anew.write_json(self.fields.as_ref())?,
            anew.write_json(self.state.as_ref())?,
            anew.write_json(self.vector_clock.as_ref())?,
            anew.write_json(attrs)?,
        ];
        let values = values.iter().any(|text| text.start != u32::MAX).then(|| Box::new(values));
        Some(Places { actor, texts, time, values })
    }
}

/// The texts of a row, as [`PlainRow`] has them.
pub(super) struct Places {
    pub(super) actor: Text,
    pub(super) texts: [Text; 6],
    pub(super) time: Text,
    pub(super) values: Option<Box<[Text; 5]>>,
}

/// Goes through a line. What it does not find is `None`.
struct Scan<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// A whole number without a sign.
    fn number(&mut self) -> Option<u64> {
        let from = self.at;
        let mut number: u64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.at += 1;
        }
        let zero = self.line.as_bytes().get(from) == Some(&b'0');
        (self.at > from && !(zero && self.at > from + 1) && self.is_over()).then_some(number)
    }

    /// Whether a number or word ends here.
    fn is_over(&self) -> bool {
        matches!(self.peek(), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
    }

    fn string_or_null(&mut self) -> Option<Option<Found<'a>>> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        (self.value()? == "null").then_some(None)
    }

    fn string(&mut self) -> Option<Found<'a>> {
        let (token, escaped) = self.string_token()?;
        let text = match escaped {
            false => Cow::Borrowed(token.get(1..token.len() - 1)?),
            true => Cow::Owned(serde_json::from_str(token).ok()?),
        };
        Some(Found { at: self.at - token.len() + 1, text })
    }

    /// A string with its quotes, and whether there are escapes in it.
    fn string_token(&mut self) -> Option<(&'a str, bool)> {
        let from = self.at;
        self.take(b'"')?;
        let mut escaped = false;
        loop {
            self.at += before_special(&self.line.as_bytes()[self.at..]);
            match self.next()? {
                b'"' => return Some((self.line.get(from..self.at)?, escaped)),
                b'\\' => {
                    escaped = true;
                    self.next()?;
                }
                _ => return None,
            }
        }
    }

    /// The text of a value. Whether it is one, who reads it knows.
    fn value(&mut self) -> Option<&'a str> {
        let from = self.at;
        match self.peek()? {
            b'"' => return self.string_token().map(|(token, _)| token),
            b'{' | b'[' => {
                let mut depth = 0;
                loop {
                    match self.peek()? {
                        b'"' => {
                            self.string_token()?;
                        }
                        b'{' | b'[' => {
                            depth += 1;
                            (depth <= DEEP).then_some(())?;
                            self.at += 1;
                        }
                        b'}' | b']' => {
                            depth -= 1;
                            self.at += 1;
                            if depth == 0 {
                                break;
                            }
                        }
                        _ => self.at += 1,
                    }
                }
            }
            _ => {
                while !self.is_over() {
                    self.at += 1;
                }
            }
        }
        self.line.get(from..self.at)
    }
}

/// How many bytes come before the first quote, backslash or control character.
fn before_special(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    /// The bits of bytes below a bound. The lowest one is right: only those above it may be wrong.
    fn below(word: u64, bound: u64) -> u64 {
        word.wrapping_sub(ONES * bound) & !word & HIGH
    }
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*eight);
        let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let found = is(b'"') | is(b'\\') | below(word, 0x20);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len())
}

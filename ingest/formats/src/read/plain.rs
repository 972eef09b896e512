//! Event records that are read where they stand: their texts are places in the lines, and no record of their own is made of them.
//!
//! Plain is a line that is one JSON object with the fields that a record must have, each known field once and of its type. What is read of it here
//! is what [`EventRecord::parse`](demi_schemas::EventRecord::parse) reads, which a property test says. Everything else is left to
//! that, also every line that is refused: this module knows no reason against a line.

use std::collections::BTreeMap;
use std::ops::Range;

use demi_schemas::event::{TimerInfo, VectorClock};
use demi_schemas::{Kind, Via};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::structured::{Part, Structured, Values};
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

    /// The text, if it stands in these lines as it is.
    #[must_use]
    pub fn in_lines(self, lines: &str) -> Option<&str> {
        let start = (self.start & ANEW == 0).then_some(self.start as usize)?;
        lines.get(start..start + self.length as usize)
    }
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
        self.anew.get(&self.lines, text)
    }
}

/// Texts that do not stand in the lines as they are, one behind the other.
#[derive(Debug, Default)]
pub struct Anew {
    texts: String,
    /// The values of the record that is read.
    values: Values,
    /// Room for a JSON text.
    room: Vec<u8>,
}

impl Anew {
    /// A text, if it is one, of these lines or written anew.
    pub(super) fn get<'t>(&'t self, lines: &'t str, text: Text) -> Option<&'t str> {
        if text.start == u32::MAX {
            return None;
        }
        let from = if text.start & ANEW == 0 { lines } else { &self.texts };
        let start = (text.start & !ANEW) as usize;
        from.get(start..start + text.length as usize)
    }

    /// How much is written.
    pub(super) fn length(&self) -> usize {
        self.texts.len()
    }

    /// Takes back what was written behind the first `length` bytes.
    pub(super) fn take_back(&mut self, length: usize) {
        self.texts.truncate(length);
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

    /// Writes a value that was read.
    fn write_value(&mut self, value: Option<&Structured>) -> Option<Text> {
        let Some(value) = value else { return Some(Text::NONE) };
        let json = self.values.json(value);
        let place = Text::at(self.texts.len(), json.len())?;
        self.texts.push_str(json);
        Some(Text { start: place.start | ANEW, ..place })
    }

    /// Writes values that were read as an object, if there are any.
    fn write_values(&mut self, values: &BTreeMap<String, Structured>) -> Option<Text> {
        if values.is_empty() {
            return Some(Text::NONE);
        }
        let begin = self.texts.len();
        for (name, value) in values {
            self.texts.push(if self.texts.len() == begin { '{' } else { ',' });
            self.texts.push_str(&serde_json::to_string(name).ok()?);
            self.texts.push(':');
            self.texts.push_str(self.values.json(value));
        }
        self.texts.push('}');
        let place = Text::at(begin, self.texts.len() - begin)?;
        Some(Text { start: place.start | ANEW, ..place })
    }

    /// What the values of the record that was read last say.
    pub(super) fn values(&self) -> &Values {
        &self.values
    }
}

impl Text {
    fn at(start: usize, length: usize) -> Option<Text> {
        let (start, length) = (u32::try_from(start).ok()?, u32::try_from(length).ok()?);
        (start < ANEW - 1).then_some(Text { start, length })
    }

    fn is_there(self) -> bool {
        self.start != u32::MAX
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

/// A record whose texts stand in a line.
#[derive(Debug)]
pub(super) struct PlainRecord {
    pub(super) system: Text,
    pub(super) actor: Text,
    pub(super) incarnation: u32,
    pub(super) seq: u64,
    kind: Option<Kind>,
    /// As in [`PlainRow`].
    pub(super) texts: [Text; 6],
    pub(super) via: Option<Via>,
    pub(super) external: Option<bool>,
    pub(super) time: Option<Value>,
    /// The time, if it is a text.
    time_text: Text,
    /// What few records have.
    more: Option<Box<More>>,
}

/// What has parts of its own.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) timer: Option<TimerInfo>,
    pub(super) fields: Option<Structured>,
    pub(super) state: Option<Structured>,
    pub(super) vector_clock: Option<VectorClock>,
    pub(super) attrs: BTreeMap<String, Structured>,
}

static NO_MORE: More =
    More { timer: None, fields: None, state: None, vector_clock: None, attrs: BTreeMap::new() };

/// The fields that may be there once.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn first(&mut self, field: usize) -> Option<()> {
        let before = self.0;
        self.0 |= 1 << field;
        (before != self.0).then_some(())
    }
}

impl PlainRecord {
    /// Reads the line at `raw` in `lines`; `None` where it is not plain, or breaks a rule about the fields.
    pub(super) fn read(lines: &str, raw: Range<usize>, anew: &mut Anew) -> Option<PlainRecord> {
        anew.values.clear();
        let lines = lines.get(..raw.end)?;
        let mut scan = Scan { lines, bytes: lines.as_bytes(), at: raw.start };
        let mut record = PlainRecord {
            system: Text::NONE,
            actor: Text::NONE,
            incarnation: 0,
            seq: 0,
            kind: None,
            texts: [Text::NONE; 6],
            via: None,
            external: None,
            time: None,
            time_text: Text::NONE,
            more: None,
        };
        let mut seen = Seen::default();
        scan.space();
        scan.take(b'{')?;
        loop {
            scan.space();
            let name = scan.plain_string()?;
            scan.space();
            scan.take(b':')?;
            scan.space();
            record.field(name, &mut seen, &mut scan, anew)?;
            scan.space();
            match scan.next()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        scan.space();
        (scan.at == lines.len()).then_some(())?;
        record.is_right(&anew.values).then_some(record)
    }

    fn field(&mut self, name: &str, seen: &mut Seen, scan: &mut Scan<'_>, anew: &mut Anew) -> Option<()> {
        let text = match name.as_bytes() {
            b"msg_id" => 0,
            b"from" => 1,
            b"to" => 2,
            b"type" => 3,
            b"payload" => 4,
            b"fingerprint" => 5,
            b"actor" => {
                seen.first(6)?;
                self.actor = scan.string(anew)?;
                return Some(());
            }
            b"seq" => {
                seen.first(7)?;
                self.seq = scan.number()?;
                return Some(());
            }
            b"kind" => {
                seen.first(8)?;
                self.kind = Some(Kind::from_name(scan.plain_string()?)?);
                return Some(());
            }
            b"incarnation" => {
                seen.first(9)?;
                self.incarnation = u32::try_from(scan.number()?).ok()?;
                return Some(());
            }
            b"system" => {
                seen.first(10)?;
                self.system = scan.string_or_null(anew)?;
                return Some(());
            }
            b"time" => {
                seen.first(11)?;
                if scan.peek() == Some(b'"') {
                    self.time_text = scan.string(anew)?;
                    let text = anew.get(scan.lines, self.time_text)?;
                    self.time = Some(Value::String(text.to_owned()));
                } else {
                    let number: Option<Number> = serde_json::from_str(scan.value()?).ok()?;
                    self.time = number.map(Value::Number);
                }
                return Some(());
            }
            b"via" => {
                seen.first(12)?;
                let via = scan.string_or_null(anew)?;
                self.via = match anew.get(scan.lines, via) {
                    Some(name) => Some(Via::from_name(name)?),
                    None => None,
                };
                return Some(());
            }
            b"external" => {
                seen.first(13)?;
                self.external = scan.read()?;
                return Some(());
            }
            b"timer" => {
                seen.first(14)?;
                self.more.get_or_insert_default().timer = scan.read()?;
                return Some(());
            }
            b"fields" => {
                seen.first(15)?;
                self.more.get_or_insert_default().fields = scan.structured(anew)?;
                return Some(());
            }
            b"state" => {
                seen.first(16)?;
                self.more.get_or_insert_default().state = scan.structured(anew)?;
                return Some(());
            }
            b"vector_clock" => {
                seen.first(17)?;
                self.more.get_or_insert_default().vector_clock = scan.read()?;
                return Some(());
            }
            // They are moved elsewhere.
            b"source" | b"offset" => return None,
            _ => {
                let attrs = &mut self.more.get_or_insert_default().attrs;
                attrs.insert(name.to_owned(), anew.values.read(scan.value()?).ok()?);
                return Some(());
            }
        };
        seen.first(text)?;
        self.texts[text] = scan.string_or_null(anew)?;
        Some(())
    }

    /// Whether the record has what it must have and breaks no rule.
    fn is_right(&mut self, values: &Values) -> bool {
        // What such numbers become is left to who reads all of a record.
        let gaps = self.more().attrs.get("gaps");
        if self.seq > 0 && gaps.is_some_and(|gaps| values.part(gaps).text() == Some("normal")) {
            return false;
        }
        let has_no_id = self.texts[0].is_there() && self.texts[0].length == 0;
        let named = self.actor.is_there() && self.actor.length > 0;
        let numbered = self.seq > 0 && i64::try_from(self.seq).is_ok();
        let addressed = match self.kind {
            None => false,
            Some(Kind::Send) => self.texts[2].is_there(),
            Some(Kind::Receive) => self.texts[1].is_there(),
            Some(_) => true,
        };
        named && numbered && addressed && !has_no_id
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::Local)
    }

    pub(super) fn more(&self) -> &More {
        self.more.as_deref().unwrap_or(&NO_MORE)
    }

    /// The texts of the row for the time and what has parts.
    pub(super) fn write(&self, anew: &mut Anew) -> Option<(Text, Option<Box<[Text; 5]>>)> {
        let time = match self.time_text.is_there() {
            true => self.time_text,
            false => anew.write_json(self.time.as_ref())?,
        };
        let Some(More { timer, fields, state, vector_clock, attrs }) = self.more.as_deref() else {
            return Some((time, None));
        };
        let values = [
            anew.write_json(timer.as_ref())?,
            anew.write_value(fields.as_ref())?,
            anew.write_value(state.as_ref())?,
            anew.write_json(vector_clock.as_ref())?,
            anew.write_values(attrs)?,
        ];
        Some((time, Some(Box::new(values))))
    }
}

/// Goes through lines. What it does not find is `None`.
struct Scan<'a> {
    lines: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
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
        let zero = self.bytes.get(from) == Some(&b'0');
        (self.at > from && !(zero && self.at > from + 1) && self.is_over()).then_some(number)
    }

    /// Whether a number or word ends here.
    fn is_over(&self) -> bool {
        matches!(self.peek(), None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
    }

    /// Reads a value.
    fn read<T: Deserialize<'a>>(&mut self) -> Option<T> {
        serde_json::from_str(self.value()?).ok()
    }

    /// Reads a structured value; a null is none.
    fn structured(&mut self, anew: &mut Anew) -> Option<Option<Structured>> {
        match self.value()? {
            "null" => Some(None),
            json => Some(Some(anew.values.read(json).ok()?)),
        }
    }

    fn string_or_null(&mut self, anew: &mut Anew) -> Option<Text> {
        if self.peek() == Some(b'"') {
            return self.string(anew);
        }
        (self.value()? == "null").then_some(Text::NONE)
    }

    fn string(&mut self, anew: &mut Anew) -> Option<Text> {
        let (inner, escaped) = self.string_token()?;
        if !escaped {
            return Text::at(inner.start, inner.len());
        }
        let text: String = serde_json::from_str(self.lines.get(inner.start - 1..=inner.end)?).ok()?;
        anew.write(&text)
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Option<&'a str> {
        match self.string_token()? {
            (inner, false) => self.lines.get(inner),
            (_, true) => None,
        }
    }

    /// Where a string is, without its quotes, and whether there are escapes in it.
    fn string_token(&mut self) -> Option<(Range<usize>, bool)> {
        self.take(b'"')?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at = first_special(self.bytes, self.at);
            match self.next()? {
                b'"' => return Some((from..self.at - 1, escaped)),
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
            b'"' => {
                self.string_token()?;
            }
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
        self.lines.get(from..self.at)
    }
}

/// Where the first quote, backslash or control character is from a place on, or the end.
#[inline]
fn first_special(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    /// The bits of bytes below a bound. The lowest one is right: only those above it may be wrong.
    fn below(word: u64, bound: u64) -> u64 {
        word.wrapping_sub(ONES * bound) & !word & HIGH
    }
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

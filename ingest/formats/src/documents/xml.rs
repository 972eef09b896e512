//! XML as a stream of elements: each record is an element, handed out as soon as its last byte is there.
//!
//! Tags are matched here, so that memory is bounded by the longest record that is taken; `quick-xml` reads what stands in a record. Without a path the
//! records are the elements in the outermost one; a path names them, as `/log/entry`. What stands around records says nothing.
//!
//! Of a record attributes, elements and text are taken: attributes and elements by their names, several of one name as a list, text beside them
//! as `#text`, and the name of the record's own element as `#name`.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use serde_json::{Map, Value};

use super::kept::{Kept, Part};
use super::out::{Count, Found, Out};
use crate::fate::{Fate, not_utf8};
use crate::formats::json_record;

/// Deepest nesting of elements.
const MOST_DEPTH: usize = 256;

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    /// Behind `<`.
    Opened,
    /// A tag, and the quotation mark that is open in it.
    Tag(Option<u8>),
    /// `<!`, and how much of it was read.
    Mark(usize),
    /// A comment, and how many dashes stand at its end so far.
    Comment(usize),
    /// `<![CDATA[`, and how many brackets stand at its end so far.
    Data(usize),
    /// `<?`, and whether a question mark was last.
    Instruction(bool),
    /// `<!DOCTYPE`, with the brackets that are open.
    Doctype(usize),
}

/// An element that is a record, as far as it was read.
struct Held {
    kept: Kept,
    name: Vec<u8>,
    /// Elements that are open in it, itself counted.
    depth: usize,
    /// Whether it is nested too deep.
    deep: bool,
}

/// Reads XML.
pub(crate) struct Xml {
    limit: usize,
    /// Names of the elements on the way to the records, and theirs; without it they are the elements in the outermost one.
    path: Option<Vec<String>>,
    state: State,
    /// The tag being read, as far as a record may be long; where it begins.
    tag: Vec<u8>,
    tag_at: (u64, u64),
    /// The byte before.
    before: u8,
    /// Elements that are open around records, with the lines in which they begin.
    open: Vec<(String, u64)>,
    record: Option<Held>,
    /// Text that stands outside of all elements.
    stray: Option<Kept>,
    /// Whether the document at hand has records.
    given: bool,
    offset: u64,
    line: u64,
    count: Count,
    begun: bool,
}

type Sink<'a> = &'a mut dyn FnMut(Found);

impl Xml {
    pub(super) fn new(path: Option<&str>, limit: usize) -> Self {
        let names = |text: &str| text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Xml {
            limit,
            path: path.map(names),
            state: State::Text,
            tag: Vec::new(),
            tag_at: (0, 1),
            before: 0,
            open: Vec::new(),
            record: None,
            stray: None,
            given: false,
            offset: 0,
            line: 1,
            count: Count::default(),
            begun: false,
        }
    }

    /// Takes note of where the stream begins, if nothing of it was read.
    pub(super) fn at(&mut self, offset: u64, line: u64) {
        if !self.begun {
            (self.offset, self.line) = (offset, line);
            Out { count: &mut self.count, sink: &mut |_| {} }.document_begins(line);
        }
    }

    /// Whether something was read.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Takes the next piece of the stream.
    pub(super) fn feed(&mut self, piece: &[u8], sink: Sink<'_>) {
        self.begun |= !piece.is_empty();
        for held in
            [self.record.as_mut().map(|record| &mut record.kept), self.stray.as_mut()].into_iter().flatten()
        {
            held.from = 0;
        }
        for (at, &byte) in piece.iter().enumerate() {
            self.byte(piece, at, byte, sink);
            self.before = byte;
            self.offset += 1;
            self.line += u64::from(byte == b'\n');
        }
        for held in
            [self.record.as_mut().map(|record| &mut record.kept), self.stray.as_mut()].into_iter().flatten()
        {
            held.take(piece, piece.len());
        }
    }

    /// Takes the end of the stream.
    pub(super) fn finish(&mut self, sink: Sink<'_>) {
        let last = self.line;
        self.tell_stray(&[], 0, sink);
        if let Some(Held { kept, name, .. }) = self.record.take() {
            let reason = format!("the file ends within the element <{}>", String::from_utf8_lossy(&name));
            self.reject(kept.part(last), reason, sink);
        } else if self.state != State::Text {
            self.reject_tag("the file ends within a tag".to_owned(), sink);
        }
        if let Some((name, line)) = self.open.first().cloned() {
            self.tag.clear();
            self.tag_at = (self.offset, self.line);
            self.reject_tag(
                format!("<{name}>, which begins in line {line}, is not closed; the file may be cut off"),
                sink,
            );
        }
        self.open.clear();
        self.state = State::Text;
        Out { count: &mut self.count, sink }.document_ends(last);
    }

    fn byte(&mut self, piece: &[u8], at: usize, byte: u8, sink: Sink<'_>) {
        let outside = self.record.is_none();
        // Of a tag in a record the beginning tells what it does.
        let most = if outside { self.limit.saturating_add(1) } else { 2 };
        if self.state != State::Text && self.tag.len() < most {
            self.tag.push(byte);
        }
        self.state = match self.state {
            State::Text if byte == b'<' => {
                self.tell_stray(piece, at, sink);
                self.tag.clear();
                self.tag.push(byte);
                self.tag_at = (self.offset, self.line);
                State::Opened
            }
            State::Text => {
                let mark = self.offset < 3 && [0xef, 0xbb, 0xbf].get(self.offset as usize) == Some(&byte);
                if outside
                    && self.open.is_empty()
                    && !byte.is_ascii_whitespace()
                    && !mark
                    && self.stray.is_none()
                {
                    self.stray = Some(Kept::new(self.offset, self.line, at, self.limit));
                }
                State::Text
            }
            State::Opened => match byte {
                b'!' => State::Mark(0),
                b'?' => State::Instruction(false),
                _ => self.in_tag(None, piece, at, byte, sink),
            },
            State::Tag(quote) => self.in_tag(quote, piece, at, byte, sink),
            State::Mark(0) if byte == b'-' => State::Mark(1),
            State::Mark(1) if byte == b'-' => State::Comment(0),
            State::Mark(0) if byte == b'[' => State::Mark(2),
            State::Mark(n) if n >= 2 && b"CDATA["[n - 2..].first() == Some(&byte) => {
                if n - 2 == 5 {
                    State::Data(0)
                } else {
                    State::Mark(n + 1)
                }
            }
            State::Mark(_) if byte == b'>' => State::Text,
            State::Mark(_) => State::Doctype(usize::from(byte == b'[')),
            State::Comment(dashes) if byte == b'>' && dashes >= 2 => State::Text,
            State::Comment(dashes) => State::Comment(if byte == b'-' { dashes + 1 } else { 0 }),
            State::Data(brackets) if byte == b'>' && brackets >= 2 => State::Text,
            State::Data(brackets) => State::Data(if byte == b']' { brackets + 1 } else { 0 }),
            State::Instruction(true) if byte == b'>' => State::Text,
            State::Instruction(_) => State::Instruction(byte == b'?'),
            State::Doctype(0) if byte == b'>' => State::Text,
            State::Doctype(open) => State::Doctype(match byte {
                b'[' => open + 1,
                b']' => open.saturating_sub(1),
                _ => open,
            }),
        };
    }

    /// Takes a byte of a tag.
    fn in_tag(&mut self, quote: Option<u8>, piece: &[u8], at: usize, byte: u8, sink: Sink<'_>) -> State {
        if let Some(record) = &mut self.record {
            record.deep |= record.depth > MOST_DEPTH;
        }
        match (quote, byte) {
            (Some(open), _) if byte != open => State::Tag(quote),
            (Some(_), _) => State::Tag(None),
            (None, b'"' | b'\'') => State::Tag(Some(byte)),
            (None, b'>') => {
                self.tag_ends(piece, at, sink);
                State::Text
            }
            _ => State::Tag(None),
        }
    }

    /// Takes a tag whose last byte is at `at` of the piece.
    fn tag_ends(&mut self, piece: &[u8], at: usize, sink: Sink<'_>) {
        let tag = std::mem::take(&mut self.tag);
        let inner = tag.strip_prefix(b"<").unwrap_or(&tag);
        let (closes, inner) = match inner.strip_prefix(b"/") {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        let empty = !closes && self.before == b'/';
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
        let name = inner[..inner.iter().position(ends).unwrap_or(inner.len())].to_vec();
        if let Some(record) = &mut self.record {
            match (closes, empty) {
                (true, _) => record.depth -= 1,
                (false, false) => record.depth += 1,
                (false, true) => {}
            }
            if record.depth == 0 {
                self.record_ends(piece, at, sink);
            }
            return;
        }
        let text = String::from_utf8_lossy(&name).into_owned();
        self.tag = tag;
        if closes {
            match self.open.pop() {
                Some((own, _)) if own == text => {}
                Some((own, line)) => {
                    self.reject_tag(
                        format!("</{text}> stands where <{own}> of line {line} is to be closed"),
                        sink,
                    );
                }
                None => self.reject_tag(format!("</{text}> closes nothing"), sink),
            }
            if self.open.is_empty() {
                self.document_ends(sink);
            }
            return;
        }
        if name.is_empty() || self.open.len() >= MOST_DEPTH {
            return self.reject_tag("this is no tag, or one that is nested too deep".to_owned(), sink);
        }
        if self.is_record(&text) {
            let (offset, line) = self.tag_at;
            let mut kept = Kept::new(offset, line, 0, self.limit);
            kept.take(&self.tag, self.tag.len());
            kept.from = at + 1;
            self.given = true;
            self.record = Some(Held { kept, name, depth: 1, deep: false });
            if empty {
                self.record_ends(piece, at, sink);
            }
        } else if !empty {
            self.open.push((text, self.tag_at.1));
        } else if self.open.is_empty() {
            self.document_ends(sink);
        }
    }

    /// Whether an element of that name, at this place, is a record.
    fn is_record(&self, name: &str) -> bool {
        let Some(path) = &self.path else { return self.open.len() == 1 };
        let own = self.open.iter().map(|(name, _)| name.as_str()).chain([name]);
        own.eq(path.iter().map(String::as_str))
    }

    fn record_ends(&mut self, piece: &[u8], at: usize, sink: Sink<'_>) {
        let Some(Held { mut kept, deep, .. }) = self.record.take() else { return };
        kept.take(piece, at + 1);
        let part = kept.part(self.line);
        self.tag.clear();
        let fate = match value(&part) {
            _ if deep => {
                Fate::rejected("not_xml", format!("elements are nested more than {MOST_DEPTH} deep"))
            }
            Ok(record) => json_record(record),
            Err(error) => Fate::Quarantined(error.into()),
        };
        Out { count: &mut self.count, sink: &mut *sink }.give(part, fate);
        if self.open.is_empty() {
            self.document_ends(sink);
        }
    }

    fn document_ends(&mut self, sink: Sink<'_>) {
        if !std::mem::take(&mut self.given) {
            let part = self.tag_part();
            Out { count: &mut self.count, sink: &mut *sink }.give(part, Fate::LeftOut("no records"));
        }
        let last = self.line;
        Out { count: &mut self.count, sink }.document_ends(last);
    }

    /// The tag at hand as a part.
    fn tag_part(&mut self) -> Part {
        let (offset, line) = self.tag_at;
        let mut kept = Kept::new(offset, line, 0, self.limit);
        kept.take(&self.tag, self.tag.len());
        kept.part(self.line)
    }

    fn reject_tag(&mut self, reason: String, sink: Sink<'_>) {
        let part = self.tag_part();
        self.reject(part, reason, sink);
    }

    fn reject(&mut self, part: Part, reason: String, sink: Sink<'_>) {
        self.given = true;
        Out { count: &mut self.count, sink }.give(part, Fate::rejected("not_xml", reason));
    }

    /// Rejects what stands outside of all elements, up to `at` of the piece.
    fn tell_stray(&mut self, piece: &[u8], at: usize, sink: Sink<'_>) {
        if let Some(mut stray) = self.stray.take() {
            stray.take(piece, at);
            let part = stray.part(self.line);
            self.reject(part, "this text stands outside of all elements".to_owned(), sink);
        }
    }
}

/// The value of an element that is whole.
fn value(part: &Part) -> Result<Value, (&'static str, String)> {
    if part.line.overlong.is_some() {
        let reason = format!(
            "this element is {} bytes long, more than the limit; its first {} bytes are kept",
            part.line.length,
            part.raw.len()
        );
        return Err(("too_long", reason));
    }
    let text = std::str::from_utf8(&part.raw).map_err(|error| ("not_utf8", not_utf8(&part.raw, error)))?;
    element(text).map_err(|reason| ("not_xml", reason))
}

/// An element that is being read.
#[derive(Default)]
struct Node {
    name: String,
    members: Map<String, Value>,
    text: String,
}

impl Node {
    fn begin(reader: &Reader<&[u8]>, tag: &BytesStart<'_>) -> Result<Node, String> {
        let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
        let mut node = Node { name, ..Node::default() };
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let name = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            let value =
                attribute.decode_and_unescape_value(reader.decoder()).map_err(|error| error.to_string())?;
            node.add(name, Value::from(value.into_owned()));
        }
        Ok(node)
    }

    /// Adds a member; several of one name are a list.
    fn add(&mut self, name: String, value: Value) {
        match self.members.get_mut(&name) {
            None => drop(self.members.insert(name, value)),
            Some(Value::Array(all)) => all.push(value),
            Some(one) => {
                let first = one.take();
                *one = Value::Array(vec![first, value]);
            }
        }
    }

    /// The value of an element: text where it has nothing else.
    fn value(mut self) -> (String, Value) {
        let text = self.text.trim();
        if self.members.is_empty() {
            return (self.name, Value::from(text));
        }
        if !text.is_empty() {
            self.members.insert("#text".to_owned(), Value::from(text));
        }
        (self.name, Value::Object(self.members))
    }
}

/// The value of an element as a record.
fn element(text: &str) -> Result<Value, String> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Node> = Vec::new();
    let mut whole = None;
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => open.push(Node::begin(&reader, &tag)?),
            Event::Empty(tag) => close(Node::begin(&reader, &tag)?, &mut open, &mut whole),
            Event::End(_) => {
                let node = open.pop().ok_or("a tag closes nothing")?;
                close(node, &mut open, &mut whole);
            }
            Event::Text(text) => push(&mut open, &text.decode().map_err(|error| error.to_string())?),
            Event::CData(text) => push(&mut open, &text.decode().map_err(|error| error.to_string())?),
            Event::GeneralRef(reference) => {
                let name = reference.decode().map_err(|error| error.to_string())?;
                match reference.resolve_char_ref().map_err(|error| error.to_string())? {
                    Some(c) => push(&mut open, c.encode_utf8(&mut [0; 4])),
                    None => match resolve_predefined_entity(&name) {
                        Some(text) => push(&mut open, text),
                        None => return Err(format!("the entity &{name}; is not known")),
                    },
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let node = whole.ok_or("an element is not closed")?;
    let (name, value) = node.value();
    let mut members = match value {
        Value::Object(members) => members,
        Value::String(text) if !text.is_empty() => Map::from_iter([("#text".to_owned(), Value::from(text))]),
        _ => Map::new(),
    };
    members.insert("#name".to_owned(), Value::from(name));
    Ok(Value::Object(members))
}

fn push(open: &mut [Node], text: &str) {
    if let Some(node) = open.last_mut() {
        node.text.push_str(text);
    }
}

fn close(node: Node, open: &mut [Node], whole: &mut Option<Node>) {
    match open.last_mut() {
        Some(around) => {
            let (name, value) = node.value();
            around.add(name, value);
        }
        None => *whole = Some(node),
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::Decoded;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A value as text, its members sorted.
    fn sorted(value: Value) -> String {
        match value {
            Value::Object(members) => {
                let mut all: Vec<String> =
                    members.into_iter().map(|(name, value)| format!("{name:?}:{}", sorted(value))).collect();
                all.sort();
                format!("{{{}}}", all.join(","))
            }
            Value::Array(all) => format!("[{}]", all.into_iter().map(sorted).collect::<Vec<_>>().join(",")),
            other => other.to_string(),
        }
    }

    /// What is found: of each its first line, what it is, and its lines.
    fn read(path: Option<&str>, text: &[u8], cut: usize, limit: usize) -> Vec<(u64, String, u64)> {
        let mut all = Vec::new();
        let mut sink = |found: Found| {
            let what = match found.fate {
                Fate::Row(Decoded::Record(record)) => sorted(record.value()),
                Fate::Quarantined(why) => format!("{}: {}", why.code(), why.reason()),
                other => format!("{other:?}"),
            };
            all.push((found.part.line.number, what, found.lines));
        };
        let mut xml = Xml::new(path, limit);
        for piece in text.chunks(cut.max(1)) {
            xml.feed(piece, &mut sink);
        }
        xml.finish(&mut sink);
        all
    }

    fn records(path: Option<&str>, text: &str) -> Vec<String> {
        read(path, text.as_bytes(), usize::MAX, 1 << 20).into_iter().map(|(_, what, _)| what).collect()
    }

    #[test]
    fn attributes_elements_and_text_become_members() {
        let text = "<?xml version=\"1.0\"?>\n<!DOCTYPE log [<!ELEMENT log ANY>]>\n<!-- <send/> -->\n<log app='x > y'>\n\
                    <send at=\"1\" to='b'/>\n<receive>\n <at>2</at><tag>x</tag><tag k=\"1\">y &amp; &#65;</tag> tail <![CDATA[<raw>]]>\n</receive><note/></log>\n";
        let expected = [
            json!({"#name": "send", "at": "1", "to": "b"}),
            json!({"#name": "receive", "at": "2", "tag": ["x", {"k": "1", "#text": "y & A"}], "#text": "tail <raw>"}),
            json!({"#name": "note"}),
        ];
        let expected: Vec<String> = expected.into_iter().map(sorted).collect();
        assert_eq!(records(None, text), expected);
        for cut in 1..text.len() {
            let found: Vec<String> =
                read(None, text.as_bytes(), cut, 1 << 20).into_iter().map(|f| f.1).collect();
            assert_eq!(found, expected, "in pieces of {cut}");
        }
    }

    #[test]
    fn a_path_names_the_records_also_of_fragments() {
        let fragments = "<l:event n='1'><l:message>a</l:message></l:event>\n<l:event n='2'/>\n";
        let expected =
            [json!({"#name": "l:event", "n": "1", "l:message": "a"}), json!({"#name": "l:event", "n": "2"})];
        assert_eq!(records(Some("/l:event"), fragments), expected.map(sorted));
        let deep = "<a><b><c n='1'/></b><c n='2'/><b><c n='3'/></b></a>";
        let expected = [json!({"#name": "c", "n": "1"}), json!({"#name": "c", "n": "3"})];
        assert_eq!(records(Some("/a/b/c"), deep), expected.map(sorted));
    }

    #[test]
    fn what_cannot_be_read_is_rejected_by_itself() {
        let good = sorted(json!({"#name": "e", "n": "1"}));
        for (text, wrong) in [
            ("<log>\n<e n='1'/>\n<e><x></y></e>\n<e n='1'/>\n</log>", "not_xml"),
            ("<log>\n<e n='1'/>\n<e>&unknown;</e>\n<e n='1'/>\n</log>", "the entity &unknown; is not known"),
            ("<log>\n<e n='1'/>\n<e n=1></e>\n<e n='1'/>\n</log>", "not_xml"),
            ("<log>\n<e n='1'/>\n<e n='1'/>\n<e>", "the file ends within the element <e>"),
            ("<log>\n<e n='1'/>\n<e n='1'/>\n", "<log>, which begins in line 1, is not closed"),
            ("<log>\n<e n='1'/>\n<e n='1'/>\n</log>\nand more", "this text stands outside of all elements"),
            ("<log>\n<e n='1'/>\n<e n='1'/>\n</lag>", "</lag> stands where <log> of line 1 is to be closed"),
        ] {
            let found = records(None, text);
            assert_eq!(found.iter().filter(|what| **what == good).count(), 2, "{text}: {found:?}");
            assert!(found.iter().any(|what| what.contains(wrong)), "{text}: {found:?}");
        }
        assert!(records(None, "plain text\nof two lines\n")[0].contains("outside of all elements"));
        assert!(records(None, "<log/>")[0].contains("no records"));
    }

    #[test]
    fn a_record_that_is_too_long_or_too_deep_is_rejected_alone() {
        let text = format!("<log><e>{}</e><e n='1'/></log>", "x".repeat(1000));
        let found = read(None, text.as_bytes(), 7, 100);
        assert!(found[0].1.starts_with("too_long: this element is 1007 bytes long"), "{found:?}");
        assert_eq!(found[1].1, sorted(json!({"#name": "e", "n": "1"})));
        let deep = format!("<log><e>{}{}</e><e n='1'/></log>", "<a>".repeat(400), "</a>".repeat(400));
        let found = read(None, deep.as_bytes(), 7, 1 << 20);
        assert!(found[0].1.contains("nested more than"), "{found:?}");
        assert_eq!(found[1].1, sorted(json!({"#name": "e", "n": "1"})));
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("<log>".to_owned()),
            Just("</log>".to_owned()),
            Just("<e a='1'>".to_owned()),
            Just("</e>".to_owned()),
            Just("<e/>".to_owned()),
            Just("<!-- - -->".to_owned()),
            Just("<![CDATA[]]>".to_owned()),
            Just("\n".to_owned()),
            Just("&lt;".to_owned()),
            Just("'".to_owned()),
            Just("<".to_owned()),
            Just(">".to_owned()),
            "[ -~]{0,6}",
        ]
    }

    proptest! {
        /// No text panics, each line is counted at most once, and it does not matter where the stream is cut.
        #[test]
        fn any_text_is_read_alike_in_any_pieces(
            parts in proptest::collection::vec(piece(), 0..40), cut in 1..9_usize, path in prop_oneof![Just(None), Just(Some("/e")), Just(Some("/log/e"))],
        ) {
            let text = parts.concat();
            let whole = read(path, text.as_bytes(), usize::MAX, 200);
            prop_assert_eq!(&read(path, text.as_bytes(), cut, 200), &whole, "{}", text);
            let lines = text.matches('\n').count() as u64 + 1;
            prop_assert!(whole.iter().map(|found| found.2).sum::<u64>() <= lines, "{}: {:?}", text, whole);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(None, &bytes, 3, 50);
        }

        /// What is written is read.
        #[test]
        fn values_are_those_that_were_written(values in proptest::collection::vec("[ -~\u{e9}\u{4e2d}]{0,12}", 1..6)) {
            let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\'', "&apos;");
            let text: String = values.iter().map(|v| format!("<e a='{}'><t>{}</t></e>", escaped(v), escaped(v))).collect();
            let expected: Vec<String> =
                values.iter().map(|v| sorted(json!({"#name": "e", "a": v, "t": v.trim()}))).collect();
            prop_assert_eq!(records(None, &format!("<log>{text}</log>")), expected);
        }
    }
}

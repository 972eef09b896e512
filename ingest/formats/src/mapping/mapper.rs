//! Applying a mapping to the lines of sources, one after another: finding the records in them, the executions that they are of, and the events
//! that they become.

mod checkpoint;
mod needs;
mod reading;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use demi_schemas::EventRecord;
use regex::Regex;

use super::compile::Compiled;
use super::emit::{Emitter, Place, clock_array, each_group, holds, host_name, stem};
use super::error::MappingError;
use super::file::{Choose, Header, Mapping};
use super::patterns::{self, Pattern};
use super::sniff;
use super::stamp::Latest;
use super::template::Scope;
use super::wrapper::{Unwrapped, Unwrapping, VALUES, Wrapper};
use super::{clocks, deduce};
use crate::container::Container;
use crate::documents::{Documents, Found};
use crate::fate::{Events, Fate, not_utf8};
use crate::formats::{Decoded, Record, csv, json_line, logfmt};
use crate::otlp::OtlpOptions;
use crate::read::lines::Line;

pub use needs::Needs;
pub use reading::{Piece, ReadSource, Take};

/// Bytes of event records that are handed over together.
const BLOCK: usize = 1 << 16;
/// Most bytes of a record of several lines.
const MOST_RECORD: usize = 16 << 20;
/// Bytes of a source that [`Mapper::begin`] likes to see.
pub const HEAD: usize = 256 * 1024;
/// Most bytes of an execution that is held until its end.
const MOST_HELD: usize = 512 << 20;
/// What becomes of a line or part in which a skip expression of the mapping is found.
const SKIPPED: Fate<Decoded<'static>> = Fate::LeftOut("a skip expression is found in it");

/// What a command line may say beside a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The pattern of a text log, in place of the mapping's and of the file's own.
    pub parser: Option<String>,
    /// The delimiter of executions, in place of the mapping's and of the file's own.
    pub delimiter: Option<String>,
    /// What stands around each line, in place of what the mapping says.
    pub wrapper: Option<Wrapper>,
    /// Whether several sources are mapped: executions of delimited files are then named after their file too.
    pub several: bool,
}

/// Consecutive lines that are one record, or one line that is none. Empty lines between records are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The first line; its length is that of all of them.
    pub line: Line,
    /// How many lines.
    pub lines: u64,
    /// Their bytes.
    pub raw: Vec<u8>,
    /// Name of the execution, where the source holds several.
    pub execution: Option<String>,
    /// What they became.
    pub fate: Fate<Events>,
}

/// A unit whose record is known and whose events are not.
struct Held {
    line: Line,
    lines: u64,
    raw: Vec<u8>,
    record: Record<'static>,
    carried: Arc<BTreeMap<String, String>>,
}

/// What is remembered of the source being read.
#[derive(Default)]
struct SourceState {
    name: String,
    /// The log of which it is a part, where that was rotated.
    log: Option<String>,
    /// The name without its folder and endings.
    stem: String,
    patterns: Vec<Pattern>,
    delimiter: Option<Regex>,
    /// Lines of the header that are still to come.
    header: VecDeque<(&'static str, Option<String>)>,
    columns: Option<Arc<[String]>>,
    /// What separates its values, where they are in columns.
    separator: csv::Separator,
    pending: VecDeque<(Line, Vec<u8>)>,
    pending_bytes: usize,
    /// Lines on their way out of their wrapper.
    unwrapping: Unwrapping,
    /// What the wrapper says of the line at hand, and of those that are pending.
    told: Option<BTreeMap<String, String>>,
    /// Lines with their wrapper whose units are not handed over yet, by number.
    wrapped: BTreeMap<u64, Vec<u8>>,
    pending_told: VecDeque<BTreeMap<String, String>>,
    /// Of a source that is made of documents.
    documents: Option<Box<Documents>>,
    /// Name of the execution being read.
    execution: Option<String>,
    /// Executions begun.
    number: u64,
    /// Whether the execution being read has records.
    begun: bool,
    held: Vec<Held>,
    held_bytes: usize,
    /// Values that hold until another record or line tells others.
    carried: Arc<BTreeMap<String, String>>,
}

/// What a part of a rotated log leaves to the next: the latest times, and values that hold until others are told.
type Left = (Latest, Arc<BTreeMap<String, String>>);

/// Logs of which it is known what their parts left, at most: those that were begun last.
const LOGS: usize = 200;

/// Applies a mapping to sources. Sequence numbers that a log does not write are counted on from source to source.
pub struct Mapper {
    mapping: Compiled,
    overrides: Overrides,
    pattern: Option<Pattern>,
    delimiter: Option<Regex>,
    emitter: Emitter,
    used_names: BTreeSet<String>,
    source: SourceState,
    /// The log of which the next source is a part, where that was rotated.
    next_log: Option<String>,
    /// What parts of such logs leave to the next, by log.
    left: VecDeque<(String, Left)>,
    /// Most bytes of a record of a document.
    record_limit: usize,
    /// Bytes of event records that are handed over together, but for the part of a line at the end.
    block: usize,
}

impl Mapper {
    /// A mapper of a mapping as it is.
    ///
    /// # Errors
    /// When the mapping means nothing; see [`Mapping::parse`].
    pub fn new(mapping: &Mapping) -> Result<Mapper, MappingError> {
        Mapper::with(mapping, Overrides::default())
    }

    /// A mapper of a mapping with what the command line says.
    ///
    /// # Errors
    /// When an expression cannot be understood, or a parser is given for a log that is no text.
    pub fn with(mapping: &Mapping, overrides: Overrides) -> Result<Mapper, MappingError> {
        let mut mapping = Cow::Borrowed(mapping);
        if overrides.wrapper.is_some() {
            mapping.to_mut().input.wrapper = overrides.wrapper;
        }
        let compiled = Compiled::new(&mapping).map_err(|e| e.of(&mapping.name))?;
        let bad = |place: &str, reason: String| MappingError::value(place, reason).of("command line");
        let pattern = match &overrides.parser {
            Some(_) if compiled.input.container != Container::Text => {
                let reason = format!("the mapping '{}' is not for text logs", mapping.name);
                return Err(bad("parser", reason));
            }
            Some(text) => Some(Pattern::new(text, compiled.input.max_lines).map_err(|e| bad("parser", e))?),
            None => None,
        };
        let delimiter = match overrides.delimiter.as_deref().filter(|t| !t.is_empty()) {
            Some(text) => Some(patterns::compile(text).map_err(|e| bad("delimiter", e))?),
            None => None,
        };
        Ok(Mapper {
            mapping: compiled,
            overrides,
            pattern,
            delimiter,
            emitter: Emitter::default(),
            used_names: BTreeSet::new(),
            source: SourceState::default(),
            next_log: None,
            left: VecDeque::new(),
            record_limit: MOST_RECORD,
            block: BLOCK,
        })
    }

    /// Takes what came of a line before its source broke, and why it broke.
    fn broken(&mut self, mut line: Line, mut bytes: &[u8], reason: String, out: &mut Vec<Unit>) {
        self.flush(out);
        let mut lines = 1;
        if self.container() == Container::Native {
            // What came of the last line is a record if it is a whole one. What is missing behind it is no line.
            lines = 0;
            if line.overlong.is_none()
                && let fate @ Fate::Row(_) = native(bytes, line.number)
            {
                let next = Line::empty(line.offset + line.length, line.number + 1);
                self.take(std::mem::replace(&mut line, next), 1, bytes.to_vec(), fate, out);
                bytes = &[];
            }
        }
        out.push(self.unit(line, lines, bytes.to_vec(), Fate::rejected("truncated", reason)));
    }

    /// Name of the mapping.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.mapping.name
    }

    /// Whether patterns and delimiter are the mapping's, nothing given besides.
    fn as_mapped(&self) -> bool {
        self.pattern.is_none() && self.delimiter.is_none()
    }

    /// Forgets what was remembered from source to source, as if nothing had been read.
    pub fn forget(&mut self) {
        self.emitter = Emitter { strict: self.emitter.strict, ..Emitter::default() };
        self.used_names.clear();
        self.left.clear();
        self.source.log = None;
    }

    /// Makes a record that has no sequence number of its own an error: for sources whose order nobody knows.
    pub fn count_nothing(&mut self) {
        self.emitter.strict = true;
    }

    /// Begins a source; `head` is its beginning, a few hundred kilobytes or all of it, to look at.
    pub fn begin(&mut self, name: &str, head: &[u8]) {
        let head = String::from_utf8_lossy(head);
        self.leave();
        let input = &self.mapping.input;
        let head = match input.wrapper {
            Some(wrapper) => Cow::Owned(wrapper.taken_off(&head)),
            None => head,
        };
        let log = self.next_log.take();
        let left = self.left.iter().find(|(other, _)| log.as_ref() == Some(other));
        let (latest, carried) = left.map(|(_, left)| left.clone()).unwrap_or_default();
        let mut source =
            SourceState { name: name.to_owned(), stem: stem(name), log, carried, ..SourceState::default() };
        source.patterns.clone_from(&self.mapping.patterns);
        if input.container == Container::Csv {
            source.separator = csv::Separator::of(&head);
        }
        source.delimiter.clone_from(&self.mapping.delimiter);
        let mut chosen = input.choose == Choose::Each;
        if input.header == Some(Header::Shiviz)
            && let Some((parser, delimiter)) = sniff::shiviz_header(&head, input.max_lines)
        {
            source.patterns = vec![parser];
            chosen = true;
            source.header.push_back(("parser expression", None));
            match delimiter {
                Ok(None) => source.header.push_back(("execution delimiter", None)),
                Ok(Some(found)) => {
                    source.delimiter = Some(found);
                    source.header.push_back(("execution delimiter", None));
                }
                Err(reason) => source.header.push_back(("execution delimiter", Some(reason))),
            }
        }
        if let Some(pattern) = &self.pattern {
            source.patterns = vec![pattern.clone()];
            chosen = true;
        }
        if self.delimiter.is_some() {
            source.delimiter.clone_from(&self.delimiter);
        }
        if !chosen && source.patterns.len() > 1 {
            source.patterns = vec![source.patterns[sniff::best(&head, &source.patterns)].clone()];
        }
        if source.delimiter.as_ref().is_some_and(|d| {
            let skip: usize = head.lines().take(source.header.len()).map(|l| l.len() + 1).sum();
            sniff::has_delimiter(head.get(skip..).unwrap_or(""), d)
        }) {
            source.number = 1;
        }
        self.source = source;
        self.emitter.latest = latest;
        self.begin_documents();
        if self.source.number == 1 {
            self.source.execution = Some(self.execution_name("1"));
        }
    }

    /// Says of which log the source is a part that is begun next: what its other parts left goes on.
    pub fn of_log(&mut self, log: String) {
        self.next_log = Some(log);
    }

    /// Whether anything of a log hangs on its earlier parts: days or years that stamps leave open, or values that are carried.
    fn leaves_something(&self) -> bool {
        !self.mapping.carry.is_empty() || needs::given_a_date(&self.mapping)
    }

    /// Notes what the source at hand leaves to the next part of its log.
    fn leave(&mut self) {
        let latest = std::mem::take(&mut self.emitter.latest);
        let leaves = self.leaves_something();
        if let Some(log) = self.source.log.take().filter(|_| leaves) {
            self.left.retain(|(other, _)| *other != log);
            self.left.push_back((log, (latest, self.source.carried.clone())));
            if self.left.len() > LOGS {
                self.left.pop_front();
            }
        }
    }

    /// Takes the next line of the source.
    pub fn line(&mut self, line: Line, bytes: &[u8], out: &mut Vec<Unit>) {
        if self.reads_documents() {
            self.document_line(&line, bytes, out);
            return;
        }
        match self.mapping.input.wrapper {
            Some(wrapper) => self.wrapped_line(wrapper, line, bytes, out),
            None => self.bare_line(line, bytes, out),
        }
    }

    /// Takes a line as a container runtime or a system logger wrote it.
    fn wrapped_line(&mut self, wrapper: Wrapper, line: Line, bytes: &[u8], out: &mut Vec<Unit>) {
        let raw = line.text(bytes);
        if line.overlong.is_some() {
            self.flush(out);
            return self.bare_line(line, bytes, out);
        }
        let fate = match std::str::from_utf8(raw) {
            Ok(text) if text.trim_ascii().is_empty() => return,
            Ok(text) => {
                let SourceState { unwrapping, name, .. } = &mut self.source;
                // What comes out of quarantine has several lines where one was cut.
                if text.split('\n').all(|text| unwrapping.add(wrapper, name, line.clone(), text)) {
                    return self.unwrap(false, out);
                }
                Fate::rejected("not_wrapped", wrapper.not_of_it())
            }
            Err(error) => Fate::rejected("not_utf8", not_utf8(raw, error)),
        };
        self.flush(out);
        out.push(self.unit(line, 1, raw.to_vec(), fate));
    }

    /// Takes the lines that are whole out of their wrapper; with `end` also those whose end did not come.
    fn unwrap(&mut self, end: bool, out: &mut Vec<Unit>) {
        while let Some(Unwrapped { line, text, values, raw, .. }) = self.source.unwrapping.next(end) {
            self.source.told = Some(values);
            self.source.wrapped.insert(line.number, raw);
            let before = out.len();
            self.bare_line(line, text.as_bytes(), out);
            self.source.told = None;
            self.wrap_again(before, out);
        }
    }

    /// Gives units the bytes that stand in the log, from that place on.
    fn wrap_again(&mut self, from: usize, out: &mut [Unit]) {
        for unit in out.iter_mut().skip(from) {
            let lines = usize::try_from(unit.lines).unwrap_or(usize::MAX);
            let numbers: Vec<u64> = self
                .source
                .wrapped
                .range(unit.line.number..)
                .take(lines)
                .map(|(number, _)| *number)
                .collect();
            let lines = numbers.iter().filter_map(|number| self.source.wrapped.remove(number));
            let raw = lines.collect::<Vec<_>>().join(&b'\n');
            if !raw.is_empty() {
                unit.raw = raw;
            }
        }
        if self.source.pending.is_empty() && self.source.held.is_empty() {
            self.source.wrapped.clear();
        }
    }

    /// Lets templates know what the wrapper says of the record at hand.
    fn tell(&mut self, told: Option<BTreeMap<String, String>>) {
        let Some(told) = told else { return };
        let carried = Arc::make_mut(&mut self.source.carried);
        VALUES.iter().for_each(|name| drop(carried.remove(*name)));
        carried.extend(told);
    }

    /// Keeps a line that may be a part of a record.
    fn keep(&mut self, line: Line, bytes: &[u8]) {
        self.source.pending_bytes += bytes.len() + 1;
        self.source.pending.push_back((line, bytes.to_vec()));
        self.source.pending_told.extend(self.source.told.take());
    }

    /// Takes a line of a program.
    fn bare_line(&mut self, line: Line, bytes: &[u8], out: &mut Vec<Unit>) {
        let bytes = line.text(bytes);
        if line.overlong.is_some() {
            self.settle(out);
            let reason = line.too_long(self.record_limit, bytes.len());
            out.push(self.unit(line, 1, bytes.to_vec(), Fate::rejected("too_long", reason)));
            return;
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            // The lines of its record belong to it: what is no text is found when they are together.
            Err(_) if self.mapping.input.container == Container::Text && !self.in_header() => {
                String::from_utf8_lossy(bytes)
            }
            Err(_) if self.container() == Container::Native => {
                let fate = native(bytes, line.number);
                return self.take(line, 1, bytes.to_vec(), fate, out);
            }
            Err(error) => {
                let reason = not_utf8(bytes, error);
                self.settle(out);
                out.push(self.unit(line, 1, bytes.to_vec(), Fate::rejected("not_utf8", reason)));
                return;
            }
        };
        if let Some(found) = self.carries_line(&text) {
            self.settle(out);
            let carried = Arc::make_mut(&mut self.source.carried);
            carried.extend(found);
            // Behind a heading another log begins, which may go back to the first day.
            self.emitter.latest = Latest::default();
            out.push(self.unit(line, 1, bytes.to_vec(), Fate::LeftOut("it holds for the lines behind it")));
            return;
        }
        let is_text = matches!(text, Cow::Borrowed(_));
        let text = text.as_ref();
        if let Some((what, problem)) = self.source.header.pop_front() {
            if problem.is_some() || !text.trim_ascii().is_empty() {
                let fate = problem.map_or(Fate::LeftOut(what), |p| {
                    Fate::rejected("header", format!("the {what} of the file: {p}"))
                });
                out.push(self.unit(line, 1, bytes.to_vec(), fate));
            }
            return;
        }
        if let Some(found) = self.source.delimiter.as_ref().and_then(|d| d.captures(text)) {
            let label = found.name("trace").map(|m| m.as_str().to_owned());
            self.finish_execution(out);
            self.next_execution(label);
            out.push(self.unit(line, 1, bytes.to_vec(), Fate::LeftOut("execution delimiter")));
            return;
        }
        if self.mapping.input.container == Container::Text {
            let single = self.mapping.start.is_none() && self.source.patterns.iter().all(|p| p.lines == 1);
            if single && self.source.pending.is_empty() && is_text {
                self.single(line, bytes, text, out);
                return;
            }
            let begins = self.mapping.start.as_ref().is_some_and(|s| s.is_match(text));
            let full = self.source.pending.len() >= self.mapping.input.max_lines
                || self.source.pending_bytes + bytes.len() > MOST_RECORD;
            if self.mapping.start.is_some() && (begins || full) {
                self.drain(true, out);
            }
            self.keep(line, bytes);
            if self.mapping.start.is_none() {
                self.drain(false, out);
            }
            return;
        }
        if self.mapping.input.container == Container::Csv {
            return self.csv_line(line, bytes, text, out);
        }
        self.whole_line(line, bytes, text, out);
    }

    /// Takes a line that is a record.
    fn whole_line(&mut self, line: Line, bytes: &[u8], text: &str, out: &mut Vec<Unit>) {
        if text.trim_ascii().is_empty() {
            return;
        }
        let told = self.source.told.take();
        self.tell(told);
        let fate = self.decode(text, line.number);
        self.take(line, 1, bytes.to_vec(), fate, out);
    }

    /// Takes a line of comma-separated values, which may be a part of a record.
    fn csv_line(&mut self, line: Line, bytes: &[u8], text: &str, out: &mut Vec<Unit>) {
        let inside = !self.source.pending.is_empty();
        let ending = csv::ending(text, inside, self.source.separator);
        if !inside && ending != csv::Ending::Open {
            return self.whole_line(line, bytes, text, out);
        }
        self.keep(line, bytes);
        let lines = self.source.pending.len();
        match ending {
            csv::Ending::Open
                if lines < self.mapping.input.max_lines && self.source.pending_bytes <= MOST_RECORD => {}
            csv::Ending::Whole => {
                let (line, raw) = self.pop(lines);
                let text = String::from_utf8_lossy(&raw).into_owned();
                let fate = self.decode(&text, line.number);
                self.take(line, lines as u64, raw, fate, out);
            }
            csv::Ending::Open | csv::Ending::Broken => self.flush_csv(out),
        }
    }

    /// Deals with lines of a quoted field that does not end: the first is no record, and each of the others may be one.
    fn flush_csv(&mut self, out: &mut Vec<Unit>) {
        let mut pending = std::mem::take(&mut self.source.pending).into_iter();
        let mut told = std::mem::take(&mut self.source.pending_told).into_iter();
        self.source.pending_bytes = 0;
        if let Some((line, bytes)) = pending.next() {
            let _ = told.next();
            let fate = Fate::rejected("not_csv", "a quoted field in it does not end");
            out.push(self.unit(line, 1, bytes, fate));
        }
        for (line, bytes) in pending {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            self.source.told = told.next();
            self.whole_line(line, &bytes, &text, out);
        }
    }

    /// A unit of the execution being read.
    fn unit(&mut self, line: Line, lines: u64, raw: Vec<u8>, fate: Fate<Events>) -> Unit {
        self.lose(&fate);
        Unit { line, lines, raw, execution: self.source.execution.clone(), fate }
    }

    /// Remembers that a record became no event.
    fn lose(&mut self, fate: &Fate<Events>) {
        if matches!(fate, Fate::Quarantined(_)) {
            self.emitter.links.lose();
        }
    }

    /// Ends the source.
    pub fn end(&mut self, out: &mut Vec<Unit>) {
        self.end_bytes(&mut |unit| out.push(unit));
        self.unwrap(true, out);
        let before = out.len();
        self.finish_execution(out);
        self.wrap_again(before, out);
    }

    fn decode<'a>(&mut self, text: &'a str, number: u64) -> Fate<Decoded<'a>> {
        let skipped = self.mapping.skip.iter().any(|s| s.is_match(text));
        match self.mapping.input.container {
            _ if skipped => SKIPPED,
            Container::Native => native(text.as_bytes(), number),
            Container::JsonLines => json_line(text.trim()),
            Container::Logfmt => logfmt::line(text),
            Container::Csv => match &self.source.columns {
                Some(columns) => csv::line(columns, self.source.separator, text),
                None if csv::Separator::told(text).is_some() => Fate::LeftOut("it names the separator"),
                None => match csv::fields(text, self.source.separator) {
                    Ok(columns) => {
                        let columns: Vec<String> =
                            columns.iter().map(|name| name.trim().to_owned()).collect();
                        self.source.columns = Some(columns.into());
                        Fate::LeftOut("header")
                    }
                    Err(reason) => Fate::rejected("not_csv", reason),
                },
            },
            _ => Fate::LeftOut("not used"),
        }
    }

    /// Makes a unit of what a decoder made of lines.
    fn take(&mut self, line: Line, lines: u64, raw: Vec<u8>, fate: Fate<Decoded<'_>>, out: &mut Vec<Unit>) {
        let fate = match fate {
            Fate::LeftOut(why) => Fate::LeftOut(why),
            Fate::Quarantined(why) => Fate::Quarantined(why),
            Fate::Row(Decoded::Events(events)) => Fate::Row(events),
            Fate::Row(Decoded::Record(record)) => {
                self.source.begun = true;
                self.carry(&record);
                let carried = Arc::clone(&self.source.carried);
                let deduces = self.mapping.clock.as_ref().is_some_and(|(_, c)| c.deduce_host);
                if !deduces && !self.mapping.input.newest_first {
                    let (execution, fate) = self.events(&line, &raw, &record, &carried, None);
                    out.push(Unit { line, lines, raw, execution, fate });
                    return;
                }
                self.source.held_bytes += raw.len() * 2 + 200;
                if self.source.held_bytes <= MOST_HELD {
                    let record = record.into_owned();
                    self.source.held.push(Held { line, lines, raw, record, carried });
                    return;
                }
                let what =
                    if deduces { "its hosts cannot be deduced" } else { "it cannot be read from its end" };
                Fate::rejected("too_long", format!("the execution is more than {MOST_HELD} bytes; {what}"))
            }
        };
        out.push(self.unit(line, lines, raw, fate));
    }

    /// The values that a line holds for those behind it, if it is one that does.
    fn carries_line(&self, text: &str) -> Option<BTreeMap<String, String>> {
        let text = text.strip_suffix('\r').unwrap_or(text);
        let found = self
            .mapping
            .carry
            .iter()
            .filter_map(|carry| carry.line.as_ref())
            .find(|line| line.is_match(text))?;
        let mut values = BTreeMap::new();
        each_group(found, text, |name, value| drop(values.insert(name.to_owned(), value.to_owned())));
        Some(values)
    }

    /// Takes the values that a record holds for itself and those behind it.
    fn carry(&mut self, record: &Record<'_>) {
        for carry in self.mapping.carry.iter().filter(|carry| carry.line.is_none()) {
            let before = Arc::clone(&self.source.carried);
            let mut groups = Vec::new();
            let scope = Scope { carried: Some(&before), ..Scope::of(record) };
            if !holds(&carry.when, &[], &scope, &mut groups) {
                continue;
            }
            let scope = Scope { groups: &groups, ..scope };
            let mut values: Vec<(String, String)> = Vec::new();
            for (name, template) in &carry.set {
                // A value that cannot be made is none: the record's own templates say why.
                values.extend(template.text(&scope).ok().flatten().map(|value| (name.clone(), value)));
            }
            values
                .extend(groups.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into_owned())));
            if !values.is_empty() {
                Arc::make_mut(&mut self.source.carried).extend(values);
            }
        }
    }

    /// The events of a record.
    fn events(
        &mut self,
        line: &Line,
        raw: &[u8],
        record: &Record<'_>,
        carried: &BTreeMap<String, String>,
        host: Option<(&str, &[String])>,
    ) -> (Option<String>, Fate<Events>) {
        let execution = match &self.mapping.label {
            None => self.source.execution.clone(),
            Some(label) => {
                let scope = Scope { carried: Some(carried), ..Scope::of(record) };
                match label.text(&scope) {
                    Ok(label) => label.or_else(|| self.source.execution.clone()),
                    Err(reason) => {
                        return (self.source.execution.clone(), Fate::rejected("rule", reason));
                    }
                }
            }
        };
        let place = Place {
            source: &self.source.name,
            log: self.source.log.as_ref().unwrap_or(&self.source.name),
            stem: &self.source.stem,
            line: line.number,
            offset: line.offset,
            execution: execution.as_deref().unwrap_or(""),
            host: host.map(|h| h.0),
            hosts: host.map(|h| h.1),
            raw,
            carried,
        };
        let fate = self.emitter.emit(&self.mapping, record, &place);
        self.lose(&fate);
        (execution, fate)
    }
}

/// Finding the records of a text log in its lines.
impl Mapper {
    /// Takes a line where each record is one: nothing is kept for later.
    fn single(&mut self, mut line: Line, bytes: &[u8], text: &str, out: &mut Vec<Unit>) {
        line.length = bytes.len() as u64;
        let told = self.source.told.take();
        self.tell(told);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let found = self.source.patterns.iter_mut().find_map(|p| p.find(Cow::Borrowed(text)));
        let decoded = match found {
            Some(groups) => Fate::Row(Decoded::Record(Record::Parts(groups))),
            None if text.trim_ascii().is_empty() => return,
            None => self.not_found(text),
        };
        self.take(line, 1, bytes.to_vec(), decoded, out);
    }

    /// What becomes of text in which no pattern is found.
    fn not_found(&self, text: &str) -> Fate<Decoded<'static>> {
        if self.mapping.skip.iter().any(|s| s.is_match(text)) {
            return SKIPPED;
        }
        let reason = match self.source.patterns.len() {
            1 => "the pattern is not found in this line".to_owned(),
            n => format!("none of the {n} patterns is found in this line"),
        };
        Fate::rejected("no_match", reason)
    }

    /// Finds records at the front of the pending lines; with `end` all of them are dealt with.
    fn drain(&mut self, end: bool, out: &mut Vec<Unit>) {
        let by_start = self.mapping.start.is_some();
        let span = self.source.patterns.iter().map(|p| p.lines).max().unwrap_or(1);
        while !self.source.pending.is_empty() && (end || self.source.pending.len() >= span) {
            let available = self.source.pending.len();
            let mut found = None;
            for i in 0..self.source.patterns.len() {
                let wanted = self.source.patterns[i].lines;
                let lines = if by_start { available } else { wanted.min(available) };
                // At the end of a file that ends in a line feed the last line of a record may be empty.
                let short = !by_start && lines + 1 == wanted;
                if !by_start && lines < wanted && !short {
                    continue;
                }
                let mut text = self.joined(lines, true);
                if short {
                    text.push(b'\n');
                }
                let text = String::from_utf8(text)
                    .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
                if let Some(groups) = self.source.patterns[i].find(Cow::Owned(text)) {
                    found = Some((lines, Record::Parts(groups)));
                    break;
                }
            }
            match found {
                Some((lines, record)) => {
                    let (line, raw) = self.pop(lines);
                    let decoded = match std::str::from_utf8(&raw) {
                        Ok(_) => Fate::Row(Decoded::Record(record)),
                        Err(error) => Fate::rejected("not_utf8", not_utf8(&raw, error)),
                    };
                    self.take(line, lines as u64, raw, decoded, out);
                }
                None => {
                    let lines = if by_start { available } else { 1 };
                    let (line, raw) = self.pop(lines);
                    let text = String::from_utf8_lossy(&raw);
                    if text.trim_ascii().is_empty() {
                        continue;
                    }
                    let decoded = match (self.not_found(&text), std::str::from_utf8(&raw)) {
                        (Fate::Quarantined(_), Err(error)) => {
                            Fate::rejected("not_utf8", not_utf8(&raw, error))
                        }
                        (decoded, _) => decoded,
                    };
                    self.take(line, lines as u64, raw, decoded, out);
                }
            }
        }
    }

    fn joined(&self, lines: usize, without_cr: bool) -> Vec<u8> {
        let mut text = Vec::new();
        for (i, (_, bytes)) in self.source.pending.iter().take(lines).enumerate() {
            if i > 0 {
                text.push(b'\n');
            }
            let bytes = if without_cr { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
            text.extend_from_slice(bytes);
        }
        text
    }

    /// Takes lines off the front; as one line, with their bytes.
    fn pop(&mut self, lines: usize) -> (Line, Vec<u8>) {
        let raw = self.joined(lines, false);
        let first = self.source.pending.front().map(|(line, _)| line.clone());
        let told = self.source.pending_told.len().min(lines);
        let told = self.source.pending_told.drain(..told).next();
        self.tell(told);
        for (_, bytes) in self.source.pending.drain(..lines) {
            self.source.pending_bytes = self.source.pending_bytes.saturating_sub(bytes.len() + 1);
        }
        let mut line =
            first.unwrap_or(Line { offset: 0, number: 0, length: 0, terminated: false, overlong: None });
        line.length = raw.len() as u64;
        (line, raw)
    }

    /// Deals with pending lines as at an end, also with those that were cut.
    pub fn flush(&mut self, out: &mut Vec<Unit>) {
        self.unwrap(true, out);
        let before = out.len();
        self.settle(out);
        self.wrap_again(before, out);
    }

    /// Deals with pending lines as at an end.
    fn settle(&mut self, out: &mut Vec<Unit>) {
        match self.mapping.input.container {
            Container::Csv => self.flush_csv(out),
            _ => self.drain(true, out),
        }
    }
}

/// Sources that are documents: JSON, EDN, XML, OTLP, Zipkin and Jaeger.
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
    fn begin_documents(&mut self) {
        let input = &self.mapping.input;
        let options = OtlpOptions { actor_by: input.actor_by.clone(), responses: false };
        let documents = Documents::new(input.container, input.records.as_deref(), options, self.record_limit);
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
    fn document_line(&mut self, line: &Line, bytes: &[u8], out: &mut Vec<Unit>) {
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

/// Several executions in one source: their names, and the hosts that are deduced from all clocks of one.
impl Mapper {
    /// Ends the execution being read: what was held becomes events.
    fn finish_execution(&mut self, out: &mut Vec<Unit>) {
        self.settle(out);
        let mut held = std::mem::take(&mut self.source.held);
        self.source.held_bytes = 0;
        if held.is_empty() {
            return;
        }
        if self.mapping.input.newest_first {
            held.reverse();
        }
        if !self.mapping.clock.as_ref().is_some_and(|(_, clock)| clock.deduce_host) {
            for Held { line, lines, raw, record, carried } in held {
                let (execution, fate) = self.events(&line, &raw, &record, &carried, None);
                out.push(Unit { line, lines, raw, execution, fate });
            }
            return;
        }
        let arrays: Vec<Result<Vec<u64>, String>> =
            held.iter().map(|h| clock_array(&self.mapping, &h.record)).collect();
        let good: Vec<&[u64]> = arrays.iter().flatten().map(Vec::as_slice).collect();
        let mut deduced = deduce::hosts(&good).into_iter();
        let hosts: Vec<Result<usize, String>> = arrays
            .iter()
            .map(|array| match array {
                Ok(_) => deduced.next().unwrap_or_else(|| Err("the host is not known".into())),
                Err(reason) => Err(reason.clone()),
            })
            .collect();
        let (names, clashes) = self.names_of_entries(&held, &hosts);
        for ((held, host), clash) in held.into_iter().zip(hosts).zip(clashes) {
            let (execution, fate) = match (host, clash) {
                (Ok(index), None) => {
                    let name = names.get(index).cloned().unwrap_or_default();
                    self.events(&held.line, &held.raw, &held.record, &held.carried, Some((&name, &names)))
                }
                (Err(reason), _) | (Ok(_), Some(reason)) => {
                    (self.source.execution.clone(), Fate::rejected("clock", reason))
                }
            };
            out.push(Unit { line: held.line, lines: held.lines, raw: held.raw, execution, fate });
        }
    }

    /// The name of each entry of the clocks, and by record why its name cannot be.
    fn names_of_entries(
        &self,
        held: &[Held],
        hosts: &[Result<usize, String>],
    ) -> (Vec<String>, Vec<Option<String>>) {
        let width = hosts.iter().flatten().max().map_or(0, |&i| i + 1);
        let mut written: Vec<Option<String>> = vec![None; width];
        let mut clashes = vec![None; held.len()];
        for (i, (held, host)) in held.iter().zip(hosts).enumerate() {
            let (Ok(index), Some(name)) = (host, host_name(&self.mapping, &held.record)) else { continue };
            match &written[*index] {
                None => written[*index] = Some(name),
                Some(before) if *before != name => {
                    clashes[i] = Some(format!(
                        "by its clock this is an event of '{before}', entry {} of the clocks, and the log says '{name}'",
                        index + 1
                    ));
                }
                Some(_) => {}
            }
        }
        let by_number =
            |i: usize| self.mapping.clock.as_ref().map_or_else(String::new, |(_, c)| clocks::host(c, i));
        let names = written.into_iter().enumerate().map(|(i, w)| w.unwrap_or_else(|| by_number(i)));
        (names.collect(), clashes)
    }

    /// Begins the execution behind a delimiter.
    fn next_execution(&mut self, label: Option<String>) {
        if self.source.begun || self.source.number == 0 {
            self.source.number += 1;
        }
        if self.source.begun && self.source.number == 1 {
            // What came before the first delimiter was the first execution, though nothing said so.
            self.source.number = 2;
        }
        self.source.begun = false;
        let label = label.filter(|l| !l.trim().is_empty()).unwrap_or_else(|| self.source.number.to_string());
        self.source.execution = Some(self.execution_name(&label));
    }

    /// A name for an execution, unlike all given before.
    fn execution_name(&mut self, label: &str) -> String {
        let label = if self.overrides.several {
            format!("{}/{label}", self.source.name.rsplit('/').next().unwrap_or(""))
        } else {
            label.to_owned()
        };
        let mut name = label.clone();
        let mut again = 2;
        while self.used_names.contains(&name) {
            name = format!("{label} ({again})");
            again += 1;
        }
        self.used_names.insert(name.clone());
        name
    }
}

/// What becomes of a line that holds an event record.
fn native(bytes: &[u8], number: u64) -> Fate<Decoded<'static>> {
    let events = |mut record: EventRecord| {
        record.line = Some(number);
        Decoded::Events(Events { records: vec![record], warnings: Vec::new() })
    };
    EventRecord::parse(bytes).map(events).into()
}

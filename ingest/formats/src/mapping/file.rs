//! A mapping file: its types, and reading it.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::error::MappingError;
use super::seq::Seq;
use super::shape::Shape;
use super::shipped::shipped;
use super::stamp::Time;
use super::wrapper::Wrapper;
use crate::container::Container;

/// A mapping file. Texts in braces are templates: `{host}` is the value of that name in the record, `{event.msg.to}` goes
/// into JSON, `{a|b|'c'}` takes the first there is (a quoted one is a constant), `{x!json}` applies a filter.
/// A name that begins with `@` is known without the record: `{@line}`, `{@offset}`, `{@file}`, `{@stem}`,
/// `{@execution}`, `{@raw}`, and with vector clocks `{@clock.HOST}`. `{.}` is the whole record.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Name of the format.
    pub name: String,
    /// One line for people: which logs these are.
    pub description: String,
    /// What the file is made of.
    pub input: Input,
    /// Where one execution ends and the next begins; without it a file is part of one execution.
    #[serde(default)]
    pub execution: Execution,
    /// The vector clocks, if there are any.
    #[serde(default)]
    pub clock: Option<Clock>,
    /// Operations with a beginning and an end, for histories whose order is that of real time.
    #[serde(default)]
    pub real_time: Option<RealTime>,
    /// Values that hold for the records behind the one that says them, until another says others.
    #[serde(default)]
    pub carry: Vec<Carry>,
    /// What every event gets.
    #[serde(default)]
    pub event: Fields,
    /// What some events get: the first rule whose conditions hold is the one that counts.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Which of several patterns is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// Each record is tried with all, in their order.
    #[default]
    Each,
    /// One for the whole file: the one that explains most lines of its beginning, the first of equals.
    Best,
}

/// What the first lines of a file may say of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// As ShiViz reads it: line 1 is the parser's regular expression, line 2 the execution delimiter or empty. A first line
    /// that has no named group `event`, `host` or `clock` is no header.
    Shiviz,
}

/// `[input]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// What the file is made of.
    pub container: Container,
    /// How the text is encoded where it is not UTF-8: a name of the Encoding Standard such as `windows-1252` or `utf-16`, or
    /// `lossy` for UTF-8 in which bad bytes become U+FFFD. Offsets then count decoded bytes.
    #[serde(default)]
    pub encoding: Option<String>,
    /// What a container runtime or a system logger wrote around each line; it is taken off, and lines that were cut are joined again. Templates know
    /// what it says as `{wrapper_time}`, `{wrapper_name}` (pod, service, program), `{wrapper_stream}`, `{wrapper_host}` and `{wrapper_pid}`.
    #[serde(default)]
    pub wrapper: Option<Wrapper>,
    /// For `text`: regular expressions whose named groups are the record. A pattern with `\n` spans that many more
    /// lines. JavaScript's expressions are understood where they do without look-around and back-references.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Which of several patterns is used.
    #[serde(default)]
    pub choose: Choose,
    /// What the first lines may say.
    #[serde(default)]
    pub header: Option<Header>,
    /// For `text`: a regular expression for the first line of a record; the lines up to the next one belong to it.
    #[serde(default)]
    pub start: Option<String>,
    /// The newest record stands first, as in many exports: each source is read to its end, and its records are taken from the last one on.
    #[serde(default)]
    pub newest_first: bool,
    /// Most lines of one record; default 1000.
    #[serde(default = "max_lines")]
    pub max_lines: usize,
    /// Regular expressions for lines that hold no record: comments, banners. Empty lines never do.
    #[serde(default)]
    pub skip: Vec<String>,
    /// For `json`: where in a document the array of records is, as a JSON pointer. For `xml`: the path of the elements that are records, as
    /// `/log/entry`.
    #[serde(default)]
    pub records: Option<String>,
    /// For `otlp`, `jaeger` and `zipkin`: attributes whose values, joined by `/`, name the actor. Absent: the service and its instance, pod, container or host;
    /// for `zipkin` the service alone.
    #[serde(default)]
    pub actor_by: Option<Vec<String>>,
}

fn max_lines() -> usize {
    1000
}

/// `[execution]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// A regular expression for the line between two executions; its group `trace`, if there is one, names the one that begins.
    #[serde(default)]
    pub delimiter: Option<String>,
    /// A template that names the execution of each record.
    #[serde(default)]
    pub label: Option<String>,
}

/// When a host counts its own entry up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ticks {
    /// At each event: the own entry is the event's sequence number.
    #[default]
    Every,
    /// Not at each event: events may repeat the clock of the one before. Sequence numbers are counted.
    Some,
}

/// `[clock]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// A template for the clock: an object of counts by host, or an array of counts (`[1,0,2]` or `1,0,2`).
    pub value: String,
    /// For arrays: the names of the hosts, in the order of the entries. Without it they are `p0`, `p1` and so on.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// For arrays without `hosts`: number of the first host.
    #[serde(default)]
    pub first: u64,
    /// The log does not say which host a clock belongs to. It is found from the clocks, since a host is the first to know
    /// of its own event. For that a whole execution is held in memory.
    #[serde(default)]
    pub deduce_host: bool,
    /// With `deduce_host`: a template for the host's name where the log has it; which entry is its own is deduced.
    #[serde(default)]
    pub name: Option<String>,
    /// When a host counts its own entry up.
    #[serde(default)]
    pub ticks: Ticks,
}

/// `[real_time]`: an operation precedes those that begin after its end (M. Herlihy and J. Wing, TOPLAS 12(3), 1990). Only for
/// logs that one recorder wrote in order; the order becomes vector clocks.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealTime {
    /// A template for what tells beginnings from ends.
    pub phase: String,
    /// A regular expression for beginnings.
    pub begins: String,
    /// A regular expression for ends. An operation that is neither known to have ended precedes nothing.
    pub ends: String,
}

/// How the sends and receives of equal keys are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkOrder {
    /// A receive is of the earliest send before it in the log that has no receive yet. For logs in which one recorder wrote
    /// everything in order.
    Earlier,
    /// The n-th receive is of the n-th send, wherever the two stand. For logs without loss.
    Count,
}

/// How a message id is made where the log has none.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Templates: a send and a receive are of one message only if these are equal.
    pub key: Vec<String>,
    /// Which of several.
    pub order: LinkOrder,
}

/// Templates for the fields of an event. What has no value is left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// Kind of the event; `local` by default.
    #[serde(default)]
    pub kind: Option<String>,
    /// Who; needed.
    #[serde(default)]
    pub actor: Option<String>,
    /// Which incarnation.
    #[serde(default)]
    pub incarnation: Option<String>,
    /// Sequence number in the actor's own log. Without it: the own entry of the vector clock, or else counted over the files of
    /// one load.
    #[serde(default)]
    pub seq: Option<Seq>,
    /// Message id.
    #[serde(default)]
    pub msg_id: Option<String>,
    /// How a message id is made where the log has none.
    #[serde(default)]
    pub link: Option<Link>,
    /// Sender.
    #[serde(default)]
    pub from: Option<String>,
    /// Receiver.
    #[serde(default)]
    pub to: Option<String>,
    /// `forward`, `scheduler`, `thread` or `ask`.
    #[serde(default)]
    pub via: Option<String>,
    /// Message type.
    #[serde(default, rename = "type")]
    pub type_: Option<String>,
    /// Content.
    #[serde(default)]
    pub payload: Option<String>,
    /// What decides whether two messages are the same.
    #[serde(default)]
    pub fingerprint: Option<String>,
    /// `true` where the message came from outside.
    #[serde(default)]
    pub external: Option<String>,
    /// Structured content.
    #[serde(default)]
    pub fields: Option<Shape>,
    /// The actor's variables.
    #[serde(default)]
    pub state: Option<Shape>,
    /// Wall-clock time as logged.
    #[serde(default)]
    pub time: Option<Time>,
    /// Name of a list, or of an object: one event is made for each of its elements, which is `{@each}` in the other templates; `{@key}` is
    /// its place from 0, or its name.
    #[serde(default)]
    pub each: Option<String>,
}

/// `[[carry]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Carry {
    /// A regular expression for a line that is no record, such as a heading. Its named groups hold from there on.
    #[serde(default)]
    pub line: Option<String>,
    /// As in `[[rule]]`: for records. The named groups of its expressions hold from this record on.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Templates for values by name, which hold from this record on.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// `[[rule]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Regular expressions by name (as in templates, without braces; of `a|b` the first that has a value); all must be found in their values.
    /// Named groups of these expressions can be used in the rule's templates.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    /// Names that must have no value.
    #[serde(default)]
    pub absent: Vec<String>,
    /// The record is no event.
    #[serde(default)]
    pub skip: bool,
    /// The events of the record, each over what `[event]` says; one like `[event]` where there is none.
    #[serde(default)]
    pub emit: Vec<Fields>,
}

impl Mapping {
    /// Reads a mapping from TOML.
    ///
    /// # Errors
    /// When the text is no TOML, has a key that no mapping has, or a value of the wrong type; the message names line
    /// and column, and the nearest known key.
    pub fn parse(text: &str, origin: &str) -> Result<Mapping, MappingError> {
        let mapping: Mapping = toml::from_str(text).map_err(|e| MappingError::file(origin, text, &e))?;
        super::compile::Compiled::new(&mapping).map_err(|e| e.of(origin))?;
        Ok(mapping)
    }

    /// Reads a mapping file.
    ///
    /// # Errors
    /// As [`Mapping::parse`], and when the file cannot be read.
    pub fn read(path: &Path) -> Result<Mapping, MappingError> {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| MappingError::Read { path: origin.clone(), source })?;
        Mapping::parse(&text, &origin)
    }

    /// A mapping that comes with the program.
    ///
    /// # Errors
    /// When there is none of that name; the message names the nearest.
    pub fn named(name: &str) -> Result<Mapping, MappingError> {
        match shipped().iter().find(|s| s.name == name) {
            Some(found) => Mapping::parse(found.text, found.name),
            None => Err(MappingError::unknown_name(name)),
        }
    }

    /// A shipped mapping by its name, or a file by its path: what has a slash or ends in `.toml` is a path.
    ///
    /// # Errors
    /// As [`Mapping::named`] and [`Mapping::read`].
    pub fn find(name_or_path: &str) -> Result<Mapping, MappingError> {
        if name_or_path.contains(['/', '\\']) || name_or_path.ends_with(".toml") {
            return Mapping::read(Path::new(name_or_path));
        }
        Mapping::named(name_or_path)
    }
}

//! What container runtimes and system loggers write around the lines of a program: it is taken off, and lines that were cut are joined again.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::read::lines::Line;

/// What stands around each line of a program's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wrapper {
    /// As containerd and CRI-O write `/var/log/containers` and `/var/log/pods`: `2024-05-01T10:00:00.123456789Z stdout F text`.
    Cri,
    /// As Docker's `json-file` driver writes it: `{"log":"text\n","stream":"stdout","time":"2024-05-01T10:00:00.123456789Z"}`.
    Docker,
    /// As `docker compose logs` prints it: `web-1  | text`.
    Compose,
    /// As `kubectl logs --prefix` prints it: `[pod/web-0/server] text`.
    Kubectl,
    /// As `journalctl -o json` prints it.
    Journal,
    /// As syslog daemons write it: `May  1 10:00:00 host program[17]: text`, the same with an ISO time, and RFC 5424.
    Syslog,
}

/// All of them by name, as they are written in a mapping.
const EACH: [(&str, Wrapper); 6] = [
    ("cri", Wrapper::Cri),
    ("docker", Wrapper::Docker),
    ("compose", Wrapper::Compose),
    ("kubectl", Wrapper::Kubectl),
    ("journal", Wrapper::Journal),
    ("syslog", Wrapper::Syslog),
];

/// A name that is no wrapper's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown wrapper '{0}'; known are cri, docker, compose, kubectl, journal and syslog")]
pub struct UnknownWrapper(String);

impl FromStr for Wrapper {
    type Err = UnknownWrapper;

    fn from_str(name: &str) -> Result<Self, UnknownWrapper> {
        let found = EACH.iter().find(|(known, _)| *known == name);
        found.map(|(_, wrapper)| *wrapper).ok_or_else(|| UnknownWrapper(name.to_owned()))
    }
}

/// What was inside of a line, and what the wrapper says of it.
#[derive(Debug, Default, PartialEq)]
struct Inner<'a> {
    text: Cow<'a, str>,
    /// Whether the line was cut, and the next one of this stream goes on.
    goes_on: bool,
    time: Cow<'a, str>,
    /// Who wrote it, as far as the wrapper knows: the pod, the service, the program.
    name: Cow<'a, str>,
    stream: Cow<'a, str>,
    host: Cow<'a, str>,
    pid: Cow<'a, str>,
}

/// Most bytes of lines that wait for the end of one that was cut.
const MOST_WAITING: usize = 16 << 20;
/// Most such lines.
const MOST_LINES: usize = 10_000;

impl Wrapper {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        EACH.iter().find(|(_, wrapper)| *wrapper == self).map_or("", |(name, _)| name)
    }

    /// What its lines look like.
    fn looks(self) -> &'static str {
        match self {
            Wrapper::Cri => "TIME stdout|stderr F|P TEXT",
            Wrapper::Docker => "{\"log\": TEXT, \"stream\": .., \"time\": ..}",
            Wrapper::Compose => "SERVICE-1  | TEXT",
            Wrapper::Kubectl => "[pod/POD/CONTAINER] TEXT",
            Wrapper::Journal => "a JSON object with MESSAGE",
            Wrapper::Syslog => "TIME HOST PROGRAM[PID]: TEXT",
        }
    }

    /// Why a line is no line of it.
    pub(crate) fn not_of_it(self) -> String {
        format!("the line is not as the wrapper '{}' writes it: {}", self.name(), self.looks())
    }

    /// The wrapper around the lines of a text, where all of the first few have one.
    pub(crate) fn around(text: &str) -> Option<Wrapper> {
        let lines = || text.lines().filter(|line| !line.trim_ascii().is_empty()).take(5);
        lines().next()?;
        // The others look like what many a program writes itself.
        let known = [Wrapper::Cri, Wrapper::Docker, Wrapper::Kubectl, Wrapper::Journal];
        known.into_iter().find(|wrapper| lines().all(|line| wrapper.open(line).is_some()))
    }

    /// The text with its wrappers taken off, for who looks at its beginning.
    pub(crate) fn taken_off(self, text: &str) -> String {
        let inner = |line| self.open(line).map_or(Cow::Borrowed(line), |inner| inner.text);
        let mut bare = String::with_capacity(text.len());
        text.lines().for_each(|line| {
            bare.push_str(&inner(line));
            bare.push('\n');
        });
        bare
    }

    /// What is inside of a line.
    fn open(self, line: &str) -> Option<Inner<'_>> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match self {
            Wrapper::Cri => cri(line),
            Wrapper::Docker => docker(line),
            Wrapper::Compose => compose(line),
            Wrapper::Kubectl => kubectl(line),
            Wrapper::Journal => journal(line),
            Wrapper::Syslog => syslog_5424(line).or_else(|| syslog_3164(line)),
        }
    }
}

fn cri(line: &str) -> Option<Inner<'_>> {
    let (time, rest) = line.split_once(' ')?;
    let (stream, rest) = rest.split_once(' ')?;
    let (tags, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let tag = tags.split(':').next()?;
    let fits = matches!(stream, "stdout" | "stderr") && matches!(tag, "F" | "P");
    demi_common::time::utc(time).filter(|_| fits)?;
    Some(Inner {
        text: text.into(),
        goes_on: tag == "P",
        time: time.into(),
        stream: stream.into(),
        ..Inner::default()
    })
}

/// The members of a JSON object.
fn object(line: &str) -> Option<Map<String, Value>> {
    if !line.trim_ascii_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(line).ok()
}

fn taken(object: &mut Map<String, Value>, name: &str) -> Option<String> {
    match object.remove(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

fn docker(line: &str) -> Option<Inner<'static>> {
    let mut object = object(line)?;
    let mut text = taken(&mut object, "log")?;
    let ends = text.ends_with('\n');
    if ends {
        text.pop();
    }
    let (time, stream) = (taken(&mut object, "time"), taken(&mut object, "stream"));
    if time.is_none() && stream.is_none() {
        return None;
    }
    Some(Inner {
        text: text.into(),
        goes_on: !ends,
        time: time.unwrap_or_default().into(),
        stream: stream.unwrap_or_default().into(),
        ..Inner::default()
    })
}

/// A line without the colours that terminals show.
fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains('\x1b') {
        return line.into();
    }
    let mut bare = String::with_capacity(line.len());
    let mut parts = line.split("\x1b[");
    bare.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        bare.push_str(&part[end..]);
    }
    bare.into()
}

fn compose(line: &str) -> Option<Inner<'_>> {
    let (name, text) = line.split_once('|')?;
    let name = without_colours(name);
    let name = name.trim_ascii();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    // The colour ends behind the bar.
    let text = text.strip_prefix("\x1b[0m").unwrap_or(text);
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some(Inner { text: text.into(), name: name.to_owned().into(), ..Inner::default() })
}

fn kubectl(line: &str) -> Option<Inner<'_>> {
    let (prefix, text) = line.strip_prefix("[pod/")?.split_once(']')?;
    let (pod, container) = prefix.split_once('/')?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some(Inner { text: text.into(), name: pod.into(), stream: container.into(), ..Inner::default() })
}

fn journal(line: &str) -> Option<Inner<'static>> {
    let mut object = object(line)?;
    let text = match object.remove("MESSAGE")? {
        Value::String(text) => text,
        // What is no text is written as its bytes.
        Value::Array(bytes) => {
            let bytes: Option<Vec<u8>> =
                bytes.iter().map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect();
            String::from_utf8_lossy(&bytes?).into_owned()
        }
        _ => return None,
    };
    let mut first =
        |names: &[&str]| names.iter().find_map(|name| taken(&mut object, name)).unwrap_or_default();
    let name = first(&["_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_COMM"]);
    Some(Inner {
        text: text.into(),
        goes_on: false,
        time: first(&["_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"]).into(),
        name: name.strip_suffix(".service").unwrap_or(&name).to_owned().into(),
        stream: first(&["_TRANSPORT"]).into(),
        host: first(&["_HOSTNAME"]).into(),
        pid: first(&["_PID", "SYSLOG_PID"]).into(),
    })
}

/// `<34>1 2003-10-11T22:14:15.003Z host program 17 ID47 [data] text`
fn syslog_5424(line: &str) -> Option<Inner<'_>> {
    let (_, rest) = line.strip_prefix('<')?.split_once(">1 ")?;
    let mut words = rest.splitn(6, ' ');
    let mut word = || words.next();
    let (time, host, name, pid, _, rest) = (word()?, word()?, word()?, word()?, word()?, word()?);
    let told = |word| if word == "-" { "" } else { word };
    let text = match rest.strip_prefix('-') {
        Some(text) => text,
        None => behind_data(rest)?,
    };
    let text = text.strip_prefix(' ').unwrap_or(text);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Some(Inner {
        text: text.into(),
        time: told(time).into(),
        name: told(name).into(),
        host: told(host).into(),
        pid: told(pid).into(),
        ..Inner::default()
    })
}

/// What follows the structured data of RFC 5424, in which a bracket within quotes is written with a backslash.
fn behind_data(mut text: &str) -> Option<&str> {
    while text.starts_with('[') {
        let (mut quoted, mut escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            let ends = byte == b']' && !quoted;
            quoted ^= byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        text = &text[end + 1..];
    }
    Some(text)
}

/// `May  1 10:00:00 host program[17]: text`, perhaps with an ISO time, and perhaps with a priority in front.
fn syslog_3164(line: &str) -> Option<Inner<'_>> {
    let line = match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((priority, rest)) if priority.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    };
    let (time, rest) = match line.split_once(' ') {
        Some((time, rest)) if demi_common::time::utc(time).is_some() => (time, rest),
        _ => {
            let (time, rest) = (line.get(..15)?, line.get(15..)?.strip_prefix(' ')?);
            let at = |at: usize| time.as_bytes().get(at).copied().unwrap_or_default();
            if [at(3), at(6), at(9), at(12)] != *b"  ::" || !at(5).is_ascii_digit() {
                return None;
            }
            (time, rest)
        }
    };
    let (host, rest) = rest.split_once(' ')?;
    let (tag, text) = rest.split_once(':')?;
    let (name, pid) = match tag.split_once('[') {
        Some((name, pid)) => (name, pid.strip_suffix(']')?),
        None => (tag, ""),
    };
    if name.is_empty() || name.contains(' ') || host.is_empty() {
        return None;
    }
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some(Inner {
        text: text.into(),
        time: time.into(),
        name: name.into(),
        host: host.into(),
        pid: pid.into(),
        ..Inner::default()
    })
}

/// The pod whose log a file of Kubernetes is: `…/pods/NAMESPACE_POD_UID/CONTAINER/0.log`, `…/POD_NAMESPACE_CONTAINER-ID.log`.
fn pod(source: &str) -> Option<&str> {
    let mut parts = source.rsplit('/');
    let file = parts.next()?;
    if let Some(folder) = parts.nth(1)
        && let [_, pod, uid] = folder.split('_').collect::<Vec<_>>()[..]
        && uid.len() >= 32
    {
        return Some(pod);
    }
    match file.split('_').collect::<Vec<_>>()[..] {
        [pod, _, rest] if rest.rsplit_once('-').is_some_and(|(_, id)| id.len() >= 64) => Some(pod),
        _ => None,
    }
}

/// The names by which templates use what a wrapper says.
pub(super) const VALUES: [&str; 5] =
    ["wrapper_time", "wrapper_name", "wrapper_stream", "wrapper_host", "wrapper_pid"];

/// A line of a program, perhaps made of several that were cut.
pub(super) struct Unwrapped {
    /// The first line of it; its length is that of all of them.
    pub(super) line: Line,
    pub(super) text: String,
    /// The lines as they stand in the log.
    pub(super) raw: Vec<u8>,
    /// What the wrapper says, by the names that templates use.
    pub(super) values: BTreeMap<String, String>,
    stream: String,
    goes_on: bool,
}

/// Lines on their way out of their wrapper, in the order in which they began. They wait until all of them are whole: a place between two lines of the
/// file, where reading can stop and go on, has then no part of a line on its other side.
#[derive(Default)]
pub(super) struct Unwrapping {
    waiting: VecDeque<Unwrapped>,
    bytes: usize,
    /// How many were cut and are not whole.
    open: usize,
    /// Whether too much waited: what is there goes as it is.
    overflows: bool,
}

impl Unwrapping {
    /// Takes a line of that source; false where it is none of the wrapper's.
    pub(super) fn add(&mut self, wrapper: Wrapper, source: &str, line: Line, text: &str) -> bool {
        let Some(inner) = wrapper.open(text) else { return false };
        self.bytes += text.len();
        let cut = self.waiting.iter_mut().find(|before| before.goes_on && before.stream == inner.stream);
        if let Some(before) = cut {
            before.text.push_str(&inner.text);
            before.goes_on = inner.goes_on;
            self.open -= usize::from(!inner.goes_on);
            before.line.length += line.length + 1;
            before.line.terminated = line.terminated;
            before.raw.push(b'\n');
            before.raw.extend_from_slice(text.as_bytes());
            return true;
        }
        // One program runs on many hosts.
        let name = match (&*inner.name, &*inner.host) {
            ("", _) => Cow::Borrowed(pod(source).unwrap_or("")),
            (name, "") => Cow::Borrowed(name),
            (name, host) => Cow::Owned(format!("{name}/{host}")),
        };
        let values = [&*inner.time, &*name, &*inner.stream, &*inner.host, &*inner.pid];
        let told = VALUES.into_iter().zip(values).filter(|(_, value)| !value.is_empty());
        let values = told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (stream, goes_on) = (inner.stream.into_owned(), inner.goes_on);
        self.open += usize::from(goes_on);
        self.waiting.push_back(Unwrapped {
            line,
            text: inner.text.into_owned(),
            raw: text.as_bytes().to_vec(),
            values,
            stream,
            goes_on,
        });
        true
    }

    /// The next line, where all are whole; with `end`, or where too much waits, also without.
    pub(super) fn next(&mut self, end: bool) -> Option<Unwrapped> {
        self.overflows |= self.bytes > MOST_WAITING || self.waiting.len() > MOST_LINES;
        if self.open > 0 && !end && !self.overflows {
            return None;
        }
        let first = self.waiting.pop_front();
        if self.waiting.is_empty() {
            (self.bytes, self.open, self.overflows) = (0, 0, false);
        }
        first
    }

    /// The first line that waits.
    pub(super) fn first(&self) -> Option<&Line> {
        self.waiting.front().map(|unwrapped| &unwrapped.line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mapping::{Mapper, Mapping};
    use crate::{Events, Fate};

    fn parts(wrapper: Wrapper, line: &str) -> Option<[String; 6]> {
        let inner = wrapper.open(line)?;
        let Inner { text, time, name, stream, host, pid, .. } = inner;
        Some([text, time, name, stream, host, pid].map(Cow::into_owned))
    }

    #[test]
    fn each_wrapper_is_taken_off() {
        for (wrapper, line, inner) in [
            (
                Wrapper::Cri,
                "2024-05-01T10:00:00.123456789Z stdout F sent 7",
                ["sent 7", "2024-05-01T10:00:00.123456789Z", "", "stdout", "", ""],
            ),
            (
                Wrapper::Cri,
                "2024-05-01T10:00:00Z stderr F ",
                ["", "2024-05-01T10:00:00Z", "", "stderr", "", ""],
            ),
            (
                Wrapper::Cri,
                "2024-05-01T10:00:00Z stderr F:x a b",
                ["a b", "2024-05-01T10:00:00Z", "", "stderr", "", ""],
            ),
            (
                Wrapper::Docker,
                r#"{"log":"sent \"7\"\n","stream":"stdout","time":"2024-05-01T10:00:00Z"}"#,
                ["sent \"7\"", "2024-05-01T10:00:00Z", "", "stdout", "", ""],
            ),
            (Wrapper::Compose, "raft-1  | sent | 7", ["sent | 7", "", "raft-1", "", "", ""]),
            (Wrapper::Compose, "\x1b[36mraft-1  |\x1b[0m sent 7", ["sent 7", "", "raft-1", "", "", ""]),
            (Wrapper::Compose, "raft-1  |", ["", "", "raft-1", "", "", ""]),
            (Wrapper::Kubectl, "[pod/raft-0/server] sent [7]", ["sent [7]", "", "raft-0", "server", "", ""]),
            (
                Wrapper::Journal,
                r#"{"MESSAGE":"sent 7","_SYSTEMD_UNIT":"raft@1.service","_HOSTNAME":"h1","_PID":"17","__REALTIME_TIMESTAMP":"1714557600000000","_TRANSPORT":"stdout"}"#,
                ["sent 7", "1714557600000000", "raft@1", "stdout", "h1", "17"],
            ),
            (Wrapper::Journal, r#"{"MESSAGE":[104,105,255]}"#, ["hi\u{fffd}", "", "", "", "", ""]),
            (
                Wrapper::Syslog,
                "May  1 10:00:00 h1 raft[17]: sent: 7",
                ["sent: 7", "May  1 10:00:00", "raft", "", "h1", "17"],
            ),
            (
                Wrapper::Syslog,
                "<13>2024-05-01T10:00:00.123456+00:00 h1 raft: sent 7",
                ["sent 7", "2024-05-01T10:00:00.123456+00:00", "raft", "", "h1", ""],
            ),
            (
                Wrapper::Syslog,
                r#"<165>1 2003-10-11T22:14:15.003Z h1 raft 17 ID47 [a@1 b="x]\"y"][c] sent 7"#,
                ["sent 7", "2003-10-11T22:14:15.003Z", "raft", "", "h1", "17"],
            ),
            (Wrapper::Syslog, "<165>1 - h1 raft - - - sent 7", ["sent 7", "", "raft", "", "h1", ""]),
        ] {
            assert_eq!(parts(wrapper, line), Some(inner.map(str::to_owned)), "{line}");
            assert_eq!(wrapper.name().parse(), Ok(wrapper));
        }
        for (wrapper, line) in [
            (Wrapper::Cri, "2024-05-01T10:00:00Z stdout sent 7"),
            (Wrapper::Cri, "soon stdout F sent 7"),
            (Wrapper::Docker, r#"{"log":"sent 7"}"#),
            (Wrapper::Docker, "sent 7"),
            (Wrapper::Compose, "a sent | 7"),
            (Wrapper::Kubectl, "[raft-0] sent 7"),
            (Wrapper::Journal, r#"{"message":"sent 7"}"#),
            (Wrapper::Syslog, "sent 7 to: b"),
            (Wrapper::Syslog, "May 1 10:00:00 h1 raft: x"),
            (Wrapper::Syslog, "ééééééééééééééé h1 raft: x"),
        ] {
            assert_eq!(parts(wrapper, line), None, "{line}");
        }
        assert!("k8s".parse::<Wrapper>().unwrap_err().to_string().contains("kubectl"));
    }

    #[test]
    fn the_name_of_a_file_of_kubernetes_has_its_pod() {
        let id = "0".repeat(64);
        let uid = "b0c9e9b4-5d3a-4f43-8f0e-3f2b6f1c2d3e";
        assert_eq!(pod(&format!("/var/log/pods/prod_raft-0_{uid}/server/0.log")), Some("raft-0"));
        assert_eq!(pod(&format!("logs/raft-1_prod_server-{id}.log")), Some("raft-1"));
        for none in ["raft_1_2.log", "a/b/raft.log", "", "a_b_c/d/e", "_".repeat(3).as_str()] {
            assert_eq!(pod(none), None, "{none}");
        }
    }

    const MAPPING: &str = r#"
        name = "m"
        description = "d"
        [input]
        container = "text"
        wrapper = "cri"
        patterns = ['^(?<text>.*)$']
        [event]
        actor = "{wrapper_name|'a'}"
        type = "{wrapper_stream}"
        payload = "{text}"
        time = "{wrapper_time}"
    "#;

    fn mapper(more: &str) -> Mapper {
        let text = MAPPING.replace("[event]", &format!("{more}\n[event]"));
        Mapper::new(&Mapping::parse(&text, "m").unwrap()).unwrap()
    }

    /// Stream, text and time of each event, or why a line is none.
    fn told(units: &[crate::mapping::Unit]) -> Vec<[String; 3]> {
        let one = |unit: &crate::mapping::Unit| match &unit.fate {
            Fate::Row(Events { records, .. }) => {
                let record = &records[0];
                let time = record.time.as_ref().and_then(|time| time.as_str()).unwrap_or("");
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                [text(&record.type_), text(&record.payload), time.to_owned()]
            }
            Fate::Quarantined(why) => [why.code().to_owned(), String::new(), String::new()],
            Fate::LeftOut(why) => [(*why).to_owned(), String::new(), String::new()],
        };
        units.iter().map(one).collect()
    }

    #[test]
    fn lines_that_were_cut_are_joined_in_their_order() {
        let log = "2024-05-01T10:00:01Z stdout P one \n2024-05-01T10:00:02Z stderr F other\n2024-05-01T10:00:03Z stdout F line\n\
                   nonsense\n2024-05-01T10:00:04Z stdout P cut\n";
        let units = mapper("").map_text("x.log", log.as_bytes());
        let row = |stream: &str, text: &str, second: u32| {
            [stream.to_owned(), text.to_owned(), format!("2024-05-01T10:00:0{second}Z")]
        };
        let nonsense = ["not_wrapped".to_owned(), String::new(), String::new()];
        assert_eq!(
            told(&units),
            [row("stdout", "one line", 1), row("stderr", "other", 2), nonsense, row("stdout", "cut", 4)]
        );
        assert_eq!(units.iter().map(|unit| unit.line.number).collect::<Vec<_>>(), [1, 2, 4, 5]);
        // What a unit has of the log can be read once more by itself.
        for unit in &units {
            let again = mapper("").map_text("x.log", &unit.raw);
            assert_eq!(told(&again).len(), 1);
            let mut one = mapper("");
            let mut out = Vec::new();
            one.begin("x.log", &unit.raw);
            one.line(unit.line.clone(), &unit.raw, &mut out);
            one.end(&mut out);
            assert_eq!(told(&out), told(std::slice::from_ref(unit)));
        }
        // Records of several lines have the time of their first.
        let log = "2024-05-01T10:00:01Z stdout F > a\n2024-05-01T10:00:02Z stdout F b\n2024-05-01T10:00:03Z stdout F > c\n";
        let units = mapper("start = '^> '").map_text("x.log", log.as_bytes());
        let texts: Vec<_> = told(&units).into_iter().map(|[_, _, time]| time).collect();
        assert_eq!(texts, ["2024-05-01T10:00:01Z", "2024-05-01T10:00:03Z"]);
        let raw: Vec<_> = units.iter().flat_map(|unit| [&unit.raw[..], b"\n"]).collect();
        assert_eq!(String::from_utf8(raw.concat()).unwrap(), log);
    }

    #[test]
    fn documents_have_no_wrapper() {
        let text = MAPPING.replace("\"text\"", "\"json\"").replace("patterns = ['^(?<text>.*)$']", "");
        let error =
            Mapping::parse(&text, "m").and_then(|mapping| Mapper::new(&mapping).map(|_| ())).unwrap_err();
        assert!(error.to_string().contains("input.wrapper"), "{error}");
    }

    #[test]
    fn a_wrapper_is_known_by_its_first_lines() {
        let cri = "2024-05-01T10:00:01Z stdout F a\n\n2024-05-01T10:00:01Z stdout F b\n";
        assert_eq!(Wrapper::around(cri), Some(Wrapper::Cri));
        assert_eq!(Wrapper::around("[pod/a/b] {}\n"), Some(Wrapper::Kubectl));
        assert_eq!(Wrapper::around("a | b\n"), None);
        assert_eq!(Wrapper::around("\n"), None);
        assert_eq!(Wrapper::around(&format!("{cri}x\n")), None);
    }

    /// Lines of two streams as containerd writes them, each cut anywhere, those of one stream in order.
    fn wrapped() -> impl Strategy<Value = (Vec<(bool, String)>, Vec<String>)> {
        let line =
            (any::<bool>(), "[a-z ]{1,6}( [FP] )?[a-z|{]{0,4}", prop::collection::vec(0usize..8, 0..3));
        (prop::collection::vec(line, 0..8), prop::collection::vec(any::<bool>(), 0..40)).prop_map(
            |(lines, turns)| {
                let mut of: [VecDeque<(usize, String)>; 2] = Default::default();
                for (which, (err, text, cuts)) in lines.iter().enumerate() {
                    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
                    cuts.sort_unstable();
                    let stream = if *err { "stderr" } else { "stdout" };
                    let mut from = 0;
                    for cut in cuts {
                        let piece = format!("2024-05-01T10:00:00Z {stream} P {}", &text[from..cut]);
                        of[usize::from(*err)].push_back((which, piece));
                        from = cut;
                    }
                    let piece = format!("2024-05-01T10:00:00Z {stream} F {}", &text[from..]);
                    of[usize::from(*err)].push_back((which, piece));
                }
                let (mut out, mut order) = (Vec::new(), Vec::new());
                let mut turns = turns.into_iter().cycle();
                while of.iter().any(|lines| !lines.is_empty()) {
                    let turn = usize::from(turns.next().unwrap_or_default());
                    let Some((which, piece)) = of[turn].pop_front().or_else(|| of[1 - turn].pop_front())
                    else {
                        break;
                    };
                    if !order.contains(&which) {
                        order.push(which);
                    }
                    out.push(piece);
                }
                let lines = order.into_iter().map(|which| (lines[which].0, lines[which].1.clone())).collect();
                (lines, out)
            },
        )
    }

    proptest! {
        /// What was cut is whole again, in the order in which lines began, and the same where reading stops and goes on elsewhere.
        #[test]
        fn what_was_cut_is_joined((lines, wrapped) in wrapped(), stop in 0usize..30) {
            let log: String = wrapped.iter().map(|line| format!("{line}\n")).collect();
            let units = mapper("").map_text("x.log", log.as_bytes());
            let found: Vec<(bool, String)> =
                told(&units).into_iter().map(|[stream, text, _]| (stream == "stderr", text)).collect();
            let blank = |(_, text): &(bool, String)| !text.trim_ascii().is_empty();
            prop_assert_eq!(
                found.into_iter().filter(blank).collect::<Vec<_>>(),
                lines.into_iter().filter(blank).collect::<Vec<_>>()
            );
            // Stopped behind some lines, and gone on with from where nothing is unfinished.
            let mut first = mapper("");
            first.begin("x.log", log.as_bytes());
            let mut out = Vec::new();
            let mut places = Vec::new();
            let mut offset = 0;
            for (number, text) in (1..).zip(log.lines()) {
                places.push((offset, number, text));
                offset += text.len() as u64 + 1;
            }
            let feed = |mapper: &mut Mapper, (offset, number, text): (u64, u64, &str), out: &mut Vec<_>| {
                let line = Line { offset, number, length: text.len() as u64, terminated: true, overlong: None };
                mapper.line(line, text.as_bytes(), out);
            };
            let stop = stop.min(places.len());
            places[..stop].iter().for_each(|place| feed(&mut first, *place, &mut out));
            let from = first.unfinished().map_or(stop, |(_, number)| number as usize - 1);
            let (checkpoint, shared) = (first.checkpoint(), first.shared());
            let mut second = mapper("");
            second.resume(&checkpoint).unwrap();
            second.resume_shared(&shared).unwrap();
            places[from..].iter().for_each(|place| feed(&mut second, *place, &mut out));
            second.end(&mut out);
            prop_assert_eq!(out, units);
        }

        #[test]
        fn no_line_panics(line in ".{0,60}") {
            for (_, wrapper) in EACH {
                let _ = wrapper.open(&line);
            }
            let _ = (pod(&line), Wrapper::around(&line));
        }
    }
}

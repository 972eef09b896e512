//! Logs of runs outside this scheduler: which node read and wrote which line, in an order in which nothing comes before its cause.
//!
//! A line of a log is taken for what it holds: a message as JSON, alone or within an envelope, after any text, or as Clojure writes it. Whether it was
//! read or written, by whom, and when, is said by words around it, by fields of the envelope, or by the name of the file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::checkers::canonical;
use crate::edn;
use crate::fressian;
use crate::lines::{Lines, Message};

/// Bytes of a log at most.
const LARGEST: u64 = 1 << 30;
/// How deep in its envelope a message may lie.
const DEPTH: u32 = 4;
/// Words that say that a message was written, and that it was read.
const WROTE: [&str; 15] = [
    "send", "sends", "sent", "sending", "write", "writes", "wrote", "written", "writing", "out", "output",
    "outgoing", "stdout", "tx", "reply",
];
const READ: [&str; 16] = [
    "recv",
    "receive",
    "receives",
    "received",
    "receiving",
    "read",
    "reads",
    "reading",
    "got",
    "in",
    "input",
    "incoming",
    "stdin",
    "rx",
    "deliver",
    "delivered",
];

/// Which way a line went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its sender wrote it.
    Wrote,
    /// Its receiver read it.
    Read,
    /// It passed somebody between the two.
    Passed,
}

/// A line of a log that holds a message.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) way: Way,
    pub(crate) message: Message,
    /// Whether it is the first line of all that a node reads.
    pub(crate) begins: bool,
    /// Nanoseconds of the clock that the log shows, as far as it shows one: since whenever.
    pub(crate) time: Option<i128>,
    /// File and line.
    pub(crate) place: (String, usize),
    /// The line.
    pub(crate) text: String,
}

/// A log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("{0}: {1}")]
    File(String, String),
    /// It has no messages.
    #[error(
        "{0}: no line holds a message, a JSON object with {1}; Maelstrom writes them to jepsen.log with --log-net-send and --log-net-recv, and \
         always to net-journal.fressian"
    )]
    Empty(String, &'static str),
}

/// The messages of a log: a file, a folder of files, or the folder that Maelstrom keeps of a test.
pub(crate) fn read(path: &Path, lines: &Lines) -> Result<Vec<Seen>, LogError> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| {
        LogError::File(path.display().to_string(), error.to_string())
    };
    let mut all: Vec<Vec<Seen>> = Vec::new();
    for candidates in files(path).map_err(|error| wrong(path, &error))? {
        for file in &candidates {
            let about = std::fs::metadata(file).map_err(|error| wrong(file, &error))?;
            if about.len() > LARGEST {
                return Err(wrong(file, &format!("larger than {} MiB", LARGEST >> 20)));
            }
            let bytes = std::fs::read(file).map_err(|error| wrong(file, &error))?;
            let name =
                file.strip_prefix(path).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(file);
            let name = name.display().to_string();
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            all.push(if file.extension().is_some_and(|ext| ext == "fressian") {
                journal(&bytes, lines, &name).map_err(|error| wrong(file, &error))?
            } else {
                text(&String::from_utf8_lossy(&bytes), lines, &name, &stem)
            });
        }
        all.retain(|one| !one.is_empty());
        if !all.is_empty() {
            break;
        }
    }
    if all.is_empty() {
        let fields = if lines.is_maelstrom() { "'dest' and 'body'" } else { "the fields that [lines] names" };
        return Err(LogError::Empty(path.display().to_string(), fields));
    }
    Ok(merged(all))
}

/// The files that may hold a log, those first that say most.
fn files(path: &Path) -> std::io::Result<Vec<Vec<PathBuf>>> {
    if !path.is_dir() {
        return Ok(vec![vec![path.to_path_buf()]]);
    }
    let of = |folder: &Path, wanted: &dyn Fn(&Path) -> bool| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<PathBuf> = entries.filter(|file| file.is_file() && wanted(file)).collect();
        found.sort_unstable();
        found
    };
    std::fs::read_dir(path)?;
    let named = |name: &'static str| move |file: &Path| file.file_name().is_some_and(|own| own == name);
    let is_log = |file: &Path| {
        file.extension()
            .and_then(|ext| ext.to_str())
            .is_some_and(|ext| ["log", "jsonl", "json", "ndjson", "txt", "out", "err"].contains(&ext))
    };
    let is_journal = |file: &Path| file.extension().is_some_and(|ext| ext == "fressian");
    Ok(vec![
        of(path, &named("net-journal.fressian")),
        of(&path.join("net-journal"), &is_journal),
        of(path, &named("jepsen.log")),
        of(&path.join("node-logs"), &is_log),
        of(&path.join("log"), &is_log),
        of(path, &is_log),
    ])
}

/// The messages in the lines of a text.
fn text(text: &str, lines: &Lines, name: &str, stem: &str) -> Vec<Seen> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((before, value)) = value_of(line) else { continue };
        let place = (name.to_owned(), number + 1);
        all.extend(seen(&value, before, lines, stem, place, line.trim()));
    }
    all
}

/// What Maelstrom keeps of its network.
fn journal(bytes: &[u8], lines: &Lines, name: &str) -> Result<Vec<Seen>, String> {
    let all = fressian::read(bytes)?;
    let event = |(number, value): (usize, Value)| {
        let shown = value.to_string();
        seen(&value, "", lines, "", (name.to_owned(), number + 1), &shown)
    };
    Ok(all.into_iter().enumerate().filter_map(event).collect())
}

/// The value in a line, and the text before it: JSON where there is some, else as Clojure writes it.
fn value_of(line: &str) -> Option<(&str, Value)> {
    for (at, _) in line.match_indices('{') {
        let mut stream = serde_json::Deserializer::from_str(&line[at..]).into_iter::<Value>();
        if let Some(Ok(value)) = stream.next()
            && value.as_object().is_some_and(|fields| !fields.is_empty())
        {
            return Some((&line[..at], value));
        }
    }
    // `:send #maelstrom.net.message.Message{:id 0, :src "c0", ..}`
    let at = line.find("{:")?;
    let value = edn::parse(&line[at..]).ok()?.into_iter().next()?.1;
    Some((&line[..at], value))
}

/// What an envelope says besides its message.
#[derive(Default)]
struct Around {
    way: Option<Way>,
    node: Option<String>,
    time: Option<i128>,
}

/// The message in a value, if there is one.
fn seen(
    value: &Value,
    before: &str,
    lines: &Lines,
    stem: &str,
    place: (String, usize),
    text: &str,
) -> Option<Seen> {
    let mut around = Around { way: None, node: None, time: stamp(before) };
    words(before).for_each(|word| around.hear(&word));
    let (message, inner) = message_of(value, lines, &mut around, 0)?;
    let begins = lines.is_begin(inner);
    let mut message = message;
    let node = around.node.clone().unwrap_or_else(|| stem.to_owned());
    // A node's own log: it read what is for it, and wrote the rest.
    let way = around.way.unwrap_or(if !node.is_empty() && (node == message.dest || begins) {
        Way::Read
    } else if !node.is_empty() && node == message.src {
        Way::Wrote
    } else {
        Way::Passed
    });
    match way {
        Way::Read if message.dest.is_empty() => message.dest = node,
        Way::Wrote if message.src.is_empty() => message.src = node,
        _ => {}
    }
    (!message.dest.is_empty()).then(|| Seen {
        way,
        message,
        begins,
        time: around.time,
        place,
        text: text.to_owned(),
    })
}

impl Around {
    fn hear(&mut self, word: &str) {
        if WROTE.contains(&word) {
            self.way = Some(Way::Wrote);
        } else if READ.contains(&word) {
            self.way = Some(Way::Read);
        }
    }

    /// Takes what the fields of an envelope say.
    fn take(&mut self, key: &str, value: &Value) {
        match (key, value) {
            ("node" | "actor" | "process" | "host" | "at" | "by", Value::String(name)) => {
                self.node = Some(name.clone())
            }
            // A reading of the node's own clock says more than the time of the log.
            ("clock", Value::Number(number)) => self.time = nanoseconds(number).or(self.time),
            ("time" | "ts" | "timestamp" | "t", Value::Number(number)) => {
                self.time = self.time.or_else(|| nanoseconds(number));
            }
            ("time" | "ts" | "timestamp" | "t", Value::String(text)) => {
                self.time = self.time.or_else(|| stamp(text))
            }
            (_, Value::String(word)) if word.len() < 16 => {
                self.hear(&word.trim_start_matches(':').to_lowercase())
            }
            _ => {}
        }
    }
}

/// The message in a value or in its envelope, and the value that is the message.
fn message_of<'a>(
    value: &'a Value,
    lines: &Lines,
    around: &mut Around,
    depth: u32,
) -> Option<(Message, &'a Value)> {
    let fields = value.as_object()?;
    if lines.is_begin(value) || lines.heard(value).is_ok_and(|heard| lines.holds(&heard)) {
        let heard = lines.heard(value).unwrap_or_else(|_| Message::nobody(value.clone()));
        for (key, value) in fields
            .iter()
            .filter(|(key, _)| lines.is_maelstrom() && !["src", "dest", "body"].contains(&key.as_str()))
        {
            around.take(key, value);
        }
        return Some((heard, value));
    }
    if depth == DEPTH {
        return None;
    }
    let (key, found) = fields.iter().find_map(|(key, value)| {
        let found = message_of(value, lines, around, depth + 1)?;
        Some((key, found))
    })?;
    around.hear(&key.to_lowercase());
    fields.iter().filter(|(other, _)| *other != key).for_each(|(key, value)| around.take(key, value));
    Some(found)
}

/// The words of a text, in small letters.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// A number as nanoseconds: one with a fraction, or one that is small, counts seconds.
fn nanoseconds(number: &serde_json::Number) -> Option<i128> {
    match number.as_i64() {
        Some(whole) if number.is_i64() || number.is_u64() => Some(i128::from(whole)),
        _ => number.as_f64().filter(|seconds| seconds.is_finite()).map(|seconds| (seconds * 1e9) as i128),
    }
}

/// A date and time in a text, such as `2024-05-01 12:30:00,250`, as nanoseconds.
fn stamp(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let starts = (0..bytes.len().saturating_sub(18)).find(|&at| {
        let shape = |place: usize, one: u8| bytes[at + place] == one;
        (shape(4, b'-') || shape(4, b'/')) && shape(13, b':') && shape(16, b':') && bytes[at].is_ascii_digit()
    })?;
    let number = |from: usize, length: usize| -> Option<i128> {
        text.get(starts + from..starts + from + length)?.parse().ok()
    };
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    // Days since the first of March of the year 0, as in the civil calendar.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
    let seconds = ((days * 24 + number(11, 2)?) * 60 + number(14, 2)?) * 60 + number(17, 2)?;
    let fraction: String = match bytes.get(starts + 19) {
        Some(b'.' | b',') => text[starts + 20..].chars().take_while(char::is_ascii_digit).take(9).collect(),
        _ => String::new(),
    };
    let nanoseconds = format!("{fraction:0<9}").parse::<i128>().unwrap_or_default();
    Some(seconds * 1_000_000_000 + nanoseconds)
}

/// One order of all files: each keeps its own, nothing is read before it was written, and what has a time comes by that.
fn merged(all: Vec<Vec<Seen>>) -> Vec<Seen> {
    if all.len() == 1 {
        return all.into_iter().next().unwrap_or_default();
    }
    let key =
        |seen: &Seen| (seen.message.src.clone(), seen.message.dest.clone(), canonical(&seen.message.body));
    let mut coming: FxHashMap<_, usize> = FxHashMap::default();
    for one in all.iter().flatten().filter(|seen| seen.way == Way::Wrote) {
        *coming.entry(key(one)).or_default() += 1;
    }
    let mut there: FxHashMap<_, usize> = FxHashMap::default();
    let mut queues: Vec<VecDeque<Seen>> = all.into_iter().map(VecDeque::from).collect();
    let mut order = Vec::new();
    loop {
        let heads = queues.iter().enumerate().filter_map(|(at, queue)| Some((at, queue.front()?)));
        let next = heads
            .map(|(at, seen)| {
                let waits = seen.way == Way::Read
                    && coming.get(&key(seen)).is_some_and(|left| *left > 0)
                    && there.get(&key(seen)).is_none_or(|count| *count == 0);
                (waits, seen.time.unwrap_or(i128::MIN), at)
            })
            .min();
        let Some((_, _, at)) = next else { return order };
        let Some(seen) = queues[at].pop_front() else { return order };
        match seen.way {
            Way::Wrote => {
                if let Some(left) = coming.get_mut(&key(&seen)) {
                    *left -= 1;
                }
                *there.entry(key(&seen)).or_default() += 1;
            }
            Way::Read => {
                if let Some(count) = there.get_mut(&key(&seen)) {
                    *count = count.saturating_sub(1);
                }
            }
            Way::Passed => {}
        }
        order.push(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str, stem: &str) -> Option<(Way, String, String, Option<i128>)> {
        let lines = Lines::new(None).unwrap();
        let seen = text(line, &lines, "a.log", stem).pop()?;
        Some((seen.way, seen.message.src, seen.message.dest, seen.time))
    }

    #[test]
    fn a_message_is_found_in_whatever_stands_around_it() {
        let json = r#"{"src":"n1","dest":"n2","body":{"type":"read"}}"#;
        let pair = |way, time| Some((way, "n1".to_owned(), "n2".to_owned(), time));
        assert_eq!(one(json, "all"), pair(Way::Passed, None));
        assert_eq!(one(json, "n1"), pair(Way::Wrote, None));
        assert_eq!(one(json, "n2"), pair(Way::Read, None));
        assert_eq!(one(&format!("INFO Sent {json}"), "n2"), pair(Way::Wrote, None));
        assert_eq!(
            one(&format!("{{\"event\":\"recv\",\"clock\":0.5,\"message\":{json}}}"), ""),
            pair(Way::Read, Some(500_000_000))
        );
        let nested =
            serde_json::json!({ "node": "n2", "line": serde_json::from_str::<Value>(json).unwrap() });
        assert_eq!(one(&nested.to_string(), ""), pair(Way::Read, None));
        let edn = "1970-01-01 00:00:01,5{GMT}\tINFO\t[n2 stdin] maelstrom.net: :recv #maelstrom.net.message.Message{:id 4, :src \"n1\", :dest \"n2\", :body {:type \"read\"}}";
        let (way, .., time) = one(edn, "jepsen").unwrap();
        let zero = stamp("1970-01-01 00:00:00").unwrap();
        assert_eq!((way, time.map(|time| time - zero)), (Way::Read, Some(1_500_000_000)));
        assert_eq!(one("nothing {at all}", "n1"), None);
        assert_eq!(one("{\"dest\":1}", "n1"), None);
    }

    #[test]
    fn nothing_is_read_before_it_was_written() {
        let lines = Lines::new(None).unwrap();
        let of = |body: &str, src: &str, dest: &str| {
            format!("{{\"src\":\"{src}\",\"dest\":\"{dest}\",\"body\":{{\"type\":\"{body}\"}}}}\n")
        };
        let first = of("b", "n2", "n1") + &of("c", "n1", "n2");
        let second = of("a", "n3", "n2") + &of("b", "n2", "n1") + &of("c", "n1", "n2");
        let all = vec![text(&first, &lines, "n1.log", "n1"), text(&second, &lines, "n2.log", "n2")];
        let order: Vec<String> = merged(all)
            .iter()
            .map(|seen| format!("{}{:?}", seen.message.body["type"].as_str().unwrap(), seen.way))
            .collect();
        assert_eq!(order, ["aRead", "bWrote", "bRead", "cWrote", "cRead"]);
    }
}

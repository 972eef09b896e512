//! Steps of a schedule, composed from events in each actor's order.
//!
//! The text is that of [`demi_schemas::Step`], written straight from the columns: building a value for each of millions
//! of steps first would cost more than everything else.

use std::collections::BTreeSet;
use std::io::Write;

use arrow_array::{Array, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use demi_schemas::event::{DEAD_LETTERS, ENVIRONMENT};
use demi_schemas::{Kind, TimerInfo, Via};

use crate::error::LineageError;
use crate::read::columns::{self, at};
use crate::read::{UnitRole, role};

/// The context of a step: facts of an event that are not in its record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepContext {
    /// Rank in the linear extension, from 1.
    order: u64,
    /// Whether it was kept.
    kept: bool,
    /// For receives: how the message was sent, from the other end.
    sent_via: Option<Via>,
    /// For receives: how many times the actor receives the message again later.
    again: u32,
}

impl StepContext {
    /// Rank, whether it was kept, how a received message was sent, and how often it is received again.
    pub(crate) fn new(order: u64, kept: bool, sent_via: Option<Via>, again: u32) -> StepContext {
        StepContext { order, kept, sent_via, again }
    }
}

/// A receiver of steps: the rank, whether it was kept, whether it is a delivery, and its line with the line feed.
pub(crate) type StepSink<'a> = dyn FnMut(u64, bool, &[u8]) -> Result<(), LineageError> + 'a;

/// Composes steps; a step is given away when the next begins.
#[derive(Default)]
pub(crate) struct Composer {
    actor: String,
    open: Option<(u64, bool)>,
    head: Vec<u8>,
    sends: Vec<u8>,
    timer_sets: Vec<u8>,
    tail: Vec<u8>,
    line: Vec<u8>,
    /// Names of the timers that some log says were set.
    pub(crate) timers_recorded: BTreeSet<String>,
}

/// A row of the table of events, as a step needs it.
struct StepRow<'a> {
    actor: &'a str,
    kind: Kind,
    via: Option<Via>,
    columns: &'a Columns<'a>,
    row: usize,
}

/// The columns of a batch that steps are composed from.
struct Columns<'a> {
    actor: &'a StringArray,
    incarnation: &'a Int32Array,
    seq: &'a Int64Array,
    kind: &'a StringArray,
    from: &'a StringArray,
    to: &'a StringArray,
    via: &'a StringArray,
    timer: &'a StringArray,
    type_: &'a StringArray,
    msg_id: &'a StringArray,
    payload: &'a StringArray,
    fingerprint: &'a StringArray,
    external: &'a BooleanArray,
    fields: &'a StringArray,
    source: &'a StringArray,
    offset: &'a Int64Array,
}

impl Composer {
    /// Takes the events of a batch, in order; `placed` is asked by row.
    pub(crate) fn add(
        &mut self,
        batch: &RecordBatch,
        placed: impl Fn(usize) -> StepContext,
        sink: &mut StepSink<'_>,
    ) -> Result<(), LineageError> {
        let columns = Columns {
            actor: columns::text(batch, "actor")?,
            incarnation: columns::int(batch, "incarnation")?,
            seq: columns::long(batch, "seq")?,
            kind: columns::text(batch, "kind")?,
            from: columns::text(batch, "from")?,
            to: columns::text(batch, "to")?,
            via: columns::text(batch, "via")?,
            timer: columns::text(batch, "timer")?,
            type_: columns::text(batch, "type")?,
            msg_id: columns::text(batch, "msg_id")?,
            payload: columns::text(batch, "payload")?,
            fingerprint: columns::text(batch, "fingerprint")?,
            external: columns::flag(batch, "external")?,
            fields: columns::text(batch, "fields")?,
            source: columns::text(batch, "source")?,
            offset: columns::long(batch, "offset")?,
        };
        for row in 0..batch.num_rows() {
            let actor = columns.actor.value(row);
            if actor != self.actor {
                self.close(sink)?;
                actor.clone_into(&mut self.actor);
            }
            let Some(kind) = Kind::from_name(columns.kind.value(row)) else { continue };
            let via = at(columns.via, row).and_then(Via::from_name);
            let view = StepRow { actor, kind, via, columns: &columns, row };
            let environment = actor == ENVIRONMENT;
            match role(kind, via, environment) {
                UnitRole::Head => {
                    self.close(sink)?;
                    let placed = placed(row);
                    self.begin(&view, kind_name(kind), placed);
                }
                UnitRole::Alone if environment => {
                    self.close(sink)?;
                    let name = if kind == Kind::Send { "external" } else { kind_name(kind) };
                    if !name.is_empty() {
                        self.begin(&view, name, placed(row));
                        self.close(sink)?;
                    }
                }
                UnitRole::Alone => self.alone(&view, placed(row), sink)?,
                UnitRole::Member => self.member(&view),
            }
        }
        Ok(())
    }

    /// Gives away the last step.
    pub(crate) fn close(&mut self, sink: &mut StepSink<'_>) -> Result<(), LineageError> {
        let Some((order, kept)) = self.open.take() else { return Ok(()) };
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(&self.head);
        for (name, list) in [("sends", &self.sends), ("timer_sets", &self.timer_sets)] {
            if !list.is_empty() {
                line.extend_from_slice(b",\"");
                line.extend_from_slice(name.as_bytes());
                line.extend_from_slice(b"\":[");
                line.extend_from_slice(&list[1..]);
                line.push(b']');
            }
        }
        line.extend_from_slice(&self.tail);
        line.extend_from_slice(b"}\n");
        sink(order, kept, line)
    }

    fn begin(&mut self, row: &StepRow<'_>, name: &str, placed: StepContext) {
        self.sends.clear();
        self.timer_sets.clear();
        self.open = Some((placed.order, placed.kept));
        let (c, i) = (row.columns, row.row);
        let head = &mut self.head;
        head.clear();
        // The network makes its copies before the first is received.
        (0..placed.again).for_each(|_| copied(head, row));
        head.extend_from_slice(b"{\"kind\":\"");
        head.extend_from_slice(name.as_bytes());
        head.push(b'"');
        text(head, "from", at(c.from, i));
        let to = if row.kind == Kind::Send { at(c.to, i).unwrap_or(row.actor) } else { row.actor };
        if row.actor != ENVIRONMENT || row.kind != Kind::Action {
            text(head, "to", Some(to));
        }
        text(head, "type", at(c.type_, i));
        text(head, "msg_id", at(c.msg_id, i));
        text(head, "payload", at(c.payload, i));
        text(head, "fingerprint", at(c.fingerprint, i));
        let external = c.external.is_valid(i) && c.external.value(i);
        let via = row.via.or(placed.sent_via);
        // Readers take messages from nobody for external ones, and failures for injected ones, unless told otherwise.
        let from_nobody = row.kind == Kind::Receive && via.is_none() && at(c.from, i) == Some(DEAD_LETTERS);
        let by_itself =
            c.external.is_valid(i) && matches!(row.kind, Kind::Start | Kind::Crash | Kind::Restart);
        if external || name == "external" {
            head.extend_from_slice(b",\"external\":true");
        } else if from_nobody || by_itself {
            head.extend_from_slice(b",\"external\":false");
        }
        text(head, "via", via.map(Via::as_str));
        raw(head, "fields", at(c.fields, i));
        raw(head, "timer", at(c.timer, i));
        let tail = &mut self.tail;
        tail.clear();
        tail.extend_from_slice(b",\"event\":");
        // The name ends in numbers, which stand inside the quotes.
        string(tail, row.actor);
        tail.pop();
        if c.incarnation.value(i) != 0 {
            number(tail, b"/", c.incarnation.value(i).into());
        }
        number(tail, b"/", c.seq.value(i));
        tail.push(b'"');
        text(tail, "source", at(c.source, i));
        if c.offset.is_valid(i) {
            number(tail, b",\"offset\":", c.offset.value(i));
        }
    }

    /// A step of its own, amid those of an open one.
    fn alone(
        &mut self,
        row: &StepRow<'_>,
        placed: StepContext,
        sink: &mut StepSink<'_>,
    ) -> Result<(), LineageError> {
        if row.kind != Kind::Send {
            self.member(row);
            return Ok(());
        }
        let open = std::mem::take(self);
        self.begin(row, "send", placed);
        let closed = self.close(sink);
        *self = open;
        closed
    }

    fn member(&mut self, row: &StepRow<'_>) {
        let (c, i) = (row.columns, row.row);
        let list = match row.kind {
            Kind::Send => &mut self.sends,
            Kind::TimerSet => {
                let name = at(c.timer, i)
                    .and_then(|t| serde_json::from_str::<TimerInfo>(t).ok())
                    .and_then(|t| t.name)
                    .or_else(|| at(c.type_, i).map(str::to_owned));
                if let Some(name) = name.filter(|n| !self.timers_recorded.contains(n)) {
                    self.timers_recorded.insert(name);
                }
                &mut self.timer_sets
            }
            _ => return,
        };
        if self.open.is_none() {
            return;
        }
        list.extend_from_slice(b",{");
        let before = list.len();
        text(list, "from", at(c.from, i).filter(|&f| f != row.actor));
        text(list, "to", Some(at(c.to, i).unwrap_or(row.actor)));
        // The first field has no comma before it.
        list.remove(before);
        text(list, "type", at(c.type_, i));
        text(list, "msg_id", at(c.msg_id, i));
        text(list, "payload", Some(at(c.payload, i).unwrap_or("")));
        text(list, "via", row.via.map(Via::as_str));
        raw(list, "timer", at(c.timer, i));
        list.push(b'}');
    }
}

/// The line of a step in which the network makes a second copy of a message that a row receives. What comes from outside
/// needs none: it is sent where it is received.
fn copied(out: &mut Vec<u8>, row: &StepRow<'_>) {
    let (c, i) = (row.columns, row.row);
    if c.external.is_valid(i) && c.external.value(i) {
        return;
    }
    out.extend_from_slice(b"{\"kind\":\"duplicate\"");
    text(out, "from", at(c.from, i));
    text(out, "to", Some(row.actor));
    text(out, "type", at(c.type_, i));
    text(out, "payload", at(c.payload, i));
    text(out, "fingerprint", at(c.fingerprint, i));
    out.extend_from_slice(b"}\n");
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Start => "start",
        Kind::Receive => "deliver",
        Kind::TimerFire => "timer",
        Kind::Crash => "crash",
        Kind::Restart => "restart",
        Kind::Stop => "stop",
        Kind::Isolate => "isolate",
        Kind::Heal => "heal",
        Kind::Action => "action",
        _ => "",
    }
}

fn raw(out: &mut Vec<u8>, name: &str, json: Option<&str>) {
    if let Some(json) = json.filter(|j| *j != "null") {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(json.as_bytes());
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        string(out, value);
    }
}

fn number(out: &mut Vec<u8>, before: &[u8], value: i64) {
    out.extend_from_slice(before);
    // Writing to memory cannot fail.
    let _ = write!(out, "{value}");
}

/// A JSON string, escaped as serde_json escapes it.
fn string(out: &mut Vec<u8>, value: &str) {
    if value.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\') {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_json() {
        for value in ["", "plain", "quote\"", "back\\slash", "tab\t", "ünï", "\u{1}"] {
            let mut out = Vec::new();
            string(&mut out, value);
            assert_eq!(out, serde_json::to_vec(value).unwrap());
        }
    }
}

//! An event as one JSON line.

use std::fmt::{self, Write as _};

use serde::de::IgnoredAny;
use tracing::field::{Field, Visit};

/// A line in the making; kept by each thread and used again.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) actor: String,
    pub(crate) kind: String,
    /// Fields of the record, each with a comma before it.
    rest: Vec<u8>,
    /// Members of `state`, each with a comma before it.
    state: Vec<u8>,
    /// Text on its way to becoming JSON.
    scratch: String,
    has_time: bool,
}

impl Line {
    pub(crate) fn clear(&mut self) {
        self.actor.clear();
        self.kind.clear();
        self.rest.clear();
        self.state.clear();
        self.has_time = false;
    }

    /// Whether the event says what every record says.
    pub(crate) fn is_record(&self) -> bool {
        !self.actor.is_empty() && !self.kind.is_empty()
    }

    /// Appends the line, with its newline.
    pub(crate) fn write(&self, incarnation: u32, seq: u64, time: Option<u128>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"actor\":");
        string(out, &self.actor);
        if incarnation > 0 {
            out.extend_from_slice(b",\"incarnation\":");
            out.extend_from_slice(itoa::Buffer::new().format(incarnation).as_bytes());
        }
        out.extend_from_slice(b",\"seq\":");
        out.extend_from_slice(itoa::Buffer::new().format(seq).as_bytes());
        out.extend_from_slice(b",\"kind\":");
        string(out, &self.kind);
        out.extend_from_slice(&self.rest);
        if !self.state.is_empty() {
            out.extend_from_slice(b",\"state\":{");
            out.extend_from_slice(&self.state[1..]);
            out.push(b'}');
        }
        if let Some(time) = time.filter(|_| !self.has_time) {
            out.extend_from_slice(b",\"time\":");
            out.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
        }
        out.extend_from_slice(b"}\n");
    }

    /// Begins a field; says where its value goes.
    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        self.has_time |= name == "time";
        let of_state = self.kind == "state" && !is_known(name);
        let out = if of_state { &mut self.state } else { &mut self.rest };
        out.push(b',');
        string(out, name);
        out.push(b':');
        out
    }

    fn text(&mut self, name: &str, value: &str) {
        match name {
            "actor" => value.clone_into(&mut self.actor),
            "kind" => value.clone_into(&mut self.kind),
            // These the layer writes; a logger's own would contradict it.
            "seq" | "incarnation" => {
                self.text(if name == "seq" { "logged_seq" } else { "logged_incarnation" }, value)
            }
            "fields" | "state" | "timer" if serde_json::from_str::<IgnoredAny>(value).is_ok() => {
                // On one line, whatever the text was laid out like.
                let out = self.name(name);
                out.extend(value.bytes().map(|b| if b == b'\n' || b == b'\r' { b' ' } else { b }));
            }
            _ => string(self.name(name), value),
        }
    }

    fn raw(&mut self, name: &str, value: &str) {
        match name {
            "actor" | "kind" => self.text(name, value),
            "seq" => self.name("logged_seq").extend_from_slice(value.as_bytes()),
            "incarnation" => self.name("logged_incarnation").extend_from_slice(value.as_bytes()),
            // Text in event records.
            "msg_id" | "from" | "to" | "type" | "payload" | "fingerprint" => self.text(name, value),
            _ => self.name(name).extend_from_slice(value.as_bytes()),
        }
    }

    /// Adds a field of text.
    pub(crate) fn add_text(&mut self, name: &str, value: &str) {
        self.text(name, value);
    }

    /// Adds a field that is JSON already.
    pub(crate) fn add_json(&mut self, name: &str, value: &str) {
        self.name(name).extend_from_slice(value.as_bytes());
    }

    fn shown(&mut self, name: &str, value: fmt::Arguments<'_>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        // A value that cannot be shown is shown as far as it could be.
        let _ = scratch.write_fmt(value);
        self.text(name, &scratch);
        self.scratch = scratch;
    }
}

/// Fields that event records have; in `state!` the others are the actor's variables.
fn is_known(name: &str) -> bool {
    matches!(
        name,
        "msg_id"
            | "from"
            | "to"
            | "via"
            | "timer"
            | "type"
            | "payload"
            | "fingerprint"
            | "external"
            | "fields"
            | "state"
            | "time"
    ) || name.starts_with("logged_")
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.raw(field.name(), itoa::Buffer::new().format(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.raw(field.name(), itoa::Buffer::new().format(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.raw(field.name(), itoa::Buffer::new().format(value));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.raw(field.name(), itoa::Buffer::new().format(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.raw(field.name(), if value { "true" } else { "false" });
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            // Rust's shortest form is JSON's, but for whole numbers, which stay whole.
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.clear();
            let _ = write!(scratch, "{value}");
            self.raw(field.name(), &scratch);
            self.scratch = scratch;
        } else {
            self.shown(field.name(), format_args!("{value}"));
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.shown(field.name(), format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.shown(field.name(), format_args!("{value:?}"));
    }
}

/// Appends a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    let mut rest = value.as_bytes();
    while let Some(at) = rest.iter().position(|b| *b < 0x20 || *b == b'"' || *b == b'\\') {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                let digit = |n: u8| if n < 10 { b'0' + n } else { b'a' + n - 10 };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(control >> 4), digit(control & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            prop_assert!(!out.contains(&b'\n'));
        }
    }
}

//! JSON for programs: `demi-trace/1`.

use std::io::Write;

use serde_json::{Map, Value, json};

use super::causes::Causes;
use super::error::ExportError;
use super::trace::Trace;

/// Name of the format, in its `schema` field.
const SCHEMA: &str = "demi-trace/1";

pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    write!(out, "{{\"schema\":\"{SCHEMA}\",\"system\":{},", serde_json::to_string(&trace.system)?)?;
    write!(out, "\"actors\":{},\"events\":[", serde_json::to_string(&s.actors)?)?;
    for (at, &e) in trace.events.iter().enumerate() {
        let (i, content) = (e as usize, &trace.contents[at]);
        let mut event = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                event.insert(name.to_owned(), value);
            }
        };
        // Structured values are objects again, not text of objects.
        let parsed = |text: &Option<Box<str>>| match text.as_deref() {
            Some(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
            None => Value::Null,
        };
        put("id", s.id(e).to_string().into());
        put("actor", s.actors[s.actor[i] as usize].clone().into());
        put("incarnation", s.incarnation[i].into());
        put("seq", s.seq[i].into());
        put("order", (e + 1).into());
        put("kind", s.kind[i].as_str().into());
        put("kept", s.kept[i].into());
        put("reason", json!(content.reason));
        put("joined", s.joint[i].as_str().into());
        put("msg_id", json!(content.msg_id));
        put("from", json!(content.from));
        put("to", json!(content.to));
        put("type", json!(content.type_));
        put("payload", json!(content.payload));
        put("external", if content.external { Value::from(true) } else { Value::Null });
        put("fields", parsed(&content.fields));
        put("state", parsed(&content.state));
        put("time", json!(content.time));
        put("source", json!(content.source));
        put("offset", json!(content.offset));
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &Value::Object(event))?;
    }
    write!(out, "\n],\"edges\":[")?;
    let mut first = true;
    for (stamp, causes) in Causes::new(trace) {
        let to = s.id(trace.events[stamp.at as usize]).to_string();
        for cause in causes {
            out.write_all(if std::mem::take(&mut first) { b"\n" } else { b",\n" })?;
            let from = s.id(trace.events[cause.at as usize]).to_string();
            let edge =
                json!({"from": from, "to": to, "reason": cause.why.as_str(), "certain": cause.certain});
            serde_json::to_writer(&mut *out, &edge)?;
        }
    }
    writeln!(out, "\n]}}")?;
    Ok(())
}

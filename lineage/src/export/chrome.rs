//! Chrome's trace events as one JSON object, which Perfetto reads: a process an actor, a short slice an event, a flow a
//! message.
//!
//! Logs have no clock that can be trusted, so time is the rank in the order: one event every 10 µs.

use std::io::Write;

use serde_json::json;

use super::error::ExportError;
use super::skeleton::NONE;
use super::trace::Trace;

/// Time between two events of the order, in µs.
const STEP: u64 = 10;
/// Length of an event, in µs. Flows bind to the slice around them, so that an instant would not do.
const LENGTH: u64 = 8;

pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
    let note = "time is the position in the order of happens-before: one event every 10 us";
    serde_json::to_writer(&mut *out, &json!({"system": trace.system, "time": note}))?;
    write!(out, ",\"traceEvents\":[")?;
    let mut first = true;
    let mut put = |out: &mut dyn Write, value: serde_json::Value| -> Result<(), ExportError> {
        out.write_all(if std::mem::take(&mut first) { b"\n" } else { b",\n" })?;
        Ok(serde_json::to_writer(out, &value)?)
    };
    let mut shown = vec![false; s.actors.len()];
    trace.events.iter().for_each(|&e| shown[s.actor[e as usize] as usize] = true);
    for (actor, name) in s.actors.iter().enumerate().filter(|(a, _)| shown[*a]) {
        let pid = actor + 1;
        put(out, json!({"ph":"M","name":"process_name","pid":pid,"tid":1,"args":{"name":name}}))?;
        put(out, json!({"ph":"M","name":"process_sort_index","pid":pid,"tid":1,"args":{"sort_index":pid}}))?;
        put(out, json!({"ph":"M","name":"thread_name","pid":pid,"tid":1,"args":{"name":"events"}}))?;
    }
    for (at, &e) in trace.events.iter().enumerate() {
        let (i, content) = (e as usize, &trace.contents[at]);
        let (pid, ts) = (s.actor[i] + 1, u64::from(e) * STEP);
        let args = json!({
            "event": s.id(e).to_string(), "type": content.type_, "from": content.from, "to": content.to,
            "payload": content.payload, "kept": s.kept[i], "joined": s.joint[i].as_str(), "time": content.time,
        });
        let (name, cat) = (trace.label(at), s.kind[i].as_str());
        put(out, json!({"ph":"X","name":name,"cat":cat,"pid":pid,"tid":1,"ts":ts,"dur":LENGTH,"args":args}))?;
        let mate = s.mate[i];
        if mate != NONE && trace.events.binary_search(&mate).is_ok() {
            // A flow has the number of its receive, and both its ends lie within their slices.
            let ts = ts + LENGTH / 2;
            let flow = match s.is_send(e) {
                true => {
                    json!({"ph":"s","id":mate,"name":"message","cat":"message","pid":pid,"tid":1,"ts":ts})
                }
                false => {
                    json!({"ph":"f","bp":"e","id":e,"name":"message","cat":"message","pid":pid,"tid":1,"ts":ts})
                }
            };
            put(out, flow)?;
        }
    }
    writeln!(out, "\n]}}")?;
    Ok(())
}

//! Chrome's trace events as one JSON object, which Perfetto reads: a process an actor, a short slice an event, a flow an edge
//! between logs. Events that have no place in the order of their log stand on a thread of their own.
//!
//! Logs have no clock that can be trusted, so time is the rank in the order: one event every 10 µs.

use std::io::Write;

use serde_json::json;

use super::causes::{Causes, EdgeReason};
use super::error::ExportError;
use super::skeleton::NONE;
use super::trace::Trace;

/// Time between two events of the order, in µs.
const STEP: u64 = 10;
/// The thread of events in the order of their log, and that of the others.
const THREADS: [(u32, &str); 2] = [(1, "events"), (2, "events in no order")];
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
    let thread = |e: u32| if s.place[e as usize] == NONE { THREADS[1].0 } else { THREADS[0].0 };
    let mut shown = vec![[false; THREADS.len()]; s.actors.len()];
    for &e in &trace.events {
        shown[s.actor[e as usize] as usize][thread(e) as usize - 1] = true;
    }
    for (actor, name) in s.actors.iter().enumerate().filter(|(a, _)| shown[*a].contains(&true)) {
        let pid = actor + 1;
        put(out, json!({"ph":"M","name":"process_name","pid":pid,"tid":1,"args":{"name":name}}))?;
        put(out, json!({"ph":"M","name":"process_sort_index","pid":pid,"tid":1,"args":{"sort_index":pid}}))?;
        for ((tid, name), _) in THREADS.iter().zip(shown[actor]).filter(|(_, shown)| *shown) {
            put(out, json!({"ph":"M","name":"thread_name","pid":pid,"tid":tid,"args":{"name":name}}))?;
        }
    }
    for (at, &e) in trace.events.iter().enumerate() {
        let (i, content) = (e as usize, &trace.contents[at]);
        let (pid, ts) = (s.actor[i] + 1, u64::from(e) * STEP);
        let args = json!({
            "event": s.id(e).to_string(), "type": content.type_, "from": content.from, "to": content.to,
            "payload": content.payload, "kept": s.kept[i], "joined": s.joint[i].as_str(), "time": content.time,
        });
        let (name, cat) = (trace.label(at), s.kind[i].as_str());
        put(
            out,
            json!({"ph":"X","name":name,"cat":cat,"pid":pid,"tid":thread(e),"ts":ts,"dur":LENGTH,"args":args}),
        )?;
    }
    let mut flow = 0_u64;
    for (stamp, causes) in Causes::new(trace) {
        for cause in causes.iter().filter(|cause| cause.why != EdgeReason::Log) {
            // Each edge has a flow of its own, whose ends lie within their slices: an event may have several.
            flow += 1;
            let name = match cause.why {
                EdgeReason::Edge(joint) if joint.is_message() => "message",
                why => why.as_str(),
            };
            let args = json!({"reason": cause.why.as_str(), "certain": cause.certain});
            for (at, phase) in [(cause.at, "s"), (stamp.at, "f")] {
                let e = trace.events[at as usize];
                let (pid, ts) = (s.actor[e as usize] + 1, u64::from(e) * STEP + LENGTH / 2);
                let mut end = json!({
                    "ph": phase, "id": flow, "name": name, "cat": name, "pid": pid, "tid": thread(e), "ts": ts, "args": args,
                });
                if phase == "f" {
                    end["bp"] = "e".into();
                }
                put(out, end)?;
            }
        }
    }
    writeln!(out, "\n]}}")?;
    Ok(())
}

//! Random executions of a small system, in an order in which they can have happened.

use demi_schemas::EventRecord;
use proptest::prelude::*;
use serde_json::json;

/// What an actor does next.
#[derive(Clone, Debug)]
enum Act {
    /// Sends to another.
    Send(usize, usize),
    /// Receives what was sent first of what it has not received.
    Receive(usize),
    /// Tells its state.
    Tell(usize, i64, i64),
}

pub const ACTORS: usize = 3;

/// The records of an execution, each behind what it depends on. A handler ends with the next receive of its actor.
pub fn execution() -> impl Strategy<Value = Vec<EventRecord>> {
    let act = prop_oneof![
        (0..ACTORS, 0..ACTORS).prop_map(|(a, b)| Act::Send(a, b)),
        (0..ACTORS).prop_map(Act::Receive),
        (0..ACTORS, 0..3_i64, 0..3_i64).prop_map(|(a, x, y)| Act::Tell(a, x, y)),
    ];
    (proptest::collection::vec(act, 1..40), any::<bool>()).prop_map(|(acts, ids)| {
        let mut seqs = [0_u64; ACTORS];
        let mut inboxes: Vec<Vec<(usize, usize)>> = vec![Vec::new(); ACTORS];
        let mut records = Vec::new();
        for (number, act) in acts.into_iter().enumerate() {
            let (actor, mut rest) = match act {
                Act::Send(from, to) => {
                    inboxes[to].push((number, from));
                    (from, json!({"kind": "send", "to": name(to), "type": "m", "fields": {"n": number % 3}, "id": number}))
                }
                Act::Receive(to) => {
                    if inboxes[to].is_empty() {
                        continue;
                    }
                    let (id, from) = inboxes[to].remove(0);
                    (to, json!({"kind": "receive", "from": name(from), "type": "m", "id": id}))
                }
                Act::Tell(actor, x, y) => (actor, json!({"kind": "state", "state": {"x": x, "y": y}})),
            };
            seqs[actor] += 1;
            rest["actor"] = json!(name(actor));
            rest["seq"] = json!(seqs[actor]);
            if let Some(id) = rest.as_object_mut().and_then(|rest| rest.remove("id"))
                && ids
            {
                rest["msg_id"] = json!(id.to_string());
            }
            records.push(EventRecord::parse(rest.to_string().as_bytes()).unwrap());
        }
        records
    })
}

fn name(actor: usize) -> String {
    format!("n-{actor}")
}

/// The same records in an order in which they can arrive: each log stays in its own.
pub fn shuffled(records: &[EventRecord], order: &[u8]) -> Vec<EventRecord> {
    let mut logs: Vec<Vec<&EventRecord>> = vec![Vec::new(); ACTORS];
    for record in records {
        let actor: usize = record.actor[2..].parse().unwrap();
        logs[actor].push(record);
    }
    logs.iter_mut().for_each(|log| log.reverse());
    let mut all = Vec::new();
    let mut order = order.iter().cycle();
    while logs.iter().any(|log| !log.is_empty()) {
        let next = usize::from(*order.next().unwrap()) % ACTORS;
        let log = (next..next + ACTORS).map(|i| i % ACTORS).find(|i| !logs[*i].is_empty()).unwrap();
        all.extend(logs[log].pop().cloned());
    }
    all
}

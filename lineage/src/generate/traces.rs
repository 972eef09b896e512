//! Spans of random traces, as events are made of them.

use demi_schemas::event::FIRST_CLOCK_SEQ;
use demi_schemas::{EventRecord, Kind};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// The composition of generated traces; shares are probabilities from 0 to 1.
#[derive(Clone, Debug)]
pub struct Traces {
    /// Seed of all choices.
    pub seed: u64,
    /// How many services there are, each an actor.
    pub services: u32,
    /// How many spans there are.
    pub spans: u32,
    /// Share of spans that begin a trace.
    pub roots: f64,
    /// Share of children in another service that tell the message which they received: a client's span and a server's.
    pub messages: f64,
    /// How far a service's clock may be from the truth, in steps: spans are one step apart.
    pub skew: u64,
    /// How far a stamp may be from its service's clock, in steps: beyond one a parent may be stamped after its child.
    pub jitter: u64,
}

/// A span that others may have for a parent.
struct Span {
    trace: u32,
    span: u32,
    service: u32,
    /// Whether it sent a message that nobody took yet.
    sends: bool,
}

/// Distance of two stamps in the same step.
const STEP: u64 = 1000;

/// The records of random traces, in the order in which the spans began.
#[must_use]
pub fn traces(mix: &Traces) -> Vec<EventRecord> {
    let mut random = ChaCha8Rng::seed_from_u64(mix.seed);
    let clocks: Vec<u64> = (0..mix.services).map(|_| random.random_range(0..=mix.skew)).collect();
    let mut spans: Vec<Span> = Vec::new();
    let mut records = Vec::new();
    for number in 0..mix.spans {
        let root = spans.is_empty() || random.random_bool(mix.roots);
        let service = random.random_range(0..mix.services);
        let parent = if root { None } else { Some(random.random_range(0..spans.len())) };
        let trace = parent.map_or(number, |parent| spans[parent].trace);
        let name = |service: u32| format!("service-{service}");
        let message = |span: &Span| format!("{:032x}:{:016x}", span.trace, span.span);
        let mut own = Span { trace, span: number + 1, service, sends: false };
        // No two stamps of a service are equal: the number of the span is in them.
        let at = clocks[service as usize] + u64::from(number) + random.random_range(0..=mix.jitter);
        let seq = FIRST_CLOCK_SEQ + at * STEP + u64::from(number) % STEP;
        let mut record = EventRecord::new(name(service), seq, Kind::Local);
        record.type_ = Some(format!("span-{number}"));
        let told = parent.filter(|&parent| spans[parent].sends && spans[parent].service != service);
        if let Some(parent) = told {
            spans[parent].sends = false;
            record.kind = Kind::Receive;
            record.msg_id = Some(message(&spans[parent]));
            (record.from, record.to) = (Some(name(spans[parent].service)), Some(name(service)));
        } else if random.random_bool(mix.messages) {
            own.sends = true;
            record.kind = Kind::Send;
            record.msg_id = Some(message(&own));
            (record.from, record.to) = (Some(name(service)), Some(demi_schemas::event::ANYONE.into()));
        }
        let mut put = |key: &str, value: String| record.attrs.insert(key.to_owned(), Value::from(value));
        put("key", message(&own));
        put("trace_id", format!("{trace:032x}"));
        put("span_id", format!("{:016x}", own.span));
        if let Some(parent) = parent {
            put("parent_span_id", format!("{:016x}", spans[parent].span));
        }
        records.push(record);
        spans.push(own);
    }
    records
}

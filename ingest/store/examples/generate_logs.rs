//! Writes made-up event records to standard output: `generate_logs RECORDS`, of about 230 bytes each, or `generate_logs RECORDS ACTORS`: messages
//! between so many actors, of about 75 bytes an event, the same each time.

#[path = "../benches/support/mod.rs"]
mod support;

use std::collections::VecDeque;
use std::io::{BufWriter, Write, stdout};

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|n| n.parse().ok());
    let records = numbers.next().unwrap_or(1_000_000);
    let mut out = BufWriter::with_capacity(1 << 20, stdout().lock());
    match numbers.next() {
        Some(actors) => messages(records, actors.max(2), &mut out),
        None => support::generate(records, &mut out),
    }
}

/// Actors send to each other at random, and take what they were sent in its order. Half of the records are sends; all messages arrive.
fn messages(records: u64, actors: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut seqs = vec![0; actors as usize];
    let mut inboxes = vec![VecDeque::new(); actors as usize];
    let (mut state, mut sent, mut received) = (7_u64, 0, 0);
    while sent + received < records / 2 * 2 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (actor, other, takes) = ((state >> 33) % actors, (state >> 13) % (actors - 1), state >> 63 == 0);
        let here = actor as usize;
        let message = if takes || sent == records / 2 { inboxes[here].pop_front() } else { None };
        if message.is_none() && sent == records / 2 {
            continue;
        }
        seqs[here] += 1;
        write!(out, r#"{{"actor":"a{actor}","seq":{},"#, seqs[here])?;
        match message {
            Some((id, from)) => {
                received += 1;
                writeln!(out, r#""kind":"receive","msg_id":"{id}","from":"a{from}"}}"#)?;
            }
            None => {
                let to = (actor + 1 + other) % actors;
                sent += 1;
                inboxes[to as usize].push_back((sent, actor));
                writeln!(out, r#""kind":"send","msg_id":"{sent}","to":"a{to}"}}"#)?;
            }
        }
    }
    out.flush()
}

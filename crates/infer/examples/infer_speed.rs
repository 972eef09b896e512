//! How long inferring and checking take over made-up states: `speed [STATES [ACTORS]]`.
//!
//! Actors elect leaders in turns, take entries into a log, and count what they do; about a third of the variables is noise.

#![allow(clippy::print_stdout, reason = "it reports to people")]

use std::sync::Arc;
use std::time::Instant;

use demi_infer::{Execution, Options, Record, infer};
use demi_predicate::{Gather, Predicate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How many entries a log has before it begins anew with a snapshot.
const LOG: usize = 32;

#[derive(Clone, Default)]
struct Actor {
    leads: bool,
    term: u64,
    log: Vec<u64>,
    committed: usize,
    counts: [u64; 6],
    noise: [u64; 5],
}

impl Actor {
    fn text(&self) -> String {
        let role = if self.leads { "Leader" } else { "Follower" };
        let [a, b, c, d, e, f] = self.counts;
        let [u, v, w, x, y] = self.noise;
        let mode = ["idle", "busy", "full"][(u % 3) as usize];
        format!(
            r#"{{"role":"{role}","term":{},"log":{:?},"committed":{},"sent":{a},"taken":{b},"kept":{c},"seen":{d},"done":{e},"tries":{f},"sum":{},"twice":{},"mode":"{mode}","open":{},"x":{v},"y":{w},"z":{x},"level":{y},"limit":100,"votes":{}}}"#,
            self.term,
            self.log,
            self.committed,
            a + b,
            2 * c,
            d > e,
            self.term % 256
        )
    }
}

fn made_up(states: usize, actors: usize) -> Execution {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let names: Vec<Arc<str>> = (0..actors).map(|i| Arc::from(format!("member-{i}"))).collect();
    let mut all = vec![Actor::default(); actors];
    let (mut gather, mut placed) = (Gather::default(), Vec::with_capacity(states));
    let (mut leader, mut entry) = (0, 0);
    for step in 0..states {
        let i = random.random_range(0..actors);
        if step % 2_000 == 0 {
            all[leader].leads = false;
            let (term, log) = (all[leader].term + 1, all[leader].log.clone());
            placed.push((leader, gather.add(&all[leader].text())));
            leader = i;
            (all[i].leads, all[i].term, all[i].log) = (true, term, log);
        } else if i == leader {
            entry += 1;
            if all[i].log.len() == LOG {
                all[i].log.clear();
                all[i].committed = 0;
            }
            all[i].log.push(entry);
        } else {
            let (term, log) = (all[leader].term, all[leader].log.clone());
            (all[i].term, all[i].log) = (term, log);
        }
        let own = &mut all[i];
        own.committed = own.log.len() / 2;
        let which = random.random_range(0..6);
        own.counts[which] += random.random_range(1..3);
        own.counts[3] = own.counts[3].max(own.counts[4]);
        own.noise[random.random_range(0..5)] = random.random_range(0..1_000);
        placed.push((i, gather.add(&own.text())));
    }
    let states = gather.finish();
    let record = |(actor, state): (usize, usize)| Record {
        actor: names[actor].clone(),
        incarnation: 0,
        state: states[state].clone(),
    };
    Execution {
        name: "made up".into(),
        records: placed.into_iter().map(record).collect(),
        ..Execution::default()
    }
}

/// The most memory that the process had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

fn main() {
    let number = |n: usize, or: usize| std::env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(or);
    let (states, actors) = (number(1, 1_000_000), number(2, 10));
    let start = Instant::now();
    let execution = made_up(states, actors);
    println!(
        "{} states of {actors} actors: {:.1?}, {} MiB",
        execution.records.len(),
        start.elapsed(),
        peak()
    );
    let executions = [execution];
    let start = Instant::now();
    let inferred = infer(&executions, &Options::default(), &mut |_, _| {});
    println!("inferred {} invariants: {:.1?}, {} MiB", inferred.invariants.len(), start.elapsed(), peak());
    let chosen: Vec<Predicate> =
        inferred.invariants.iter().take(60).filter_map(|i| Predicate::parse(&i.holds).ok()).collect();
    let start = Instant::now();
    for predicate in &chosen {
        let mut checker = predicate.checker();
        for record in &executions[0].records {
            if !matches!(checker.tell(&record.actor, record.incarnation, &record.state), Ok(None)) {
                println!("fails: {predicate}");
                break;
            }
        }
    }
    println!("checked {}: {:.1?}, {} MiB", chosen.len(), start.elapsed(), peak());
}

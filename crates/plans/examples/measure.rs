//! How many rounds and rows causal pasts take, in systems of one topology.
//!
//! `measure FOLDER TOPOLOGY ACTORS EVENTS ENGINE..` makes a store in FOLDER, unless it is there, and asks the engines for 20 events: each by itself, and all in one loop.

#![allow(clippy::print_stdout, reason = "its figures are its output")]

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use demi_formats::{Source, Sources};
use demi_lineage::query::{PastAnswer, Query};
use demi_plans::{Effort, EngineKind, Options, Process, Session};
use demi_store::{LineageTable, LoadOptions, Store};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../tests/it/topologies.rs"]
mod topologies;

use topologies::{Faults, Running, Topology};

/// Records as lines, made as they are read.
struct Lines {
    running: Running,
    rest: Vec<u8>,
    at: usize,
}

impl Read for Lines {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.rest.len() {
            (self.rest, self.at) = (Vec::new(), 0);
            for record in self.running.by_ref().take(1000) {
                serde_json::to_writer(&mut self.rest, &record)?;
                self.rest.push(b'\n');
            }
        }
        let n = out.len().min(self.rest.len() - self.at);
        out[..n].copy_from_slice(&self.rest[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

fn bytes(store: &Store, table: LineageTable) -> Result<u64, Box<dyn Error>> {
    let files = store.lineage_files(table, "s")?;
    Ok(files.iter().map(|file| std::fs::metadata(file.path()).map_or(0, |file| file.len())).sum())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, topology, actors, events, engines @ ..] = words.as_slice() else {
        return Err("measure FOLDER TOPOLOGY ACTORS EVENTS ENGINE..".into());
    };
    let topology = Topology::ALL
        .into_iter()
        .find(|known| format!("{known:?}").eq_ignore_ascii_case(topology))
        .ok_or("there are chatty, star, gossip, ring and pipeline")?;
    let (actors, events): (usize, u64) = (actors.parse()?, events.parse()?);
    let folder = Path::new(folder);
    let (place, order) = (folder.join("store"), folder.join("order"));
    if !place.join("events").is_dir() {
        let faults = match topology {
            Topology::Gossip => Faults { disorder: true, loss: 0.05, twice: 0.05, restart: 0.0001 },
            _ => Faults::default(),
        };
        let lines =
            Lines { running: Running::new(topology, actors, events, 1, faults), rest: Vec::new(), at: 0 };
        let begin = Instant::now();
        let mut store = Store::create(&place)?;
        let source = Source::stream("log", Box::new(std::io::BufReader::new(lines)));
        demi_store::load(&mut store, Sources(vec![source]), &LoadOptions::new("s"), |_| {})?;
        println!("load: {:.1} s", begin.elapsed().as_secs_f64());
    }
    let store = Store::open(&place)?;
    let begin = Instant::now();
    demi_lineage::query::refresh(&store.event_files("s")?, "s", &order, &mut |_| {})?;
    println!("order index: {:.1} s", begin.elapsed().as_secs_f64());
    let query = Query::open(&order, false)?;
    let begin = Instant::now();
    let done = demi_plans::refresh(&store, "s", &query, store.version(), false)?;
    let (messages, checkpoints) =
        (bytes(&store, LineageTable::Messages)?, bytes(&store, LineageTable::Checkpoints)?);
    println!(
        "tables: {:.1} s, {} messages, {} rows of checkpoints written; {:.2} and {:.2} bytes a message",
        begin.elapsed().as_secs_f64(),
        done.messages,
        done.checkpoints_written,
        messages as f64 / done.messages.max(1) as f64,
        checkpoints as f64 / done.messages.max(1) as f64
    );
    // Half of the events are in the last half of the logs.
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let index = query.index();
    let mut names = Vec::new();
    for n in 0..20 {
        let log = index.events_of(random.random_range(0..index.header().actors.len()));
        let from = if n % 2 == 0 { log.start + (log.end - log.start) / 2 } else { log.start };
        names.push(index.name(random.random_range(from..log.end))?.to_string());
    }
    names.shuffle(&mut random);
    let expected: Vec<PastAnswer> =
        names.iter().map(|name| query.past(index.event(name)?)).collect::<Result<_, _>>()?;
    let python = std::env::var_os("DEMI_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    for engine in engines {
        let (name, place) =
            engine.split_once(':').map_or((engine.as_str(), None), |(name, place)| (name, Some(place)));
        let kind = EngineKind::from_name(name).ok_or("no such engine")?;
        let scratch = tempfile::tempdir_in(folder)?;
        let mut process = Process::start(kind, place, &python)?;
        let rounds = std::env::var("DEMI_MAX_ROUNDS").ok().and_then(|n| n.parse().ok());
        let options =
            Options { max_rounds: rounds.unwrap_or(Options::default().max_rounds), ..Options::default() };
        let mut session = Session::open(&mut process, &store, &["s".to_owned()], options, scratch.path())?;
        let mut single: Vec<(f64, Effort)> = Vec::new();
        for (name, expected) in names.iter().zip(&expected) {
            let begin = Instant::now();
            let (answers, effort) = session.past_answers("s", std::slice::from_ref(name))?;
            single.push((begin.elapsed().as_secs_f64(), effort));
            assert_eq!(answers[0], *expected, "{engine}: {name}");
        }
        let begin = Instant::now();
        let (answers, together) = session.past_answers("s", &names)?;
        let all = begin.elapsed().as_secs_f64();
        assert_eq!(answers, expected, "{engine}");
        let mut rounds: Vec<u32> = single.iter().map(|(_, effort)| effort.rounds).collect();
        let mut rows: Vec<u64> =
            single.iter().map(|(_, effort)| effort.counted.rows_read.unwrap_or(0)).collect();
        let mut read: Vec<u64> =
            single.iter().map(|(_, effort)| effort.counted.bytes_read.unwrap_or(0)).collect();
        let mut times: Vec<f64> = single.iter().map(|(time, _)| *time).collect();
        let total: f64 = times.iter().sum();
        rounds.sort_unstable();
        rows.sort_unstable();
        read.sort_unstable();
        times.sort_by(f64::total_cmp);
        let fetched = single.iter().map(|(_, effort)| effort.fetched).max().unwrap_or(0);
        println!(
            "{engine} {}: rounds {} (median {}), rows read {} (median {}), bytes {} (median {}), at most {fetched} fetched; median {:.3} s, all {total:.2} s; in one loop {:.3} s, {} rounds, {:?} rows",
            process.version(),
            rounds[19],
            rounds[10],
            rows[19],
            rows[10],
            read[19],
            read[10],
            times[10],
            all,
            together.rounds,
            together.counted.rows_read
        );
    }
    Ok(())
}

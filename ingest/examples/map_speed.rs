//! How fast a mapping turns logs into event records with their digests, on one thread, storing nothing.
//!
//! `cargo run --release -p demi-ingest --example map_speed -- MAPPING MEGABYTES FILE...`. The files are read again and again
//! until so many megabytes were mapped. MAPPING is the name of a shipped mapping or a file.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use demi_ingest::mapping::{Mapper, Mapping, Outcome};
use demi_ingest::{Dry, Sources, record_digest};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(name), Some(megabytes)) = (args.next(), args.next()) else {
        return Err("usage: map_speed MAPPING MEGABYTES FILE...".into());
    };
    let files: Vec<String> = args.collect();
    let mapping = if Path::new(&name).exists() {
        Mapping::parse(&std::fs::read_to_string(&name)?, &name)?
    } else {
        Mapping::named(&name)?
    };
    let mut once = 0;
    for file in &files {
        once += std::fs::metadata(file)?.len();
    }
    let times = (megabytes.parse::<u64>()? * 1_000_000).div_ceil(once.max(1)).max(1);
    let (mut events, mut lines, mut sum) = (0_u64, 0_u64, 0_u64);
    let begun = Instant::now();
    for _ in 0..times {
        let dry = Dry::new(Sources::plan(&files)?, Mapper::new(&mapping)?);
        dry.run(|_, unit| {
            lines += unit.lines;
            if let Outcome::Events { records, .. } = &unit.outcome {
                events += records.len() as u64;
                sum = records.iter().fold(sum, |sum, record| sum ^ record_digest(record));
            }
            true
        })?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = (once * times) as f64;
    println!(
        "{name}: {:.0} MB, {lines} lines, {events} events in {seconds:.2} s: {:.1} MB/s, {:.2} µs an event, {:.0} bytes an event, digest {sum:016x}",
        bytes / 1e6,
        bytes / 1e6 / seconds,
        seconds * 1e6 / events.max(1) as f64,
        bytes / events.max(1) as f64,
    );
    Ok(())
}

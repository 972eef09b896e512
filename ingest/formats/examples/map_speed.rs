//! How fast a mapping turns logs into event records with their digests, on one thread, storing nothing.
//!
//! `cargo run --release -p demi-formats --example map_speed -- MAPPING MEGABYTES FILE...`. The files are repeated
//! until they have so many megabytes. MAPPING is the name of a shipped mapping or a file.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use demi_formats::mapping::{Mapper, Mapping};
use demi_formats::{Events, Fate};
use demi_formats::{Sources, record_digest};

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
    // Repeated into one file each: a mapping is read once for a source.
    let folder = tempfile::tempdir()?;
    let once: u64 = files.iter().map(|file| std::fs::metadata(file).map_or(0, |m| m.len())).sum();
    let times = (megabytes.parse::<u64>()? * 1_000_000).div_ceil(once.max(1)).max(1);
    let mut repeated = Vec::new();
    for (n, file) in files.iter().enumerate() {
        let path =
            folder.path().join(format!("{n}-{}", Path::new(file).file_name().unwrap_or_default().display()));
        let mut content = std::fs::read(file)?;
        if content.last() != Some(&b'\n') {
            content.push(b'\n');
        }
        let mut out = BufWriter::new(File::create(&path)?);
        (0..times).try_for_each(|_| out.write_all(&content))?;
        out.flush()?;
        repeated.push(path.display().to_string());
    }
    let (mut events, mut lines, mut sum) = (0_u64, 0_u64, 0_u64);
    let begun = Instant::now();
    Mapper::new(&mapping)?.try_on(Sources::plan(&repeated)?, |_, unit| {
        lines += unit.lines;
        if let Fate::Row(Events { records, .. }) = &unit.fate {
            events += records.len() as u64;
            sum = records.iter().fold(sum, |sum, record| sum ^ record_digest(record));
        }
        true
    })?;
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

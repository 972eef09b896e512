//! How long a file takes to load, and how much memory: `load_documents KIND FILE`, with the kinds of `generate_documents`, or `native` for event
//! records, as `generate_logs` writes them. The store is a new one beside the file, and is removed. Prints one JSON object.

#![expect(clippy::print_stdout, reason = "this is a program that prints a result")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use demi_formats::Sources;
use demi_formats::mapping::{Mapper, Mapping};
use demi_store::{LoadOptions, Store, load_mapped};
use serde_json::json;

/// That of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A mapping of the records that `generate_documents json` writes.
const RECORDS: &str = r#"
name = "records"
description = "made-up records"
[input]
container = "json"
[event]
actor = "{actor}"
seq = "{n}"
kind = "local"
type = "{what}"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, file] = args.as_slice() else { return Err("load_documents KIND FILE".into()) };
    let mapping = match kind.as_str() {
        "zipkin" => Mapping::named("zipkin")?,
        "json" => Mapping::parse(RECORDS, "records")?,
        "native" => Mapping::named("native")?,
        _ => Mapping::named("otlp")?,
    };
    let dir = tempfile::tempdir_in(Path::new(file).parent().unwrap_or(Path::new(".")))?;
    let mut store = Store::create(dir.path())?;
    let sources = Sources::plan(std::slice::from_ref(file))?;
    let start = Instant::now();
    let report = load_mapped(&mut store, sources, &LoadOptions::new("s"), Mapper::new(&mapping)?, |_| {})?;
    let seconds = start.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(str::trim);
    println!(
        "{}",
        json!({
            "megabytes": report.bytes / 1_000_000, "added": report.summary.added, "duplicates": report.summary.duplicates,
            "quarantined": report.summary.quarantined, "seconds": (seconds * 100.0).round() / 100.0, "peak": peak,
        })
    );
    Ok(())
}

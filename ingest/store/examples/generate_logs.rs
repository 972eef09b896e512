//! Writes made-up event records to standard output: `generate_logs RECORDS`.

#[path = "../benches/support/mod.rs"]
mod support;

use std::io::{BufWriter, stdout};

fn main() -> std::io::Result<()> {
    let records = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    support::generate(records, &mut BufWriter::with_capacity(1 << 20, stdout().lock()))
}

//! Any bytes as what checkers and observers write: of a log of lines no line vanishes, none is met twice; what becomes an event keeps the rules.
#![no_main]

mod mappers;

use demi_formats::mapping::{Outcome, shipped};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 7] = ["p-trace", "p-trace-json", "pobserve", "pobserve-lines", "tlc", "tlc-json", "itf"];

fuzz_target!(|input: (u8, &[u8])| {
    let name = NAMES[usize::from(input.0) % NAMES.len()];
    let which = shipped().iter().position(|mapping| mapping.name == name).expect("shipped");
    let units = mappers::with(which as u8, 0, |_, mapper| mapper.map_text("f", input.1));
    let lines: Vec<&[u8]> = input.1.split(|b| *b == b'\n').collect();
    let mut met = vec![0_u32; lines.len() + 1];
    for unit in &units {
        for line in unit.line.number..unit.line.number + unit.lines {
            met[line as usize - 1] += 1;
        }
        if let Outcome::Events { records, .. } = &unit.outcome {
            records.iter().for_each(|r| r.check().expect("events keep the rules"));
        }
    }
    if matches!(name, "p-trace-json" | "tlc-json" | "itf") {
        return;
    }
    for (line, met) in lines.iter().zip(met) {
        assert!(met == 1 || (met == 0 && line.trim_ascii().is_empty()), "{met} {line:?}");
    }
});

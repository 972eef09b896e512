//! Any bytes under any mapping: no line vanishes, none is met twice.
#![no_main]

mod mappers;

use demi_formats::mapping::Outcome;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (name, units) =
        mappers::with(input.0, 0, |mapping, mapper| (mapping.name.clone(), mapper.map_text("f", input.1)));
    if matches!(name.as_str(), "otlp" | "zipkin" | "jaeger" | "elle" | "itf" | "jepsen" | "tlc-json" | "p-trace-json") {
        return;
    }
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
    for (line, met) in lines.iter().zip(met) {
        assert!(met == 1 || (met == 0 && line.trim_ascii().is_empty()), "{met} {line:?}");
    }
});
